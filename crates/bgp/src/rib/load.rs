//! A dump: the paths of all peers, which come in the order of prefixes and
//! are put into tables at once in the end.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use table::{BodyId, Limits, Placement, RouteLoad, Routes};

use super::best::{Candidate, Rank, best};
use super::body::body;
use super::known::{AllKnown, Known, Look};
use super::peers::Peers;
use super::{Rib, TABLE};
use crate::Bad;
use crate::as_path::AsSize;
use crate::attributes::Attributes;
use crate::mrt::{self, PeerIndex, TableDump};

/// Paths to a prefix that room is made for at once.
const USUAL_PEERS: usize = 64;

/// The number of a peer that has no place.
const NO_PEER: usize = usize::MAX;

/// What is loaded, until it stands in the tables.
#[derive(Debug)]
pub struct Load {
    limits: Limits,
    /// By the number of the peer; `None`: the dump has nothing of it.
    peers: Vec<Option<OfPeer>>,
    /// The best paths, where they can be told as they come: this is the
    /// first dump.
    best: Option<RouteLoad>,
    /// The prefix whose paths come, and the paths.
    prefix: Option<IpNet>,
    /// How many have come.
    prefixes: u64,
    paths: Vec<Candidate<(usize, u32)>>,
    /// One of the paths came in the place of another.
    is_again: bool,
    /// A prefix had several paths.
    has_several: bool,
    room: Vec<Candidate<(usize, u32)>>,
    /// The last prefix of each family whose best was told.
    last: [Option<IpNet>; 2],
    /// Prefixes that came again, so that their best is to be found anew.
    again: BTreeSet<IpNet>,
}

/// What is loaded of a peer.
#[derive(Debug)]
struct OfPeer {
    address: IpAddr,
    /// The prefix that it had a path to last, by its number.
    prefixes: u64,
    rows: RouteLoad,
    known: AllKnown,
}

/// A path as a record has it.
#[derive(Clone, Copy)]
struct Told<'a> {
    prefix: IpNet,
    attributes: &'a [u8],
    path_id: Option<u32>,
    size: AsSize,
}

impl Rib {
    /// From now on numbers of peers mean these. A table of peers begins a
    /// dump, which tells all paths that its peers have.
    pub(super) fn set_index(&mut self, index: PeerIndex<'_>, first: &mut Option<Bad>) {
        self.settle();
        self.index.clear();
        for named in index {
            let number = named.and_then(|named| self.peers.number(named));
            match number {
                Ok(number) => self.index.push(number),
                Err(bad) => {
                    // The numbers of the others stay what they are.
                    self.index.push(NO_PEER);
                    self.note(bad, first);
                }
            }
        }
    }

    pub(super) fn load_rib(&mut self, rib: mrt::Rib<'_>, first: &mut Option<Bad>) {
        self.begin_load();
        // A table of peers may say that it has more than any prefix.
        let mut all = Vec::with_capacity(self.index.len().min(USUAL_PEERS));
        for entry in rib.entries {
            let told = entry.and_then(|entry| {
                let at = self.index.get(usize::from(entry.peer));
                let at = at.filter(|at| **at != NO_PEER);
                let told = Told {
                    prefix: rib.prefix,
                    attributes: entry.attributes,
                    path_id: entry.path_id,
                    size: AsSize::Four,
                };
                Ok((*at.ok_or(Bad::NoPeer(entry.peer))?, told))
            });
            match (told, &mut self.load) {
                (Ok((peer, told)), Some(load)) => {
                    all.push((peer, told, load.look(peer, &told, &self.peers)));
                }
                (Ok(_), None) => {}
                (Err(bad), _) => self.note(bad, first),
            }
        }
        for step in 0..2 {
            for (peer, _, look) in &all {
                self.load
                    .iter()
                    .for_each(|load| load.near(*peer, *look, step));
            }
        }
        for (peer, told, look) in all {
            self.load_one(peer, told, look, first);
        }
    }

    pub(super) fn load_paths(&mut self, paths: TableDump<'_>, first: &mut Option<Bad>) {
        self.begin_load();
        for path in paths {
            let told = path.and_then(|path| {
                let told = Told {
                    prefix: path.prefix,
                    attributes: path.attributes,
                    path_id: None,
                    size: AsSize::Two,
                };
                Ok((self.peers.number(path.peer)?, told))
            });
            match (told, &mut self.load) {
                (Ok((peer, told)), Some(load)) => {
                    let look = load.look(peer, &told, &self.peers);
                    self.load_one(peer, told, look, first);
                }
                (Ok(_), None) => {}
                (Err(bad), _) => self.note(bad, first),
            }
        }
    }

    /// A later dump tells anew what those that it is of have.
    fn begin_load(&mut self) {
        if self.load.is_some() {
            return;
        }
        // What messages have told is among the best, too.
        self.choose();
        let is_first = self.best.tables().routes.is_empty();
        let mut load = Load::new(self.limits, is_first);
        if !is_first {
            for at in self.index.iter().filter(|at| **at != NO_PEER) {
                load.peer(*at, &self.peers);
            }
        }
        self.load = Some(load);
    }

    #[inline]
    fn load_one(&mut self, peer: usize, told: Told<'_>, look: Look, first: &mut Option<Bad>) {
        let Some(load) = &mut self.load else {
            return;
        };
        match load.take(peer, told, look, &self.peers) {
            Ok(()) => self.counts.paths += 1,
            Err(bad) => self.note(bad, first),
        }
    }
}

impl Load {
    fn new(limits: Limits, is_first: bool) -> Self {
        Self {
            limits,
            peers: Vec::new(),
            best: is_first.then(|| RouteLoad::new(&limits)),
            prefix: None,
            prefixes: 0,
            paths: Vec::new(),
            is_again: false,
            has_several: false,
            room: Vec::new(),
            last: [None, None],
            again: BTreeSet::new(),
        }
    }

    #[inline]
    fn peer(&mut self, number: usize, peers: &Peers) -> &mut OfPeer {
        if self.peers.len() <= number {
            self.peers.resize_with(number + 1, || None);
        }
        let limits = &self.limits;
        self.peers[number].get_or_insert_with(|| OfPeer {
            address: peers.address(number),
            rows: RouteLoad::new(limits),
            known: AllKnown::default(),
            prefixes: 0,
        })
    }

    /// Where a path's attributes may be among those that were met.
    #[inline]
    fn look(&mut self, number: usize, told: &Told<'_>, peers: &Peers) -> Look {
        let peer = self.peer(number, peers);
        peer.known.look(told.attributes, told.path_id)
    }

    #[inline]
    fn near(&self, number: usize, look: Look, step: u8) {
        if let Some(Some(peer)) = self.peers.get(number) {
            peer.known.near(look, step);
        }
    }

    #[inline]
    fn take(
        &mut self,
        number: usize,
        told: Told<'_>,
        look: Look,
        peers: &Peers,
    ) -> Result<(), Bad> {
        if self.prefix != Some(told.prefix) {
            self.choose();
            self.prefix = Some(told.prefix);
            self.prefixes += 1;
        }
        let prefixes = self.prefixes;
        let peer = self.peer(number, peers);
        let is_again = std::mem::replace(&mut peer.prefixes, prefixes) == prefixes;
        let at = match peer.known.find(told.attributes, told.path_id, look) {
            Some(at) => at,
            None => peer.meet(told)?,
        };
        if let Some(known) = peer.known.get(at).copied() {
            let placement = match told.path_id {
                None => Placement::InsteadOfFirst,
                Some(_) => Placement::Last,
            };
            peer.rows.put(TABLE, told.prefix, 0, known.body, placement);
            let path = (known.rank, peer.address, (number, at));
            self.has_several |= !self.paths.is_empty();
            self.paths.push(path);
            self.is_again |= is_again && told.path_id.is_none();
        }
        Ok(())
    }

    /// The paths to a prefix have all come: the best of them.
    fn choose(&mut self) {
        let best = best(&self.paths, &mut self.room);
        self.paths.clear();
        let (Some(prefix), Some((number, at))) = (self.prefix.take(), best) else {
            return;
        };
        let last = &mut self.last[usize::from(prefix.addr().is_ipv6())];
        let is_again = std::mem::take(&mut self.is_again);
        let is_next = last.is_none_or(|last| last < prefix) && !is_again;
        *last = Some(last.map_or(prefix, |last| last.max(prefix)));
        let Some(rows) = self.best.as_mut().filter(|_| is_next) else {
            self.again.insert(prefix);
            return;
        };
        let Some(peer) = self.peers.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        if let Some(id) = peer.best(at, rows) {
            rows.put(TABLE, prefix, 0, id, Placement::Last);
        }
    }

    /// Puts all into the tables of the peers. Gives the best paths, where
    /// this was the first dump, and tells of which prefixes else the best
    /// is to be found.
    pub fn finish(mut self, peers: &mut Peers, dirty: &mut BTreeSet<IpNet>) -> Option<RouteLoad> {
        self.choose();
        dirty.append(&mut self.again);
        let told = self.last.map(|last| last.is_some());
        // Of the only peer each path is the best, unless it has several to a
        // prefix, or one had no place.
        let is_only = self.peers.iter().flatten().count() == 1;
        let is_shared = is_only && !self.has_several && dirty.is_empty();
        for (number, load) in self.peers.into_iter().enumerate() {
            let (Some(mut load), Some(peer)) = (load, peers.get_mut(number)) else {
                continue;
            };
            drop(load.known);
            if self.best.is_none() {
                let old = &peer.feeder.tables().routes;
                let prefixes = old.iter().map(|route| route.prefix);
                dirty.extend(prefixes.filter(|net| told[usize::from(net.addr().is_ipv6())]));
                keep_untold(old, told, &mut load.rows);
            }
            let is_whole = |best: &&mut RouteLoad| best.refused() + load.rows.refused() == 0;
            let best = self.best.as_mut().filter(|_| is_shared);
            if let Some(best) = best.filter(is_whole) {
                *best = load.rows.shared();
            }
            peer.feeder.replace_routes(load.rows);
            peer.is_touched = true;
        }
        self.best
    }
}

/// Of a family that the dump has nothing of, what was there stays: IPv4 and
/// IPv6 may come in files of their own.
fn keep_untold(old: &Routes, told: [bool; 2], rows: &mut RouteLoad) {
    let (mut v4, mut v6) = (old.iter_v4(), old.iter_v6());
    let all = [&mut v4 as &mut dyn Iterator<Item = _>, &mut v6];
    for (of_family, is_told) in all.into_iter().zip(told) {
        for route in of_family.filter(|_| !is_told) {
            let id = rows.body(Arc::clone(route.body));
            rows.put(route.table, route.prefix, route.metric, id, Placement::Last);
        }
    }
}

impl OfPeer {
    /// Attributes that were not met before.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, told: Told<'_>) -> Result<u32, Bad> {
        let attributes = Attributes::read(told.attributes)?;
        let next_hop = attributes.next_hop_of_entry()?;
        let path = attributes.packed(told.size, told.path_id)?;
        let known = Known {
            rank: Rank::of(&path),
            body: self.rows.body(body(next_hop, path)),
            best: None,
        };
        Ok(self.known.put(told.attributes, told.path_id, known))
    }

    /// The body of a path among the best.
    fn best(&mut self, at: u32, rows: &mut RouteLoad) -> Option<BodyId> {
        let known = self.known.get_mut(at)?;
        if known.best.is_none() {
            known.best = Some(rows.body(Arc::clone(self.rows.get(known.body)?)));
        }
        known.best
    }
}
