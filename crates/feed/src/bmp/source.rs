//! The rows of one of a peer's tables, as a router tells them, and how far
//! they are told.

use std::sync::Arc;

use bgp::Bad;
use bgp::as_path::AsSize;
use bgp::paths::{self, Said};
use bgp::update::Update;
use ipnet::IpNet;
use table::{FeedStatus, Feeder, Limits, MonitoredPeer, Phase, RouteBody, RouteLoad, When};

use super::peer_header::Rib;
use super::state::SourceState;
use crate::now::Now;
use crate::settling::Settling;

/// The attributes of a path have so many bytes at most: a message of 4,096
/// bytes (RFC 4271 §4), its AS numbers all widened to four.
const MAX_PATH: usize = 8_192;

/// How the whole router's stream stands: what one of its tables lacks may
/// still be on its way behind the others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flow {
    /// Paths that were told.
    pub paths: u64,
    /// Rows of all tables that were not told again.
    pub unconfirmed: usize,
}

/// Nothing is known to move yet: the first look takes what it finds. Else
/// what one table swept would be rows told again to those begun earlier.
fn begun(flow: Flow, now: Now) -> Settling {
    Settling::begin(now.monotonic, usize::MAX, flow.paths)
}

/// One table of a peer. Dropped, its rows leave.
#[derive(Debug)]
pub(super) struct Source {
    feeder: Feeder,
    /// Whether all was told, by family: IPv4, IPv6.
    ends: [bool; 2],
    /// Until all was told.
    settling: Option<Settling>,
    /// There were rows when that began.
    had_rows: bool,
    /// How much had been told of it until then.
    begun_events: u64,
    messages: u64,
    events: u64,
    malformed: u64,
    swept: u64,
    resyncs: u64,
    trouble: Option<String>,
    last_heard: When,
    has_news: bool,
}

impl Source {
    /// Nothing was told of it yet.
    pub(super) fn new(feeder: Feeder, flow: Flow, now: Now) -> Self {
        Self {
            feeder,
            ends: [false; 2],
            settling: Some(begun(flow, now)),
            had_rows: false,
            begun_events: 0,
            messages: 0,
            events: 0,
            malformed: 0,
            swept: 0,
            resyncs: 0,
            trouble: None,
            last_heard: now.when(),
            has_news: true,
        }
    }

    /// All is to be told anew: the router or its peer came again. One step.
    pub(super) fn begin(&mut self, flow: Flow, now: Now) {
        self.had_rows = self.routes() > 0;
        self.begun_events = self.events;
        self.resyncs += u64::from(self.settling.is_none());
        self.ends = [false; 2];
        self.trouble = None;
        self.settling = Some(begun(flow, now));
        self.feeder.begin();
        self.has_news = true;
    }

    /// What a message says of it. `routes`: what all the router's tables
    /// may have more. Attributes that cannot be read are a withdrawal;
    /// prefixes that cannot be, and attributes that are too long, an error.
    pub(super) fn take(
        &mut self,
        update: &Update<'_>,
        size: AsSize,
        limits: Limits,
        now: Now,
    ) -> Result<(), Bad> {
        self.heard(now);
        let own = self.routes();
        self.feeder.set_limits(Limits {
            routes: own.saturating_add(limits.routes),
            ..limits
        });
        let mut wrong = Ok(());
        paths::each(update, size, |said| {
            let taken = said.and_then(|said| self.said(said));
            wrong = wrong.and(taken);
        });
        wrong
    }

    fn said(&mut self, said: Said) -> Result<(), Bad> {
        self.events += 1;
        match said {
            Said::Gone(prefix, path_id) => self.gone(prefix, path_id),
            Said::There(prefix, path) => return self.there(prefix, path),
            Said::Unreadable(prefix, path_id, bad) => {
                self.malformed += 1;
                self.trouble = Some(format!("{prefix} is taken as withdrawn: {bad}"));
                self.gone(prefix, path_id);
            }
        }
        Ok(())
    }

    fn gone(&mut self, prefix: IpNet, path_id: Option<u32>) {
        paths::take_out(&mut self.feeder, prefix, path_id);
    }

    fn there(&mut self, prefix: IpNet, path: RouteBody) -> Result<(), Bad> {
        let len = path.path.bytes();
        if len > MAX_PATH {
            let what = "the attributes of a path";
            return Err(Bad::Length { what, len });
        }
        // A refusal is counted, and told with the rows.
        let put = paths::put(&mut self.feeder, prefix, path);
        if put.is_err() {
            self.trouble = Some("the router has more routes than `limits.routes` says".to_owned());
        }
        Ok(())
    }

    /// All of a family was told. Once all families that are expected were,
    /// what was not told again goes.
    pub(super) fn ended(&mut self, is_v6: bool, expected: [bool; 2], now: Now) {
        self.heard(now);
        self.ends[usize::from(is_v6)] = true;
        let routes = &self.feeder.tables().routes;
        let has = [routes.len_v4() > 0, routes.len_v6() > 0];
        let is_told = |at: usize| self.ends[at] || !(expected[at] || has[at]);
        if self.settling.is_some() && is_told(0) && is_told(1) {
            self.settled(now);
        }
    }

    fn heard(&mut self, now: Now) {
        self.feeder.set_time(now.millis);
        self.messages += 1;
        self.last_heard = now.when();
        self.has_news = true;
    }

    /// Whether something was told of it since all was to be told anew.
    pub(super) fn was_told(&self) -> bool {
        self.events != self.begun_events
    }

    /// Looks whether all was told where nothing said so. What is awaited,
    /// since nothing was told of its peer yet, is given the longest time:
    /// routers think before they begin. Whether it was, just now.
    pub(super) fn tick(&mut self, flow: Flow, is_awaited: bool, now: Now) -> bool {
        let Some(settling) = &mut self.settling else {
            return false;
        };
        let is_settled = settling.is_settled(now.monotonic, flow.unconfirmed, flow.paths);
        let is_settled = is_settled && (!is_awaited || settling.has_rested(now.monotonic));
        if is_settled {
            self.settled(now);
        }
        is_settled
    }

    /// What it is asked for by.
    pub(super) fn name(&self) -> &str {
        self.feeder.name()
    }

    /// All was told: what was not told again goes.
    pub(super) fn settled(&mut self, now: Now) {
        self.settling = None;
        self.feeder.set_time(now.millis);
        self.swept += self.feeder.end() as u64;
        self.has_news = true;
    }

    /// The session is down: all its rows go, in one step whatever their
    /// number, and nothing is to come.
    pub(super) fn down(&mut self, limits: Limits, now: Now) {
        self.feeder.set_time(now.millis);
        self.events += self.routes() as u64;
        self.feeder.replace_routes(RouteLoad::new(&limits));
        // None is left that could be told again.
        self.feeder.begin();
        self.settled(now);
    }

    pub(super) fn routes(&self) -> usize {
        self.feeder.tables().routes.len()
    }

    /// What was told of it so far: paths, and those that are gone.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Whether all was told, as far as is known.
    pub(super) fn is_settled(&self) -> bool {
        self.settling.is_none()
    }

    /// How it stands, for a recording.
    pub(super) fn recorded(&self, rib: Rib) -> SourceState {
        SourceState {
            name: self.name().to_owned(),
            rib,
            routes: self.feeder.tables().routes.clone(),
            unconfirmed: self.feeder.unconfirmed_rows(),
            is_settled: self.settling.is_none(),
            ends: self.ends,
        }
    }

    pub(super) fn unconfirmed(&self) -> usize {
        self.feeder.unconfirmed()
    }

    /// It is to be told anew how it is.
    pub(super) fn renew(&mut self) {
        self.has_news = true;
    }

    /// Readers see what came since. `feed` is what is told of the router,
    /// `gone` why it is not connected.
    pub(super) fn publish(
        &mut self,
        feed: &FeedStatus,
        gone: Option<&str>,
        monitored: &Arc<MonitoredPeer>,
    ) {
        if !std::mem::take(&mut self.has_news) {
            return;
        }
        self.feeder.publish();
        let phase = self.phase(gone);
        let unconfirmed = match gone {
            Some(_) => self.routes(),
            None => self.unconfirmed(),
        };
        let feed = FeedStatus {
            messages: self.messages,
            frames: self.messages,
            unconfirmed: unconfirmed as u64,
            swept: self.swept,
            last_heard: Some(self.last_heard),
            monitored: Some(Arc::clone(monitored)),
            ..feed.clone()
        };
        let (events, malformed, resyncs) = (self.events, self.malformed, self.resyncs);
        let trouble = self.trouble.clone();
        self.feeder.update_status(|status| {
            status.phase = phase;
            status.resyncs = resyncs;
            status.events = events;
            status.malformed = malformed;
            status.last_trouble = trouble;
            status.feed = Some(Box::new(feed));
        });
    }

    fn phase(&self, gone: Option<&str>) -> Phase {
        match (gone, &self.settling) {
            (Some(why), _) => Phase::Disconnected(why.to_owned()),
            (None, None) => Phase::Live,
            (None, Some(_)) if self.had_rows => Phase::Resyncing,
            (None, Some(_)) => Phase::Loading,
        }
    }
}
