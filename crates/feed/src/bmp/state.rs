//! How a station stands, told as its routers would tell it: for a part of a
//! recording, which is to be replayed alone.
//!
//! Of a router that has not told all again, its rows are told first; then it
//! comes again, and tells those that it has told again.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bgp::announce::{announce, end_of_rib, withdraw};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::{PathAttributes, RouteRef, Routes, Unconfirmed};

use super::message::{Message, PeerUp, kind};
use super::peer_header::{PeerHeader, Rib};
use crate::recording::{State, Teller};

/// Prefixes of a message.
const PREFIXES: usize = 64;
/// Prefixes that no path goes to: what is said of them changes nothing.
const NOBODY: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::BROADCAST, 32);
const NOBODY_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::from_bits(u128::MAX), 128);

/// How all routers of a station stand at a moment.
#[derive(Debug)]
pub(crate) struct BmpState(pub Vec<RouterState>);

/// One of them.
#[derive(Debug)]
pub(crate) struct RouterState {
    pub connection: u32,
    /// Where it comes from.
    pub peer: String,
    /// `sysName` and `sysDescr`.
    pub name: String,
    pub description: String,
    /// Why it is gone.
    pub gone: Option<String>,
    pub peers: Vec<PeerState>,
}

/// One of a router's peers.
#[derive(Debug)]
pub(crate) struct PeerState {
    /// As its router says who it is; the table does not count.
    pub header: PeerHeader,
    /// The bodies of its last Peer Up and Peer Down.
    pub up: Option<Box<[u8]>>,
    pub down: Option<Box<[u8]>>,
    pub session: Session,
    /// Its router writes no path identifiers, whatever was agreed on.
    pub has_no_path_ids: bool,
    pub sources: Vec<SourceState>,
}

/// What a router has said of a session since it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    Unsaid,
    Up,
    Down,
}

/// One of a peer's tables.
#[derive(Debug)]
pub(crate) struct SourceState {
    pub name: String,
    pub rib: Rib,
    pub routes: Routes,
    pub unconfirmed: Option<Unconfirmed>,
    /// All was told.
    pub is_settled: bool,
    /// All of a family was: of IPv4, of IPv6.
    pub ends: [bool; 2],
}

impl State for BmpState {
    fn tell(self, tell: &mut Teller<'_>) -> Option<()> {
        for router in &self.0 {
            router.tell(tell)?;
        }
        // Last: another of its address and name is a router of its own only
        // while it is there.
        for router in &self.0 {
            if let Some(why) = &router.gone {
                tell.again(router.connection)?;
                tell.closed(why)?;
            }
        }
        Some(())
    }
}

impl RouterState {
    fn tell(&self, tell: &mut Teller<'_>) -> Option<()> {
        if self.gone.is_none() && self.peers.iter().any(PeerState::has_more) {
            self.connects(tell)?;
            for peer in &self.peers {
                peer.tell(tell, true)?;
            }
            tell.closed("it came again")?;
        }
        self.connects(tell)?;
        for peer in &self.peers {
            peer.tell(tell, self.gone.is_some())?;
        }
        Some(())
    }

    fn connects(&self, tell: &mut Teller<'_>) -> Option<()> {
        tell.connected(self.connection, &self.peer)?;
        tell.said(|out| {
            put(out, kind::INITIATION, |out| {
                for (of, text) in [(1_u16, &self.description), (2, &self.name)] {
                    let text = text.as_bytes();
                    out.extend(of.to_be_bytes());
                    out.extend((text.len() as u16).to_be_bytes());
                    out.extend(text);
                }
            });
        })
    }
}

impl PeerState {
    /// Whether it has tables or rows of which nothing was told again.
    fn has_more(&self) -> bool {
        let mut left = self.sources.iter();
        let is_left = |source: &SourceState| {
            let left = source.unconfirmed.as_ref();
            left.is_some_and(|left| !left.is_empty())
        };
        let is_unsaid = self.session == Session::Unsaid && !self.sources.is_empty();
        is_unsaid || left.any(is_left)
    }

    /// Tells of its session and its rows; not of those that were not told
    /// again, unless `has_all`.
    fn tell(&self, tell: &mut Teller<'_>, has_all: bool) -> Option<()> {
        let is_silent = self.session == Session::Unsaid && !has_all;
        if is_silent && !self.header.key.is_loc_rib() {
            let mut settled = self.sources.iter().filter(|source| source.is_settled);
            return settled.try_for_each(|source| tell.settled(&source.name));
        }
        if let Some(up) = self.up.as_ref().filter(|_| !is_silent) {
            tell.said(|out| put(out, kind::PEER_UP, |out| out.extend_from_slice(up)))?;
        }
        let ids = Rib::ALL.map(|rib| self.has_path_ids(rib));
        for source in &self.sources {
            let ids = ids[source.rib as usize];
            // So that it is there, whatever it has.
            self.nobody(tell, source, false, ids[0].then_some(0))?;
            self.rows(tell, source, has_all, ids, false)?;
        }
        for source in &self.sources {
            self.without_ids(tell, source, has_all, ids[source.rib as usize])?;
        }
        for source in &self.sources {
            self.ends(tell, source, has_all)?;
        }
        if let Some(down) = self.down.as_ref().filter(|_| self.session == Session::Down) {
            tell.said(|out| put(out, kind::PEER_DOWN, |out| out.extend_from_slice(down)))?;
        }
        Some(())
    }

    /// Tells the paths that have no path identifiers though both speakers
    /// have agreed on them. What says so first cannot be read with them:
    /// from then on there are none.
    fn without_ids(
        &self,
        tell: &mut Teller<'_>,
        source: &SourceState,
        has_all: bool,
        ids: [bool; 2],
    ) -> Option<()> {
        for (is_v6, has_ids) in [false, true].into_iter().zip(ids) {
            let of_family = |route: &RouteRef<'_>| is_v6 == matches!(route.prefix, IpNet::V6(_));
            let is_odd = |route: RouteRef<'_>| of_family(&route) && lacks_id(&route, ids);
            if has_ids && (self.has_no_path_ids || source.routes.iter().any(is_odd)) {
                self.nobody(tell, source, is_v6, None)?;
            }
        }
        self.rows(tell, source, has_all, ids, true)
    }

    /// Says of a table what changes nothing.
    fn nobody(
        &self,
        tell: &mut Teller<'_>,
        source: &SourceState,
        is_v6: bool,
        path_id: Option<u32>,
    ) -> Option<()> {
        let nobody = if is_v6 {
            NOBODY_V6.into()
        } else {
            NOBODY.into()
        };
        self.routes(tell, source.rib, |out| withdraw(out, nobody, path_id))
    }

    /// Tells the rows of a table: those with what its session writes, or
    /// those that lack it.
    fn rows(
        &self,
        tell: &mut Teller<'_>,
        source: &SourceState,
        has_all: bool,
        ids: [bool; 2],
        lacks: bool,
    ) -> Option<()> {
        let left = source.unconfirmed.as_ref().filter(|_| !has_all);
        let left: HashSet<(IpNet, Option<u32>)> = left
            .map(|left| {
                left.routes()
                    .map(|route| (route.prefix, route.body.path.path_id()))
            })
            .into_iter()
            .flatten()
            .collect();
        let written = if lacks { [false; 2] } else { ids };
        let mut run = Run::default();
        for route in source.routes.iter() {
            let path = &route.body.path;
            let is_left = left.contains(&(route.prefix, path.path_id()));
            if is_left || lacks_id(&route, ids) != lacks {
                continue;
            }
            if !run.takes(&route) {
                self.run(tell, source.rib, &run, written)?;
                run = Run::of(&route);
            }
            run.prefixes.push(route.prefix);
        }
        self.run(tell, source.rib, &run, written)
    }

    fn ends(&self, tell: &mut Teller<'_>, source: &SourceState, has_all: bool) -> Option<()> {
        for (is_v6, has_ended) in [false, true].into_iter().zip(source.ends) {
            if source.is_settled || has_all || has_ended {
                self.routes(tell, source.rib, |out| end_of_rib(out, is_v6))?;
            }
        }
        Some(())
    }

    fn run(&self, tell: &mut Teller<'_>, rib: Rib, run: &Run, ids: [bool; 2]) -> Option<()> {
        let Some(first) = run.prefixes.first() else {
            return Some(());
        };
        let ids = ids[usize::from(matches!(first, IpNet::V6(_)))];
        self.routes(tell, rib, |out| {
            announce(out, &run.prefixes, run.next_hop, &run.path, ids);
        })
    }

    /// A message of BGP for one of its tables.
    fn routes(
        &self,
        tell: &mut Teller<'_>,
        rib: Rib,
        say: impl FnOnce(&mut Vec<u8>),
    ) -> Option<()> {
        let header = PeerHeader { rib, ..self.header };
        tell.said(|out| {
            put(out, kind::ROUTE_MONITORING, |out| {
                header.put(out);
                say(out);
            });
        })
    }

    /// Whether prefixes of a table are to have path identifiers, of IPv4 and
    /// IPv6.
    fn has_path_ids(&self, rib: Rib) -> [bool; 2] {
        match self
            .up
            .as_deref()
            .map(|up| Message::read(kind::PEER_UP, up))
        {
            Some(Ok(Message::PeerUp(_, Some(up), _))) => up.has_path_ids(rib),
            _ => [false; 2],
        }
    }
}

impl PeerUp {
    /// Whether prefixes of a table have path identifiers, as was agreed on.
    pub(super) fn has_path_ids(&self, rib: Rib) -> [bool; 2] {
        match rib {
            Rib::In | Rib::InPost => self.receives_path_ids(),
            Rib::Out | Rib::OutPost => self.sends_path_ids(),
            // Both OPENs are the router's own (RFC 9069 §4.4).
            Rib::Loc => self.all_path_ids(),
        }
    }
}

/// Prefixes behind each other that have the same path.
#[derive(Debug, Default)]
struct Run {
    prefixes: Vec<IpNet>,
    next_hop: Option<IpAddr>,
    path: PathAttributes,
}

impl Run {
    fn of(route: &RouteRef<'_>) -> Self {
        Self {
            prefixes: Vec::new(),
            next_hop: next_hop(route),
            path: route.body.path.clone(),
        }
    }

    fn takes(&self, route: &RouteRef<'_>) -> bool {
        let is_v6 = |prefix: &IpNet| matches!(prefix, IpNet::V6(_));
        let first = self.prefixes.first().map(is_v6);
        first == Some(is_v6(&route.prefix))
            && self.prefixes.len() < PREFIXES
            && self.next_hop == next_hop(route)
            && self.path == route.body.path
    }
}

/// Whether a route has no path identifier where its family is to have them.
fn lacks_id(route: &RouteRef<'_>, ids: [bool; 2]) -> bool {
    let is_v6 = matches!(route.prefix, IpNet::V6(_));
    ids[usize::from(is_v6)] && route.body.path.path_id().is_none()
}

fn next_hop(route: &RouteRef<'_>) -> Option<IpAddr> {
    let hops = route.body.next_hops.as_slice();
    hops.first().and_then(|hop| hop.gateway)
}

/// Appends a message of a type, with what `say` appends.
fn put(out: &mut Vec<u8>, kind: u8, say: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend([3, 0, 0, 0, 0, kind]);
    say(out);
    let len = (out.len() - begin) as u32;
    if let Some(place) = out.get_mut(begin + 1..begin + 5) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}
