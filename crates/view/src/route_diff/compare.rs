//! The prefixes of two sources side by side, and what counts as a
//! difference. For [`super`].
//!
//! Two sources agree on where packets go if their best routes have the same
//! type and the same next hops: gateway, encapsulation, weight among
//! several, and link. A source that knows no links (BMP, MRT) names none,
//! and then the gateway alone counts. Marks that the kernel sets (`dead`,
//! `linkdown`, `offload`) and the numbers of next-hop objects, which are
//! each source's own, never count.

use std::borrow::Cow;
use std::iter::Peekable;
use std::net::IpAddr;

use ipnet::IpNet;
use table::row::encap::Encap;
use table::{AF_INET, AF_INET6, NextHop, RouteBody, RoutePlace, RouteRef, Tables};

use super::{Place, Side};
use crate::route::is_reject;
use crate::selection::Selection;
use crate::walk::tables_of_family;

/// The prefixes of both sources in order.
pub(super) struct Prefixes<'a> {
    sides: [Side<'a>; 2],
    rows: [Peekable<Box<dyn Iterator<Item = RouteRef<'a>> + 'a>>; 2],
    visited: usize,
}

/// The routes of a table and prefix in both sources.
pub(super) struct Prefix<'a> {
    pub(super) place: Place,
    sides: [Side<'a>; 2],
    rows: [Vec<RouteRef<'a>>; 2],
}

/// A prefix of which the sources differ.
pub(super) struct Differ<'a> {
    pub(super) place: Place,
    pub(super) kind: Kind,
    /// What differs, of each source.
    pub(super) rows: [Vec<RouteRef<'a>>; 2],
    pub(super) since: Since,
}

/// How they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The second has none.
    Missing,
    /// The first has none.
    Extra,
    /// Both have one, another.
    Different,
}

/// Since when it is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Since {
    /// Milliseconds since the UNIX epoch; 0: since before anything is known.
    pub(super) at_millis: u64,
    /// It may be longer.
    pub(super) or_earlier: bool,
}

impl<'a> Prefixes<'a> {
    /// Those after a place that the selection's family, tables and prefix
    /// have.
    pub(super) fn new(
        sides: [Side<'a>; 2],
        selection: &'a Selection,
        after: Option<Place>,
    ) -> Self {
        Self {
            sides,
            rows: sides.map(|side| rows(side.tables, selection, after).peekable()),
            visited: 0,
        }
    }

    /// Routes looked at.
    pub(super) fn visited(&self) -> usize {
        self.visited
    }
}

impl<'a> Iterator for Prefixes<'a> {
    type Item = Prefix<'a>;

    fn next(&mut self) -> Option<Prefix<'a>> {
        let [first, second] = &mut self.rows;
        let heads = [first.peek().map(place), second.peek().map(place)];
        let place = heads.into_iter().flatten().min()?;
        let rows = [of(first, place), of(second, place)];
        self.visited += rows[0].len() + rows[1].len();
        Some(Prefix {
            place,
            sides: self.sides,
            rows,
        })
    }
}

fn place(route: &RouteRef<'_>) -> Place {
    Place::new(route.table, route.prefix)
}

/// Takes the routes of a place.
fn of<'a>(
    rows: &mut Peekable<Box<dyn Iterator<Item = RouteRef<'a>> + 'a>>,
    wanted: Place,
) -> Vec<RouteRef<'a>> {
    std::iter::from_fn(|| rows.next_if(|row| place(row) == wanted)).collect()
}

/// The routes after a place, in the order of places.
fn rows<'a>(
    tables: &'a Tables,
    selection: &'a Selection,
    after: Option<Place>,
) -> Box<dyn Iterator<Item = RouteRef<'a>> + 'a> {
    let families = [AF_INET, AF_INET6].into_iter().filter(move |family| {
        selection.family.is_none_or(|asked| asked == *family)
            && after.is_none_or(|after| !after.is_v6 || *family == AF_INET6)
    });
    let rows = families.flat_map(move |family| {
        let after = after.filter(|after| after.is_v6 == (family == AF_INET6));
        let start = after.map_or(0, |after| after.table);
        let all = &tables.routes;
        let numbers = tables_of_family(all, selection.in_table, family, start);
        numbers.flat_map(move |table| {
            let after = after.filter(|after| after.table == table);
            rows_of_table(
                tables,
                selection,
                (table, family),
                after.map(|at| at.prefix),
            )
        })
    });
    Box::new(rows)
}

fn rows_of_table<'a>(
    tables: &'a Tables,
    selection: &Selection,
    (table, family): (u32, u8),
    after: Option<IpNet>,
) -> impl Iterator<Item = RouteRef<'a>> + use<'a> {
    let any = match family {
        AF_INET => IpNet::V4(ipnet::Ipv4Net::default()),
        _ => IpNet::V6(ipnet::Ipv6Net::default()),
    };
    let span = selection.exact.or(selection.within).unwrap_or(any);
    let from = after.unwrap_or(span).max(span);
    tables
        .routes
        .run(table, &RoutePlace::first_of(from))
        .map(|(_, row)| row)
        .take_while(move |row| span.contains(&row.prefix.addr()))
        .skip_while(move |row| Some(row.prefix) == after)
}

/// The routes of one prefix, read from tables.
pub(super) fn prefix_at(sides: [Side<'_>; 2], place: Place) -> Prefix<'_> {
    let Place { table, prefix, .. } = place;
    let rows = sides.map(|side| exact_rows(side.tables, table, prefix));
    Prefix { place, sides, rows }
}

fn exact_rows(tables: &Tables, table: u32, prefix: IpNet) -> Vec<RouteRef<'_>> {
    let rows = tables.routes.run(table, &RoutePlace::first_of(prefix));
    let rows = rows.map(|(_, row)| row);
    rows.take_while(|row| row.prefix == prefix).collect()
}

impl<'a> Prefix<'a> {
    /// How the sources differ; `None`: they agree, or no route of the
    /// prefix is selected.
    pub(super) fn differ(self, selection: &Selection, strict: bool) -> Option<Differ<'a>> {
        let mut all = self.rows.iter().flatten();
        if !all.any(|row| selection.route(&row.with_body(&**row.body))) {
            return None;
        }
        let kind = match self.rows.each_ref().map(Vec::is_empty) {
            [false, true] => Kind::Missing,
            [true, false] => Kind::Extra,
            _ if self.agree(strict) => return None,
            _ => Kind::Different,
        };
        let Self {
            place,
            sides,
            mut rows,
        } = self;
        if !strict {
            rows.iter_mut().for_each(|rows| rows.truncate(1));
        }
        Some(Differ {
            place,
            kind,
            rows,
            since: since(sides, place),
        })
    }

    fn agree(&self, strict: bool) -> bool {
        let [first, second] = &self.rows;
        let [one, other] = self.sides.map(|side| side.tables);
        let same = |(a, b): (&RouteRef<'_>, &RouteRef<'_>)| {
            (!strict || same_properties(a, b)) && go_the_same_way((a, one), (b, other))
        };
        match strict {
            true => first.len() == second.len() && first.iter().zip(second).all(same),
            false => first.iter().zip(second).take(1).all(same),
        }
    }
}

/// The later of the last changes on either side.
fn since(sides: [Side<'_>; 2], place: Place) -> Since {
    let of = |side: Side<'_>| match side.changes.of(place.table, place.prefix) {
        Some(changed) => Since {
            at_millis: changed.at_millis,
            or_earlier: false,
        },
        None => Since {
            at_millis: side.changes.forgotten_at_millis,
            or_earlier: true,
        },
    };
    let [first, second] = sides.map(of);
    // Of two that are equal, the one that is known.
    let order = |since: &Since| (since.at_millis, !since.or_earlier);
    std::cmp::max_by_key(first, second, order)
}

fn same_properties(a: &RouteRef<'_>, b: &RouteRef<'_>) -> bool {
    let of = |row: &RouteRef<'_>| (row.tos, row.metric, row.body.protocol, row.body.scope);
    of(a) == of(b)
        && a.body.preferred_source == b.body.preferred_source
        && a.body.source == b.body.source
        && a.body.metrics == b.body.metrics
        && (a.body.path.is_empty() || b.body.path.is_empty() || a.body.path == b.body.path)
}

/// Whether two routes send packets the same way, each with the tables that
/// it stands in.
pub(crate) fn go_the_same_way(
    (a, in_a): (&RouteRef<'_>, &Tables),
    (b, in_b): (&RouteRef<'_>, &Tables),
) -> bool {
    same_way(&way(a, in_a), &way(b, in_b))
}

/// Where packets go by a route.
struct Way<'a> {
    kind: u8,
    hops: Cow<'a, [NextHop]>,
}

fn way<'a>(row: &RouteRef<'a>, tables: &Tables) -> Way<'a> {
    let body: &'a RouteBody = row.body;
    let own = body.next_hops.as_slice();
    let hops = match own {
        _ if is_reject(body) => Cow::Borrowed(&own[..0]),
        [] => Cow::Owned(tables.nexthops.hops_of(body).unwrap_or_default()),
        own => Cow::Borrowed(own),
    };
    Way {
        kind: body.kind,
        hops,
    }
}

fn same_way(a: &Way<'_>, b: &Way<'_>) -> bool {
    if a.kind != b.kind || a.hops.len() != b.hops.len() {
        return false;
    }
    let nameless = |hops: &[NextHop]| hops.iter().any(|hop| hop.link == 0);
    let by_link = !nameless(&a.hops) && !nameless(&b.hops);
    match (&*a.hops, &*b.hops) {
        ([a], [b]) => hop_key(a, by_link, false) == hop_key(b, by_link, false),
        (a, b) => same_members(a, b, by_link),
    }
}

/// What tells two hops apart. One hop has all the weight, whatever it is.
type HopKey<'a> = (Option<IpAddr>, u32, u16, Option<&'a Encap>);

fn hop_key(hop: &NextHop, by_link: bool, by_weight: bool) -> HopKey<'_> {
    let link = if by_link { hop.link } else { 0 };
    let weight = if by_weight { hop.weight } else { 0 };
    (hop.gateway, link, weight, hop.encap.as_deref())
}

/// The order of hops says nothing. O(hops) where it is the same.
fn same_members(a: &[NextHop], b: &[NextHop], by_link: bool) -> bool {
    let mut left: Vec<_> = b.iter().map(|hop| hop_key(hop, by_link, true)).collect();
    a.iter().all(|hop| {
        let key = hop_key(hop, by_link, true);
        let found = left.iter().position(|other| *other == key);
        found.map(|at| left.remove(at)).is_some()
    })
}
