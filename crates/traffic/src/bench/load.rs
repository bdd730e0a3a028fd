//! The load test of the report: rounds of new flows, of random packets from
//! outside, of one such packet repeated, and of using the new flows; beside
//! redirected ports. The same rounds with an engine that does nothing show
//! what of it is the test itself.

use std::io::Write;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nat::rules::Redirect;
use nat::{Config, Nat, PortChoice, Verdict};
use packet::protocol;

use super::packets::{Ends, LEN, Templates, ends};

const ALIAS: Ipv4Addr = Ipv4Addr::new(1, 2, 3, 4);
/// Flows are used within a window of so many.
const WINDOW: usize = 25;
/// The most packets for which a flow is the middle of the window.
const MOST_USES: usize = 149;
/// Of a hundred packets of flows, how many come in.
const INCOMING: usize = 89;
/// Packets between two looks at the clock.
const CLOCK_EVERY: u64 = 1_000;
/// Flows that are looked at then.
const SWEPT: usize = 64;
const LINE_EVERY: Duration = Duration::from_secs(1);

/// What the load is made of: the same in every run.
pub struct Random(memory::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(memory::Random::new(seed))
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// Below `bound`, small numbers more often: the chance of a number goes
    /// with its inverse (Zipf's law with exponent 1).
    pub fn zipf(&mut self, bound: usize) -> usize {
        let uniform = self.0.number() as f64 / u64::MAX as f64;
        let place = (bound as f64).powf(uniform) as usize;
        place.saturating_sub(1).min(bound.saturating_sub(1))
    }

    /// Any remote of the many.
    pub fn remote(&mut self) -> (Ipv4Addr, u16) {
        let address = 0x1234_0000 + self.below(1 << 16) as u32;
        (Ipv4Addr::from(address), 1 + self.below(60_000) as u16)
    }

    /// A packet from outside to the alias.
    pub fn outside(&mut self) -> Ends {
        Ends {
            source: Ipv4Addr::from(0x1230_0000 + self.below(1 << 20) as u32),
            source_port: 1 + self.below(65_534) as u16,
            destination: ALIAS,
            destination_port: 1 + self.below(65_534) as u16,
        }
    }

    fn shuffle<T>(&mut self, slice: &mut [T]) {
        for at in (1..slice.len()).rev() {
            slice.swap(at, self.below(at + 1));
        }
    }
}

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub seconds: u64,
    pub batch: usize,
    pub random: usize,
    pub attack: usize,
    pub redirects: usize,
}

/// What is put under load.
trait Engine {
    fn translate(&mut self, out: bool, bytes: &mut [u8], now_millis: u64) -> bool;
    /// What a caller has done now and then.
    fn maintain(&mut self, now_millis: u64);
    /// Flows that were looked at for their expiry.
    fn inspected(&self) -> u64;
    fn flows(&self) -> usize;
}

impl Engine for Nat {
    fn translate(&mut self, out: bool, bytes: &mut [u8], now_millis: u64) -> bool {
        let verdict = if out {
            self.translate_out(bytes, now_millis)
        } else {
            self.translate_in(bytes, now_millis)
        };
        verdict == Verdict::Translated
    }

    fn maintain(&mut self, now_millis: u64) {
        Nat::maintain(self, now_millis, SWEPT);
    }

    fn inspected(&self) -> u64 {
        self.statistics().flows_inspected
    }

    fn flows(&self) -> usize {
        self.statistics().flows
    }
}

/// Does nothing: what is left is the test.
struct Empty;

impl Engine for Empty {
    fn translate(&mut self, _out: bool, bytes: &mut [u8], _now_millis: u64) -> bool {
        std::hint::black_box(bytes);
        true
    }

    fn maintain(&mut self, _now_millis: u64) {}

    fn inspected(&self) -> u64 {
        0
    }

    fn flows(&self) -> usize {
        0
    }
}

/// What a kind of packet has cost.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    packets: u64,
    time: Duration,
}

impl Cost {
    fn micros(&self) -> f64 {
        self.time.as_secs_f64() * 1e6 / self.packets.max(1) as f64
    }
}

const KINDS: [&str; 4] = ["new", "random", "attack", "use"];

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    costs: [Cost; KINDS.len()],
    ok: u64,
    failed: u64,
}

impl Totals {
    fn since(&self, before: &Self) -> [Cost; KINDS.len()] {
        let mut costs = self.costs;
        for (cost, before) in costs.iter_mut().zip(&before.costs) {
            cost.packets -= before.packets;
            cost.time -= before.time;
        }
        costs
    }

    fn packets(&self) -> u64 {
        self.costs.iter().map(|cost| cost.packets).sum()
    }
}

/// Runs the test, and a tenth of it with the engine that does nothing.
pub fn run(load: &Load, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "load test: {} s, {} new flows, {} random packets, {} times the same, {} redirects",
        load.seconds, load.batch, load.random, load.attack, load.redirects
    )?;
    let mut config = Config::new(&[ALIAS]);
    config.port_choice = PortChoice::Same;
    config.limits.max_flows = nat::Limits::MOST_FLOWS;
    let mut nat = Nat::new(config).context("making an engine")?;
    for number in 0..load.redirects {
        let port = 1_000 + (number % 1_000) as u16;
        let host = Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8);
        let redirect = Redirect::port(protocol::UDP, host, port, port).at(ALIAS);
        nat.rules_mut().insert(redirect)?;
    }
    let limit = Duration::from_secs(load.seconds);
    let mut test = Test::new(nat);
    let totals = test.run(load, limit, out)?;
    let (inspected, flows) = (test.engine.inspected(), test.engine.statistics().flows);
    let empty_limit = (limit / 10).max(Duration::from_millis(200));
    let empty = Test::new(Empty).run(load, empty_limit, &mut std::io::sink())?;
    summary(out, &totals, &empty)?;
    let packets = totals.packets().max(1);
    let each = inspected as f64 / packets as f64;
    writeln!(
        out,
        "flows: {flows} now; {inspected} inspected, {each:.3} a packet"
    )?;
    Ok(())
}

fn summary(out: &mut impl Write, totals: &Totals, empty: &Totals) -> Result<()> {
    writeln!(
        out,
        "\n{:<10} {:>14} {:>10} {:>10} {:>10}",
        "", "packets", "us each", "of it test", "engine"
    )?;
    for ((kind, cost), empty) in KINDS.iter().zip(&totals.costs).zip(&empty.costs) {
        let (all, test) = (cost.micros(), empty.micros());
        let engine = (all - test).max(0.0);
        let packets = cost.packets;
        writeln!(
            out,
            "{kind:<10} {packets:>14} {all:>10.4} {test:>10.4} {engine:>10.4}"
        )?;
    }
    let Totals { ok, failed, .. } = totals;
    writeln!(
        out,
        "{:<10} {:>14}   ok {ok}, failed {failed}",
        "all",
        totals.packets()
    )?;
    Ok(())
}

/// An engine under load.
struct Test<E> {
    engine: E,
    templates: Templates,
    random: Random,
    bytes: [u8; LEN],
    start: Instant,
    now_millis: u64,
    since_clock: u64,
    totals: Totals,
}

/// A flow of the round.
#[derive(Debug, Clone, Copy)]
struct Flow {
    out: Ends,
    alias_port: u16,
}

impl<E: Engine> Test<E> {
    fn new(engine: E) -> Self {
        Self {
            engine,
            templates: Templates::new(),
            random: Random::new(5),
            bytes: [0; LEN],
            start: Instant::now(),
            now_millis: 0,
            since_clock: 0,
            totals: Totals::default(),
        }
    }

    fn run(&mut self, load: &Load, limit: Duration, out: &mut impl Write) -> Result<Totals> {
        write!(out, "{:>6} {:>8} {:>10}", "second", "round", "flows")?;
        for kind in KINDS {
            write!(out, " {:>10}", format!("{kind}, us"))?;
        }
        writeln!(out, " {:>12} {:>10}", "ok", "failed")?;
        let mut before = self.totals;
        let (mut round, mut last_line) = (0, self.start);
        while self.start.elapsed() < limit {
            self.round(load);
            round += 1;
            if last_line.elapsed() >= LINE_EVERY || self.start.elapsed() >= limit {
                last_line = Instant::now();
                self.line(round, &before, out)?;
                before = self.totals;
            }
        }
        Ok(self.totals)
    }

    fn line(&self, round: u64, before: &Totals, out: &mut impl Write) -> Result<()> {
        let (second, flows) = (self.start.elapsed().as_secs_f64(), self.engine.flows());
        write!(out, "{second:>6.1} {round:>8} {flows:>10}")?;
        for cost in self.totals.since(before) {
            write!(out, " {:>10.4}", cost.micros())?;
        }
        writeln!(out, " {:>12} {:>10}", self.totals.ok, self.totals.failed)?;
        Ok(())
    }

    fn round(&mut self, load: &Load) {
        let mut flows = Vec::with_capacity(load.batch);
        self.timed(0, |test| {
            for _ in 0..load.batch {
                if let Some(flow) = test.make() {
                    flows.push(flow);
                }
            }
            load.batch as u64
        });
        self.timed(1, |test| {
            for _ in 0..load.random {
                let ends = test.random.outside();
                test.arrive(&ends);
            }
            load.random as u64
        });
        let attack = self.random.outside();
        self.timed(2, |test| {
            for _ in 0..load.attack {
                test.arrive(&attack);
            }
            load.attack as u64
        });
        self.random.shuffle(&mut flows);
        self.timed(3, |test| test.use_all(&flows));
    }

    fn timed(&mut self, kind: usize, act: impl FnOnce(&mut Self) -> u64) {
        let start = Instant::now();
        let packets = act(self);
        if let Some(cost) = self.totals.costs.get_mut(kind) {
            cost.packets += packets;
            cost.time += start.elapsed();
        }
    }

    /// Sends a packet; what it is afterwards, if it was translated.
    fn send(&mut self, out: bool, ends: &Ends) -> Option<Ends> {
        if self.since_clock == 0 {
            self.now_millis = self.start.elapsed().as_millis() as u64;
            self.since_clock = CLOCK_EVERY;
            self.engine.maintain(self.now_millis);
        }
        self.since_clock -= 1;
        self.templates.write(false, ends, &mut self.bytes);
        let done = self.engine.translate(out, &mut self.bytes, self.now_millis);
        let after = done.then(|| self::ends(&self.bytes)).flatten();
        if after.is_none() {
            self.totals.failed += 1;
        }
        after
    }

    fn check(&mut self, right: bool) {
        self.totals.ok += u64::from(right);
        self.totals.failed += u64::from(!right);
    }

    fn make(&mut self) -> Option<Flow> {
        let port = |random: &mut Random| 1_000 + random.below(59_000) as u16;
        let out = Ends {
            source: Ipv4Addr::from(0x0a00_0000 + self.random.below(1 << 16) as u32),
            source_port: port(&mut self.random),
            destination: Ipv4Addr::from(0x1234_0000 + self.random.below(1 << 16) as u32),
            destination_port: port(&mut self.random),
        };
        let after = self.send(true, &out)?;
        let same = (after.destination, after.destination_port);
        self.check(after.source == ALIAS && same == (out.destination, out.destination_port));
        Some(Flow {
            out,
            alias_port: after.source_port,
        })
    }

    /// A packet from outside that belongs to no flow: redirected or refused.
    fn arrive(&mut self, ends: &Ends) {
        if let Some(after) = self.send(false, ends) {
            self.check(after.source == ends.source && after.source_port == ends.source_port);
        }
    }

    fn use_all(&mut self, flows: &[Flow]) -> u64 {
        let mut packets = 0;
        for at in 0..flows.len() {
            let uses = 1 + self.random.below(MOST_USES);
            for _ in 0..uses {
                let place = (at + self.random.below(WINDOW)) % flows.len();
                if let Some(flow) = flows.get(place) {
                    self.use_flow(flow);
                }
            }
            packets += uses as u64;
        }
        packets
    }

    fn use_flow(&mut self, flow: &Flow) {
        let outside = Ends {
            source: ALIAS,
            source_port: flow.alias_port,
            ..flow.out
        };
        if self.random.below(100) < INCOMING {
            if let Some(after) = self.send(false, &outside.turned()) {
                self.check(after == flow.out.turned());
            }
        } else if let Some(after) = self.send(true, &flow.out) {
            self.check(after == outside);
        }
    }
}
