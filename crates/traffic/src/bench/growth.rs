//! What a packet costs from 2,000 to 10 million flows.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use nat::{Config, Limits, Nat, PortChoice, Verdict};

use super::load::Random;
use super::measure::{How, Row, pass, reference};
use super::packets::{Area, Ends, Templates, ends};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Passes over the area for each figure.
const PASSES: usize = 7;
/// How often the engine is maintained between two passes, as a caller does
/// who has nothing else to do: memory is made ready ahead of growth.
const MAINTAINED: usize = 64;

/// All sizes.
pub fn measure(quick: bool) -> Result<Vec<Row>> {
    let sizes = [2_000, 100_000, 1_000_000, 10_000_000];
    let most = if quick { 100_000 } else { usize::MAX };
    let mut rows = Vec::new();
    for size in sizes.into_iter().filter(|size| *size <= most) {
        Subject::new(size, Start::Small)?.measure_growing(&mut rows)?;
        Subject::new(size, Start::Given)?.measure(&mut rows)?;
    }
    Ok(rows)
}

/// What an engine is told of its size at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// How many flows there will be: nothing grows.
    Given,
    /// [`SMALL`] flows: all else is growth, with memory prepared ahead.
    Small,
}

/// Flows that an engine begins with if it is to grow.
const SMALL: usize = 4_096;

/// A flow as its packets are made from.
#[derive(Debug, Clone, Copy)]
pub struct Originated {
    /// From inside.
    pub out: Ends,
    pub alias_port: u16,
    pub is_tcp: bool,
}

impl Originated {
    fn incoming(&self, alias: Ipv4Addr) -> Ends {
        Ends {
            destination: alias,
            destination_port: self.alias_port,
            ..self.out.turned()
        }
    }
}

/// An engine, and the flows that were made in it.
pub struct Subject {
    pub nat: Nat,
    pub flows: Vec<Originated>,
    templates: Templates,
    area: Area,
    random: Random,
    size: usize,
    start: Start,
}

impl Subject {
    /// An engine for `size` flows, without one yet.
    pub fn new(size: usize, start: Start) -> Result<Self> {
        let mut config = Config::new(&[ALIAS]);
        config.ports = 1_024..=u16::MAX;
        config.port_choice = PortChoice::Same;
        config.limits = Limits {
            initial_flows: match start {
                Start::Given => size,
                Start::Small => SMALL,
            },
            max_flows: size + size / 8 + 1_024,
            ..Limits::default()
        };
        config.limits.max_flows = config.limits.max_flows.min(Limits::MOST_FLOWS);
        Ok(Self {
            nat: Nat::new(config).context("making an engine")?,
            flows: Vec::with_capacity(size),
            templates: Templates::new(),
            area: Area::new()?,
            random: Random::new(size as u64),
            size,
            start,
        })
    }

    fn measure(mut self, rows: &mut Vec<Row>) -> Result<()> {
        let size = self.size;
        rows.push(reference(size));
        self.new_flows("new flow", rows)?;
        rows.push(Row::bytes_per_flow(&self.nat, size));
        self.answer()?;
        for how in How::BOTH {
            let uniform = |random: &mut Random, flows: usize| random.below(flows);
            rows.push(self.existing(how, true, "existing out", uniform)?);
            rows.push(self.existing(how, false, "existing in", uniform)?);
            rows.push(self.existing(how, true, "hot", |_, _| 0)?);
            rows.push(self.unknown(how, "unknown in", |random, _| random.outside())?);
            rows.push(self.unknown(how, "attack in", |_, first| first)?);
        }
        Ok(())
    }

    fn measure_growing(mut self, rows: &mut Vec<Row>) -> Result<()> {
        self.new_flows("new flow, growing", rows)
    }

    fn new_flows(&mut self, what: &str, rows: &mut Vec<Row>) -> Result<()> {
        let new = self.grow(|random, _| {
            let inside = Ipv4Addr::from(0x0a00_0000 | random.below(1 << 22) as u32);
            (inside, 1_024 + random.below(60_000) as u16, random.remote())
        })?;
        for (how, values) in How::BOTH.into_iter().zip(new) {
            rows.push(Row::ns(how, what, self.size, values));
        }
        Ok(())
    }

    /// Makes the flows, in batches and one after the other by turns; what
    /// the last ones took.
    pub fn grow(
        &mut self,
        mut flow: impl FnMut(&mut Random, usize) -> (Ipv4Addr, u16, (Ipv4Addr, u16)),
    ) -> Result<[Vec<f64>; 2]> {
        let step = Area::len().min(self.size / 8).max(1);
        let mut values = [Vec::new(), Vec::new()];
        let mut turn = 0;
        while self.flows.len() < self.size {
            let count = step.min(self.size - self.flows.len());
            let made = self.flows.len();
            for (place, bytes) in self.area.buffers(count).enumerate() {
                let (source, source_port, (destination, destination_port)) =
                    flow(&mut self.random, made + place);
                let made = Originated {
                    out: Ends {
                        source,
                        source_port,
                        destination,
                        destination_port,
                    },
                    alias_port: 0,
                    is_tcp: place % 2 == 0,
                };
                self.templates.write(made.is_tcp, &made.out, bytes);
                self.flows.push(made);
            }
            if self.start == Start::Small {
                for _ in 0..MAINTAINED {
                    self.nat.maintain(0, 0);
                }
            }
            let how = How::BOTH[turn % 2];
            let (ns, wrong) = pass(
                &mut self.nat,
                true,
                how,
                &mut self.area,
                count,
                0,
                Verdict::Translated,
            );
            ensure!(
                wrong == 0,
                "{wrong} of {count} new flows were refused at {made} flows"
            );
            if let Some(values) = values.get_mut(turn % 2) {
                values.push(ns);
            }
            let new = self.flows.iter_mut().skip(made);
            for (flow, bytes) in new.zip(self.area.buffers(count)) {
                flow.alias_port = ends(bytes).map_or(0, |ends| ends.source_port);
            }
            turn += 1;
        }
        // The last eighth, or what there is: that is at this size.
        for values in &mut values {
            let from = values.len() - (values.len() / 8).max(1).min(values.len());
            values.drain(..from);
        }
        Ok(values)
    }

    /// Answers each flow once: a first answer changes a flow's state, which
    /// packets of a flow that exists do not.
    pub fn answer(&mut self) -> Result<()> {
        for flows in self.flows.chunks(Area::len()) {
            for (made, bytes) in flows.iter().zip(self.area.buffers(flows.len())) {
                self.templates
                    .write(made.is_tcp, &made.incoming(ALIAS), bytes);
            }
            let (count, expected) = (flows.len(), Verdict::Translated);
            let (nat, area) = (&mut self.nat, &mut self.area);
            let (_, wrong) = pass(nat, false, How::Batch, area, count, 1, expected);
            ensure!(wrong == 0, "{wrong} of {count} answers were refused");
        }
        Ok(())
    }

    /// Packets of flows that there are.
    pub fn existing(
        &mut self,
        how: How,
        out: bool,
        what: &str,
        pick: impl Fn(&mut Random, usize) -> usize,
    ) -> Result<Row> {
        let mut values = Vec::new();
        for _ in 0..PASSES {
            for bytes in self.area.buffers(Area::len()) {
                let place = pick(&mut self.random, self.flows.len());
                let made = self.flows.get(place).context("a flow that is none")?;
                let ends = if out { made.out } else { made.incoming(ALIAS) };
                self.templates.write(made.is_tcp, &ends, bytes);
            }
            let count = Area::len();
            let (ns, wrong) = pass(
                &mut self.nat,
                out,
                how,
                &mut self.area,
                count,
                1,
                Verdict::Translated,
            );
            ensure!(wrong == 0, "{what}: {wrong} of {count} were refused");
            values.push(ns);
        }
        Ok(Row::ns(how, what, self.size, values))
    }

    /// Packets from outside that belong to nothing.
    pub fn unknown(
        &mut self,
        how: How,
        what: &str,
        pick: impl Fn(&mut Random, Ends) -> Ends,
    ) -> Result<Row> {
        let mut values = Vec::new();
        let first = self.random.outside();
        for _ in 0..PASSES {
            for bytes in self.area.buffers(Area::len()) {
                let mut ends = pick(&mut self.random, first);
                ends.destination = ALIAS;
                self.templates.write(false, &ends, bytes);
            }
            let count = Area::len();
            let (ns, wrong) = pass(
                &mut self.nat,
                false,
                how,
                &mut self.area,
                count,
                1,
                Verdict::NoMapping,
            );
            ensure!(
                wrong * 100 <= count,
                "{what}: {wrong} of {count} were not refused"
            );
            values.push(ns);
        }
        Ok(Row::ns(how, what, self.size, values))
    }
}
