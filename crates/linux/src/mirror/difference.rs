//! What makes one set of tables equal to another. Pure.
//!
//! After a resync the fresh tables stand beside the mirrored ones; readers
//! get the difference as one change of generation. A scan counts the same
//! difference as drift, apart from what the kernel never announces.

use std::cmp::Ordering;
use std::sync::Arc;

use table::row::address;
use table::row::neighbour::{flag, state};
use table::{Address, Change, FdbEntry, Link, Neighbour, Placement, RouteBody, RouteRef, Tables};

/// Expiries jump by the granularity of the kernel's clock: nearer than
/// this they are the same.
const SAME_TIME_MILLIS: u64 = 2_500;

/// A difference.
#[derive(Debug, Default)]
pub struct Difference {
    /// Changes that turn the current tables into the fresh ones.
    pub changes: Vec<Change>,
    /// How many of them the kernel should have announced, or the mirror
    /// should have known.
    pub drift: usize,
    /// The first few of those, for a report.
    pub examples: Vec<Change>,
}

/// Examples of drift kept for a report.
const EXAMPLES: usize = 8;

/// Which tables were read whole: rows missing from the others prove
/// nothing and are not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names its table")]
pub struct Whole {
    pub links: bool,
    pub addresses: bool,
    pub neighbours: bool,
    pub fdb: bool,
    pub v4_routes: bool,
    pub v6_routes: bool,
    pub nexthops: bool,
    pub rules: bool,
}

impl Whole {
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
pub fn difference(current: &Tables, fresh: &Tables, whole: Whole) -> Difference {
    let mut difference = Difference::default();
    links(current, fresh, whole, &mut difference);
    addresses(current, fresh, whole, &mut difference);
    neighbours(current, fresh, whole, &mut difference);
    fdb(current, fresh, whole, &mut difference);
    nexthops(current, fresh, whole, &mut difference);
    rules(current, fresh, whole, &mut difference);
    routes(
        current.routes.iter_v4(),
        fresh.routes.iter_v4(),
        whole.v4_routes,
        &mut difference,
    );
    routes(
        current.routes.iter_v6(),
        fresh.routes.iter_v6(),
        whole.v6_routes,
        &mut difference,
    );
    others(current, fresh, &mut difference);
    difference
}

impl Difference {
    fn add(&mut self, change: Change, is_drift: bool) {
        if is_drift && self.examples.len() < EXAMPLES {
            self.examples.push(change.clone());
        }
        self.changes.push(change);
        self.drift += usize::from(is_drift);
    }
}

/// A pair of rows of one key, or one without its twin.
enum Pair<T> {
    Both(T, T),
    Gone(T),
    New(T),
}

/// Walks two ordered lists side by side.
fn pairs<T: Clone>(
    current: impl Iterator<Item = T>,
    fresh: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> Ordering,
    mut each: impl FnMut(Pair<T>),
) {
    let mut current = current.peekable();
    let mut fresh = fresh.peekable();
    loop {
        let order = match (current.peek(), fresh.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => order(a, b),
        };
        let a = if order.is_le() { current.next() } else { None };
        let b = if order.is_ge() { fresh.next() } else { None };
        match (a, b) {
            (Some(a), Some(b)) => each(Pair::Both(a, b)),
            (Some(a), None) => each(Pair::Gone(a)),
            (None, Some(b)) => each(Pair::New(b)),
            (None, None) => return,
        }
    }
}

fn links(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    let order = |a: &&Arc<Link>, b: &&Arc<Link>| a.index.cmp(&b.index);
    pairs(
        current.links.iter(),
        fresh.links.iter(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(a, b) => to.add(Change::PutLink((**b).clone()), !is_silent_link(a, b)),
            Pair::New(b) => to.add(Change::PutLink((**b).clone()), true),
            Pair::Gone(a) if whole.links => to.add(Change::DeleteLink(a.index), true),
            Pair::Gone(_) => {}
        },
    );
}

/// Whether two links differ only in what the kernel changes without an
/// event: the qdisc, the count of promiscuous users, the peer's namespace,
/// learnt data of the kind.
fn is_silent_link(a: &Link, b: &Link) -> bool {
    let announced = Link {
        qdisc: b.qdisc.clone(),
        promiscuity: b.promiscuity,
        lower: b.lower,
        lower_netns_id: b.lower_netns_id,
        kind_data: b.kind_data.clone(),
        slave_data: b.slave_data.clone(),
        ..a.clone()
    };
    announced == *b
}

fn addresses(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    let order = |a: &&Arc<Address>, b: &&Arc<Address>| a.key().cmp(&b.key());
    pairs(
        current.addresses.iter(),
        fresh.addresses.iter(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if same_address(a, b) => {}
            Pair::Both(_, b) | Pair::New(b) => {
                to.add(Change::PutAddress((**b).clone()), !is_tentative(b));
            }
            Pair::Gone(a) if whole.addresses => {
                to.add(Change::DeleteAddress(a.key()), !is_tentative(a))
            }
            Pair::Gone(_) => {}
        },
    );
}

/// An IPv6 address is announced when duplicate address detection has
/// found it unique (RFC 4862 section 5.4), not before.
fn is_tentative(row: &Address) -> bool {
    row.flags & address::flag::TENTATIVE != 0
}

fn same_address(a: &Address, b: &Address) -> bool {
    let same_times = same_time(a.valid_until_millis, b.valid_until_millis)
        && same_time(a.preferred_until_millis, b.preferred_until_millis);
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

fn neighbours(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    let order = |a: &&Arc<Neighbour>, b: &&Arc<Neighbour>| a.key().cmp(&b.key());
    pairs(
        current.neighbours.iter(),
        fresh.neighbours.iter(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(a, b) => {
                let silent = is_silent_neighbour(b) || is_silent_neighbour(a);
                to.add(Change::PutNeighbour((**b).clone()), !silent);
            }
            Pair::New(b) => {
                to.add(Change::PutNeighbour((**b).clone()), !is_silent_neighbour(b));
            }
            Pair::Gone(a) if whole.neighbours => {
                to.add(Change::DeleteNeighbour(a.key()), !is_silent_neighbour(a));
            }
            Pair::Gone(_) => {}
        },
    );
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

fn fdb(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    let order = |a: &&Arc<FdbEntry>, b: &&Arc<FdbEntry>| a.key().cmp(&b.key());
    pairs(
        current.fdb.iter(),
        fresh.fdb.iter(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(_, b) | Pair::New(b) => {
                to.add(Change::PutFdb((**b).clone()), !is_silent_fdb(b));
            }
            Pair::Gone(a) if whole.fdb => to.add(Change::DeleteFdb(a.key()), !is_silent_fdb(a)),
            Pair::Gone(_) => {}
        },
    );
}

/// A device's own list of the addresses it receives is not announced.
fn is_silent_fdb(row: &FdbEntry) -> bool {
    row.master.is_none() && row.flags & flag::SELF != 0 && row.destination.is_none()
}

fn nexthops(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    let order = |a: &&Arc<table::Nexthop>, b: &&Arc<table::Nexthop>| a.id.cmp(&b.id);
    pairs(
        current.nexthops.iter(),
        fresh.nexthops.iter(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(_, b) | Pair::New(b) => to.add(Change::PutNexthop((**b).clone()), true),
            Pair::Gone(a) if whole.nexthops => to.add(Change::DeleteNexthop(a.id), true),
            Pair::Gone(_) => {}
        },
    );
}

/// Rules have no key but their contents and their order.
fn rules(current: &Tables, fresh: &Tables, whole: Whole, to: &mut Difference) {
    if current.rules.iter().eq(fresh.rules.iter()) || !whole.rules {
        return;
    }
    for rule in current.rules.iter() {
        to.changes.push(Change::DeleteRule((**rule).clone()));
    }
    for rule in fresh.rules.iter() {
        to.changes.push(Change::PutRule((**rule).clone()));
    }
    let missing = |from: &Tables, in_: &Tables| {
        from.rules
            .iter()
            .filter(|rule| !in_.rules.iter().any(|other| other == *rule))
            .count()
    };
    to.drift += missing(current, fresh) + missing(fresh, current);
}

type Place = (u32, ipnet::IpNet, u8, u32);

fn place(route: &RouteRef<'_>) -> Place {
    (route.table, route.prefix, route.tos, route.metric)
}

/// Compares runs of one place: their order is the order of making, which
/// events tell and dumps show.
fn routes<'a>(
    current: impl Iterator<Item = RouteRef<'a>>,
    fresh: impl Iterator<Item = RouteRef<'a>>,
    whole: bool,
    to: &mut Difference,
) {
    let current = Runs::new(current);
    let fresh = Runs::new(fresh);
    let order = |a: &Run<'a>, b: &Run<'a>| order_of(a).cmp(&order_of(b));
    pairs(current, fresh, order, |pair| match pair {
        Pair::Both(a, b) => run(&a, &b, whole, to),
        Pair::New(b) => run(&[], &b, whole, to),
        Pair::Gone(a) => run(&a, &[], whole, to),
    });
}

/// The table's own order: by address before length.
fn order_of(run: &Run<'_>) -> Option<(u32, std::net::IpAddr, u8, u8, u32)> {
    let first = run.first()?;
    let (network, len) = (first.prefix.network(), first.prefix.prefix_len());
    Some((first.table, network, len, first.tos, first.metric))
}

fn run(current: &[RouteRef<'_>], fresh: &[RouteRef<'_>], whole: bool, to: &mut Difference) {
    let found = |route: &RouteRef<'_>, list: &[RouteRef<'_>]| {
        list.iter().any(|other| same_body(route.body, other.body))
    };
    for route in current.iter().filter(|route| whole && !found(route, fresh)) {
        to.add(Change::DeleteRoute(route.to_shared()), true);
    }
    for route in fresh.iter().filter(|route| !found(route, current)) {
        let row = route.with_body((**route.body).clone());
        to.add(Change::PutRoute(row, Placement::Last), true);
    }
}

fn same_body(a: &Arc<RouteBody>, b: &Arc<RouteBody>) -> bool {
    a == b
        || same_time(a.expires_at_millis, b.expires_at_millis)
            && a.expires_at_millis.is_some()
            && **b
                == RouteBody {
                    expires_at_millis: b.expires_at_millis,
                    ..(**a).clone()
                }
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
    pairs(
        current.routes.other(),
        fresh.routes.other(),
        order,
        |pair| match pair {
            Pair::Both(a, b) if a == b => {}
            Pair::Both(_, b) | Pair::New(b) => {
                to.changes.push(Change::PutOtherRoute((**b).clone()))
            }
            Pair::Gone(a) => to.changes.push(Change::DeleteOtherRoute(a.key.clone())),
        },
    );
}
