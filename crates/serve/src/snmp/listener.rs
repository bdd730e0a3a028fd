//! A thread for each address that SNMP is asked at.
//!
//! It waits in one system call, answers what has come, and sends the
//! answers in another. It has no rights, opens no file, and keeps nothing
//! of those who ask: a flood from any number of addresses costs time and
//! no memory. Started by [`super::Service`].

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use snmp::agent::{Agent, Outcome};
use snmp::agentx::{Dispatch, Gathering, Known, Question};
use snmp::counters::Counters;

use super::contexts::Source;
use super::fair::Waiting;
use super::master::{Answers, Handle, Request};
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
    /// When the engine started.
    started: Instant,
    /// Answers that the system did not take.
    unsent: AtomicU64,
    /// What the agent had counted after the last batch: for who must not
    /// wait until a batch is answered.
    counted: Mutex<Counters>,
}

impl Shared {
    /// For an agent and what it answers from.
    pub fn new(agent: Agent, source: Source) -> Self {
        Self {
            agent: Mutex::new(agent),
            source,
            subagents: Mutex::default(),
            started: Instant::now(),
            unsent: AtomicU64::new(0),
            counted: Mutex::default(),
        }
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
        self.started.elapsed().as_millis() as u64
    }

    /// Answers that the system did not take.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
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

    /// Answers all of a batch from one moment. What needs subagents goes to
    /// their thread.
    fn answer(&self, batch: &mut Batch, socket: &Arc<Socket>) {
        let subagents = self.subagents();
        let dispatch = subagents.as_ref().map(Handle::dispatch);
        let dispatch = dispatch.filter(|dispatch| !dispatch.is_empty());
        let known = Known::default();
        let mut agent = self.agent();
        let now_millis = self.millis();
        batch.answer(|datagram, way, out| {
            let moment = self.source.moment(*agent.counters());
            let from = way.from.ip();
            let Some(dispatch) = &dispatch else {
                let outcome = agent.answer(datagram, from, now_millis, &moment, out);
                return answered(outcome, way);
            };
            let gathering = Gathering::new(&moment, dispatch, &known, false);
            let outcome = agent.answer(datagram, from, now_millis, &gathering, out);
            if outcome == Outcome::PutOff
                && let Some(subagents) = &subagents
            {
                let request = Request {
                    datagram: datagram.into(),
                    way: *way,
                    socket: Arc::clone(socket),
                    arrived_millis: now_millis,
                };
                subagents.put_off(request, gathering.into_missing());
            }
            answered(outcome, way)
        });
        self.tell_counted(&agent);
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
        out: &mut [u8],
    ) -> Vec<Question> {
        let (way, from) = (&request.way, request.way.from.ip());
        let now_millis = request.arrived_millis;
        let mut agent = self.agent();
        let moment = self.source.moment(*agent.counters());
        let gathering = Gathering::new(&moment, dispatch, known, is_last);
        let outcome = agent.answer(&request.datagram, from, now_millis, &gathering, out);
        self.tell_counted(&agent);
        drop(agent);
        if outcome == Outcome::PutOff {
            return gathering.into_missing();
        }
        let answer = answered(outcome, way).and_then(|len| out.get(..len));
        if answer.is_some_and(|answer| !request.socket.answer(answer, way)) {
            self.unsent.fetch_add(1, Ordering::Relaxed);
        }
        Vec::new()
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
    let mut batch = Batch::new();
    let mut waiting = Waiting::default();
    let mut complaint = Complaint::default();
    while !stop.load(Ordering::Acquire) {
        match receive(socket, &mut batch, &mut waiting) {
            Ok(dropped) => {
                if dropped && complaint.is_due() {
                    tracing::warn!(
                        "SNMP at {} is asked faster than it can answer: those who ask most lose \
                         requests",
                        socket.address()
                    );
                }
                if batch.is_empty() {
                    continue;
                }
                shared.answer(&mut batch, socket);
                let unsent = socket.send(&mut batch) as u64;
                shared.unsent.fetch_add(unsent, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!("SNMP at {}: {error}", socket.address());
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Has the requests that are answered next in the batch: those that come,
/// or, when more come than it takes, some of each source. Whether some had
/// to be dropped.
fn receive(socket: &Socket, batch: &mut Batch, waiting: &mut Waiting) -> io::Result<bool> {
    match waiting.is_empty() {
        true => socket.receive(batch)?,
        false => socket.receive_now(batch)?,
    }
    if waiting.is_empty() && !batch.is_full() {
        return Ok(false);
    }
    let mut dropped = false;
    for left in (0..GATHERED).rev() {
        for (datagram, way) in batch.received() {
            dropped |= !waiting.put(datagram, way);
        }
        if !batch.is_full() || left == 0 {
            break;
        }
        socket.receive_now(batch)?;
    }
    batch.load(AT_ONCE, || waiting.take());
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use super::super::socket::BATCH;
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn who_asks_once_is_among_the_first_that_are_answered() {
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), PATIENCE).unwrap();
        let client = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (flood, other) = (client(), client());
        for _ in 0..10 * BATCH {
            flood.send_to(b"flood", socket.address()).unwrap();
        }
        other.send_to(b"other", socket.address()).unwrap();
        let (mut batch, mut waiting) = (Batch::new(), Waiting::default());
        receive(&socket, &mut batch, &mut waiting).unwrap();
        let said: Vec<_> = batch.received().map(|(said, _)| said.to_vec()).collect();
        assert_eq!(said.len(), AT_ONCE);
        assert!(said.contains(&b"other".to_vec()));
        // What waits is answered before anybody is waited for.
        let mut answered = said.len();
        while !waiting.is_empty() {
            receive(&socket, &mut batch, &mut waiting).unwrap();
            answered += batch.received().count();
        }
        assert!(answered > 2 * BATCH, "{answered}");
    }
}
