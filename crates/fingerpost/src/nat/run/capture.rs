//! A capture through the engine, packet by packet, each at its own time.

use std::net::Ipv4Addr;
use std::path::Path;

use dataplane::{Batch, Buffer, Capture, Port, Received};
use ipnet::Ipv4Net;
use nat::{Direction, Nat};

use super::report::Report;
use super::{engine_room, settle_len, total_len};

/// How long a packet may be: tcpdump's most.
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
    let mut batch = Batch::new(1, MAX_PACKET_BYTES);
    let mut held = Batch::new(1, MAX_PACKET_BYTES);
    while capture.receive(&mut batch)? == Received::Packets {
        for buffer in batch.packets_mut() {
            translate(nat, buffer, &inside, report);
        }
        capture.send(&mut batch)?;
        for buffer in batch.packets() {
            release(nat, buffer, &mut held, &mut capture)?;
        }
    }
    capture.finish()?;
    report
        .ports
        .push(("capture".to_owned(), capture.counters()));
    Ok(())
}

/// Writes the fragments that had waited for this one, the first of theirs.
fn release(
    nat: &mut Nat,
    first: &Buffer,
    held: &mut Batch,
    capture: &mut Capture,
) -> anyhow::Result<()> {
    let now_millis = first.time_nanos() / NANOS_PER_MILLI;
    while let Some(buffer) = held.one_beside(first) {
        let Some((len, _, verdict)) = nat.next_fragment(buffer.room_mut(), now_millis) else {
            break;
        };
        buffer.set_len(len);
        buffer.set_discarded(!verdict.goes_on());
        capture.send(held)?;
    }
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
