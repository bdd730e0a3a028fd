//! A capture through the engine, packet by packet, each at its own time.

use std::net::Ipv4Addr;
use std::path::Path;

use dataplane::{Batch, Buffer, Capture, Port, Received};
use ipnet::Ipv4Net;
use nat::{Direction, Nat};

use super::report::Report;
use super::{engine_room, send_released, settle_len, total_len};

/// Packets read at a time, and how long one may be (tcpdump's most).
const BATCH: usize = 32;
const MAX_PACKET_BYTES: usize = 262_144;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Translates `input`, and writes what goes on to `output`.
pub fn run(
    nat: &mut Nat,
    input: &Path,
    output: Option<&Path>,
    inside: Vec<Ipv4Net>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut capture = Capture::open(input, output)?;
    let mut batch = Batch::new(BATCH, MAX_PACKET_BYTES);
    while capture.receive(&mut batch)? == Received::Packets {
        for buffer in batch.packets_mut() {
            translate(nat, buffer, &inside, report);
        }
        capture.send(&mut batch)?;
        let last = batch.packets().last();
        let now_millis = last.map_or(0, |buffer| buffer.time_nanos() / NANOS_PER_MILLI);
        send_released(nat, &mut batch, &mut capture, now_millis)?;
    }
    capture.finish()?;
    report
        .ports
        .push(("capture".to_owned(), capture.counters()));
    Ok(())
}

fn translate(nat: &mut Nat, buffer: &mut Buffer, inside: &[Ipv4Net], report: &mut Report) {
    let Some(direction) = direction(buffer.packet(), inside) else {
        // ARP, IPv6, from inside to inside: no business of a translator.
        report.left_alone += 1;
        return;
    };
    let now_millis = buffer.time_nanos() / NANOS_PER_MILLI;
    let before = total_len(buffer.packet());
    report.cut_off += u64::from(before > buffer.packet().len());
    let bytes = engine_room(buffer);
    let verdict = match direction {
        Direction::Out => nat.translate_out(bytes, now_millis),
        Direction::In => nat.translate_in(bytes, now_millis),
    };
    settle_len(buffer, before);
    buffer.set_discarded(!verdict.goes_on());
}

/// Which way a packet goes; `None` for what is not to be translated.
fn direction(packet: &[u8], inside: &[Ipv4Net]) -> Option<Direction> {
    let header = packet::Ipv4::cut(packet).ok()?;
    let is_inside = |address: Ipv4Addr| inside.iter().any(|prefix| prefix.contains(&address));
    match (is_inside(header.source()), is_inside(header.destination())) {
        (true, true) => None,
        (true, false) => Some(Direction::Out),
        (false, _) => Some(Direction::In),
    }
}
