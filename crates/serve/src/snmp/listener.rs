//! A thread for each address that SNMP is asked at.
//!
//! It waits in one system call, answers what has come, and sends the
//! answers in another. It has no rights, opens no file, and keeps nothing
//! of those who ask: a flood from any number of addresses costs time and
//! no memory. Started by [`super::Service`].

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use snmp::Contexts;
use snmp::agent::{Agent, Outcome};
use snmp::agentx::{Dispatch, Gathering, Known};
use snmp::counters::Counters;

use super::clock::Clock;
use super::contexts::{Asked, Source};
use super::fair::Waiting;
use super::master::{Answered, Answers, Handle, Request};
use super::put_off::PutOff;
use super::samples::Manner;
use super::socket::{Batch, Socket, Way};
use crate::complaint::Complaint;

/// A thread looks at least so often whether it is to end.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Times that the socket is emptied between two batches of answers, at
/// most.
const GATHERED: usize = 128;
/// Requests answered at once while others wait: long answers take
/// milliseconds each, and nobody is heard meanwhile.
const AT_ONCE: usize = 8;
/// A turn ends when its answers have taken so much work (units of
/// [`Agent::work`], some 0.1 µs each): whoever asks meanwhile is not kept
/// waiting by more than this and one request.
const MOST_WORK: u32 = 1 << 14;
/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

/// What all listeners share.
#[derive(Debug)]
pub struct Shared {
    /// The agent: one engine, whatever address it is asked at.
    agent: Mutex<Agent>,
    source: Source,
    /// The thread that has subagents, where they may attach.
    subagents: Mutex<Option<Handle>>,
    /// `snmpEngineTime`.
    clock: Clock,
    /// Answers that the system did not take.
    unsent: AtomicU64,
    /// Answers with samples older than they should be.
    old: AtomicU64,
    /// Requests that were not answered, since the counters were too old.
    withheld: AtomicU64,
    /// Who is told of wrong communities and keys.
    failures: OnceLock<Waker>,
    /// What the agent had counted after the last batch: for who must not
    /// wait until a batch is answered.
    counted: Mutex<Counters>,
}

impl Shared {
    /// For an agent and what it answers from.
    pub fn new(agent: Agent, source: Source, clock: Clock) -> Self {
        Self {
            agent: Mutex::new(agent),
            source,
            subagents: Mutex::default(),
            clock,
            unsent: AtomicU64::new(0),
            old: AtomicU64::new(0),
            withheld: AtomicU64::new(0),
            failures: OnceLock::new(),
            counted: Mutex::default(),
        }
    }

    /// Tells of wrong communities and keys from now on.
    pub fn tell_failures(&self, to: Waker) {
        // Once, at the start.
        let _ = self.failures.set(to);
    }

    /// What the agent has counted, but for the batch that is answered now.
    pub fn counted(&self) -> Counters {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells others what the agent has counted.
    pub fn tell_counted(&self, agent: &Agent) {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = *agent.counters();
    }

    /// The agent. Held for as long as a batch is answered.
    pub fn agent(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the engine started.
    pub fn millis(&self) -> u64 {
        self.clock.up_millis()
    }

    /// Answers that the system did not take.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Answers sent whose counters or ages were older than they should be.
    pub fn old(&self) -> u64 {
        self.old.load(Ordering::Relaxed)
    }

    /// Requests that were not answered, since all counters there were are
    /// too old to make rates of.
    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }

    /// Whether an answer may go out; counts those that are old, or may not.
    fn may_tell(&self, asked: &Asked) -> bool {
        if asked.is_stale() {
            self.withheld.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.old.fetch_add(asked.is_old().into(), Ordering::Relaxed);
        true
    }

    /// The thread that has subagents, from now on.
    pub fn set_subagents(&self, subagents: Option<Handle>) {
        *self
            .subagents
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = subagents;
    }

    fn subagents(&self) -> Option<Handle> {
        let subagents = self.subagents.lock();
        subagents
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .cloned()
    }

    /// Answers a batch, each request from the newest snapshot. What takes
    /// longer than a turn may goes back to those that wait; what a sample is
    /// missing for is put off; what needs subagents goes to their thread.
    fn answer(&self, batch: &mut Batch, queues: &mut Queues, socket: &Arc<Socket>) {
        let subagents = self.subagents();
        let dispatch = subagents.as_ref().map(Handle::dispatch);
        let dispatch = dispatch.filter(|dispatch| !dispatch.is_empty());
        let mut agent = self.agent();
        let now_millis = self.millis();
        let failed = failures(agent.counters());
        let mut work = 0;
        batch.answer(|at, datagram, way, out| {
            if work > MOST_WORK {
                queues.again(at, datagram, way);
                return None;
            }
            let manner = queues.manner(at, way);
            let moment = self.source.moment(*agent.counters(), manner);
            let from = way.from.ip();
            let mut missing = Vec::new();
            let mut known = Known::default();
            let outcome = match dispatch.as_ref().zip(subagents.as_ref()) {
                None => agent.answer(datagram, from, now_millis, &moment, out),
                Some((dispatch, subagents)) => {
                    known = subagents.take_left_over(way.from);
                    let gathering = Gathering::new(&moment, dispatch, &known, false);
                    let outcome = agent.answer(datagram, from, now_millis, &gathering, out);
                    missing = gathering.into_missing();
                    outcome
                }
            };
            work += agent.work();
            if outcome != Outcome::PutOff {
                if let Some(subagents) = &subagents {
                    subagents.keep_left_over(way.from, known);
                }
                let answer = answered(outcome, &way);
                return answer.filter(|_| self.may_tell(&moment));
            }
            match &subagents {
                // First what is ours: then it is asked again.
                _ if moment.is_waiting() => queues.put_off(at, datagram, way, moment),
                Some(subagents) => {
                    let request = Request {
                        datagram: datagram.into(),
                        way,
                        socket: Arc::clone(socket),
                        arrived_millis: now_millis,
                        known,
                    };
                    subagents.put_off(request, missing);
                }
                None => {}
            }
            None
        });
        if let Some((user, from)) = agent.take_limited() {
            tracing::warn!(
                "SNMP user `{user}` asks from {from}, which is not in snmp.allowed_sources: its \
                 answers are cut to snmp.authentic_amplification times the request"
            );
        }
        if failures(agent.counters()) != failed
            && let Some(told) = self.failures.get()
        {
            told.wake_by_ref();
        }
        self.tell_counted(&agent);
    }
}

/// Requests with a wrong community, user or key.
fn failures(counters: &Counters) -> u32 {
    let usm = &counters.usm;
    let of_v3 = usm.wrong_digests.wrapping_add(usm.unknown_user_names);
    counters.snmp.in_bad_community_names.wrapping_add(of_v3)
}

/// Requests that are not answered at once.
struct Queues {
    /// Their turn has not come.
    waiting: Waiting,
    /// They wait for a sample.
    put_off: PutOff,
    /// How long those of this batch are put off that were so before; in the
    /// order of the batch.
    until: Vec<Instant>,
}

impl Queues {
    fn new() -> io::Result<Self> {
        Ok(Self {
            waiting: Waiting::default(),
            put_off: PutOff::new()?,
            until: Vec::new(),
        })
    }

    /// What is done where the answer to this request of the batch needs a
    /// sample.
    fn manner(&self, at: usize, way: Way) -> Manner {
        let is_over = self
            .until
            .get(at)
            .is_some_and(|until| *until <= Instant::now());
        match is_over || !self.put_off.has_room_for(way) {
            true => Manner::Take,
            false => Manner::PutOff(self.put_off.waker().clone()),
        }
    }

    fn put_off(&mut self, at: usize, datagram: &[u8], way: Way, asked: Asked) {
        let (waits, patience) = asked.into_waits();
        let until = self.until.get(at).copied();
        let until = until.unwrap_or_else(|| Instant::now() + patience);
        self.put_off.add(datagram, way, waits, until);
    }

    /// The turn of a batch is over before this request was answered.
    fn again(&mut self, at: usize, datagram: &[u8], way: Way) {
        match self.until.get(at) {
            // It has waited already: it goes before the others.
            Some(until) => {
                self.put_off.add(datagram, way, Vec::new(), *until);
                self.put_off.waker().wake_by_ref();
            }
            None => drop(self.waiting.put(datagram, way)),
        }
    }

    /// Has requests in the batch that were put off and are to be asked
    /// again; whether there are any.
    fn load_put_off(&mut self, batch: &mut Batch) -> bool {
        self.until.clear();
        let (put_off, until) = (&mut self.put_off, &mut self.until);
        batch.load(AT_ONCE, || {
            let request = put_off.take()?;
            until.push(request.until);
            Some(request.datagram)
        });
        !batch.is_empty()
    }

    /// Has the requests that are answered next in the batch: those that
    /// come, or, when more come than it takes, some of each source. Whether
    /// some had to be dropped.
    fn receive(&mut self, socket: &Socket, batch: &mut Batch) -> io::Result<bool> {
        self.until.clear();
        match self.waiting.is_empty() && self.put_off.is_empty() {
            true => socket.receive(batch)?,
            false => socket.receive_now(batch)?,
        }
        if self.waiting.is_empty() && !batch.is_full() {
            return Ok(false);
        }
        let mut dropped = false;
        for left in (0..GATHERED).rev() {
            for (datagram, way) in batch.received() {
                dropped |= !self.waiting.put(datagram, way);
            }
            if !batch.is_full() || left == 0 {
                break;
            }
            socket.receive_now(batch)?;
        }
        batch.load(AT_ONCE, || self.waiting.take());
        Ok(dropped)
    }

    /// Waits for the next thing to do, if there is nothing.
    fn rest(&self, socket: &Socket) -> io::Result<()> {
        if self.put_off.is_empty() || !self.waiting.is_empty() {
            return Ok(());
        }
        self.put_off.wait(socket, PATIENCE)
    }
}

/// Length of an answer that goes out at once.
fn answered(outcome: Outcome, way: &Way) -> Option<usize> {
    match outcome {
        Outcome::Answered(len) => Some(len),
        Outcome::PutOff => None,
        Outcome::Dropped(reason) => {
            let from = way.from;
            tracing::debug!("a datagram of {from} is not answered: {reason:?}");
            None
        }
    }
}

impl Answers for Shared {
    fn answer(
        &self,
        request: &Request,
        dispatch: &Dispatch,
        known: &Known,
        is_last: bool,
        manner: Manner,
        out: &mut [u8],
    ) -> Answered {
        let (way, from) = (&request.way, request.way.from.ip());
        let now_millis = request.arrived_millis;
        let mut agent = self.agent();
        let moment = self.source.moment(*agent.counters(), manner);
        let gathering = Gathering::new(&moment, dispatch, known, is_last);
        let outcome = agent.answer(&request.datagram, from, now_millis, &gathering, out);
        self.tell_counted(&agent);
        drop(agent);
        if outcome == Outcome::PutOff {
            let missing = gathering.into_missing();
            if !missing.is_empty() {
                return Answered::Missing(missing);
            }
            let (waits, patience) = moment.into_waits();
            return Answered::Waits(waits, patience);
        }
        let answer = answered(outcome, way).filter(|_| self.may_tell(&moment));
        let answer = answer.and_then(|len| out.get(..len));
        if answer.is_some_and(|answer| !request.socket.answer(answer, way)) {
            self.unsent.fetch_add(1, Ordering::Relaxed);
        }
        Answered::Done
    }
}

/// A running listener. Ends when dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Arc<Socket>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to answer at a socket.
    pub fn start(socket: Arc<Socket>, shared: Arc<Shared>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("snmp".to_owned())
            .spawn({
                let (socket, stop) = (Arc::clone(&socket), Arc::clone(&stop));
                move || match privileges::drop_all() {
                    Ok(()) => listen(&socket, &shared, &stop),
                    Err(error) => tracing::error!("no SNMP, rights remain: {error}"),
                }
            })
            .context("cannot start a thread for SNMP")?;
        Ok(Self {
            socket,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.socket.address()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.socket.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

fn listen(socket: &Arc<Socket>, shared: &Shared, stop: &AtomicBool) {
    let mut queues = match Queues::new() {
        Ok(queues) => queues,
        Err(error) => return tracing::error!("no SNMP at {}: {error}", socket.address()),
    };
    let mut batch = Batch::new();
    let mut complaint = Complaint::default();
    while !stop.load(Ordering::Acquire) {
        match turn(socket, shared, &mut batch, &mut queues) {
            Ok(true) if complaint.is_due() => {
                tracing::warn!(
                    "SNMP at {} is asked faster than it can answer: those who ask most lose \
                     requests",
                    socket.address()
                );
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("SNMP at {}: {error}", socket.address());
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Answers those that were put off and whose time has come, then those that
/// came. Whether requests had to be dropped.
fn turn(
    socket: &Arc<Socket>,
    shared: &Shared,
    batch: &mut Batch,
    queues: &mut Queues,
) -> io::Result<bool> {
    let answer = |batch: &mut Batch, queues: &mut Queues| {
        shared.answer(batch, queues, socket);
        let unsent = socket.send(batch) as u64;
        shared.unsent.fetch_add(unsent, Ordering::Relaxed);
    };
    queues.rest(socket)?;
    if queues.load_put_off(batch) {
        answer(batch, queues);
    }
    let dropped = queues.receive(socket, batch)?;
    if !batch.is_empty() {
        answer(batch, queues);
    }
    Ok(dropped)
}

#[cfg(test)]
mod tests;
