//! Made-up tables, and walks that are kept.

#![allow(dead_code, reason = "each test uses its part")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;
use std::time::Instant;

use fingerpost_mib::{Engine, Health, History, MibContext, Objects, Reads, SampleTimes, System};
use ipnet::IpNet;
use proptest::prelude::*;
use snmp::Mib;
use snmp::counters::Counters;
use table::row::link::bridge::{Bridge, BridgePort};
use table::row::link::hardware;
use table::row::route::{kind, table_id};
use table::{
    Address, BridgeVlan, Change, CountedBeside, Endpoint, FdbEntry, FileSystem, Host, IpInterface,
    KindData, Link, LinkLayerAddress, Machine, Neighbour, NeighbourTimes, NextHop, NextHops,
    Placement, PortData, Processor, ProtocolCounters, RawAttributes, Reach, Route, RouteBody,
    Sample, Socket, Sockets, Tables, Writer,
};

/// A name and its value in words.
pub type Binding = (Vec<u32>, String);

/// Everything behind a name, up to `most`.
pub fn walk_from(mib: &dyn Mib, after: &[u32], most: usize) -> Vec<Binding> {
    let mut all = Vec::new();
    mib.walk(after, &mut |name, value| {
        all.push((name.to_vec(), format!("{value:?}")));
        if all.len() < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    all
}

/// The value of a name in words.
pub fn get(mib: &dyn Mib, name: &[u32]) -> String {
    let mut got = Vec::new();
    mib.get(&[name], &mut |at, value| {
        got.push((at, format!("{value:?}")))
    });
    assert_eq!(got.len(), 1, "{name:?}: {got:?}");
    got.remove(0).1
}

/// What stands beside the tables.
#[derive(Default)]
pub struct Rest {
    pub system: System,
    pub history: History,
    pub counters: Counters,
    pub health: Health,
    pub reads: Reads,
    pub beside: Option<CountedBeside>,
}

impl Rest {
    pub fn objects<'a>(&'a self, tables: &'a Tables) -> Objects<'a> {
        let moment = MibContext {
            tables,
            system: &self.system,
            engine: Engine {
                id: b"engine",
                boots: 7,
                max_message_bytes: 1_472,
                sends_authentication_failures: false,
                counters: &self.counters,
            },
            history: &self.history,
            health: &self.health,
            up_millis: 60_000,
            ahead_millis: 0,
            now: Instant::now(),
            sampled: SampleTimes::default(),
            beside: self.beside.as_ref(),
            reads: &self.reads,
            now_millis: 61_000,
        };
        Objects::new(moment, table_id::MAIN)
    }
}

pub fn link(index: u32, master: Option<u32>, lower: Option<u32>) -> Link {
    Link {
        index,
        name: format!("l{index}").into(),
        flags: index % 2,
        kind: Some("vlan".into()),
        master,
        lower,
        ..Link::default()
    }
}

pub fn address(link: u32, local: IpAddr, prefix_len: u8) -> Address {
    Address {
        flags: 0x80,
        ..Address::new(link, local, prefix_len)
    }
}

pub fn neighbour(link: u32, address: IpAddr, state: u16, proxy: bool) -> Neighbour {
    Neighbour {
        link,
        address,
        proxy,
        lladdr: LinkLayerAddress::NONE,
        state,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

pub fn route(prefix: IpNet, tos: u8, metric: u32, hops: &[(u32, Option<IpAddr>)]) -> Route {
    let hop = |&(link, gateway): &(u32, Option<IpAddr>)| NextHop {
        link,
        gateway,
        weight: 1,
        ..NextHop::default()
    };
    let next_hops = match hops {
        [] => NextHops::None,
        [one] => NextHops::One(hop(one)),
        many => NextHops::Many(many.iter().map(hop).collect()),
    };
    Route {
        table: table_id::MAIN,
        prefix,
        tos,
        metric,
        body: RouteBody {
            kind: kind::UNICAST,
            protocol: 4,
            scope: 0,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops,
            metrics: None,
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    }
}

fn v4() -> impl Strategy<Value = IpAddr> {
    let octet = prop_oneof![Just(0u8), Just(1), Just(128), Just(255)];
    (octet.clone(), octet).prop_map(|(b, d)| IpAddr::V4(Ipv4Addr::new(10, b, 0, d)))
}

fn v6() -> impl Strategy<Value = IpAddr> {
    let first = prop_oneof![Just(0x2001u16), Just(0xfe80), Just(0xfec0), Just(0)];
    (first, 0u16..3).prop_map(|(a, h)| IpAddr::V6(Ipv6Addr::new(a, 0, 0, 0, 0, 0, 0, h)))
}

pub fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![v4(), v6()]
}

pub fn any_prefix() -> impl Strategy<Value = IpNet> {
    let lens = prop_oneof![Just(0u8), Just(8), Just(16), Just(24), Just(31), Just(32)];
    (any_address(), lens).prop_map(|(address, len)| {
        let len = if address.is_ipv6() { len * 4 } else { len };
        IpNet::new(address, len).unwrap().trunc()
    })
}

pub fn any_route() -> impl Strategy<Value = (Route, Placement)> {
    let metric = prop_oneof![4 => Just(0u32), 4 => Just(1_024), 1 => Just(5), 1 => Just(u32::MAX)];
    let tos = prop_oneof![5 => Just(0u8), 1 => Just(16)];
    let placement = prop_oneof![
        Just(Placement::First),
        Just(Placement::Last),
        Just(Placement::InsteadOfFirst)
    ];
    let hop = (1u32..4, proptest::option::of(any_address()));
    let hops = proptest::collection::vec(hop, 0..5);
    (any_prefix(), tos, metric, hops, placement).prop_map(|(prefix, tos, metric, hops, place)| {
        let hops: Vec<_> = hops
            .into_iter()
            .filter(|(_, gateway)| {
                gateway.is_none_or(|gateway| prefix.addr().is_ipv4() || gateway.is_ipv6())
            })
            .collect();
        (route(prefix, tos, metric, &hops), place)
    })
}

/// A bridge that filters VLANs, or one that does not.
fn bridge(index: u32, filters: bool) -> Link {
    let settings = Bridge {
        vlan_filtering: Some(filters.into()),
        ..Bridge::default()
    };
    Link {
        index,
        name: format!("l{index}").into(),
        kind: Some("bridge".into()),
        kind_data: KindData::Bridge(Box::new(settings)),
        address: mac(index as u8),
        flags: index % 2,
        ..Link::default()
    }
}

/// A port of a bridge; their numbers are in no order of their indexes.
fn port(index: u32, master: u32) -> Link {
    let settings = BridgePort {
        no: Some(9 - index as u16),
        ..BridgePort::default()
    };
    Link {
        hardware: hardware::ETHER,
        address: mac(index as u8),
        flags: 2 | (index % 2),
        broadcast: LinkLayerAddress::new(&[0xff; 6]).unwrap(),
        slave_data: PortData::Bridge(Box::new(settings)),
        ..link(index, Some(master), None)
    }
}

fn mac(last: u8) -> LinkLayerAddress {
    LinkLayerAddress::new(&[2, 0, 0, 0, 0, last]).unwrap()
}

fn any_mac() -> impl Strategy<Value = LinkLayerAddress> {
    let first = prop_oneof![4 => Just(2u8), 1 => Just(1), 1 => Just(0x33), 1 => Just(0xfe)];
    (first, 0u8..5)
        .prop_map(|(first, last)| LinkLayerAddress::new(&[first, 0, 0, 0, 0, last]).unwrap())
}

/// An entry of a bridge, or of the device itself.
pub fn fdb(
    link: u32,
    master: Option<u32>,
    lladdr: LinkLayerAddress,
    vlan: Option<u16>,
    state: u16,
) -> FdbEntry {
    FdbEntry {
        link,
        lladdr,
        vlan,
        master,
        destination: None,
        port: None,
        vni: None,
        source_vni: None,
        via_link: None,
        link_netns_id: None,
        nexthop_id: None,
        state,
        flags: 0,
        protocol: 0,
        activity: None,
        rest: RawAttributes::default(),
    }
}

fn any_end() -> impl Strategy<Value = Endpoint> {
    let port = prop_oneof![Just(0u16), Just(22), Just(u16::MAX)];
    (proptest::option::of(any_address()), 1u32..3, port).prop_map(|(address, link, port)| {
        let link_local = matches!(address, Some(IpAddr::V6(v6)) if v6.is_unicast_link_local());
        let reach = match address {
            None => Reach::Any,
            Some(IpAddr::V4(_)) => Reach::V4,
            Some(_) if link_local => Reach::Zoned,
            Some(_) => Reach::V6,
        };
        Endpoint {
            reach,
            address: address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            zone: if link_local { link } else { 0 },
            port,
        }
    })
}

fn any_sockets() -> impl Strategy<Value = Vec<Socket>> {
    let one = (any_end(), any_end(), 0u32..3, 1u8..13);
    let one = one.prop_map(|(local, remote, inode, state)| Socket {
        local,
        remote,
        inode,
        state,
    });
    proptest::collection::vec(one, 0..12)
}

/// What stands beside the tables: everything sampled, or nothing.
fn any_host() -> impl Strategy<Value = Host> {
    let links = proptest::collection::vec((1u32..9, any::<bool>(), any::<bool>()), 0..8);
    let vlans = proptest::collection::vec((1u32..9, 0u16..5), 0..8);
    let sockets = (any_sockets(), any_sockets(), any_sockets());
    let host = (sockets, links, vlans).prop_map(|((tcp, listeners, udp), links, vlans)| {
        let mut interfaces = std::collections::BTreeMap::new();
        for (link, v4, v6) in links {
            let times = NeighbourTimes::default();
            let of = IpInterface {
                v4: v4.then_some(times),
                v6: v6.then_some(times),
                forwards_v6: v4,
            };
            interfaces.insert(link, of);
        }
        let vlans: std::collections::BTreeSet<(u32, u16)> = vlans.into_iter().collect();
        let vlans = vlans.into_iter().map(|key| (key, BridgeVlan::default()));
        let processors = [0, 3].map(|number| Processor {
            number,
            load_percent: 7,
        });
        let machine = Machine {
            processors: processors.to_vec(),
            file_systems: [1, 3]
                .map(|number| FileSystem {
                    number,
                    ..Default::default()
                })
                .into(),
            ..Machine::default()
        };
        Host {
            protocols: Some(ProtocolCounters::default().into()),
            sockets: Sockets::new(1, tcp, listeners, udp).into(),
            machine: Some(machine.into()),
            ip_interfaces: Sample::new(1, interfaces.into_iter().collect()).into(),
            duplex: Sample::new(1, vec![(1, 1)]).into(),
            bridge_vlans: Sample::new(1, vlans.collect()).into(),
            port_vlans: Sample::new(1, vec![(1, 1), (2, 1)]).into(),
            unannounced: std::sync::Arc::default(),
            unbalanced: std::sync::Arc::default(),
        }
    });
    prop_oneof![1 => Just(Host::default()), 5 => host]
}

fn any_change() -> impl Strategy<Value = Change> {
    let links = 1u32..8;
    let upper = proptest::option::of(1u32..8);
    let state = prop_oneof![Just(2u16), Just(0x80), Just(0x20), Just(0x40), Just(1)];
    let prefix_len = prop_oneof![Just(24u8), Just(32)];
    let vlan = proptest::option::of(1u16..4);
    prop_oneof![
        1 => (1u32..8, any::<bool>()).prop_map(|(at, filters)| Change::PutLink(bridge(at, filters))),
        2 => (1u32..8, 1u32..8).prop_map(|(index, master)| Change::PutLink(port(index, master))),
        5 => (1u32..8, proptest::option::of(1u32..8), any_mac(), vlan, state.clone())
            .prop_map(|(link, master, lladdr, vlan, state)| {
                Change::PutFdb(fdb(link, master, lladdr, vlan, state))
            }),
        6 => any_route().prop_map(|(route, place)| Change::PutRoute(route, place)),
        2 => (links.clone(), upper.clone(), upper)
            .prop_map(|(index, master, lower)| Change::PutLink(link(index, master, lower))),
        2 => (links.clone(), any_address(), prefix_len)
            .prop_map(|(link, local, len)| Change::PutAddress(address(link, local, len))),
        2 => (links, any_address(), state, any::<bool>())
            .prop_map(|(link, at, state, proxy)| {
                Change::PutNeighbour(neighbour(link, at, state, proxy))
            }),
    ]
}

/// Small tables full of collisions.
pub fn any_tables() -> impl Strategy<Value = Tables> {
    let changes = proptest::collection::vec(any_change(), 0..80);
    (changes, any_host()).prop_map(|(changes, host)| {
        let mut writer = Writer::default();
        writer.commit(changes).unwrap();
        writer.publish_host(|published| *published = host);
        writer.tables().clone()
    })
}
