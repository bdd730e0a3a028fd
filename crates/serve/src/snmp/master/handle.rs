//! What others see of the thread that has subagents: who is to be asked, how
//! all is, and a queue of bounded length. Called by [`super`] and by whoever
//! answers requests.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use snmp::agentx::{Dispatch, Question, SessionState};

use super::door::Peer;
use super::requests::{MAX_REQUESTS, Request};
use crate::status::{AgentxMasterStatus, SubagentStatus};

/// What others see of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle(pub(super) Arc<Shared>);

/// What the thread and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) wake: OwnedFd,
    /// A sample came that a request may wait for.
    pub(super) some_came: AtomicBool,
    pub(super) dispatch: Mutex<Arc<Dispatch>>,
    pub(super) handed: Mutex<Handed>,
    pub(super) status: Mutex<AgentxMasterStatus>,
}

/// Requests on their way to the thread.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) requests: Vec<(Request, Vec<Question>)>,
    pub(super) refused: u64,
}

impl Handle {
    /// Of a thread that listens at a path.
    pub(super) fn new(path: String) -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .context("cannot make an event descriptor")?;
        let status = AgentxMasterStatus {
            path,
            ..AgentxMasterStatus::default()
        };
        Ok(Self(Arc::new(Shared {
            stop: AtomicBool::new(false),
            wake,
            some_came: AtomicBool::new(false),
            dispatch: Mutex::default(),
            handed: Mutex::default(),
            status: Mutex::new(status),
        })))
    }

    /// Who is to be asked for what.
    pub fn dispatch(&self) -> Arc<Dispatch> {
        Arc::clone(&lock(&self.0.dispatch))
    }

    /// Hands over a request that needs something of subagents. Never waits;
    /// where too many do, it is dropped and counted.
    pub fn put_off(&self, request: Request, missing: Vec<Question>) {
        let mut handed = lock(&self.0.handed);
        if handed.requests.len() >= MAX_REQUESTS {
            handed.refused += 1;
            return;
        }
        handed.requests.push((request, missing));
        drop(handed);
        self.wake();
    }

    /// How all is.
    pub fn status(&self) -> AgentxMasterStatus {
        lock(&self.0.status).clone()
    }

    pub(super) fn wake(&self) {
        self.0.ring();
    }
}

impl Shared {
    fn ring(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Called by whoever takes a sample, from any thread.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.some_came.store(true, Ordering::Release);
        self.ring();
    }
}

/// How a session is, and whose.
pub(super) fn session_status(session: &SessionState, peer: Option<Peer>) -> SubagentStatus {
    SubagentStatus {
        description: session.description.clone(),
        pid: peer.map_or(0, |peer| peer.pid),
        uid: peer.map_or(0, |peer| peer.uid),
        subtrees: session.subtrees as u64,
        stalled_millis: session.stalled_millis,
        questions: session.counters.asked,
        answered: session.counters.answered,
        refused: session.counters.refused,
        timed_out: session.counters.timed_out,
        not_asked: session.counters.not_asked,
        rows: session.counters.rows,
        notifications: session.notifications,
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
