//! From what a router knows to what its workers look up: FIBs, next hops
//! and neighbours, filled from a snapshot of `table` and kept in step by its
//! events.
//!
//! [`FibSync`] is the control side's: one thread of the program calls
//! [`FibSync::follow`] every few milliseconds. It waits for no worker; workers
//! see a change with their next batch. What it costs is in proportion to
//! what changed; everything is made anew only at the start, when rules
//! change, or when the events went by too fast.
//!
//! The routes may be a feed's or a file's in the place of the namespace's
//! own ([`FibSync::over`]); what else packets need stays the namespace's.

mod decide;
mod gateways;
mod hops;
mod known;
mod taken;
mod view;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use memory::quiescent::Domain;
use table::row::neighbour::state;
use table::row::route::{scope, table_id};
use table::{
    AF_INET, AF_INET6, Bell, Event, EventBatch, Events, Generation, Link, Neighbour, Reader,
    RouteRef, Row, Tables,
};

use crate::forward::{PortSettings, Ports, VrfFibs};
use crate::neighbour::{Adjacency, Key, Kind, Limits, Table, Writer};
use hops::Hops;
use known::Known;
pub use taken::Taken;
use taken::Taking;
use view::{Context, Kept, RouteDecisions};

/// A link that packets come and go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The link's name in the tables.
    pub link: String,
    /// Whether packets have an Ethernet header here.
    pub has_ethernet: bool,
    /// A tag on another attachment's frames: its number, and the VLAN.
    pub vlan: Option<(u16, u16)>,
    /// Whether it stands for the host itself.
    pub is_host: bool,
    /// Whether it is outside of the address translation.
    pub is_outside: bool,
}

impl Attachment {
    /// A link with Ethernet headers.
    pub fn ethernet(link: &str) -> Self {
        Self {
            link: link.to_owned(),
            has_ethernet: true,
            vlan: None,
            is_host: false,
            is_outside: false,
        }
    }

    /// A link whose packets have no header (TUN).
    pub fn bare(link: &str) -> Self {
        Self {
            has_ethernet: false,
            ..Self::ethernet(link)
        }
    }
}

/// How tables are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FibSyncSettings {
    /// Most neighbours and groups.
    pub limits: Limits,
    /// Limits of each FIB.
    pub fib: fib::Config,
}

/// How a fill stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FibSyncState {
    /// The generation of the namespace's tables that workers see.
    pub generation: Generation,
    /// IPv4 prefixes, of all views.
    pub prefixes_v4: usize,
    /// IPv6 prefixes, of all views.
    pub prefixes_v6: usize,
    /// Next hops in use, groups and their members each for itself.
    pub next_hops: usize,
    /// Neighbours that are resolved.
    pub neighbours: usize,
    /// What there was no room for: prefixes, next hops, neighbours.
    pub refused: u64,
    /// Rules that look at more than the destination, and are passed over.
    pub ignored_rules: usize,
    /// Times that everything was made anew.
    pub rebuilds: u64,
}

/// Keeps the workers' tables in step with a [`Reader`]'s.
pub struct FibSync {
    reader: Reader,
    /// Whose routes packets go by, if not the reader's.
    feed: Option<Feed>,
    attachments: Vec<Attachment>,
    ports: Ports,
    ports_changed: bool,
    hops: Hops,
    views: Vec<Pair>,
    said: RouteDecisions,
    /// Which links routes of each family may go over: [`usable`].
    usable: HashMap<u32, [bool; 2]>,
    seen: Generation,
    /// Family and priority of each.
    ignored_rules: Vec<(u8, u32)>,
    rebuilds: u64,
    settings: FibSyncSettings,
    domain: Arc<Domain>,
}

/// Those whose routes take the place of the namespace's own.
struct Feed {
    reader: Reader,
    seen: Generation,
    /// Rings with the changes of both.
    bell: Arc<Bell>,
    taking: Taking,
}

impl Feed {
    fn new(reader: Reader, namespace: &Reader) -> Self {
        let bell = Arc::new(Bell::default());
        reader.ring(&bell);
        namespace.ring(&bell);
        Self {
            reader,
            seen: Generation::default(),
            bell,
            taking: Taking::default(),
        }
    }
}

/// Of whom an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Teller {
    Namespace,
    Feed,
}

/// The FIBs of a view: of the ports that are in no VRF, or in one.
struct Pair {
    /// The VRF's link.
    vrf: Option<u32>,
    v4: Kept<u32>,
    v6: Kept<u128>,
    readers: VrfFibs,
}

impl std::fmt::Debug for FibSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FibSync")
            .field("filled", &self.filled())
            .finish_non_exhaustive()
    }
}

impl FibSync {
    /// Fills from what the reader has now. The views are one for ports
    /// outside of VRFs, and one for each VRF that has ports now.
    pub fn new(
        reader: Reader,
        domain: &Arc<Domain>,
        attachments: Vec<Attachment>,
        settings: FibSyncSettings,
    ) -> Result<Self, fib::Error> {
        Self::over(reader, None, domain, attachments, settings)
    }

    /// The same with the routes of a feed or a file, where there is one, in
    /// the place of the namespace's. What the kernel made of its own
    /// addresses (`RTPROT_KERNEL`: local, broadcast and connected routes)
    /// stays, and comes before a route of the feed to the same prefix. A
    /// gateway without a link, as files have them, is reached as the
    /// namespace's main table says.
    pub fn over(
        reader: Reader,
        feed: Option<Reader>,
        domain: &Arc<Domain>,
        attachments: Vec<Attachment>,
        settings: FibSyncSettings,
    ) -> Result<Self, fib::Error> {
        let mut fill = Self {
            hops: Hops::new(Writer::new(domain, settings.limits)),
            feed: feed.map(|feed| Feed::new(feed, &reader)),
            reader,
            attachments,
            ports: Ports::default(),
            ports_changed: false,
            views: Vec::new(),
            said: RouteDecisions::default(),
            usable: HashMap::new(),
            seen: Generation::default(),
            ignored_rules: Vec::new(),
            rebuilds: 0,
            settings,
            domain: Arc::clone(domain),
        };
        let known = fill.known();
        fill.make_views(known.tables())?;
        fill.rebuild(&known);
        fill.settle();
        Ok(fill)
    }

    /// What there is at this moment.
    fn known(&self) -> Known {
        let tables = self.reader.snapshot();
        match &self.feed {
            None => Known::new(tables),
            Some(feed) => Known::with_routes(tables, &feed.reader.snapshot()),
        }
    }

    fn make_views(&mut self, tables: &Tables) -> Result<(), fib::Error> {
        let mut vrfs = vec![None];
        for attachment in &self.attachments {
            let link = tables.links.by_name(&attachment.link);
            let vrf = link.and_then(|link| vrf_of(tables, link));
            if !vrfs.contains(&vrf) {
                vrfs.push(vrf);
            }
        }
        let is_fed = self.feed.is_some();
        for vrf in vrfs {
            let (writer4, reader4) = fib::fib(self.settings.fib, &self.domain)?;
            let (writer6, reader6) = fib::fib(self.settings.fib, &self.domain)?;
            self.views.push(Pair {
                vrf,
                v4: Kept::new(writer4, is_fed),
                v6: Kept::new(writer6, is_fed),
                readers: VrfFibs {
                    v4: reader4,
                    v6: reader6,
                },
            });
        }
        Ok(())
    }

    /// Next hops and neighbours, for workers.
    pub fn table(&mut self) -> Arc<Table> {
        Arc::clone(self.hops.writer().table())
    }

    /// The FIBs, for workers.
    pub fn views(&self) -> Vec<VrfFibs> {
        self.views.iter().map(|pair| pair.readers.clone()).collect()
    }

    /// The ports as they are.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The ports, if they have changed since this was asked last: to be
    /// given to all workers.
    pub fn changed_ports(&mut self) -> Option<Ports> {
        std::mem::take(&mut self.ports_changed).then(|| self.ports.clone())
    }

    /// Rules that look at more than the destination, and are passed over:
    /// family and priority of each, for each of the views.
    pub fn ignored_rules(&self) -> &[(u8, u32)] {
        &self.ignored_rules
    }

    /// How it stands.
    pub fn filled(&self) -> FibSyncState {
        let (next_hops, neighbours, refused) = self.hops.counts();
        let mut filled = FibSyncState {
            generation: self.seen,
            next_hops,
            neighbours,
            refused,
            ignored_rules: self.ignored_rules.len(),
            rebuilds: self.rebuilds,
            ..FibSyncState::default()
        };
        for pair in &self.views {
            let ((v4, refused_v4), (v6, refused_v6)) = (pair.v4.counts(), pair.v6.counts());
            filled.prefixes_v4 += v4;
            filled.prefixes_v6 += v6;
            filled.refused += refused_v4 + refused_v6;
        }
        filled
    }

    /// What became of the feed's routes, if anything did since this was
    /// asked last. `None` where the routes are the namespace's own, and
    /// while parts of a FIB wait for space: workers do not see them yet.
    pub fn taken(&mut self) -> Option<Taken> {
        if self.views.iter().any(Pair::is_behind) {
            return None;
        }
        self.feed.as_mut()?.taking.take()
    }

    /// Takes in what has happened since, waiting up to `patience` for
    /// something to happen; true if something did. Workers see it with
    /// their next batch, but for a line that is changed twice within a
    /// batch: the second time is seen when it is over, by the next call.
    pub fn follow(&mut self, patience: Duration) -> bool {
        let (own, of_feed) = match &self.feed {
            None => (self.reader.events_after(self.seen, patience), None),
            Some(feed) => {
                feed.bell.wait(patience);
                let own = self.reader.events_after(self.seen, Duration::ZERO);
                let of_feed = feed.reader.events_after(feed.seen, Duration::ZERO);
                (own, Some(of_feed))
            }
        };
        let has_changed = match (own, of_feed) {
            (Events::FellBehind, _) | (_, Some(Events::FellBehind)) => {
                let known = self.known();
                self.rebuild(&known);
                true
            }
            (Events::Batches(own), of_feed) => {
                let of_feed = match of_feed {
                    Some(Events::Batches(of_feed)) => of_feed,
                    _ => Vec::new(),
                };
                let is_news = !own.is_empty() || !of_feed.is_empty();
                if is_news {
                    self.take_batches(&own, &of_feed);
                }
                is_news
            }
        };
        self.settle();
        has_changed
    }

    /// Takes in what both have told since.
    fn take_batches(&mut self, own: &[EventBatch], of_feed: &[EventBatch]) {
        // At least as new as the last of the batches.
        let known = self.known();
        if let Some(last) = own.last() {
            self.seen = last.generation;
        }
        if let Some(last) = of_feed.last()
            && let Some(feed) = &mut self.feed
        {
            feed.seen = last.generation;
        }
        let own = told_by(own, Teller::Namespace);
        if self.take(&known, own.chain(told_by(of_feed, Teller::Feed))) {
            self.update(&known);
        } else {
            self.rebuild(&known);
        }
    }

    /// Notes what events change; false where everything has to be made
    /// anew.
    fn take<'a>(
        &mut self,
        known: &Known,
        events: impl Iterator<Item = (Teller, &'a Event)>,
    ) -> bool {
        let tables = known.tables();
        let mut neighbours = Vec::new();
        let mut has_ports = false;
        for (teller, event) in events {
            let is_instead = teller == Teller::Namespace && self.feed.is_some();
            if teller == Teller::Namespace && !self.touch_gateways(known, &event.row) {
                return false;
            }
            match &event.row {
                Row::Route(route) if is_instead && self.said.is_way(route) => return false,
                Row::Nexthop(_) if is_instead && self.said.has_ways() => return false,
                Row::Nexthop(_) if is_instead => {}
                // Also one that the feed's stands in the place of: it may
                // have come for one of the kernel's own.
                Row::Route(route) => {
                    self.touch_route(known, route.table, route.prefix);
                }
                Row::Neighbour(neighbour) => neighbours.push(neighbour.key()),
                Row::Link(link) => {
                    has_ports = true;
                    // It may be on the way to a gateway.
                    if self.touch_link(known, link.index)
                        && (self.said.has_ways() || !self.touch_gateways_over(known, link.index))
                    {
                        return false;
                    }
                }
                Row::Address(_) => has_ports = true,
                Row::Nexthop(nexthop) => {
                    self.said.clear();
                    for route in of_object(tables, nexthop.id) {
                        self.touch_route(known, route.table, route.prefix);
                    }
                }
                Row::Rule(_) => return false,
                Row::OtherRoute(_) | Row::Fdb(_) => {}
            }
        }
        if has_ports && !self.refresh_ports(tables) {
            return false;
        }
        for key in neighbours {
            let row = tables.neighbours.get(&key);
            match row {
                Some(row) => self.take_neighbour(row),
                None => self.lose_neighbour(key.link, key.address),
            }
        }
        true
    }

    /// An address or a route may make a gateway the host itself, or not
    /// ([`Tables::is_through_host`]): routes by it count anew. False where
    /// everything has to be made anew.
    fn touch_gateways(&mut self, known: &Known, row: &Row) -> bool {
        let within = match row {
            Row::Address(row) => IpNet::from(row.local),
            Row::Route(route) => return self.touch_gateways_of(known, route.table, route.prefix),
            Row::Nexthop(nexthop) => {
                let mut routes = of_object(known.namespace(), nexthop.id);
                return routes
                    .all(|route| self.touch_gateways_of(known, route.table, route.prefix));
            }
            _ => return true,
        };
        self.gateways_changed(known, within)
    }

    /// The same of all routes over a link that is usable now, or no more.
    fn touch_gateways_over(&mut self, known: &Known, link: u32) -> bool {
        let tables = known.namespace();
        let objects = tables.nexthops.of_link(link);
        let by_object = objects.flat_map(|object| of_object(tables, object.id));
        let mut over = tables.routes.over_link(link).chain(by_object);
        over.all(|route| self.touch_gateways_of(known, route.table, route.prefix))
    }

    /// The same of a route of the namespace's that may count from now on, or
    /// not.
    fn touch_gateways_of(&mut self, known: &Known, table: u32, prefix: IpNet) -> bool {
        let is_asked = [table_id::LOCAL, table_id::MAIN].contains(&table);
        !is_asked || self.gateways_changed(known, prefix)
    }

    fn gateways_changed(&mut self, known: &Known, within: IpNet) -> bool {
        let IpNet::V4(within) = within else {
            return true;
        };
        let changed = self.said.gateways_changed(known, within);
        for route in changed.iter().flat_map(|gateway| known.via(*gateway)) {
            self.touch_route(known, route.table, route.prefix);
        }
        // One may be on the way to a gateway without a link.
        changed.is_empty() || !self.said.has_ways()
    }

    fn touch_route(&mut self, known: &Known, table: u32, prefix: ipnet::IpNet) {
        for pair in &mut self.views {
            pair.v4.touch(known, table, prefix);
            pair.v6.touch(known, table, prefix);
        }
    }

    /// A link that became usable or is no more: routes over it count again,
    /// or not. Whether it is so.
    fn touch_link(&mut self, known: &Known, link: u32) -> bool {
        let tables = known.tables();
        let now = tables.links.get(link).map(|link| usable(link));
        let before = match now {
            Some(now) => self.usable.insert(link, now),
            None => self.usable.remove(&link),
        };
        if before == now {
            return false;
        }
        self.said.clear();
        for route in known.over_link(link) {
            self.touch_route(known, route.table, route.prefix);
        }
        for nexthop in tables.nexthops.of_link(link) {
            for route in tables.routes.of_nexthop(nexthop.id) {
                self.touch_route(known, route.table, route.prefix);
            }
        }
        true
    }

    /// Looks whether ports have changed, and changes what hangs on them.
    /// False where links have other numbers now.
    fn refresh_ports(&mut self, tables: &Tables) -> bool {
        let ports = self.read_ports(tables);
        if ports == self.ports {
            return true;
        }
        let links = |ports: &Ports| -> Vec<(u32, u16)> {
            ports.iter().map(|port| (port.link, port.view)).collect()
        };
        if links(&ports) != links(&self.ports) {
            return false;
        }
        self.ports = ports;
        self.ports_changed = true;
        self.hops.refresh(&self.ports);
        self.take_neighbours(tables);
        true
    }

    /// Everything anew.
    fn rebuild(&mut self, known: &Known) {
        let tables = known.tables();
        self.rebuilds += 1;
        self.said = RouteDecisions::default();
        (self.seen, _) = known.generations();
        if let Some(feed) = &mut self.feed {
            (_, feed.seen) = known.generations();
        }
        self.usable = tables
            .links
            .iter()
            .map(|link| (link.index, usable(link)))
            .collect();
        let ports = self.read_ports(tables);
        if ports != self.ports {
            self.ports = ports;
            self.ports_changed = true;
            self.hops.refresh(&self.ports);
        }
        self.take_neighbours(tables);
        self.ignored_rules.clear();
        for pair in &mut self.views {
            let table = pair.vrf.and_then(|vrf| tables.links.get(vrf)?.vrf_table);
            let mut v4 = decide::chain(tables.rules.of_family(AF_INET), table);
            v4.is_merged = tables.has_merged_tables();
            let v6 = decide::chain(tables.rules.of_family(AF_INET6), table);
            let ignored = [(AF_INET, &v4.ignored), (AF_INET6, &v6.ignored)];
            for (family, priorities) in ignored {
                let rules = priorities.iter().map(|priority| (family, *priority));
                self.ignored_rules.extend(rules);
            }
            let mut around = Context {
                known,
                ports: &self.ports,
                hops: &mut self.hops,
                said: &mut self.said,
            };
            pair.v4.rebuild(&mut around, v4);
            pair.v6.rebuild(&mut around, v6);
        }
        if let Some(feed) = &mut self.feed {
            feed.taking.renew(&self.views, known, feed.seen);
        }
        self.hops.sweep();
    }

    /// What was noted, done.
    fn update(&mut self, known: &Known) {
        let of_feed = self.feed.is_some();
        let dirty = self.views.iter().filter(|_| of_feed).flat_map(Pair::dirty);
        let dirty: Vec<IpNet> = dirty.collect();
        for pair in &mut self.views {
            let mut around = Context {
                known,
                ports: &self.ports,
                hops: &mut self.hops,
                said: &mut self.said,
            };
            pair.v4.update(&mut around);
            pair.v6.update(&mut around);
        }
        if let Some(feed) = &mut self.feed {
            feed.taking.update(&self.views, known, &dirty, feed.seen);
        }
        self.hops.sweep();
    }

    /// What had to wait for workers.
    fn settle(&mut self) {
        self.hops.writer().settle();
        for pair in &mut self.views {
            pair.v4.settle(&mut self.hops);
            pair.v6.settle(&mut self.hops);
        }
        self.hops.sweep();
    }

    fn take_neighbours(&mut self, tables: &Tables) {
        let mut wanted: HashMap<Key, Adjacency> = HashMap::new();
        for port in self.ports.iter().filter(|port| !port.is_host) {
            for neighbour in tables.neighbours.of_link(port.link) {
                wanted.extend(self.adjacency(neighbour));
            }
        }
        let gone: Vec<Key> = self
            .hops
            .neighbours()
            .filter(|key| !wanted.contains_key(key))
            .collect();
        for key in gone {
            self.hops.remove_neighbour(key, &self.ports);
        }
        for (key, adjacency) in wanted {
            self.hops.put_neighbour(key, adjacency);
        }
    }

    fn take_neighbour(&mut self, neighbour: &Neighbour) {
        match self.adjacency(neighbour) {
            Some((key, adjacency)) => self.hops.put_neighbour(key, adjacency),
            None if neighbour.proxy => {}
            None => self.lose_neighbour(neighbour.link, neighbour.address),
        }
    }

    fn lose_neighbour(&mut self, link: u32, address: IpAddr) {
        if let Some(port) = self.ports.of_link(link) {
            let key = Key::new(port, address);
            self.hops.remove_neighbour(key, &self.ports);
        }
    }

    /// What a neighbour is to workers, if it is resolved and on a port's
    /// link.
    fn adjacency(&self, neighbour: &Neighbour) -> Option<(Key, Adjacency)> {
        const RESOLVED: u16 = state::REACHABLE
            | state::STALE
            | state::DELAY
            | state::PROBE
            | state::PERMANENT
            | state::NOARP;
        if neighbour.state & RESOLVED == 0 || neighbour.proxy {
            return None;
        }
        let number = self.ports.of_link(neighbour.link)?;
        let port = self.ports.get(number)?;
        let source = port.ethernet?;
        let destination = neighbour.lladdr.octets().try_into().ok()?;
        let adjacency = Adjacency::of_port(Kind::Rewrite, number, port.mtu)
            .with_addresses(destination, source)
            .with_vlan(port.vlan.map_or(0, |(_, vlan)| vlan));
        let is_stale = neighbour.state & state::STALE != 0;
        let adjacency = if is_stale {
            adjacency.stale()
        } else {
            adjacency
        };
        Some((Key::new(number, neighbour.address), adjacency))
    }

    fn read_ports(&self, tables: &Tables) -> Ports {
        let read = |attachment: &Attachment| {
            let link = tables.links.by_name(&attachment.link);
            let mut port = PortSettings {
                link: link.map_or(0, |link| link.index),
                ethernet: None,
                vlan: attachment.vlan,
                mtu: 0,
                view: 0,
                is_host: attachment.is_host,
                is_outside: attachment.is_outside,
                ipv4: None,
                ipv6: None,
            };
            if attachment.has_ethernet {
                let own = link.and_then(|link| link.address.octets().try_into().ok());
                port.ethernet = Some(own.unwrap_or_default());
            }
            if let Some(link) = link {
                port.mtu = u16::try_from(link.mtu).unwrap_or(u16::MAX);
                let vrf = vrf_of(tables, link);
                let view = self.views.iter().position(|pair| pair.vrf == vrf);
                port.view = view.unwrap_or(0) as u16;
                (port.ipv4, port.ipv6) = own_addresses(tables, link.index);
            }
            port
        };
        Ports::new(self.attachments.iter().map(read).collect())
    }
}

/// The routes by a next-hop object, and by groups that it is in.
fn of_object(tables: &Tables, id: u32) -> impl Iterator<Item = RouteRef<'_>> {
    let groups = tables.nexthops.groups_with(id).map(|group| group.id);
    let ids = groups.chain([id]);
    ids.flat_map(|id| tables.routes.of_nexthop(id))
}

/// All events of batches, with who tells them.
fn told_by(batches: &[EventBatch], teller: Teller) -> impl Iterator<Item = (Teller, &Event)> {
    let events = batches.iter().flat_map(|batch| batch.events.iter());
    events.map(move |event| (teller, event))
}

/// The VRF that a link is in.
fn vrf_of(tables: &Tables, link: &Link) -> Option<u32> {
    let master = tables.links.get(link.master?)?;
    master.vrf_table.map(|_| master.index)
}

/// The first address of each family that may be a source beyond the link.
fn own_addresses(
    tables: &Tables,
    link: u32,
) -> (Option<std::net::Ipv4Addr>, Option<std::net::Ipv6Addr>) {
    let (mut v4, mut v6) = (None, None);
    for address in tables.addresses.of_link(link) {
        if address.scope >= scope::LINK {
            continue;
        }
        match address.local {
            IpAddr::V4(own) => v4 = v4.or(Some(own)),
            IpAddr::V6(own) => v6 = v6.or(Some(own)),
        }
    }
    (v4, v6)
}

/// Whether packets of IPv4 and of IPv6 may go over a link.
fn usable(link: &Link) -> [bool; 2] {
    [AF_INET, AF_INET6].map(|family| link.is_usable(family))
}

#[cfg(test)]
mod tests;
