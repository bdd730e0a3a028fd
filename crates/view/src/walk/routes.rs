//! The walk of routes: by the narrowest index that the filter offers, as
//! [`crate::answer`] picks it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use table::{AF_INET, AF_INET6, BodyId, RoutePlace, RouteRef, Routes, Tables};

use super::{Place, Run, Whole};
use crate::selection::{InTable, Selection};

/// Where to go on: body if routes are walked by that, table, place.
type After = Option<(Option<u32>, u32, RoutePlace)>;

impl Run<'_, '_> {
    pub(super) fn routes(&mut self, selection: &Selection, tables: &Tables, after: After) -> Whole {
        let all = &tables.routes;
        if let InTable::Only(table) = selection.in_table {
            let after = after.filter(|(_, of, _)| *of == table);
            let after = after.map(|(_, _, place)| place);
            if let Some(net) = selection.exact {
                return self.exact(all, table, net, after);
            }
            if let Some(net) = selection.covering {
                return self.covering(all, table, net, after);
            }
            if let Some(net) = selection.within.filter(|net| net.prefix_len() > 0) {
                let from = after.unwrap_or(RoutePlace::first_of(net));
                return self.run(all, table, from, after, |row| {
                    net.contains(&row.prefix.addr())
                });
            }
        }
        if let Some(gateway) = selection.gateway {
            return self.bodies(all, all.bodies_via(gateway), after);
        }
        if let Some(id) = selection.id {
            let bodies = all.bodies_of_nexthop(id).map(|(id, _)| id);
            return self.bodies(all, bodies, after);
        }
        if let Some(device) = selection.device {
            let bodies = all.bodies_over_link(device).map(|(id, _)| id);
            return self.bodies(all, bodies, after);
        }
        self.tables(all, selection, after)
    }

    /// Routes of a table and family from a place on, as long as they fit.
    fn run<'t>(
        &mut self,
        all: &'t Routes,
        table: u32,
        from: RoutePlace,
        after: Option<RoutePlace>,
        fits: impl Fn(&RouteRef<'t>) -> bool,
    ) -> Whole {
        let rows = all.run(table, &from).take_while(|(_, row)| fits(row));
        let rows = rows.filter(|(ordinal, row)| Some(place(*ordinal, row)) != after);
        self.rows(
            rows,
            |printer, (_, row)| printer.route(&row.with_body(&**row.body)),
            |(ordinal, row)| Place::of_route(None, row.table, &place(*ordinal, row)),
        )
    }

    fn exact(&mut self, all: &Routes, table: u32, net: IpNet, after: Option<RoutePlace>) -> Whole {
        let after = after.filter(|after| after.prefix == net);
        let from = after.unwrap_or(RoutePlace::first_of(net));
        self.run(all, table, from, after, |row| row.prefix == net)
    }

    /// The longest prefix first, as `ip route show to match` does not; a
    /// place says how far it got.
    fn covering(
        &mut self,
        all: &Routes,
        table: u32,
        net: IpNet,
        after: Option<RoutePlace>,
    ) -> Whole {
        let mut prefixes: Vec<IpNet> = all.covering(table, net).map(|row| row.prefix).collect();
        prefixes.dedup();
        for prefix in prefixes {
            if after.is_some_and(|after| prefix.prefix_len() > after.prefix.prefix_len()) {
                continue;
            }
            if !self.exact(all, table, prefix, after)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Routes by their bodies, each body's in the order of the table.
    fn bodies(
        &mut self,
        all: &Routes,
        bodies: impl Iterator<Item = BodyId>,
        after: After,
    ) -> Whole {
        let begin = after.and_then(|(body, ..)| body).map(BodyId::of_number);
        for body in bodies.filter(|body| begin.is_none_or(|begin| *body >= begin)) {
            let at = after.filter(|_| begin == Some(body));
            let from = at.as_ref().map(|(_, table, place)| (*table, place));
            let known = at.map(|(_, table, place)| (table, place));
            let rows = all
                .run_of_body(body, from)
                .filter(|(ordinal, row)| Some((row.table, place(*ordinal, row))) != known);
            let whole = self.rows(
                rows,
                |printer, (_, row)| printer.route(&row.with_body(&**row.body)),
                |(ordinal, row)| Place::of_route(Some(body), row.table, &place(*ordinal, row)),
            )?;
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whole tables: IPv4, then IPv6.
    fn tables(&mut self, all: &Routes, selection: &Selection, after: After) -> Whole {
        let wants = |family| selection.family.is_none_or(|asked| asked == family);
        let after = after.map(|(_, table, place)| (table, place));
        let in_v6 = after.is_some_and(|(_, place)| place.prefix.addr().is_ipv6());
        if wants(AF_INET) && !in_v6 {
            let start = after.map_or(0, |(table, _)| table);
            let tables = some_tables(selection.in_table, all.tables_v4(start));
            if !self.each(all, tables, Ipv4Addr::UNSPECIFIED.into(), after)? {
                return Ok(false);
            }
        }
        if wants(AF_INET6) {
            let after = after.filter(|_| in_v6);
            let start = after.map_or(0, |(table, _)| table);
            let tables = some_tables(selection.in_table, all.tables_v6(start));
            return self.each(all, tables, Ipv6Addr::UNSPECIFIED.into(), after);
        }
        Ok(true)
    }

    fn each(
        &mut self,
        all: &Routes,
        tables: impl Iterator<Item = u32>,
        first: IpAddr,
        after: Option<(u32, RoutePlace)>,
    ) -> Whole {
        let first = RoutePlace {
            prefix: IpNet::new_assert(first, 0),
            tos: 0,
            metric: 0,
            ordinal: 0,
        };
        for table in tables {
            let after = after.filter(|(of, _)| *of == table);
            let after = after.map(|(_, place)| place);
            if !self.run(all, table, after.unwrap_or(first), after, |_| true)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn some_tables(wanted: InTable, all: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    all.filter(move |table| match wanted {
        InTable::Any => true,
        InTable::Only(only) => only == *table,
    })
}

fn place(ordinal: u32, row: &RouteRef<'_>) -> RoutePlace {
    RoutePlace {
        prefix: row.prefix,
        tos: row.tos,
        metric: row.metric,
        ordinal,
    }
}
