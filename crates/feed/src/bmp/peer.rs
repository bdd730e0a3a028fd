//! A BGP peer of a router: its session, what is told of it, and its tables.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bgp::as_path::AsSize;
use bgp::update::Session;
use table::{FeedStatus, Limits, MonitoredPeer, PeerEvent};

use super::message::{PeerUp, Statistics};
use super::peer_header::{PeerHeader, PeerKey, Rib};
use super::source::{Flow, Source};
use super::state::{self, PeerState};
use crate::now::Now;

/// Events of a session that are kept.
const HISTORY: usize = 16;
/// Bytes of a message that is kept.
const MAX_KEPT: usize = 4_096;
/// Kinds of statistics that are kept.
const STATISTICS: usize = 64;

/// A peer.
#[derive(Debug)]
pub(super) struct Peer {
    key: PeerKey,
    /// What is told of it with each of its tables.
    known: MonitoredPeer,
    state: State,
    /// The bodies of the last Peer Up and Peer Down, for a recording.
    up: Option<Box<[u8]>>,
    down: Option<Box<[u8]>>,
    /// The router writes no path identifiers where both speakers have agreed
    /// on them.
    has_no_path_ids: bool,
    /// What is told of it is another now.
    is_renewed: bool,
    sources: [Option<(Source, Arc<MonitoredPeer>)>; Rib::COUNT],
    /// When it went down, by the clock that nobody sets: for who has to make
    /// room.
    pub(super) since: Duration,
}

/// Whether a session is up, as its router says.
#[derive(Debug)]
enum State {
    /// It has said nothing since it came.
    Unsaid,
    /// It is, and this is what both speakers have agreed on, where that
    /// could be read.
    Up(Option<PeerUp>),
    /// It is not.
    Down,
}

/// How what is told of a table is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Agreed {
    pub session: Session,
    /// The families of which an end is to come: IPv4, IPv6.
    pub families: [bool; 2],
    /// Both speakers have AS numbers of four bytes.
    pub has_four_byte_as: bool,
}

impl Peer {
    /// One that was not heard of before.
    pub(super) fn new(key: PeerKey, router: &str) -> Self {
        Self {
            key,
            known: MonitoredPeer {
                router: router.to_owned(),
                address: key.address(),
                distinguisher: key.distinguisher(),
                ..MonitoredPeer::default()
            },
            state: State::Unsaid,
            up: None,
            down: None,
            has_no_path_ids: false,
            is_renewed: false,
            sources: [const { None }; Rib::COUNT],
            since: Duration::ZERO,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.known.is_up
    }

    /// Whether something of it may be on its way though nothing was told
    /// since its session came up, or its router.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(self.state, State::Down) && !self.sources().any(Source::was_told)
    }

    /// Its session is up, and all its tables are to be told.
    /// `body` is the message's.
    pub(super) fn up(
        &mut self,
        header: &PeerHeader,
        up: Option<PeerUp>,
        body: &[u8],
        flow: Flow,
        now: Now,
    ) {
        self.up = kept(body);
        self.known.asn = header.asn;
        self.known.bgp_id = header.bgp_id.to_string();
        let name = up.as_ref().map(|up| up.table_name.clone());
        self.known.table_name = name.unwrap_or_default();
        self.has_no_path_ids = false;
        self.state = State::Up(up);
        self.happened(true, "", now);
        for source in self.sources_mut() {
            source.begin(flow, now);
        }
    }

    /// Its session is down: its rows go. `body` is the message's.
    pub(super) fn down(&mut self, why: &str, body: &[u8], limits: Limits, now: Now) {
        self.down = kept(body);
        self.state = State::Down;
        self.happened(false, why, now);
        for source in self.sources_mut() {
            source.down(limits, now);
        }
    }

    /// The router came again, and says nothing of it yet.
    pub(super) fn begin(&mut self, flow: Flow, now: Now) {
        self.state = State::Unsaid;
        self.known.is_up = false;
        self.is_renewed = true;
        for source in self.sources_mut() {
            source.begin(flow, now);
        }
    }

    fn happened(&mut self, is_up: bool, why: &str, now: Now) {
        let known = &mut self.known;
        known.is_up = is_up;
        self.is_renewed = true;
        // A router that came again tells what was told before.
        if is_up && known.history.last().is_some_and(|last| last.is_up) {
            return;
        }
        match is_up {
            true => known.ups += 1,
            false => known.downs += 1,
        }
        if known.history.len() >= HISTORY {
            known.history.remove(0);
        }
        known.history.push(PeerEvent {
            at: now.when(),
            is_up,
            why: why.to_owned(),
        });
        self.since = now.monotonic;
    }

    /// What a router counts of it.
    pub(super) fn counted(&mut self, statistics: Statistics<'_>, now: Now) {
        self.known.counted = Some(now.when());
        for (name, value) in statistics.each() {
            let kept = &mut self.known.statistics;
            if kept.len() < STATISTICS || kept.contains_key(&name) {
                kept.insert(name, value);
            }
        }
        self.is_renewed = true;
    }

    /// A message was mirrored.
    pub(super) fn mirrored(&mut self) {
        self.known.mirrored += 1;
        self.is_renewed = true;
    }

    /// Whether it may leave for another: it is down, or its router came again
    /// and has said nothing of it, and all that is known of it is settled.
    pub(super) fn may_leave(&self) -> bool {
        match self.state {
            State::Up(_) => false,
            State::Down => true,
            State::Unsaid => self.sources().all(Source::is_settled),
        }
    }

    /// How what is told of a table is written; `None`: the session is not
    /// up. A router's own table is, if nobody says otherwise: GoBGP sends no
    /// Peer Up of it, though RFC 9069 §5.1 asks for one.
    pub(super) fn agreed(&self, rib: Rib, as_size: AsSize) -> Option<Agreed> {
        let up = match &self.state {
            State::Up(Some(up)) => up,
            State::Up(None) => return Some(Agreed::plain(as_size)),
            State::Unsaid if self.key.is_loc_rib() => return Some(Agreed::plain(as_size)),
            State::Unsaid | State::Down => return None,
        };
        Some(Agreed {
            session: Session {
                as_size,
                has_path_ids: match self.has_no_path_ids {
                    true => [false; 2],
                    false => up.has_path_ids(rib),
                },
            },
            families: up.families(),
            has_four_byte_as: up.has_four_byte_as(),
        })
    }

    /// Something is told of its table though nobody said that it is up.
    pub(super) fn speaks(&mut self, header: &PeerHeader) {
        if !self.known.is_up {
            self.known.is_up = true;
            self.known.asn = header.asn;
            self.known.bgp_id = header.bgp_id.to_string();
            self.is_renewed = true;
        }
    }

    /// What is told of it has no path identifiers, as was seen.
    pub(super) fn has_no_path_ids(&mut self) {
        self.has_no_path_ids = true;
    }

    /// Its table of a kind.
    pub(super) fn source(&mut self, rib: Rib) -> Option<&mut Source> {
        let source = self.sources[rib as usize].as_mut();
        source.map(|(source, _)| source)
    }

    /// Something is told of a table for the first time.
    pub(super) fn put(&mut self, rib: Rib, source: Source) -> &mut Source {
        let monitored = Arc::new(of_rib(&self.known, rib));
        &mut self.sources[rib as usize].insert((source, monitored)).0
    }

    /// What a table of it is asked for by.
    pub(super) fn name(&self, feed: &str, rib: Rib) -> String {
        let (peer, suffix) = (self.key.in_names(), rib.suffix());
        format!("{feed}:{peer}{suffix}@{}", self.known.router)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().flatten().map(|(source, _)| source)
    }

    pub(super) fn sources_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.sources.iter_mut().flatten().map(|(source, _)| source)
    }

    /// How it stands, for a recording.
    pub(super) fn recorded(&self) -> PeerState {
        let sources = Rib::ALL.into_iter().zip(&self.sources);
        let sources = sources.filter_map(|(rib, source)| Some((rib, source.as_ref()?)));
        PeerState {
            header: PeerHeader {
                key: self.key,
                rib: Rib::In,
                as_size: AsSize::Four,
                asn: self.known.asn,
                bgp_id: self.known.bgp_id.parse().unwrap_or(Ipv4Addr::UNSPECIFIED),
            },
            up: self.up.clone(),
            down: self.down.clone(),
            session: match self.state {
                State::Unsaid => state::Session::Unsaid,
                State::Up(_) => state::Session::Up,
                State::Down => state::Session::Down,
            },
            has_no_path_ids: self.has_no_path_ids,
            sources: sources
                .map(|(rib, (source, _))| source.recorded(rib))
                .collect(),
        }
    }

    /// Readers see what came since.
    pub(super) fn publish(&mut self, feed: &FeedStatus, gone: Option<&str>) {
        if std::mem::take(&mut self.is_renewed) {
            for (rib, source) in Rib::ALL.into_iter().zip(&mut self.sources) {
                if let Some((source, monitored)) = source {
                    *monitored = Arc::new(of_rib(&self.known, rib));
                    source.renew();
                }
            }
        }
        for (source, monitored) in self.sources.iter_mut().flatten() {
            source.publish(feed, gone, monitored);
        }
    }
}

impl Agreed {
    /// Of nobody who says anything else.
    fn plain(as_size: AsSize) -> Self {
        Self {
            session: Session {
                as_size,
                has_path_ids: [false; 2],
            },
            families: [true; 2],
            has_four_byte_as: false,
        }
    }
}

/// A message that a recording can tell again; none that is longer than two
/// `OPEN`s are.
fn kept(body: &[u8]) -> Option<Box<[u8]>> {
    (body.len() <= MAX_KEPT).then(|| body.into())
}

fn of_rib(known: &MonitoredPeer, rib: Rib) -> MonitoredPeer {
    MonitoredPeer {
        rib: rib.in_words(),
        ..known.clone()
    }
}
