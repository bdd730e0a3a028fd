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
use table::row::route::{kind, table_id};
use table::{
    Address, Change, Link, LinkLayerAddress, Neighbour, NextHop, NextHops, Placement,
    RawAttributes, Route, RouteBody, Tables, Writer,
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

fn any_change() -> impl Strategy<Value = Change> {
    let links = 1u32..8;
    let upper = proptest::option::of(1u32..8);
    let state = prop_oneof![Just(2u16), Just(0x80), Just(0x20), Just(0x40), Just(1)];
    let prefix_len = prop_oneof![Just(24u8), Just(32)];
    prop_oneof![
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
    proptest::collection::vec(any_change(), 0..60).prop_map(|changes| {
        let mut writer = Writer::default();
        writer.commit(changes).unwrap();
        writer.tables().clone()
    })
}
