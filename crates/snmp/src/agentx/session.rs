//! One conversation with a master (RFC 2741 §7.1), as a state machine.

use std::collections::VecDeque;

use thiserror::Error;

use super::answer;
use super::wire::{HEADER_BYTES, Header, Malformed, Message, Payload, error, flag, kind, reason};
use crate::mib::{Contexts, Value};
use crate::oid::Oid;

/// No further question is answered while so much waits for the master to
/// read it.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Registrations that are made at most: subtrees times contexts.
const MAX_REGISTRATIONS: usize = 4_096;
/// Notifications whose fate is not known yet, at most.
const MAX_NOTIFICATIONS: usize = 256;
/// `h.type` of agentx-AddAgentCaps-PDU (RFC 2741 §6.2.14).
const ADD_AGENT_CAPS: u8 = 16;
/// Milliseconds before the first new attempt, and the most there are.
const FIRST_PAUSE_MILLIS: u64 = 250;
const LONGEST_PAUSE_MILLIS: u64 = 15_000;

/// How a subagent presents itself, and how patient it is.
#[derive(Debug, Clone)]
pub struct Config {
    /// `o.id`: what it is.
    pub id: Oid,
    /// `o.descr`: what it is, in words.
    pub description: String,
    /// `r.priority`: the master prefers lower ones; its own modules have
    /// 127 unless told otherwise.
    pub priority: u8,
    /// What is registered.
    pub registrations: Vec<Registration>,
    /// Milliseconds that the master may take to answer us.
    pub patience_millis: u64,
    /// Milliseconds of silence after which the master is asked whether it
    /// is still there.
    pub ping_millis: u64,
}

/// A subtree that is ours in a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The context's name; empty: the default one.
    pub context: Vec<u8>,
    /// Every name that begins so.
    pub subtree: Oid,
}

/// How far the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// There is no connection.
    #[default]
    Closed,
    /// The master was asked for a session.
    Opening,
    /// The session is open.
    Open,
}

/// What happened since the start, over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Sessions that the master opened.
    pub sessions: u64,
    /// Questions of the master answered.
    pub requests: u64,
    /// Variable bindings answered.
    pub bindings: u64,
    /// Registrations that the master refused.
    pub refused_registrations: u64,
    /// Notifications that the master took.
    pub notifications: u64,
    /// Notifications dropped: no session, or the master does not take
    /// them.
    pub dropped_notifications: u64,
}

/// Why a connection is of no more use: close it, and connect again after
/// the pause that [`Session::lost`] gives.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken {
    /// The master sent what cannot be read.
    #[error("the AgentX master sent what cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The master does not want us.
    #[error("the AgentX master refused us: error {0} of RFC 2741 §6.2.16")]
    Refused(u16),
    /// The master said good-bye.
    #[error("the AgentX master closed the session: reason {0} of RFC 2741 §6.2.2")]
    Closed(u8),
    /// The master does not answer.
    #[error("the AgentX master did not answer for {0} ms")]
    Silent(u64),
}

/// Something that the master was asked and did not answer yet.
#[derive(Debug)]
struct Asked {
    packet: u32,
    since_millis: u64,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Open,
    Register(Registration),
    Unregister,
    AgentCaps,
    Notify,
    Ping,
}

/// A conversation with a master. Its memory is bounded: a message of the
/// master's, and a megabyte and an answer of ours.
#[derive(Debug)]
pub struct Session {
    config: Config,
    state: State,
    session: u32,
    last_packet: u32,
    asked: VecDeque<Asked>,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    heard_at: u64,
    /// `res.sysUpTime` of the master's last answer, and when it came.
    master_up: Option<(u32, u64)>,
    failures: u32,
    counters: Counters,
    refused: Vec<(Registration, u16)>,
}

impl Session {
    /// A conversation that has not begun.
    pub fn new(mut config: Config) -> Self {
        config.registrations.truncate(MAX_REGISTRATIONS);
        Self {
            config,
            state: State::Closed,
            session: 0,
            last_packet: 0,
            asked: VecDeque::new(),
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            heard_at: 0,
            master_up: None,
            failures: 0,
            counters: Counters::default(),
            refused: Vec::new(),
        }
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// What happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the master did not let us register in this session, and its
    /// errors (RFC 2741 §6.2.16); 263: somebody has it at our priority.
    pub fn refused(&self) -> &[(Registration, u16)] {
        &self.refused
    }

    /// The master's `sysUpTime` now, hundredths of a second, by what its last
    /// answer said: all times that it is told are on its clock (RFC 2741
    /// §7.2.2 leaves `sysUpTime` to it). `None`: it has not answered in this
    /// connection.
    pub fn master_up_ticks(&self, now_millis: u64) -> Option<u32> {
        let (ticks, at_millis) = self.master_up?;
        let since = now_millis.saturating_sub(at_millis) / 10;
        Some(ticks.wrapping_add(since as u32))
    }

    /// There is a new connection to the master: asks for a session.
    pub fn connected(&mut self, now_millis: u64) {
        self.forget();
        self.state = State::Opening;
        self.heard_at = now_millis;
        let header = self.ask(kind::OPEN, 0, What::Open, now_millis);
        let mut message = Message::begin(&mut self.output, &header);
        // `o.timeout` 0: the master's own.
        message.quad([0; 4]);
        message.name(&self.config.id);
        message.octets(self.config.description.as_bytes());
        message.end();
    }

    /// The connection is gone, or none could be made. Gives the
    /// milliseconds until the next attempt: twice as many each time, until
    /// a session was open.
    pub fn lost(&mut self) -> u64 {
        if self.state == State::Open {
            self.failures = 0;
        }
        self.forget();
        let pause = FIRST_PAUSE_MILLIS << self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        pause.min(LONGEST_PAUSE_MILLIS)
    }

    fn forget(&mut self) {
        self.state = State::Closed;
        self.master_up = None;
        self.asked.clear();
        self.refused.clear();
        self.written = 0;
        // What a hostile master made large is given back.
        self.input = Vec::new();
        self.output = Vec::new();
    }

    /// Says good-bye. Whoever carries the octets closes the connection
    /// when they are written, or sooner.
    pub fn close(&mut self) {
        if self.state != State::Open {
            return;
        }
        let header = self.next_header(kind::CLOSE, 0);
        let mut message = Message::begin(&mut self.output, &header);
        message.quad([reason::SHUTDOWN, 0, 0, 0]);
        message.end();
        self.state = State::Closed;
    }

    /// Registers what is new among these, and takes back what is missing.
    pub fn register_only(&mut self, mut wanted: Vec<Registration>, now_millis: u64) {
        wanted.truncate(MAX_REGISTRATIONS);
        let before = std::mem::replace(&mut self.config.registrations, wanted.clone());
        if self.state != State::Open || before == wanted {
            return;
        }
        for gone in before.iter().filter(|one| !wanted.contains(one)) {
            self.registration(kind::UNREGISTER, gone, What::Unregister, now_millis);
        }
        for new in wanted.into_iter().filter(|one| !before.contains(one)) {
            self.register(new, now_millis);
        }
    }

    /// Octets that wait for the master.
    pub fn to_write(&self) -> &[u8] {
        self.output.get(self.written..).unwrap_or_default()
    }

    /// So many of them were written.
    pub fn written(&mut self, count: usize) {
        self.written = (self.written + count).min(self.output.len());
        if self.written == self.output.len() {
            self.written = 0;
            self.output.clear();
        }
    }

    /// Whether octets of the master should be read now: not while it does
    /// not read ours.
    pub fn may_read(&self) -> bool {
        self.to_write().len() < MAX_WAITING_BYTES
    }

    /// Takes octets of the master. [`Session::work`] looks at them.
    pub fn received(&mut self, octets: &[u8], now_millis: u64) {
        self.heard_at = now_millis;
        self.input.extend_from_slice(octets);
    }

    /// Answers the master's messages that have arrived whole, as long as
    /// there is room for answers. O(octets), and what the questions cost.
    pub fn work(&mut self, contexts: &dyn Contexts, now_millis: u64) -> Result<(), Broken> {
        let mut input = std::mem::take(&mut self.input);
        let mut done = 0;
        while self.may_read() {
            let rest = input.get(done..).unwrap_or_default();
            let Some(header) = Header::read(rest)? else {
                break;
            };
            let whole = HEADER_BYTES + header.payload_len;
            let Some(payload) = rest.get(HEADER_BYTES..whole) else {
                break;
            };
            self.message(&header, payload, contexts, now_millis)?;
            done += whole;
        }
        input.drain(..done);
        self.input = input;
        Ok(())
    }

    /// What the time brings: a question whether the master is there, or the
    /// end of patience with it.
    pub fn tick(&mut self, now_millis: u64) -> Result<(), Broken> {
        let patience = self.config.patience_millis;
        if let Some(first) = self.asked.front() {
            let waited = now_millis.saturating_sub(first.since_millis);
            let silent = now_millis.saturating_sub(self.heard_at);
            // A master that is busy with others speaks all the same.
            if waited.min(silent) >= patience {
                return Err(Broken::Silent(waited.min(silent)));
            }
        }
        let idle = now_millis.saturating_sub(self.heard_at) >= self.config.ping_millis;
        if self.state == State::Open && idle && self.asked.is_empty() {
            let header = self.ask(kind::PING, 0, What::Ping, now_millis);
            Message::begin(&mut self.output, &header).end();
        }
        Ok(())
    }

    /// Whether a notification would have to wait for others, whose fate is not
    /// known yet: not without a session, which drops them.
    pub fn must_wait_to_notify(&self) -> bool {
        let unknown = self.asked.iter().filter(|one| one.what == What::Notify);
        let full = unknown.count() >= MAX_NOTIFICATIONS || !self.may_read();
        self.state == State::Open && full
    }

    /// Hands a notification to the master: `bindings` begin with
    /// snmpTrapOID.0 (RFC 2741 §6.2.10). Returns at once; what a master
    /// does not take in time is dropped and counted.
    pub fn notify(&mut self, context: &[u8], bindings: &[(&[u32], Value<'_>)], now_millis: u64) {
        if self.state != State::Open || self.must_wait_to_notify() {
            self.counters.dropped_notifications += 1;
            return;
        }
        let flags = context_flag(context);
        let header = self.ask(kind::NOTIFY, flags, What::Notify, now_millis);
        let mut message = Message::begin(&mut self.output, &header);
        if flags != 0 {
            message.octets(context);
        }
        for (name, value) in bindings {
            message.binding(name, value);
        }
        message.end();
    }

    fn message(
        &mut self,
        header: &Header,
        octets: &[u8],
        contexts: &dyn Contexts,
        now_millis: u64,
    ) -> Result<(), Broken> {
        match header.kind {
            kind::RESPONSE => {
                return self.response(header, Payload::new(octets, header.flags), now_millis);
            }
            kind::CLOSE => {
                return Err(Broken::Closed(octets.first().copied().unwrap_or_default()));
            }
            kind::CLEANUP_SET => {}
            _ if self.state != State::Open || header.session != self.session => {
                answer::refusal(header, error::NOT_OPEN, 0, &mut self.output);
            }
            _ => self.question(header, Payload::new(octets, header.flags), contexts),
        }
        Ok(())
    }

    fn question(&mut self, header: &Header, mut payload: Payload<'_>, contexts: &dyn Contexts) {
        let out = &mut self.output;
        self.counters.requests += 1;
        let (error, index) = match header.kind {
            kind::GET | kind::GET_NEXT | kind::GET_BULK => {
                let context = answer::context(header, &mut payload);
                match context.map(|name| contexts.context(name)) {
                    Ok(Some(mib)) => {
                        let start = out.len();
                        let bindings = answer::question(header, payload, mib, out);
                        if !contexts.take_too_old() {
                            self.counters.bindings += bindings;
                            return;
                        }
                        out.truncate(start);
                        (error::GEN_ERR, 1)
                    }
                    Ok(None) => (error::UNSUPPORTED_CONTEXT, 0),
                    Err(_) => (error::PARSE_ERROR, 0),
                }
            }
            // Nothing is writable (RFC 2741 §7.2.4.1).
            kind::TEST_SET => (error::NOT_WRITABLE, 1),
            kind::COMMIT_SET => (error::COMMIT_FAILED, 1),
            kind::UNDO_SET => (error::UNDO_FAILED, 1),
            kind::PING => (error::NONE, 0),
            _ => (error::PARSE_ERROR, 0),
        };
        answer::refusal(header, error, index, out);
    }

    /// The master's answer to something of ours. One to nothing that we
    /// asked changes nothing.
    fn response(
        &mut self,
        header: &Header,
        mut payload: Payload<'_>,
        now_millis: u64,
    ) -> Result<(), Broken> {
        let up_ticks = payload.word("a response")?;
        let error = payload.half("a response")?;
        self.master_up = Some((up_ticks, now_millis));
        let mut asked = self.asked.iter();
        let at = asked.position(|one| one.packet == header.packet);
        let Some(asked) = at.and_then(|at| self.asked.remove(at)) else {
            return Ok(());
        };
        let fine = error == error::NONE;
        match asked.what {
            What::Open if fine => self.opened(header.session, now_millis),
            What::Open | What::Ping if !fine => return Err(Broken::Refused(error)),
            What::Register(registration) if !fine => {
                self.counters.refused_registrations += 1;
                self.refused.push((registration, error));
            }
            What::Notify if fine => self.counters.notifications += 1,
            What::Notify => self.counters.dropped_notifications += 1,
            What::Open | What::Ping | What::Register(_) | What::Unregister | What::AgentCaps => {}
        }
        Ok(())
    }

    fn opened(&mut self, session: u32, now_millis: u64) {
        self.session = session;
        self.state = State::Open;
        self.counters.sessions += 1;
        for registration in self.config.registrations.clone() {
            self.register(registration, now_millis);
        }
        self.add_agent_caps(now_millis);
    }

    /// A row for us in the master's sysORTable (RFC 2741 §6.2.14).
    fn add_agent_caps(&mut self, now_millis: u64) {
        let header = self.ask(ADD_AGENT_CAPS, 0, What::AgentCaps, now_millis);
        let mut message = Message::begin(&mut self.output, &header);
        message.name(&self.config.id);
        message.octets(self.config.description.as_bytes());
        message.end();
    }

    fn register(&mut self, new: Registration, now_millis: u64) {
        let what = What::Register(new.clone());
        self.registration(kind::REGISTER, &new, what, now_millis);
    }

    /// Register and Unregister look the same (RFC 2741 §6.2.3, §6.2.4).
    fn registration(&mut self, kind: u8, which: &Registration, what: What, now_millis: u64) {
        let flags = context_flag(&which.context);
        let header = self.ask(kind, flags, what, now_millis);
        let mut message = Message::begin(&mut self.output, &header);
        if flags != 0 {
            message.octets(&which.context);
        }
        // The master's time-out; one subtree, no range of them.
        let timeout = 0;
        message.quad([timeout, self.config.priority, 0, 0]);
        message.name(&which.subtree);
        message.end();
    }

    /// The header of something that wants an answer.
    fn ask(&mut self, kind: u8, flags: u8, what: What, now_millis: u64) -> Header {
        let header = self.next_header(kind, flags);
        self.asked.push_back(Asked {
            packet: header.packet,
            since_millis: now_millis,
            what,
        });
        header
    }

    fn next_header(&mut self, kind: u8, flags: u8) -> Header {
        self.last_packet = self.last_packet.wrapping_add(1);
        let session = match self.state {
            State::Open => self.session,
            State::Closed | State::Opening => 0,
        };
        Header {
            kind,
            flags,
            session,
            transaction: self.last_packet,
            packet: self.last_packet,
            payload_len: 0,
        }
    }
}

fn context_flag(context: &[u8]) -> u8 {
    if context.is_empty() {
        0
    } else {
        flag::NON_DEFAULT_CONTEXT
    }
}
