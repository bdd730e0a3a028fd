//! Two TUN devices with the engine between them, until Ctrl-C.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, anyhow};
use arrayvec::ArrayVec;
use dataplane::{Batch, Port, Received, Tun};
use nat::{Direction, Nat, Packet, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::report::Report;
use super::{engine_room, settle_len, total_len};

/// Packets that one read may give, and how long one may be.
const BATCH: usize = 128;
const MAX_PACKET_BYTES: usize = 65_535;
/// Reads of one device before the other has its turn.
const READS_A_TURN: usize = 16;
/// How long nothing happens before flows are swept, and how many then.
const IDLE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
const SWEPT_WHEN_IDLE: usize = 65_536;

/// Translates between the devices until SIGINT, SIGTERM or SIGHUP.
pub fn run(nat: &mut Nat, inside: &str, outside: &str, report: &mut Report) -> anyhow::Result<()> {
    let mut end = caught()?;
    let mut inside = Tun::open(inside)?;
    let mut outside = Tun::open(outside)?;
    let mut batch = Batch::new(BATCH, MAX_PACKET_BYTES);
    let moved = shuttle(nat, &mut inside, &mut outside, &mut batch, &mut end, report);
    for (name, tun) in [("inside", &inside), ("outside", &outside)] {
        let name = format!("{name} {}", tun.name());
        report.ports.push((name, tun.counters()));
    }
    moved
}

/// Becomes readable when it is time to end.
fn caught() -> anyhow::Result<UnixStream> {
    let (ours, handlers) = UnixStream::pair().context("making a pipe for signals")?;
    ours.set_nonblocking(true)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let handler = handlers.try_clone()?;
        pipe::register(signal, handler).context("catching signals")?;
    }
    Ok(ours)
}

fn shuttle(
    nat: &mut Nat,
    inside: &mut Tun,
    outside: &mut Tun,
    batch: &mut Batch,
    end: &mut UnixStream,
    report: &mut Report,
) -> anyhow::Result<()> {
    loop {
        let is_idle = !wait(inside, outside, end)?;
        if end.read(&mut [0]).is_ok_and(|read| read > 0) {
            return Ok(());
        }
        if is_idle {
            nat.maintain(now_millis(), SWEPT_WHEN_IDLE);
            continue;
        }
        turn(nat, Direction::Out, inside, outside, batch, report)?;
        turn(nat, Direction::In, outside, inside, batch, report)?;
    }
}

/// Waits for a packet or a signal; false when there was neither.
fn wait(inside: &Tun, outside: &Tun, end: &UnixStream) -> anyhow::Result<bool> {
    let readable = |tun| Port::readable(tun).ok_or_else(|| anyhow!("a device without waiting"));
    let mut waited = [
        PollFd::from_borrowed_fd(readable(inside)?, PollFlags::IN),
        PollFd::from_borrowed_fd(readable(outside)?, PollFlags::IN),
        PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN),
    ];
    match poll(&mut waited, Some(&IDLE)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error).context("waiting for packets"),
    }
}

/// Takes what has come from one side to the other.
fn turn(
    nat: &mut Nat,
    direction: Direction,
    from: &mut Tun,
    to: &mut Tun,
    batch: &mut Batch,
    report: &mut Report,
) -> anyhow::Result<()> {
    for _ in 0..READS_A_TURN {
        if from.receive(batch)? != Received::Packets {
            break;
        }
        let turning = translate(nat, direction, batch, report);
        to.send(batch)?;
        if !turning.is_empty() {
            for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
                buffer.set_discarded(!turning.contains(&place));
            }
            from.send(batch)?;
        }
        release(nat, batch, from, to, direction)?;
    }
    Ok(())
}

/// Sends the fragments that had waited for a first one of these.
fn release(
    nat: &mut Nat,
    batch: &mut Batch,
    from: &mut Tun,
    to: &mut Tun,
    direction: Direction,
) -> anyhow::Result<()> {
    while let Some(buffer) = batch.one() {
        let Some((len, way, verdict)) = nat.next_fragment(buffer.room_mut(), now_millis()) else {
            break;
        };
        buffer.set_len(len);
        buffer.set_discarded(!verdict.goes_on());
        let turns = (way == direction) == (verdict == Verdict::Hairpinned);
        if turns {
            from.send(batch)?;
        } else {
            to.send(batch)?;
        }
    }
    Ok(())
}

/// Translates what is in the batch. Gives the places of packets that turn
/// back inside; they are marked as not going on.
fn translate(
    nat: &mut Nat,
    direction: Direction,
    batch: &mut Batch,
    report: &mut Report,
) -> ArrayVec<usize, BATCH> {
    for buffer in batch.packets_mut() {
        let is_ours = buffer.packet().first().is_some_and(|byte| byte >> 4 == 4);
        buffer.set_discarded(!is_ours);
        report.left_alone += u64::from(!is_ours);
    }
    let buffers = batch.packets_mut().iter_mut().take(BATCH);
    let buffers = buffers.filter(|buffer| !buffer.is_discarded());
    let mut lens: ArrayVec<usize, BATCH> = ArrayVec::new();
    let mut packets: ArrayVec<Packet<'_>, BATCH> = ArrayVec::new();
    for buffer in buffers {
        lens.push(total_len(buffer.packet()));
        packets.push(Packet::new(engine_room(buffer)));
    }
    match direction {
        Direction::Out => nat.translate_out_batch(&mut packets, now_millis()),
        Direction::In => nat.translate_in_batch(&mut packets, now_millis()),
    }
    let verdicts: ArrayVec<Verdict, BATCH> = packets.iter().map(|packet| packet.verdict).collect();
    drop(packets);
    let mut turning = ArrayVec::new();
    let buffers = batch.packets_mut().iter_mut().enumerate();
    let buffers = buffers.filter(|(_, buffer)| !buffer.is_discarded());
    for (((place, buffer), verdict), before) in buffers.zip(verdicts).zip(lens) {
        settle_len(buffer, before);
        let turns = verdict == Verdict::Hairpinned;
        if turns {
            turning.push(place);
        }
        buffer.set_discarded(turns || !verdict.goes_on());
    }
    turning
}

/// Milliseconds of a clock that only goes forward.
fn now_millis() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
