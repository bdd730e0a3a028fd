//! A capture through the engine, packet by packet, each at its own time.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;
use dataplane::{Batch, Buffer, Cache, Capture, Pool, Port, Received};
use ipnet::Ipv4Net;
use nat::{Direction, Nat};

use super::report::Report;
use super::{engine_room, settle_len, total_len};

/// How long a packet may be: tcpdump's most.
const MAX_PACKET_BYTES: usize = 262_144;
/// Buffers: of the packet, of what goes before those held back, of one of
/// them.
const BUFFERS: usize = 3;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Translates `input`, and writes what goes on to `output`.
pub fn run(
    nat: &mut Nat,
    (input, output): (&Path, Option<&Path>),
    inside: Vec<Ipv4Net>,
    clamp_mss: Option<u16>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut capture = Capture::open(input, output)?;
    privileges::give_up().context("giving up privileges")?;
    let pool = Pool::new(BUFFERS, MAX_PACKET_BYTES)?;
    let mut cache = pool.cache();
    let mut first = cache.take().context("an empty pool")?;
    let mut batch = Batch::new(1);
    while capture.receive(&mut cache, &mut batch)? == Received::Packets {
        for buffer in batch.packets_mut() {
            if let Some(most) = clamp_mss {
                packet::mss::clamp(buffer.packet_mut(), most);
            }
            translate(nat, buffer, &inside, report);
            first.go_with(buffer);
        }
        capture.send(&mut cache, &mut batch)?;
        release(nat, &first, &mut cache, &mut batch, &mut capture)?;
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
    cache: &mut Cache,
    batch: &mut Batch,
    capture: &mut Capture,
) -> anyhow::Result<()> {
    let now_millis = first.time_nanos() / NANOS_PER_MILLI;
    while cache.fill(batch, 1) == 1 {
        for buffer in batch.packets_mut() {
            buffer.go_with(first);
            let Some((len, _, verdict)) = nat.next_fragment(buffer.room_mut(), now_millis) else {
                cache.clear(batch);
                return Ok(());
            };
            buffer.set_len(len);
            buffer.set_discarded(!verdict.goes_on());
        }
        capture.send(cache, batch)?;
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
    let header = packet::Ipv4::parse_truncated(packet).ok()?;
    let is_inside = |address: Ipv4Addr| inside.iter().any(|prefix| prefix.contains(&address));
    match (is_inside(header.source()), is_inside(header.destination())) {
        (true, true) => None,
        (true, false) => Some(Direction::Out),
        (false, _) => Some(Direction::In),
    }
}
