//! Kernel routing tables, VRFs and bridges as SNMP contexts (RFC 3411
//! §3.3.1).
//!
//! The empty name is the main table, which is what `ip route` shows.
//! `table-N` is kernel table N, `vrf-NAME` the table of that VRF. They
//! differ in the routes alone; whatever else there is, is in each.
//! `bridge-NAME` has the routes of the main table and, in BRIDGE-MIB and
//! Q-BRIDGE-MIB, that bridge; elsewhere these show the first one.

use std::str;

use table::Tables;
use table::row::route::table_id;

/// The kernel routing table of a context; `None`: there is no such context.
/// A table that has no route, no rule and no VRF does not exist. O(rules +
/// links) for an empty table, else O(log routes).
pub fn routing_table(tables: &Tables, context: &[u8]) -> Option<u32> {
    let name = str::from_utf8(context).ok()?;
    if name.is_empty() {
        return Some(table_id::MAIN);
    }
    if let Some(vrf) = name.strip_prefix("vrf-") {
        return tables.links.by_name(vrf)?.vrf_table;
    }
    if bridge(tables, context).is_some() {
        return Some(table_id::MAIN);
    }
    // One table, one name: no sign, no zero ahead.
    let number: u32 = name.strip_prefix("table-")?.parse().ok()?;
    let is_plain = name == format!("table-{number}");
    (is_plain && exists(tables, number)).then_some(number)
}

/// The bridge that a context is of; `None`: of none in particular. O(log
/// links).
pub fn bridge(tables: &Tables, context: &[u8]) -> Option<u32> {
    crate::bridge::of_context(tables, context)
}

fn exists(tables: &Tables, number: u32) -> bool {
    let routes = tables.routes.count_v4(number).routes + tables.routes.count_v6(number).routes;
    routes > 0
        || tables.rules.iter().any(|rule| rule.table == number)
        || tables
            .links
            .iter()
            .any(|link| link.vrf_table == Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::{Change, KindData, Link, Rule, Writer};

    #[test]
    fn a_context_is_a_table_that_somebody_uses() {
        let vrf = Link {
            index: 1,
            name: "red".into(),
            vrf_table: Some(10),
            ..Link::default()
        };
        let rule = Rule {
            family: 2,
            table: 100,
            ..Rule::default()
        };
        let mut writer = Writer::default();
        let br0 = Link {
            index: 2,
            name: "br0".into(),
            kind_data: KindData::Bridge(Box::default()),
            ..Link::default()
        };
        writer
            .commit([
                Change::PutLink(vrf),
                Change::PutLink(br0),
                Change::PutRule(rule),
            ])
            .unwrap();
        let of = |name: &str| routing_table(writer.tables(), name.as_bytes());
        assert_eq!(of(""), Some(254));
        assert_eq!(
            (of("vrf-red"), of("table-10"), of("table-100")),
            (Some(10), Some(10), Some(100))
        );
        assert_eq!(of("bridge-br0"), Some(254));
        assert_eq!(bridge(writer.tables(), b"bridge-br0"), Some(2));
        assert_eq!(bridge(writer.tables(), b"table-10"), None);
        for wrong in [
            "vrf-blue",
            "bridge-red",
            "bridge-",
            "table-11",
            "table-0100",
            "table-+100",
            "table-",
            "main",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(routing_table(writer.tables(), b"\xff"), None);
    }
}
