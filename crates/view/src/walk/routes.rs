//! The scan of routes, and how many an access path has without one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use table::{AF_INET, AF_INET6, BodyId, BodyKey, RoutePlace, RouteRef, Routes};

use super::position::{Position, RouteAfter};
use super::scan::{Ended, Scan};
use super::sink::Sink;
use crate::plan::Access;
use crate::selection::InTable;

/// Where to go on in a table.
type After = Option<RoutePlace>;

impl<S: Sink> Scan<'_, S> {
    pub(super) fn routes(&mut self, access: &Access, after: Option<RouteAfter>) -> Ended {
        match *access {
            Access::ByBody(key) => self.bodies(key, after),
            Access::Exact(tables, net) => self.each_table(tables, net.addr(), after, |scan, at| {
                scan.exact(at.table, net, at.after)
            }),
            Access::Covering(tables, net) => {
                self.each_table(tables, net.addr(), after, |scan, at| {
                    scan.covering(at.table, net, at.after)
                })
            }
            Access::Within(tables, net) => {
                self.each_table(tables, net.addr(), after, |scan, at| {
                    let from = at.after.unwrap_or(RoutePlace::first_of(net));
                    scan.table(at.table, from, at.after, |row| {
                        net.contains(&row.prefix.addr())
                    })
                })
            }
            Access::Between(tables, first, last) => {
                self.each_table(tables, first.addr(), after, |scan, at| {
                    let from = at.after.unwrap_or(RoutePlace::first_of(first));
                    scan.table(at.table, from, at.after, |row| {
                        (row.prefix.addr(), row.prefix.prefix_len())
                            <= (last.addr(), last.prefix_len())
                    })
                })
            }
            Access::ByTable(tables, family) => self.families(tables, family, after),
            _ => self.families(InTable::Any, None, after),
        }
    }

    fn families(
        &mut self,
        tables: InTable,
        family: Option<u8>,
        after: Option<RouteAfter>,
    ) -> Ended {
        for first in firsts(family, after) {
            let after = after.filter(|(.., at)| is_of(at, first));
            let whole = |scan: &mut Self, at: At| {
                let from = at.after.unwrap_or(first_of(first));
                scan.table(at.table, from, at.after, |_| true)
            };
            if !self.each_table(tables, first, after, whole)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on in the table where the walk stopped, and from there to each
    /// that has routes of the address's family.
    fn each_table(
        &mut self,
        tables: InTable,
        family: IpAddr,
        after: Option<RouteAfter>,
        each: impl Fn(&mut Self, At) -> Ended,
    ) -> Ended {
        let start = after.map_or(0, |(_, table, _)| table);
        for table in some_tables(&self.tables.routes, tables, family, start) {
            let after = after.filter(|(_, of, _)| *of == table);
            let after = after.map(|(.., place)| place);
            if !each(self, At { table, after })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Routes of a table and family from a place on, as long as they fit.
    fn table(
        &mut self,
        table: u32,
        from: RoutePlace,
        after: After,
        fits: impl Fn(&RouteRef<'_>) -> bool,
    ) -> Ended {
        let rows = self.tables.routes.run(table, &from);
        let rows = rows.take_while(|(_, row)| fits(row));
        self.rows(
            rows.filter(|(ordinal, row)| after != Some(place(*ordinal, row))),
            |sink, (ordinal, row)| sink.route(row, *ordinal),
            |(ordinal, row)| Position::of_route(None, row.table, &place(*ordinal, row)),
        )
    }

    fn exact(&mut self, table: u32, net: IpNet, after: After) -> Ended {
        let after = after.filter(|after| after.prefix == net);
        let from = after.unwrap_or(RoutePlace::first_of(net));
        self.table(table, from, after, |row| row.prefix == net)
    }

    /// The longest prefix first; a place says how far it got.
    fn covering(&mut self, table: u32, net: IpNet, after: After) -> Ended {
        let rows = self.tables.routes.covering(table, net);
        let mut prefixes: Vec<IpNet> = rows.map(|row| row.prefix).collect();
        prefixes.dedup();
        for prefix in prefixes {
            if after.is_some_and(|after| prefix.prefix_len() > after.prefix.prefix_len()) {
                continue;
            }
            if !self.exact(table, prefix, after)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Routes by their bodies, each body's in the order of the table.
    fn bodies(&mut self, key: BodyKey, after: Option<RouteAfter>) -> Ended {
        let all = &self.tables.routes;
        let begin = after.and_then(|(body, ..)| body);
        for body in all.bodies(key, begin.unwrap_or(BodyId::of_number(0))) {
            let at = after.filter(|_| begin == Some(body));
            let from = at.as_ref().map(|(_, table, place)| (*table, place));
            let known = at.map(|(_, table, place)| (table, place));
            let rows = all
                .run_of_body(body, from)
                .filter(|(ordinal, row)| known != Some((row.table, place(*ordinal, row))));
            let ended = self.rows(
                rows,
                |sink, (ordinal, row)| sink.route(row, *ordinal),
                |(ordinal, row)| Position::of_route(Some(body), row.table, &place(*ordinal, row)),
            )?;
            if !ended {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts the routes of whole tables by their ranks, up to the most that
    /// may be counted; whether these were the last. O(log n) a table.
    pub(super) fn count_routes(
        &mut self,
        tables: InTable,
        family: Option<u8>,
        after: Option<RouteAfter>,
    ) -> bool {
        let all = &self.tables.routes;
        for first in firsts(family, after) {
            let after = after.filter(|(.., at)| is_of(at, first));
            let start = after.map_or(0, |(_, table, _)| table);
            for table in some_tables(all, tables, first, start) {
                let after = after.filter(|(_, of, _)| *of == table);
                let from = after.map_or(first_of(first), |(.., place)| place);
                // The row of the position itself is told already.
                let told = after.is_some() && all.run_nth(table, &from, 0) == Some(from);
                let told = usize::from(told);
                let there = all.run_len(table, &from) - told;
                let left = self.most_rows.saturating_sub(self.sink.rows());
                let counted = usize::try_from(left).map_or(there, |left| left.min(there));
                self.sink.count(counted as u64);
                if let Some(last) = (counted + told).checked_sub(1)
                    && let Some(place) = all.run_nth(table, &from, last)
                {
                    self.last = Some(Position::of_route(None, table, &place));
                }
                if counted < there {
                    return false;
                }
            }
        }
        true
    }
}

/// A table, and where to go on in it.
struct At {
    table: u32,
    after: After,
}

/// The lowest addresses of the families to go through.
fn firsts(family: Option<u8>, after: Option<RouteAfter>) -> impl Iterator<Item = IpAddr> {
    let in_v6 = after.is_some_and(|(.., place)| place.prefix.addr().is_ipv6());
    let all: [(u8, IpAddr); 2] = [
        (AF_INET, Ipv4Addr::UNSPECIFIED.into()),
        (AF_INET6, Ipv6Addr::UNSPECIFIED.into()),
    ];
    all.into_iter()
        .filter(move |(of, _)| family.is_none_or(|family| family == *of))
        .filter(move |(of, _)| !in_v6 || *of == AF_INET6)
        .map(|(_, first)| first)
}

fn is_of(place: &RoutePlace, family: IpAddr) -> bool {
    place.prefix.addr().is_ipv6() == family.is_ipv6()
}

/// Before all routes of a table and family.
fn first_of(first: IpAddr) -> RoutePlace {
    RoutePlace::first_of(IpNet::new_assert(first, 0))
}

/// The tables that are wanted and have routes of a family, from one on.
fn some_tables(
    all: &Routes,
    wanted: InTable,
    family: IpAddr,
    start: u32,
) -> impl Iterator<Item = u32> {
    let only = match wanted {
        InTable::Any => None,
        InTable::Only(only) => Some(only),
    };
    let any = only.is_none();
    let v4 = (any && family.is_ipv4()).then(|| all.tables_v4(start));
    let v6 = (any && family.is_ipv6()).then(|| all.tables_v6(start));
    let only = only.into_iter().filter(move |only| *only >= start);
    only.chain(v4.into_iter().flatten())
        .chain(v6.into_iter().flatten())
}

/// The tables of a selection that have routes of a family, from one on.
pub(crate) fn tables_of_family(
    all: &Routes,
    wanted: InTable,
    family: u8,
    start: u32,
) -> impl Iterator<Item = u32> {
    let first = firsts(Some(family), None).next();
    let tables = first.map(|first| some_tables(all, wanted, first, start));
    tables.into_iter().flatten()
}

fn place(ordinal: u32, row: &RouteRef<'_>) -> RoutePlace {
    RoutePlace {
        prefix: row.prefix,
        tos: row.tos,
        metric: row.metric,
        ordinal,
    }
}
