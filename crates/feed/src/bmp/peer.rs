//! A BGP peer of a router: its session, what is told of it, and its tables.

use std::sync::Arc;

use bgp::update::Session;
use bgp::as_path::AsSize;
use table::{FeedStatus, Limits, MonitoredPeer, PeerEvent};

use super::message::{PeerUp, Statistics};
use super::peer_header::{PeerHeader, PeerKey, Rib};
use super::source::{Flow, Source};
use crate::now::Now;

/// Events of a session that are kept.
const HISTORY: usize = 16;
/// Kinds of statistics that are kept.
const STATISTICS: usize = 64;

/// A peer.
#[derive(Debug)]
pub(super) struct Peer {
    key: PeerKey,
    /// What is told of it with each of its tables.
    known: MonitoredPeer,
    /// What both speakers have agreed on; `None`: the session is not up, as
    /// far as the router has said.
    session: Option<PeerUp>,
    sources: [Option<(Source, Arc<MonitoredPeer>)>; Rib::COUNT],
    /// When it went down, for who has to make room.
    pub(super) since_millis: u64,
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
            session: None,
            sources: [const { None }; Rib::COUNT],
            since_millis: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.session.is_some()
    }

    /// Its session is up, and all its tables are to be told.
    pub(super) fn up(&mut self, header: &PeerHeader, up: PeerUp, flow: Flow, now: Now) {
        self.known.asn = header.asn;
        self.known.bgp_id = header.bgp_id.to_string();
        self.known.table_name.clone_from(&up.table_name);
        self.session = Some(up);
        self.happened(true, "", now);
        for source in self.sources_mut() {
            source.begin(flow, now);
        }
    }

    /// Its session is down: its rows go.
    pub(super) fn down(&mut self, why: &str, limits: Limits, now: Now) {
        self.session = None;
        self.happened(false, why, now);
        for source in self.sources_mut() {
            source.down(limits, now);
        }
    }

    /// The router came again, and says nothing of it yet.
    pub(super) fn begin(&mut self, flow: Flow, now: Now) {
        self.session = None;
        self.known.is_up = false;
        self.renew();
        for source in self.sources_mut() {
            source.begin(flow, now);
        }
    }

    fn happened(&mut self, is_up: bool, why: &str, now: Now) {
        let known = &mut self.known;
        known.is_up = is_up;
        match is_up {
            true => known.ups += 1,
            false => known.downs += 1,
        }
        if known.history.len() >= HISTORY {
            known.history.remove(0);
        }
        known.history.push(PeerEvent {
            at_millis: now.millis,
            is_up,
            why: why.to_owned(),
        });
        self.since_millis = now.millis;
        self.renew();
    }

    /// What a router counts of it.
    pub(super) fn counted(&mut self, statistics: Statistics<'_>, now: Now) {
        self.known.statistics_millis = now.millis;
        for (name, value) in statistics.each() {
            let kept = &mut self.known.statistics;
            if kept.len() < STATISTICS || kept.contains_key(&name) {
                kept.insert(name, value);
            }
        }
        self.renew();
    }

    /// A message was mirrored.
    pub(super) fn mirrored(&mut self) {
        self.known.mirrored += 1;
        self.renew();
    }

    /// What is told with each table is another now.
    fn renew(&mut self) {
        for (rib, source) in Rib::ALL.into_iter().zip(&mut self.sources) {
            if let Some((source, monitored)) = source {
                *monitored = Arc::new(of_rib(&self.known, rib));
                source.renew();
            }
        }
    }

    /// How what is told of a table is written; `None`: the session is not
    /// up.
    pub(super) fn session(&self, rib: Rib, as_size: AsSize) -> Option<Session> {
        let up = self.session.as_ref()?;
        Some(Session {
            as_size,
            has_path_ids: match rib {
                Rib::In | Rib::InPost => up.receives_path_ids(),
                Rib::Out | Rib::OutPost => up.sends_path_ids(),
                // Both OPENs are the router's own (RFC 9069 §4.4).
                Rib::Loc => up.all_path_ids(),
            },
        })
    }

    /// The families of which an end is to come.
    pub(super) fn families(&self) -> [bool; 2] {
        self.session.as_ref().map_or([false; 2], PeerUp::families)
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

    /// Readers see what came since.
    pub(super) fn publish(&mut self, feed: &FeedStatus, gone: Option<&str>) {
        for (source, monitored) in self.sources.iter_mut().flatten() {
            source.publish(feed, gone, monitored);
        }
    }
}

fn of_rib(known: &MonitoredPeer, rib: Rib) -> MonitoredPeer {
    MonitoredPeer {
        rib: rib.in_words(),
        ..known.clone()
    }
}
