//! The slowest calls: the thread's own time of each call while flows are
//! made, expire and become more from the first packet to the last.
//!
//! Interrupts, and what a host takes from a guest, are charged to the thread,
//! the more to a call the longer it takes. So beside the engine's calls stand
//! readings of the clock alone and loops without memory that take as long as
//! a batch, and for each call what the engine did in it is counted.

mod done;

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nat::{Config, Limits, Nat, Packet, PortChoice, Timeouts, Verdict};
use rustix::time::{ClockId, clock_gettime};

use self::done::Done;
use super::load::Random;
use super::measure::{BATCH, How, Row};
use super::packets::{Area, Ends, Templates, ends};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Seconds of the engine's time that the packets are spread over.
const SECONDS: u64 = 400;
/// How long a flow lives that is not used.
const LIFE_SECS: u32 = 60;
/// Of a hundred packets, how many make a flow at the start, and how many
/// more at the end: the flows become more all the while.
const NEW_AT_START: usize = 5;
const NEW_MORE_AT_END: usize = 40;
/// Of a hundred packets that make no flow, how many come in, and how many
/// belong to nothing.
const INCOMING: usize = 40;
const UNKNOWN: usize = 10;
/// The latest flows, which further packets are of.
const LATEST: usize = 1 << 18;
/// How often the engine is maintained between two passes, as a caller does
/// who has nothing else to do.
const MAINTAINED: usize = 16;
/// Shares of the calls that are told of.
const SHARES: [(f64, &str); 4] = [
    (0.5, "50 %"),
    (0.99, "99 %"),
    (0.99999, "99.999 %"),
    (1.0, "the slowest"),
];

/// The times of `packets` packets' calls: half of them one by one, half in
/// batches, by turns; and what the machine and the clock add: of as many
/// readings of the clock alone as there are single calls, and of as many
/// loops as there are batches.
pub fn measure(packets: usize) -> Result<Vec<Row>> {
    let mut test = Test::new(packets)?;
    let mut done = 0;
    while done < packets {
        for how in [Some(How::Single), Some(How::Batch), None] {
            done += test.pass(how, done)?;
        }
    }
    let statistics = test.nat.statistics();
    let counted =
        |what, number: u64| Row::new("fingerpost", what, packets, "flows", vec![number as f64]);
    let mut rows = vec![
        counted("made", statistics.flows_made),
        counted("expired", statistics.flows_expired),
        counted("at the end", statistics.flows as u64),
    ];
    for (who, times) in [
        (How::Single.who(), &test.single),
        (How::Batch.who(), &test.batch),
        ("the clock alone", &test.nothing),
        ("a loop as long as a batch", &test.nothing_long),
    ] {
        rows.extend(times.rows(who, packets));
    }
    rows.extend(test.single_done.rows(How::Single.who(), packets));
    rows.extend(test.batch_done.rows(How::Batch.who(), packets));
    Ok(rows)
}

/// How long calls took: exact below a millisecond by steps, and the longest.
struct Times {
    counts: Vec<u64>,
    longest: u64,
}

impl Times {
    /// Nanoseconds of a step.
    const STEP: u64 = 10;
    const STEPS: usize = 100_000;

    fn new() -> Self {
        Self {
            counts: vec![0; Self::STEPS],
            longest: 0,
        }
    }

    fn add(&mut self, nanos: u64) {
        let step = (nanos / Self::STEP).min(Self::STEPS as u64 - 1);
        if let Some(count) = self.counts.get_mut(step as usize) {
            *count += 1;
        }
        self.longest = self.longest.max(nanos);
    }

    /// Nanoseconds that a share of the calls did not exceed, rounded up.
    fn share(&self, share: f64) -> u64 {
        let all: u64 = self.counts.iter().sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (count, step) in self.counts.iter().zip(1..Self::STEPS as u64) {
            seen += count;
            if seen >= wanted {
                return (step * Self::STEP).min(self.longest);
            }
        }
        self.longest
    }

    fn rows(&self, who: &str, packets: usize) -> Vec<Row> {
        let row = |(share, what): &(f64, &str)| {
            let nanos = self.share(*share) as f64;
            Row::new(who, &format!("a call, {what}"), packets, "ns", vec![nanos])
        };
        SHARES.iter().map(row).collect()
    }
}

/// A flow that further packets may be of.
#[derive(Debug, Clone, Copy)]
struct Originated {
    out: Ends,
    alias_port: u16,
    is_tcp: bool,
}

/// The engine, and what it is put through.
struct Test {
    nat: Nat,
    packets: usize,
    area: Area,
    templates: Templates,
    random: Random,
    latest: Vec<Originated>,
    /// Where the next flow is noted once [`LATEST`] are.
    oldest: usize,
    single: Times,
    batch: Times,
    nothing: Times,
    nothing_long: Times,
    single_done: Done,
    batch_done: Done,
    /// What the batches of the last pass took.
    last_batches: Vec<u64>,
    /// What [`FIT_TURNS`] of the loop take.
    fit_nanos: u64,
}

impl Test {
    fn new(packets: usize) -> Result<Self> {
        let mut config = Config::new(&[ALIAS]);
        config.port_choice = PortChoice::Same;
        config.timeouts = Timeouts {
            tcp_opening_secs: LIFE_SECS,
            tcp_established_secs: LIFE_SECS,
            udp_unreplied_secs: LIFE_SECS,
            udp_secs: LIFE_SECS,
            ..Timeouts::default()
        };
        config.limits = Limits {
            max_flows: (packets / 8 + 1_024).min(Limits::MOST_FLOWS),
            ..Limits::default()
        };
        Ok(Self {
            nat: Nat::new(config).context("making an engine")?,
            packets: packets.max(1),
            area: Area::new()?,
            templates: Templates::new(),
            random: Random::new(9),
            latest: Vec::new(),
            oldest: 0,
            single: Times::new(),
            batch: Times::new(),
            nothing: Times::new(),
            nothing_long: Times::new(),
            single_done: Done::new(),
            batch_done: Done::new(),
            last_batches: Vec::new(),
            fit_nanos: FIT_TURNS,
        })
    }

    /// An area's packets, all of one direction: as many as were handed over.
    fn pass(&mut self, how: Option<How>, done: usize) -> Result<usize> {
        let Some(how) = how else {
            self.nothing();
            return Ok(0);
        };
        let out = self.random.below(100) >= INCOMING || self.latest.is_empty();
        let made = self.write(out, done);
        let now_millis = (done as u64 * SECONDS * 1_000) / self.packets as u64;
        for _ in 0..MAINTAINED {
            self.nat.maintain(now_millis, 0);
        }
        let refused = match how {
            How::Single => self.singly(out, now_millis),
            How::Batch => self.in_batches(out, now_millis),
        };
        ensure!(
            !out || refused == 0,
            "{refused} of {} packets out were refused after {done}",
            Area::len()
        );
        self.note(made);
        Ok(Area::len())
    }

    /// The same without an engine.
    fn nothing(&mut self) {
        for _ in 0..Area::len() {
            self.nothing.add(since(own_time()));
        }
        // The clock is a part of both.
        let clock = self.nothing.share(0.5);
        self.last_batches.sort_unstable();
        let middle = self.last_batches.get(self.last_batches.len() / 2);
        let wanted = middle.map_or(0, |nanos| nanos.saturating_sub(clock));
        let turns = wanted * FIT_TURNS / self.fit_nanos;
        let mut best = u64::MAX;
        for _ in 0..Area::len() / BATCH {
            let start = own_time();
            turn(turns);
            let nanos = since(start);
            best = best.min(nanos);
            self.nothing_long.add(nanos);
        }
        if turns > 0 && best > clock {
            self.fit_nanos = ((best - clock) * FIT_TURNS / turns).max(1);
        }
    }

    /// Writes packets into the area; the new flows among them, by place.
    fn write(&mut self, out: bool, done: usize) -> Vec<(usize, Originated)> {
        let new = NEW_AT_START + NEW_MORE_AT_END * done / self.packets;
        // All that come out make up for those that come in, and make none.
        let new = new * 100 / (100 - INCOMING);
        let mut made = Vec::new();
        for (place, bytes) in self.area.buffers(Area::len()).enumerate() {
            let known = self
                .latest
                .get(self.random.below(LATEST.min(self.latest.len()).max(1)));
            let (is_tcp, ends) = match known {
                Some(known) if out && self.random.below(100) >= new => (known.is_tcp, known.out),
                Some(known) if !out && self.random.below(100) >= UNKNOWN => {
                    let incoming = Ends {
                        destination: ALIAS,
                        destination_port: known.alias_port,
                        ..known.out.turned()
                    };
                    (known.is_tcp, incoming)
                }
                _ if out => {
                    let flow = new_flow(&mut self.random);
                    made.push((place, flow));
                    (flow.is_tcp, flow.out)
                }
                _ => {
                    let mut ends = self.random.outside();
                    ends.destination = ALIAS;
                    (false, ends)
                }
            };
            self.templates.write(is_tcp, &ends, bytes);
        }
        made
    }

    fn singly(&mut self, out: bool, now_millis: u64) -> usize {
        let mut refused = 0;
        self.single_done.begin(&self.nat);
        for bytes in self.area.buffers(Area::len()) {
            let start = own_time();
            let verdict = if out {
                self.nat.translate_out(bytes, now_millis)
            } else {
                self.nat.translate_in(bytes, now_millis)
            };
            let nanos = since(start);
            self.single.add(nanos);
            self.single_done.add(&self.nat, nanos);
            refused += usize::from(verdict != Verdict::Translated);
        }
        refused
    }

    fn in_batches(&mut self, out: bool, now_millis: u64) -> usize {
        let buffers = self.area.buffers(Area::len());
        let mut packets: Vec<Packet<'_>> = buffers.map(Packet::new).collect();
        self.batch_done.begin(&self.nat);
        self.last_batches.clear();
        for batch in packets.chunks_mut(BATCH) {
            let start = own_time();
            if out {
                self.nat.translate_out_batch(batch, now_millis);
            } else {
                self.nat.translate_in_batch(batch, now_millis);
            }
            let nanos = since(start);
            self.batch.add(nanos);
            self.last_batches.push(nanos);
            self.batch_done.add(&self.nat, nanos);
        }
        let refused = |packet: &&Packet<'_>| packet.verdict != Verdict::Translated;
        packets.iter().filter(refused).count()
    }

    /// Notes the new flows with the alias ports that they were given.
    fn note(&mut self, made: Vec<(usize, Originated)>) {
        let mut made = made.into_iter().peekable();
        for (place, bytes) in self.area.buffers(Area::len()).enumerate() {
            let Some((_, mut flow)) = made.next_if(|(at, _)| *at == place) else {
                continue;
            };
            flow.alias_port = ends(bytes).map_or(0, |ends| ends.source_port);
            if self.latest.len() < LATEST {
                self.latest.push(flow);
            } else if let Some(oldest) = self.latest.get_mut(self.oldest) {
                *oldest = flow;
                self.oldest = (self.oldest + 1) % LATEST;
            }
        }
    }
}

fn new_flow(random: &mut Random) -> Originated {
    let (destination, destination_port) = random.remote();
    Originated {
        out: Ends {
            source: Ipv4Addr::from(0x0a00_0000 + random.below(1 << 22) as u32),
            source_port: 1_024 + random.below(60_000) as u16,
            destination,
            destination_port,
        },
        alias_port: 0,
        is_tcp: random.below(2) == 0,
    }
}

/// Turns of the loop that its time is told of.
const FIT_TURNS: u64 = 10_000;

/// A loop of multiplications, each of which waits for the one before.
fn turn(turns: u64) {
    let mut product = 1_u64;
    for _ in 0..turns {
        product = black_box(product.wrapping_mul(3));
    }
}

/// The time that this thread has had of a processor.
pub fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub fn since(start: Duration) -> u64 {
    own_time().saturating_sub(start).as_nanos() as u64
}
