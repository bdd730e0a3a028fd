//! ipDefaultRouterTable: the gateways of the default routes.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use smallvec::SmallVec;
use snmp::Value;
use snmp::oid::Name;

use crate::columns::Rows;
use crate::index;
use crate::objects::Objects;
use crate::routes::preference_of_default;

/// A router that leaves when its route is withdrawn, not by time
/// (RFC 4293, ipDefaultRouterLifetime).
const NO_END: u32 = 65_535;

/// ipDefaultRouterTable.
pub(crate) struct RouterTable;

/// A default router: its place, how long yet (seconds), its preference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouterRow {
    gateway: IpAddr,
    link: u32,
    lifetime_secs: u32,
    preference: i32,
}

impl RouterRow {
    /// The order of the names: `ipv6z` behind `ipv6`.
    fn order(&self) -> impl Ord + use<> {
        let is_zoned = matches!(self.gateway, IpAddr::V6(v6) if v6.is_unicast_link_local());
        (is_zoned, self.gateway, self.link)
    }
}

impl Rows for RouterTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 37, 1];
    const COLUMNS: &'static [u32] = &[4, 5];
    type Row<'a> = RouterRow;

    /// All of them: O(n log n) in the default routes, which are a few.
    fn from<'a>(objects: &Objects<'a>, _: &[u32]) -> impl Iterator<Item = RouterRow> {
        let defaults = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        let mut rows: SmallVec<[RouterRow; 16]> = SmallVec::new();
        for default in defaults {
            let run = objects
                .tables()
                .routes
                .run(objects.routing_table, &table::RoutePlace::first_of(default));
            for (_, route) in run.take_while(|(_, route)| route.prefix == default) {
                let left = route.body.expires_at_millis.map(|at| {
                    let secs = at.saturating_sub(objects.moment.now_millis) / 1_000;
                    secs.min(u64::from(NO_END) - 1) as u32
                });
                let preference = preference_of_default(route.body);
                let hops = route.body.next_hops.as_slice().iter();
                rows.extend(hops.filter_map(|hop| {
                    Some(RouterRow {
                        gateway: hop.gateway?,
                        link: hop.link,
                        lifetime_secs: left.unwrap_or(NO_END),
                        preference,
                    })
                }));
            }
        }
        rows.sort_by_key(RouterRow::order);
        rows.dedup_by_key(|row| row.order());
        rows.into_iter()
    }

    fn index(row: &RouterRow, name: &mut Name) {
        index::put_zoned(name, row.gateway, row.link);
        index::put(name, row.link);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r RouterRow,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            4 => Value::Gauge32(row.lifetime_secs),
            _ => Value::Integer(row.preference),
        })
    }
}
