//! BRIDGE-MIB (RFC 4188) and Q-BRIDGE-MIB (RFC 4363) of one bridge.
//!
//! The modules know one bridge an agent. Each has a context of its own,
//! `bridge-NAME` ([`crate::bridge`]); other contexts show the bridge of the
//! lowest index. What the kernel does not tell (topology changes, what was
//! not learned for want of room) has no instances.

mod base;
mod ports;
mod spanning_tree;
mod stations;
mod vlans;

use table::row::link::bridge::Bridge;
use table::{KindData, Link, Tables};

use crate::objects::Objects;

pub(crate) use base::{PortTable, base};
pub(crate) use spanning_tree::{StpPortTable, spanning_tree};
pub(crate) use stations::{ForwardingTable, PortCounterTable, VlanForwardingTable, forwarding};
pub(crate) use vlans::{
    CurrentVlanTable, PortVlanTable, StaticVlanTable, vlan_base, vlan_deletions,
};

/// The bridge that a context shows: the one that it names, else the one of
/// the lowest index; `None` where there is none. O(log n).
fn shown<'a>(objects: &Objects<'a>) -> Option<(&'a Link, &'a Bridge)> {
    let tables = objects.tables();
    // Every bridge has an entry for its own address.
    let index = objects.bridge.or_else(|| tables.fdb.first_bridge())?;
    let link = tables.links.get(index)?;
    match &link.kind_data {
        KindData::Bridge(settings) => Some((link, settings)),
        _ => None,
    }
}

/// The bridge of a context's name: `bridge-NAME`. O(log links).
pub(crate) fn of_context(tables: &Tables, context: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(context).ok()?.strip_prefix("bridge-")?;
    let link = tables.links.by_name(name)?;
    matches!(link.kind_data, KindData::Bridge(_)).then_some(link.index)
}
