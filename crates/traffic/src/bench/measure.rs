//! Passes over an area of packets, timed; and the rows that come of it.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use nat::{Nat, Packet, Verdict};
use serde::Serialize;

use super::load::Random;
use super::packets::Area;

/// Packets handed over at once.
pub const BATCH: usize = 32;
/// Words that the reference loop goes through: 32 bits each, and how many steps.
const REFERENCE_WORDS: usize = 16 << 20;
const REFERENCE_STEPS: u32 = 200_000;

/// How packets are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Batch,
    Single,
}

impl How {
    pub const BOTH: [Self; 2] = [Self::Batch, Self::Single];

    pub fn who(self) -> &'static str {
        match self {
            Self::Batch => "fingerpost, batch of 32",
            Self::Single => "fingerpost, one call",
        }
    }
}

/// A measured thing over several passes; as `cargo xtask bench` has it.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    who: String,
    what: String,
    size: u64,
    metric: String,
    median: f64,
    min: f64,
    max: f64,
    rounds: usize,
}

impl Row {
    /// Of what each pass measured.
    pub fn new(who: &str, what: &str, size: usize, metric: &str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        Self {
            who: who.to_owned(),
            what: what.to_owned(),
            size: size as u64,
            metric: metric.to_owned(),
            median: at(values.len() / 2),
            min: at(0),
            max: at(values.len().saturating_sub(1)),
            rounds: values.len(),
        }
    }

    /// Nanoseconds a packet.
    pub fn ns(how: How, what: &str, size: usize, values: Vec<f64>) -> Self {
        Self::new(how.who(), what, size, "ns_per_op", values)
    }

    /// Bytes that a flow takes, all included.
    pub fn bytes_per_flow(nat: &Nat, size: usize) -> Self {
        let statistics = nat.statistics();
        let bytes = statistics.memory_bytes as f64 / statistics.flows.max(1) as f64;
        Self::new("fingerpost", "flow", size, "bytes_per_row", vec![bytes])
    }
}

/// The machine's own pace in these minutes: loads that depend on the one
/// before, over 64 MiB.
pub fn reference(size: usize) -> Row {
    let mut next: Vec<u32> = (0..REFERENCE_WORDS as u32).collect();
    let mut random = Random::new(7);
    // One circle through all words (Sattolo).
    for at in (1..next.len()).rev() {
        let other = random.below(at);
        next.swap(at, other);
    }
    let mut at = 0;
    let values = (0..7).map(|_| {
        let start = Instant::now();
        for _ in 0..REFERENCE_STEPS {
            at = next.get(at as usize).copied().unwrap_or(0);
        }
        black_box(at);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(REFERENCE_STEPS)
    });
    let values = values.collect();
    Row::new("machine", "reference loop", size, "ns_per_op", values)
}

/// The nanoseconds that each of `count` packets took, and how many of them
/// had another verdict than `expected`. They lie in `area` already.
pub fn pass(
    nat: &mut Nat,
    out: bool,
    how: How,
    area: &mut Area,
    count: usize,
    now_millis: u64,
    expected: Verdict,
) -> (f64, usize) {
    let mut wrong = 0;
    let elapsed = match how {
        How::Single => {
            let start = Instant::now();
            for bytes in area.buffers(count) {
                let verdict = if out {
                    nat.translate_out(bytes, now_millis)
                } else {
                    nat.translate_in(bytes, now_millis)
                };
                wrong += usize::from(verdict != expected);
            }
            start.elapsed()
        }
        How::Batch => {
            let mut packets: Vec<Packet<'_>> = area.buffers(count).map(Packet::new).collect();
            let start = Instant::now();
            for batch in packets.chunks_mut(BATCH) {
                if out {
                    nat.translate_out_batch(batch, now_millis);
                } else {
                    nat.translate_in_batch(batch, now_millis);
                }
            }
            let elapsed = start.elapsed();
            wrong += packets
                .iter()
                .filter(|packet| packet.verdict != expected)
                .count();
            elapsed
        }
    };
    (elapsed.as_secs_f64() * 1e9 / count.max(1) as f64, wrong)
}

/// The rows as a table.
pub fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<22} {:<24} {:>10} {:>14} {:>9} {:>9} {:>9}\n",
        "what", "how", "flows", "metric", "median", "best", "worst"
    );
    for row in rows {
        // A String takes all that is written.
        let _ = writeln!(
            text,
            "{:<22} {:<24} {:>10} {:>14} {:>9.1} {:>9.1} {:>9.1}",
            row.what, row.who, row.size, row.metric, row.median, row.min, row.max
        );
    }
    text
}
