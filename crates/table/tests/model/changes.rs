//! Changes at random, out of few keys, so that they meet.

use std::net::IpAddr;

use proptest::prelude::*;
use table::row::neighbour::state;
use table::row::route::{kind, protocol, scope};
use table::{
    Address, Change, FdbEntry, Limits, Link, LinkLayerAddress, Neighbour, NextHop, NextHops,
    Nexthop, OtherRoute, OtherRouteKey, Placement, RawAttributes, Route, RouteBody, Rule,
};

#[derive(Debug, Clone)]
pub enum Step {
    Change(Aimed),
    Limits(Limits),
    /// Keep a snapshot until the end.
    Keep,
}

/// A change; those that name a whole row may be aimed at one that is there.
#[derive(Debug, Clone)]
pub enum Aimed {
    Put(Change),
    Delete(Change),
    /// Delete the n-th route, rule.
    DeleteRoute(usize),
    DeleteRule(usize),
    ReplaceRule(usize, u8),
}

pub fn limits_of(rows: usize) -> Limits {
    Limits {
        links: rows,
        addresses: rows,
        neighbours: rows,
        // Of two kinds.
        routes: rows * 2,
        nexthops: rows,
        rules: rows,
        fdb: rows,
    }
}

pub fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        3 => Just(limits_of(1_000)),
        2 => (0usize..6).prop_map(limits_of),
    ]
}

pub fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        8 => put().prop_map(Aimed::Put),
        3 => delete().prop_map(Aimed::Delete),
        2 => any::<usize>().prop_map(Aimed::DeleteRoute),
        1 => any::<usize>().prop_map(Aimed::DeleteRule),
        1 => (any::<usize>(), 0u8..3).prop_map(|(at, tos)| Aimed::ReplaceRule(at, tos)),
    ];
    prop_oneof![
        30 => change.prop_map(Step::Change),
        1 => limits().prop_map(Step::Limits),
        1 => Just(Step::Keep),
    ]
}

fn put() -> impl Strategy<Value = Change> {
    let one = || 1u32..5;
    prop_oneof![
        (one(), one(), 0u32..4, any::<bool>())
            .prop_map(|(index, name, master, up)| Change::PutLink(link(index, name, master, up))),
        // Listed, as the kernel does: none is newer than those before it.
        own_address().prop_map(|row| Change::PutAddress(Address {
            created_centisecs: 0,
            ..row
        })),
        own_address().prop_map(Change::AddAddress),
        (one(), address(), any::<bool>(), 0u8..3).prop_map(|(link, to, proxy, mac)| {
            Change::PutNeighbour(neighbour(link, to, proxy, mac))
        }),
        (route(), placement()).prop_map(|(route, at)| Change::PutRoute(route, at)),
        (one(), 0u8..2).prop_map(|(place, tos)| Change::PutOtherRoute(other(place, tos))),
        (one(), one(), proptest::collection::vec(1u32..5, 0..3))
            .prop_map(|(id, link, group)| Change::PutNexthop(nexthop(id, link, &group))),
        (0u32..3, 0u8..3).prop_map(|(priority, tos)| Change::PutRule(rule(priority, tos))),
        fdb().prop_map(Change::PutFdb),
    ]
}

fn own_address() -> impl Strategy<Value = Address> {
    let parts = (1u32..5, address(), 0u8..3, 0u32..3, any::<bool>());
    parts.prop_map(
        |(link, local, label, created_centisecs, secondary)| Address {
            label: (label > 0).then(|| format!("l{label}").into()),
            scope: if label == 2 { scope::LINK } else { 0 },
            flags: u32::from(secondary),
            created_centisecs,
            ..Address::new(link, local, 24)
        },
    )
}

fn delete() -> impl Strategy<Value = Change> {
    put().prop_map(|put| match put {
        Change::PutLink(row) => Change::DeleteLink(row.index),
        Change::PutAddress(row) | Change::AddAddress(row) => Change::DeleteAddress(row.key()),
        Change::PutNeighbour(row) => Change::DeleteNeighbour(row.key()),
        Change::PutRoute(row, _) => {
            let body = row.body.clone().into();
            Change::DeleteRoute(row.with_body(body))
        }
        Change::PutOtherRoute(row) => Change::DeleteOtherRoute(row.key),
        Change::PutNexthop(row) => Change::DeleteNexthop(row.id),
        Change::PutRule(row) => Change::DeleteRule(row),
        Change::PutFdb(row) => Change::DeleteFdb(row.key()),
        delete => delete,
    })
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        Just(Placement::First),
        Just(Placement::Last),
        Just(Placement::InsteadOfFirst),
    ]
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u8..4, 1u8..4).prop_map(|(net, host)| IpAddr::from([10, 0, net, host])),
        (0u16..3, 1u16..4).prop_map(|(net, host)| {
            let first = [0x2001, 0xfe80, 0xfc00][usize::from(net)];
            IpAddr::from([first, 0, 0, 0, 0, 0, 0, host])
        }),
    ]
}

pub fn mac(last: u8) -> LinkLayerAddress {
    LinkLayerAddress::new(&[2, 0, 0, 0, 0, last][..if last == 0 { 0 } else { 6 }]).unwrap()
}

fn link(index: u32, name: u32, master: u32, up: bool) -> Link {
    Link {
        index,
        // Names are unique in a kernel.
        name: format!("e{index}.{name}").into(),
        alt_names: [format!("alt{index}.{}", name % 2).into()].into(),
        flags: u32::from(up),
        master: (master > 0).then_some(master + 100),
        lower: (master > 1).then_some(master + 200),
        ..Link::default()
    }
}

fn neighbour(link: u32, address: IpAddr, proxy: bool, lladdr: u8) -> Neighbour {
    Neighbour {
        link,
        address,
        proxy,
        lladdr: mac(lladdr),
        state: state::REACHABLE,
        flags: 0,
        protocol: 0,
        kind: kind::UNICAST,
    }
}

pub fn body(link: u32, gateway: Option<IpAddr>) -> RouteBody {
    let hop = |link| NextHop {
        link,
        gateway,
        weight: 1,
        ..NextHop::default()
    };
    RouteBody {
        kind: kind::UNICAST,
        protocol: protocol::STATIC,
        scope: scope::UNIVERSE,
        flags: 0,
        preferred_source: gateway.filter(|_| link == 1),
        source: None,
        nexthop_id: (link == 2).then_some(link),
        next_hops: match link {
            0 => NextHops::None,
            4 => NextHops::Many([hop(1), hop(4)].into()),
            _ => NextHops::One(hop(link)),
        },
        metrics: Default::default(),
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    }
}

pub fn route() -> impl Strategy<Value = Route> {
    let prefix = prop_oneof![
        (0u8..3, 22u8..26).prop_map(|(net, len)| format!("10.0.{net}.0/{len}")),
        (0u8..3, 8u8..10).prop_map(|(net, len)| format!("fe{net}0::/{len}")),
    ];
    let place = (prefix, 254u32..256, 0u8..2, 0u32..2);
    (place, 0u32..5, address()).prop_map(|((prefix, table, tos, metric), link, via)| {
        let prefix: ipnet::IpNet = prefix.parse().unwrap();
        let via = (link != 3).then_some(via);
        Route {
            table,
            prefix: prefix.trunc(),
            tos,
            metric,
            body: body(link, via),
        }
    })
}

fn other(place: u32, tos: u8) -> OtherRoute {
    let mut header = [0; 12];
    header[3] = tos;
    OtherRoute {
        key: OtherRouteKey {
            family: 28,
            table: 254,
            place: place.to_be_bytes().into(),
        },
        header,
        attributes: RawAttributes::default(),
    }
}

fn nexthop(id: u32, link: u32, group: &[u32]) -> Nexthop {
    let member = |&id| table::GroupMember { id, weight: 1 };
    Nexthop {
        id,
        link: group.is_empty().then_some(link),
        group: group.iter().map(member).collect(),
        ..Nexthop::default()
    }
}

pub fn rule(priority: u32, tos: u8) -> Rule {
    Rule {
        family: if priority == 2 { 10 } else { 2 },
        priority,
        tos,
        ..Rule::default()
    }
}

fn fdb() -> impl Strategy<Value = FdbEntry> {
    (1u32..4, 0u8..4, 0u16..2, 0u8..4).prop_map(|(link, last, vlan, what)| {
        let lladdr = if last == 3 {
            LinkLayerAddress::new(&[0; 6]).unwrap()
        } else {
            mac(last + 1)
        };
        let remote = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        FdbEntry {
            link,
            lladdr,
            vlan: (vlan > 0).then_some(vlan),
            master: (what < 2).then_some(9),
            destination: if what < 2 { None } else { remote(what) },
            port: None,
            vni: None,
            source_vni: None,
            via_link: None,
            link_netns_id: None,
            nexthop_id: None,
            state: if what == 0 {
                state::PERMANENT
            } else {
                state::REACHABLE
            },
            flags: 0,
            protocol: 0,
            activity: None,
            rest: RawAttributes::default(),
        }
    })
}

/// A new row of every table.
pub fn one_of_each(number: u32) -> [Change; 8] {
    rows(number, 1)
}

/// The rows of [`one_of_each`], changed but for their keys.
pub fn changes_of_each(number: u32) -> Vec<Change> {
    let mut changes = rows(number, 2).to_vec();
    // A rule has no key but itself: one takes another's place.
    changes.retain(|change| !matches!(change, Change::PutRule(_)));
    changes.push(Change::ReplaceRule(rule(number, 1), rule(number, 2)));
    changes
}

fn rows(number: u32, version: u8) -> [Change; 8] {
    let last = number as u8;
    let to = IpAddr::from([10, 0, 0, last]);
    let route = Route {
        table: 254,
        prefix: ipnet::IpNet::from(to),
        tos: 0,
        metric: 0,
        body: body(version.into(), None),
    };
    let fdb = FdbEntry {
        link: number,
        lladdr: mac(last),
        vlan: None,
        master: Some(9),
        destination: None,
        port: None,
        vni: None,
        source_vni: None,
        via_link: None,
        link_netns_id: None,
        nexthop_id: None,
        state: version.into(),
        flags: 0,
        protocol: 0,
        activity: None,
        rest: RawAttributes::default(),
    };
    let scope = version;
    [
        Change::PutLink(link(number, version.into(), 0, true)),
        Change::PutAddress(Address {
            scope,
            ..Address::new(number, to, 24)
        }),
        Change::PutNeighbour(neighbour(number, to, false, version)),
        Change::PutRoute(route, Placement::InsteadOfFirst),
        Change::PutOtherRoute(other(number, version)),
        Change::PutNexthop(nexthop(number, version.into(), &[])),
        Change::PutRule(rule(number, version)),
        Change::PutFdb(fdb),
    ]
}
