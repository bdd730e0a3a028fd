//! A small network of routers in virtual time: links lose and reorder, go
//! down and up, neighbours expire, routes change late and not at once. The
//! same in every run of a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use lab::Random;
use table::NextHop;

use super::*;

const ROUTERS: usize = 6;
/// Pairs of routers with a link between them: two rings that share a side,
/// so that there are ways of equal cost and detours.
const WIRES: [(usize, usize); 8] = [
    (0, 1),
    (1, 2),
    (2, 3),
    (3, 0),
    (2, 4),
    (4, 5),
    (5, 3),
    (0, 2),
];
const TTL: u8 = 64;
/// A packet in flight takes so long, milliseconds: some overtake others.
const FLIGHT: (usize, usize) = (1, 6);
/// A router hears of a change so late.
const LATENESS: usize = 60;
/// The longest that a packet waits for its neighbour, and some.
const SETTLED: u64 = 4_000;

/// What happens at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A frame arrives by a wire, if that is what it was when it left.
    Frame {
        router: usize,
        port: u16,
        wire: usize,
        age: u32,
        bytes: Vec<u8>,
    },
    /// A router learns its routes anew.
    Routes { router: usize },
    /// A router's request about a neighbour is answered.
    Answer { router: usize, port: u16 },
}

/// A wire: whether it is up, and how often it went down.
#[derive(Debug, Clone, Copy)]
struct Wire {
    is_up: bool,
    age: u32,
}

struct Network {
    routers: Vec<Router>,
    wires: Vec<Wire>,
    /// For each router its ports from 1 on: wire, and router behind it.
    ports: Vec<Vec<(usize, usize)>>,
    routes: Vec<BTreeMap<usize, Vec<NextHop>>>,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    now: u64,
    events: u64,
    random: Random,
    loses: bool,
    /// Routers that each packet went through.
    hops: BTreeMap<u32, u32>,
    delivered: BTreeMap<u32, u32>,
    next_packet: u32,
}

fn host_of(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, router as u8, 0, 5)
}

fn host_mac(router: usize) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, router as u8]
}

fn prefix_of(router: usize) -> String {
    format!("10.{router}.0.0/24")
}

/// The address of a router on a wire.
fn on_wire(wire: usize, router: usize) -> String {
    let side = if WIRES[wire].0 == router { 1 } else { 2 };
    format!("172.16.{wire}.{side}")
}

/// The index of the link of a port.
fn link_of(port: usize) -> u32 {
    port as u32 + 2
}

impl Network {
    fn new(seed: u64) -> Self {
        let mut ports: Vec<Vec<(usize, usize)>> = vec![Vec::new(); ROUTERS];
        for (wire, &(one, two)) in WIRES.iter().enumerate() {
            ports[one].push((wire, two));
            ports[two].push((wire, one));
        }
        let routers = (0..ROUTERS).map(|router| {
            let mut changes = vec![link(router as u8, link_of(0), true, 1_500)];
            changes.extend(address(link_of(0), &format!("10.{router}.0.1/24")));
            changes.push(known(
                link_of(0),
                &host_of(router).to_string(),
                host_mac(router),
            ));
            let mut attachments = vec![Attachment::ethernet("em2")];
            for (at, (wire, _)) in ports[router].iter().enumerate() {
                let index = link_of(at + 1);
                changes.push(link(router as u8, index, true, 1_500));
                changes.extend(address(index, &format!("{}/24", on_wire(*wire, router))));
                attachments.push(Attachment::ethernet(&format!("em{index}")));
            }
            Router::new(changes, attachments)
        });
        let mut network = Self {
            routers: routers.collect(),
            wires: vec![
                Wire {
                    is_up: true,
                    age: 0
                };
                WIRES.len()
            ],
            ports,
            routes: vec![BTreeMap::new(); ROUTERS],
            queue: BinaryHeap::new(),
            now: 1_000,
            events: 0,
            random: Random::new(seed),
            loses: false,
            hops: BTreeMap::new(),
            delivered: BTreeMap::new(),
            next_packet: 0,
        };
        for router in 0..ROUTERS {
            network.learn(router);
        }
        network
    }

    fn after(&mut self, millis: usize, happening: Happening) {
        self.events += 1;
        let at = self.now + millis as u64;
        self.queue.push(Reverse((at, self.events, happening)));
    }

    /// Distance of every router from one, over wires that are up.
    fn distances(&self, from: usize) -> [usize; ROUTERS] {
        let mut distance = [usize::MAX; ROUTERS];
        distance[from] = 0;
        let mut edge = vec![from];
        while let Some(at) = edge.pop() {
            for &(wire, next) in &self.ports[at] {
                if self.wires[wire].is_up && distance[next] > distance[at] + 1 {
                    distance[next] = distance[at] + 1;
                    edge.insert(0, next);
                }
            }
        }
        distance
    }

    /// A router gets the routes of the network as it is now.
    fn learn(&mut self, router: usize) {
        let mut changes = Vec::new();
        for to in (0..ROUTERS).filter(|to| *to != router) {
            let distance = self.distances(to);
            let ports = self.ports[router].iter().enumerate();
            let hops: Vec<NextHop> = ports
                .filter(|(_, (wire, next))| {
                    self.wires[*wire].is_up
                        && distance[*next] < usize::MAX
                        && distance[*next] + 1 == distance[router]
                })
                .map(|(at, (wire, next))| hop(link_of(at + 1), Some(&on_wire(*wire, *next)), 1))
                .collect();
            let old = self.routes[router].remove(&to).unwrap_or_default();
            if !old.is_empty() {
                changes.push(without(&prefix_of(to), old));
            }
            if !hops.is_empty() {
                changes.push(via(&prefix_of(to), hops.clone()));
                self.routes[router].insert(to, hops);
            }
        }
        self.routers[router].commit(changes);
    }

    /// A wire goes down or up: its ends see it at once, all hear of it
    /// later, in any order.
    fn flap(&mut self, wire: usize) {
        let is_up = !self.wires[wire].is_up;
        self.wires[wire].is_up = is_up;
        self.wires[wire].age += 1;
        for router in [WIRES[wire].0, WIRES[wire].1] {
            let index = link_of(self.port_of(router, wire));
            self.routers[router].commit(vec![link(router as u8, index, is_up, 1_500)]);
            if !is_up {
                self.forget(router, wire);
            }
        }
        for router in 0..ROUTERS {
            let late = self.random.below(LATENESS);
            self.after(late, Happening::Routes { router });
        }
    }

    fn port_of(&self, router: usize, wire: usize) -> usize {
        let at = self.ports[router].iter().position(|port| port.0 == wire);
        at.unwrap() + 1
    }

    /// The neighbour on a wire expires.
    fn forget(&mut self, router: usize, wire: usize) {
        let (one, two) = WIRES[wire];
        let other = if one == router { two } else { one };
        let key = NeighbourKey {
            link: link_of(self.port_of(router, wire)),
            address: on_wire(wire, other).parse().unwrap(),
            proxy: false,
        };
        self.routers[router].commit(vec![Change::DeleteNeighbour(key)]);
    }

    /// A host sends a packet to another one; gives its number.
    fn send(&mut self, from: usize, to: usize) -> u32 {
        let number = self.next_packet;
        self.next_packet += 1;
        let mut ip = Ip::new(host_of(from), host_of(to));
        ip.ttl = TTL;
        let port = 1_024 + self.random.below(40_000) as u16;
        let packet = ip.udp(port, 7, &number.to_be_bytes());
        let bytes = frame(mac(from as u8, link_of(0)), &packet);
        self.arrive(from, 0, bytes);
        number
    }

    /// A frame comes in by a port of a router.
    fn arrive(&mut self, router: usize, port: u16, bytes: Vec<u8>) {
        if let Some(number) = number_of(&bytes) {
            let hops = self.hops.entry(number).or_default();
            *hops += 1;
            assert!(*hops <= u32::from(TTL), "packet {number} goes round");
        }
        let out = self.routers[router].take(port, &[bytes], self.now);
        self.leave(router, out);
    }

    /// What leaves a router goes onto its wires, or is delivered.
    fn leave(&mut self, router: usize, out: Vec<(u16, Vec<u8>)>) {
        for (port, bytes) in out {
            match port {
                HOST => {}
                0 => self.deliver(router, &bytes),
                port => {
                    let (wire, next) = self.ports[router][usize::from(port) - 1];
                    let is_lost = self.loses && self.random.below(20) == 0;
                    if !self.wires[wire].is_up || is_lost {
                        continue;
                    }
                    let (least, most) = FLIGHT;
                    let takes = least + self.random.below(most - least);
                    let frame = Happening::Frame {
                        router: next,
                        port: self.port_of(next, wire) as u16,
                        wire,
                        age: self.wires[wire].age,
                        bytes,
                    };
                    self.after(takes, frame);
                }
            }
        }
        while let Some(request) = self.routers[router].forwarder.requests().take() {
            let takes = 1 + self.random.below(20);
            let port = request.key.port;
            self.after(takes, Happening::Answer { router, port });
        }
    }

    /// A frame that left towards a host: the right one, unharmed.
    fn deliver(&mut self, router: usize, bytes: &[u8]) {
        assert_eq!(bytes[..6], host_mac(router));
        let ip = Ipv4::new(&bytes[14..]).unwrap();
        assert!(ip.checksum_is_right());
        assert_eq!(ip.destination(), host_of(router));
        let Some(number) = number_of(bytes) else {
            return;
        };
        let udp = packet::Udp::new(ip.payload()).unwrap();
        assert!(udp.checksum_is_right(ip.pseudo_header()));
        *self.delivered.entry(number).or_default() += 1;
        assert_eq!(self.delivered[&number], 1, "packet {number} came twice");
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Frame {
                router,
                port,
                wire,
                age,
                bytes,
            } => {
                if self.wires[wire].is_up && self.wires[wire].age == age {
                    self.arrive(router, port, bytes);
                }
            }
            Happening::Routes { router } => self.learn(router),
            Happening::Answer { router, port } => {
                let Some(&(wire, next)) = self.ports[router].get(usize::from(port) - 1) else {
                    return;
                };
                if self.wires[wire].is_up {
                    let lladdr = mac(next as u8, link_of(self.port_of(next, wire)));
                    let row = known(link_of(usize::from(port)), &on_wire(wire, next), lladdr);
                    self.routers[router].commit(vec![row]);
                    let out = self.routers[router].tend(self.now);
                    self.leave(router, out);
                }
            }
        }
    }

    /// Time goes on until nothing is in flight and nothing waits.
    fn settle(&mut self) {
        let end = self.now + SETTLED;
        loop {
            while let Some(Reverse((at, _, happening))) = self.queue.pop() {
                assert!(at < end, "packets are in flight for ever");
                self.now = at;
                self.happen(happening);
            }
            let waits = |router: &Router| router.forwarder.waiting().0 > 0;
            if !self.routers.iter().any(waits) {
                return;
            }
            assert!(self.now < end, "packets wait for ever");
            self.now += 100;
            for router in 0..ROUTERS {
                let out = self.routers[router].tend(self.now);
                self.leave(router, out);
            }
        }
    }

    /// All hosts that a way leads to hear from one another; the others hear
    /// nothing.
    fn probe(&mut self) {
        self.loses = false;
        let mut sent = Vec::new();
        for from in 0..ROUTERS {
            let distance = self.distances(from);
            for to in (0..ROUTERS).filter(|to| *to != from) {
                let number = self.send(from, to);
                sent.push((number, from, to, distance[to] < usize::MAX));
            }
        }
        self.settle();
        for (number, from, to, is_there) in sent {
            let came = self.delivered.contains_key(&number);
            assert_eq!(
                came, is_there,
                "from {from} to {to}, wires {:?}",
                self.wires
            );
        }
    }
}

/// The number of a packet of a host's, by its payload.
fn number_of(bytes: &[u8]) -> Option<u32> {
    let ip = Ipv4::new(bytes.get(14..)?).ok()?;
    if ip.protocol() != protocol::UDP {
        return None;
    }
    let payload = ip.payload().get(8..)?;
    Some(u32::from_be_bytes(payload.try_into().ok()?))
}

fn run(seed: u64, rounds: usize) -> (u32, BTreeMap<u32, u32>) {
    let mut network = Network::new(seed);
    network.probe();
    let mut flapped = BTreeSet::new();
    for _ in 0..rounds {
        network.loses = true;
        for _ in 0..1 + network.random.below(3) {
            let wire = network.random.below(WIRES.len());
            match network.random.below(3) {
                0 => {
                    let (one, two) = WIRES[wire];
                    let router = [one, two][network.random.below(2)];
                    network.forget(router, wire);
                }
                _ => {
                    flapped.insert(wire);
                    network.flap(wire);
                }
            }
            // Traffic while routers do not agree yet.
            for _ in 0..10 {
                let from = network.random.below(ROUTERS);
                let to = (from + 1 + network.random.below(ROUTERS - 1)) % ROUTERS;
                network.send(from, to);
                for _ in 0..network.random.below(4) {
                    if let Some(Reverse((at, _, happening))) = network.queue.pop() {
                        network.now = at;
                        network.happen(happening);
                    }
                }
            }
        }
        network.settle();
        network.probe();
    }
    // A short run need not touch many wires.
    assert!(rounds < 20 || flapped.len() > WIRES.len() / 2);
    (network.next_packet, network.delivered)
}

#[test]
fn a_network_forwards_again_after_each_change() {
    let rounds: usize = std::env::var("FINGERPOST_NETWORK_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(25);
    for seed in 0..4 {
        let (sent, delivered) = run(seed, rounds);
        // Some are lost on the way, most are not.
        assert!(
            delivered.len() as u32 * 3 > sent,
            "{} of {sent}",
            delivered.len()
        );
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    assert_eq!(run(7, 5), run(7, 5));
}
