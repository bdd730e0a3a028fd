//! A peer as zebra is one, and the feed that it feeds.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod zebra;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fingerpost_feed::fpm::{Broken, Forwarded, Frames, Now, Session};
use ipnet::IpNet;
use netlink::decode::{Item, Operation};
use netlink::encode::{Request, row};
use table::row::route::kind;
use table::{
    Change, GroupMember, KERNEL, Limits, Link, NextHop, NextHops, Nexthop, Reader, Route,
    RouteBody, Status, Tables, Writer,
};

pub const MAIN: u32 = 254;

/// From zebra 10.3: a frame with the route 16.0.0.0/24, whose next hop has
/// the id 6.
pub const CAPTURED: [u32; 14] = [
    0x0101_0038,
    0x3400_0000,
    0x1800_0105,
    0x0000_0000,
    0x452f_7ab4,
    0x0218_0000,
    0xfeba_0001,
    0x0000_0000,
    0x0800_0100,
    0x1000_0000,
    0x0800_0600,
    0x1400_0000,
    0x0800_1e00,
    0x0600_0000,
];

/// Words as their bytes stand in a stream.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A feed beside an empty writer, and its peer's stream.
pub struct Fed {
    first: Writer,
    reader: Reader,
    session: Session,
    frames: Frames,
    pub now: Now,
}

impl Fed {
    pub fn new(limits: Limits) -> Self {
        let first = Writer::default();
        let feeder = first.feeders().join("frr", limits).unwrap();
        let reader = feeder.reader();
        Self {
            first,
            session: Session::new(feeder, "127.0.0.1:2620".into()),
            reader,
            frames: Frames::default(),
            now: Now::default(),
        }
    }

    /// The same, and packets are forwarded by it.
    pub fn forwarding() -> Self {
        let fed = Self::new(Limits::default());
        Self {
            session: fed.session.acknowledging(),
            ..fed
        }
    }

    /// Whoever forwards has seen all rows so far.
    pub fn forwards(&mut self, refused: &[(&str, bool)]) {
        let refused = refused.iter().map(|(of, is)| ((MAIN, net(of)), *is));
        self.session.forwarded(Forwarded {
            seen: self.tables().generation,
            tables: [(2, MAIN), (10, MAIN)].into(),
            refused: refused.collect(),
        });
    }

    /// The same, of some tables with their families; it refuses none.
    pub fn forwards_tables(&mut self, tables: &[(u8, u32)]) {
        self.session.forwarded(Forwarded {
            seen: self.tables().generation,
            tables: tables.iter().copied().collect(),
            ..Forwarded::default()
        });
    }

    /// A frame of messages that readers do not see yet.
    pub fn tell_unpublished(&mut self, messages: &[Vec<u8>]) {
        self.frames.push(&framed(&messages.concat()));
        self.session.received(&mut self.frames, self.now).unwrap();
    }

    pub fn publish(&mut self) {
        self.session.publish();
    }

    /// What the peer is told back, if it reads so many bytes at most: the
    /// messages, each in a frame.
    pub fn told_back(&mut self, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = self.session.unsent() {
            let taken = bytes.len().min(most - all.len());
            all.extend(&bytes[..taken]);
            self.session.sent(taken);
            if all.len() == most {
                break;
            }
        }
        self.session.publish();
        all
    }

    /// Bytes that are there to be sent.
    pub fn unsent(&mut self) -> Option<usize> {
        self.session.unsent().map(<[u8]>::len)
    }

    pub fn connect(&mut self) {
        self.frames = Frames::default();
        self.session.connected("127.0.0.1:9", self.now);
        self.session.publish();
    }

    /// The kernel has a VRF.
    pub fn vrf(&mut self, name: &str, table: u32) {
        let link = Link {
            index: 9,
            name: name.into(),
            vrf_table: Some(table),
            ..Link::default()
        };
        self.first.commit([Change::PutLink(link)]).unwrap();
    }

    pub fn lose(&mut self) {
        self.session.lost("cut", false, self.now);
    }

    /// A frame of messages.
    pub fn tell(&mut self, messages: &[Vec<u8>]) {
        self.hear(&framed(&messages.concat())).unwrap();
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.frames.push(bytes);
        let received = self.session.received(&mut self.frames, self.now);
        self.session.publish();
        received
    }

    /// Time passes, a second at a time; what was swept.
    pub fn rest(&mut self, secs: u64) -> Option<usize> {
        let ticks = (0..secs).map(|_| {
            self.now.monotonic += Duration::from_secs(1);
            self.now.millis += 1_000;
            self.session.tick(self.now)
        });
        ticks.fold(None, Option::or)
    }

    pub fn status(&self) -> Status {
        let kernel = self.reader.of(KERNEL).unwrap().snapshot();
        kernel.owners().next().unwrap().status()
    }

    pub fn unconfirmed(&self) -> u64 {
        self.status().feed.unwrap().unconfirmed
    }

    pub fn tables(&self) -> Arc<Tables> {
        self.reader.snapshot()
    }

    /// Its routes: kind, prefix, table, metric and next hops.
    pub fn routes(&self) -> Vec<String> {
        let tables = self.tables();
        let routes = tables.routes.iter();
        let owned = routes.map(|route| route.with_body((**route.body).clone()));
        owned.map(|route| shown(&route)).collect()
    }
}

fn shown(route: &Route) -> String {
    let hops = route.body.next_hops.as_slice().iter();
    let hops: Vec<String> = hops
        .map(|hop| match hop.gateway {
            Some(gateway) => format!("{gateway}@{}*{}", hop.link, hop.weight),
            None => format!("@{}*{}", hop.link, hop.weight),
        })
        .collect();
    let kind = match route.body.kind {
        kind::BLACKHOLE => "blackhole ",
        _ => "",
    };
    let (prefix, table, metric) = (route.prefix, route.table, route.metric);
    format!(
        "{kind}{prefix} table {table} metric {metric} via {}",
        hops.join(",")
    )
}

pub fn framed(payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len() + 4).unwrap();
    [&[1, 1][..], &len.to_be_bytes(), payload].concat()
}

fn message(operation: Operation, item: &Item) -> Vec<u8> {
    let request = Request {
        operation,
        flags: 0x501,
        sequence: 0,
        now_millis: 0,
    };
    let mut out = Vec::new();
    row(&mut out, &request, item).unwrap();
    out
}

pub fn new(item: &Item) -> Vec<u8> {
    message(Operation::New, item)
}

pub fn gone(item: &Item) -> Vec<u8> {
    message(Operation::Delete, item)
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn route(prefix: &str, metric: u32, nexthop_id: Option<u32>, next_hops: NextHops) -> Item {
    Item::Route(Route {
        table: MAIN,
        prefix: net(prefix),
        tos: 0,
        metric,
        body: RouteBody {
            kind: kind::UNICAST,
            protocol: 186,
            nexthop_id,
            next_hops,
            ..RouteBody::default()
        },
    })
}

/// A route with the id of a next hop.
pub fn by_id(prefix: &str, metric: u32, id: u32) -> Item {
    route(prefix, metric, Some(id), NextHops::None)
}

/// A route with its gateway.
pub fn via(prefix: &str, metric: u32, gateway: &str) -> Item {
    let hop = NextHop {
        link: 2,
        gateway: Some(ip(gateway)),
        weight: 1,
        ..NextHop::default()
    };
    route(prefix, metric, None, NextHops::One(hop))
}

pub fn object(id: u32, gateway: &str) -> Item {
    Item::Nexthop(Nexthop {
        id,
        family: 2,
        link: Some(2),
        gateway: Some(ip(gateway)),
        ..Nexthop::default()
    })
}

pub fn blackhole(id: u32) -> Item {
    Item::Nexthop(Nexthop {
        id,
        family: 2,
        blackhole: true,
        ..Nexthop::default()
    })
}

pub fn group(id: u32, members: &[u32]) -> Item {
    let member = |id: &u32| GroupMember { id: *id, weight: 1 };
    Item::Nexthop(Nexthop {
        id,
        group: members.iter().map(member).collect(),
        ..Nexthop::default()
    })
}
