//! What is done with the bytes of the forwarding target: frames through a
//! whole router, with translation in between. Nothing that leaves has a
//! broken header, and each frame that came in left or was counted.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::sync::Arc;

use fingerpost_dataplane::Pool;
use fingerpost_dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use fingerpost_dataplane::forward::{Forwarder, GONE, HOST, Reason, Settings};
use fingerpost_dataplane::neighbour::Limits;
use fingerpost_nat::{Config, Nat};
use memory::quiescent::{Domain, Reader};
use table::row::link::flag;
use table::row::route::{kind, protocol, scope, table_id};
use table::row::{attributes::RawAttributes, neighbour::state, rule::action};
use table::{
    AF_INET, AF_INET6, Address, Change, Link, LinkLayerAddress, Neighbour, NextHop, NextHops,
    Placement, Route, RouteBody, Rule, Writer,
};

const BUFFERS: usize = 1_024;
const PACKET_BYTES: usize = 65_535;

struct Router {
    forwarder: Forwarder,
    reader: Reader,
    now_millis: u64,
}

thread_local! {
    static ROUTER: RefCell<Option<Router>> = RefCell::new(router());
}

fn route(prefix: &str, of: u8, link: u32, gateway: Option<&str>) -> Option<Change> {
    let table = if of == kind::LOCAL {
        table_id::LOCAL
    } else {
        table_id::MAIN
    };
    let hop = NextHop {
        link,
        gateway: gateway.and_then(|gateway| gateway.parse().ok()),
        weight: 1,
        ..NextHop::default()
    };
    let body = RouteBody {
        kind: of,
        protocol: protocol::STATIC,
        scope: scope::UNIVERSE,
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: None,
        next_hops: NextHops::One(hop),
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    };
    let route = Route {
        table,
        prefix: prefix.parse().ok()?,
        tos: 0,
        metric: 0,
        body,
    };
    Some(Change::PutRoute(route, Placement::Last))
}

/// Links em2 (inside) and em3 (outside) with Ethernet, em4 without; IPv4
/// and IPv6 routes of all kinds.
fn changes() -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    for (family, priority, table) in [
        (AF_INET, 0, table_id::LOCAL),
        (AF_INET, 1, table_id::MAIN),
        (AF_INET6, 0, table_id::LOCAL),
        (AF_INET6, 1, table_id::MAIN),
    ] {
        changes.push(Change::PutRule(Rule {
            family,
            priority,
            table,
            action: action::TO_TABLE,
            ..Rule::default()
        }));
    }
    for index in 2..5 {
        changes.push(Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags: flag::UP,
            address: LinkLayerAddress::new(&[2, 0, 0, 0, 0, index as u8])?,
            mtu: 600,
            ..Link::default()
        }));
    }
    for (link, local) in [(2, "10.0.2.1"), (3, "192.0.2.1"), (2, "2001:db8:2::1")] {
        changes.push(Change::PutAddress(Address::new(
            link,
            local.parse().ok()?,
            24,
        )));
    }
    for (prefix, of, link, gateway) in [
        ("10.0.2.1/32", kind::LOCAL, 2, None),
        ("192.0.2.1/32", kind::LOCAL, 3, None),
        ("10.0.2.0/24", kind::UNICAST, 2, None),
        ("10.0.4.0/24", kind::UNICAST, 4, None),
        ("10.0.5.0/24", kind::PROHIBIT, 0, None),
        ("10.0.6.0/24", kind::BLACKHOLE, 0, None),
        ("0.0.0.0/0", kind::UNICAST, 3, Some("192.0.2.254")),
        ("2001:db8:2::/64", kind::UNICAST, 2, None),
        ("::/0", kind::UNICAST, 3, Some("fe80::254")),
    ] {
        changes.push(route(prefix, of, link, gateway)?);
    }
    for (link, address) in [(2, "10.0.2.5"), (3, "192.0.2.254"), (3, "fe80::254")] {
        changes.push(Change::PutNeighbour(Neighbour {
            link,
            address: address.parse().ok()?,
            proxy: false,
            lladdr: LinkLayerAddress::new(&[2, 7, 0, 0, 0, link as u8])?,
            state: state::REACHABLE,
            flags: 0,
            protocol: 0,
            kind: kind::UNICAST,
        }));
    }
    Some(changes)
}

fn router() -> Option<Router> {
    let mut writer = Writer::default();
    writer.commit(changes()?).ok()?;
    let domain = Domain::new(1);
    let mut ports = vec![
        Attachment::ethernet("em2"),
        Attachment::ethernet("em3"),
        Attachment::bare("em4"),
    ];
    ports.get_mut(1)?.is_outside = true;
    let settings = FibSyncSettings {
        limits: Limits {
            neighbours: 64,
            groups: 4,
        },
        ..FibSyncSettings::default()
    };
    let mut fill = FibSync::new(writer.reader(), &domain, ports, settings).ok()?;
    let mut config = Config::new(&[Ipv4Addr::new(192, 0, 2, 1)]);
    config.limits.max_flows = 64;
    let nat = Nat::new(config).ok()?;
    let forwarder = Forwarder::new(
        fill.ports().clone(),
        fill.views(),
        Arc::clone(&fill.table()),
        Some(nat),
        Settings::default(),
        Pool::new(BUFFERS, PACKET_BYTES).ok()?.cache(),
    );
    Some(Router {
        forwarder,
        reader: domain.register().ok()?,
        now_millis: 1,
    })
}

/// Frames, each behind a byte for its port and two for its length.
pub fn forward(bytes: &[u8]) {
    ROUTER.with_borrow_mut(|router| {
        if let Some(router) = router {
            take(router, bytes);
        }
    });
}

fn take(router: &mut Router, mut bytes: &[u8]) {
    while let [port, high, low, rest @ ..] = bytes {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (frame, behind) = rest.split_at(len);
        bytes = behind;
        pass(router, u16::from(port % 3), frame);
    }
}

fn pass(router: &mut Router, port: u16, bytes: &[u8]) {
    router.now_millis += 7;
    let Some(mut packet) = router.forwarder.cache().take() else {
        panic!("buffers are missing");
    };
    // What lies around a packet is not to be read.
    packet.as_mut().fill(0xee);
    assert!(packet.set_frame(bytes, 0), "longer than a length can say");
    let counted = |router: &Router| -> u64 {
        let counters = router.forwarder.counters();
        Reason::ALL
            .into_iter()
            .map(|reason| counters.of_reason(reason))
            .sum()
    };
    let before = counted(router);
    let mut frames = [packet];
    let section = router.reader.enter();
    router
        .forwarder
        .forward(&section, port, &mut frames, router.now_millis);
    drop(section);
    let egress = router.forwarder.egress()[0];
    let mut made = 0;
    if egress != GONE {
        check(egress, frames[0].frame());
    }
    router.forwarder.cache().give_all(frames.into_iter());
    while let Some((port, packet)) = router.forwarder.next_originated() {
        check(port, packet.frame());
        router.forwarder.cache().give(packet);
        made += 1;
    }
    while router.forwarder.requests().take().is_some() {}
    assert!(
        egress != GONE || made > 0 || counted(router) > before,
        "a frame that came to nothing is counted"
    );
}

/// What leaves has a sound header.
fn check(port: u16, bytes: &[u8]) {
    let packet = match port {
        HOST => return,
        2 => bytes,
        _ => &bytes[14..],
    };
    let len = match packet[0] >> 4 {
        4 => u16::from_be_bytes([packet[2], packet[3]]),
        6 => 40 + u16::from_be_bytes([packet[4], packet[5]]),
        version => panic!("a packet of version {version} left"),
    };
    assert_eq!(usize::from(len), packet.len());
}
