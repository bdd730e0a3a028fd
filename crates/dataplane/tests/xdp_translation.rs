//! Translation inside the XDP program, without a router: what comes out of
//! frames at random is what is computed here, byte by byte.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use fingerpost_dataplane::xdp::{
    Attached, Flow, Forwarding, Place, PortSettings, REASONS, Translation, Used, note,
};
use lab::{Netns, Random, Wire, skip, wait_until};
use packet::build::{Ip, Segment};
use packet::checksum::Sum;
use packet::{Ipv4, Tcp, Udp, protocol, tcp};

const PATIENCE: Duration = Duration::from_secs(20);
/// More than a tick of the program's clock.
const TICK: Duration = Duration::from_millis(50);
/// How long is waited for what is not to come.
const SILENCE: Duration = Duration::from_millis(300);
/// To how much a flow's last use is known.
const FRESH: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(600);
/// Frames that are under way at a time.
const BATCH: usize = 64;
const LEAST: usize = 60;
const MOST: usize = 1_514;

const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const ALIAS: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 128, 3, 4);

/// The router's address on a side; that of the other end.
const fn near(side: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, side]
}
const fn far(side: u8) -> [u8; 6] {
    [2, 0, 0, 0, 2, side]
}

fn flow(protocol: u8) -> Flow {
    Flow {
        protocol,
        inside: (INSIDE, 4_321),
        alias: (ALIAS, 50_505),
        remote: (REMOTE, 80),
    }
}

/// A router between two cables; two more lead to the engine.
struct Bench {
    forwarding: Forwarding,
    ports: [Attached; 2],
    wire: Wire,
    router: Netns,
    _ends: Netns,
}

/// Whether this process may load programs: root of the host, and no other.
fn bpf() -> anyhow::Result<()> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    let is_host = map.split_whitespace().eq(["0", "0", "4294967295"]);
    anyhow::ensure!(is_host, "programs for XDP want root of the host");
    Ok(())
}

fn index_of(netns: &Netns, name: &str) -> u32 {
    let shown = netns.ip(&["-o", "link", "show", "dev", name]).unwrap();
    shown.split(':').next().unwrap().parse().unwrap()
}

impl Bench {
    fn make(tag: &str, is_closed: bool) -> Option<Self> {
        skip::unless(bpf())?;
        let router = skip::unless(Netns::new(tag))?;
        let ends = skip::unless(Netns::new(&format!("{tag}e")))?;
        let links = ["lan", "wan", "out", "in"];
        for (name, side) in links.into_iter().zip(1..) {
            let lines = format!(
                "link add {name} address 02:00:00:00:01:0{side} type veth \
                 peer name e{name} address 02:00:00:00:02:0{side} netns {}\n\
                 addr add 10.{side}.0.1/24 dev {name}\n\
                 link set {name} up\n\
                 neigh add 10.{side}.0.2 lladdr 02:00:00:00:02:0{side} dev {name} nud permanent\n",
                ends.name()
            );
            router.ip_batch(&lines).unwrap();
            let end = format!("e{name}");
            ends.ip(&["link", "set", &end, "up"]).unwrap();
            ends.run("ethtool", &["-K", &end, "gro", "on"]).unwrap();
        }
        router.sysctl("net/ipv4/ip_forward", "1").unwrap();
        let route = ["route", "add", "10.128.0.0/16", "via", "10.2.0.2"];
        router.ip(&route).unwrap();
        wait_until(PATIENCE, "the links' carriers", || {
            let shown = router.ip(&["-o", "link", "show", "up"]).unwrap();
            (shown.matches("LOWER_UP").count() > links.len()).then_some(())
        })
        .unwrap();
        let mut forwarding = Forwarding::new(16).unwrap();
        let engine = ["out", "in"].map(|name| index_of(&router, name));
        let ports = router.inside(|| {
            let translation = Translation {
                is_closed,
                engine,
                ports: 1_024..=u16::MAX,
            };
            forwarding.translate(translation).unwrap();
            let ports = ["lan", "wan"].into_iter().zip(0..).map(|(name, slot)| {
                forwarding
                    .attach(index_of(&router, name), name, slot)
                    .unwrap()
            });
            ports.collect::<Vec<_>>()
        });
        forwarding.name_alias(ALIAS, 32).unwrap();
        let bench = Self {
            forwarding,
            ports: ports.unwrap().try_into().unwrap(),
            wire: Wire::open(&ends).unwrap(),
            router,
            _ends: ends,
        };
        for protocol in [protocol::TCP, protocol::UDP] {
            assert!(bench.forwarding.enter(&flow(protocol)).unwrap());
        }
        bench.open(false);
        Some(bench)
    }

    /// Opens the ports, to finished checksums or others.
    fn open(&self, is_soft: bool) {
        self.set(is_soft, false);
    }

    fn set(&self, is_soft: bool, is_strict: bool) {
        for (port, side) in self.ports.iter().zip(1..) {
            let settings = PortSettings {
                receives_v4: true,
                sends_v4: true,
                is_soft,
                is_strict,
                is_outside: side == 2,
                mac: near(side),
                ..PortSettings::default()
            };
            self.forwarding.set(port, &settings).unwrap();
        }
        self.watch(LONG);
    }

    fn watch(&self, time: Duration) {
        self.forwarding
            .watched_for(time, [u32::MAX; 2], true)
            .unwrap();
        self.forwarding.answers_for(time).unwrap();
    }

    /// What comes out for a frame, and where.
    fn through(&self, way: Way, frame: &[u8]) -> (String, Vec<u8>) {
        self.wire.send(way.comes_by(), frame).unwrap();
        self.next(PATIENCE).unwrap()
    }

    /// The next frame of IPv4 that comes out.
    fn next(&self, patience: Duration) -> Option<(String, Vec<u8>)> {
        loop {
            let (link, frame) = self.wire.receive(patience).unwrap()?;
            let is_ip = frame.get(12..14) == Some(&[8, 0]);
            // What is sent is heard as well: it is to the router.
            let side = ["elan", "ewan", "eout", "ein"].iter();
            let side = side.zip(1..).find(|(name, _)| **name == link).unwrap().1;
            if is_ip && (side > 2 || frame.starts_with(&far(side))) {
                return Some((link.to_owned(), frame));
            }
        }
    }

    fn count(&self, slot: u32, name: &str) -> u64 {
        let at = REASONS.iter().position(|reason| reason.name == name);
        self.forwarding.counts(slot).unwrap()[at.unwrap()].packets
    }

    fn uses(&self) -> Vec<Used> {
        let mut uses = Vec::new();
        let mut place = Place::default();
        while !self
            .forwarding
            .used_flows(&mut place, |used| uses.push(*used))
            .unwrap()
        {}
        uses
    }
}

/// From inside out, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

impl Way {
    fn comes_by(self) -> &'static str {
        if self == Self::Out { "elan" } else { "ewan" }
    }

    fn leaves_by(self) -> &'static str {
        if self == Self::Out { "ewan" } else { "elan" }
    }

    fn engine(self) -> &'static str {
        if self == Self::Out { "eout" } else { "ein" }
    }

    /// Source and destination before and after.
    fn ends(self, flow: &Flow) -> [[(Ipv4Addr, u16); 2]; 2] {
        match self {
            Self::Out => [[flow.inside, flow.remote], [flow.alias, flow.remote]],
            Self::In => [[flow.remote, flow.alias], [flow.remote, flow.inside]],
        }
    }

    /// Ethernet before and after.
    fn headers(self) -> [[u8; 14]; 2] {
        let (comes, leaves) = if self == Self::Out { (1, 2) } else { (2, 1) };
        let header = |to: [u8; 6], from: [u8; 6]| {
            let bytes = [&to[..], &from, &[8, 0]].concat();
            bytes.try_into().unwrap()
        };
        [
            header(near(comes), far(comes)),
            header(far(leaves), near(leaves)),
        ]
    }
}

/// What a frame has beside its ends.
struct Content {
    protocol: u8,
    ip: Ip,
    segment: (u32, u32, u8, u16),
    options: Vec<u8>,
    data: Vec<u8>,
    /// What stands behind the packet.
    behind: Vec<u8>,
}

impl Content {
    /// Of a frame of so many bytes.
    fn random(random: &mut Random, protocol: u8, frame: usize) -> Self {
        let option_words = if frame < 200 { 0 } else { random.below(4) };
        let headers = 14
            + 20
            + if protocol == protocol::TCP {
                20 + 4 * option_words
            } else {
                8
            };
        let behind = match random.below(4) {
            0 => random.below(frame - headers + 1),
            _ => 0,
        };
        let mut bytes =
            |count: usize| -> Vec<u8> { (0..count).map(|_| random.below(256) as u8).collect() };
        let (data, behind) = (bytes(frame - headers - behind), bytes(behind));
        let options = bytes(4 * option_words);
        let mut ip = Ip::new(INSIDE, REMOTE);
        ip.identification = random.below(1 << 16) as u16;
        ip.flags_and_offset = if random.below(2) == 0 { 0x4000 } else { 0 };
        ip.ttl = 2 + random.below(254) as u8;
        let flags = [tcp::ACK, tcp::ACK | tcp::PSH, tcp::ACK | tcp::URG][random.below(3)];
        let number = random.below(1 << 32) as u32;
        Self {
            protocol,
            ip,
            segment: (number, number ^ 0x5a5a_1234, flags, number as u16),
            options,
            data,
            behind,
        }
    }

    /// The packet between these ends, with right checksums.
    fn packet(&self, [from, to]: [(Ipv4Addr, u16); 2], ttl: u8) -> Vec<u8> {
        let ip = Ip {
            source: from.0,
            destination: to.0,
            ttl,
            ..self.ip
        };
        if self.protocol == protocol::UDP {
            return ip.udp(from.1, to.1, &self.data);
        }
        let (sequence, acknowledgement, flags, window) = self.segment;
        ip.tcp(&Segment {
            source_port: from.1,
            destination_port: to.1,
            sequence,
            acknowledgement,
            flags,
            window,
            options: &self.options,
            data: &self.data,
        })
    }

    /// As it comes in, and as it has to come out.
    fn frames(&self, way: Way) -> [Vec<u8>; 2] {
        let [before, after] = way.ends(&flow(self.protocol));
        let [comes, leaves] = way.headers();
        let before = self.packet(before, self.ip.ttl);
        let after = self.packet(after, self.ip.ttl - 1);
        let mut came_out = [&leaves[..], &after].concat();
        // What is behind is taken off, down to the shortest frame.
        let kept = LEAST.saturating_sub(came_out.len()).min(self.behind.len());
        came_out.extend(&self.behind[..kept]);
        [[&comes[..], &before, &self.behind].concat(), came_out]
    }

    /// Where the transport's checksum is in a frame.
    fn checksum_at(&self) -> usize {
        34 + if self.protocol == protocol::TCP {
            16
        } else {
            6
        }
    }
}

/// The sum of all that a frame's transport checksum is about, and itself.
fn upper_sum(frame: &[u8]) -> u16 {
    let ip = Ipv4::new(&frame[14..]).unwrap();
    let sum = ip.pseudo_header().and(Sum::of(ip.payload())).folded();
    sum % u16::MAX
}

fn is_right(frame: &[u8]) -> bool {
    let ip = Ipv4::new(&frame[14..]).unwrap();
    let pseudo = ip.pseudo_header();
    ip.checksum_is_right()
        && match ip.protocol() {
            protocol::TCP => Tcp::new(ip.payload()).unwrap().checksum_is_right(pseudo),
            _ => Udp::new(ip.payload()).unwrap().checksum_is_right(pseudo),
        }
}

const WAYS: [Way; 2] = [Way::Out, Way::In];
const PROTOCOLS: [u8; 2] = [protocol::TCP, protocol::UDP];

/// Frames of all lengths, each way and protocol, in random order of contents.
fn contents(random: &mut Random) -> Vec<(Way, Content)> {
    let mut contents = Vec::new();
    for way in WAYS {
        for protocol in PROTOCOLS {
            for frame in LEAST..=MOST {
                contents.push((way, Content::random(random, protocol, frame)));
            }
        }
    }
    contents
}

/// Sends all, and has each looked at with its number beside what came of it.
fn run(bench: &Bench, way: Way, frames: &[Vec<u8>], mut look: impl FnMut(usize, &[u8])) {
    let mut at = 0;
    for batch in frames.chunks(BATCH) {
        for frame in batch {
            bench.wire.send(way.comes_by(), frame).unwrap();
        }
        for _ in batch {
            let (link, frame) = bench.next(PATIENCE).unwrap();
            assert_eq!(link, way.leaves_by(), "frame {at}: {:x?}", frames[at]);
            look(at, &frame);
            at += 1;
        }
    }
}

#[test]
fn frames_leave_as_computed() {
    let Some(bench) = Bench::make("xtr", false) else {
        return;
    };
    let mut random = Random::new(0x7472_616e);
    let contents = contents(&mut random);
    for way in WAYS {
        let mut wanted = Vec::new();
        let mut sent = Vec::new();
        for (_, content) in contents.iter().filter(|(of, _)| *of == way) {
            let [comes, leaves] = content.frames(way);
            assert!(is_right(&leaves));
            sent.push(comes);
            wanted.push(leaves);
        }
        run(&bench, way, &sent, |at, frame| {
            assert_eq!(frame, wanted[at], "of {:x?}", sent[at]);
        });
    }
    let translated = [0, 1].map(|slot| bench.count(slot, "translated"));
    assert_eq!(translated, [(contents.len() / 2) as u64; 2]);
}

#[test]
fn wrong_checksums_stay_as_wrong_and_none_stays_none() {
    let Some(bench) = Bench::make("xtw", false) else {
        return;
    };
    let mut random = Random::new(0x7772_6f6e);
    let contents = contents(&mut random);
    for way in WAYS {
        let mut wanted = Vec::new();
        let mut sent = Vec::new();
        for (_, content) in contents.iter().filter(|(of, _)| *of == way) {
            let [mut comes, leaves] = content.frames(way);
            let at = content.checksum_at();
            let is_none = content.protocol == protocol::UDP && random.below(2) == 0;
            let sum = if is_none {
                0
            } else {
                1 + random.below(0xfffe) as u16
            };
            comes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            sent.push(comes);
            wanted.push((leaves, at, is_none));
        }
        run(&bench, way, &sent, |number, frame| {
            let (leaves, at, is_none) = &wanted[number];
            let (at, sum) = (*at, &frame[*at..*at + 2]);
            match is_none {
                true => assert_eq!(sum, [0, 0]),
                false => {
                    assert_eq!(upper_sum(frame), upper_sum(&sent[number]), "{frame:x?}");
                    let is_udp = frame[23] == protocol::UDP;
                    assert!(!is_udp || sum != [0, 0]);
                }
            }
            let rest = |frame: &[u8]| [&frame[..at], &frame[at + 2..]].concat();
            assert_eq!(rest(frame), rest(leaves));
        });
    }
}

#[test]
fn a_checksum_of_zero_is_written_as_its_other_form() {
    let Some(bench) = Bench::make("xtz", false) else {
        return;
    };
    for way in WAYS {
        let mut content = Content::random(&mut Random::new(9), protocol::UDP, 100);
        content.data[..2].fill(0);
        let [_, leaves] = content.frames(way);
        // The checksum of the packet without this word makes it zero.
        let sum = [leaves[40], leaves[41]];
        content.data[..2].copy_from_slice(&sum);
        let [comes, leaves] = content.frames(way);
        assert_eq!(leaves[40..42], [0xff, 0xff]);
        assert_eq!(bench.through(way, &comes), (way.leaves_by().into(), leaves));
    }
}

/// What the engine gets of a frame: all of it, with notes for a source.
fn handed(frame: &[u8], notes: u16) -> Vec<u8> {
    let source = [0x02, 0x46, 0x50, notes as u8, 0, 0];
    [&frame[..6], &source, &frame[12..]].concat()
}

#[test]
fn what_ends_a_flow_goes_to_the_engine() {
    let Some(bench) = Bench::make("xte", false) else {
        return;
    };
    let mut random = Random::new(3);
    for way in WAYS {
        for flags in [tcp::FIN | tcp::ACK, tcp::RST, tcp::SYN, tcp::SYN | tcp::ACK] {
            let mut content = Content::random(&mut random, protocol::TCP, 90);
            content.segment.2 = flags;
            let [comes, _] = content.frames(way);
            let wanted = (way.engine().to_owned(), handed(&comes, note::TAKE_BACK));
            assert_eq!(bench.through(way, &comes), wanted);
        }
    }
}

#[test]
fn an_unfinished_checksum_goes_to_the_engine() {
    let Some(bench) = Bench::make("xtu", false) else {
        return;
    };
    bench.open(true);
    for protocol in PROTOCOLS {
        let content = Content::random(&mut Random::new(4), protocol, 200);
        let [mut comes, _] = content.frames(Way::Out);
        let pseudo = Ipv4::new(&comes[14..]).unwrap().pseudo_header().folded();
        let at = content.checksum_at();
        comes[at..at + 2].copy_from_slice(&pseudo.to_ne_bytes());
        let wanted = ("eout".to_owned(), handed(&comes, note::UNFINISHED));
        assert_eq!(bench.through(Way::Out, &comes), wanted);
    }
}

#[test]
fn a_flow_that_is_left_is_the_engines() {
    let Some(bench) = Bench::make("xtl", false) else {
        return;
    };
    for protocol in PROTOCOLS {
        assert!(bench.forwarding.leave(&flow(protocol)).unwrap());
        assert!(!bench.forwarding.leave(&flow(protocol)).unwrap());
        for way in WAYS {
            let content = Content::random(&mut Random::new(5), protocol, 120);
            let [comes, leaves] = content.frames(way);
            let wanted = (way.engine().to_owned(), handed(&comes, 0));
            assert_eq!(bench.through(way, &comes), wanted);
            assert!(bench.forwarding.enter(&flow(protocol)).unwrap());
            assert_eq!(bench.through(way, &comes), (way.leaves_by().into(), leaves));
            assert!(bench.forwarding.leave(&flow(protocol)).unwrap());
        }
        assert!(bench.forwarding.enter(&flow(protocol)).unwrap());
    }
    assert_eq!(bench.uses().len(), 4);
    bench.forwarding.leave_all().unwrap();
    assert_eq!(bench.uses(), []);
}

#[test]
fn the_last_use_of_each_direction_is_told() {
    let Some(bench) = Bench::make("xti", false) else {
        return;
    };
    let pause = Duration::from_secs(1);
    thread::sleep(pause);
    let content = Content::random(&mut Random::new(6), protocol::UDP, 80);
    let [comes, _] = content.frames(Way::Out);
    bench.through(Way::Out, &comes);
    let uses = bench.uses();
    assert_eq!(uses.len(), 4);
    for used in uses {
        assert_eq!(used.flow, flow(used.flow.protocol));
        let was_used = used.flow.protocol == protocol::UDP && !used.comes_in;
        assert_eq!(used.idle < FRESH, was_used, "{used:?}");
        assert!(was_used || used.idle >= pause, "{used:?}");
    }
}

#[test]
fn the_way_back_of_a_flow_is_looked_up_again() {
    let Some(bench) = Bench::make("xts", false) else {
        return;
    };
    bench.set(false, true);
    let content = Content::random(&mut Random::new(8), protocol::UDP, 70);
    let [comes, leaves] = content.frames(Way::Out);
    let translated = ("ewan".to_owned(), leaves);
    assert_eq!(bench.through(Way::Out, &comes), translated);
    let elsewhere = ["route", "add", "10.1.0.2/32", "via", "10.2.0.2"];
    bench.router.ip(&elsewhere).unwrap();
    thread::sleep(FRESH);
    // Who answered it would not reach it: it goes nowhere, and not to the
    // kernel either, which is not strict here.
    bench.wire.send("elan", &comes).unwrap();
    assert_eq!(bench.next(SILENCE), None);
    assert_eq!(bench.count(0, "bad-source"), 1);
    bench.router.ip(&["route", "del", "10.1.0.2/32"]).unwrap();
    assert_eq!(bench.through(Way::Out, &comes), translated);
}

#[test]
fn unwatched_it_drops_where_closed_and_passes_where_open() {
    for is_closed in [true, false] {
        let Some(bench) = Bench::make("xtc", is_closed) else {
            return;
        };
        let content = Content::random(&mut Random::new(7), protocol::UDP, 110);
        let [comes, leaves] = content.frames(Way::Out);
        let translated = ("ewan".to_owned(), leaves);
        assert_eq!(bench.through(Way::Out, &comes), translated);
        bench.watch(Duration::ZERO);
        thread::sleep(TICK);
        bench.wire.send("elan", &comes).unwrap();
        if is_closed {
            assert_eq!(bench.next(SILENCE), None);
            assert_eq!(bench.count(0, "closed"), 1);
        } else {
            // The kernel forwards it as it is.
            let (link, frame) = bench.next(PATIENCE).unwrap();
            assert_eq!(link, "ewan");
            assert_eq!(frame[26..34], comes[26..34]);
            assert_eq!(bench.count(0, "unwatched"), 1);
        }
        bench.watch(LONG);
        assert_eq!(bench.through(Way::Out, &comes), translated);
    }
}
