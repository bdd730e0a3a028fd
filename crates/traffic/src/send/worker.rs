//! The loop of one core: so many packets as are due, made, handed over;
//! and what that cost, by the thread's own clocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use dataplane::socket::Flushed;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, NanosleepRelativeResult, nanosleep, sched_setaffinity};

use super::clock::{monotonic, real};
use super::own::{Drops, Profile, Stack};
use super::pace::Pace;
use super::plan::Plan;
use super::way::Sender;
use crate::payload::Header;

/// How long one waits for room before the signals are looked at again.
const WAIT_NANOS: i64 = 10_000_000;
/// The pause where the kernel has no buffers and tells nobody when it has.
const NO_BUFFERS_NANOS: u64 = 50_000;
/// How long packets that are on their way at the end may take.
const DRAIN_PATIENCE_NANOS: u64 = 1_000_000_000;
/// How much longer than its time a run with a rate may take.
const GRACE_NANOS: u64 = 1_000_000_000;
/// Sleeps are never longer, so that a signal ends them soon.
const MOST_SLEEP_NANOS: u64 = 100_000_000;
/// The kernel may wake us this much late; its usual is 50 µs.
const TIMER_SLACK_NANOS: u64 = 1_000;

/// What a core did, and what it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that the kernel has sent.
    pub sent: u64,
    /// Packets that it gave back unsent, and those that it still has.
    pub refused: u64,
    /// Of those that were made.
    pub unsent: u64,
    /// Packets whose bytes were copied into memory that a device sends from.
    pub copied: u64,
    /// Times that the socket had no room (`EAGAIN`).
    pub full: u64,
    /// Times that the kernel had no buffers (`ENOBUFS`).
    pub no_buffers: u64,
    /// Answers "port unreachable" that came back.
    pub unreachable: u64,
    /// Packets that fell due and were left out.
    pub slipped: u64,
    /// From the first packet to the last.
    pub wall: Duration,
    /// Of the thread, in the program and in the kernel.
    pub user: Duration,
    /// See `user`.
    pub system: Duration,
}

/// What a core gives back.
pub struct Done {
    /// What it did.
    pub tally: Tally,
    /// What the stages of our own stack took, where that was wanted.
    pub profile: Option<Profile>,
    /// Packets that our own stack could not send.
    pub drops: Drops,
    /// Why it could not go on.
    pub error: Option<anyhow::Error>,
}

/// One core's part of a plan.
pub struct Worker<'a> {
    plan: &'a Plan,
    core: usize,
    sender: Sender,
    flows: Vec<u32>,
    sequences: Vec<u32>,
    tally: Tally,
}

impl<'a> Worker<'a> {
    /// For a sender that was opened for this core.
    pub fn new(plan: &'a Plan, core: usize, sender: Sender) -> Self {
        let flows = plan.flows.of_core(core, plan.cores);
        Self {
            plan,
            core,
            sender,
            sequences: vec![0; flows.len()],
            flows,
            tally: Tally::default(),
        }
    }

    /// Sends until the plan is done or `end` is set. The tally is of what
    /// was sent, also when it could not go on.
    pub fn run(mut self, end: &AtomicBool) -> Done {
        bind_to(self.core, self.plan.cores);
        // Without it, sleeps are longer and bursts larger.
        let _ = rustix::thread::set_current_timer_slack(TIMER_SLACK_NANOS.try_into().ok());
        let before = cpu();
        let start = monotonic();
        let sent = self.send(start, end);
        let stop = monotonic();
        let after = cpu();
        self.drain();
        self.tally.sent = self.sender.sent();
        self.tally.refused = self.sender.refused();
        self.tally.copied = self.sender.copied();
        self.tally.unsent = self.sender.pending() as u64;
        self.tally.wall = Duration::from_nanos(stop - start);
        self.tally.user = after.0.saturating_sub(before.0);
        self.tally.system = after.1.saturating_sub(before.1);
        let stack = self.sender.stack();
        Done {
            tally: self.tally,
            profile: stack.and_then(|stack| stack.profile.clone()),
            drops: stack.map(Stack::drops).unwrap_or_default(),
            error: sent.err(),
        }
    }

    fn send(&mut self, start: u64, end: &AtomicBool) -> Result<()> {
        let cores = self.plan.cores as u64;
        let share = |count: u64| count / cores + u64::from(count % cores > self.core as u64);
        let mut left = self.plan.count.map_or(u64::MAX, share);
        let until = self.plan.duration.map_or(u64::MAX, |duration| {
            start.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
        });
        let rate = self.plan.rate.map(|rate| rate / cores as f64);
        // A count without a time is a promise.
        let leaves_out = self.plan.duration.is_some() || self.plan.count.is_none();
        let mut pace = rate.map(|rate| Pace::new(rate, self.plan.batch, start, leaves_out));
        let to_real = real().wrapping_sub(monotonic());
        // With a rate the count says when it ends, and what was left out
        // counts; the time is for a way that does not move at all.
        let grace = if pace.is_some() { GRACE_NANOS } else { 0 };
        let until = until.saturating_add(grace);
        while left > self.tally.slipped && !end.load(Ordering::Relaxed) {
            let time = monotonic();
            if time >= until {
                // A core that stood still: the rest of the count is late.
                if pace.is_some() && self.plan.count.is_some() {
                    self.tally.slipped = left;
                }
                break;
            }
            let due = pace.as_mut().map_or(u64::MAX, |pace| pace.due(time));
            self.tally.slipped = pace.as_ref().map_or(0, Pace::slipped).min(left);
            if due == 0 {
                let next = pace.as_ref().map_or(time, Pace::next_nanos);
                sleep(next.saturating_sub(time));
                continue;
            }
            let left_now = left.saturating_sub(self.tally.slipped);
            let wanted = due.min(left_now).min(self.plan.batch as u64) as usize;
            let pushed = self.push(wanted, time.wrapping_add(to_real)) as u64;
            left -= pushed;
            if let Some(pace) = &mut pace {
                pace.sent(pushed);
            }
            self.flush(until, end)?;
            if pushed == 0 {
                // Every slot is in the kernel: it will tell.
                self.tally.full += 1;
                self.wait();
            }
        }
        Ok(())
    }

    /// Makes packets; how many found room.
    fn push(&mut self, count: usize, time_nanos: u64) -> usize {
        let (flows, sequences, run) = (&self.flows, &mut self.sequences, self.plan.run);
        self.sender.push(count, |flow| {
            let mut number = 0;
            if let Some(sequence) = sequences.get_mut(flow) {
                number = *sequence;
                *sequence = number.wrapping_add(1);
            }
            Header {
                run,
                flow: flows.get(flow).copied().unwrap_or(0) as u16,
                sequence: number,
                time_nanos,
            }
        })
    }

    /// Hands them over, until all are taken, or there is no more time.
    fn flush(&mut self, until: u64, end: &AtomicBool) -> Result<()> {
        loop {
            match self.sender.flush()? {
                Flushed::All => return Ok(()),
                Flushed::Full => {
                    self.tally.full += 1;
                    self.wait();
                }
                Flushed::NoBuffers => {
                    self.tally.no_buffers += 1;
                    sleep(NO_BUFFERS_NANOS);
                }
                Flushed::PortUnreachable => self.tally.unreachable += 1,
            }
            if end.load(Ordering::Relaxed) || monotonic() >= until {
                return Ok(());
            }
        }
    }

    /// Waits for room, a little while at most.
    fn wait(&self) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: WAIT_NANOS,
        };
        if let Some(fd) = self.sender.writable() {
            let mut waited = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
            // Interrupted or not: the caller tries again.
            let _ = poll(&mut waited, Some(&timeout));
        }
    }

    /// Waits for what is on its way, a second at most.
    fn drain(&mut self) {
        let until = monotonic() + DRAIN_PATIENCE_NANOS;
        loop {
            self.sender.reap();
            if self.sender.pending() == 0 || monotonic() >= until {
                return;
            }
            if self.sender.flush().is_err() {
                return;
            }
            sleep(NO_BUFFERS_NANOS);
        }
    }
}

/// One thread a core, where there are several.
fn bind_to(core: usize, cores: usize) {
    if cores < 2 {
        return;
    }
    let present = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(core % present);
    // A host that forbids it schedules as it likes.
    let _ = sched_setaffinity(None, &set);
}

fn sleep(nanos: u64) {
    let nanos = nanos.min(MOST_SLEEP_NANOS);
    let wanted = Timespec {
        tv_sec: 0,
        tv_nsec: nanos as i64,
    };
    // A signal that cut it short is looked at by the caller.
    let _: NanosleepRelativeResult = nanosleep(&wanted);
}

/// What this thread has used: in the program, in the kernel.
fn cpu() -> (Duration, Duration) {
    let Ok(used) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return (Duration::ZERO, Duration::ZERO);
    };
    let micros = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0))
    };
    (micros(used.user_time()), micros(used.system_time()))
}
