//! The thread that speaks AgentX with a master.
//!
//! It is alone with the master: a master that reads nothing, sends
//! nonsense, stops or starts again costs nobody else anything. Sockets do
//! not block, buffers are bounded, what does not fit is dropped and
//! counted. Started by [`super::Service`].

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};
use snmp::agentx::{Config, Registration, Session, State};
use snmp::counters::Counters;
use snmp::{Oid, Value};

use super::config::Master;
use super::contexts::Source;
use super::notify::Notification;
use super::samples::Manner;
use super::subtrees;
use crate::status::AgentxStatus;

/// Octets read at once.
const READ_BYTES: usize = 1 << 16;
/// A wait ends after so long at the latest: the session's clock ticks, and
/// contexts that came or went are registered.
const TICK: Duration = Duration::from_secs(1);
/// For the last octets of a good-bye.
const FAREWELL: Duration = Duration::from_millis(200);
/// For a connection over TCP to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// What a master may take to answer us. One that loads a large table of
/// its own is silent meanwhile.
const PATIENCE_MILLIS: u64 = 30_000;
/// Silence after which it is asked whether it is there.
const PING_MILLIS: u64 = 15_000;
/// Below the 127 of a master's own modules, so that ours are asked even
/// where its own are not switched off.
const PRIORITY: u8 = 100;
/// `snmpTrapOID.0`.
const SNMP_TRAP_OID: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// Notifications that wait for the master at most: all links of a large
/// router.
const MAX_NOTIFICATIONS: usize = 1 << 14;

/// The thread. Ends when dropped.
#[derive(Debug)]
pub struct Subagent {
    shared: Arc<SubagentState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SubagentState {
    stop: AtomicBool,
    wake: OwnedFd,
    status: Mutex<AgentxStatus>,
    notifications: Mutex<VecDeque<Notification>>,
}

impl SubagentState {
    fn status(&self) -> MutexGuard<'_, AgentxStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notifications(&self) -> MutexGuard<'_, VecDeque<Notification>> {
        self.notifications
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Subagent {
    /// Starts to look for the master.
    pub fn start(master: Master, source: Source) -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .context("cannot make an event descriptor")?;
        let shared = Arc::new(SubagentState {
            stop: AtomicBool::new(false),
            wake,
            status: Mutex::new(AgentxStatus {
                master: master.to_string(),
                state: "connecting".to_owned(),
                ..AgentxStatus::default()
            }),
            notifications: Mutex::default(),
        });
        let thread = std::thread::Builder::new()
            .name("agentx".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || match privileges::drop_all() {
                    Ok(()) => Worker::new(master, source, shared).run(),
                    Err(error) => tracing::error!("no AgentX, rights remain: {error}"),
                }
            })
            .context("cannot start the AgentX thread")?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// How it is.
    pub fn status(&self) -> AgentxStatus {
        self.shared.status().clone()
    }

    /// Hands it a notification; never waits.
    pub fn notify(&self, notification: Notification) {
        let mut waiting = self.shared.notifications();
        if waiting.len() < MAX_NOTIFICATIONS {
            waiting.push_back(notification);
            drop(waiting);
            self.shared.wake();
        } else {
            drop(waiting);
            self.shared.status().notifications_dropped += 1;
        }
    }
}

impl Drop for Subagent {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

struct Worker {
    master: Master,
    source: Source,
    shared: Arc<SubagentState>,
    session: Session,
    started: Instant,
    /// When contexts were last looked at.
    looked: Instant,
    /// What was last said of it, so that it is said once.
    said: String,
    /// Dropped before they reached the session.
    overflowed: u64,
}

impl Worker {
    fn new(master: Master, source: Source, shared: Arc<SubagentState>) -> Self {
        let session = Session::new(Config {
            id: own_id(),
            description: concat!("fingerpost ", env!("CARGO_PKG_VERSION")).to_owned(),
            priority: PRIORITY,
            registrations: registrations(&source),
            patience_millis: PATIENCE_MILLIS,
            ping_millis: PING_MILLIS,
        });
        Self {
            master,
            source,
            shared,
            session,
            started: Instant::now(),
            looked: Instant::now(),
            said: String::new(),
            overflowed: 0,
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn stops(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    fn run(mut self) {
        while !self.stops() {
            let ended = match self.connect() {
                Ok(connection) => self.converse(&connection),
                Err(error) => Err(error),
            };
            let pause = self.session.lost();
            if let Err(error) = ended {
                self.say(&format!("{error:#}"));
                self.told("reconnecting");
                self.pause(Duration::from_millis(pause));
            }
        }
        self.told("ended");
    }

    /// Says what is wrong, once.
    fn say(&mut self, what: &str) {
        if self.said != what {
            tracing::warn!("AgentX: {what}; trying on");
            what.clone_into(&mut self.said);
        }
    }

    fn connect(&self) -> Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let named = || format!("no AgentX master at {}", self.master);
        match &self.master {
            Master::Unix(path) => {
                let address = SocketAddrUnix::new(path).with_context(named)?;
                let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                connect(&fd, &address).with_context(named)?;
                Ok(fd)
            }
            Master::Tcp(address) => {
                let family = if address.is_ipv4() {
                    AddressFamily::INET
                } else {
                    AddressFamily::INET6
                };
                let fd = socket_with(family, SocketType::STREAM, flags, None)?;
                match connect(&fd, address) {
                    Ok(()) => {}
                    Err(Errno::INPROGRESS) => self.connected(&fd).with_context(named)?,
                    Err(errno) => return Err(errno).with_context(named),
                }
                Ok(fd)
            }
        }
    }

    /// Waits for a connection over TCP to come about.
    fn connected(&self, fd: &OwnedFd) -> Result<()> {
        let deadline = Instant::now() + CONNECT;
        while !self.stops() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            let ready = self.wait(Some((fd.as_fd(), PollFlags::OUT)), left)?;
            if !ready.is_empty() {
                sockopt::socket_error(fd)??;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Speaks until the connection breaks (an error) or the thread is to
    /// end.
    fn converse(&mut self, connection: &OwnedFd) -> Result<()> {
        self.session.connected(self.now());
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if self.stops() {
                self.farewell(connection);
                return Ok(());
            }
            self.look_at_contexts();
            self.hand_over_notifications();
            self.session.tick(self.now())?;
            // The snmp group is the master's own.
            let mut moment = self.source.moment(Counters::default(), Manner::Wait);
            if let Some(up_ticks) = self.session.master_up_ticks(self.now()) {
                moment = moment.by_the_clock_of(up_ticks);
            }
            self.session.work(&moment, self.now())?;
            self.write(connection)?;
            self.tell();
            let mut wanted = PollFlags::empty();
            if !self.session.to_write().is_empty() {
                wanted |= PollFlags::OUT;
            }
            if self.session.may_read() {
                wanted |= PollFlags::IN;
            }
            let ready = self.wait(Some((connection.as_fd(), wanted)), TICK)?;
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.read(connection, &mut buffer)?;
            }
        }
    }

    fn read(&mut self, connection: &OwnedFd, buffer: &mut [u8]) -> Result<()> {
        match recv(connection, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => Err(anyhow::anyhow!("the master at {} hung up", self.master)),
            Ok((read, _)) => {
                let octets = buffer.get(..read).unwrap_or_default();
                self.session.received(octets, self.now());
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno).context("cannot read from the AgentX master"),
        }
    }

    fn write(&mut self, connection: &OwnedFd) -> Result<()> {
        while !self.session.to_write().is_empty() {
            match send(connection, self.session.to_write(), SendFlags::NOSIGNAL) {
                Ok(sent) => self.session.written(sent),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).context("cannot write to the AgentX master"),
            }
        }
        Ok(())
    }

    /// Registers contexts that came, takes back those that went.
    fn look_at_contexts(&mut self) {
        if self.looked.elapsed() < TICK {
            return;
        }
        self.looked = Instant::now();
        let wanted = registrations(&self.source);
        self.session.register_only(wanted, self.now());
    }

    fn hand_over_notifications(&mut self) {
        let now = self.now();
        while !self.session.must_wait_to_notify() {
            let Some(notification) = self.shared.notifications().pop_front() else {
                return;
            };
            // sysUpTime is the master's to say (RFC 2741 §6.2.10).
            notification.with_bindings(|bindings| {
                let name = Value::ObjectIdentifier(notification.name());
                let told = [&[(SNMP_TRAP_OID, name)], bindings].concat();
                let context = notification.context();
                self.session.notify(context, &told, now);
            });
        }
    }

    fn farewell(&mut self, connection: &OwnedFd) {
        self.session.close();
        let deadline = Instant::now() + FAREWELL;
        while !self.session.to_write().is_empty() && Instant::now() < deadline {
            if self.write(connection).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the connection, a call, or the time to pass.
    fn wait(
        &self,
        connection: Option<(BorrowedFd<'_>, PollFlags)>,
        patience: Duration,
    ) -> Result<PollFlags> {
        let mut fds = vec![PollFd::new(&self.shared.wake, PollFlags::IN)];
        fds.extend(connection.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(PollFlags::empty()),
            Err(errno) => return Err(errno).context("cannot wait for the AgentX master"),
        }
        let mut count = [0; 8];
        // Nothing in it: nobody called.
        let _ = rustix::io::read(&self.shared.wake, &mut count);
        Ok(fds.get(1).map_or(PollFlags::empty(), PollFd::revents))
    }

    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.stops() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(None, left).is_err() {
                return;
            }
            // Nobody takes them; they are old when somebody does.
            let dropped = std::mem::take(&mut *self.shared.notifications()).len();
            self.shared.status().notifications_dropped += dropped as u64;
        }
    }

    fn told(&self, state: &str) {
        let mut status = self.shared.status();
        state.clone_into(&mut status.state);
        status.last_trouble = (!self.said.is_empty()).then(|| self.said.clone());
    }

    /// Tells how it is, and says once when the session is open.
    fn tell(&mut self) {
        let counters = self.session.counters();
        let state = match self.session.state() {
            State::Open => "open",
            State::Opening => "opening",
            State::Closed => "closed",
        };
        let mut status = self.shared.status();
        if state == "open" && status.sessions < counters.sessions {
            tracing::info!("AgentX: the master at {} opened a session", self.master);
            self.said.clear();
        }
        let refused = self.session.refused();
        if let Some((registration, error)) = refused.first()
            && status.refused == 0
        {
            tracing::warn!(
                "AgentX: the master refused to let us register {} (error {error} of RFC 2741): \
                 `fingerpost snmp agentx-help` prints what it needs",
                registration.subtree
            );
        }
        state.clone_into(&mut status.state);
        status.last_trouble = (!self.said.is_empty()).then(|| self.said.clone());
        status.sessions = counters.sessions;
        status.requests = counters.requests;
        status.bindings = counters.bindings;
        status.refused = refused.len() as u64;
        status.notifications = counters.notifications;
        let unsent = counters.dropped_notifications - self.overflowed;
        status.notifications_dropped += unsent;
        self.overflowed = counters.dropped_notifications;
    }
}

/// What we say we are.
fn own_id() -> Oid {
    Oid::new(mib::OBJECT_ID).unwrap_or_default()
}

/// All of ours in the default context and in other namespaces; in routing
/// tables only the routes.
fn registrations(source: &Source) -> Vec<Registration> {
    let mut registrations = Vec::new();
    let mut add = |context: &[u8], subtrees: &[&[u32]]| {
        registrations.extend(subtrees.iter().filter_map(|subtree| {
            Some(Registration {
                context: context.to_vec(),
                subtree: Oid::new(subtree).ok()?,
            })
        }));
    };
    add(b"", subtrees::ALL);
    for (context, is_namespace) in source.contexts() {
        let subtrees = if is_namespace {
            subtrees::ALL
        } else {
            subtrees::ROUTES
        };
        add(&context, subtrees);
    }
    registrations
}
