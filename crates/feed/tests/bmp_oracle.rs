//! Random lives of a router, and what is there after each step: what a plain
//! map of the router has, and what another reader of the same bytes makes of
//! them. Cuts, and all that changed meanwhile, included.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod router;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgpkit_parser::bmp::messages::{BmpMessageBody, BmpPeerType, PerPeerFlags};
use bgpkit_parser::models::ElemType;
use bgpkit_parser::{BgpElem, Elementor, parse_bmp_msg};
use bytes::Bytes;
use fingerpost_feed::bmp::StationLimits;
use ipnet::IpNet;
use lab::Random;
use lab::bmp::{Peer, flag, reach_v6};
use lab::mrt::{Attributes, push_prefix};
use router::Fed;

/// A table of a peer, by its name.
type Table = String;
/// What a path is compared by: next hop, AS path, communities.
type Path = (IpAddr, Vec<u32>, usize);
type Rows = BTreeMap<(Table, IpNet), Path>;

/// The flags of the tables of a peer, and what their names end with.
const TABLES: [(u8, &str); 4] = [
    (0, ""),
    (flag::POST_POLICY, "_post"),
    (flag::OUT, "_out"),
    (flag::OUT | flag::POST_POLICY, "_out-post"),
];

fn peers() -> [Peer; 3] {
    [
        Peer::new([192, 0, 2, 1].into(), 65_001),
        Peer::new("2001:db8::2".parse().unwrap(), 70_000),
        Peer::loc_rib(65_000),
    ]
}

fn name(peer: &Peer, suffix: &str) -> Table {
    match peer.kind {
        3 => "bmp:loc-rib@edge".to_owned(),
        _ => format!("bmp:{}{suffix}@edge", peer.address),
    }
}

/// A router: what it has, and what it tells.
struct Life {
    random: Random,
    up: BTreeSet<usize>,
    has: BTreeMap<(usize, u8), BTreeMap<IpNet, Path>>,
    fed: Fed,
    theirs: Rows,
    is_connected: bool,
}

impl Life {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            up: BTreeSet::new(),
            has: BTreeMap::new(),
            fed: Fed::new(StationLimits::default()),
            theirs: Rows::new(),
            is_connected: false,
        }
    }

    fn tell(&mut self, bytes: &[u8]) {
        if self.is_connected {
            self.fed.says(bytes);
            read(bytes, &mut self.theirs);
        }
    }

    /// Connects and tells all, with an end of each family of each table that
    /// it has; of others that it had, nothing.
    fn connect(&mut self) {
        self.fed.connect("edge");
        self.is_connected = true;
        self.theirs.clear();
        for at in self.up.clone() {
            self.tell(&peers()[at].plain_up());
        }
        for ((at, flags), rows) in self.has.clone() {
            for (prefix, path) in rows {
                self.announce(at, flags, &[prefix], &path);
            }
            for is_v6 in [false, true] {
                self.tell(&peers()[at].with(flags).end_of_rib(is_v6));
            }
        }
        // A peer of which nothing is told is waited for.
        self.fed.rest(320);
    }

    fn cut(&mut self) {
        self.fed.lose("cut");
        self.is_connected = false;
    }

    fn step(&mut self) {
        let at = self.random.below(peers().len());
        match self.random.below(12) {
            0 if self.up.remove(&at) => {
                self.has.retain(|(of, _), _| *of != at);
                self.tell(&peers()[at].down(4, &[]));
            }
            _ if !self.up.contains(&at) => {
                self.up.insert(at);
                self.tell(&peers()[at].plain_up());
            }
            1 => {
                let rest = self.random.below(20);
                self.fed.rest(rest as u64);
            }
            2..=4 => self.withdraw(at),
            _ => {
                let flags = self.flags(at);
                let path = self.path();
                let prefixes = self.prefixes();
                self.announce(at, flags, &prefixes, &path);
                let rows = self.has.entry((at, flags)).or_default();
                rows.extend(prefixes.into_iter().map(|prefix| (prefix, path.clone())));
            }
        }
    }

    fn flags(&mut self, at: usize) -> u8 {
        let (flags, _) = TABLES[self.random.below(TABLES.len())];
        if peers()[at].kind == 3 { 0 } else { flags }
    }

    fn path(&mut self) -> Path {
        let numbers = (0..1 + self.random.below(4)).map(|_| 1 + self.random.below(90_000) as u32);
        let numbers = numbers.collect();
        let hop = IpAddr::from([198, 51, 100, self.random.below(9) as u8]);
        (hop, numbers, self.random.below(3))
    }

    /// Some of one family.
    fn prefixes(&mut self) -> Vec<IpNet> {
        let is_v6 = self.random.below(3) == 0;
        let one = |random: &mut Random| {
            let number = random.below(12) as u8;
            let address = match is_v6 {
                true => IpAddr::from([0x2001, 0xdb8, u16::from(number), 0, 0, 0, 0, 0]),
                false => IpAddr::from([10, number, 0, 0]),
            };
            IpNet::new(address, if is_v6 { 48 } else { 16 }).unwrap()
        };
        let some: BTreeSet<IpNet> = (0..1 + self.random.below(4))
            .map(|_| one(&mut self.random))
            .collect();
        some.into_iter().collect()
    }

    fn announce(&mut self, at: usize, flags: u8, prefixes: &[IpNet], path: &Path) {
        let (hop, numbers, communities) = path;
        let mut how = Attributes::default()
            .origin(0)
            .as_path(&[(2, numbers.clone())]);
        if *communities > 0 {
            let all: Vec<u32> = (0..*communities as u32)
                .map(|of| 65_000 << 16 | of)
                .collect();
            how = how.numbers(0xc0, 8, &all);
        }
        let peer = peers()[at].with(flags);
        let bytes = match prefixes[0].addr().is_ipv6() {
            true => {
                let IpAddr::V4(v4) = hop else { unreachable!() };
                let hop = v4.to_ipv6_mapped().into();
                peer.update(&[], &reach_v6(how, hop, prefixes), &[])
            }
            false => peer.update(&[], &how.next_hop(*hop), prefixes),
        };
        self.tell(&bytes);
    }

    fn withdraw(&mut self, at: usize) {
        let flags = self.flags(at);
        let prefixes = self.prefixes();
        if let Some(rows) = self.has.get_mut(&(at, flags)) {
            rows.retain(|prefix, _| !prefixes.contains(prefix));
        }
        let peer = peers()[at].with(flags);
        let bytes = match prefixes[0].addr().is_ipv6() {
            true => {
                let mut value = vec![0, 2, 1];
                prefixes
                    .iter()
                    .for_each(|one| push_prefix(*one, &mut value));
                peer.update(&[], &Attributes::default().raw(0x80, 15, &value), &[])
            }
            false => peer.update(&prefixes, &Attributes::default(), &[]),
        };
        self.tell(&bytes);
    }

    fn ours(&self) -> Rows {
        let mut rows = Rows::new();
        for (name, _) in self.fed.sources() {
            let tables = self.fed.find(&name).unwrap();
            for route in tables.routes.iter() {
                let path = &route.body.path;
                let segments = path.as_path().unwrap().segments();
                let numbers = segments.flat_map(|segment| segment.numbers()).collect();
                let hop = route.body.next_hops.as_slice()[0].gateway.unwrap();
                let path = (hop.to_canonical(), numbers, path.communities().count());
                let old = rows.insert((name.clone(), route.prefix), path);
                assert_eq!(old, None, "a prefix twice");
            }
        }
        rows
    }

    fn expected(&self) -> Rows {
        let mut rows = Rows::new();
        for ((at, flags), of) in &self.has {
            let suffix = TABLES.iter().find(|(of, _)| of == flags).unwrap().1;
            let table = name(&peers()[*at], suffix);
            rows.extend(
                of.iter()
                    .map(|(prefix, path)| ((table.clone(), *prefix), path.clone())),
            );
        }
        rows
    }
}

/// What the other reader makes of a message.
fn read(bytes: &[u8], rows: &mut Rows) {
    let message = parse_bmp_msg(&mut Bytes::copy_from_slice(bytes)).unwrap();
    let Some(header) = message.per_peer_header else {
        return;
    };
    let suffix = match header.peer_flags {
        PerPeerFlags::PeerFlags(of) => match (of.is_adj_rib_out(), of.is_post_policy()) {
            (false, false) => "",
            (false, true) => "_post",
            (true, false) => "_out",
            (true, true) => "_out-post",
        },
        PerPeerFlags::LocalRibPeerFlags(_) => "",
    };
    let peer = match header.peer_type {
        BmpPeerType::LocalRib => "bmp:loc-rib".to_owned(),
        _ => format!("bmp:{}", header.peer_ip),
    };
    match message.message_body {
        BmpMessageBody::RouteMonitoring(told) => {
            let table = format!("{peer}{suffix}@edge");
            let (ip, asn) = (header.peer_ip, header.peer_asn);
            for elem in Elementor::bgp_to_elems(told.bgp_message, 0.0, &ip, &asn) {
                let key = (table.clone(), elem.prefix.prefix);
                match elem.elem_type {
                    ElemType::ANNOUNCE => drop(rows.insert(key, path(&elem))),
                    ElemType::WITHDRAW => drop(rows.remove(&key)),
                }
            }
        }
        BmpMessageBody::PeerDownNotification(_) => {
            rows.retain(|(table, _), _| {
                let behind = table.strip_prefix(&peer);
                !behind.is_some_and(|behind| behind.starts_with(['_', '@']))
            });
        }
        _ => {}
    }
}

fn path(elem: &BgpElem) -> Path {
    let path = elem
        .as_path
        .as_ref()
        .unwrap()
        .to_u32_vec_opt(false)
        .unwrap();
    let communities = elem.communities.iter().flatten().count();
    (elem.next_hop.unwrap().to_canonical(), path, communities)
}

#[test]
fn after_each_step_there_is_what_the_router_has() {
    let rounds = std::env::var("FINGERPOST_BMP_LIVES").ok();
    let rounds: u64 = rounds.and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut seen = 0;
    for seed in 0..rounds {
        let mut life = Life::new(seed);
        for _ in 0..3 {
            life.connect();
            for step in 0..60 {
                life.step();
                let (ours, expected) = (life.ours(), life.expected());
                seen += ours.len();
                assert_eq!(ours, expected, "seed {seed}, step {step}");
                assert_eq!(ours, life.theirs, "seed {seed}, step {step}");
            }
            life.cut();
            let before = life.ours();
            for _ in 0..life.random.below(40) {
                life.step();
            }
            assert_eq!(life.ours(), before, "seed {seed}");
        }
    }
    assert!(seen > 100_000, "{seen}");
}
