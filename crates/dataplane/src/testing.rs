//! For this crate's tests: routers made by hand.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use memory::quiescent::{Domain, Reader, Section};
use nat::Nat;
use table::row::attributes::RawAttributes;
use table::row::route::{kind, protocol, scope, table_id};
use table::row::rule::action;
use table::row::{link, neighbour::state};
use table::{
    AF_INET, AF_INET6, Address, Change, Limits, Link, LinkLayerAddress, Neighbour, NextHop,
    NextHops, Placement, Route, RouteBody, Rule, Writer,
};

use crate::fib_sync::{Attachment, FibSync, FibSyncSettings};
use crate::forward::{Forwarder, GONE, MAX_BATCH, Settings};
use crate::{Batch, Buffer, Pool};

/// The Ethernet address of a link.
pub fn mac(router: u8, link: u32) -> [u8; 6] {
    [2, 0, 0, 0, router, link as u8]
}

pub fn link(router: u8, index: u32, is_up: bool, mtu: u32) -> Change {
    Change::PutLink(Link {
        index,
        name: format!("em{index}").into(),
        flags: if is_up {
            link::flag::UP | link::flag::LOWER_UP
        } else {
            0
        },
        address: LinkLayerAddress::new(&mac(router, index)).unwrap_or_default(),
        mtu,
        forwards_v4: true,
        ..Link::default()
    })
}

pub fn loopback() -> Change {
    Change::PutLink(Link {
        index: 1,
        name: "lo".into(),
        flags: link::flag::UP | link::flag::LOOPBACK,
        ..Link::default()
    })
}

pub fn rules() -> [Change; 5] {
    let rule = |family, priority, table| {
        Change::PutRule(Rule {
            family,
            priority,
            table,
            action: action::TO_TABLE,
            ..Rule::default()
        })
    };
    [
        rule(AF_INET, 0, table_id::LOCAL),
        rule(AF_INET, 32_766, table_id::MAIN),
        rule(AF_INET, 32_767, table_id::DEFAULT),
        rule(AF_INET6, 0, table_id::LOCAL),
        rule(AF_INET6, 32_766, table_id::MAIN),
    ]
}

pub fn hop(link: u32, gateway: Option<&str>, weight: u16) -> NextHop {
    NextHop {
        link,
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        weight,
        ..NextHop::default()
    }
}

pub fn body(of: u8, hops: Vec<NextHop>) -> RouteBody {
    RouteBody {
        kind: of,
        protocol: protocol::STATIC,
        scope: scope::UNIVERSE,
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: None,
        next_hops: match <[NextHop; 1]>::try_from(hops) {
            Ok([only]) => NextHops::One(only),
            Err(hops) if hops.is_empty() => NextHops::None,
            Err(hops) => NextHops::Many(hops.into()),
        },
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    }
}

pub fn route(table: u32, prefix: &str, body: RouteBody) -> Route {
    Route {
        table,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        body,
    }
}

/// A route of the main table.
pub fn via(prefix: &str, hops: Vec<NextHop>) -> Change {
    let route = route(table_id::MAIN, prefix, body(kind::UNICAST, hops));
    Change::PutRoute(route, Placement::Last)
}

pub fn without(prefix: &str, hops: Vec<NextHop>) -> Change {
    let route = route(table_id::MAIN, prefix, body(kind::UNICAST, hops));
    Change::DeleteRoute(route.with_body(Arc::new(route.body.clone())))
}

pub fn refusing(prefix: &str, of: u8) -> Change {
    Change::PutRoute(
        route(table_id::MAIN, prefix, body(of, Vec::new())),
        Placement::Last,
    )
}

/// An own address, with the routes that the kernel makes for it.
pub fn address(link: u32, text: &str) -> Vec<Change> {
    let net: ipnet::IpNet = text.parse().unwrap();
    let own = Address::new(link, net.addr(), net.prefix_len());
    let host = ipnet::IpNet::from(net.addr()).to_string();
    let local = route(
        table_id::LOCAL,
        &host,
        body(kind::LOCAL, vec![hop(link, None, 1)]),
    );
    vec![
        Change::PutAddress(own),
        Change::PutRoute(local, Placement::Last),
        via(&net.trunc().to_string(), vec![hop(link, None, 1)]),
    ]
}

pub fn neighbour(link: u32, address: IpAddr, lladdr: Option<[u8; 6]>, state: u16) -> Change {
    Change::PutNeighbour(Neighbour {
        link,
        address,
        proxy: false,
        lladdr: lladdr
            .and_then(|octets| LinkLayerAddress::new(&octets))
            .unwrap_or_default(),
        state,
        flags: 0,
        protocol: 0,
        kind: kind::UNICAST,
    })
}

pub fn known(link: u32, address: &str, lladdr: [u8; 6]) -> Change {
    neighbour(
        link,
        address.parse().unwrap(),
        Some(lladdr),
        state::REACHABLE,
    )
}

/// Buffers of a router, and the longest packet in them.
const BUFFERS: usize = 2_048;
const PACKET_BYTES: usize = 2_048;

/// A router with its tables, on this thread.
pub struct Router {
    pub writer: Writer,
    pub fill: FibSync,
    pub forwarder: Forwarder,
    pub reader: Reader,
}

impl Router {
    pub fn new(changes: Vec<Change>, ports: Vec<Attachment>) -> Self {
        Self::with(changes, ports, None, Settings::default())
    }

    pub fn with(
        changes: Vec<Change>,
        ports: Vec<Attachment>,
        nat: Option<Nat>,
        settings: Settings,
    ) -> Self {
        let mut writer = Writer::new(Limits::default());
        writer.commit(rules()).unwrap();
        writer.commit([loopback()]).unwrap();
        writer.commit(changes).unwrap();
        let domain = Domain::new(4);
        let fill_settings = FibSyncSettings {
            limits: crate::neighbour::Limits {
                neighbours: 1_024,
                groups: 64,
            },
            fib: fib::Config {
                max_routes: 100_000,
                max_bytes: 64 << 20,
            },
        };
        let mut fill = FibSync::new(writer.reader(), &domain, ports, fill_settings).unwrap();
        let (views, table) = (fill.views(), fill.table());
        let ports = fill.changed_ports().unwrap();
        let pool = Pool::new(BUFFERS, PACKET_BYTES).unwrap();
        Self {
            forwarder: Forwarder::new(ports, views, table, nat, settings, pool.cache()),
            fill,
            writer,
            reader: domain.register().unwrap(),
        }
    }

    pub fn commit(&mut self, changes: Vec<Change>) {
        self.writer.commit(changes).unwrap();
        self.follow();
    }

    pub fn follow(&mut self) {
        self.fill.follow(Duration::ZERO);
        // Nobody reads: what waits for readers is done by the second call.
        self.fill.follow(Duration::ZERO);
        if let Some(ports) = self.fill.changed_ports() {
            self.forwarder.set_ports(ports);
        }
    }

    /// Takes frames in by a port; gives what leaves, with its port.
    pub fn take(&mut self, port: u16, packets: &[Vec<u8>], now: u64) -> Vec<(u16, Vec<u8>)> {
        self.through(packets, |forwarder, section, frames| {
            forwarder.forward(section, port, frames, now);
        })
    }

    /// Takes frames that another worker has handed over.
    pub fn take_over(&mut self, packets: &[Vec<u8>], now: u64) -> Vec<(u16, Vec<u8>)> {
        self.through(packets, |forwarder, section, frames| {
            forwarder.take_over(section, frames, now);
        })
    }

    fn through(
        &mut self,
        packets: &[Vec<u8>],
        pass: impl Fn(&mut Forwarder, &Section<'_>, &mut [Buffer]),
    ) -> Vec<(u16, Vec<u8>)> {
        let mut out = Vec::new();
        for packets in packets.chunks(MAX_BATCH) {
            let mut batch = Batch::new(packets.len());
            self.forwarder.cache().fill(&mut batch, packets.len());
            assert_eq!(batch.len(), packets.len(), "buffers are missing");
            for (buffer, bytes) in batch.packets_mut().iter_mut().zip(packets) {
                // What lies around a packet is not to be read.
                buffer.as_mut().fill(0xee);
                assert!(buffer.set_frame(bytes, 0));
            }
            let section = self.reader.enter();
            pass(&mut self.forwarder, &section, batch.packets_mut());
            drop(section);
            let egress = *self.forwarder.egress();
            for (buffer, port) in batch.packets().iter().zip(egress) {
                if port != GONE {
                    out.push((port, buffer.frame().to_vec()));
                }
            }
            self.forwarder.cache().clear(&mut batch);
            self.take_originated(&mut out);
        }
        out
    }

    /// What is due without a packet.
    pub fn tend(&mut self, now: u64) -> Vec<(u16, Vec<u8>)> {
        let section = self.reader.enter();
        self.forwarder.tend(&section, now);
        drop(section);
        let mut out = Vec::new();
        self.take_originated(&mut out);
        out
    }

    fn take_originated(&mut self, out: &mut Vec<(u16, Vec<u8>)>) {
        while let Some((port, buffer)) = self.forwarder.next_originated() {
            out.push((port, buffer.frame().to_vec()));
            self.forwarder.cache().give(buffer);
        }
    }
}

/// A buffer with these bytes, none of them a link's; its pool goes with it.
pub fn buffer(bytes: &[u8]) -> Buffer {
    let mut buffer = Pool::new(1, PACKET_BYTES).unwrap().cache().take().unwrap();
    assert!(buffer.set_frame(bytes, 0));
    buffer
}

/// An Ethernet frame to a router's link.
pub fn frame(to: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let protocol = match packet.first().map(|first| first >> 4) {
        Some(6) => [0x86, 0xdd],
        _ => [8, 0],
    };
    [&to[..], &[2, 9, 9, 9, 9, 9], &protocol, packet].concat()
}

/// An IPv6 packet.
pub fn v6(source: &str, destination: &str, hops: u8, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next_header, hops]);
    for address in [source, destination] {
        bytes.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    bytes.extend(payload);
    bytes
}
