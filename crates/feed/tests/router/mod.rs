//! Routers, and the station that they feed.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fingerpost_feed::bmp::{Broken, Heard, Messages, Now, RouterId, Station, StationLimits};
use ipnet::IpNet;
use lab::bmp::initiation;
use lab::mrt::Attributes;
use table::{Reader, Status, Tables, Writer};

/// A station beside an empty writer, and the stream of the router that
/// spoke last.
pub struct Fed {
    /// Keeps the tables.
    _first: Writer,
    reader: Reader,
    pub station: Station,
    messages: Messages,
    router: Option<RouterId>,
    routers: Vec<RouterId>,
    pushed: u64,
    pub now: Now,
}

impl Fed {
    pub fn new(limits: StationLimits) -> Self {
        let first = Writer::default();
        let own = first.feeders().join("bmp", limits.rows).unwrap();
        let listening = "127.0.0.1:11019".into();
        Self {
            station: Station::new(own, first.feeders(), listening, limits),
            reader: first.reader(),
            _first: first,
            messages: Messages::default(),
            router: None,
            routers: Vec::new(),
            pushed: 0,
            now: Now::default(),
        }
    }

    /// A router of a name connects.
    pub fn connect(&mut self, name: &str) {
        self.connect_from([127, 0, 0, 1], 4_711, name).unwrap();
    }

    pub fn connect_from(&mut self, address: [u8; 4], port: u16, name: &str) -> Result<(), Broken> {
        let mut messages = Messages::default();
        let initiation = initiation(name);
        messages.push(&initiation);
        let from = SocketAddr::from((address, port));
        let router = self.station.connected(from, &mut messages, self.now)?;
        self.router = Some(router);
        self.routers.push(router);
        self.messages = messages;
        self.pushed = initiation.len() as u64;
        self.station.publish();
        Ok(())
    }

    /// Somebody begins with this.
    pub fn first(&mut self, bytes: &[u8]) -> Result<RouterId, Broken> {
        let mut messages = Messages::default();
        messages.push(bytes);
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        self.station.connected(from, &mut messages, self.now)
    }

    /// The same, and it goes on.
    pub fn first_of(&mut self, bytes: &[u8]) {
        let id = self.first(bytes).unwrap();
        self.router = Some(id);
        self.routers.push(id);
    }

    /// The router is gone; what it did not say whole is a lie if the reason
    /// names a byte.
    pub fn lose(&mut self, why: &str) {
        let is_lie = why.contains("at byte");
        self.station
            .lost(self.router.unwrap(), why, is_lie, self.now);
    }

    /// One that connected before is gone.
    pub fn lose_at(&mut self, at: usize, why: &str) {
        self.station.lost(self.routers[at], why, false, self.now);
    }

    /// It says something that is right.
    pub fn says(&mut self, bytes: &[u8]) {
        assert_eq!(self.hear(bytes).unwrap(), Heard::On);
    }

    /// It ends: why.
    pub fn ends(&mut self, bytes: &[u8]) -> Option<String> {
        match self.hear(bytes).unwrap() {
            Heard::Ended(why) => Some(why),
            Heard::On => None,
        }
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Result<Heard, Broken> {
        self.pushed += bytes.len() as u64;
        self.messages.push(bytes);
        let id = self.router.unwrap();
        let received = self.station.received(id, &mut self.messages, self.now);
        self.station.publish();
        received
    }

    /// Where in the stream what is said next begins.
    pub fn offset(&self) -> u64 {
        self.pushed
    }

    /// Time passes, a second at a time.
    pub fn rest(&mut self, secs: u64) {
        for _ in 0..secs {
            self.now.monotonic += Duration::from_secs(1);
            self.now.millis += 1_000;
            self.station.tick(self.now, &mut |_| {});
            self.station.publish();
        }
    }

    pub fn find(&self, name: &str) -> Option<Arc<Tables>> {
        self.reader.snapshot().of(name)
    }

    pub fn status(&self, name: &str) -> Status {
        let tables = self.reader.snapshot();
        let full = format!("{name}@edge");
        let mut owners = tables.owners();
        let of_name = |owner: &&table::Owner| owner.name() == name || owner.name() == full;
        owners.find(of_name).unwrap().status()
    }

    pub fn unconfirmed(&self, name: &str) -> u64 {
        self.status(name).feed.unwrap().unconfirmed
    }

    /// Messages of this kind without rows, of the router `edge`.
    pub fn skipped(&self, what: &str) -> u64 {
        self.status("bmp")
            .feed
            .unwrap()
            .skipped
            .get(what)
            .copied()
            .unwrap_or_default()
    }

    /// The routes of a source: prefix, next hop, AS path.
    pub fn routes(&self, name: &str) -> Vec<String> {
        shown(&self.find(name).unwrap())
    }

    /// All sources but the station's own, with their routes.
    pub fn sources(&self) -> Vec<(String, Vec<String>)> {
        let tables = self.reader.snapshot();
        let all = tables.owners().filter(|owner| owner.name().contains(':'));
        all.map(|owner| (owner.name().to_owned(), shown(owner.tables())))
            .collect()
    }
}

fn shown(tables: &Tables) -> Vec<String> {
    let routes = tables.routes.iter().map(|route| {
        let hop = route.body.next_hops.as_slice()[0].gateway.unwrap();
        let path = route.body.path.as_path().unwrap();
        let numbers = path.segments().flat_map(|segment| segment.numbers());
        let numbers: Vec<String> = numbers.map(|of| of.to_string()).collect();
        format!("{} via {hop} {}", route.prefix, numbers.join(" "))
    });
    routes.collect()
}

pub fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// Attributes with a path of these ASes.
pub fn path(numbers: &[u32]) -> Attributes {
    Attributes::default()
        .origin(0)
        .as_path(&[(2, numbers.to_vec())])
        .next_hop([198, 51, 100, 1].into())
}
