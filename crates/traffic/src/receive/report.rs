//! What came, for people and for programs.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::streams::{Counts, Streams};
use crate::histogram::Histogram;

/// What came.
#[derive(Debug, Serialize)]
pub struct Report {
    packets: u64,
    bytes: u64,
    seconds: f64,
    pps: f64,
    listened_seconds: f64,
    flows: usize,
    #[serde(flatten)]
    total: Total,
    dropped_by_socket: u64,
    foreign_packets: u64,
    untracked_packets: u64,
    latency: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_flow: Option<Vec<Row>>,
}

/// Of all flows, under names of their own.
#[derive(Debug, Serialize)]
struct Total {
    lost: u64,
    before_first: u64,
    reordered: u64,
    reordered_by_most: u64,
    duplicates: u64,
    too_late: u64,
}

/// How long packets took.
#[derive(Debug, Serialize)]
struct Latency {
    packets: u64,
    min_ns: u64,
    mean_ns: f64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    clock_behind_packets: u64,
    /// (no longer than so many ns, packets), by powers of two.
    histogram: Vec<(u64, u64)>,
}

#[derive(Debug, Serialize)]
struct Row {
    source: String,
    run: u16,
    flow: u16,
    #[serde(flatten)]
    counts: Counts,
}

impl Report {
    /// Of what was counted.
    pub fn of(streams: &Streams, dropped: u64, listened: Duration, per_flow: bool) -> Self {
        let rows = streams.rows();
        let total = streams.total();
        let seconds = streams.nanos() as f64 / 1e9;
        let row = |(key, counts): &(super::streams::Key, Counts)| Row {
            source: key.source.to_string(),
            run: key.run,
            flow: key.flow,
            counts: *counts,
        };
        Self {
            packets: streams.packets(),
            bytes: streams.bytes(),
            seconds,
            pps: match streams.packets() {
                0 | 1 => 0.0,
                _ if seconds == 0.0 => 0.0,
                packets => (packets - 1) as f64 / seconds,
            },
            listened_seconds: listened.as_secs_f64(),
            flows: rows.len(),
            total: Total {
                lost: total.lost,
                before_first: total.before_first,
                reordered: total.reordered,
                reordered_by_most: total.reordered_by_most,
                duplicates: total.duplicates,
                too_late: total.too_late,
            },
            dropped_by_socket: dropped,
            foreign_packets: streams.foreign(),
            untracked_packets: streams.untracked(),
            latency: latency(streams.latency(), streams.clock_behind()),
            per_flow: per_flow.then(|| rows.iter().map(row).collect()),
        }
    }

    /// Writes it.
    pub fn write(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let total = &self.total;
        writeln!(
            out,
            "{} packets, {} bytes, {} flow{}, {:.3} s, {:.0} packets/s",
            self.packets,
            self.bytes,
            self.flows,
            if self.flows == 1 { "" } else { "s" },
            self.seconds,
            self.pps
        )?;
        writeln!(
            out,
            "lost {} (before the first {}), reordered {} (by {} at most), duplicates {}, too late to say {}",
            total.lost,
            total.before_first,
            total.reordered,
            total.reordered_by_most,
            total.duplicates,
            total.too_late
        )?;
        for (count, what) in [
            (
                self.dropped_by_socket,
                "packets for which this socket had no room: they are among the lost",
            ),
            (
                self.foreign_packets,
                "packets of others than `fingerpost send`",
            ),
            (
                self.untracked_packets,
                "packets of flows beyond --max-flows",
            ),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        if let Some(latency) = &self.latency {
            latency.write(out)?;
        }
        for row in self.per_flow.iter().flatten() {
            let counts = &row.counts;
            writeln!(
                out,
                "{} run {} flow {}: {} packets, lost {}, reordered {}, duplicates {}",
                row.source,
                row.run,
                row.flow,
                counts.packets,
                counts.lost,
                counts.reordered,
                counts.duplicates
            )?;
        }
        Ok(())
    }
}

/// Columns of the longest bar.
const BAR: f64 = 40.0;

impl Latency {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "latency: min {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            micros(self.min_ns),
            micros(self.p50_ns),
            micros(self.p90_ns),
            micros(self.p99_ns),
            micros(self.p999_ns),
            micros(self.max_ns)
        )?;
        let most = self.histogram.iter().map(|(_, count)| *count).max();
        for (upper, count) in &self.histogram {
            let share = *count as f64 / most.unwrap_or(1).max(1) as f64;
            let bar = "#".repeat((share * BAR).ceil() as usize);
            writeln!(out, "  <= {:>12}  {count:>12}  {bar}", micros(*upper))?;
        }
        if self.clock_behind_packets > 0 {
            writeln!(
                out,
                "{} packets came before they were sent: the two clocks differ",
                self.clock_behind_packets
            )?;
        }
        Ok(())
    }
}

fn latency(histogram: &Histogram, clock_behind: u64) -> Option<Latency> {
    Some(Latency {
        packets: histogram.total(),
        min_ns: histogram.min()?,
        mean_ns: histogram.mean()?,
        p50_ns: histogram.quantile(0.5)?,
        p90_ns: histogram.quantile(0.9)?,
        p99_ns: histogram.quantile(0.99)?,
        p999_ns: histogram.quantile(0.999)?,
        max_ns: histogram.max()?,
        clock_behind_packets: clock_behind,
        histogram: histogram.octaves(),
    })
}

fn micros(nanos: u64) -> String {
    format!("{:.1} us", nanos as f64 / 1_000.0)
}
