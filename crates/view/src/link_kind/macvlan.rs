//! Macvlan and macvtap.

use table::LinkLayerAddress;
use table::row::link::macvlan::Macvlan;

use super::put::Put;
use crate::fields::{Value, Visit};

/// `MACVLAN_MODE_SOURCE`, `linux/if_link.h`.
const SOURCE: u32 = 16;
/// `MACVLAN_FLAG_NOPROMISC`.
const NOPROMISC: u16 = 1;
/// `MACVLAN_FLAG_NODST`.
const NODST: u16 = 2;

pub(super) fn show<V: Visit>(macvlan: &Macvlan, put: &mut Put<'_, '_, V>) {
    let Some(mode) = macvlan.mode else {
        return;
    };
    let name = match mode {
        1 => "private",
        2 => "vepa",
        4 => "bridge",
        8 => "passthru",
        SOURCE => "source",
        _ => "unknown",
    };
    put.word("mode", "mode", Some(name));
    let flags = macvlan.flags.unwrap_or(0);
    put.yes("nopromisc", "nopromisc", flags & NOPROMISC != 0);
    put.yes("nodst", "nodst", flags & NODST != 0);
    put.number("bcqueuelen", "bcqueuelen", macvlan.bc_queue_len);
    put.number(
        "usedbcqueuelen",
        "usedbcqueuelen",
        macvlan.bc_queue_len_used,
    );
    if mode == SOURCE {
        sources(macvlan, put);
    }
}

/// The addresses that a link in mode `source` takes frames from.
fn sources<V: Visit>(macvlan: &Macvlan, put: &mut Put<'_, '_, V>) {
    let Some(count) = macvlan.macaddr_count else {
        return;
    };
    put.field("macaddr_count", Value::Number(count.into()));
    put.say("remotes", Value::Text(&format!("({count})")));
    let macs: Vec<LinkLayerAddress> = macvlan
        .macaddr_data
        .iter()
        .filter_map(|mac| LinkLayerAddress::new(mac))
        .collect();
    if !macs.is_empty() {
        put.list("macaddr_data", "", " ", macs.iter().map(Value::LinkLayer));
    }
}
