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
use snmp::agent::{ANSWER_BUFFER_BYTES, Agent};
use snmp::config::User;
use snmp::notification::{Receiver, SNMP_TRAPS, answers_inform};
use snmp::usm::SecurityLevel;

use super::config::{Target, Version};
use super::listener::Shared;
use super::notify::{Audience, Notification, Queue, What};
use super::outbox::{Manner, Outbox, Retries, Step};

/// A wait ends after so long at the latest.
const PATIENCE: Duration = Duration::from_secs(60);
/// No answer to an inform is longer.
const ANSWER_BYTES: usize = 2_048;
/// Datagrams of a target that are read at once, at most: one that sends all
/// the time holds up no other.
const MOST_HEARD: usize = 1_024;

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
}

impl Addressee {
    fn new(target: &Target) -> Self {
        let retries = Retries {
            timeout: Duration::from_millis(target.timeout_millis.into()),
            retries: target.retries,
        };
        let manner = Manner {
            inform: target.inform.then_some(retries),
        };
        Self {
            target: target.clone(),
            outbox: Outbox::new(manner, Instant::now()),
            socket: None,
        }
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
    fn hear(&mut self) -> u64 {
        let Some(socket) = &self.socket else { return 0 };
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
            let community = self.target.community.as_bytes();
            let id = answers_inform(datagram.get(..len).unwrap_or_default(), community);
            heard += u64::from(id.is_some_and(|id| self.outbox.acknowledged(id)));
        }
        heard
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
        let mut made = Ok(0);
        notification.with_bindings(|bindings| {
            let now_millis = self.shared.millis();
            let mut agent = self.shared.agent();
            let told = snmp::notification::Notification {
                name: notification.name(),
                up_time: notification.up_time_ticks,
                bindings,
            };
            let receiver = receiver(&one.target, notification.context(), &agent, local.ip());
            made = agent.notify(&receiver, &told, id, now_millis, &mut self.out);
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
        let heard: u64 = self.receivers.iter_mut().map(Addressee::hear).sum();
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
