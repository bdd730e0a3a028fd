//! The master's side of AgentX (RFC 2741): subagents connect to us, say
//! which names are theirs, and are asked for them.
//!
//! - [`Master`]: all connections as one state machine: octets and the time
//!   in, octets out. It holds no socket; the program carries the octets.
//! - [`Cut`]: why one is cut.
//! - `registry`, [`Dispatch`]: who answers for which names.
//! - `questions`: what each session is asked, and what becomes of it.
//! - `indexes`: values of index objects that sessions share.
//! - `requests`: what a subagent may ask.
//!
//! A subagent that lies, floods or answers nothing is cut; nobody else waits
//! for it. Called by the program's thread for
//! subagents and by tests; [`super::Gathering`] makes answers from it.

mod cut;
mod dispatch;
mod indexes;
mod questions;
mod registry;
mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::owned::Row;
use super::wire::{HEADER_BYTES, Header, Message, Payload, flag, kind, reason};
use crate::oid::{Name, Oid};
pub use cut::Cut;
pub use dispatch::{Dispatch, Owner, Region};
use indexes::Indexes;
use questions::Questions;
pub use questions::{Answer, Counters as QuestionCounters, Question, What};
use registry::Registry;

/// Sessions of a connection at most.
const MAX_SESSIONS_OF_CONNECTION: usize = 16;
/// Modules that a session may add to sysORTable.
const MAX_CAPABILITIES_OF_SESSION: usize = 128;
/// Octets that wait for a subagent to read them, at most: all that it may
/// be asked at once fits in.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Messages in a second, answers left out, beyond which a subagent floods.
const MAX_MESSAGES_PER_SECOND: u32 = 10_000;
/// Milliseconds without an answer after which a session is given up.
const LONGEST_STALL_MILLIS: u64 = 120_000;
/// Questions that a session leaves unanswered at most, while it answers
/// others.
const MOST_UNANSWERED: usize = 2_048;

/// What the master is told at its start.
#[derive(Clone, Debug)]
pub struct MasterConfig {
    /// Milliseconds that a subagent may take for an answer, where it does
    /// not say so itself.
    pub timeout_millis: u64,
    /// Subtrees that the agent itself answers for.
    pub own: Vec<&'static [u32]>,
}

/// Something that came of octets or of the time.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A question's end.
    Answered {
        /// What it was put with.
        token: u64,
        /// What it was answered.
        answer: Answer,
    },
    /// A subagent tells of something (RFC 2741 §6.2.10).
    Notified(Told),
}

/// A notification of a subagent.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// The context that it is of.
    pub context: Vec<u8>,
    /// `sysUpTime.0`, where the subagent says it.
    pub up_time: Option<u32>,
    /// `snmpTrapOID.0`.
    pub name: Box<[u32]>,
    /// What else it says.
    pub rows: Vec<Row>,
}

impl Told {
    /// Bytes that it takes.
    pub fn len_bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Row::len_bytes).sum();
        size_of::<Self>() + self.context.len() + size_of_val::<[u32]>(&self.name) + rows
    }
}

/// A module that a subagent added to sysORTable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    session: u32,
    /// The context whose sysORTable it is in.
    pub context: Vec<u8>,
    /// `sysORID`.
    pub id: Oid,
    /// `sysORDescr`.
    pub description: Box<[u8]>,
    /// `sysORUpTime`, hundredths of a second.
    pub up_time: u32,
}

/// How a session is.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// Its connection.
    pub connection: u32,
    /// Its number.
    pub session: u32,
    /// What it says it is.
    pub description: String,
    /// Subtrees that it registered, those of ranges singly.
    pub subtrees: usize,
    /// Milliseconds for which it has answered nothing, where it stalls.
    pub stalled_millis: Option<u64>,
    /// Notifications of it.
    pub notifications: u64,
    /// What became of questions to it.
    pub counters: QuestionCounters,
}

/// The time, as a subagent's messages need it.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Milliseconds since any time.
    pub millis: u64,
    /// `sysUpTime`, hundredths of a second.
    pub up_time: u32,
}

#[derive(Debug, Default)]
struct Connection {
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// A second, and the messages in it.
    messages: (u64, u32),
}

#[derive(Debug)]
struct Session {
    connection: u32,
    /// [`flag::NETWORK_BYTE_ORDER`] or nothing, as its Open had it.
    order: u8,
    timeout_millis: u64,
    description: String,
    questions: Questions,
    notifications: u64,
}

/// All subagents. Its memory is bounded: for each connection a message and
/// `MAX_OUTPUT_BYTES`, and what limits of registrations, index values,
/// modules and questions allow.
#[derive(Debug)]
pub struct Master {
    config: MasterConfig,
    connections: BTreeMap<u32, Connection>,
    sessions: BTreeMap<u32, Session>,
    registry: Registry,
    indexes: Indexes,
    capabilities: Arc<Vec<Capability>>,
    dispatch: Arc<Dispatch>,
    is_dispatch_old: bool,
    events: Vec<Event>,
    last_connection: u32,
    last_session: u32,
    /// What sessions did that are over.
    over: QuestionCounters,
}

impl Master {
    /// A master without subagents.
    pub fn new(config: MasterConfig) -> Self {
        Self {
            config,
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            registry: Registry::default(),
            indexes: Indexes::default(),
            capabilities: Arc::default(),
            dispatch: Arc::default(),
            is_dispatch_old: false,
            events: Vec::new(),
            last_connection: 0,
            last_session: 0,
            over: QuestionCounters::default(),
        }
    }

    /// A subagent connected; gives its number.
    pub fn connected(&mut self) -> u32 {
        self.last_connection = next_free(self.last_connection, &self.connections);
        let connection = Connection::default();
        self.connections.insert(self.last_connection, connection);
        self.last_connection
    }

    /// Takes octets of a subagent, and does what they ask. An error says
    /// why the connection is to be cut. O(octets), and what registrations
    /// cost.
    pub fn received(&mut self, connection: u32, octets: &[u8], now: Now) -> Result<(), Cut> {
        let Some(at) = self.connections.get_mut(&connection) else {
            return Ok(());
        };
        let mut input = std::mem::take(&mut at.input);
        input.extend_from_slice(octets);
        let mut done = 0;
        loop {
            let rest = input.get(done..).unwrap_or_default();
            let Some(header) = Header::read(rest)? else {
                break;
            };
            let whole = HEADER_BYTES + header.payload_len;
            let Some(octets) = rest.get(HEADER_BYTES..whole) else {
                break;
            };
            let payload = Payload::new(octets, header.flags);
            self.message(connection, &header, payload, now)?;
            done += whole;
        }
        input.drain(..done);
        if let Some(at) = self.connections.get_mut(&connection) {
            // What a long message made large is given back.
            at.input = if input.is_empty() { Vec::new() } else { input };
        }
        self.send(connection, now.millis);
        Ok(())
    }

    fn message(
        &mut self,
        connection: u32,
        header: &Header,
        payload: Payload<'_>,
        now: Now,
    ) -> Result<(), Cut> {
        if header.kind == kind::RESPONSE {
            return self.response(connection, header, payload, now);
        }
        let Some(at) = self.connections.get_mut(&connection) else {
            return Ok(());
        };
        let second = now.millis / 1_000;
        at.messages = match at.messages {
            (then, count) if then == second => (then, count + 1),
            _ => (second, 1),
        };
        if at.messages.1 > MAX_MESSAGES_PER_SECOND {
            return Err(Cut::Flood);
        }
        if at.to_write().len() > MAX_OUTPUT_BYTES {
            return Err(Cut::ReadsNothing);
        }
        self.request(connection, header, payload, now)
    }

    fn response(
        &mut self,
        connection: u32,
        header: &Header,
        payload: Payload<'_>,
        now: Now,
    ) -> Result<(), Cut> {
        let session = self.sessions.get_mut(&header.session);
        let session = session.filter(|session| session.connection == connection);
        let session = session.ok_or(Cut::UnknownAnswer(header.packet))?;
        let answered = session
            .questions
            .answered(header.packet, payload, now.millis)?;
        if let Some((token, answer)) = answered {
            self.events.push(Event::Answered { token, answer });
        }
        Ok(())
    }

    /// Octets that wait for a subagent.
    pub fn to_write(&self, connection: u32) -> &[u8] {
        let at = self.connections.get(&connection);
        at.map_or(&[], |at| at.to_write())
    }

    /// So many of them were written.
    pub fn written(&mut self, connection: u32, count: usize) {
        if let Some(at) = self.connections.get_mut(&connection) {
            at.written = (at.written + count).min(at.output.len());
            // One that never reads all makes it no longer for ever.
            if at.written > at.output.len() / 2 {
                at.output.drain(..at.written);
                at.written = 0;
            }
        }
    }

    /// Asks a session; an [`Event::Answered`] with the token follows, at
    /// once where it cannot be asked.
    pub fn ask(&mut self, token: u64, question: Question, now_millis: u64) {
        let session = self.sessions.get_mut(&question.session);
        let connection = session.and_then(|session| {
            let put = session.questions.put(token, question, now_millis);
            put.then_some(session.connection)
        });
        match connection {
            Some(connection) => self.send(connection, now_millis),
            None => self.fail([token]),
        }
    }

    /// Writes questions that wait for a connection's sessions.
    fn send(&mut self, connection: u32, now_millis: u64) {
        let Some(at) = self.connections.get_mut(&connection) else {
            return;
        };
        for (number, session) in &mut self.sessions {
            if session.connection == connection && at.to_write().len() < MAX_OUTPUT_BYTES {
                let like = header(*number, session.order);
                session.questions.send(&like, &mut at.output, now_millis);
            }
        }
    }

    fn fail(&mut self, tokens: impl IntoIterator<Item = u64>) {
        let failed = tokens.into_iter().map(|token| Event::Answered {
            token,
            answer: Answer::Failed,
        });
        self.events.extend(failed);
    }

    /// What the time brings: questions that are overdue, and connections
    /// that are to be cut.
    pub fn tick(&mut self, now_millis: u64) -> Vec<(u32, Cut)> {
        let mut cut = Vec::new();
        let mut overdue = Vec::new();
        for session in self.sessions.values_mut() {
            overdue.extend(session.questions.overdue(now_millis));
            let since = session.questions.stalled_since().unwrap_or(now_millis);
            if now_millis.saturating_sub(since) >= LONGEST_STALL_MILLIS {
                cut.push((session.connection, Cut::Stalled));
            }
            if session.questions.on_their_way() > MOST_UNANSWERED {
                cut.push((session.connection, Cut::Forgets));
            }
        }
        self.fail(overdue);
        cut
    }

    /// When a question is overdue next.
    pub fn deadline(&self) -> Option<u64> {
        let sessions = self.sessions.values();
        sessions.filter_map(|one| one.questions.deadline()).min()
    }

    /// What happened since the last look.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Says good-bye to a subagent that is cut: what it is then to be
    /// written, as far as it takes it at once. [`Master::lost`] follows.
    pub fn farewell(&mut self, connection: u32, cut: Option<&Cut>) {
        let reason = cut.map_or(reason::SHUTDOWN, Cut::reason);
        let Some(at) = self.connections.get_mut(&connection) else {
            return;
        };
        let sessions = self.sessions.iter();
        for (number, session) in sessions.filter(|(_, one)| one.connection == connection) {
            let header = Header {
                kind: kind::CLOSE,
                ..header(*number, session.order)
            };
            let mut message = Message::begin_in_order(&mut at.output, &header);
            message.quad([reason, 0, 0, 0]);
            message.end();
        }
    }

    /// A connection is gone, and all that was its.
    pub fn lost(&mut self, connection: u32) {
        self.connections.remove(&connection);
        let sessions = self.sessions.iter();
        let gone: Vec<u32> = sessions
            .filter(|(_, session)| session.connection == connection)
            .map(|(number, _)| *number)
            .collect();
        gone.into_iter().for_each(|number| self.close(number));
    }

    /// A session is over.
    fn close(&mut self, number: u32) {
        let Some(mut session) = self.sessions.remove(&number) else {
            return;
        };
        self.is_dispatch_old |= self.registry.forget(number);
        self.indexes.forget(number);
        if self.capabilities.iter().any(|one| one.session == number) {
            Arc::make_mut(&mut self.capabilities).retain(|one| one.session != number);
        }
        self.over.add(session.questions.counters());
        self.fail(session.questions.give_up());
    }

    /// Whether registrations changed since [`Master::dispatch`].
    pub fn is_dispatch_old(&self) -> bool {
        self.is_dispatch_old
    }

    /// Whether something happened since the last look.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Who is to be asked for what, as registered now. O(registrations)
    /// after a change, else O(1).
    pub fn dispatch(&mut self) -> Arc<Dispatch> {
        if std::mem::take(&mut self.is_dispatch_old) {
            self.dispatch = Arc::new(self.registry.dispatch(&self.config.own));
        }
        Arc::clone(&self.dispatch)
    }

    /// The modules that subagents added to sysORTable of the default
    /// context.
    pub fn capabilities(&self) -> Arc<Vec<Capability>> {
        Arc::clone(&self.capabilities)
    }

    /// What became of all questions, those to sessions that are over
    /// included.
    pub fn counters(&self) -> QuestionCounters {
        let mut all = self.over;
        let sessions = self.sessions.values();
        sessions.for_each(|session| all.add(session.questions.counters()));
        all
    }

    /// How all sessions are.
    pub fn sessions(&self, now_millis: u64) -> impl Iterator<Item = SessionState> {
        self.sessions.iter().map(move |(number, session)| {
            let since = session.questions.stalled_since();
            SessionState {
                connection: session.connection,
                session: *number,
                description: session.description.clone(),
                subtrees: self.registry.subtrees_of(*number),
                stalled_millis: since.map(|since| now_millis.saturating_sub(since)),
                notifications: session.notifications,
                counters: session.questions.counters(),
            }
        })
    }
}

impl Connection {
    fn to_write(&self) -> &[u8] {
        self.output.get(self.written..).unwrap_or_default()
    }
}

/// The number behind one that nobody has; 0 is nobody's.
fn next_free<T>(last: u32, taken: &BTreeMap<u32, T>) -> u32 {
    let mut next = last.wrapping_add(1);
    while next == 0 || taken.contains_key(&next) {
        next = next.wrapping_add(1);
    }
    next
}

/// What a message to a session begins with.
fn header(session: u32, order: u8) -> Header {
    Header {
        kind: 0,
        flags: order & flag::NETWORK_BYTE_ORDER,
        session,
        transaction: 0,
        packet: 0,
        payload_len: 0,
    }
}

/// A name as it is kept.
fn oid(name: &Name) -> Oid {
    Oid::new(name).unwrap_or_default()
}

#[cfg(test)]
mod tests;
