//! The thread that tells targets what happened: a socket for each that is
//! being told, answers to informs, and the pace of each. A target that is
//! gone, or never acknowledges, keeps no other waiting. Started by
//! [`super::notify`].

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use snmp::Value;
use snmp::agent::{ANSWER_BUFFER_BYTES, Agent};
use snmp::config::User;
use snmp::notification::{NotificationError, Receiver, SNMP_TRAPS, answers_inform};
use snmp::remote::{Heard, Remote};
use snmp::usm::SecurityLevel;

use super::config::{Target, Version};
use super::hex::digits;
use super::listener::Shared;
use super::notify::{Audience, Notification, Queue, What};
use super::outbox::{Manner, Outbox, Retries, Step};
use crate::complaint::Complaint;

/// A wait ends after so long at the latest.
const PATIENCE: Duration = Duration::from_secs(60);
/// No answer to an inform is longer.
const ANSWER_BYTES: usize = 2_048;
/// Datagrams of a target that are read at once, at most: one that sends all
/// the time holds up no other.
const MOST_HEARD: usize = 1_024;
/// So often in such a time what a target says of itself makes it be told
/// again at once: who it is, and what time it has. One that says something
/// else each time is not flooded.
const MOST_LEARNED: u32 = 2;
const LEARNING_PAUSE: Duration = Duration::from_secs(1);

/// The thread's own.
pub struct Teller {
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    told: Arc<Audience>,
    receivers: Vec<Addressee>,
    out: Vec<u8>,
}

/// A target and what it is still to be told.
struct Addressee {
    target: Target,
    outbox: Outbox,
    /// While there is something to tell it: a socket of its own, from the
    /// address that leads there now.
    socket: Option<UdpSocket>,
    /// Its engine, where it is told by informs of v3.
    remote: Remote,
    /// Since when, and how often, it has told of itself.
    learned: Option<(Instant, u32)>,
    complaint: Complaint,
}

impl Addressee {
    fn new(target: &Target) -> Self {
        let retries = Retries {
            timeout: Duration::from_millis(target.timeout_millis.into()),
            retries: target.retries,
        };
        let manner = Manner {
            inform: target.inform.then_some(retries),
            begins_alone: target.version == Version::V3,
        };
        Self {
            target: target.clone(),
            outbox: Outbox::new(manner, Instant::now()),
            socket: None,
            remote: Remote::default(),
            learned: None,
            complaint: Complaint::default(),
        }
    }

    fn user(&self) -> &[u8] {
        self.target.user.as_deref().unwrap_or_default().as_bytes()
    }

    fn socket(&mut self) -> io::Result<&UdpSocket> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let any: IpAddr = match self.target.address {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                socket.set_nonblocking(true)?;
                socket.connect(self.target.address)?;
                socket
            }
        };
        Ok(self.socket.insert(socket))
    }

    /// Reads acknowledgements; gives how many there were.
    fn hear(&mut self, shared: &Shared) -> u64 {
        let Some(socket) = self.socket.take() else {
            return 0;
        };
        let heard = self.hear_at(&socket, shared);
        self.socket = Some(socket);
        heard
    }

    fn hear_at(&mut self, socket: &UdpSocket, shared: &Shared) -> u64 {
        let mut heard = 0;
        let mut datagram = [0; ANSWER_BYTES];
        for _ in 0..MOST_HEARD {
            let len = match socket.recv(&mut datagram) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return heard,
                // Nobody listens there: it is tried again in its time.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => return heard,
            };
            let datagram = datagram.get(..len).unwrap_or_default();
            let id = match self.target.version {
                Version::V3 => self.hear_v3(datagram, shared),
                _ => answers_inform(datagram, self.target.community.as_bytes()),
            };
            heard += u64::from(id.is_some_and(|id| self.outbox.acknowledged(id)));
        }
        heard
    }

    /// What is acknowledged. Who the target is, or what time it has, is acted
    /// on; of what follows within a pause, when the next try is due.
    fn hear_v3(&mut self, datagram: &[u8], shared: &Shared) -> Option<i32> {
        let user = self.target.user.as_deref().unwrap_or_default().as_bytes();
        let now_millis = shared.millis();
        let heard = shared
            .agent()
            .hear(&mut self.remote, user, datagram, now_millis);
        match heard {
            Heard::Acknowledged(id) => return Some(id),
            Heard::Learned => {
                let now = Instant::now();
                let is_soon = |(last, _): &(Instant, u32)| now - *last < LEARNING_PAUSE;
                let (since, count) = self.learned.filter(is_soon).unwrap_or((now, 0));
                self.learned = Some((since, count + 1));
                if count < MOST_LEARNED {
                    self.outbox.untold(now);
                }
            }
            Heard::Refused(refusal) if self.complaint.is_due() => tracing::warn!(
                "SNMP target {} does not take informs: {refusal}",
                self.target.address
            ),
            Heard::Refused(_) | Heard::Nothing => {}
        }
        None
    }

    /// Writes one inform of v3, or, where it is not known yet whom it is for,
    /// the question.
    fn inform_v3(
        &mut self,
        agent: &mut Agent,
        notification: &Notification,
        bindings: &[(&[u32], Value<'_>)],
        id: i32,
        now_millis: u64,
        out: &mut [u8],
    ) -> Result<usize> {
        let Some(engine) = self.remote.engine_id() else {
            return Ok(agent.discover(id, out)?);
        };
        let told = snmp::notification::Notification {
            name: notification.name(),
            up_time: notification.up_time_ticks,
            bindings,
        };
        let receiver = Receiver::InformV3 {
            remote: &self.remote,
            user: self.user(),
            context: notification.context(),
        };
        let made = agent.notify(&receiver, &told, id, now_millis, out);
        if made == Err(NotificationError::RemoteUser) && self.complaint.is_due() {
            let user = self.target.user.as_deref().unwrap_or_default();
            tracing::warn!(
                "SNMP target {} cannot be told: user `{user}` has no keys for its engine; if it is \
                 the right one, `fingerpost snmp user add {user} --engine-id 0x{}` makes them",
                self.target.address,
                digits(engine)
            );
        }
        Ok(made?)
    }
}

impl Teller {
    /// Tells nobody yet.
    pub fn new(queue: Arc<Queue>, shared: Arc<Shared>) -> Self {
        Self {
            queue,
            shared,
            told: Arc::default(),
            receivers: Vec::new(),
            out: vec![0; ANSWER_BUFFER_BYTES],
        }
    }

    /// Until the end.
    pub fn run(mut self) {
        while !self.queue.is_over() {
            self.look_at_targets();
            self.take();
            let next = self.send();
            self.count_waiting();
            if let Err(error) = self.rest(next) {
                tracing::warn!("SNMP notifications: {error}");
                std::thread::sleep(Duration::from_millis(100));
            }
            self.hear();
        }
    }

    /// Takes other targets; those that stay keep what they are to be told.
    fn look_at_targets(&mut self) {
        let told = self.queue.told();
        if Arc::ptr_eq(&told, &self.told) {
            return;
        }
        let mut before = std::mem::take(&mut self.receivers);
        self.receivers = told
            .targets
            .iter()
            .map(|target| {
                let same = before.iter().position(|one| one.target == *target);
                same.map_or_else(|| Addressee::new(target), |at| before.swap_remove(at))
            })
            .collect();
        let lost: usize = before.iter().map(|one| one.outbox.len()).sum();
        self.note_dropped(lost);
        self.told = told;
    }

    /// Puts what happened into the queue of each target.
    fn take(&mut self) {
        let happened = self.queue.take();
        let mut dropped = 0;
        for notification in happened {
            if let (Some(subagent), What::Link(_)) = (&self.told.subagent, &notification.what) {
                subagent.notify(notification.clone());
            }
            let notification = Arc::new(notification);
            for one in &mut self.receivers {
                dropped += usize::from(!one.outbox.put(Arc::clone(&notification)));
            }
        }
        self.note_dropped(dropped);
    }

    fn note_dropped(&self, dropped: usize) {
        let all = &self.queue.counts.numbers().dropped;
        all.fetch_add(dropped as u64, Ordering::Relaxed);
    }

    fn count_waiting(&self) {
        let waiting: usize = self.receivers.iter().map(|one| one.outbox.len()).sum();
        let counts = self.queue.counts.numbers();
        counts.waiting.store(waiting as u64, Ordering::Relaxed);
    }

    /// Sends what is due; when the next will be.
    fn send(&mut self) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut receivers = std::mem::take(&mut self.receivers);
        for one in &mut receivers {
            let rest = self.send_to(one);
            next = next.into_iter().chain(rest).min();
            if one.outbox.is_empty() {
                one.socket = None;
            }
        }
        self.receivers = receivers;
        next
    }

    fn send_to(&mut self, one: &mut Addressee) -> Option<Instant> {
        loop {
            let step = one.outbox.step(Instant::now());
            match &step {
                Step::Rest(until) => return *until,
                Step::GivenUp => {
                    // It may be another by now, or have lost count.
                    one.remote = Remote::default();
                    let counts = self.queue.counts.numbers();
                    counts.given_up.fetch_add(1, Ordering::Relaxed);
                }
                Step::Send(id, notification) | Step::Again(id, notification) => {
                    let sent = self.tell(one, notification, *id);
                    let is_first = matches!(step, Step::Send(..));
                    self.note_sent(&one.target, sent, is_first);
                }
            }
        }
    }

    fn note_sent(&self, target: &Target, sent: Result<()>, is_first: bool) {
        let counts = self.queue.counts.numbers();
        match sent {
            Ok(()) => {
                counts.sent.fetch_add(is_first.into(), Ordering::Relaxed);
            }
            Err(error) => {
                tracing::debug!("{} is not told: {error:#}", target.address);
                // An inform is tried again.
                if !target.inform {
                    counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn tell(&mut self, one: &mut Addressee, notification: &Notification, id: i32) -> Result<()> {
        let local = one.socket()?.local_addr()?;
        let mut made: Result<usize> = Ok(0);
        notification.with_bindings(|bindings| {
            let now_millis = self.shared.millis();
            let mut agent = self.shared.agent();
            if one.target.inform && one.target.version == Version::V3 {
                let out = &mut self.out;
                made = one.inform_v3(&mut agent, notification, bindings, id, now_millis, out);
                self.shared.tell_counted(&agent);
                return;
            }
            let told = snmp::notification::Notification {
                name: notification.name(),
                up_time: notification.up_time_ticks,
                bindings,
            };
            let receiver = receiver(&one.target, notification.context(), &agent, local.ip());
            let written = agent.notify(&receiver, &told, id, now_millis, &mut self.out);
            made = written.map_err(anyhow::Error::from);
            self.shared.tell_counted(&agent);
        });
        let message = self.out.get(..made?).unwrap_or_default();
        match one.socket()?.send(message) {
            Ok(_) => Ok(()),
            // What came back for the one before says nothing of this one.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                one.socket()?.send(message)?;
                Ok(())
            }
            Err(error) => {
                // The way there may be another the next time.
                one.socket = None;
                Err(error.into())
            }
        }
    }

    /// Waits for something to tell, an acknowledgement, or the next step.
    fn rest(&self, next: Option<Instant>) -> io::Result<()> {
        let now = Instant::now();
        let patience = next.map_or(PATIENCE, |next| next.saturating_duration_since(now));
        let patience = patience.min(PATIENCE);
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let sockets = self.receivers.iter().filter_map(|one| one.socket.as_ref());
        let mut fds = vec![PollFd::new(self.queue.wakes(), PollFlags::IN)];
        fds.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut count = [0; 8];
        // Nothing in it: nobody woke it.
        let _ = rustix::io::read(self.queue.wakes(), &mut count);
        Ok(())
    }

    fn hear(&mut self) {
        let receivers = self.receivers.iter_mut();
        let heard: u64 = receivers.map(|one| one.hear(&self.shared)).sum();
        let acknowledged = &self.queue.counts.numbers().acknowledged;
        acknowledged.fetch_add(heard, Ordering::Relaxed);
    }
}

/// How a target is told of what happened in a context, from one of our
/// addresses.
fn receiver<'a>(
    target: &'a Target,
    context: &'a [u8],
    agent: &Agent,
    local: IpAddr,
) -> Receiver<'a> {
    let community = target.community.as_bytes();
    let user = target.user.as_deref().unwrap_or_default().as_bytes();
    match target.version {
        Version::V1 => Receiver::TrapV1 {
            community,
            // Of the standard traps (RFC 3584 §3.1).
            enterprise: &SNMP_TRAPS,
            agent: match local {
                IpAddr::V4(local) => local.octets(),
                // It has no room for IPv6.
                IpAddr::V6(_) => [0; 4],
            },
        },
        Version::V2c if target.inform => Receiver::InformV2c { community },
        Version::V2c => Receiver::TrapV2c { community },
        Version::V3 => Receiver::TrapV3 {
            user,
            level: best_level(agent, user),
            context,
        },
    }
}

/// The most that a user's keys allow.
fn best_level(agent: &Agent, user: &[u8]) -> SecurityLevel {
    let mut users = agent.config().users.iter();
    let user = users.find(|other| other.name == user);
    user.map_or(SecurityLevel::NoAuthNoPriv, User::best_level)
}
