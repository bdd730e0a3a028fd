//! The thread that subagents attach to (AgentX, RFC 2741): FRR, keepalived,
//! lldpd and others.
//!
//! It has the Unix socket, all connections and the requests that need
//! something of a subagent: a listener that comes upon one hands it over
//! and goes on. Sockets do not block, queues are bounded; a subagent that
//! stalls delays the requests that need it, and no others. Started by
//! [`super::Service`], asked by [`super::listener`].
//!
//! - `door`: the socket, and who may connect.
//! - `handle`: what others see of the thread.
//! - `requests`: what waits for subagents.

mod door;
mod handle;
mod requests;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use snmp::agent::ANSWER_BUFFER_BYTES;
use snmp::agentx::{Capability, Cut, Dispatch, Event, Master, MasterConfig, Now, Told};

use super::samples::Manner;
use super::subtrees;
use crate::complaint::Complaint;
pub use door::Door;
use door::Peer;
pub use handle::Handle;
use handle::{Shared, lock, session_status};
use requests::Requests;
pub use requests::{Answered, Answers, Request};

/// Octets read of a connection at once.
const READ_BYTES: usize = 1 << 16;
/// A wait ends after so long at the latest.
const TICK: Duration = Duration::from_secs(1);
/// Registrations take effect so much later at most: one that registers all
/// the time shall not have all regions cut anew each time.
const SETTLE: Duration = Duration::from_millis(20);
/// After an error of the socket nobody is taken in for so long: whoever waits
/// there would be looked at all the time.
const DOOR_PAUSE: Duration = Duration::from_secs(1);
/// Between two times that it is told how all is.
const TELL: Duration = Duration::from_millis(100);

/// What the thread calls.
pub struct Callers {
    /// Who answers requests.
    pub answers: Arc<dyn Answers>,
    /// `sysUpTime`.
    pub up_time: Box<dyn Fn() -> u32 + Send>,
    /// Who takes what subagents tell.
    pub told: Box<dyn Fn(Told) + Send>,
    /// Who takes the modules that subagents have.
    pub capabilities: Box<dyn Fn(Arc<Vec<Capability>>) + Send>,
}

/// The thread. Ends when dropped, and says good-bye to subagents.
#[derive(Debug)]
pub struct Subagents {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Subagents {
    /// Starts to take subagents in.
    pub fn start(door: Door, path: String, timeout: Duration, callers: Callers) -> Result<Self> {
        let handle = Handle::new(path)?;
        let thread = std::thread::Builder::new()
            .name("agentx-master".to_owned())
            .spawn({
                let shared = Arc::clone(&handle.0);
                move || match privileges::drop_all() {
                    Ok(()) => Worker::new(door, timeout, callers, shared).run(),
                    Err(error) => tracing::error!("no AgentX master, rights remain: {error}"),
                }
            })
            .context("cannot start the thread for AgentX subagents")?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }

    /// What others see of it.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Subagents {
    fn drop(&mut self) {
        self.handle.0.stop.store(true, Ordering::Release);
        self.handle.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

/// A subagent's connection.
#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    peer: Peer,
}

/// What there is to do.
struct Ready {
    /// Connections that can be read.
    connections: Vec<u32>,
    /// Whether somebody wants to connect.
    door: bool,
    /// Whether somebody rang: requests were handed over, or samples came.
    handed: bool,
}

struct Worker {
    door: Door,
    /// Until when nobody is taken in.
    door_rests: Option<Instant>,
    callers: Callers,
    shared: Arc<Shared>,
    master: Master,
    requests: Requests,
    connections: BTreeMap<u32, Connection>,
    /// When regions were last cut.
    settled: Instant,
    /// When it was last told how all is, and whether it is so still.
    told: Instant,
    is_told: bool,
    dispatch: Arc<Dispatch>,
    capabilities: Arc<Vec<Capability>>,
    complaint: Complaint,
    cuts: u64,
    refused_connections: u64,
    last_trouble: Option<String>,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Worker {
    fn new(door: Door, timeout: Duration, callers: Callers, shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        let master = Master::new(MasterConfig {
            timeout_millis: timeout.as_millis() as u64,
            own: subtrees::of_master(),
        });
        Self {
            door,
            door_rests: None,
            callers,
            shared,
            // As others know them: none.
            capabilities: master.capabilities(),
            master,
            requests: Requests::default(),
            connections: BTreeMap::new(),
            settled: now,
            told: now,
            is_told: false,
            dispatch: Arc::default(),
            complaint: Complaint::default(),
            cuts: 0,
            refused_connections: 0,
            last_trouble: None,
            buffer: vec![0; READ_BYTES],
            out: vec![0; ANSWER_BUFFER_BYTES],
        }
    }

    fn now_millis(&self) -> u64 {
        self.shared.now_millis()
    }

    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            let Ready {
                connections: ready,
                door,
                handed,
            } = match self.wait() {
                Ok(ready) => ready,
                Err(errno) => {
                    tracing::error!("no AgentX master: cannot wait: {errno}");
                    break;
                }
            };
            self.is_told &= ready.is_empty();
            for connection in ready {
                self.read(connection);
            }
            if door {
                self.accept();
            }
            if handed {
                self.take_handed();
            }
            for (connection, cut) in self.master.tick(self.now_millis()) {
                self.cut(connection, &cut);
            }
            self.give_up_overdue();
            self.answer_sampled();
            self.work_off();
            self.write();
            self.tell();
        }
        let all: Vec<u32> = self.connections.keys().copied().collect();
        for connection in all {
            self.master.farewell(connection, None);
            self.write_one(connection);
        }
        *lock(&self.shared.dispatch) = Arc::default();
        // Their modules go with them.
        if !self.capabilities.is_empty() {
            (self.callers.capabilities)(Arc::default());
        }
    }

    /// Waits for anything to do.
    fn wait(&mut self) -> rustix::io::Result<Ready> {
        let now = Instant::now();
        self.door_rests = self.door_rests.filter(|until| *until > now);
        let door_wanted = match self.door_rests {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut fds = vec![
            PollFd::new(&self.shared.wake, PollFlags::IN),
            PollFd::new(&self.door, door_wanted),
        ];
        for (number, connection) in &self.connections {
            let mut wanted = PollFlags::IN;
            if !self.master.to_write(*number).is_empty() {
                wanted |= PollFlags::OUT;
            }
            fds.push(PollFd::from_borrowed_fd(connection.fd.as_fd(), wanted));
        }
        let patience = self.patience();
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let is_readable = |at: usize| {
            let fd = fds.get(at);
            fd.is_some_and(|fd| fd.revents().intersects(readable))
        };
        let (handed, door) = (is_readable(0), is_readable(1));
        let polled = self.connections.keys().zip(2..);
        let connections = polled.filter(|(_, at)| is_readable(*at));
        let connections = connections.map(|(number, _)| *number).collect();
        if handed {
            let mut count = [0; 8];
            // Nothing in it: nobody called.
            let _ = rustix::io::read(&self.shared.wake, &mut count);
        }
        Ok(Ready {
            connections,
            door,
            handed,
        })
    }

    /// Until something is overdue.
    fn patience(&self) -> Duration {
        let now = self.now_millis();
        let deadlines = [self.master.deadline(), self.requests.deadline()];
        let first = deadlines.into_iter().flatten().min();
        let until = first.map(|at| Duration::from_millis(at.saturating_sub(now).max(1)));
        let settling = self.master.is_dispatch_old().then_some(SETTLE);
        let telling = (!self.is_told).then_some(TELL);
        let at_once = self.master.has_events().then_some(Duration::ZERO);
        [until, settling, telling, at_once]
            .into_iter()
            .flatten()
            .fold(TICK, Duration::min)
    }

    fn read(&mut self, number: u32) {
        let Some(connection) = self.connections.get(&number) else {
            return;
        };
        let read = match recv(&connection.fd, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => {
                self.lost(number);
                return;
            }
            Ok((read, _)) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(errno) => {
                tracing::debug!("AgentX subagent {number}: {errno}");
                self.lost(number);
                return;
            }
        };
        let now = Now {
            millis: self.now_millis(),
            up_time: (self.callers.up_time)(),
        };
        let octets = self.buffer.get(..read).unwrap_or_default();
        if let Err(cut) = self.master.received(number, octets, now) {
            self.cut(number, &cut);
        }
    }

    fn lost(&mut self, number: u32) {
        self.master.lost(number);
        if let Some(connection) = self.connections.remove(&number) {
            tracing::info!(
                "AgentX: the subagent of process {} is gone",
                connection.peer.pid
            );
        }
    }

    /// Ends a connection that does what none may.
    fn cut(&mut self, number: u32, cut: &Cut) {
        let Some(connection) = self.connections.get(&number) else {
            return;
        };
        let pid = connection.peer.pid;
        let now_millis = self.now_millis();
        let of_connection = {
            let mut sessions = self.master.sessions(now_millis);
            sessions.find(|session| session.connection == number)
        };
        let named = of_connection.map_or(String::new(), |one| format!(" `{}`", one.description));
        let said = format!("the subagent{named} of process {pid} was cut: {cut}");
        if self.complaint.is_due() {
            tracing::warn!("AgentX: {said}");
        }
        self.last_trouble = Some(said);
        self.cuts += 1;
        self.master.farewell(number, Some(cut));
        self.write_one(number);
        self.lost(number);
    }

    fn accept(&mut self) {
        // More wait until the next time around.
        for _ in 0..8 {
            match self.door.accept() {
                Ok(Some((fd, peer))) => self.admit(fd, peer),
                Ok(None) => return,
                Err(error) => {
                    self.door_rests = Some(Instant::now() + DOOR_PAUSE);
                    if self.complaint.is_due() {
                        tracing::warn!("AgentX: no subagent can be taken in: {error}");
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, fd: OwnedFd, peer: Peer) {
        let mut there = BTreeMap::new();
        for connection in self.connections.values() {
            *there.entry(connection.peer.uid).or_insert(0) += 1;
        }
        if let Some(why) = door::refusal(peer, &there) {
            self.refused_connections += 1;
            if self.complaint.is_due() {
                let (pid, uid) = (peer.pid, peer.uid);
                tracing::warn!("AgentX: process {pid} of user {uid} is refused: {why}");
            }
            return;
        }
        tracing::info!(
            "AgentX: process {} of user {} connects as a subagent",
            peer.pid,
            peer.uid
        );
        let number = self.master.connected();
        self.connections.insert(number, Connection { fd, peer });
    }

    fn take_handed(&mut self) {
        let handed = std::mem::take(&mut lock(&self.shared.handed).requests);
        let now_millis = self.now_millis();
        self.is_told &= handed.is_empty();
        for (request, missing) in handed {
            self.requests
                .put(request, missing, &mut self.master, now_millis);
        }
    }

    fn give_up_overdue(&mut self) {
        for id in self.requests.overdue(self.now_millis()) {
            self.answer(id, true);
        }
    }

    /// Goes on with requests that waited for samples of ours.
    fn answer_sampled(&mut self) {
        let some_came = self.shared.some_came.swap(false, Ordering::AcqRel);
        for id in self.requests.sampled(some_came, self.now_millis()) {
            self.answer(id, false);
        }
    }

    /// Does what answers of subagents lead to, until nothing is left to do.
    fn work_off(&mut self) {
        loop {
            let events = self.master.events();
            if events.is_empty() {
                return;
            }
            for event in events {
                match event {
                    Event::Answered { token, answer } => {
                        let now_millis = self.now_millis();
                        if let Some(id) = self.requests.answered(token, answer, now_millis) {
                            self.answer(id, false);
                        }
                    }
                    Event::Notified(told) => (self.callers.told)(told),
                }
            }
        }
    }

    fn answer(&mut self, id: u64, is_last: bool) {
        let now_millis = self.now_millis();
        let (answers, dispatch) = (&self.callers.answers, &self.dispatch);
        let (shared, out) = (&self.shared, &mut self.out);
        let done = self.requests.answer(
            id,
            is_last,
            &mut self.master,
            now_millis,
            |request, known, is_last, may_wait| {
                let manner = match may_wait {
                    true => Manner::PutOff(Waker::from(Arc::clone(shared))),
                    false => Manner::Take,
                };
                answers.answer(request, dispatch, known, is_last, manner, out)
            },
        );
        if let Some((to, known)) = done {
            shared.keep_left_over(to, known);
        }
    }

    fn write(&mut self) {
        let all: Vec<u32> = self.connections.keys().copied().collect();
        for number in all {
            if !self.write_one(number) {
                self.lost(number);
            }
        }
    }

    /// Writes as much as a subagent takes; whether it is still there.
    fn write_one(&mut self, number: u32) -> bool {
        let Some(connection) = self.connections.get(&number) else {
            return false;
        };
        loop {
            let octets = self.master.to_write(number);
            if octets.is_empty() {
                return true;
            }
            match send(&connection.fd, octets, SendFlags::NOSIGNAL) {
                Ok(sent) => self.master.written(number, sent),
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Tells others what changed.
    fn tell(&mut self) {
        if self.master.is_dispatch_old() && self.settled.elapsed() >= SETTLE {
            self.settled = Instant::now();
            self.dispatch = self.master.dispatch();
            *lock(&self.shared.dispatch) = Arc::clone(&self.dispatch);
        }
        let capabilities = self.master.capabilities();
        if !Arc::ptr_eq(&capabilities, &self.capabilities) {
            self.capabilities = Arc::clone(&capabilities);
            (self.callers.capabilities)(capabilities);
        }
        if self.told.elapsed() >= TELL {
            self.told = Instant::now();
            self.is_told = true;
            self.tell_status();
        }
    }

    fn tell_status(&self) {
        let handed_refused = lock(&self.shared.handed).refused;
        let now_millis = self.now_millis();
        let sessions = self.master.sessions(now_millis);
        let sessions = sessions
            .map(|session| {
                let connection = self.connections.get(&session.connection);
                session_status(&session, connection.map(|one| one.peer))
            })
            .collect();
        let counters = self.master.counters();
        let mut status = lock(&self.shared.status);
        status.sessions = sessions;
        status.questions = counters.asked;
        status.timed_out = counters.timed_out;
        status.rows = counters.rows;
        status.connections = self.connections.len() as u64;
        status.cut = self.cuts;
        status.refused_connections = self.refused_connections;
        status.waiting = self.requests.len() as u64;
        status.dropped = self.requests.refused() + handed_refused;
        status.last_trouble.clone_from(&self.last_trouble);
    }
}

#[cfg(test)]
mod tests;
