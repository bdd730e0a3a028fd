//! What others see of the thread that has subagents: who is to be asked, how
//! all is, and a queue of bounded length. Called by [`super`] and by whoever
//! answers requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use snmp::agentx::{Dispatch, Known, Question, SessionState};

use super::door::Peer;
use super::requests::{MAX_REQUESTS, Request};
use crate::status::{AgentxMasterStatus, SubagentStatus};

/// Askers for whom rows are kept at most: 64, a quarter of a megabyte each.
const MOST_LEFT_OVER: usize = 64;

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
    /// What is left over of answers, by whom they went to, for who walks on.
    pub(super) left_over: Mutex<HashMap<SocketAddr, Known>>,
    pub(super) started: Instant,
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
            left_over: Mutex::default(),
            started: Instant::now(),
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

    /// What is left over of the last answer that went to somebody, if that is
    /// not long ago; it is taken away.
    pub fn take_left_over(&self, to: SocketAddr) -> Known {
        let known = lock(&self.0.left_over).remove(&to);
        let now_millis = self.0.now_millis();
        let known = known.and_then(|mut known| known.forget_old(now_millis).then_some(known));
        known.unwrap_or_default()
    }

    /// Keeps what is left over of an answer.
    pub fn keep_left_over(&self, to: SocketAddr, known: Known) {
        self.0.keep_left_over(to, known);
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
    /// Milliseconds since the start of the thread.
    pub(super) fn now_millis(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Where there is no room, what is too old goes first, then all.
    pub(super) fn keep_left_over(&self, to: SocketAddr, known: Known) {
        let Some(known) = known.left_over() else {
            return;
        };
        let mut all = lock(&self.left_over);
        if all.len() >= MOST_LEFT_OVER {
            let now_millis = self.now_millis();
            all.retain(|_, known| known.forget_old(now_millis));
        }
        if all.len() >= MOST_LEFT_OVER {
            all.clear();
        }
        all.insert(to, known);
    }

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
