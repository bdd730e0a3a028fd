//! ipAddressPrefixTable: the prefixes of links' addresses, each once.

use std::net::IpAddr;

use ipnet::IpNet;
use snmp::Value;
use snmp::oid::Name;
use table::Address;
use table::row::address::flag;

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::interfaces::truth;
use crate::objects::Objects;

/// `IFAPROT_KERNEL_RA`, `linux/if_addr.h`.
pub(super) const FROM_RA: u8 = 2;

/// What has no end (RFC 4861 §4.6.2).
const FOR_EVER: u32 = u32::MAX;

/// ipAddressPrefixTable.
pub(crate) struct PrefixTable;

/// Appends the index of a prefix of a link.
pub(super) fn put_index(name: &mut Name, link: u32, prefix: IpNet) {
    index::put(name, link);
    index::put_inet(name, prefix.addr());
    index::put(name, prefix.prefix_len().into());
}

/// The prefix that an address is of.
pub(super) fn prefix_of(row: &Address) -> IpNet {
    let prefix = IpNet::new(row.peer.unwrap_or(row.local), row.prefix_len);
    prefix.unwrap_or(row.local.into()).trunc()
}

impl Rows for PrefixTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 32, 1];
    const COLUMNS: &'static [u32] = &[5, 6, 7, 8, 9];
    /// Link, prefix, and an address that has it.
    type Row<'a> = (u32, IpNet, &'a Address);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let mut seek = Seek::new(index);
        let link = seek.number(u32::MAX);
        let address = seek.inet();
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let len = seek.number(longest) as u8;
        let first = IpNet::new(address, len).unwrap_or(address.into());
        let rows = objects.tables().addresses.prefixes_from(link, first);
        rows.map(|(link, prefix, row)| (link, prefix, &**row))
    }

    fn index((link, prefix, _): &Self::Row<'_>, name: &mut Name) {
        put_index(name, *link, *prefix);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        (_, prefix, row): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        let origin = origin(*prefix, row);
        let left = |until: Option<u64>| {
            let secs = until?.saturating_sub(objects.moment.now_millis) / 1_000;
            Some(secs.try_into().unwrap_or(FOR_EVER))
        };
        Some(match column {
            5 => Value::Integer(origin),
            6 => truth(row.flags & flag::NOPREFIXROUTE == 0),
            7 => truth(origin == ROUTER_ADVERTISEMENT),
            8 => Value::Gauge32(left(row.preferred_until_millis).unwrap_or(FOR_EVER)),
            _ => Value::Gauge32(left(row.valid_until_millis).unwrap_or(FOR_EVER)),
        })
    }
}

const ROUTER_ADVERTISEMENT: i32 = 5;

/// `IpAddressPrefixOriginTC`: manual(2), wellknown(3), dhcp(4),
/// routeradv(5).
fn origin(prefix: IpNet, row: &Address) -> i32 {
    match prefix.addr() {
        IpAddr::V4(_) if row.flags & flag::PERMANENT == 0 => 4,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => 3,
        IpAddr::V6(_) if row.protocol == FROM_RA => ROUTER_ADVERTISEMENT,
        _ => 2,
    }
}
