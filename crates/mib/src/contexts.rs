//! Kernel routing tables and VRFs as SNMP contexts (RFC 3411 §3.3.1).
//!
//! The empty name is the main table, which is what `ip route` shows.
//! `table-N` is kernel table N, `vrf-NAME` the table of that VRF. They
//! differ in the routes alone; whatever else there is, is in each.

use std::cell::OnceCell;
use std::str;

use snmp::{Contexts, Mib};
use table::Tables;
use table::row::route::table_id;

use crate::objects::{Moment, Objects};

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
    // One table, one name: no sign, no zero ahead.
    let number: u32 = name.strip_prefix("table-")?.parse().ok()?;
    let is_plain = name == format!("table-{number}");
    (is_plain && exists(tables, number)).then_some(number)
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

/// All contexts of a moment, for one request.
#[derive(Debug)]
pub struct AllContexts<'a> {
    moment: Moment<'a>,
    chosen: OnceCell<Objects<'a>>,
}

impl<'a> AllContexts<'a> {
    /// The contexts of a moment. O(1).
    pub fn new(moment: Moment<'a>) -> Self {
        Self {
            moment,
            chosen: OnceCell::new(),
        }
    }
}

impl Contexts for AllContexts<'_> {
    /// A request has one context: asked for another after the first, there
    /// is none.
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        let table = routing_table(self.moment.tables, name)?;
        let chosen = self.chosen.get_or_init(|| Objects::new(self.moment, table));
        (chosen.routing_table == table).then_some(chosen as &dyn Mib)
    }
}
