//! Two devices with the engine between them, until Ctrl-C: TUN devices, or the
//! TAP devices by which the program at XDP hands packets up (`live`). By the
//! way, as natd: SIGHUP reads the rules again, SIGUSR1 writes the statistics.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, anyhow};
use arrayvec::ArrayVec;
use dataplane::{Batch, Cache, Pool, Port, Received, Tun};
use nat::{Direction, Nat, Packet, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::control::pieces::Jobs;
use super::log::Log;
use super::offloading::Offloading;
use super::report::Report;
use super::settings::Later;
use super::state::Beginning;
use super::{engine_room, settle_len, total_len};
use crate::signals::{caught, has_come};

/// Packets that one read may give, and how long one may be.
const BATCH: usize = 128;
const MAX_PACKET_BYTES: usize = 65_535;
/// A batch, and what turns back of another.
const BUFFERS: usize = 2 * BATCH;
/// Reads of one device before the other has its turn.
const READS_A_TURN: usize = 16;
/// Marks a packet that turns back inside.
const TURNS: u16 = 1;
/// How long nothing happens before flows are swept, and how many then.
const IDLE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
const SWEPT_WHEN_IDLE: usize = 65_536;
/// How often some are swept all the same, and how many: questions alone do
/// not let time pass for the engine.
const MAINTAINED_MILLIS: u64 = 250;
const SWEPT_MEANWHILE: usize = 4_096;

/// What is done when a signal asks for it.
pub struct OnSignal<'a> {
    /// The rules are read again.
    pub reload: &'a dyn Fn(&mut Nat) -> Result<Later, String>,
    /// The statistics so far are written.
    pub print: &'a dyn Fn(&Nat, &mut Report),
}

/// What else is to be seen to between two batches.
pub struct Asked<'a> {
    /// Questions, where there is a control socket.
    pub jobs: Option<&'a mut Jobs>,
    /// Who wants records.
    pub log: &'a Log,
    /// What is to be done before the first packet; none once that is done.
    pub beginning: Option<Beginning>,
    /// What TCP may announce as its largest segment, bytes.
    pub clamp_mss: Option<u16>,
}

/// Signals that have come: each becomes readable when its own did.
pub struct Signals {
    end: UnixStream,
    reload: UnixStream,
    print: UnixStream,
}

impl Signals {
    /// As the process gets them, but for what says that it is to end.
    pub fn ending(end: UnixStream) -> anyhow::Result<Self> {
        Ok(Self {
            end,
            reload: caught(&[SIGHUP])?,
            print: caught(&[SIGUSR1])?,
        })
    }
}

/// Translates between the devices until SIGINT or SIGTERM.
pub fn run(
    nat: &mut Nat,
    [inside, outside]: [&str; 2],
    on_signal: &OnSignal<'_>,
    asked: &mut Asked<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut signals = Signals::ending(caught(&[SIGINT, SIGTERM])?)?;
    let mut inside = Tun::open(inside)?;
    let mut outside = Tun::open(outside)?;
    privileges::give_up().context("giving up privileges")?;
    let mut moving = Moving::new(asked.clamp_mss, None)?;
    if let Some(beginning) = &asked.beginning {
        beginning.confirm(asked.log)?;
        asked.beginning = None;
    }
    let moved = shuttle(
        nat,
        &mut inside,
        &mut outside,
        &mut moving,
        (&mut signals, on_signal),
        (asked, report),
    );
    for (name, tun) in [("inside", &inside), ("outside", &outside)] {
        let name = format!("{name} {}", tun.name());
        report.ports.push((name, tun.counters()));
    }
    moved
}

/// What is on its way between the devices.
pub struct Moving {
    clamp_mss: Option<u16>,
    cache: Cache,
    batch: Batch,
    /// What turns back inside.
    turning: Batch,
    /// Who translates established flows in the engine's place.
    offloading: Option<Offloading>,
}

impl Moving {
    /// Nothing yet.
    pub fn new(clamp_mss: Option<u16>, offloading: Option<Offloading>) -> anyhow::Result<Self> {
        let pool = Pool::new(BUFFERS, MAX_PACKET_BYTES)?;
        Ok(Self {
            clamp_mss,
            cache: pool.cache(),
            batch: Batch::new(BATCH),
            turning: Batch::new(BATCH),
            offloading,
        })
    }

    /// Nobody translates any more.
    pub fn end(&self) -> anyhow::Result<()> {
        self.offloading.as_ref().map_or(Ok(()), Offloading::end)
    }

    /// Has nobody translate what the engine has ended: its ports may be
    /// another's by now. Before anything is sent.
    fn recall(&mut self, nat: &mut Nat) -> anyhow::Result<()> {
        match &mut self.offloading {
            Some(offloading) => offloading.recall(nat),
            None => Ok(()),
        }
    }
}

/// Translates between two devices until a signal ends it.
pub fn shuttle<P: Port>(
    nat: &mut Nat,
    inside: &mut P,
    outside: &mut P,
    moving: &mut Moving,
    (signals, on_signal): (&mut Signals, &OnSignal<'_>),
    (asked, report): (&mut Asked<'_>, &mut Report),
) -> anyhow::Result<()> {
    let mut maintained = now_millis();
    loop {
        asked.log.take(nat, now_millis());
        let jobs = asked.jobs.as_deref().map(Jobs::readable);
        let is_idle = !wait(inside, outside, signals, jobs)?;
        if has_come(&mut signals.end) {
            return Ok(());
        }
        if let Some(offloading) = &mut moving.offloading {
            offloading.tend(nat, now_millis())?;
        }
        if has_come(&mut signals.reload) {
            // It says itself what was wrong.
            let _ = (on_signal.reload)(nat);
        }
        if let Some(job) = asked.jobs.as_mut().and_then(|jobs| jobs.next_job()) {
            match job.is_reload() {
                true => job.reloaded((on_signal.reload)(nat)),
                false => job.answer(nat, 1),
            }
        }
        // Of what a reload, or somebody who asked, has ended.
        moving.recall(nat)?;
        if has_come(&mut signals.print) {
            (on_signal.print)(nat, report);
        }
        let now = now_millis();
        if is_idle {
            nat.maintain(now, SWEPT_WHEN_IDLE);
            moving.recall(nat)?;
            announce(nat, inside, moving, now)?;
            maintained = now;
            continue;
        }
        if now.saturating_sub(maintained) >= MAINTAINED_MILLIS {
            nat.maintain(now, SWEPT_MEANWHILE);
            moving.recall(nat)?;
            announce(nat, inside, moving, now)?;
            maintained = now;
        }
        turn(nat, Direction::Out, inside, outside, moving, report)?;
        turn(nat, Direction::In, outside, inside, moving, report)?;
    }
}

/// Tells all hosts inside that what they asked for is not known any more,
/// if that is due: behind a start, and behind a change of addresses.
fn announce<P: Port>(
    nat: &mut Nat,
    inside: &mut P,
    moving: &mut Moving,
    now_millis: u64,
) -> anyhow::Result<()> {
    while let Some(mut buffer) = moving.cache.take() {
        let Some(len) = nat.next_announcement(buffer.room_mut(), now_millis) else {
            moving.cache.give(buffer);
            break;
        };
        buffer.set_len(len);
        buffer.set_discarded(false);
        if let Err(buffer) = moving.turning.push(buffer) {
            moving.cache.give(buffer);
            break;
        }
    }
    if !moving.turning.is_empty() {
        inside.send(&mut moving.cache, &mut moving.turning)?;
    }
    Ok(())
}

/// What becomes readable with a packet.
fn readable<P: Port>(port: &P) -> anyhow::Result<BorrowedFd<'_>> {
    let readable = port.readable();
    readable.ok_or_else(|| anyhow!("a device without waiting"))
}

/// Waits for a packet or a signal; false when there was neither.
fn wait<P: Port>(
    inside: &P,
    outside: &P,
    signals: &Signals,
    jobs: Option<BorrowedFd<'_>>,
) -> anyhow::Result<bool> {
    let none = signals.end.as_fd();
    let mut waited = [
        PollFd::from_borrowed_fd(jobs.unwrap_or(none), PollFlags::IN),
        PollFd::from_borrowed_fd(readable(inside)?, PollFlags::IN),
        PollFd::from_borrowed_fd(readable(outside)?, PollFlags::IN),
        PollFd::from_borrowed_fd(signals.end.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(signals.reload.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(signals.print.as_fd(), PollFlags::IN),
    ];
    match poll(&mut waited, Some(&IDLE)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error).context("waiting for packets"),
    }
}

/// Takes what has come from one side to the other.
fn turn<P: Port>(
    nat: &mut Nat,
    direction: Direction,
    from: &mut P,
    to: &mut P,
    moving: &mut Moving,
    report: &mut Report,
) -> anyhow::Result<()> {
    for _ in 0..READS_A_TURN {
        if from.receive(&mut moving.cache, &mut moving.batch)? != Received::Packets {
            break;
        }
        if let Some(offloading) = &mut moving.offloading {
            offloading.before(nat, direction, &mut moving.batch)?;
        }
        translate(nat, direction, moving, report);
        moving.recall(nat)?;
        if let Some(offloading) = &mut moving.offloading {
            offloading.behind(nat, direction, &mut moving.batch)?;
        }
        to.send(&mut moving.cache, &mut moving.batch)?;
        if !moving.turning.is_empty() {
            from.send(&mut moving.cache, &mut moving.turning)?;
        }
        release(nat, moving, from, to, direction)?;
    }
    Ok(())
}

/// Sends the fragments that had waited for a first one of these.
fn release<P: Port>(
    nat: &mut Nat,
    moving: &mut Moving,
    from: &mut P,
    to: &mut P,
    direction: Direction,
) -> anyhow::Result<()> {
    while let Some(mut buffer) = moving.cache.take() {
        let Some((len, way, verdict)) = nat.next_fragment(buffer.room_mut(), now_millis()) else {
            moving.cache.give(buffer);
            break;
        };
        buffer.set_len(len);
        buffer.set_discarded(!verdict.goes_on());
        if let Err(buffer) = moving.batch.push(buffer) {
            moving.cache.give(buffer);
        }
        moving.recall(nat)?;
        let turns = (way == direction) == verdict.turns_back();
        let port = if turns { &mut *from } else { &mut *to };
        port.send(&mut moving.cache, &mut moving.batch)?;
    }
    Ok(())
}

/// Translates what is in the batch. Packets that turn back inside are moved
/// to the batch of those.
fn translate(nat: &mut Nat, direction: Direction, moving: &mut Moving, report: &mut Report) {
    let Moving {
        batch,
        turning,
        clamp_mss,
        ..
    } = moving;
    for buffer in batch.packets_mut() {
        if let Some(most) = *clamp_mss {
            packet::mss::clamp(buffer.packet_mut(), most);
        }
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
    let mut turns_any = false;
    let buffers = batch.packets_mut().iter_mut();
    let buffers = buffers.filter(|buffer| !buffer.is_discarded());
    for ((buffer, verdict), before) in buffers.zip(verdicts).zip(lens) {
        settle_len(buffer, before);
        let turns = verdict.turns_back();
        buffer.set_mark(if turns { TURNS } else { 0 });
        buffer.set_discarded(!verdict.goes_on());
        turns_any |= turns;
    }
    if turns_any {
        batch.move_to(turning, |buffer| buffer.mark() == TURNS);
    }
}

/// Milliseconds of a clock that only goes forward.
pub fn now_millis() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
