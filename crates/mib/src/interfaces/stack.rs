//! ifStackTable: which link lies on which.
//!
//! A bridge, bond or VRF lies on its members; a VLAN or tunnel on its
//! device. A link with nothing above it has a row under higher layer 0, one
//! with nothing below it a row with lower layer 0 (RFC 2863).

use std::iter;

use snmp::Value;
use snmp::oid::Name;
use table::{Link, Links};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;

/// ifStackTable.
pub(crate) struct StackTable;

impl Rows for StackTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 2, 1];
    const COLUMNS: &'static [u32] = &[3];
    /// Higher and lower layer.
    type Row<'a> = (u32, u32);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        let links = &objects.tables().links;
        let mut seek = Seek::new(index);
        let higher = seek.number(u32::MAX);
        let lower = seek.number(u32::MAX);
        let tops = (higher == 0).then(|| tops(links, lower));
        let stacked = links
            .from(higher)
            .flat_map(|link| lowers(links, link).map(|lower| (link.index, lower)));
        tops.into_iter().flatten().chain(stacked)
    }

    fn index((higher, lower): &(u32, u32), name: &mut Name) {
        index::put(name, *higher);
        index::put(name, *lower);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        _: u32,
        _: &'r (u32, u32),
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        // active(1).
        Some(Value::Integer(1))
    }
}

/// The rows of links that have nothing above them.
fn tops(links: &Links, from: u32) -> impl Iterator<Item = (u32, u32)> {
    let is_top = |link: &&Link| {
        let master = link.master.and_then(|master| links.get(master));
        master.is_none() && links.on_top_of(link.index).next().is_none()
    };
    let all = links.from(from).map(|link| &**link);
    all.filter(is_top).map(|link| (0, link.index))
}

/// What a link lies on, ascending; 0 if on nothing.
fn lowers<'a>(links: &'a Links, link: &'a Link) -> impl Iterator<Item = u32> + 'a {
    let below = link.below().filter(|&lower| links.get(lower).is_some());
    let members = || links.of_master(link.index).map(|member| member.index);
    let is_bottom = below.is_none() && members().next().is_none();
    // A link that has both, lower link and members, has few of them.
    let before = members().take_while(move |&member| below.is_none_or(|below| member < below));
    let behind = members().filter(move |&member| below.is_some_and(|below| member > below));
    iter::once(0)
        .filter(move |_| is_bottom)
        .chain(before)
        .chain(below)
        .chain(behind)
}
