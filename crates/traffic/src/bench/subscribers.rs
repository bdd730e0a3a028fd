//! A carrier's subscribers: each in a block of ports, sixteen flows each, a
//! steady stream of new ones while as many end; one who scans; and a flood of
//! strangers at mappings that let everybody in. By the thread's own time.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use nat::{
    Behaviour, BlockEventKind, Blocks, Config, Cursor, Limits, Nat, Packet, PortChoice, Verdict,
};

use super::load::Random;
use super::measure::{BATCH, Row, reference};
use super::packets::{Area, Ends, Templates};
use super::tail::{own_time, since};

const WHO: &str = "fingerpost, batch of 32";
/// Flows of each subscriber, and how long one lives that is not used.
const FLOWS: usize = 16;
const LIFE_SECS: u32 = 160;
/// Ports of a block, and blocks of an address.
const BLOCK: u16 = 256;
const BLOCKS: usize = 252;
/// Seconds of the steady stream, and of the streams with one who scans.
const STEADY_SECS: usize = 20;
/// Sessions of a subscriber: the scan goes beyond them.
const SESSIONS: u32 = 2_000;
/// Of how many batches one is the scanner's: ten thousand flows beside a
/// hundred thousand.
const SCANNED: usize = 10;
/// Events that are taken between two passes.
const EVENTS: usize = 1 << 16;

/// All of it.
pub fn measure(quick: bool) -> Result<Vec<Row>> {
    let subscribers = if quick { 20_000 } else { 1_000_000 };
    let mut carrier = Carrier::new(subscribers)?;
    let flows = carrier.flows;
    let mut rows = vec![reference(flows)];
    carrier.fill(&mut rows);
    carrier.steady(&mut rows);
    carrier.scanned(&mut rows);
    carrier.walked(&mut rows);
    strangers(if quick { 20_000 } else { 1_000_000 }, &mut rows)?;
    Ok(rows)
}

struct Carrier {
    nat: Nat,
    area: Area,
    templates: Templates,
    random: Random,
    subscribers: usize,
    /// Flows that are there at a time.
    flows: usize,
    /// Made so far.
    made: usize,
    /// Blocks taken and given back.
    records: usize,
}

/// What some batches took.
#[derive(Default)]
struct Times {
    nanos: Vec<u64>,
    refused: usize,
}

impl Times {
    /// The time of a batch that a share did not exceed, microseconds.
    fn share(&mut self, share: f64) -> f64 {
        self.nanos.sort_unstable();
        let place = (self.nanos.len() as f64 * share) as usize;
        let place = place.min(self.nanos.len().saturating_sub(1));
        self.nanos
            .get(place)
            .map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
    }

    fn all_secs(&self) -> f64 {
        self.nanos.iter().sum::<u64>() as f64 / 1e9
    }

    fn of(&mut self, nat: &mut Nat, packets: &mut [Packet<'_>], out: bool, now_millis: u64) {
        let start = own_time();
        match out {
            true => nat.translate_out_batch(packets, now_millis),
            false => nat.translate_in_batch(packets, now_millis),
        }
        self.nanos.push(since(start));
        let refused = packets.iter();
        let refused = refused.filter(|packet| packet.verdict != Verdict::Translated);
        self.refused += refused.count();
    }
}

impl Carrier {
    fn new(subscribers: usize) -> Result<Self> {
        let addresses = subscribers.div_ceil(BLOCKS) + 16;
        let addresses: Vec<Ipv4Addr> = (0..addresses as u32)
            .map(|number| Ipv4Addr::from(0xc612_0000 + number))
            .collect();
        let mut config = Config::new(&addresses);
        config.ports = 1_024..=u16::MAX;
        config.port_choice = PortChoice::Random;
        config.timeouts.udp_unreplied_secs = LIFE_SECS;
        config.blocks = Some(Blocks {
            size: BLOCK,
            most: 2,
            ..Blocks::default()
        });
        config.subscribers.most = subscribers + 1_024;
        config.subscribers.quotas.sessions.all = SESSIONS;
        config.limits = Limits {
            initial_flows: 0,
            max_flows: (subscribers * FLOWS + (1 << 19)).min(Limits::MOST_FLOWS),
            block_events: EVENTS,
            ..Limits::default()
        };
        config.seed = 7;
        Ok(Self {
            nat: Nat::new(config).context("making an engine")?,
            area: Area::new()?,
            templates: Templates::new(),
            random: Random::new(9),
            subscribers,
            flows: subscribers * FLOWS,
            made: 0,
            records: 0,
        })
    }

    /// New flows a second: as many as end.
    fn rate(&self) -> usize {
        self.flows / LIFE_SECS as usize
    }

    fn now_millis(&self) -> u64 {
        (self.made as u64 * 1_000) / self.rate() as u64
    }

    /// The next flow: each subscriber's turn comes round.
    fn next(&mut self) -> Ends {
        let number = self.made;
        self.made += 1;
        let (subscriber, turn) = (number % self.subscribers, number / self.subscribers);
        // Neighbours in time are not neighbours in address.
        let place = (subscriber as u64 * 0x9e37_79b1 % self.subscribers as u64) as u32;
        Ends {
            source: Ipv4Addr::from(0x6440_0000 + place),
            source_port: 1_024 + (turn % 60_000) as u16,
            destination: Ipv4Addr::from(0x1400_0000 + self.random.below(1 << 20) as u32),
            destination_port: 443,
        }
    }

    /// A pass of new flows; with one who scans, his are among them.
    fn pass(&mut self, times: &mut Times, scans: bool) {
        let batches = Area::len() / BATCH;
        let mut ends = Vec::with_capacity(batches * BATCH);
        let is_scanners = |batch: usize| scans && batch % (SCANNED + 1) == SCANNED;
        for batch in 0..batches {
            for _ in 0..BATCH {
                let of = match is_scanners(batch) {
                    true => self.scan(),
                    false => self.next(),
                };
                ends.push(of);
            }
        }
        let now = self.now_millis();
        for (bytes, ends) in self.area.buffers(ends.len()).zip(&ends) {
            self.templates.write(false, ends, bytes);
        }
        let mut packets: Vec<Packet<'_>> = self.area.buffers(ends.len()).map(Packet::new).collect();
        let mut of_scanner = Times::default();
        for (number, batch) in packets.chunks_mut(BATCH).enumerate() {
            let times = match is_scanners(number) {
                true => &mut of_scanner,
                false => &mut *times,
            };
            times.of(&mut self.nat, batch, true, now);
        }
        while let Some(event) = self.nat.next_block_event() {
            let is_block = [BlockEventKind::Taken, BlockEventKind::GivenBack].contains(&event.kind);
            self.records += usize::from(is_block);
        }
    }

    /// One subscriber sends to all ports of all.
    fn scan(&mut self) -> Ends {
        Ends {
            source: Ipv4Addr::from(0x6440_0000 + self.subscribers as u32),
            source_port: 60_000 + self.random.below(5_000) as u16,
            destination: Ipv4Addr::from(0x1400_0000 + self.random.below(1 << 20) as u32),
            destination_port: 1 + self.random.below(65_000) as u16,
        }
    }

    fn row(&self, what: &str, metric: &str, value: f64) -> Row {
        Row::new(WHO, what, self.flows, metric, vec![value])
    }

    /// All come for the first time.
    fn fill(&mut self, rows: &mut Vec<Row>) {
        let mut times = Times::default();
        while self.made < self.flows {
            self.pass(&mut times, false);
        }
        let made = self.made as f64;
        rows.push(self.row("new flow", "ns_per_op", times.all_secs() * 1e9 / made));
        rows.push(self.row("refused", "flows", times.refused as f64));
        let records = std::mem::take(&mut self.records) as f64;
        rows.push(self.row(
            "records, all coming",
            "per_1000_flows",
            records * 1e3 / made,
        ));
        rows.push(Row::bytes_per_flow(&self.nat, self.flows));
        let there = self.nat.statistics().flows;
        rows.push(self.row("there", "flows", there as f64));
    }

    /// As many begin as end.
    fn steady(&mut self, rows: &mut Vec<Row>) {
        let (mut times, before) = (Times::default(), self.made);
        while self.made < before + self.rate() * STEADY_SECS {
            self.pass(&mut times, false);
        }
        let made = (self.made - before) as f64;
        rows.push(self.row(
            "steady: new flow",
            "ns_per_op",
            times.all_secs() * 1e9 / made,
        ));
        let share = times.all_secs() * 100.0 * self.rate() as f64 / made;
        let rate = self.rate();
        let what = format!("steady: {rate} new flows a second");
        rows.push(self.row(&what, "percent_of_cpu", share));
        rows.push(self.row("steady: refused", "flows", times.refused as f64));
        let records = std::mem::take(&mut self.records) as f64;
        rows.push(self.row("steady: records", "per_1000_flows", records * 1e3 / made));
    }

    /// With one who scans and without, by turns: what the others feel.
    fn scanned(&mut self, rows: &mut Vec<Row>) {
        let mut times = [Times::default(), Times::default()];
        let before = self.made;
        while self.made < before + self.rate() * STEADY_SECS * 2 {
            for (scans, times) in [false, true].into_iter().zip(&mut times) {
                self.pass(times, scans);
            }
        }
        let names = ["others, alone", "others, beside a scan"];
        for (name, times) in names.into_iter().zip(&mut times) {
            for (share, says) in [(0.5, "50 %"), (0.99, "99 %")] {
                let what = format!("{name}: {says}");
                rows.push(self.row(&what, "us_per_batch", times.share(share)));
            }
            let what = format!("{name}: refused");
            rows.push(self.row(&what, "flows", times.refused as f64));
        }
    }

    /// A walk over all subscribers, as `top` makes it: the pieces that the
    /// translating thread does between two batches.
    fn walked(&mut self, rows: &mut Vec<Row>) {
        let mut times = Times::default();
        let (mut from, mut seen) = (Some(Cursor::default()), 0);
        while let Some(at) = from {
            let start = own_time();
            from = self.nat.subscribers(at, 2_048, &mut |view| {
                seen += usize::from(std::hint::black_box(view).blocks > 0);
            });
            times.nanos.push(since(start));
        }
        rows.push(self.row("walk: subscribers", "rows", seen as f64));
        rows.push(self.row("walk: all", "ms", times.all_secs() * 1e3));
        rows.push(self.row("walk: a piece, 99 %", "us", times.share(0.99)));
    }
}

/// A flood of so many strangers at mappings that let everybody in, and what
/// the inside feels of it.
fn strangers(sources: usize, rows: &mut Vec<Row>) -> Result<()> {
    let alias = Ipv4Addr::new(192, 0, 2, 1);
    let mut config = Config::new(&[alias]);
    config.ports = 1_024..=u16::MAX;
    config.udp = Behaviour::FULL_CONE;
    config.limits.max_flows = 1 << 20;
    config.seed = 7;
    let mut nat = Nat::new(config).context("making an engine")?;
    let (mut area, templates, mut random) = (Area::new()?, Templates::new(), Random::new(3));
    let mut times = [Times::default(), Times::default()];
    let (mut sent, mut number) = (0_usize, 0_u32);
    let batches = Area::len() / BATCH / 2;
    let mut pass = 0_u64;
    while sent < sources {
        for (floods, times) in [false, true].into_iter().zip(&mut times) {
            pass += 1;
            // Inside: 10,000 ports that come round, each to a new remote.
            let mut ends = Vec::with_capacity(2 * batches * BATCH);
            for _ in 0..batches * BATCH {
                number += 1;
                ends.push(Ends {
                    source: Ipv4Addr::from(0x0a00_0000 + number % 1_000),
                    source_port: 5_000 + (number / 1_000 % 10) as u16,
                    destination: Ipv4Addr::from(0x1400_0000 + number),
                    destination_port: 53,
                });
            }
            for _ in 0..batches * BATCH {
                sent += usize::from(floods);
                ends.push(Ends {
                    source: Ipv4Addr::from(0x2000_0000 + sent as u32),
                    source_port: 1 + random.below(65_000) as u16,
                    destination: alias,
                    destination_port: 1_024 + random.below(64_000) as u16,
                });
            }
            for (bytes, ends) in area.buffers(ends.len()).zip(&ends) {
                templates.write(false, ends, bytes);
            }
            let mut packets: Vec<Packet<'_>> = area.buffers(ends.len()).map(Packet::new).collect();
            let (inside, outside) = packets.split_at_mut(batches * BATCH);
            // A second for each pass: what is idle ends.
            let now = pass * 1_000;
            let mut of_flood = Times::default();
            for (out, incoming) in inside.chunks_mut(BATCH).zip(outside.chunks_mut(BATCH)) {
                if floods {
                    of_flood.of(&mut nat, incoming, false, now);
                }
                times.of(&mut nat, out, true, now);
            }
        }
    }
    for (name, times) in ["inside, alone", "inside, beside a flood"]
        .into_iter()
        .zip(&mut times)
    {
        let mut row = |what: &str, metric, value| {
            let what = format!("{name}: {what}");
            rows.push(Row::new(WHO, &what, sources, metric, vec![value]));
        };
        row("50 %", "us_per_batch", times.share(0.5));
        row("99 %", "us_per_batch", times.share(0.99));
        row("refused", "flows", times.refused as f64);
    }
    Ok(())
}
