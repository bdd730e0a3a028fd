//! The cost of a packet by the number of flows, one core: the rows that
//! `cargo xtask bench nat` and the project's issue name.
//!
//! `packets [stride=BYTES] [FLOWS…]`; without numbers 2,048, 100,000,
//! 1,000,000 and 10,000,000. Packets have 64 bytes, half of them TCP, in an
//! area of 16 MiB on huge pages, 2,112 bytes apart as a port's buffers are
//! (7,943 of them), or as `stride` says: with `stride=96` each byte of the
//! area comes from memory, half as many packets again lie in two lines, and
//! that costs up to 10 ns a packet more. Flows are picked uniformly at
//! random. Each figure is the median of its rounds. The reference loop (a
//! load that depends on the one before, over 64 MiB on huge pages) tells a
//! slow minute of the machine from a slow engine; beside each row stands what
//! the least that a translation can be takes (`prototype.rs`), and how many
//! times that the engine takes.
//!
//! The engine is given its size at the start; with `grow` it is given 4,096
//! and grows in steps from there, maintained between the passes.
//!
//! `only=NAME` leaves rows out whose name or way does not begin like that,
//! `engine` leaves the prototype out (for profiles).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark fails by it"
)]

mod prototype;

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Instant;

use fingerpost_nat::saved::{ChunkReader, Chunks};
use fingerpost_nat::{Config, Nat, Packet, Timeouts, Verdict};
use lab::Random;
use lab::bench::median;
use memory::Reserved;
use packet::build::{Ip, Segment};
use packet::tcp::ACK;
use prototype::Prototype;

/// Bytes from a packet to the next: a buffer of a port, but not a power of
/// two, which would make them collide in the first cache.
const STRIDE: usize = 2_112;
const AREA_BYTES: usize = 16 << 20;
const BATCH: usize = 32;
/// Packets of a figure, at least.
const PACKETS: usize = 2_000_000;
const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Flows that an engine is given at the start if it is to grow.
const GROWS_FROM: usize = 4_096;
/// How often the engine is maintained between two passes that make flows.
const MAINTAINED: usize = 16;

fn main() -> io::Result<()> {
    let flows: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|word| word.replace('_', "").parse().ok())
        .collect();
    let flows = if flows.is_empty() {
        vec![2_048, 100_000, 1_000_000, 10_000_000]
    } else {
        flows
    };
    let word = |name: &str| {
        let mut words = std::env::args();
        words.find_map(|word| word.strip_prefix(name).map(str::to_owned))
    };
    let wanted = Wanted {
        stride: word("stride=").map_or(STRIDE, |bytes| bytes.parse().unwrap()),
        only: word("only=").unwrap_or_default(),
        prototype: !std::env::args().any(|word| word == "engine"),
        grow: std::env::args().any(|word| word == "grow"),
    };
    let mut out = io::stdout().lock();
    for count in flows {
        measure(&mut out, count, &wanted)?;
    }
    Ok(())
}

/// What the command line wants.
struct Wanted {
    stride: usize,
    only: String,
    prototype: bool,
    grow: bool,
}

impl Wanted {
    fn row(&self, name: &str, how: &str) -> bool {
        format!("{name}, {how}").starts_with(&self.only)
    }
}

fn measure(out: &mut impl Write, count: usize, wanted: &Wanted) -> io::Result<()> {
    let row = |out: &mut dyn Write, name: &str, how: &str, cost: Cost, least: Cost| {
        write!(
            out,
            "{name:<13} {how:<9} {count:>9} flows  {:>7.1} ns_per_op, best {:>7.1}",
            cost.median, cost.best
        )?;
        if least.median > 0.0 {
            let (median, best) = (cost.median / least.median, cost.best / least.best);
            write!(
                out,
                "  prototype {:>7.1}, best {:>7.1}  ratio {median:>5.2}, best {best:>5.2}",
                least.median, least.best
            )?;
        }
        writeln!(out)
    };
    let mut bench = Bench::new(count, wanted);
    writeln!(
        out,
        "reference     load      {count:>9} flows  {:>7.1} ns_per_op",
        reference()
    )?;
    let (batch, one) = (("batch", Way::Batch), ("one call", Way::One));
    let mut least = wanted.prototype.then(|| Least::new(&mut bench));
    for (how, way) in [one, batch] {
        if wanted.row("new flow", how) {
            let ns = bench.new_flows(way);
            let least = least
                .as_mut()
                .map_or(Cost::NONE, |least| least.new_flows(&mut bench, way));
            row(out, "new flow", how, ns, least)?;
        }
    }
    let (flows, bytes) = bench.fill();
    writeln!(
        out,
        "flow          -         {count:>9} flows  {:>7.1} bytes_per_row",
        bytes as f64 / flows as f64
    )?;
    for (how, cost) in [
        ("saved", Bench::saved as fn(&mut Bench) -> Cost),
        ("taken up", Bench::taken_up),
    ] {
        if wanted.row("state", how) {
            row(out, "state", how, cost(&mut bench), Cost::NONE)?;
        }
    }
    for (how, way) in [batch, one] {
        for (name, is_out) in [("existing out", true), ("existing in", false)] {
            if wanted.row(name, how) {
                let ns = bench.existing(way, is_out);
                let least = least.as_mut();
                let least =
                    least.map_or(Cost::NONE, |least| least.existing(&mut bench, way, is_out));
                row(out, name, how, ns, least)?;
            }
        }
        for (name, same) in [("unknown in", false), ("attack in", true)] {
            if wanted.row(name, how) {
                let ns = bench.unknown(way, same);
                let least = least.as_mut();
                let least = least.map_or(Cost::NONE, |least| least.unknown(&mut bench, way, same));
                row(out, name, how, ns, least)?;
            }
        }
        if wanted.row("hot", how) {
            row(out, "hot", how, bench.hot(way), Cost::NONE)?;
        }
    }
    Ok(())
}

/// A dependent load over 64 MiB.
fn reference() -> f64 {
    let len = 64 << 17;
    let mut next = Reserved::new(len).unwrap();
    next.prepare(len);
    for at in 0..len as u64 {
        next.push(at);
    }
    let mut random = Random::new(7);
    for at in (1..len).rev() {
        next.swap(at, random.below(at));
    }
    let started = Instant::now();
    let mut at = 0;
    for _ in 0..1_000_000 {
        at = next[at as usize];
    }
    let ns = started.elapsed().as_nanos() as f64 / 1e6;
    // Kept from being optimised away.
    if at == u64::MAX { 0.0 } else { ns }
}

#[derive(Clone, Copy)]
enum Way {
    Batch,
    One,
}

struct Bench {
    nat: Nat,
    count: usize,
    /// A packet out and one in for each flow, 64 bytes each: too many to be
    /// kept; made again from the flow's number and its alias port.
    alias_ports: Vec<u16>,
    area: Reserved<u8>,
    stride: usize,
    grow: bool,
    random: Random,
    now: u64,
}

fn config(flows: usize, grow: bool) -> Config {
    let mut config = Config::new(&[ALIAS]);
    config.limits.initial_flows = if grow { GROWS_FROM } else { flows };
    config.limits.max_flows = flows + flows / 4 + 1_000;
    config.timeouts = Timeouts {
        tcp_opening_secs: 7_440,
        udp_unreplied_secs: 7_440,
        udp_secs: 7_440,
        ..Timeouts::default()
    };
    config.seed = 0x1234_5678_9abc_def0;
    config
}

/// Endpoints of a flow by its number.
fn ends(flow: usize) -> (Ipv4Addr, u16, Ipv4Addr, u16, bool) {
    let inside = Ipv4Addr::from(0x0a00_0000 + (flow / 63) as u32);
    let port = 1_024 + (flow % 63) as u16 * 17;
    let spread = (flow as u32).wrapping_mul(0x9e37_79b1);
    let remote = Ipv4Addr::from(0x1200_0000 | spread >> 8);
    (inside, port, remote, 443, flow & 1 == 0)
}

fn write_packet(
    place: &mut [u8],
    source: (Ipv4Addr, u16),
    destination: (Ipv4Addr, u16),
    tcp: bool,
) {
    let ip = Ip::new(source.0, destination.0);
    let packet = if tcp {
        ip.tcp(&Segment {
            source_port: source.1,
            destination_port: destination.1,
            flags: ACK,
            window: 1_000,
            data: &[0; 24],
            ..Segment::default()
        })
    } else {
        ip.udp(source.1, destination.1, &[0; 36])
    };
    place[..64].copy_from_slice(&packet);
}

impl Bench {
    fn new(count: usize, wanted: &Wanted) -> Self {
        let (stride, grow) = (wanted.stride, wanted.grow);
        let mut area = Reserved::new(AREA_BYTES).unwrap();
        area.prepare(AREA_BYTES);
        while area.push(0) {}
        Self {
            nat: Nat::new(config(count, grow)).unwrap(),
            count,
            alias_ports: vec![0; count],
            area,
            stride,
            grow,
            random: Random::new(0x2545_f491_4f6c_dd1d),
            now: 1_000_000,
        }
    }

    /// Makes the area's packets by a closure and runs them, timed.
    fn run(
        &mut self,
        way: Way,
        out: bool,
        packets: usize,
        mut make: impl FnMut(&mut [u8], usize, &[u16], &mut Random),
    ) -> (f64, [usize; Verdict::ALL.len()]) {
        let stride = self.stride;
        let area = &mut self.area[..packets * stride];
        for (at, place) in area.chunks_exact_mut(stride).enumerate() {
            make(place, at, &self.alias_ports, &mut self.random);
        }
        let nat = &mut self.nat;
        let before = nat.statistics();
        let started = Instant::now();
        match way {
            Way::Batch => {
                for places in area.chunks_mut(stride * BATCH) {
                    // As a port hands them over: a short array, made anew.
                    let count = places.len() / stride;
                    let mut places = places.chunks_exact_mut(stride);
                    let mut batch: [Packet; BATCH] = std::array::from_fn(|_| {
                        Packet::new(places.next().map_or(&mut [], |place| &mut place[..64]))
                    });
                    if out {
                        nat.translate_out_batch(&mut batch[..count], self.now);
                    } else {
                        nat.translate_in_batch(&mut batch[..count], self.now);
                    }
                }
            }
            Way::One => {
                for place in area.chunks_exact_mut(stride) {
                    if out {
                        nat.translate_out(&mut place[..64], self.now);
                    } else {
                        nat.translate_in(&mut place[..64], self.now);
                    }
                }
            }
        }
        let ns = started.elapsed().as_nanos() as f64 / packets as f64;
        self.now += 1;
        let after = nat.statistics();
        let verdicts = std::array::from_fn(|at| match out {
            true => (after.out[at] - before.out[at]) as usize,
            false => (after.incoming[at] - before.incoming[at]) as usize,
        });
        (ns, verdicts)
    }

    /// Packets in the area.
    fn packets(&self) -> usize {
        AREA_BYTES / self.stride
    }

    /// Makes all flows, in rounds of the area, and remembers their ports.
    fn fill(&mut self) -> (usize, usize) {
        self.make_all(Way::Batch);
        let statistics = self.nat.statistics();
        (statistics.flows, statistics.memory_bytes)
    }

    /// The whole state as bytes, a flow.
    fn saved(&mut self) -> Cost {
        let mut costs: Vec<f64> = (0..3).map(|_| self.save().0).collect();
        cost(&mut costs)
    }

    /// The same taken up by another engine.
    fn taken_up(&mut self) -> Cost {
        let (_, bytes) = self.save();
        let (config, now, flows) = (self.nat.config(), self.now, self.count);
        let mut costs: Vec<f64> = (0..3)
            .map(|_| {
                let started = Instant::now();
                let mut nat = Nat::new(config.clone()).unwrap();
                let mut chunks = ChunkReader::new(bytes.as_slice()).unwrap();
                let taken = nat.take_up(&mut chunks, 0, now).unwrap();
                assert_eq!(taken.left_out, 0);
                started.elapsed().as_nanos() as f64 / flows as f64
            })
            .collect();
        cost(&mut costs)
    }

    fn save(&mut self) -> (f64, Vec<u8>) {
        let mut bytes = Vec::new();
        let started = Instant::now();
        let mut chunks = Chunks::new(&mut bytes).unwrap();
        self.nat.save(self.now, &mut chunks).unwrap();
        chunks.flush().unwrap();
        let ns = started.elapsed().as_nanos() as f64 / self.count as f64;
        (ns, bytes)
    }

    fn make_all(&mut self, way: Way) -> Cost {
        let mut from = 0;
        let mut costs = Vec::new();
        while from < self.count {
            let packets = self.packets().min(self.count - from);
            // With its size given there is nothing to be prepared.
            for _ in 0..if self.grow { MAINTAINED } else { 0 } {
                self.nat.maintain(self.now, 0);
            }
            let (ns, verdicts) = self.run(way, true, packets, |place, at, _, _| {
                let (inside, port, remote, remote_port, tcp) = ends(from + at);
                write_packet(place, (inside, port), (remote, remote_port), tcp);
            });
            assert_eq!(
                verdicts[Verdict::Translated.index()],
                packets,
                "{verdicts:?}"
            );
            for at in 0..packets {
                let port = &self.area[at * self.stride + 20..];
                self.alias_ports[from + at] = u16::from_be_bytes([port[0], port[1]]);
            }
            costs.push(ns);
            from += packets;
        }
        // The last tenth: the table has its size then.
        let last = costs.len() - costs.len().div_ceil(10);
        cost(&mut costs[last..])
    }

    /// Flows made in an engine with memory for them.
    fn new_flows(&mut self, way: Way) -> Cost {
        let rounds = rounds_of_new(self.count);
        let mut costs = Vec::new();
        for _ in 0..rounds {
            self.nat = Nat::new(config(self.count, self.grow)).unwrap();
            costs.push(self.make_all(way));
        }
        median_of(&costs)
    }

    fn rounds(
        &mut self,
        way: Way,
        out: bool,
        want: Verdict,
        make: impl Fn(&mut [u8], usize, &[u16], &mut Random),
    ) -> Cost {
        let mut costs = Vec::new();
        let packets = self.packets();
        for _ in 0..PACKETS.div_ceil(packets) {
            let (ns, verdicts) = self.run(way, out, packets, &make);
            assert_eq!(verdicts[want.index()], packets, "{verdicts:?}");
            costs.push(ns);
        }
        cost(&mut costs)
    }

    fn existing(&mut self, way: Way, out: bool) -> Cost {
        let count = self.count;
        self.rounds(
            way,
            out,
            Verdict::Translated,
            move |place, _, ports, random| {
                write_of(place, random.below(count), ports, out);
            },
        )
    }

    fn hot(&mut self, way: Way) -> Cost {
        self.rounds(way, true, Verdict::Translated, |place, _, ports, _| {
            write_of(place, 1, ports, true);
        })
    }

    /// Incoming packets of no flow: of all remotes, or one again and again.
    fn unknown(&mut self, way: Way, same: bool) -> Cost {
        self.rounds(
            way,
            false,
            Verdict::NoMapping,
            move |place, at, _, random| {
                write_unknown(place, random, same, at & 1 == 0 && !same);
            },
        )
    }
}

/// Rounds of making all flows: more where one is short.
fn rounds_of_new(count: usize) -> usize {
    match count {
        0..100_000 => 100,
        100_000..2_000_000 => (2_000_000 / count).max(3),
        _ => 1,
    }
}

fn write_unknown(place: &mut [u8], random: &mut Random, same: bool, tcp: bool) {
    let word = if same {
        77
    } else {
        random.number() as u32 >> 12
    };
    let remote = Ipv4Addr::from(0x1300_0000 | word);
    write_packet(place, (remote, 443), (ALIAS, word as u16), tcp);
}

fn write_of(place: &mut [u8], flow: usize, ports: &[u16], out: bool) {
    let (inside, port, remote, remote_port, tcp) = ends(flow);
    if out {
        write_packet(place, (inside, port), (remote, remote_port), tcp);
    } else {
        write_packet(place, (remote, remote_port), (ALIAS, ports[flow]), tcp);
    }
}

/// The prototype in the same area, with the same flows, as far as they found
/// a place.
struct Least {
    prototype: Prototype,
    placed: Vec<u32>,
}

impl Least {
    fn new(bench: &mut Bench) -> Self {
        let mut least = Self {
            prototype: Prototype::new(bench.count, u32::from_ne_bytes(ALIAS.octets())),
            placed: Vec::new(),
        };
        least.new_flows(bench, Way::Batch);
        least
    }

    /// Runs over the area, which holds packets already.
    fn run(
        &mut self,
        bench: &mut Bench,
        packets: usize,
        mut batch: impl FnMut(&mut Prototype, &mut [&mut [u8]]),
    ) -> f64 {
        let stride = bench.stride;
        let area = &mut bench.area[..packets * stride];
        let started = Instant::now();
        for places in area.chunks_mut(stride * BATCH) {
            let count = places.len() / stride;
            let mut places = places.chunks_exact_mut(stride);
            let mut packets: [&mut [u8]; BATCH] = std::array::from_fn(|_| {
                places.next().map_or(&mut [][..], |place| &mut place[..64])
            });
            batch(&mut self.prototype, &mut packets[..count]);
        }
        started.elapsed().as_nanos() as f64 / packets as f64
    }

    fn new_flows(&mut self, bench: &mut Bench, way: Way) -> Cost {
        let rounds = 0..rounds_of_new(bench.count);
        let costs: Vec<_> = rounds.map(|_| self.make_all(bench, way)).collect();
        median_of(&costs)
    }

    fn make_all(&mut self, bench: &mut Bench, way: Way) -> Cost {
        self.prototype = Prototype::new(bench.count, u32::from_ne_bytes(ALIAS.octets()));
        self.placed.clear();
        let (mut from, mut costs) = (0, Vec::new());
        while from < bench.count {
            let packets = bench.packets().min(bench.count - from);
            for at in 0..packets {
                let (inside, port, remote, remote_port, _) = ends(from + at);
                let place = &mut bench.area[at * bench.stride..];
                write_packet(place, (inside, port), (remote, remote_port), false);
            }
            costs.push(match way {
                Way::Batch => self.run(bench, packets, |prototype, packets| {
                    prototype.make_batch(packets);
                }),
                Way::One => self.run(bench, packets, |prototype, packets| {
                    for packet in packets {
                        if !prototype.one::<true>(packet) {
                            prototype.make(packet);
                        }
                    }
                }),
            });
            for at in 0..packets {
                let source = &bench.area[at * bench.stride + 12..];
                if source[..4] == ALIAS.octets() {
                    self.placed.push((from + at) as u32);
                }
            }
            from += packets;
        }
        let last = costs.len() - costs.len().div_ceil(10);
        cost(&mut costs[last..])
    }

    fn rounds(
        &mut self,
        bench: &mut Bench,
        (way, out, want): (Way, bool, bool),
        make: impl Fn(&mut [u8], &mut Random),
    ) -> Cost {
        let packets = bench.packets();
        let mut costs = Vec::new();
        for _ in 0..PACKETS.div_ceil(packets) {
            for place in bench.area.chunks_exact_mut(bench.stride) {
                make(place, &mut bench.random);
            }
            let mut done = 0;
            costs.push(match (way, out) {
                (Way::Batch, true) => self.run(bench, packets, |prototype, packets| {
                    done += prototype.batch::<true>(packets);
                }),
                (Way::Batch, false) => self.run(bench, packets, |prototype, packets| {
                    done += prototype.batch::<false>(packets);
                }),
                (Way::One, true) => self.run(bench, packets, |prototype, packets| {
                    for packet in packets {
                        done += usize::from(prototype.one::<true>(packet));
                    }
                }),
                (Way::One, false) => self.run(bench, packets, |prototype, packets| {
                    for packet in packets {
                        done += usize::from(prototype.one::<false>(packet));
                    }
                }),
            });
            assert_eq!(done, if want { packets } else { 0 });
        }
        cost(&mut costs)
    }

    fn existing(&mut self, bench: &mut Bench, way: Way, out: bool) -> Cost {
        let placed = std::mem::take(&mut self.placed);
        let ns = self.rounds(bench, (way, out, true), |place, random| {
            let flow = placed[random.below(placed.len())] as usize;
            let (inside, port, remote, remote_port, _) = ends(flow);
            if out {
                write_packet(place, (inside, port), (remote, remote_port), false);
            } else {
                write_packet(place, (remote, remote_port), (ALIAS, port), false);
            }
        });
        self.placed = placed;
        ns
    }

    fn unknown(&mut self, bench: &mut Bench, way: Way, same: bool) -> Cost {
        self.rounds(bench, (way, false, false), |place, random| {
            write_unknown(place, random, same, false);
        })
    }
}

/// What the rounds of a figure took.
#[derive(Clone, Copy)]
struct Cost {
    median: f64,
    best: f64,
}

impl Cost {
    const NONE: Self = Self {
        median: 0.0,
        best: 0.0,
    };
}

fn cost(costs: &mut [f64]) -> Cost {
    Cost {
        median: median(costs),
        best: costs.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

/// Of the medians of several rounds, and of the best.
fn median_of(costs: &[Cost]) -> Cost {
    let mut medians: Vec<_> = costs.iter().map(|cost| cost.median).collect();
    let best = costs.iter().map(|cost| cost.best);
    Cost {
        best: best.fold(f64::INFINITY, f64::min),
        ..cost(&mut medians)
    }
}
