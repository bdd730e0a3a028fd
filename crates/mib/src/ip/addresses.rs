//! ipAddrTable and ipAddressTable: the addresses of all links in order.
//!
//! Both name a row by its address; where two links have one address, the
//! lower index is shown. A link-local IPv6 address is told apart by its
//! zone (`ipv6z`, RFC 4001), which ipAddressTable puts behind all others.

use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use snmp::Value;
use snmp::oid::Name;
use table::row::address::flag;
use table::{Address, Addresses};

use crate::columns::Rows;
use crate::index::{self, IPV6, IPV6Z, Seek};
use crate::interfaces::integer;
use crate::objects::Objects;

use super::prefixes::{self, FROM_RA};

/// ipAddrTable: IPv4 addresses.
pub(crate) struct AddrTable;

impl Rows for AddrTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 20, 1];
    const COLUMNS: &'static [u32] = &[1, 2, 3, 4, 5];
    type Row<'a> = &'a Address;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Address> {
        v4(&objects.tables().addresses, Seek::new(index).v4())
    }

    fn index(row: &&Address, name: &mut Name) {
        index::put_octets(name, &octets(row));
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r &'a Address,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            1 => Value::IpAddress(octets(row)),
            2 => integer(row.link),
            3 => Value::IpAddress(mask(row.prefix_len)),
            4 => Value::Integer(broadcast_bit(row)),
            // ipAdEntReasmMaxSize: what IP allows.
            _ => Value::Integer(65_535),
        })
    }
}

/// The IPv4 rows from an address on, one for each address.
fn v4(all: &Addresses, from: Ipv4Addr) -> impl Iterator<Item = &Address> {
    let rows = all.from_address(from.into()).map(|row| &**row);
    let mut before = None;
    rows.take_while(|row| row.local.is_ipv4())
        .filter(move |row| before.replace(row.local) != Some(row.local))
}

fn octets(row: &Address) -> [u8; 4] {
    match row.local {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
    }
}

fn mask(len: u8) -> [u8; 4] {
    let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    (!host).to_be_bytes()
}

/// `ipAdEntBcastAddr`: the lowest bit of the broadcast address; 0 without.
fn broadcast_bit(row: &Address) -> i32 {
    match row.broadcast {
        Some(IpAddr::V4(v4)) => i32::from(v4.octets()[3] & 1),
        _ => 0,
    }
}

/// `ipAddressPrefixOrigin`.
const PREFIX_ORIGIN: &[u32] = &[1, 3, 6, 1, 2, 1, 4, 32, 1, 5];

/// ipAddressTable: all addresses.
pub(crate) struct AddressTable;

impl Rows for AddressTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 4, 34, 1];
    const COLUMNS: &'static [u32] = &[3, 4, 5, 6, 7, 8, 9, 10, 11];
    type Row<'a> = &'a Address;

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = &'a Address> {
        let all = &objects.tables().addresses;
        let first = AddressIndex::of(index);
        let v4_rows = match first {
            AddressIndex::V4(address) => Some(v4(all, address)),
            _ => None,
        };
        let from = match first {
            AddressIndex::V4(_) => Some(Ipv6Addr::UNSPECIFIED),
            AddressIndex::V6(address) => Some(address),
            AddressIndex::Zoned(..) => None,
        };
        let global = from.map(|from| global(all, from));
        let (from, zone) = match first {
            AddressIndex::Zoned(address, zone) if address >= LINK_LOCAL => (address, zone),
            _ => (LINK_LOCAL, 0),
        };
        let zoned = iter::once_with(move || zoned(all, from, zone)).flatten();
        v4_rows
            .into_iter()
            .flatten()
            .chain(global.into_iter().flatten())
            .chain(zoned)
    }

    fn index(row: &&Address, name: &mut Name) {
        index::put_zoned(name, row.local, row.link);
    }

    fn value<'r, 'a: 'r>(
        objects: &Objects<'a>,
        column: u32,
        row: &'r &'a Address,
        scratch: &'r mut Name,
    ) -> Option<Value<'r>> {
        let times = || {
            let (created, changed) = objects.moment.history.address_times(&row.key());
            let moment = &objects.moment;
            (moment.ticks(created), moment.ticks(changed))
        };
        Some(match column {
            3 => integer(row.link),
            // ipAddressType: unicast(1), anycast(2).
            4 => Value::Integer(if row.anycast == Some(row.local) { 2 } else { 1 }),
            5 => {
                // ipAddressPrefix: the first column of the prefix's row.
                scratch.extend(PREFIX_ORIGIN.iter().copied());
                prefixes::put_index(scratch, row.link, prefixes::prefix_of(row));
                Value::ObjectIdentifier(&*scratch)
            }
            6 => Value::Integer(origin(row)),
            7 => Value::Integer(status(row)),
            8 => Value::TimeTicks(times().0),
            9 => Value::TimeTicks(times().1),
            // active(1)
            10 => Value::Integer(1),
            // volatile(2): the kernel keeps no address over a restart.
            _ => Value::Integer(2),
        })
    }
}

/// The first and the first behind fe80::/10.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
const BEHIND_LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0);

/// Where an index of ipAddressTable leads.
enum AddressIndex {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Zoned(Ipv6Addr, u32),
}

impl AddressIndex {
    fn of(index: &[u32]) -> Self {
        let Some((&kind, rest)) = index.split_first() else {
            return Self::V4(Ipv4Addr::UNSPECIFIED);
        };
        let mut seek = Seek::new(rest);
        match kind {
            IPV6 => {
                seek.fixed(16);
                Self::V6(seek.v6())
            }
            IPV6Z => {
                seek.fixed(20);
                let address = seek.v6();
                let zone = [(); 4].map(|()| seek.number(0xff) as u8);
                Self::Zoned(address, u32::from_be_bytes(zone))
            }
            _ if kind < IPV6 => match Seek::new(index).inet() {
                IpAddr::V4(v4) => Self::V4(v4),
                IpAddr::V6(v6) => Self::V6(v6),
            },
            _ if kind < IPV6Z => Self::Zoned(LINK_LOCAL, 0),
            _ => Self::Zoned(u128::MAX.into(), u32::MAX),
        }
    }
}

/// The IPv6 rows without a zone from an address on, one for each address.
fn global(all: &Addresses, from: Ipv6Addr) -> impl Iterator<Item = &Address> {
    let rows = |from: Ipv6Addr| all.from_address(from.into()).map(|row| &**row);
    let from_behind = from.max(BEHIND_LINK_LOCAL);
    let before = rows(from).take_while(|row| row.local < IpAddr::V6(LINK_LOCAL));
    let behind = iter::once_with(move || rows(from_behind)).flatten();
    let mut last = None;
    before
        .chain(behind)
        .filter(move |row| last.replace(row.local) != Some(row.local))
}

/// The IPv6 rows with a zone from an address and zone on, one for each.
fn zoned(all: &Addresses, from: Ipv6Addr, zone: u32) -> impl Iterator<Item = &Address> {
    let rows = all.from_address(from.into()).map(|row| &**row);
    let mut last = None;
    rows.take_while(|row| row.local < IpAddr::V6(BEHIND_LINK_LOCAL))
        .skip_while(move |row| row.local == IpAddr::V6(from) && row.link < zone)
        .filter(move |row| {
            let name = (row.local, row.link);
            last.replace(name) != Some(name)
        })
}

/// `IFAPROT_KERNEL_LL`, `linux/if_addr.h`.
const LINK_LAYER: u8 = 3;

/// `IpAddressOriginTC`: manual(2), dhcp(4), linklayer(5), random(6).
fn origin(row: &Address) -> i32 {
    let is_set = |bit| row.flags & bit != 0;
    match row.local {
        // Addresses that end were given by DHCP; what sets one by hand sets
        // no end.
        IpAddr::V4(_) if is_set(flag::PERMANENT) => 2,
        IpAddr::V4(_) => 4,
        // IFA_F_TEMPORARY is SECONDARY's bit.
        IpAddr::V6(_) if is_set(flag::SECONDARY | flag::STABLE_PRIVACY) => 6,
        IpAddr::V6(_) if matches!(row.protocol, FROM_RA | LINK_LAYER) => 5,
        // Kernels before 5.18 do not say who made it.
        IpAddr::V6(v6) if row.protocol == 0 && v6.is_unicast_link_local() => 5,
        IpAddr::V6(_) => 2,
    }
}

/// `IpAddressStatusTC`: preferred(1), deprecated(2), tentative(6),
/// duplicate(7), optimistic(8).
fn status(row: &Address) -> i32 {
    let flags = row.flags;
    match () {
        () if flags & flag::DADFAILED != 0 => 7,
        () if flags & flag::OPTIMISTIC != 0 => 8,
        () if flags & flag::TENTATIVE != 0 => 6,
        () if flags & flag::DEPRECATED != 0 => 2,
        () => 1,
    }
}
