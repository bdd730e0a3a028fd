//! A second opinion: the corpus read by `netlink-packet-route` as well, main
//! fields compared.
#![allow(clippy::expect_used, reason = "a test fails by it")]

use std::net::IpAddr;

use fingerpost_netlink::decode;
use netlink_packet_core::{DecodeError, Parseable};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkMessage, Prop};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use table::NextHop;

/// Calls `compare` with each payload of a target's corpus that the oracle
/// can read; most must be such.
fn each<M: Parseable<[u8]>>(target: &str, mut compare: impl FnMut(&[u8], M)) {
    let (mut read, mut refused) = (0, 0);
    for payload in lab::corpus::files(target, 5).expect("the corpus") {
        let parsed: Result<M, DecodeError> = M::parse(&payload);
        match parsed {
            Ok(message) => {
                compare(&payload, message);
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        read > 4 && refused <= read / 8,
        "{target}: {read} read, {refused} refused"
    );
}

#[test]
fn routes() {
    each("route", |payload, theirs: RouteMessage| {
        let ours = decode::route(payload, 0).expect("a sound route");
        assert_eq!(
            ours.prefix.prefix_len(),
            theirs.header.destination_prefix_length
        );
        assert_eq!(ours.tos, theirs.header.tos);
        assert_eq!(ours.body.kind, u8::from(theirs.header.kind));
        assert_eq!(ours.body.protocol, u8::from(theirs.header.protocol));
        assert_eq!(ours.body.scope, u8::from(theirs.header.scope));
        let hops = ours.body.next_hops.as_slice();
        let first = hops.first().cloned().unwrap_or_default();
        for attribute in theirs.attributes {
            match attribute {
                RouteAttribute::Table(table) => assert_eq!(ours.table, table),
                RouteAttribute::Destination(to) => assert_eq!(Some(ours.prefix.addr()), ip(&to)),
                RouteAttribute::Priority(metric) => assert_eq!(ours.metric, metric),
                RouteAttribute::PrefSource(from) => {
                    assert_eq!(ours.body.preferred_source, ip(&from));
                }
                RouteAttribute::NhId(id) => assert_eq!(ours.body.nexthop_id, Some(id)),
                RouteAttribute::Preference(preference) => {
                    assert_eq!(ours.body.preference, Some(preference.into()));
                }
                RouteAttribute::MultiPath(theirs) => {
                    assert_eq!(hops.len(), theirs.len());
                    for (ours, theirs) in hops.iter().zip(theirs) {
                        assert_eq!(ours.link, theirs.interface_index);
                        assert_eq!(ours.weight, u16::from(theirs.hops) + 1);
                        theirs
                            .attributes
                            .iter()
                            .for_each(|theirs| hop(ours, theirs));
                    }
                }
                other => hop(&first, &other),
            }
        }
    });
}

fn hop(ours: &NextHop, theirs: &RouteAttribute) {
    match theirs {
        RouteAttribute::Oif(link) => assert_eq!(ours.link, *link),
        RouteAttribute::Gateway(gateway) => assert_eq!(ours.gateway, ip(gateway)),
        RouteAttribute::Via(RouteVia::Inet6(via)) => {
            assert_eq!(ours.gateway, Some(IpAddr::V6(*via)));
        }
        RouteAttribute::EncapType(kind) => {
            let encap = ours.encap.as_ref().map(|encap| encap.kind());
            assert_eq!(encap, Some(u16::from(*kind)));
        }
        _ => {}
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}

#[test]
fn addresses() {
    each("address", |payload, theirs: AddressMessage| {
        let ours = decode::address(payload, 0).expect("a sound address");
        assert_eq!(ours.link, theirs.header.index);
        assert_eq!(ours.prefix_len, theirs.header.prefix_len);
        assert_eq!(ours.scope, u8::from(theirs.header.scope));
        for attribute in theirs.attributes {
            match attribute {
                AddressAttribute::Local(local) => assert_eq!(ours.local, local),
                AddressAttribute::Address(address) => {
                    assert_eq!(ours.peer.unwrap_or(ours.local), address);
                }
                AddressAttribute::Label(label) => assert_eq!(ours.label.as_deref(), Some(&*label)),
                AddressAttribute::Broadcast(broadcast) => {
                    assert_eq!(ours.broadcast, Some(IpAddr::V4(broadcast)));
                }
                AddressAttribute::Flags(flags) => assert_eq!(ours.flags, flags.bits()),
                AddressAttribute::RoutePriority(metric) => assert_eq!(ours.metric, metric),
                AddressAttribute::CacheInfo(info) => {
                    let millis = |secs: u32| (secs != u32::MAX).then(|| u64::from(secs) * 1000);
                    assert_eq!(ours.valid_until_millis, millis(info.ifa_valid));
                    assert_eq!(ours.preferred_until_millis, millis(info.ifa_preferred));
                }
                _ => {}
            }
        }
    });
}

#[test]
fn neighbours() {
    each("neighbour", |payload, theirs: NeighbourMessage| {
        let ours = decode::neighbour(payload).expect("a sound neighbour");
        assert_eq!(ours.link, theirs.header.ifindex);
        assert_eq!(ours.state, u16::from(theirs.header.state));
        assert_eq!(ours.flags & 0xff, u32::from(theirs.header.flags.bits()));
        for attribute in theirs.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => {
                    assert_eq!(ours.address, IpAddr::V4(v4));
                }
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => {
                    assert_eq!(ours.address, IpAddr::V6(v6));
                }
                NeighbourAttribute::LinkLayerAddress(octets) => {
                    assert_eq!(ours.lladdr.octets(), octets);
                }
                NeighbourAttribute::Protocol(protocol) => {
                    assert_eq!(ours.protocol, u8::from(protocol));
                }
                _ => {}
            }
        }
    });
}

#[test]
fn links() {
    each("link", |payload, theirs: LinkMessage| {
        // A bridge's word about its port, not a link.
        if payload.first() == Some(&7) {
            return;
        }
        let ours = decode::link(payload).expect("a sound link");
        assert_eq!(ours.index, theirs.header.index);
        assert_eq!(ours.flags, theirs.header.flags.bits());
        assert_eq!(ours.hardware, u16::from(theirs.header.link_layer_type));
        for attribute in theirs.attributes {
            match attribute {
                LinkAttribute::IfName(name) => assert_eq!(*ours.name, *name),
                LinkAttribute::IfAlias(alias) => assert_eq!(ours.alias.as_deref(), Some(&*alias)),
                LinkAttribute::Qdisc(qdisc) => assert_eq!(ours.qdisc.as_deref(), Some(&*qdisc)),
                LinkAttribute::Mtu(mtu) => assert_eq!(ours.mtu, mtu),
                LinkAttribute::Link(lower) => assert_eq!(ours.lower, Some(lower)),
                LinkAttribute::Controller(master) => assert_eq!(ours.master, Some(master)),
                LinkAttribute::Group(group) => assert_eq!(ours.group, group),
                LinkAttribute::TxQueueLen(len) => assert_eq!(ours.tx_queue_len, len),
                LinkAttribute::Address(octets) => assert_eq!(ours.address.octets(), octets),
                LinkAttribute::PropList(properties) => {
                    let theirs = properties.iter().filter_map(|property| match property {
                        Prop::AltIfName(name) => Some(name.as_str()),
                        _ => None,
                    });
                    assert!(theirs.eq(ours.alt_names.iter().map(|name| &**name)));
                }
                LinkAttribute::Stats64(stats) => {
                    let ours = decode::link_counters(payload).expect("counters");
                    assert_eq!(ours.rx_packets, stats.rx_packets);
                    assert_eq!(ours.tx_bytes, stats.tx_bytes);
                    assert_eq!(ours.rx_nohandler, stats.rx_nohandler);
                }
                _ => {}
            }
        }
    });
}
