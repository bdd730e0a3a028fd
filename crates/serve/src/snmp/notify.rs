//! What happened, to those who want to know: linkUp and linkDown
//! (RFC 2863), starts of the agent and wrong communities (RFC 3418), to
//! targets over UDP; of links also to the AgentX master.
//!
//! A queue of bounded length lies between the tables and the thread that
//! tells; what does not fit is dropped and counted, and nobody waits. Traps
//! are paced; informs are sent again until they are acknowledged. Started by
//! [`super::Service`].
//! `outbox` has what a target is still to be told, `teller` the thread and
//! its sockets.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use mib::LinkNotification;
use rustix::event::{EventfdFlags, eventfd};
use snmp::Value;
use snmp::agentx::Told;

use super::clock::Clock;
use super::config::{Snmp, Target};
use super::listener::Shared;
use super::subagent::Subagent;
use super::teller::Teller;

/// Notifications that wait for the thread at most: it puts them into the
/// targets' own queues at once.
const MAX_WAITING: usize = 1 << 16;
/// Bytes of what subagents told and some target is still to be told, at most,
/// and what each counts for at least: however much they tell, there is room
/// left for what we tell ourselves.
const MAX_RELAYED_BYTES: usize = 16 << 20;
const LEAST_RELAYED_BYTES: usize = 1 << 10;
/// Between two notifications of wrong communities or keys, at least.
const FAILURE_PAUSE_MILLIS: u64 = 1_000;

/// What happened somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The context it happened in; empty: the default one.
    pub context: Arc<str>,
    /// What happened.
    pub what: What,
    /// `sysUpTime`.
    pub up_time_ticks: u32,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The agent runs, for the first time since the host started.
    ColdStart,
    /// The agent runs again.
    WarmStart,
    /// Somebody asked with a wrong community or key.
    AuthenticationFailure,
    /// A link came up or went down.
    Link(LinkNotification),
    /// What an AgentX subagent tells, its time filled in.
    Relayed(Arc<Relayed>),
}

/// What a subagent tells, and its part of the room that all of these have:
/// given back when the last target was told.
#[derive(Debug)]
pub struct Relayed {
    told: Told,
    bytes: usize,
    taken: Arc<AtomicUsize>,
}

impl Relayed {
    /// `None`: there is no room.
    fn new(told: Told, taken: &Arc<AtomicUsize>) -> Option<Self> {
        let bytes = told.len_bytes().max(LEAST_RELAYED_BYTES);
        // In it before it is looked at: two at once may both find none.
        let before = taken.fetch_add(bytes, Ordering::Relaxed);
        let relayed = Self {
            told,
            bytes,
            taken: Arc::clone(taken),
        };
        (before + bytes <= MAX_RELAYED_BYTES).then_some(relayed)
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl PartialEq for Relayed {
    fn eq(&self, other: &Self) -> bool {
        self.told == other.told
    }
}

impl Notification {
    /// The name of the notification: `snmpTrapOID.0`'s value.
    pub fn name(&self) -> &[u32] {
        match &self.what {
            What::ColdStart => &[1, 3, 6, 1, 6, 3, 1, 1, 5, 1],
            What::WarmStart => &[1, 3, 6, 1, 6, 3, 1, 1, 5, 2],
            What::AuthenticationFailure => &[1, 3, 6, 1, 6, 3, 1, 1, 5, 5],
            What::Link(link) => link.trap.oid(),
            What::Relayed(relayed) => &relayed.told.name,
        }
    }

    /// The name of its context.
    pub fn context(&self) -> &[u8] {
        match &self.what {
            What::Relayed(relayed) => &relayed.told.context,
            _ => self.context.as_bytes(),
        }
    }

    /// Hands over the bindings behind its name.
    pub fn with_bindings(&self, task: impl FnOnce(&[(&[u32], Value<'_>)])) {
        match &self.what {
            What::Link(link) => {
                let objects = link.objects();
                task(&objects.each_ref().map(|(name, value)| (&**name, *value)));
            }
            What::Relayed(relayed) => {
                let rows = relayed.told.rows.iter();
                let rows = rows.map(|row| (&*row.name, row.value.value()));
                task(&rows.collect::<Vec<_>>());
            }
            _ => task(&[]),
        }
    }
}

/// Puts notifications into the queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender(Arc<Queue>);

/// What those who tell and the thread share.
#[derive(Debug)]
pub struct Queue {
    clock: Clock,
    waiting: Mutex<VecDeque<Notification>>,
    told: Mutex<Arc<Audience>>,
    stop: AtomicBool,
    wake: OwnedFd,
    /// How many went out.
    pub counts: Counts,
    failed_at_millis: AtomicU64,
    /// Of what subagents told and some target is still to be told.
    relayed_bytes: Arc<AtomicUsize>,
}

/// Who is told of what.
#[derive(Debug, Default)]
pub struct Audience {
    /// Over UDP.
    pub targets: Vec<Target>,
    /// By the AgentX master.
    pub subagent: Option<Arc<Subagent>>,
    /// [`Snmp::link_traps`].
    links: Vec<String>,
    /// [`Snmp::authentication_failure_traps`].
    failures: bool,
}

impl Audience {
    /// Whether anybody is told of a link's ups and downs.
    fn has(&self, link: &str) -> bool {
        let fits = |pattern: &str| view::matches_name(pattern, link);
        let (mut is_wanted, mut names_some) = (false, false);
        for pattern in &self.links {
            match pattern.strip_prefix('!') {
                Some(pattern) if fits(pattern) => return false,
                Some(_) => {}
                None => {
                    names_some = true;
                    is_wanted |= fits(pattern);
                }
            }
        }
        is_wanted || !names_some
    }
}

impl Queue {
    /// What has happened since this was last asked.
    pub fn take(&self) -> VecDeque<Notification> {
        std::mem::take(&mut *self.waiting())
    }

    /// Whether the thread is to end.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Readable when something has happened; to be read before it is asked.
    pub fn wakes(&self) -> &OwnedFd {
        &self.wake
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Notification>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is told now.
    pub fn told(&self) -> Arc<Audience> {
        Arc::clone(&self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, told: Audience) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(told);
        self.ring();
    }

    fn ring(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Sender {
    /// Tells of a link, if it is one that is told of. Never waits.
    pub fn link(&self, context: &Arc<str>, link: LinkNotification) {
        if self.0.told().has(&link.name) {
            self.send(Arc::clone(context), What::Link(link));
        }
    }

    /// Tells of a start.
    pub fn started(&self, what: What) {
        self.send("".into(), what);
    }

    /// Tells what a subagent tells, its time filled in.
    pub fn relay(&self, told: Told) {
        let up_time_ticks = told.up_time.unwrap_or_default();
        let Some(relayed) = Relayed::new(told, &self.0.relayed_bytes) else {
            return self.note_dropped();
        };
        self.put(Notification {
            context: "".into(),
            what: What::Relayed(relayed.into()),
            up_time_ticks,
        });
    }

    /// Tells that somebody asked with a wrong community or key: of one in a
    /// second, however many there are.
    fn authentication_failed(&self) {
        if !self.0.told().failures {
            return;
        }
        let now = self.0.clock.up_millis().max(1);
        let last = self.0.failed_at_millis.load(Ordering::Relaxed);
        if last == 0 || now.saturating_sub(last) >= FAILURE_PAUSE_MILLIS {
            self.0.failed_at_millis.store(now, Ordering::Relaxed);
            self.send("".into(), What::AuthenticationFailure);
        }
    }

    fn send(&self, context: Arc<str>, what: What) {
        let up_time_ticks = (self.0.clock.up_millis() / 10) as u32;
        self.put(Notification {
            context,
            what,
            up_time_ticks,
        });
    }

    fn note_dropped(&self) {
        self.0.counts.0.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts one into the queue, or counts it as dropped.
    fn put(&self, notification: Notification) {
        let mut waiting = self.0.waiting();
        if waiting.len() >= MAX_WAITING {
            drop(waiting);
            return self.note_dropped();
        }
        waiting.push_back(notification);
        let is_first = waiting.len() == 1;
        drop(waiting);
        if is_first {
            self.0.ring();
        }
    }
}

/// How many notifications went out. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Numbers>);

/// What of notifications is counted, for who counts it.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "`Counts` says what they are")]
pub struct Numbers {
    pub sent: AtomicU64,
    pub acknowledged: AtomicU64,
    pub given_up: AtomicU64,
    pub dropped: AtomicU64,
    pub waiting: AtomicU64,
}

impl Counts {
    /// To be counted.
    pub fn numbers(&self) -> &Numbers {
        &self.0
    }

    /// Sent to targets, those that were sent again not counted.
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Informs that a target acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.0.acknowledged.load(Ordering::Relaxed)
    }

    /// Informs that were sent as often as they may be, and never
    /// acknowledged.
    pub fn given_up(&self) -> u64 {
        self.0.given_up.load(Ordering::Relaxed)
    }

    /// Dropped, for want of room in a queue or of a way.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Waiting to be sent, or to be acknowledged.
    pub fn waiting(&self) -> u64 {
        self.0.waiting.load(Ordering::Relaxed)
    }
}

/// The thread that tells. Ends when dropped.
#[derive(Debug)]
pub struct Notifier {
    sender: Sender,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Starts to tell what is put into its queue.
    pub fn start(shared: Arc<Shared>, clock: Clock) -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .context("cannot make an event descriptor")?;
        let queue = Arc::new(Queue {
            clock,
            waiting: Mutex::default(),
            told: Mutex::default(),
            stop: AtomicBool::new(false),
            wake,
            counts: Counts::default(),
            failed_at_millis: AtomicU64::new(0),
            relayed_bytes: Arc::default(),
        });
        let teller = Teller::new(Arc::clone(&queue), shared);
        let thread = std::thread::Builder::new()
            .name("snmp-notify".to_owned())
            .spawn(move || match privileges::drop_all() {
                Ok(()) => teller.run(),
                Err(error) => tracing::error!("no notifications, rights remain: {error}"),
            })
            .context("cannot start a thread for SNMP notifications")?;
        Ok(Self {
            sender: Sender(queue),
            thread: Some(thread),
        })
    }

    /// Where notifications are put.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// To be woken when somebody asked with a wrong community or key.
    pub fn failures(&self) -> Waker {
        Arc::new(Failures(self.sender.clone())).into()
    }

    /// What went out.
    pub fn counts(&self) -> Counts {
        self.sender.0.counts.clone()
    }

    /// Tells those of a configuration from now on.
    pub fn set_targets(&self, config: &Snmp) {
        let told = self.sender.0.told();
        self.sender.0.change(Audience {
            targets: config.targets.clone(),
            subagent: told.subagent.clone(),
            links: config.link_traps.clone(),
            failures: config.authentication_failure_traps,
        });
    }

    /// Tells the master from now on, or no more.
    pub fn set_subagent(&self, subagent: Option<Arc<Subagent>>) {
        let told = self.sender.0.told();
        self.sender.0.change(Audience {
            targets: told.targets.clone(),
            subagent,
            links: told.links.clone(),
            failures: told.failures,
        });
    }
}

/// Tells of wrong communities and keys when it is woken.
struct Failures(Sender);

impl Wake for Failures {
    fn wake(self: Arc<Self>) {
        self.0.authentication_failed();
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.sender.0.stop.store(true, Ordering::Release);
        self.sender.0.ring();
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use snmp::agentx::{OwnedValue, Row};

    use super::*;

    #[test]
    fn what_subagents_tell_has_a_bound_and_leaves_room_for_others() {
        let taken = Arc::default();
        let told = |bytes: usize| Told {
            context: Vec::new(),
            up_time: None,
            name: [1, 3].into(),
            rows: vec![Row {
                name: [1, 3].into(),
                value: OwnedValue::OctetString(vec![0; bytes].into()),
            }],
        };
        let put = |bytes| Relayed::new(told(bytes), &taken);
        let mut all: Vec<Relayed> = std::iter::from_fn(|| put(1)).collect();
        assert_eq!(all.len(), MAX_RELAYED_BYTES / LEAST_RELAYED_BYTES);
        assert!(all.len() < MAX_WAITING / 2);
        all.pop();
        assert!(put(LEAST_RELAYED_BYTES).is_none());
        all.extend(put(1));
        assert!(put(1).is_none());
        all.clear();
        assert!(put(MAX_RELAYED_BYTES).is_none() && put(MAX_RELAYED_BYTES / 2).is_some());
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn patterns_say_of_which_links_is_told() {
        let has = |links: &[&str], link: &str| {
            let told = Audience {
                links: links.iter().map(|&one| one.to_owned()).collect(),
                ..Audience::default()
            };
            told.has(link)
        };
        assert!(has(&[], "em1"));
        assert!(has(&["em*"], "em1") && !has(&["em*"], "veth1"));
        assert!(has(&["!veth*"], "em1") && !has(&["!veth*"], "veth1"));
        assert!(!has(&["*", "!veth*"], "veth1") && has(&["*", "!veth*"], "em1"));
    }
}
