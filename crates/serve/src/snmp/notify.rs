//! linkUp and linkDown (RFC 2863), and what AgentX subagents tell, to those
//! who want to know: targets over UDP, and of links the AgentX master.
//!
//! A queue of bounded length lies between the tables and this thread: what
//! does not fit is dropped and counted, and nobody waits. Notifications are
//! not acknowledged: traps, no informs. Started by [`super::Service`].

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use mib::LinkNotification;
use snmp::Value;
use snmp::agent::{ANSWER_BUFFER_BYTES, Agent};
use snmp::agentx::Told;
use snmp::config::User;
use snmp::notification::Receiver;
use snmp::oid::Name;
use snmp::usm::SecurityLevel;

use super::config::{Target, Version};
use super::listener::Shared;
use super::subagent::Subagent;

/// Notifications that wait at most: all links of a large router at once.
const MAX_WAITING: usize = 4_096;

/// `agent-addr` of a v1 trap: we have many (RFC 3584 §3.1).
const NO_ADDRESS: [u8; 4] = [0; 4];

/// A link that came up or went down, somewhere.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The context it happened in; empty: the default one.
    pub context: Arc<str>,
    /// What happened.
    pub link: LinkNotification,
    /// `sysUpTime`.
    pub up_time_ticks: u32,
}

impl Notification {
    /// Hands over its context and the bindings that its name asks for:
    /// ifIndex, ifAdminStatus, ifOperStatus.
    pub fn with_bindings(&self, task: impl FnOnce(&[u8], &[(&[u32], Value<'_>)])) {
        let mut objects: Vec<(Name, i32)> = Vec::new();
        self.link.bindings(&mut |name, value| {
            if let Value::Integer(value) = value {
                objects.push((name.iter().copied().collect(), value));
            }
            ControlFlow::Continue(())
        });
        let bindings: Vec<(&[u32], Value<'_>)> = objects
            .iter()
            .map(|(name, value)| (&**name, Value::Integer(*value)))
            .collect();
        task(self.context.as_bytes(), &bindings);
    }
}

/// Puts notifications into the queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender {
    queue: SyncSender<Word>,
    counts: Counts,
}

/// What the thread is told.
#[derive(Debug)]
enum Word {
    Tell(Notification),
    /// What a subagent tells.
    Relay(Told),
    End,
}

impl Sender {
    /// Puts one into the queue, or counts it as dropped. Never waits.
    pub fn send(&self, notification: Notification) {
        self.put(Word::Tell(notification));
    }

    /// The same with what a subagent tells, its time filled in.
    pub fn relay(&self, told: Told) {
        self.put(Word::Relay(told));
    }

    fn put(&self, word: Word) {
        if self.queue.try_send(word).is_err() {
            self.counts.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How many notifications went out. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    /// Sent to targets.
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Dropped, for want of room in the queue or of a way.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

/// Who is told.
#[derive(Debug, Default)]
struct Audience {
    targets: Vec<Target>,
    subagent: Option<Arc<Subagent>>,
}

/// The thread that tells. Ends when dropped.
#[derive(Debug)]
pub struct Notifier {
    sender: Sender,
    told: Arc<Mutex<Audience>>,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Starts to tell what is put into its queue.
    pub fn start(shared: Arc<Shared>) -> Result<Self> {
        let (queue, words) = sync_channel(MAX_WAITING);
        let counts = Counts::default();
        let told = Arc::<Mutex<Audience>>::default();
        let teller = Teller {
            words,
            told: Arc::clone(&told),
            shared,
            counts: counts.clone(),
            sockets: [None, None],
            last_id: 0,
            out: vec![0; ANSWER_BUFFER_BYTES],
        };
        let thread = std::thread::Builder::new()
            .name("snmp-notify".to_owned())
            .spawn(move || match privileges::drop_all() {
                Ok(()) => teller.run(),
                Err(error) => tracing::error!("no notifications, rights remain: {error}"),
            })
            .context("cannot start a thread for SNMP notifications")?;
        Ok(Self {
            sender: Sender { queue, counts },
            told,
            thread: Some(thread),
        })
    }

    /// Where notifications are put.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// What went out.
    pub fn counts(&self) -> Counts {
        self.sender.counts.clone()
    }

    fn told(&self) -> MutexGuard<'_, Audience> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells these from now on.
    pub fn set_targets(&self, targets: &[Target]) {
        self.told().targets = targets.to_vec();
    }

    /// Tells the master from now on, or no more.
    pub fn set_subagent(&self, subagent: Option<Arc<Subagent>>) {
        self.told().subagent = subagent;
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        // The thread always takes: room comes.
        let _ = self.sender.queue.send(Word::End);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

struct Teller {
    words: mpsc::Receiver<Word>,
    told: Arc<Mutex<Audience>>,
    shared: Arc<Shared>,
    counts: Counts,
    /// For IPv4 and IPv6, made when first needed.
    sockets: [Option<UdpSocket>; 2],
    last_id: i32,
    out: Vec<u8>,
}

impl Teller {
    fn run(mut self) {
        loop {
            match self.words.recv() {
                Ok(Word::Tell(notification)) => self.tell_link(notification),
                Ok(Word::Relay(told)) => self.relay(&told),
                Ok(Word::End) | Err(_) => return,
            }
        }
    }

    fn audience(&self) -> (Vec<Target>, Option<Arc<Subagent>>) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.targets.clone(), told.subagent.clone())
    }

    fn tell_link(&mut self, notification: Notification) {
        let (targets, subagent) = self.audience();
        notification.with_bindings(|context, bindings| {
            let told = snmp::notification::Notification {
                name: notification.link.trap.oid(),
                up_time: notification.up_time_ticks,
                bindings,
            };
            self.tell_all(&targets, context, &told);
        });
        if let Some(subagent) = subagent {
            subagent.notify(notification);
        }
    }

    fn relay(&mut self, told: &Told) {
        let (targets, _) = self.audience();
        let rows = told.rows.iter();
        let bindings: Vec<(&[u32], Value<'_>)> =
            rows.map(|row| (&*row.name, row.value.value())).collect();
        let notification = snmp::notification::Notification {
            name: &told.name,
            up_time: told.up_time.unwrap_or_default(),
            bindings: &bindings,
        };
        self.tell_all(&targets, &told.context, &notification);
    }

    fn tell_all(
        &mut self,
        targets: &[Target],
        context: &[u8],
        told: &snmp::notification::Notification<'_>,
    ) {
        for target in targets {
            let sent = self.tell(target, context, told);
            let count = match &sent {
                Ok(()) => &self.counts.0.sent,
                Err(error) => {
                    tracing::debug!("{} is not told: {error:#}", target.address);
                    &self.counts.0.dropped
                }
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn tell(
        &mut self,
        target: &Target,
        context: &[u8],
        told: &snmp::notification::Notification<'_>,
    ) -> Result<()> {
        self.last_id = self.last_id.wrapping_add(1);
        let now_millis = self.shared.millis();
        let mut agent = self.shared.agent();
        let community = target.community.as_bytes();
        let user = target.user.as_deref().unwrap_or_default().as_bytes();
        let receiver = match target.version {
            Version::V1 => Receiver::TrapV1 {
                community,
                enterprise: &super::own_id(),
                agent: NO_ADDRESS,
            },
            Version::V2c => Receiver::TrapV2c { community },
            Version::V3 => Receiver::TrapV3 {
                user,
                level: best_level(&agent, user),
                context,
            },
        };
        let made = agent.notify(&receiver, told, self.last_id, now_millis, &mut self.out);
        self.shared.tell_counted(&agent);
        drop(agent);
        let len = made?;
        let message = self.out.get(..len).unwrap_or_default();
        socket(&mut self.sockets, target.address)?.send_to(message, target.address)?;
        Ok(())
    }
}

/// The most that a user's keys allow.
fn best_level(agent: &Agent, user: &[u8]) -> SecurityLevel {
    let mut users = agent.config().users.iter();
    let user = users.find(|other| other.name == user);
    user.map_or(SecurityLevel::NoAuthNoPriv, User::best_level)
}

/// The socket of an address's family.
fn socket(sockets: &mut [Option<UdpSocket>; 2], to: SocketAddr) -> Result<&UdpSocket> {
    let [v4, v6] = sockets;
    let (socket, any) = if to.is_ipv4() {
        (v4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    } else {
        (v6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
    };
    if socket.is_none() {
        let new = UdpSocket::bind(any)?;
        new.set_nonblocking(true)?;
        *socket = Some(new);
    }
    socket.as_ref().context("no socket")
}
