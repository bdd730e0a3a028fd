//! Property: a row that is written is read as the same row.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]

#[path = "round_trip/tunnels.rs"]
mod tunnels;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fingerpost_netlink::TooLong;
use fingerpost_netlink::decode::{Decoded, Item, Operation, decode};
use fingerpost_netlink::encode::{self, Request};
use fingerpost_netlink::message::messages;
use ipnet::{IpNet, Ipv6Net};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use table::{
    Address, FdbEntry, GroupMember, LinkLayerAddress, Neighbour, NextHop, NextHops, Nexthop,
    RareMatch, RawAttributes, Route, RouteBody, Rule,
};

const NOW_MILLIS: u64 = 1_700_000_000_000;

fn again(write: impl FnOnce(&mut Vec<u8>, &Request) -> Result<(), TooLong>) -> Item {
    let request = Request {
        operation: Operation::New,
        flags: 0x400,
        sequence: 7,
        now_millis: NOW_MILLIS,
    };
    // Not at the start of the buffer: many requests go out together.
    let mut bytes = vec![0xaa; 3];
    write(&mut bytes, &request).expect("a row that fits");
    let message = messages(&bytes[3..]).next().expect("one").expect("sound");
    assert_eq!((message.flags, message.sequence), (0x401, 7));
    match decode(&message, NOW_MILLIS).expect("what was written") {
        Decoded::Announcement(announcement) => announcement.item,
        other => panic!("{other:?}"),
    }
}

fn v4() -> impl Strategy<Value = IpAddr> {
    any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits)))
}

fn v6() -> impl Strategy<Value = IpAddr> {
    any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits)))
}

fn address_of(is_v4: bool) -> BoxedStrategy<IpAddr> {
    if is_v4 { v4().boxed() } else { v6().boxed() }
}

fn prefix_of(is_v4: bool) -> BoxedStrategy<IpNet> {
    let max = if is_v4 { 32 } else { 128 };
    (address_of(is_v4), 0u8..=max)
        .prop_map(|(address, len)| IpNet::new(address, len).expect("a length in range").trunc())
        .boxed()
}

/// Lifetimes are whole seconds.
fn until() -> impl Strategy<Value = Option<u64>> {
    of((0u64..1_000_000).prop_map(|secs| NOW_MILLIS + secs * 1000))
}

/// Attributes no row has a field for.
fn raw(kind: u16) -> impl Strategy<Value = RawAttributes> {
    vec(any::<u8>(), 0..9).prop_map(move |value| {
        if value.is_empty() {
            return RawAttributes::default();
        }
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        RawAttributes::new(&bytes)
    })
}

fn lladdr() -> impl Strategy<Value = LinkLayerAddress> {
    vec(any::<u8>(), 0..=32)
        .prop_map(|octets| LinkLayerAddress::new(&octets).expect("32 octets at most"))
}

fn text() -> impl Strategy<Value = Box<str>> {
    "[a-z0-9._-]{1,15}".prop_map(Into::into)
}

fn hop() -> impl Strategy<Value = NextHop> {
    let gateway = of(prop_oneof![v4(), v6()]);
    (
        1u32..,
        gateway,
        any::<bool>(),
        1u16..=256,
        any::<u32>(),
        tunnels::encap(),
    )
        .prop_map(|(link, gateway, onlink, weight, realms, encap)| NextHop {
            link,
            gateway,
            flags: if onlink { 4 } else { 0 },
            weight,
            realms,
            encap,
        })
}

fn hops() -> impl Strategy<Value = NextHops> {
    vec(hop(), 0..4).prop_map(|mut hops| match &hops[..] {
        [] => NextHops::None,
        // A weight is said in a list alone, and a list of one stays one.
        [hop] if hop.weight == 1 => NextHops::One(hops.remove(0)),
        _ => NextHops::Many(hops.into()),
    })
}

fn route() -> impl Strategy<Value = Route> {
    any::<bool>().prop_flat_map(|is_v4| {
        let source = of((any::<u128>(), 0u8..=128)
            .prop_map(|(bits, len)| Ipv6Net::new_assert(Ipv6Addr::from(bits), len).trunc()))
        .prop_map(move |source| source.filter(|_| !is_v4));
        let place = (any::<u32>(), prefix_of(is_v4), any::<u8>(), any::<u32>());
        let numbers = (0u8..6, any::<u8>(), any::<u8>(), of(any::<u8>()));
        let body = (
            of(address_of(is_v4)),
            source,
            of(1u32..),
            hops(),
            tunnels::metrics(),
            until(),
            raw(77),
        );
        (place, numbers, body).prop_map(|(place, numbers, body)| {
            let (preferred_source, source, nexthop_id, hops, metrics, expires_at_millis, rest) =
                body;
            // The kernel takes an object or next hops, not both.
            let next_hops = if nexthop_id.is_some() {
                NextHops::None
            } else {
                hops
            };
            Route {
                table: place.0,
                prefix: place.1,
                tos: place.2,
                metric: place.3,
                body: RouteBody {
                    kind: numbers.0,
                    protocol: numbers.1,
                    scope: numbers.2,
                    flags: 0,
                    preferred_source,
                    source,
                    nexthop_id,
                    next_hops,
                    metrics,
                    preference: numbers.3,
                    error: 0,
                    expires_at_millis,
                    rest,
                    path: Default::default(),
                },
            }
        })
    })
}

fn address() -> impl Strategy<Value = Address> {
    any::<bool>().prop_flat_map(|is_v4| {
        let one = move || address_of(is_v4);
        let addresses = (one(), of(one()), of(one()), of(one()));
        let max = if is_v4 { 32 } else { 128 };
        let numbers = (
            any::<u32>(),
            0u8..=max,
            any::<u8>(),
            any::<u32>(),
            any::<u32>(),
            any::<u8>(),
        );
        let link = 0u32..0x7fff_ffff;
        (addresses, numbers, of(text()), until(), until(), link).prop_map(
            |(addresses, numbers, label, valid, preferred, link)| Address {
                link,
                local: addresses.0,
                prefix_len: numbers.1,
                peer: addresses.1.filter(|peer| *peer != addresses.0),
                broadcast: addresses.2,
                anycast: addresses.3,
                label,
                scope: numbers.2,
                flags: numbers.3,
                valid_until_millis: valid,
                preferred_until_millis: preferred,
                metric: numbers.4,
                protocol: numbers.5,
                created_centisecs: numbers.4,
            },
        )
    })
}

fn neighbour() -> impl Strategy<Value = Neighbour> {
    let address = prop_oneof![v4(), v6()];
    let link = 0u32..0x7fff_ffff;
    (
        link,
        address,
        lladdr(),
        any::<u16>(),
        0u32..1 << 20,
        any::<u8>(),
        any::<u8>(),
    )
        .prop_map(
            |(link, address, lladdr, state, flags, protocol, kind)| Neighbour {
                link,
                address,
                proxy: flags & 8 != 0,
                lladdr,
                state,
                flags,
                protocol,
                kind,
            },
        )
}

fn nexthop() -> impl Strategy<Value = Nexthop> {
    let member = (any::<u32>(), 1u32..=65_536).prop_map(|(id, weight)| GroupMember { id, weight });
    let single = (
        of(any::<u32>()),
        of(prop_oneof![v4(), v6()]),
        tunnels::encap(),
    );
    (
        1u32..,
        any::<u8>(),
        any::<u8>(),
        any::<bool>(),
        vec(member, 0..4),
        single,
        raw(99),
    )
        .prop_map(
            |(id, family, protocol, blackhole, group, single, rest)| Nexthop {
                id,
                family,
                protocol,
                blackhole,
                fdb: !blackhole,
                link: single.0,
                gateway: single.1,
                encap: single.2,
                group,
                rest,
                ..Nexthop::default()
            },
        )
}

fn rare() -> impl Strategy<Value = Option<Box<RareMatch>>> {
    let bytes = (of(any::<u8>()), of(any::<u8>()));
    let labels = (of(any::<u32>()), of(any::<u32>()));
    let ports = (of(any::<u16>()), of(any::<u16>()));
    (bytes, labels, ports, raw(99)).prop_map(|(bytes, labels, ports, rest)| {
        let rare = RareMatch {
            dscp: bytes.0,
            dscp_mask: bytes.1,
            flow_label: labels.0,
            flow_label_mask: labels.1,
            source_port_mask: ports.0,
            destination_port_mask: ports.1,
            rest,
        };
        (rare != RareMatch::default()).then(|| Box::new(rare))
    })
}

fn fdb() -> impl Strategy<Value = FdbEntry> {
    let number = || of(any::<u32>());
    let numbers = (number(), number(), number(), number(), number());
    let bytes = (
        any::<u8>(),
        of(any::<u8>()),
        of(any::<u16>()),
        of(any::<u16>()),
    );
    let address = of(prop_oneof![v4(), v6()]);
    let header = (0u32..0x7fff_ffff, lladdr(), any::<u16>(), any::<u16>());
    (header, address, numbers, bytes, raw(99)).prop_map(
        |(header, destination, numbers, bytes, rest)| FdbEntry {
            link: header.0,
            lladdr: header.1,
            vlan: bytes.2,
            // One of the bridge itself would get `SELF`.
            master: numbers.0.filter(|master| *master != header.0),
            destination,
            port: bytes.3,
            vni: numbers.1,
            source_vni: numbers.2,
            via_link: numbers.3,
            link_netns_id: numbers.4.map(u32::cast_signed),
            nexthop_id: numbers.4,
            state: header.2,
            flags: header.3.into(),
            protocol: bytes.0,
            activity: bytes.1,
            rest,
        },
    )
}

fn rule() -> impl Strategy<Value = Rule> {
    any::<bool>().prop_flat_map(|is_v4| {
        let nets = (of(prefix_of(is_v4)), of(prefix_of(is_v4)));
        let numbers = (
            any::<u32>(),
            any::<u32>(),
            any::<u8>(),
            any::<u8>(),
            any::<u8>(),
        );
        let names = (of(text()), of(text()));
        let ranges = (
            of(any::<(u32, u32)>()),
            of(any::<(u16, u16)>()),
            of(any::<(u16, u16)>()),
        );
        let some = (
            of(any::<(u32, u32)>()),
            of(0u32..1000),
            of(0u32..1000),
            of(any::<u64>()),
            of(any::<u32>()),
        );
        (nets, numbers, names, ranges, some, of(any::<u8>()), rare()).prop_map(
            move |(nets, numbers, names, ranges, some, ip_protocol, rare)| Rule {
                family: if is_v4 { 2 } else { 10 },
                priority: numbers.0,
                source: nets.0,
                destination: nets.1,
                tos: numbers.2,
                table: numbers.1,
                action: numbers.3,
                flags: 2,
                iif: names.0,
                oif: names.1,
                fwmark: some.0,
                goto: some.4,
                l3mdev: numbers.4 % 2 == 0,
                uids: ranges.0,
                ip_protocol,
                source_ports: ranges.1,
                destination_ports: ranges.2,
                suppress_prefix_len: some.1,
                suppress_group: some.2,
                tunnel_id: some.3,
                realms: some.4,
                protocol: numbers.4,
                rare,
            },
        )
    })
}

proptest! {
    #[test]
    fn routes(row in route()) {
        let read = again(|out, request| encode::route(out, request, &row));
        prop_assert_eq!(read, Item::Route(row));
    }

    #[test]
    fn addresses(row in address()) {
        let read = again(|out, request| encode::address(out, request, &row));
        prop_assert_eq!(read, Item::Address(row));
    }

    #[test]
    fn neighbours(row in neighbour()) {
        let read = again(|out, request| encode::neighbour(out, request, &row));
        prop_assert_eq!(read, Item::Neighbour(row));
    }

    #[test]
    fn forwarding_entries(row in fdb()) {
        let read = again(|out, request| encode::fdb(out, request, &row));
        prop_assert_eq!(read, Item::Fdb(row));
    }

    #[test]
    fn nexthops(row in nexthop()) {
        let read = again(|out, request| encode::nexthop(out, request, &row));
        prop_assert_eq!(read, Item::Nexthop(row));
    }

    #[test]
    fn rules(row in rule()) {
        let read = again(|out, request| encode::rule(out, request, &row));
        prop_assert_eq!(read, Item::Rule(row));
    }

    #[test]
    fn bytes_of_any_kind_are_walked_to_their_end(bytes in vec(any::<u8>(), 0..300)) {
        for message in messages(&bytes).flatten() {
            let _ = decode(&message, NOW_MILLIS);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_taken_back() {
    let hop = NextHop {
        link: 1,
        weight: 1,
        ..NextHop::default()
    };
    let prefix = "10.0.0.0/8".parse().expect("a prefix");
    let row = Route {
        table: 254,
        prefix,
        tos: 0,
        metric: 0,
        body: RouteBody {
            kind: 1,
            protocol: 3,
            scope: 0,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::Many(vec![hop; 9000].into()),
            metrics: None,
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    };
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 1,
        now_millis: 0,
    };
    let mut out = vec![1, 2, 3, 4];
    assert!(encode::route(&mut out, &request, &row).is_err());
    assert_eq!(out, [1, 2, 3, 4]);
}
