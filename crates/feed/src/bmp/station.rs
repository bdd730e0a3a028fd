//! The state machine of one station: which routers feed it, and what each
//! tells. Bytes and a time in, changes of rows out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bgp::Bad;
use table::{FeedStatus, Feeder, Feeders, Limits, MonitoredRouter, Phase};
use thiserror::Error;

use super::message::{Initiation, Message, kind};
use super::messages::{BadMessage, Framed, Messages};
use super::router::{Heard, Identity, Place, Router};
use super::state::BmpState;
use crate::now::Now;

/// Characters of a router's own name that names of sources have.
const MAX_NAME: usize = 24;

/// How much a station takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StationLimits {
    /// Rows of a router.
    pub rows: Limits,
    /// Routers, connected or gone.
    pub routers: usize,
    /// Peers of a router, and tables of them (RIBs).
    pub tables: usize,
}

impl Default for StationLimits {
    fn default() -> Self {
        Self {
            rows: Limits::default(),
            routers: 64,
            tables: 256,
        }
    }
}

/// Why a connection cannot be read on. Names the place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken {
    /// The stream is not made of messages.
    #[error(transparent)]
    Stream(#[from] BadMessage),
    /// A message does not hold what it should.
    #[error("the {} message at byte {offset}: {error}", kind::in_words(*.kind))]
    Message {
        /// Where the message begins in the stream.
        offset: u64,
        /// Its type.
        kind: u8,
        /// What is wrong in it.
        error: Bad,
    },
    /// A router says first who it is.
    #[error(
        "it begins with a message of type {kind} ({}); an initiation is expected",
        kind::in_words(*.kind)
    )]
    NoInitiation {
        /// The type of its first message.
        kind: u8,
    },
    /// There are as many routers as there may be.
    #[error("there are {0} routers, and may be no more: raise `routers`")]
    TooMany(usize),
    /// One host has as many as it may have.
    #[error(
        "{host} has {routers} routers, and a host may have no more: raise `routers`, of which \
         it may have three quarters"
    )]
    TooManyOfHost {
        /// Where they come from.
        host: IpAddr,
        /// How many.
        routers: usize,
    },
}

/// A router of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterId(u64);

/// One station. Dropped, its rows leave.
#[derive(Debug)]
pub struct Station {
    /// Has the name of the feed, and no rows: those are its routers'.
    own: Feeder,
    place: Place,
    most_routers: usize,
    routers: BTreeMap<RouterId, Router>,
    /// Routers that there were so far.
    met: u64,
    status: FeedStatus,
    malformed: u64,
    is_told: bool,
}

impl Station {
    /// One that nobody feeds yet. `own` has its name, `feeders` is where
    /// tables of peers join, `listening` where it is waited for.
    pub fn new(own: Feeder, feeders: Feeders, listening: String, limits: StationLimits) -> Self {
        let mut station = Self {
            place: Place {
                feed: own.name().to_owned(),
                listening: listening.clone(),
                feeders,
                rows: limits.rows,
                tables: limits.tables,
            },
            own,
            most_routers: limits.routers,
            routers: BTreeMap::new(),
            met: 0,
            status: FeedStatus {
                listening,
                ..FeedStatus::default()
            },
            malformed: 0,
            is_told: false,
        };
        station.publish();
        station
    }

    /// What it is asked for by.
    pub fn name(&self) -> &str {
        &self.place.feed
    }

    /// Takes other limits, for what is to come.
    pub fn set_limits(&mut self, limits: StationLimits) {
        self.place.rows = limits.rows;
        self.place.tables = limits.tables;
        self.most_routers = limits.routers;
    }

    /// Somebody begins to feed it, and will tell all: who, by the first
    /// message, which is to be there whole. While a router has a connection,
    /// another of its address and name is a router of its own: FRR makes one
    /// for each of its tables and targets.
    pub fn connected(
        &mut self,
        from: SocketAddr,
        messages: &mut Messages,
        now: Now,
    ) -> Result<RouterId, Broken> {
        let told = initiation(messages)?;
        let identity = Identity {
            address: from.ip().to_canonical(),
            name: told.name.clone(),
        };
        let mut known = self.routers.iter();
        let known = known.find(|(_, one)| one.identity == identity && !one.is_connected());
        let id = match known.map(|(id, _)| *id) {
            Some(id) => id,
            None => self.meet(identity)?,
        };
        if let Some(router) = self.routers.get_mut(&id) {
            router.connected(&from.to_string(), told, now);
        }
        self.status.peer = Some(from.to_string());
        self.status.since = Some(now.when());
        self.status.connections += 1;
        self.heard(now);
        Ok(id)
    }

    /// A router that was not here before. Where there are as many as may
    /// be, the one that is gone for the longest time leaves.
    /// One host has three quarters of the places at most, by whatever names.
    fn meet(&mut self, identity: Identity) -> Result<RouterId, Broken> {
        let is_of_host = |router: &Router| router.identity.address == identity.address;
        let of_host = self.routers.values().filter(|router| is_of_host(router));
        let of_host = of_host.count();
        let has_its_share = of_host >= self.most_routers - self.most_routers / 4;
        if has_its_share || self.routers.len() >= self.most_routers {
            let gone = self.routers.iter();
            let gone = gone.filter(|(_, router)| {
                !router.is_connected() && (is_of_host(router) || !has_its_share)
            });
            // Of the same host first: it has its own place, not others'.
            let longest = gone.min_by_key(|(_, router)| {
                let is_other = router.identity.address != identity.address;
                (is_other, router.since())
            });
            let Some(longest) = longest.map(|(id, _)| *id) else {
                return Err(match self.routers.len() >= self.most_routers {
                    true => Broken::TooMany(self.most_routers),
                    false => Broken::TooManyOfHost {
                        host: identity.address,
                        routers: of_host,
                    },
                });
            };
            self.routers.remove(&longest);
        }
        let name = self.free_name(&identity);
        self.met += 1;
        let id = RouterId(self.met);
        self.routers.insert(id, Router::new(identity, name));
        Ok(id)
    }

    /// What sources of a router have behind the `@`: what it calls itself,
    /// else its address; a second one of a name has a number behind it.
    fn free_name(&self, identity: &Identity) -> String {
        let allowed = |one: char| match one {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => one,
            _ => '-',
        };
        let name: String = identity.name.chars().take(MAX_NAME).map(allowed).collect();
        let name = match name.is_empty() {
            true => identity.address.to_string(),
            false => name,
        };
        let is_taken = |name: &str| self.routers.values().any(|router| router.name() == name);
        let others = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        names.find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// Takes in all messages of a router that are there whole. What was read
    /// before an error counts; who gets one, or hears that the router ends,
    /// closes the connection and says so ([`Station::lost`]). Readers see it
    /// after [`Station::publish`].
    pub fn received(
        &mut self,
        id: RouterId,
        messages: &mut Messages,
        now: Now,
    ) -> Result<Heard, Broken> {
        while let Some(framed) = messages.next_message()? {
            self.heard(now);
            let (offset, kind) = (framed.offset, framed.kind);
            let broken = |error| Broken::Message {
                offset,
                kind,
                error,
            };
            let message = Message::read(kind, framed.body).map_err(broken)?;
            let Some(router) = self.routers.get_mut(&id) else {
                break;
            };
            let heard = router.take(message, &self.place, now).map_err(broken)?;
            if heard != Heard::On {
                return Ok(heard);
            }
        }
        Ok(Heard::On)
    }

    fn heard(&mut self, now: Now) {
        self.status.messages += 1;
        self.status.last_heard = Some(now.when());
        self.is_told = false;
    }

    /// What a router is called.
    pub fn name_of(&self, id: RouterId) -> &str {
        self.routers.get(&id).map_or("", Router::name)
    }

    /// A router is gone. Its rows stay, and none of them is confirmed.
    pub fn lost(&mut self, id: RouterId, why: &str, broken: bool, now: Now) {
        self.malformed += u64::from(broken);
        if let Some(router) = self.routers.get_mut(&id) {
            router.lost(why, now);
        }
        self.status.since = Some(now.when());
        self.is_told = false;
        self.publish();
    }

    /// A connection was turned away that fed nothing.
    pub fn turned_away(&mut self) {
        self.status.turned_away += 1;
        self.is_told = false;
    }

    /// Looks whether routers have told all where nothing says so; what they
    /// did not tell goes then. To be called each second. `settled` is told of
    /// which tables all was.
    pub fn tick(&mut self, now: Now, settled: &mut dyn FnMut(&str)) {
        for router in self.routers.values_mut() {
            router.tick(now, settled);
        }
        self.is_told = false;
    }

    /// All was told of a table, as whoever recorded it has seen.
    pub(crate) fn settled(&mut self, table: &str, now: Now) {
        for router in self.routers.values_mut() {
            router.settled(table, now);
        }
        self.is_told = false;
    }

    /// How it stands, for a recording. `connection` gives the number of each
    /// router's.
    pub(crate) fn state(&self, mut connection: impl FnMut(RouterId) -> u32) -> BmpState {
        let routers = self.routers.iter();
        BmpState(
            routers
                .map(|(id, router)| router.recorded(connection(*id)))
                .collect(),
        )
    }

    /// Whether there is something to publish.
    pub fn has_news(&self) -> bool {
        !self.is_told
    }

    /// Readers see what came since, and how all fare. O(tables of peers).
    pub fn publish(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        for router in self.routers.values_mut() {
            router.publish(&self.place);
        }
        let routers: Vec<MonitoredRouter> = self.routers.values().map(Router::status).collect();
        let sum = |of: fn(&MonitoredRouter) -> u64| routers.iter().map(of).sum();
        let feed = FeedStatus {
            frames: self.status.messages,
            unconfirmed: sum(|router| router.unconfirmed),
            skipped: skipped(&routers),
            routers: Some(routers.into()),
            ..self.status.clone()
        };
        let (phase, malformed) = (self.phase(), self.malformed);
        self.own.update_status(|status| {
            status.phase = phase;
            status.malformed = malformed;
            status.feed = Some(Box::new(feed));
        });
    }

    fn phase(&self) -> Phase {
        let mut routers = self.routers.values();
        match () {
            () if self.routers.is_empty() => {
                Phase::Disconnected("nobody has connected yet".to_owned())
            }
            () if routers.any(Router::is_connected) => Phase::Live,
            () => Phase::Disconnected("all its routers are gone".to_owned()),
        }
    }
}

fn skipped(routers: &[MonitoredRouter]) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for (what, count) in routers.iter().flat_map(|router| &router.skipped) {
        *all.entry(*what).or_default() += count;
    }
    all
}

/// The first message of a connection.
fn initiation(messages: &mut Messages) -> Result<Initiation, Broken> {
    let Some(Framed { offset, kind, body }) = messages.next_message()? else {
        // Whoever calls has seen that it is there.
        return Err(Broken::NoInitiation { kind: u8::MAX });
    };
    let broken = |error| Broken::Message {
        offset,
        kind,
        error,
    };
    match Message::read(kind, body).map_err(broken)? {
        Message::Initiation(told) => Ok(told),
        _ => Err(Broken::NoInitiation { kind }),
    }
}
