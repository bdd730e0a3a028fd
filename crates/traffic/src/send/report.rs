//! What was sent and what it cost, for people and for programs.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::cores::Outcome;
use super::own::Drops;
use super::plan::{Plan, Stage, Way};
use super::worker::Tally;

/// What all cores did.
#[derive(Debug, Serialize)]
pub struct Report {
    way: String,
    to: String,
    payload_bytes: usize,
    flows: u32,
    cores: usize,
    rate_asked_pps: Option<f64>,
    #[serde(flatten)]
    sum: Sum,
    per_core: Vec<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Own>,
}

/// What is said of our own stack beside.
#[derive(Debug, Serialize)]
struct Own {
    into: String,
    stopped_after: Option<&'static str>,
    prefixes: usize,
    next_hops: usize,
    neighbours: usize,
    dropped: Drops,
}

/// What some cores did together.
#[derive(Debug, Clone, Copy, Serialize)]
struct Sum {
    sent_packets: u64,
    seconds: f64,
    pps: f64,
    payload_bits_per_second: f64,
    cpu_percent: f64,
    cpu_ns_per_packet: f64,
    user_ns_per_packet: f64,
    system_ns_per_packet: f64,
    wall_ns_per_packet: f64,
    socket_full: u64,
    no_buffers: u64,
    port_unreachable: u64,
    refused_packets: u64,
    copied_packets: u64,
    unsent_packets: u64,
    slipped_packets: u64,
}

impl Report {
    /// Of what each core tallied.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let tallies = &outcome.tallies;
        let per_core: Vec<Sum> = tallies
            .iter()
            .map(|tally| Sum::of(plan, &[*tally]))
            .collect();
        Self {
            way: plan.way.name(),
            to: plan.flows.to().to_string(),
            payload_bytes: plan.payload_bytes,
            flows: plan.flows.count(),
            cores: plan.cores,
            rate_asked_pps: plan.rate,
            sum: Sum::of(plan, tallies),
            stack: (plan.way == Way::Own).then(|| Own {
                into: plan.into.to_string(),
                stopped_after: plan.stop_after.map(Stage::name),
                prefixes: outcome.sizes.0,
                next_hops: outcome.sizes.1,
                neighbours: outcome.sizes.2,
                dropped: outcome.drops,
            }),
            per_core,
        }
    }

    /// Packets that were sent.
    pub fn sent(&self) -> u64 {
        self.sum.sent_packets
    }

    /// Writes it.
    pub fn write(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let sum = &self.sum;
        writeln!(
            out,
            "{} packets of {} bytes to {} by {}, {} flow{}, {} core{}, {:.3} s",
            sum.sent_packets,
            self.payload_bytes,
            self.to,
            self.way,
            self.flows,
            plural(self.flows as usize),
            self.cores,
            plural(self.cores),
            sum.seconds
        )?;
        if let Some(asked) = self.rate_asked_pps {
            writeln!(
                out,
                "rate asked for {asked:.0} a second, reached {:.2} %",
                sum.pps * 100.0 / asked
            )?;
        }
        writeln!(
            out,
            "{:<8}{:>14}{:>12}{:>8}{:>13}{:>10}{:>10}{:>10}",
            "", "packets/s", "Mbit/s", "CPU %", "ns/packet", "user", "system", "wall"
        )?;
        if self.per_core.len() > 1 {
            for (core, sum) in self.per_core.iter().enumerate() {
                line(&format!("core {core}"), sum, out)?;
            }
        }
        line("all", sum, out)?;
        for (count, what) in [
            (sum.socket_full, "times the socket was full (EAGAIN)"),
            (sum.no_buffers, "times the kernel had no buffers (ENOBUFS)"),
            (
                sum.port_unreachable,
                "answers \"port unreachable\": nobody listens there",
            ),
            (sum.refused_packets, "packets given back unsent"),
            (
                sum.copied_packets,
                "packets copied: their buffers are too long for AF_XDP to send from",
            ),
            (sum.unsent_packets, "packets still on their way at the end"),
            (
                sum.slipped_packets,
                "packets left out: the way does not carry the rate",
            ),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        if let Some(own) = &self.stack {
            own.write(out)?;
        }
        Ok(())
    }
}

impl Own {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let into = &self.into;
        match self.stopped_after {
            Some(stage) => write!(out, "own stack, stopped after {stage}")?,
            None => write!(out, "own stack into {into}")?,
        }
        writeln!(
            out,
            ": {} prefixes, {} next hops, {} neighbours",
            self.prefixes, self.next_hops, self.neighbours
        )?;
        let dropped = &self.dropped;
        for (count, why) in [
            (dropped.no_buffer, "no buffer"),
            (dropped.no_route, "no route"),
            (dropped.unresolved, "the neighbour is not resolved"),
            (dropped.local, "for this host"),
            (dropped.too_long, "longer than the MTU"),
        ] {
            if count > 0 {
                writeln!(out, "{count} packets dropped: {why}")?;
            }
        }
        Ok(())
    }
}

fn line(name: &str, sum: &Sum, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{name:<8}{:>14.0}{:>12.1}{:>8.1}{:>13.1}{:>10.1}{:>10.1}{:>10.1}",
        sum.pps,
        sum.payload_bits_per_second / 1e6,
        sum.cpu_percent,
        sum.cpu_ns_per_packet,
        sum.user_ns_per_packet,
        sum.system_ns_per_packet,
        sum.wall_ns_per_packet,
    )
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Sum {
    fn of(plan: &Plan, tallies: &[Tally]) -> Self {
        let total = |each: fn(&Tally) -> u64| tallies.iter().map(each).sum::<u64>();
        let time = |each: fn(&Tally) -> Duration| tallies.iter().map(each).sum::<Duration>();
        let sent = total(|tally| tally.sent);
        let wall = tallies.iter().map(|tally| tally.wall).max();
        let seconds = wall.unwrap_or_default().as_secs_f64();
        let (user, system) = (time(|tally| tally.user), time(|tally| tally.system));
        let cpu = user + system;
        let per_packet = |time: Duration| match sent {
            0 => 0.0,
            sent => time.as_secs_f64() * 1e9 / sent as f64,
        };
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        Self {
            sent_packets: sent,
            seconds,
            pps: per_second(sent as f64),
            payload_bits_per_second: per_second(sent as f64 * plan.payload_bytes as f64 * 8.0),
            cpu_percent: per_second(cpu.as_secs_f64() * 100.0),
            cpu_ns_per_packet: per_packet(cpu),
            user_ns_per_packet: per_packet(user),
            system_ns_per_packet: per_packet(system),
            wall_ns_per_packet: per_packet(time(|tally| tally.wall)),
            socket_full: total(|tally| tally.full),
            no_buffers: total(|tally| tally.no_buffers),
            port_unreachable: total(|tally| tally.unreachable),
            refused_packets: total(|tally| tally.refused),
            copied_packets: total(|tally| tally.copied),
            unsent_packets: total(|tally| tally.unsent),
            slipped_packets: total(|tally| tally.slipped),
        }
    }
}
