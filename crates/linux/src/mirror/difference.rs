//! What makes one set of tables equal to another. Pure.
//!
//! After a resync the fresh tables stand beside the mirrored ones; readers
//! get the difference as one change of generation. A scan counts the same
//! difference as drift, apart from what the kernel never announces.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use ipnet::IpNet;
use table::row::address;
use table::row::link::linkdown;
use table::row::neighbour::{flag, state};
use table::row::route::{hop_flag, kind, protocol, table_id};
use table::{
    AF_INET, AF_INET6, Address, AddressKey, Change, FdbEntry, Link, Neighbour, NextHop, Nexthop,
    Pair, Placement, RouteBody, RouteRef, Rule, Tables, pairs,
};

use super::normalise::{self, Over};
use super::silent;

/// Expiries jump by the granularity of the kernel's clock: nearer than
/// this they are the same.
const SAME_TIME_MILLIS: u64 = 2_500;

/// What turns the mirrored tables into the kernel's.
#[derive(Debug, Default)]
pub struct Difference {
    /// What the kernel never announces.
    pub silent: Vec<Change>,
    /// What it should have announced, or the mirror should have known:
    /// drift, unless the announcement is still to come.
    pub unexplained: Vec<Change>,
    /// The first few of those in words, for a report: what the kernel has
    /// and what the mirror had.
    pub examples: Vec<String>,
}

/// Examples of drift kept for a report.
const EXAMPLES: usize = 8;

/// Which tables were read whole: rows missing from the others prove
/// nothing and are not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names its table")]
pub struct CompleteTables {
    pub links: bool,
    pub addresses: bool,
    pub neighbours: bool,
    pub fdb: bool,
    pub v4_routes: bool,
    pub v6_routes: bool,
    pub nexthops: bool,
    pub rules: bool,
}

impl CompleteTables {
    /// None of them.
    pub const NONE: Self = Self {
        links: false,
        addresses: false,
        neighbours: false,
        fdb: false,
        v4_routes: false,
        v6_routes: false,
        nexthops: false,
        rules: false,
    };
}

/// The difference between what the mirror has and what the kernel said
/// just now. O(rows).
pub fn difference(current: &Tables, fresh: &Tables, whole: CompleteTables) -> Difference {
    let mut difference = Difference::default();
    let (a, b, to) = (current, fresh, &mut difference);
    rows(&LINKS, a.links.iter(), b.links.iter(), whole.links, to);
    let late = unannounced(current, fresh, whole);
    let announced = |row: &&Arc<Address>| !late.contains(&row.key());
    rows(
        &ADDRESSES,
        a.addresses.by_key(),
        b.addresses.by_key().filter(announced),
        whole.addresses,
        to,
    );
    for row in late.iter().filter_map(|key| fresh.addresses.get(key)) {
        to.add(&None::<Address>, Change::PutAddress((**row).clone()), false);
    }
    if whole.addresses {
        order_of_addresses(current, fresh, to);
    }
    rows(
        &NEIGHBOURS,
        a.neighbours.iter(),
        b.neighbours.iter(),
        whole.neighbours,
        to,
    );
    rows(&FDB, a.fdb.iter(), b.fdb.iter(), whole.fdb, to);
    rows(
        &NEXTHOPS,
        a.nexthops.iter(),
        b.nexthops.iter(),
        whole.nexthops,
        to,
    );
    rules(current, fresh, whole, &mut difference);
    routes(
        current.routes.iter_v4(),
        fresh.routes.iter_v4(),
        Over {
            family: AF_INET,
            tables: current,
        },
        whole.v4_routes,
        &mut difference,
    );
    routes(
        current.routes.iter_v6(),
        fresh.routes.iter_v6(),
        Over {
            family: AF_INET6,
            tables: current,
        },
        whole.v6_routes,
        &mut difference,
    );
    others(current, fresh, &mut difference);
    difference
}

impl Difference {
    /// Adds a change from what the mirror had.
    fn add(&mut self, had: &dyn Debug, change: Change, is_drift: bool) {
        if is_drift && self.examples.len() < EXAMPLES {
            self.examples.push(format!("{change:?}, had {had:?}"));
        }
        if is_drift {
            self.unexplained.push(change);
        } else {
            self.silent.push(change);
        }
    }
}

/// What is to be known of a kind of row to compare two tables of it.
struct Kind<T> {
    order: fn(&T, &T) -> Ordering,
    same: fn(&T, &T) -> bool,
    put: fn(&T) -> Change,
    delete: fn(&T) -> Change,
    /// Whether the kernel lets a row come, go or become another without an
    /// event.
    is_silent: fn(Option<&T>, Option<&T>) -> bool,
}

/// Compares two ordered tables. Rows missing from a `fresh` one that was
/// not read whole stay.
fn rows<'a, T: Debug + 'a>(
    kind: &Kind<T>,
    current: impl Iterator<Item = &'a Arc<T>>,
    fresh: impl Iterator<Item = &'a Arc<T>>,
    whole: bool,
    to: &mut Difference,
) {
    let order = |a: &&Arc<T>, b: &&Arc<T>| (kind.order)(a, b);
    for pair in pairs(current, fresh, order) {
        let (had, has) = match pair {
            Pair::Both(a, b) if (kind.same)(a, b) => continue,
            Pair::Both(a, b) => (Some(&**a), Some(&**b)),
            Pair::Second(b) => (None, Some(&**b)),
            Pair::First(_) if !whole => continue,
            Pair::First(a) => (Some(&**a), None),
        };
        let change = match (had, has) {
            (_, Some(has)) => (kind.put)(has),
            (Some(had), None) => (kind.delete)(had),
            (None, None) => continue,
        };
        to.add(&had, change, !(kind.is_silent)(had, has));
    }
}

const LINKS: Kind<Link> = Kind {
    order: |a, b| a.index.cmp(&b.index),
    same: |a, b| a == b,
    put: |b| Change::PutLink(b.clone()),
    delete: |a| Change::DeleteLink(a.index),
    is_silent: |a, b| matches!((a, b), (Some(a), Some(b)) if is_silent_link(a, b)),
};

/// Whether two links differ only in what the kernel changes without an
/// event: the qdisc, the counts of promiscuous users and of those that want
/// all multicast, how it makes addresses, how much it takes in one piece,
/// whether IPv6 is switched off and whether it uses routes without a carrier
/// (by their files; `addrconf_disable_ipv6`; `addrconf_fixup_linkdown`, which
/// announces it in later kernels than 6.1), the peer's namespace, learnt data
/// of the kind, the group (when set by sysfs).
fn is_silent_link(a: &Link, b: &Link) -> bool {
    let announced = Link {
        ignores_linkdown: a.ignores_linkdown & !linkdown::V6 | b.ignores_linkdown & linkdown::V6,
        qdisc: b.qdisc.clone(),
        promiscuity: b.promiscuity,
        allmulti: b.allmulti,
        addr_gen_mode: b.addr_gen_mode,
        v6_disabled: b.v6_disabled,
        limits: b.limits.clone(),
        group: b.group,
        lower: b.lower,
        lower_netns_id: b.lower_netns_id,
        kind_data: b.kind_data.clone(),
        slave_data: b.slave_data.clone(),
        ..a.clone()
    };
    if b.is_up() {
        return announced == *b;
    }
    // Of a link that is down, `netdev_state_change` tells nothing.
    let announced = Link {
        alias: b.alias.clone(),
        alt_names: b.alt_names.clone(),
        link_mode: b.link_mode,
        proto_down: b.proto_down,
        ..announced
    };
    announced == *b
}

const ADDRESSES: Kind<Address> = Kind {
    order: |a, b| a.key().cmp(&b.key()),
    same: same_address,
    put: |b| Change::PutAddress(b.clone()),
    delete: |a| Change::DeleteAddress(a.key()),
    is_silent: |a, b| match (a, b) {
        (Some(a), Some(b)) if was_heard_late(a, b) => true,
        _ => b.or(a).is_some_and(is_tentative),
    },
};

/// Whether an address differs from what is listed in that it lasts longer: an
/// event says how long is left of it, and may have waited to be heard.
fn was_heard_late(a: &Address, b: &Address) -> bool {
    let is_later = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => a > b || same_time(Some(a), Some(b)),
        (a, b) => a == b,
    };
    let is_same = Address {
        valid_until_millis: a.valid_until_millis,
        preferred_until_millis: a.preferred_until_millis,
        ..b.clone()
    };
    is_same == *a
        && is_later(a.valid_until_millis, b.valid_until_millis)
        && is_later(a.preferred_until_millis, b.preferred_until_millis)
}

/// IPv6 addresses that the kernel lists and announces later, from a queue that
/// waits for the lock of links (`addrconf_dad_work`): with the announcement
/// comes the route to the address (`__ipv6_ifa_notify`), and the routes are
/// listed after the addresses.
fn unannounced(current: &Tables, fresh: &Tables, whole: CompleteTables) -> BTreeSet<AddressKey> {
    if !whole.v6_routes {
        return BTreeSet::new();
    }
    let is_new =
        |row: &&Arc<Address>| row.local.is_ipv6() && current.addresses.get(&row.key()).is_none();
    let has_route = |row: &Arc<Address>| {
        let table = match silent::table_of(&fresh.links, row.link) {
            table_id::MAIN => table_id::LOCAL,
            of_vrf => of_vrf,
        };
        let mut routes = fresh.routes.exact(table, IpNet::from(row.local));
        routes.any(|route| route.body.kind == kind::LOCAL)
    };
    let new = fresh.addresses.by_key().filter(is_new);
    new.filter(|row| !has_route(row))
        .map(|row| row.key())
        .collect()
}

/// Puts the addresses of a link in the kernel's order where it differs, or
/// where some are new. Announcements tell it of IPv4; of IPv6 they may not.
fn order_of_addresses(current: &Tables, fresh: &Tables, to: &mut Difference) {
    let (had, has) = (&current.addresses, &fresh.addresses);
    let is_in = |all: &table::Addresses, row: &Address| all.get(&row.key()).is_some();
    let rows: Vec<&Arc<Address>> = has.iter().collect();
    for rows in rows.chunk_by(|a, b| a.link == b.link) {
        let Some(link) = rows.first().map(|row| row.link) else {
            continue;
        };
        let known = |row: &&&Arc<Address>| is_in(had, row);
        let order = |rows: &[&Arc<Address>], is_v4| -> Vec<AddressKey> {
            let rows = rows.iter().filter(known);
            let of_family = rows.filter(|row| row.local.is_ipv4() == is_v4);
            of_family.map(|row| row.key()).collect()
        };
        let before: Vec<&Arc<Address>> = had.of_link(link).filter(|row| is_in(has, row)).collect();
        let [v4, v6] = [true, false].map(|is_v4| order(rows, is_v4) != order(&before, is_v4));
        if v4 || v6 || !rows.iter().all(|row| is_in(had, row)) {
            let keys = rows.iter().map(|row| row.key()).collect();
            to.add(&before, Change::OrderAddresses(link, keys), v4);
        }
    }
}

/// An IPv6 address is announced when duplicate address detection has
/// found it unique (RFC 4862 section 5.4), not before.
fn is_tentative(row: &Address) -> bool {
    row.flags & address::flag::TENTATIVE != 0
}

fn same_address(a: &Address, b: &Address) -> bool {
    // Of a deprecated one the kernel says at any time that no time is left.
    let deprecated = a.flags & b.flags & address::flag::DEPRECATED != 0;
    let same_times = same_time(a.valid_until_millis, b.valid_until_millis)
        && (deprecated || same_time(a.preferred_until_millis, b.preferred_until_millis));
    same_times
        && *b
            == Address {
                valid_until_millis: b.valid_until_millis,
                preferred_until_millis: b.preferred_until_millis,
                ..a.clone()
            }
}

fn same_time(a: Option<u64>, b: Option<u64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.abs_diff(b) <= SAME_TIME_MILLIS,
        (None, None) => true,
        _ => false,
    }
}

const NEIGHBOURS: Kind<Neighbour> = Kind {
    order: |a, b| a.key().cmp(&b.key()),
    same: |a, b| a == b,
    put: |b| Change::PutNeighbour(b.clone()),
    delete: |a| Change::DeleteNeighbour(a.key()),
    is_silent: |a, b| match (a, b) {
        (Some(a), Some(b)) if is_only_protocol(a, b) => true,
        _ => [a, b].into_iter().flatten().any(is_silent_neighbour),
    },
};

/// Whether two entries differ in who made them alone, which is set without
/// an event (`neigh_add`).
fn is_only_protocol(a: &Neighbour, b: &Neighbour) -> bool {
    let same = Neighbour {
        protocol: b.protocol,
        ..a.clone()
    };
    same == *b
}

/// Entries that come, and states that are entered, without an event: a
/// proxy entry, a first question on the wire, a multicast address, DELAY.
fn is_silent_neighbour(row: &Neighbour) -> bool {
    row.proxy
        || matches!(
            row.state,
            state::NONE | state::INCOMPLETE | state::DELAY | state::NOARP
        )
}

const FDB: Kind<FdbEntry> = Kind {
    order: |a, b| a.key().cmp(&b.key()),
    same: |a, b| a == b,
    put: |b| Change::PutFdb(b.clone()),
    delete: |a| Change::DeleteFdb(a.key()),
    is_silent: |a, b| b.or(a).is_some_and(is_silent_fdb),
};

/// A device's own list of the addresses it receives is not announced.
fn is_silent_fdb(row: &FdbEntry) -> bool {
    row.master.is_none() && row.flags & flag::SELF != 0 && row.destination.is_none()
}

const NEXTHOPS: Kind<Nexthop> = Kind {
    order: |a, b| a.id.cmp(&b.id),
    same: |a, b| a == b,
    put: |b| Change::PutNexthop(b.clone()),
    delete: |a| Change::DeleteNexthop(a.id),
    is_silent: |_, _| false,
};

/// Rules have no key but their contents, and their order within a
/// priority counts: a priority that differs is put anew.
fn rules(current: &Tables, fresh: &Tables, whole: CompleteTables, to: &mut Difference) {
    if !whole.rules {
        return;
    }
    let had = by_priority(current);
    let has = by_priority(fresh);
    let places: BTreeSet<_> = had.keys().chain(has.keys()).collect();
    for place in places {
        let (had, has) = (had.get(place), has.get(place));
        if had == has {
            continue;
        }
        for rule in had.into_iter().flatten() {
            to.add(&has, Change::DeleteRule((***rule).clone()), true);
        }
        for rule in has.into_iter().flatten() {
            to.add(&had, Change::PutRule((***rule).clone()), true);
        }
    }
}

/// Rules of a family and a priority, in their order.
fn by_priority(tables: &Tables) -> BTreeMap<(u8, u32), Vec<&Arc<Rule>>> {
    let mut all = BTreeMap::new();
    for rule in tables.rules.iter() {
        let place = (rule.family, rule.priority);
        all.entry(place).or_insert_with(Vec::new).push(rule);
    }
    all
}

type PlaceOfRun = (u32, ipnet::IpNet, u8, u32);

fn place(route: &RouteRef<'_>) -> PlaceOfRun {
    (route.table, route.prefix, route.tos, route.metric)
}

/// Compares runs of one place: their order is the order of making, which
/// events tell and dumps show.
fn routes<'a>(
    current: impl Iterator<Item = RouteRef<'a>>,
    fresh: impl Iterator<Item = RouteRef<'a>>,
    over: Over<'_>,
    whole: bool,
    to: &mut Difference,
) {
    let current = Runs::new(current);
    let fresh = Runs::new(fresh);
    let order = |a: &Run<'a>, b: &Run<'a>| order_of(a).cmp(&order_of(b));
    for pair in pairs(current, fresh, order) {
        match pair {
            Pair::Both(a, b) => run(&a, &b, over, whole, to),
            Pair::Second(b) => run(&[], &b, over, whole, to),
            Pair::First(a) => run(&a, &[], over, whole, to),
        }
    }
}

/// The table's own order: by address before length.
fn order_of(run: &Run<'_>) -> Option<(u32, std::net::IpAddr, u8, u8, u32)> {
    let first = run.first()?;
    let (network, len) = (first.prefix.network(), first.prefix.prefix_len());
    Some((first.table, network, len, first.tos, first.metric))
}

fn run(
    current: &[RouteRef<'_>],
    fresh: &[RouteRef<'_>],
    over: Over<'_>,
    whole: bool,
    to: &mut Difference,
) {
    let is_several = |route: &RouteRef<'_>| route.body.next_hops.as_slice().len() > 1;
    let has_paths = over.family == AF_INET6 && fresh.iter().any(is_several);
    // Only one behind the first path of another can be hidden by it.
    let mut behind = current.iter();
    behind.find(|route| has_gateway(route) && has_paths);
    let behind = behind.as_slice();
    let (current, fresh) = without_common(current, fresh, over);
    if current.is_empty() && fresh.is_empty() {
        return;
    }
    let (had, has) = (Bodies::of(current, over), Bodies::of(fresh, over));
    let may_be_hidden = |route: &RouteRef<'_>| {
        let mut behind = behind.iter().map(|other| other.body);
        has_paths && !has_gateway(route) && behind.any(|body| Arc::ptr_eq(body, route.body))
    };
    // One that was made between the paths of another is left out of listings
    // (`fib6_dump_node` goes on behind the last), and is there.
    let is_gone = |route: &&RouteRef<'_>| {
        let is_listed = has.like(route.body, over).next().is_some();
        whole && !is_listed && !may_be_hidden(route)
    };
    // All changes of a run are of one sort: they are made in their order.
    let is_silent = |route: &RouteRef<'_>, beside: &Bodies| beside.has_but_for_silent(route, over);
    let is_drift = current
        .iter()
        .filter(is_gone)
        .any(|route| !is_silent(route, &has))
        || !fresh.iter().all(|route| is_silent(route, &had))
        || whole && !fresh.is_sorted_by_key(|route| had.place_but_for_silent(route, over));
    for route in current.iter().filter(is_gone) {
        to.add(&(), Change::DeleteRoute(route.to_shared()), is_drift);
    }
    let is_in_order = !whole || in_order(&had, fresh, over);
    for route in fresh {
        let mut known = had.like(route.body, over).peekable();
        if known.peek().is_some() && is_in_order {
            continue;
        }
        // Put last anew, in the kernel's order.
        for old in known.filter_map(|place| current.get(place)) {
            to.add(&(), Change::DeleteRoute(old.to_shared()), is_drift);
        }
        let row = route.with_body((**route.body).clone());
        to.add(&current, Change::PutRoute(row, Placement::Last), is_drift);
    }
}

fn has_gateway(route: &RouteRef<'_>) -> bool {
    let mut hops = route.body.next_hops.as_slice().iter();
    hops.any(|hop| hop.gateway.is_some())
}

/// What is left of two runs without the routes that both begin with and,
/// where the fresh one has nothing else, end with. A run of the prefixes
/// that each link has (`fe80::/64`) is long, and mostly the same.
fn without_common<'a, 'b>(
    mut current: &'a [RouteRef<'b>],
    mut fresh: &'a [RouteRef<'b>],
    over: Over<'_>,
) -> (&'a [RouteRef<'b>], &'a [RouteRef<'b>]) {
    let same = |a: &RouteRef<'_>, b: &RouteRef<'_>| same_body(a.body, b.body, over);
    while let ([a, current_rest @ ..], [b, fresh_rest @ ..]) = (current, fresh)
        && same(a, b)
    {
        (current, fresh) = (current_rest, fresh_rest);
    }
    let (mut before, mut of_fresh) = (current, fresh);
    while let ([current_rest @ .., a], [fresh_rest @ .., b]) = (before, of_fresh)
        && same(a, b)
    {
        (before, of_fresh) = (current_rest, fresh_rest);
    }
    if of_fresh.is_empty() {
        (before, of_fresh)
    } else {
        (current, fresh)
    }
}

/// Whether putting the new routes of a place last gives the kernel's
/// order: those known come first, as they stand.
fn in_order(current: &Bodies, fresh: &[RouteRef<'_>], over: Over<'_>) -> bool {
    let place = |route: &RouteRef<'_>| {
        let known = current.like(route.body, over).next();
        known.unwrap_or(usize::MAX)
    };
    fresh.is_sorted_by_key(place)
}

/// The bodies of a run, to be found by what they say: a run may be long,
/// and differ in the middle.
struct Bodies {
    /// Bodies without what changes in silence, and where they stand.
    places: HashMap<RouteBody, Vec<Place>>,
}

/// Where a body stands, and what of it changes in silence.
struct Place {
    at: usize,
    until: Option<u64>,
    /// Which hops have the mark [`hop_flag::UNMARKED`].
    unmarked: Vec<bool>,
}

impl Bodies {
    /// O(routes).
    fn of(run: &[RouteRef<'_>], over: Over<'_>) -> Self {
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (at, route) in run.iter().enumerate() {
            let (body, unmarked) = lasting(route.body, over);
            let until = route.body.expires_at_millis;
            let place = Place {
                at,
                until,
                unmarked,
            };
            places.entry(body).or_default().push(place);
        }
        Self { places }
    }

    /// Where bodies like this one stand, in their order.
    fn like(&self, body: &RouteBody, over: Over<'_>) -> impl Iterator<Item = usize> {
        let until = body.expires_at_millis;
        let (body, unmarked) = lasting(body, over);
        let same = self.places.get(&body).into_iter().flatten();
        same.filter(move |other| same_time(other.until, until) && other.unmarked == unmarked)
            .map(|place| place.at)
    }

    /// Whether there is the same route but for what changes in silence.
    ///
    /// What is done to a link's other IPv6 addresses of a prefix changes how
    /// long the route to it lasts, and not always to their lifetime
    /// (`fib6_add_rt2node`, `modify_prefix_route`, `cleanup_prefix_route`).
    /// When the kernel looked at a carrier is not always told
    /// ([`super::silent::is_noticed`]). What an event says of how long a route
    /// lasts may have waited to be heard.
    fn has_but_for_silent(&self, route: &RouteRef<'_>, over: Over<'_>) -> bool {
        let expires = route.body.expires_at_millis.is_some();
        let may_differ =
            over.family == AF_INET || route.body.protocol == protocol::KERNEL || expires;
        let is_there = || self.like(route.body, over).next().is_some();
        (may_differ && self.place_but_for_silent(route, over).is_some()) || is_there()
    }

    /// Where it stands.
    fn place_but_for_silent(&self, route: &RouteRef<'_>, over: Over<'_>) -> Option<usize> {
        let same = self.places.get(&lasting(route.body, over).0)?;
        same.first().map(|place| place.at)
    }
}

/// A body without what changes in silence, and which of its hops by an IPv6
/// gateway have a mark that does. Of others a listing does not tell it, nor of
/// a dead one without a carrier.
fn lasting(body: &RouteBody, over: Over<'_>) -> (RouteBody, Vec<bool>) {
    let is_untold = |hop: &NextHop| hop.flags & hop_flag::DEAD != 0 && !over.tells(hop.link);
    let is_unmarked = |hop: &NextHop| {
        let by_v6 = hop.gateway.is_some_and(|gateway| gateway.is_ipv6());
        by_v6 && hop.flags & hop_flag::UNMARKED != 0 && !is_untold(hop)
    };
    let hops = body.next_hops.as_slice().iter();
    let unmarked = hops.map(is_unmarked).collect();
    let mut body = comparable(body, over);
    for hop in body.next_hops.as_mut_slice() {
        hop.flags &= !hop_flag::UNMARKED;
    }
    (body, unmarked)
}

/// A body without what is no difference.
fn comparable(body: &RouteBody, over: Over<'_>) -> RouteBody {
    let mut body = body.clone();
    normalise::body(&mut body, over);
    body.expires_at_millis = None;
    body
}

/// Whether two bodies are one but for the granularity of clocks, and for
/// a hop's mark that its link's state outdoes: the kernel does not tell
/// whether a hop over a link without a carrier was dead before.
fn same_body(a: &Arc<RouteBody>, b: &Arc<RouteBody>, over: Over<'_>) -> bool {
    if a == b {
        return true;
    }
    same_time(a.expires_at_millis, b.expires_at_millis) && lasting(a, over) == lasting(b, over)
}

/// The routes of one place.
type Run<'a> = Vec<RouteRef<'a>>;

/// Groups ordered routes into runs.
struct Runs<'a, I: Iterator<Item = RouteRef<'a>>> {
    routes: std::iter::Peekable<I>,
}

impl<'a, I: Iterator<Item = RouteRef<'a>>> Runs<'a, I> {
    fn new(routes: I) -> Self {
        Self {
            routes: routes.peekable(),
        }
    }
}

impl<'a, I: Iterator<Item = RouteRef<'a>>> Iterator for Runs<'a, I> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let first = self.routes.next()?;
        let at = place(&first);
        let mut run = vec![first];
        while let Some(next) = self.routes.next_if(|next| place(next) == at) {
            run.push(next);
        }
        Some(run)
    }
}

fn others(current: &Tables, fresh: &Tables, to: &mut Difference) {
    let order = |a: &&Arc<table::OtherRoute>, b: &&Arc<table::OtherRoute>| a.key.cmp(&b.key);
    let others = pairs(current.routes.other(), fresh.routes.other(), order);
    for pair in others {
        match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(_, b) | Pair::Second(b) => {
                to.silent.push(Change::PutOtherRoute((**b).clone()))
            }
            Pair::First(a) => to.silent.push(Change::DeleteOtherRoute(a.key.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use table::{NextHop, NextHops, RawAttributes, Route, Writer};

    use super::*;

    const WHOLE: CompleteTables = CompleteTables {
        v4_routes: true,
        ..CompleteTables::NONE
    };

    fn body(hop: NextHop) -> RouteBody {
        RouteBody {
            kind: kind::UNICAST,
            protocol: 0,
            scope: 0,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::One(hop),
            metrics: None,
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        }
    }

    /// Tables with a route for each gateway, all of one place.
    fn run_of(gateways: impl Iterator<Item = u32>) -> Writer {
        let mut writer = Writer::default();
        for gateway in gateways {
            let hop = NextHop {
                link: 1,
                gateway: Some(Ipv4Addr::from(gateway).into()),
                ..NextHop::default()
            };
            let route = Route {
                table: 254,
                prefix: "192.0.2.0/24".parse().unwrap(),
                tos: 0,
                metric: 0,
                body: body(hop),
            };
            let change = Change::PutRoute(route, Placement::Last);
            writer.apply(change).unwrap();
        }
        writer
    }

    fn said(current: &Writer, fresh: &Writer) -> Vec<Change> {
        difference(current.tables(), fresh.tables(), WHOLE).unexplained
    }

    #[test]
    fn an_ipv6_address_without_its_route_is_not_announced_yet() {
        const BOTH: CompleteTables = CompleteTables {
            addresses: true,
            v6_routes: true,
            ..CompleteTables::NONE
        };
        let local = "2001:db8::1".parse().unwrap();
        let address = Address::new(1, local, 64);
        let current = Writer::default();
        let mut fresh = Writer::default();
        let put = Change::PutAddress(address.clone());
        fresh.apply(put.clone()).unwrap();
        let found = |fresh: &Writer, whole| difference(current.tables(), fresh.tables(), whole);
        let late = found(&fresh, BOTH);
        assert!(late.silent.contains(&put) && late.unexplained.is_empty());
        // Where routes were not listed nothing tells.
        let unknown = found(
            &fresh,
            CompleteTables {
                v6_routes: false,
                ..BOTH
            },
        );
        assert_eq!(unknown.unexplained, std::slice::from_ref(&put));
        let hop = NextHop {
            link: 1,
            ..NextHop::default()
        };
        let route = Route {
            table: table_id::LOCAL,
            prefix: IpNet::from(local),
            tos: 0,
            metric: 0,
            body: RouteBody {
                kind: kind::LOCAL,
                ..body(hop)
            },
        };
        fresh
            .apply(Change::PutRoute(route, Placement::Last))
            .unwrap();
        let missed = found(&fresh, BOTH);
        assert!(missed.unexplained.contains(&put));
    }

    /// With every route of one beside every route of the other it takes
    /// minutes.
    #[test]
    fn a_long_run_that_differs_in_the_middle_is_compared_in_one_walk() {
        const ALL: u32 = 30_000;
        let current = run_of((0..ALL).filter(|n| *n != ALL / 2));
        let fresh = run_of((1..ALL).filter(|n| *n != ALL / 3).chain([ALL]));
        let mut replayed = run_of((0..ALL).filter(|n| *n != ALL / 2));
        let changes = said(&current, &fresh);
        assert!(changes.len() > 3);
        for change in changes {
            replayed.apply(change).unwrap();
        }
        assert!(said(&replayed, &fresh).is_empty());
    }

    #[test]
    fn how_long_an_address_lasts_may_have_been_heard_late() {
        let until = |millis| Address {
            valid_until_millis: Some(millis),
            ..Address::new(1, Ipv4Addr::LOCALHOST.into(), 8)
        };
        let of = |address: Address| {
            let mut writer = Writer::default();
            writer.apply(Change::AddAddress(address)).unwrap();
            writer
        };
        let whole = CompleteTables {
            addresses: true,
            ..CompleteTables::NONE
        };
        for (had, is_drift) in [(60_000, false), (30_000, false), (20_000, true)] {
            let (had, has) = (of(until(had)), of(until(30_000)));
            let found = difference(had.tables(), has.tables(), whole);
            assert_eq!(!found.unexplained.is_empty(), is_drift, "{found:?}");
        }
    }

    #[test]
    fn what_is_in_order_is_only_added_to() {
        let (current, fresh) = (run_of(1..5), run_of([2, 4, 9].into_iter()));
        let changes = said(&current, &fresh);
        let gone = |change: &&Change| matches!(change, Change::DeleteRoute(_));
        assert_eq!(changes.iter().filter(gone).count(), 2, "{changes:?}");
        assert_eq!(changes.len(), 3);
    }
}
