//! No byte of a packet is copied between ports of one pool: each packet says
//! where in memory it was written, and is looked for there where it leaves.

use super::*;
use crate::{Buffer, Received, Sent};

const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 5);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 6);
const REMOTES: u8 = 16;
const GATEWAY: [u8; 6] = [2, 7, 0, 0, 0, 1];
/// What each packet ends with.
const ADDRESS_BYTES: usize = size_of::<usize>();

/// Port 0 inside, port 1 outside, port 2 a VLAN of it, port 3 without
/// Ethernet; all of one pool.
struct Rig {
    router: Router,
    near: Vec<Place>,
    far: Vec<Memory>,
    cache: Cache,
    batch: Batch,
    leaving: Batch,
    mesh: Option<Mesh>,
}

fn tables() -> Vec<table::Change> {
    let mut changes = vec![
        link(1, 2, true, 1_500),
        link(1, 3, true, 1_500),
        link(1, 4, true, 1_500),
        link(1, 5, true, 1_500),
        via("198.51.0.0/16", vec![hop(3, Some("10.0.3.254"), 1)]),
        via("198.52.0.0/16", vec![hop(4, Some("10.0.4.254"), 1)]),
        via("198.53.0.0/16", vec![hop(5, None, 1)]),
        known(3, "10.0.3.254", GATEWAY),
        known(4, "10.0.4.254", GATEWAY),
        known(2, "10.0.2.5", [2, 7, 0, 0, 0, 5]),
        known(2, "10.0.2.6", [2, 7, 0, 0, 0, 6]),
    ];
    for (link, text) in [
        (2, "10.0.2.1/24"),
        (3, "10.0.3.1/24"),
        (3, "192.0.2.99/32"),
        (4, "10.0.4.1/24"),
    ] {
        changes.extend(address(link, text));
    }
    changes
}

fn rig(pool: &Pool, nat: Option<nat::Nat>, mesh: Option<Mesh>) -> Rig {
    let mut ports = vec![
        Attachment::ethernet("em2"),
        Attachment::ethernet("em3"),
        Attachment::ethernet("em4"),
        Attachment::bare("em5"),
    ];
    ports[1].is_outside = nat.is_some();
    ports[2].vlan = Some((1, 7));
    let mut router = Router::with(tables(), ports, None, Settings::default());
    router.forwarder = Forwarder::new(
        router.fill.ports().clone(),
        router.fill.views(),
        router.fill.table(),
        nat,
        Settings::default(),
        pool.cache(),
    );
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for number in [0, 1, 3] {
        let (left, right) = Memory::pair(pool, 64);
        near.push(Place::new(number, Box::new(left)));
        far.push(right);
    }
    Rig {
        router,
        near,
        far,
        cache: pool.cache(),
        batch: Batch::new(32),
        leaving: Batch::new(32),
        mesh,
    }
}

/// A UDP packet without a checksum, its payload long enough to say where it
/// lies, behind so much else.
fn packet(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), before: usize) -> Vec<u8> {
    let payload = vec![0x5a; before + ADDRESS_BYTES];
    let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, &payload);
    bytes[26..28].fill(0);
    bytes
}

/// Where a packet's last bytes lie, and what they say of that.
fn place(buffer: &Buffer) -> (usize, usize) {
    let said = buffer.packet().last_chunk::<ADDRESS_BYTES>().unwrap();
    (said.as_ptr().addr(), usize::from_ne_bytes(*said))
}

impl Rig {
    /// Puts a frame on a wire: `far` counts the wires.
    fn put(&mut self, far: usize, frame: &[u8], link_len: usize) {
        let mut buffer = self.cache.take().unwrap();
        assert!(buffer.set_frame(frame, link_len));
        let (lies, _) = place(&buffer);
        let end = buffer.packet_mut().last_chunk_mut::<ADDRESS_BYTES>();
        *end.unwrap() = lies.to_ne_bytes();
        let mut batch = Batch::new(1);
        batch.push(buffer).unwrap();
        let sent = self.far[far].send(&mut self.cache, &mut batch);
        assert!(matches!(sent, Ok(Sent::All)));
    }

    /// Takes what lies on a wire through the forwarder.
    fn turn(&mut self, wire: usize) {
        let Self { router, near, .. } = self;
        let place = &mut near[wire];
        let number = place.number;
        let cache = router.forwarder.cache();
        place.port.receive(cache, &mut self.batch).unwrap();
        let section = router.reader.enter();
        let one = dispatch::forward(&mut router.forwarder, &section, number, &mut self.batch, 5);
        drop(section);
        self.leave(one);
    }

    /// Takes what the other worker has handed over through the forwarder.
    fn take_over(&mut self) {
        let Self { router, mesh, .. } = self;
        mesh.as_mut().unwrap().take(0, &mut self.batch);
        let section = router.reader.enter();
        let one = dispatch::take_over(&mut router.forwarder, &section, &mut self.batch, 5);
        drop(section);
        self.leave(one);
    }

    fn leave(&mut self, one: Option<u16>) {
        let mut ways = Ways {
            places: &mut self.near,
            mesh: self.mesh.as_mut(),
        };
        let forwarder = &mut self.router.forwarder;
        dispatch::send(
            forwarder,
            &mut self.batch,
            &mut self.leaving,
            &mut ways,
            one,
        );
    }

    /// Frames that have left by a wire, each found where it was written.
    fn left(&mut self, wire: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Ok(Received::Packets) = self.far[wire].receive(&mut self.cache, &mut self.batch) {
            for buffer in self.batch.packets() {
                let (lies, said) = place(buffer);
                assert_eq!(lies, said, "a packet was moved");
                frames.push(buffer.frame().to_vec());
            }
        }
        frames
    }
}

fn remote(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, net, 100, host)
}

#[test]
fn with_each_kind_of_header() {
    let pool = Pool::new(256, 2_048).unwrap();
    let mut rig = rig(&pool, None, None);
    for before in [0, 1, 300, 1_400] {
        // Ethernet, a tag longer, a header less.
        for (net, wire, head) in [(51, 1, 14), (52, 1, 18), (53, 2, 0)] {
            let bytes = packet((INSIDE, 1), (remote(net, 7), 2), before);
            rig.put(0, &frame(mac(1, 2), &bytes), 14);
            rig.turn(0);
            let left = rig.left(wire);
            assert_eq!(left.len(), 1, "{:?}", rig.router.forwarder.counters());
            assert_eq!((left[0].len(), left[0][head + 8]), (head + bytes.len(), 63));
            // Back by the same way: a tag is taken off, a header put on.
            let bytes = packet((remote(net, 7), 2), (INSIDE, 1), before);
            let mut back = match wire {
                1 => frame(mac(1, 3), &bytes),
                _ => bytes.clone(),
            };
            if head == 18 {
                back.splice(12..12, [0x81, 0, 0, 7]);
            }
            rig.put(wire, &back, head.min(14));
            rig.turn(wire);
            let left = rig.left(0);
            assert_eq!(left.len(), 1, "{:?}", rig.router.forwarder.counters());
            assert_eq!(left[0].len(), 14 + bytes.len());
        }
    }
    drop(rig);
    assert_eq!(pool.outstanding(), 0);
}

fn engine() -> nat::Nat {
    let mut config = nat::Config::new(&[ALIAS]);
    config.seed = 3;
    let mut engine = nat::Nat::new(config).unwrap();
    engine.set_udp(nat::Behaviour::FULL_CONE);
    engine
}

fn source_of(frame: &[u8]) -> (Ipv4Addr, u16) {
    let ip = packet::Ipv4::new(&frame[14..]).unwrap();
    let udp = packet::Udp::new(ip.payload()).unwrap();
    (ip.source(), udp.source_port())
}

#[test]
fn with_translation_there_and_back_and_round_a_hairpin() {
    let pool = Pool::new(256, 2_048).unwrap();
    let mut rig = rig(&pool, Some(engine()), None);
    for host in 0..REMOTES {
        let to = (remote(51, host), 53);
        rig.put(0, &frame(mac(1, 2), &packet((INSIDE, 4_000), to, 40)), 14);
        rig.turn(0);
        let left = rig.left(1);
        let (alias, port) = source_of(&left[0]);
        assert_eq!((left.len(), alias), (1, ALIAS));
        rig.put(1, &frame(mac(1, 3), &packet(to, (ALIAS, port), 40)), 14);
        rig.turn(1);
        assert_eq!(rig.left(0).len(), 1);
        // The other one inside, to the first one's alias.
        let hairpin = packet((OTHER, 5_000), (ALIAS, port), 40);
        rig.put(0, &frame(mac(1, 2), &hairpin), 14);
        rig.turn(0);
        let left = rig.left(0);
        assert_eq!((left.len(), source_of(&left[0]).0), (1, ALIAS));
        assert_eq!(left[0][..6], [2, 7, 0, 0, 0, 5]);
    }
    drop(rig);
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn from_one_worker_to_another() {
    let pool = Pool::new(512, 2_048).unwrap();
    let mut mesh = Mesh::of(&pool, 2, 64).unwrap().into_iter();
    let mut engines = [engine(), engine()];
    let shards = Arc::new(engines[0].shards(2).unwrap());
    for (number, engine) in engines.iter_mut().enumerate() {
        engine.join_shards(Arc::clone(&shards), number as u16);
    }
    let [first, second] = engines;
    let mut first = rig(&pool, Some(first), mesh.next());
    let mut second = rig(&pool, Some(second), mesh.next());
    let mut sums = [0, 0];
    for flow in 0..64 {
        let from = (Ipv4Addr::new(10, 0, 2, 10 + flow), 4_000);
        let to = (remote(51, flow), 53);
        first.put(0, &frame(mac(1, 2), &packet(from, to, 40)), 14);
        first.turn(0);
        second.take_over();
        for (sum, rig) in sums.iter_mut().zip([&mut first, &mut second]) {
            *sum += rig.left(1).len();
        }
    }
    assert!(
        sums[0] > 10 && sums[1] > 10 && sums[0] + sums[1] == 64,
        "{sums:?}"
    );
    drop((first, second));
    assert_eq!(pool.outstanding(), 0);
}
