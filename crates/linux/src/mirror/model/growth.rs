//! What an event costs does not grow with what is there: counted in nodes
//! and rows of the tables that are looked at, and in bytes of nodes that are
//! copied because a snapshot shares them, which no clock blurs.

use std::net::IpAddr;

use table::row::link::flag;
use table::row::neighbour::state;
use table::row::route::{kind, protocol, scope, table_id};
use table::{LinkLayerAddress, Neighbour, RawAttributes};

use super::*;

/// An event may cost so much more with sixteen times as many rows: a tree
/// is a level or two higher.
const GROWTH: f64 = 1.6;

fn event(operation: Operation, item: Item) -> Announcement {
    Announcement {
        operation,
        flags: 0,
        is_requested: false,
        item,
    }
}

fn link(index: u32, flags: u32) -> Item {
    Item::Link(Link {
        index,
        name: format!("e{index}").into(),
        flags,
        ..Link::default()
    })
}

fn route(table: u32, prefix: &str, of: u8, link: u32, preferred: Option<IpAddr>) -> Item {
    let prefix: ipnet::IpNet = prefix.parse().unwrap();
    let is_v6 = prefix.addr().is_ipv6();
    Item::Route(Route {
        table,
        prefix,
        tos: 0,
        metric: if is_v6 { 256 } else { 0 },
        body: RouteBody {
            kind: of,
            protocol: protocol::KERNEL,
            scope: if is_v6 { scope::UNIVERSE } else { scope::LINK },
            flags: 0,
            preferred_source: preferred,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::One(NextHop {
                link,
                weight: 1,
                ..NextHop::default()
            }),
            metrics: Default::default(),
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    })
}

/// What a new link with IPv6 brings, and what its loss takes along.
fn link_with_v6(number: u32) -> Vec<Announcement> {
    let index = number + 2;
    let own = format!("fe80::{:x}:{:x}", index >> 16, index & 0xffff);
    let local = own.parse().unwrap();
    let (main, of_host) = (table_id::MAIN, table_id::LOCAL);
    let up = flag::UP | flag::RUNNING | flag::LOWER_UP;
    let routes = [
        route(of_host, "ff00::/8", kind::MULTICAST, index, None),
        route(main, "fe80::/64", kind::UNICAST, index, None),
        route(of_host, "fe80::/128", kind::ANYCAST, index, None),
        route(of_host, &format!("{own}/128"), kind::LOCAL, index, None),
    ];
    let new = [link(index, 0), link(index, up)].into_iter();
    let address = Item::Address(Address::new(index, local, 64));
    let mut events: Vec<_> = new
        .chain(routes.clone())
        .chain([address])
        .map(|item| event(Operation::New, item))
        .collect();
    // Every fourth goes again.
    if number % 4 == 3 {
        let old = routes.map(|item| event(Operation::Delete, item));
        events.extend(old);
        events.push(event(Operation::Delete, link(index, up)));
    }
    events
}

/// One more address of one link, with its routes.
fn alias(number: u32) -> Vec<Announcement> {
    let own: IpAddr = std::net::Ipv4Addr::from(0x0a00_0001 + number).into();
    let host = format!("{own}/32");
    let routes = [
        route(table_id::LOCAL, &host, kind::LOCAL, 2, Some(own)),
        route(table_id::MAIN, "10.0.0.0/8", kind::UNICAST, 2, Some(own)),
        route(
            table_id::LOCAL,
            "10.255.255.255/32",
            kind::BROADCAST,
            2,
            Some(own),
        ),
    ];
    let address = Item::Address(Address::new(2, own, 8));
    let mut events = vec![event(Operation::New, address.clone())];
    events.extend(routes.clone().map(|item| event(Operation::New, item)));
    if number % 4 == 3 {
        events.extend(routes.map(|item| event(Operation::Delete, item)));
        events.push(event(Operation::Delete, address));
    }
    events
}

fn neighbour(number: u32) -> Vec<Announcement> {
    let row = |last: u8| {
        let mac = number.to_be_bytes();
        Item::Neighbour(Neighbour {
            link: 2 + number % 7,
            address: std::net::Ipv4Addr::from(0x0a00_0000 + number).into(),
            proxy: false,
            lladdr: LinkLayerAddress::new(&[2, last, mac[0], mac[1], mac[2], mac[3]]).unwrap(),
            state: state::REACHABLE,
            flags: 0,
            protocol: 0,
            kind: kind::UNICAST,
        })
    };
    let mut events = vec![event(Operation::New, row(1)), event(Operation::New, row(2))];
    if number % 4 == 3 {
        events.push(event(Operation::Delete, row(2)));
    }
    events
}

/// What an event costs.
#[derive(Debug, Default)]
struct Cost {
    /// Nodes and rows looked at.
    touched: f64,
    /// Bytes of nodes copied.
    copied: f64,
}

/// What an event costs of the last eighth of them, where snapshots are
/// published after those of each row.
fn cost(rows: u32, of: fn(u32) -> Vec<Announcement>) -> Option<Cost> {
    let mut model = Model::default();
    let (mut touched, mut copied, mut events) = (0, 0, 0);
    for number in 0..rows {
        let before = (table::touched()?, table::copied()?);
        let of_row = of(number);
        let count = of_row.len();
        for event in of_row {
            model.event(event).unwrap();
        }
        model.writer().without_events();
        model.writer().publish();
        if number >= rows - rows / 8 {
            touched += table::touched()? - before.0;
            copied += table::copied()? - before.1;
            events += count;
        }
    }
    let of_event = |all: u64| all as f64 / events as f64;
    Some(Cost {
        touched: of_event(touched),
        copied: of_event(copied),
    })
}

fn grows_slowly(rows: u32, of: fn(u32) -> Vec<Announcement>) {
    // A build that does not count has nothing to say.
    let (Some(few), Some(many)) = (cost(rows / 16, of), cost(rows, of)) else {
        return;
    };
    assert!(
        few.touched > 1.0 && few.copied > 1.0,
        "not counted: {few:?}"
    );
    assert!(
        many.touched < few.touched * GROWTH && many.copied < few.copied * GROWTH,
        "an event costs {few:?} with {} and {many:?} with {rows}",
        rows / 16
    );
}

#[test]
fn links_with_v6_up_to_16_000() {
    grows_slowly(16_000, link_with_v6);
}

#[test]
fn aliases_of_a_link_up_to_16_384() {
    grows_slowly(16_384, alias);
}

#[test]
fn neighbours_up_to_100_000() {
    grows_slowly(100_000, neighbour);
}
