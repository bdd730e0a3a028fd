//! A worker: ports, buffers and a [`Forwarder`] of its own, on a thread that
//! is bound to a core. Nothing of it is shared while it works; who wants to
//! know something asks, and is answered between two batches.

mod dispatch;
mod mesh;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use memory::quiescent::{Online, Reader};
use nat::{Cursor, FlowView, Nat};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::forward::{Counters, Forwarder, Ports, Request};
use crate::{Batch, CacheCounters, Port, PortError, Received};
use dispatch::Ways;

pub use mesh::Mesh;

/// Turns over all ports between two looks for questions.
const TURNS_BETWEEN_ASKS: usize = 32;
/// Questions that wait for an answer at most.
const MAX_ASKS: usize = 64;
/// How long a worker waits where nothing comes in, before it looks for
/// questions and for packets that have waited too long.
const IDLE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};
/// Flows that are swept while nothing comes in.
const SWEPT_WHEN_IDLE: usize = 4_096;
/// Flows in one answer at most.
pub const MAX_FLOWS: usize = 1_024;

/// What tells the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The system's, one look a batch.
    System,
    /// The packets', as they were captured.
    Captured,
}

/// A question, or something to be told. Served between two batches.
#[derive(Debug)]
pub enum Ask {
    /// How it stands.
    State(Sender<State>),
    /// Flows of its address translation from a cursor on, so many.
    Flows(Cursor, usize, Sender<(Vec<FlowView>, Option<Cursor>)>),
    /// Something to be done with its address translation.
    Nat(Errand),
    /// Ports have changed.
    Ports(Box<Ports>),
    /// It is time to end.
    Stop,
}

/// What is to be done with a worker's engine of translation, on its thread:
/// something short, because packets wait for it.
pub struct Errand(Box<dyn FnOnce(&mut Nat) + Send>);

impl Errand {
    /// One that does this.
    pub fn new(what: impl FnOnce(&mut Nat) + Send + 'static) -> Self {
        Self(Box::new(what))
    }
}

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Errand")
    }
}

/// How a worker stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// What its nodes counted.
    pub counters: Counters,
    /// What went through its ports, by the ports' numbers.
    pub ports: Vec<(u16, crate::Counters)>,
    /// Time that its thread has run, nanoseconds.
    pub cpu_nanos: u64,
    /// What its buffers did.
    pub buffers: CacheCounters,
    /// Statistics of its address translation.
    pub nat: Option<nat::Statistics>,
    /// Neighbours that packets wait for, and those packets' bytes.
    pub waiting: (usize, usize),
    /// Requests that there was no room for.
    pub requests_lost: u64,
    /// Ports that could not go on, by their numbers, and why.
    pub failures: Vec<(u16, String)>,
}

/// A worker before it runs.
pub struct Worker {
    forwarder: Forwarder,
    reader: Reader,
    batch: Batch,
    leaving: Batch,
    ports: Vec<Place>,
    /// Those that it hands packets to, and that hand packets to it.
    mesh: Option<Mesh>,
    clock: Clock,
    requests: Option<SyncSender<Request>>,
    requests_lost: u64,
    /// How many ports have failed; for whoever started it.
    failed: Arc<AtomicUsize>,
    /// Becomes readable with a question, where there is somebody else who asks.
    rung: Option<Arc<OwnedFd>>,
}

/// A port of a worker.
struct Place {
    number: u16,
    port: Box<dyn Port + Send>,
    /// Nothing more comes by it.
    has_ended: bool,
    /// Nothing more comes or goes by it.
    failure: Option<PortError>,
    /// Whether it takes what leaves by ports that are not here.
    takes_all: bool,
}

impl Place {
    fn new(number: u16, port: Box<dyn Port + Send>) -> Self {
        Self {
            number,
            port,
            has_ended: false,
            failure: None,
            takes_all: false,
        }
    }

    /// It cannot go on; the worker's other ports do.
    #[cold]
    fn fail(&mut self, error: PortError) {
        self.has_ended = true;
        self.failure = Some(error);
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("forwarder", &self.forwarder)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker of these ports, with their numbers in the forwarder's
    /// [`Ports`]. It takes `batch` packets at a time; requests about
    /// neighbours go into the channel, and are lost where that is full.
    pub fn new(
        forwarder: Forwarder,
        reader: Reader,
        ports: Vec<(u16, Box<dyn Port + Send>)>,
        batch: usize,
        clock: Clock,
        requests: Option<SyncSender<Request>>,
    ) -> Self {
        let batch = batch.clamp(1, crate::forward::MAX_BATCH);
        Self {
            forwarder,
            reader,
            batch: Batch::new(batch),
            leaving: Batch::new(batch),
            ports: ports
                .into_iter()
                .map(|(number, port)| Place::new(number, port))
                .collect(),
            mesh: None,
            clock,
            requests,
            requests_lost: 0,
            failed: Arc::default(),
            rung: None,
        }
    }

    /// Has its first port take what leaves by any port that is not here: one
    /// capture file for all.
    #[must_use]
    pub fn all_by_the_first(mut self) -> Self {
        if let Some(first) = self.ports.first_mut() {
            first.takes_all = true;
        }
        self
    }

    /// Has it hand packets to others and take theirs: for workers whose
    /// engines of translation are parts of one ([`nat::Shards`]), in the
    /// order of the parts. It works then until it is told to stop, also when
    /// its ports have ended: others may not have.
    #[must_use]
    pub fn with_mesh(mut self, mesh: Mesh) -> Self {
        self.mesh = Some(mesh);
        self
    }

    /// Works on this thread until all ports have ended, or it is told to
    /// stop. A port that fails ends by itself ([`State::failures`]).
    pub fn run(mut self, asks: &Receiver<Ask>) -> State {
        self.work_until_end(asks)
    }

    fn work_until_end(&mut self, asks: &Receiver<Ask>) -> State {
        loop {
            let came = self.work();
            let failed = self.ports.iter().filter(|one| one.failure.is_some());
            self.failed.store(failed.count(), Ordering::Relaxed);
            while let Ok(ask) = asks.try_recv() {
                if !self.answer(ask) {
                    return self.state();
                }
            }
            if self.has_ended() && self.mesh.is_none() {
                return self.state();
            }
            if came == 0 {
                self.rest();
            }
        }
    }

    /// Whether nothing more comes by its ports.
    fn has_ended(&self) -> bool {
        self.ports.iter().all(|place| place.has_ended)
    }

    /// Some turns over all ports; ends early when nothing comes in. Gives
    /// the number of packets.
    fn work(&mut self) -> usize {
        let Self {
            forwarder,
            reader,
            batch,
            leaving,
            ports,
            mesh,
            clock,
            ..
        } = self;
        let mut online = reader.online();
        let mut sum = 0;
        for _ in 0..TURNS_BETWEEN_ASKS {
            let mut came = 0;
            for at in 0..ports.len() {
                let Some(place) = ports.get_mut(at).filter(|place| !place.has_ended) else {
                    continue;
                };
                match place.port.receive(forwarder.cache(), batch) {
                    Ok(Received::Packets) => {}
                    Ok(Received::Nothing) => continue,
                    Ok(Received::End) => {
                        place.has_ended = true;
                        continue;
                    }
                    Err(error) => {
                        place.fail(error);
                        forwarder.cache().clear(batch);
                        continue;
                    }
                }
                came += batch.len().max(1);
                let number = place.number;
                let now = now(*clock, batch);
                let one = pass(forwarder, &mut online, number, batch, now);
                let mesh = mesh.as_mut();
                let mut ways = Ways {
                    places: ports,
                    mesh,
                };
                dispatch::send(forwarder, batch, leaving, &mut ways, one);
            }
            for ring in 0..mesh.as_ref().map_or(0, Mesh::rings) {
                forwarder.cache().clear(batch);
                if let Some(mesh) = mesh {
                    mesh.take(ring, batch);
                }
                if batch.is_empty() {
                    continue;
                }
                came += batch.len();
                let now = now(*clock, batch);
                let section = online.enter();
                let one = dispatch::take_over(forwarder, &section, batch, now);
                drop(section);
                let mesh = mesh.as_mut();
                let mut ways = Ways {
                    places: ports,
                    mesh,
                };
                dispatch::send(forwarder, batch, leaving, &mut ways, one);
            }
            sum += came;
            if came == 0 {
                let now = now(*clock, batch);
                if *clock == Clock::System {
                    forwarder.tend(&online.enter(), now);
                    let mesh = mesh.as_mut();
                    let mut ways = Ways {
                        places: ports,
                        mesh,
                    };
                    dispatch::send(forwarder, batch, leaving, &mut ways, None);
                }
                break;
            }
        }
        drop(online);
        self.leave_requests();
        sum
    }

    /// Hands requests to the program, as far as there is room.
    fn leave_requests(&mut self) {
        while let Some(request) = self.forwarder.requests().take() {
            let left = self.requests.as_ref().map(|ring| ring.try_send(request));
            if let Some(Err(TrySendError::Full(_))) = left {
                self.requests_lost += 1;
            }
        }
    }

    /// Nothing came in: flows are swept, then it waits for a packet or a
    /// question, a little while.
    fn rest(&mut self) {
        if let Some(nat) = self.forwarder.nat() {
            nat.maintain(system_millis(), SWEPT_WHEN_IDLE);
        }
        let open = self.ports.iter().filter(|place| !place.has_ended);
        let mut waited: Vec<PollFd<'_>> = open
            .filter_map(|place| place.port.readable())
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        if waited.is_empty() && !self.has_ended() {
            thread::yield_now();
            return;
        }
        let wakeup = self.mesh.as_ref().and_then(Mesh::wakeup);
        let bells = [self.rung.as_ref().map(|rung| rung.as_fd()), wakeup];
        let [asked, handed] = bells.map(|bell| {
            let place = waited.len();
            waited.extend(bell.map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)));
            place..waited.len()
        });
        if self.mesh.as_ref().is_none_or(Mesh::rests) {
            // An interruption is a short wait.
            let _ = poll(&mut waited, Some(&IDLE));
        }
        let has_rung = |bell: Range<usize>| {
            let bell = waited.get(bell).and_then(<[_]>::first);
            bell.is_some_and(|bell| bell.revents().contains(PollFlags::IN))
        };
        if let Some(rung) = self.rung.as_ref().filter(|_| has_rung(asked)) {
            // The questions themselves are looked for next.
            let _ = rustix::io::read(rung, &mut [0; 8]);
        }
        if let Some(mesh) = &self.mesh {
            mesh.wakes(has_rung(handed));
        }
    }

    /// Serves a question; false when it is time to end.
    fn answer(&mut self, ask: Ask) -> bool {
        match ask {
            // Who asked may have gone.
            Ask::State(to) => drop(to.send(self.state())),
            Ask::Flows(cursor, most, to) => {
                let found = match self.forwarder.nat() {
                    Some(nat) => flows(nat, cursor, most.min(MAX_FLOWS)),
                    None => (Vec::new(), None),
                };
                drop(to.send(found));
            }
            Ask::Nat(Errand(what)) => {
                if let Some(nat) = self.forwarder.nat() {
                    what(nat);
                }
            }
            Ask::Ports(ports) => self.forwarder.set_ports(*ports),
            Ask::Stop => return false,
        }
        true
    }

    fn state(&mut self) -> State {
        let ports = self.ports.iter();
        State {
            ports: ports
                .map(|place| (place.number, place.port.counters()))
                .collect(),
            cpu_nanos: nanos(ClockId::ThreadCPUTime),
            buffers: self.forwarder.cache().counters(),
            waiting: self.forwarder.waiting(),
            requests_lost: self.requests_lost + self.forwarder.requests().lost(),
            nat: self.forwarder.nat().map(|nat| nat.statistics()),
            failures: self
                .ports
                .iter()
                .filter_map(|place| Some((place.number, place.failure.as_ref()?.to_string())))
                .collect(),
            counters: self.forwarder.counters().clone(),
        }
    }
}

fn flows(nat: &nat::Nat, cursor: Cursor, most: usize) -> (Vec<FlowView>, Option<Cursor>) {
    let mut rows = Vec::new();
    let next = nat.flows(cursor, most, &mut |row| rows.push(*row));
    (rows, next)
}

/// Takes a batch through the nodes, inside a section; as [`dispatch::forward`].
fn pass(
    forwarder: &mut Forwarder,
    online: &mut Online<'_>,
    number: u16,
    batch: &mut Batch,
    now_millis: u64,
) -> Option<u16> {
    let section = online.enter();
    dispatch::forward(forwarder, &section, number, batch, now_millis)
}

fn now(clock: Clock, batch: &Batch) -> u64 {
    match clock {
        Clock::System => system_millis(),
        Clock::Captured => {
            let first = batch.packets().first();
            first.map_or(0, |buffer| buffer.time_nanos() / 1_000_000)
        }
    }
}

/// Milliseconds of a clock that only goes forward; the coarse one, which is
/// read without a system call.
fn system_millis() -> u64 {
    nanos(ClockId::MonotonicCoarse) / 1_000_000
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A running worker.
#[derive(Debug)]
pub struct Running {
    asks: SyncSender<Ask>,
    /// Wakes it where it rests.
    rung: Arc<OwnedFd>,
    /// Lets it begin; none once it has.
    held: Option<SyncSender<()>>,
    thread: JoinHandle<(State, Option<Box<Nat>>)>,
    failed: Arc<AtomicUsize>,
}

impl Running {
    /// Starts a worker on a thread of its own; bound to a core, where one is
    /// named. The thread has no capabilities: it reads what strangers send,
    /// and its ports are open.
    pub fn start(worker: Worker, core: Option<usize>) -> io::Result<Self> {
        let mut running = Self::hold(worker, core)?;
        running.begin();
        Ok(running)
    }

    /// The same, but it takes no packet until [`Running::begin`]. One that is
    /// ended before has done nothing.
    pub fn hold(mut worker: Worker, core: Option<usize>) -> io::Result<Self> {
        let (asks, asked) = sync_channel(MAX_ASKS);
        let (dropped, has_dropped) = sync_channel(1);
        let (held, begins) = sync_channel(1);
        let rung = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let rung = Arc::new(rung);
        worker.rung = Some(Arc::clone(&rung));
        let failed = Arc::clone(&worker.failed);
        let name = core.map_or("worker".to_owned(), |core| format!("worker-{core}"));
        let thread = thread::Builder::new().name(name).spawn(move || {
            if let Some(core) = core {
                let mut set = CpuSet::new();
                set.set(core);
                // Not bound it works as well, only not as fast.
                let _ = sched_setaffinity(None, &set);
            }
            let _ = dropped.send(privileges::drop_all());
            let state = match begins.recv() {
                Ok(()) => worker.work_until_end(&asked),
                Err(_) => worker.state(),
            };
            (state, worker.forwarder.take_nat())
        })?;
        has_dropped.recv().map_err(io::Error::other)??;
        Ok(Self {
            asks,
            rung,
            held: Some(held),
            thread,
            failed,
        })
    }

    /// Has it work, once it was held.
    pub fn begin(&mut self) {
        if let Some(held) = self.held.take() {
            // It waits for nothing else.
            let _ = held.send(());
        }
    }

    /// Asks or tells it something. False where it has ended, or is not
    /// heard of for too many questions.
    pub fn ask(&self, ask: Ask) -> bool {
        self.hand(ask).is_none()
    }

    /// The same, and gives back what is not taken.
    pub fn hand(&self, ask: Ask) -> Option<Ask> {
        match self.asks.try_send(ask) {
            Ok(()) => {
                ring(&self.rung);
                None
            }
            Err(TrySendError::Full(ask) | TrySendError::Disconnected(ask)) => Some(ask),
        }
    }

    /// How many of its ports have failed; [`State::failures`] says why.
    pub fn failed_ports(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// How it stands; `None` where it has ended or does not answer in time.
    pub fn state(&self, patience: Duration) -> Option<State> {
        let (to, answer) = channel();
        self.ask(Ask::State(to)).then_some(())?;
        answer.recv_timeout(patience).ok()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Has it end, and waits for that.
    pub fn stop(self) -> State {
        self.end().0
    }

    /// The same, and gives its engine of translation as it is then.
    pub fn end(self) -> (State, Option<Box<Nat>>) {
        drop(self.held);
        // One that does not take it has ended already.
        let _ = self.asks.send(Ask::Stop);
        ring(&self.rung);
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Wakes who rests.
fn ring(rung: &OwnedFd) {
    // It fails where so much was rung already that it is awake.
    let _ = rustix::io::write(rung, &1_u64.to_ne_bytes());
}

/// Workers that share a [`crate::Pool`] and nothing else, told the same.
#[derive(Debug, Default)]
pub struct Workers {
    /// Each of them.
    pub all: Vec<Running>,
    /// What those of `untold` have not been told yet.
    ports: Ports,
    /// By their places in `all`.
    untold: Vec<usize>,
}

impl Workers {
    /// Tells all of them that ports have changed. One that takes no question
    /// at the moment is told by [`Workers::remind`].
    pub fn set_ports(&mut self, ports: &Ports) {
        self.ports = ports.clone();
        self.untold = (0..self.all.len()).collect();
        self.remind();
    }

    /// Tells those that have not been told yet; how many still have not. To
    /// be called now and then.
    pub fn remind(&mut self) -> usize {
        let Self { all, ports, untold } = self;
        untold.retain(|at| {
            let Some(worker) = all.get(*at).filter(|worker| !worker.has_ended()) else {
                return false;
            };
            !worker.ask(Ask::Ports(Box::new(ports.clone())))
        });
        untold.len()
    }
}

/// Kept by type: a worker moves to its thread whole.
const _: fn() = || {
    fn moves<T: Send>() {}
    moves::<Worker>();
    moves::<Arc<crate::neighbour::Table>>();
};

#[cfg(test)]
mod tests;
