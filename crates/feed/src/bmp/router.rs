//! What one router tells of its BGP peers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use bgp::Bad;
use bgp::as_path::AsSize;
use bgp::update::{Session, Update};
use table::{FeedStatus, Feeders, Limits, MonitoredRouter};

use super::message::{Initiation, Message, PeerUp};
use super::peer::{Agreed, Peer};
use super::peer_header::{PeerHeader, PeerKey};
use super::source::{Flow, Source};
use super::state::RouterState;
use crate::now::Now;

/// Where the rows of routers go, and how much they may be.
#[derive(Debug)]
pub(super) struct Place {
    /// The name of the feed.
    pub feed: String,
    /// Where its routers are waited for.
    pub listening: String,
    pub feeders: Feeders,
    /// Rows of a router.
    pub rows: Limits,
    /// Peers of a router, and tables of them.
    pub tables: usize,
}

/// Tells a router from others: where it comes from, and what it calls
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub address: IpAddr,
    pub name: String,
}

/// A router. Dropped, its rows leave.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) identity: Identity,
    peers: BTreeMap<PeerKey, Peer>,
    /// Routes of all of them.
    routes: usize,
    /// Paths that were told so far.
    paths: u64,
    status: MonitoredRouter,
    /// When it came, or went, by the clock that nobody sets.
    since: Duration,
}

/// Whether a router goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// It does.
    On,
    /// It has said that it ends: why.
    Ended(String),
}

impl Router {
    /// One that was not here before, under a name that no other has.
    pub(super) fn new(identity: Identity, name: String) -> Self {
        Self {
            identity,
            peers: BTreeMap::new(),
            routes: 0,
            paths: 0,
            since: Duration::ZERO,
            status: MonitoredRouter {
                name,
                disconnected: Some("it has not come yet".to_owned()),
                ..MonitoredRouter::default()
            },
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.status.name
    }

    pub(super) fn is_connected(&self) -> bool {
        self.status.disconnected.is_none()
    }

    /// When it came, or went, by the clock that nobody sets.
    pub(super) fn since(&self) -> Duration {
        self.since
    }

    /// It came, and will tell all. One step for each table.
    pub(super) fn connected(&mut self, peer: &str, told: Initiation, now: Now) {
        self.status.peer = peer.to_owned();
        self.status.description = told.description;
        self.status.disconnected = None;
        self.status.connections += 1;
        self.status.since = Some(now.when());
        self.since = now.monotonic;
        let flow = self.flow();
        for peer in self.peers.values_mut() {
            peer.begin(flow, now);
        }
    }

    /// It is gone. The rows stay, and none of them is confirmed.
    pub(super) fn lost(&mut self, why: &str, now: Now) {
        self.status.disconnected = Some(why.to_owned());
        self.status.since = Some(now.when());
        self.since = now.monotonic;
        for source in self.peers.values_mut().flat_map(Peer::sources_mut) {
            source.renew();
        }
    }

    /// Takes a message in. An error says that its stream cannot be read on.
    pub(super) fn take(
        &mut self,
        message: Message<'_>,
        place: &Place,
        now: Now,
    ) -> Result<Heard, Bad> {
        self.status.messages += 1;
        match message {
            Message::Routes(header, bytes) => self.told(&header, bytes, place, now)?,
            Message::PeerUp(header, up, body) => {
                if up.is_none() {
                    self.skip("OPENs that cannot be read");
                }
                self.peer_up(&header, up, body, place, now);
            }
            Message::PeerDown(header, why, body) => {
                self.peer_down(&header, &why, body, place, now);
            }
            Message::Statistics(header, statistics) => match self.peers.get_mut(&header.key) {
                Some(peer) => peer.counted(statistics, now),
                None => self.skip("statistics of unknown peers"),
            },
            Message::Mirrored(header) => {
                if let Some(peer) = self.peers.get_mut(&header.key) {
                    peer.mirrored();
                }
                self.skip("mirrored messages");
            }
            // It is who it was, whatever it says now.
            Message::Initiation(_) => self.skip("initiations again"),
            Message::Termination(why) => return Ok(Heard::Ended(why)),
            Message::Unknown(what) => self.skip(what),
        }
        Ok(Heard::On)
    }

    fn skip(&mut self, what: &'static str) {
        *self.status.skipped.entry(what).or_default() += 1;
    }

    fn peer_up(
        &mut self,
        header: &PeerHeader,
        up: Option<PeerUp>,
        body: &[u8],
        place: &Place,
        now: Now,
    ) {
        let flow = self.flow();
        if let Some(peer) = self.meet(header, place) {
            peer.up(header, up, body, flow, now);
        }
    }

    /// A peer, which is new or not; `None`: there is no place for it.
    fn meet(&mut self, header: &PeerHeader, place: &Place) -> Option<&mut Peer> {
        let is_full = self.peers.len() >= place.tables;
        if !self.peers.contains_key(&header.key) && is_full && !self.make_room() {
            self.status.refused += 1;
            return None;
        }
        let new = || Peer::new(header.key, &self.status.name);
        Some(self.peers.entry(header.key).or_insert_with(new))
    }

    /// The peer that is down for the longest time leaves, with its tables;
    /// false if none is.
    fn make_room(&mut self) -> bool {
        let down = self.peers.iter().filter(|(_, peer)| peer.may_leave());
        let longest = down.min_by_key(|(_, peer)| peer.since);
        let Some(key) = longest.map(|(key, _)| *key) else {
            return false;
        };
        if let Some(left) = self.peers.remove(&key) {
            self.routes -= left.sources().map(Source::routes).sum::<usize>();
        }
        true
    }

    fn peer_down(&mut self, header: &PeerHeader, why: &str, body: &[u8], place: &Place, now: Now) {
        let Some(peer) = self.peers.get_mut(&header.key) else {
            self.skip("peers down that were not up");
            return;
        };
        self.routes -= peer.sources().map(Source::routes).sum::<usize>();
        peer.down(why, body, place.rows, now);
    }

    /// Routes of a peer.
    fn told(
        &mut self,
        header: &PeerHeader,
        bytes: &[u8],
        place: &Place,
        now: Now,
    ) -> Result<(), Bad> {
        if header.key.is_loc_rib() && !self.peers.contains_key(&header.key) {
            self.meet(header, place);
        }
        let peer = self.peers.get_mut(&header.key);
        let agreed = peer.and_then(|peer| {
            let agreed = peer.agreed(header.rib, header.as_size)?;
            peer.speaks(header);
            Some(agreed)
        });
        let Some(agreed) = agreed else {
            self.skip("routes of peers that are not up");
            return Ok(());
        };
        let Some(update) = self.update(header, agreed, bytes)? else {
            self.skip("other messages of BGP");
            return Ok(());
        };
        if !update.says_paths() && update.end_of_rib().is_none() {
            self.skip("routes of other families");
            return Ok(());
        }
        let left = Limits {
            routes: place.rows.routes.saturating_sub(self.routes),
            ..place.rows
        };
        let Some(source) = self.source(header, place, now) else {
            self.status.refused += 1;
            return Ok(());
        };
        let (before, events) = (source.routes(), source.events());
        let taken = match update.end_of_rib() {
            Some(is_v6) => {
                source.ended(is_v6, agreed.families, now);
                Ok(())
            }
            None => source.take(&update, as_size(header, agreed, &update), left, now),
        };
        let (after, told) = (source.routes(), source.events() - events);
        self.routes = self.routes + after - before;
        self.paths += told;
        taken
    }

    /// Reads an `UPDATE`. FRR writes no path identifiers, whatever both
    /// speakers have agreed on (seen in its source): where there
    /// can be none, there are none from then on.
    fn update<'a>(
        &mut self,
        header: &PeerHeader,
        agreed: Agreed,
        bytes: &'a [u8],
    ) -> Result<Option<Update<'a>>, Bad> {
        let update = Update::of_message(bytes, agreed.session)?;
        let is_doubtful = agreed.session.has_path_ids != [false; 2];
        if !is_doubtful || update.as_ref().is_none_or(Update::is_readable) {
            return Ok(update);
        }
        let without = Session {
            has_path_ids: [false; 2],
            ..agreed.session
        };
        let other = Update::of_message(bytes, without)?;
        if !other.as_ref().is_some_and(Update::is_readable) {
            return Ok(update);
        }
        if let Some(peer) = self.peers.get_mut(&header.key) {
            peer.has_no_path_ids();
        }
        Ok(other)
    }

    /// The table that a message is about, which joins where it is new;
    /// `None`: there is no place for it.
    fn source(&mut self, header: &PeerHeader, place: &Place, now: Now) -> Option<&mut Source> {
        if self
            .peers
            .get_mut(&header.key)?
            .source(header.rib)
            .is_none()
        {
            while self.sources().count() >= place.tables {
                if !self.make_room() {
                    return None;
                }
            }
            let flow = self.flow();
            let peer = self.peers.get_mut(&header.key)?;
            let name = peer.name(&place.feed, header.rib);
            let feeder = place.feeders.join(&name, place.rows).ok()?;
            peer.put(header.rib, Source::new(feeder, flow, now));
        }
        self.peers.get_mut(&header.key)?.source(header.rib)
    }

    /// Looks whether all was told where nothing said so.
    pub(super) fn tick(&mut self, now: Now, settled: &mut dyn FnMut(&str)) {
        if !self.is_connected() {
            return;
        }
        let flow = self.flow();
        for peer in self.peers.values_mut() {
            let is_awaited = peer.is_awaited();
            for source in peer.sources_mut() {
                let before = source.routes();
                if source.tick(flow, is_awaited, now) {
                    settled(source.name());
                }
                self.routes = self.routes + source.routes() - before;
            }
        }
    }

    /// All was told of one of its tables, if it is one and waits for that.
    pub(super) fn settled(&mut self, table: &str, now: Now) {
        let mut all = self.peers.values_mut().flat_map(Peer::sources_mut);
        let found = all.find(|source| source.name() == table && !source.is_settled());
        if let Some(source) = found {
            let before = source.routes();
            source.settled(now);
            self.routes = self.routes + source.routes() - before;
        }
    }

    fn flow(&self) -> Flow {
        Flow {
            paths: self.paths,
            unconfirmed: self.sources().map(Source::unconfirmed).sum(),
        }
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        self.peers.values().flat_map(Peer::sources)
    }

    /// Readers see what came since.
    pub(super) fn publish(&mut self, place: &Place) {
        let feed = FeedStatus {
            listening: place.listening.clone(),
            peer: Some(self.status.peer.clone()),
            since: self.status.since,
            connections: self.status.connections,
            ..FeedStatus::default()
        };
        let gone = self.status.disconnected.as_deref();
        for peer in self.peers.values_mut() {
            peer.publish(&feed, gone);
        }
    }

    /// How it stands, for a recording.
    pub(super) fn recorded(&self, connection: u32) -> RouterState {
        RouterState {
            connection,
            peer: self.status.peer.clone(),
            name: self.identity.name.clone(),
            description: self.status.description.clone(),
            gone: self.status.disconnected.clone(),
            peers: self.peers.values().map(Peer::recorded).collect(),
        }
    }

    /// How it is.
    pub(super) fn status(&self) -> MonitoredRouter {
        let unconfirmed = match self.is_connected() {
            true => self.flow().unconfirmed,
            false => self.routes,
        };
        MonitoredRouter {
            peers: self.peers.len() as u64,
            peers_up: self.peers.values().filter(|peer| peer.is_up()).count() as u64,
            routes: self.routes as u64,
            unconfirmed: unconfirmed as u64,
            ..self.status.clone()
        }
    }
}

/// How AS numbers in a message are written. FRR writes two bytes where its
/// peer has no more and does not say so in the header (seen with 8.4.4):
/// where that can be, the path's own lengths tell.
fn as_size(header: &PeerHeader, agreed: Agreed, update: &Update<'_>) -> AsSize {
    let is_of = |size| update.attributes.has_path_of(size);
    match header.as_size {
        AsSize::Four if agreed.has_four_byte_as => AsSize::Four,
        AsSize::Four if !is_of(AsSize::Four) && is_of(AsSize::Two) => AsSize::Two,
        said => said,
    }
}
