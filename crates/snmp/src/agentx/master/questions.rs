//! What a session is asked: a queue, a few questions on their way, and what
//! becomes of them (RFC 2741 §7.2). Called by [`super::Master`].

use std::collections::VecDeque;

use super::Cut;
use crate::agentx::owned::{OwnedValue, Row};
use crate::agentx::wire::{Header, Message, Payload, error, flag, kind};
use crate::oid::Oid;

/// Questions that wait for a session at most.
pub const MAX_WAITING: usize = 256;
/// Questions on their way to a session at most: it is never idle, and what
/// is at the end of its queue is not timed out for it.
const MAX_ASKED: usize = 4;

/// What is asked of a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which session.
    pub session: u32,
    /// Of which context.
    pub context: Vec<u8>,
    /// Milliseconds that it may take.
    pub timeout_millis: u64,
    /// What.
    pub what: What,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The value of a name.
    Get(Box<[u32]>),
    /// Names in order.
    Next {
        /// Where to begin.
        start: Box<[u32]>,
        /// Whether `start` itself is one of them.
        include: bool,
        /// The first name beyond; `None`: there is no end.
        end: Option<Box<[u32]>>,
        /// How many at most, from 1.
        rows: u16,
    },
}

/// What a subagent answered, or that it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows in order; of a Get one.
    Rows {
        /// The rows.
        rows: Vec<Row>,
        /// There are no more up to the question's end.
        ended: bool,
    },
    /// It answered by an error, did not answer in time, or is gone.
    Failed,
}

/// What a session did with its questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Questions that it was asked.
    pub asked: u64,
    /// Those that it answered by rows.
    pub answered: u64,
    /// Those that it answered by an error.
    pub refused: u64,
    /// Those that it did not answer in time.
    pub timed_out: u64,
    /// Those that were not put to it: it was stalled, or too many waited.
    pub not_asked: u64,
    /// Rows that it answered.
    pub rows: u64,
}

impl Counters {
    /// Adds others.
    pub(super) fn add(&mut self, others: Self) {
        self.asked += others.asked;
        self.answered += others.answered;
        self.refused += others.refused;
        self.timed_out += others.timed_out;
        self.not_asked += others.not_asked;
        self.rows += others.rows;
    }
}

/// A question on its way.
#[derive(Debug)]
struct Asked {
    packet: u32,
    token: u64,
    question: Question,
    sent_millis: u64,
    /// Nobody waits for its answer any more.
    is_abandoned: bool,
}

/// The questions of one session.
#[derive(Debug, Default)]
pub struct Questions {
    waiting: VecDeque<(u64, Question)>,
    asked: VecDeque<Asked>,
    last_packet: u32,
    /// Since when it answers nothing, if it does not; and when it was last
    /// tried.
    stalled: Option<(u64, u64)>,
    /// When its last answer came.
    heard_millis: u64,
    counters: Counters,
}

impl Questions {
    /// Since when it answers nothing.
    pub fn stalled_since(&self) -> Option<u64> {
        self.stalled.map(|(since, _)| since)
    }

    /// Questions that it was asked and did not answer, those included that
    /// nobody waits for any more: an answer may still come.
    pub fn on_their_way(&self) -> usize {
        self.asked.len()
    }

    /// What became of all so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes a question; `false`: it is not put. One that is stalled is
    /// tried now and then, and is asked nothing else.
    pub fn put(&mut self, token: u64, question: Question, now_millis: u64) -> bool {
        if let Some((_, tried)) = &mut self.stalled {
            if now_millis.saturating_sub(*tried) < question.timeout_millis {
                self.counters.not_asked += 1;
                return false;
            }
            *tried = now_millis;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.counters.not_asked += 1;
            return false;
        }
        self.waiting.push_back((token, question));
        true
    }

    /// Writes what may be asked now.
    pub fn send(&mut self, like: &Header, out: &mut Vec<u8>, now_millis: u64) {
        let under_way = self.asked.iter().filter(|one| !one.is_abandoned).count();
        for _ in under_way..MAX_ASKED {
            let Some((token, question)) = self.waiting.pop_front() else {
                return;
            };
            self.last_packet = self.last_packet.wrapping_add(1);
            let header = Header {
                packet: self.last_packet,
                transaction: self.last_packet,
                ..*like
            };
            write(&question, header, out);
            self.counters.asked += 1;
            self.asked.push_back(Asked {
                packet: self.last_packet,
                token,
                question,
                sent_millis: now_millis,
                is_abandoned: false,
            });
        }
    }

    /// Takes an answer: whom it is for, and what it says. `None`: nobody
    /// waits for it any more. Errors on an answer that no honest subagent
    /// gives.
    pub fn answered(
        &mut self,
        packet: u32,
        mut payload: Payload<'_>,
        now_millis: u64,
    ) -> Result<Option<(u64, Answer)>, Cut> {
        let mut all = self.asked.iter();
        let at = all.position(|one| one.packet == packet);
        let at = at.ok_or(Cut::UnknownAnswer(packet))?;
        payload.word("a response")?;
        let status = payload.half("a response")?;
        payload.half("a response")?;
        // One that is a lie is no answer: the question is still open.
        let answer = match (&self.asked[at], status) {
            (asked, error::NONE) => rows(&asked.question.what, payload)?,
            _ => Answer::Failed,
        };
        self.heard_millis = now_millis;
        self.stalled = None;
        match &answer {
            Answer::Rows { rows, .. } => {
                self.counters.answered += 1;
                self.counters.rows += rows.len() as u64;
            }
            Answer::Failed => self.counters.refused += 1,
        }
        let asked = self.asked.remove(at);
        let asked = asked.filter(|asked| !asked.is_abandoned);
        Ok(asked.map(|asked| (asked.token, answer)))
    }

    /// When the first question on its way is overdue.
    pub fn deadline(&self) -> Option<u64> {
        let pending = self.asked.iter().filter(|one| !one.is_abandoned);
        pending.map(|one| self.due(one)).min()
    }

    /// A subagent that answers one after the other has its time for each.
    fn due(&self, asked: &Asked) -> u64 {
        let since = asked.sent_millis.max(self.heard_millis);
        since.saturating_add(asked.question.timeout_millis)
    }

    /// Gives up what is overdue, and all that waits behind it: whom they
    /// were for.
    pub fn overdue(&mut self, now_millis: u64) -> Vec<u64> {
        let is_due = |one: &Asked| !one.is_abandoned && self.due(one) <= now_millis;
        if !self.asked.iter().any(is_due) {
            return Vec::new();
        }
        self.stalled.get_or_insert((now_millis, now_millis));
        let mut tokens = Vec::new();
        for asked in self.asked.iter_mut().filter(|one| !one.is_abandoned) {
            asked.is_abandoned = true;
            tokens.push(asked.token);
        }
        self.counters.timed_out += tokens.len() as u64;
        self.counters.not_asked += self.waiting.len() as u64;
        tokens.extend(self.waiting.drain(..).map(|(token, _)| token));
        tokens
    }

    /// Gives up all: whom they were for.
    pub fn give_up(&mut self) -> Vec<u64> {
        let asked = self.asked.drain(..).filter(|one| !one.is_abandoned);
        let asked = asked.map(|one| one.token);
        let waiting = self.waiting.drain(..).map(|(token, _)| token);
        asked.chain(waiting).collect()
    }
}

/// Writes a question. One row is asked for by GetNext, several by GetBulk.
fn write(question: &Question, mut header: Header, out: &mut Vec<u8>) {
    header.kind = match &question.what {
        What::Get(_) => kind::GET,
        What::Next { rows: 0 | 1, .. } => kind::GET_NEXT,
        What::Next { .. } => kind::GET_BULK,
    };
    if !question.context.is_empty() {
        header.flags |= flag::NON_DEFAULT_CONTEXT;
    }
    let mut message = Message::begin_in_order(out, &header);
    if !question.context.is_empty() {
        message.octets(&question.context);
    }
    match &question.what {
        What::Get(name) => {
            message.name(name);
            message.name(&[]);
        }
        What::Next {
            start,
            include,
            end,
            rows,
        } => {
            if header.kind == kind::GET_BULK {
                message.halves(0, *rows);
            }
            message.bound(start, *include);
            message.name(end.as_deref().unwrap_or_default());
        }
    }
    message.end();
}

/// The rows of an answer, held against what was asked.
fn rows(what: &What, mut payload: Payload<'_>) -> Result<Answer, Cut> {
    match what {
        What::Get(name) => {
            let mut row = payload.binding()?;
            if is_no_row(&row.value) && row.value != OwnedValue::NoSuchObject {
                row.value = OwnedValue::NoSuchInstance;
            }
            if row.name != *name {
                return Err(wrong(&row.name, name));
            }
            if !payload.is_empty() {
                return Err(Cut::WrongCount { found: 2, asked: 1 });
            }
            let rows = vec![row];
            Ok(Answer::Rows { rows, ended: true })
        }
        What::Next {
            start,
            include,
            end,
            rows: wanted,
        } => next_rows(start, *include, end.as_deref(), *wanted, payload),
    }
}

/// Names ascend. Where several were asked for, they may go on beyond the
/// end: net-snmp's library, which most subagents have, does not look at it.
fn next_rows(
    start: &[u32],
    include: bool,
    end: Option<&[u32]>,
    wanted: u16,
    mut payload: Payload<'_>,
) -> Result<Answer, Cut> {
    let asked = usize::from(wanted.max(1));
    let mut rows: Vec<Row> = Vec::new();
    while !payload.is_empty() {
        let row = payload.binding()?;
        if is_no_row(&row.value) {
            return Ok(Answer::Rows { rows, ended: true });
        }
        let before = rows.last().map_or(start, |row| &row.name);
        let is_start = include && rows.is_empty() && *row.name == *start;
        if *row.name <= *before && !is_start {
            return Err(wrong(&row.name, before));
        }
        if rows.len() >= asked {
            let found = rows.len() + 1;
            return Err(Cut::WrongCount { found, asked });
        }
        if end.is_some_and(|end| *row.name >= *end) {
            return match asked {
                1 => Err(wrong(&row.name, start)),
                _ => Ok(Answer::Rows { rows, ended: true }),
            };
        }
        rows.push(row);
    }
    match rows.is_empty() {
        true => Err(Cut::WrongCount { found: 0, asked }),
        // Fewer than asked for are no end (RFC 2741 §7.2.3.3).
        false => Ok(Answer::Rows { rows, ended: false }),
    }
}

fn wrong(found: &[u32], asked: &[u32]) -> Cut {
    let oid = |name| Oid::new(name).unwrap_or_default();
    Cut::WrongName {
        found: oid(found),
        asked: oid(asked),
    }
}

fn is_no_row(value: &OwnedValue) -> bool {
    matches!(
        value,
        OwnedValue::EndOfMibView
            | OwnedValue::NoSuchInstance
            | OwnedValue::NoSuchObject
            | OwnedValue::Null
    )
}
