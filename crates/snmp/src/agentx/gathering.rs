//! One answer gathered from our own objects and those of subagents.
//!
//! A request is answered as any other, from a [`Gathering`]: where the next
//! name is a subagent's and its rows are not there yet, the walk ends, what
//! is missing is noted, and the agent says that the request has to wait
//! ([`crate::Outcome::PutOff`]). Once the subagents have answered, the
//! request is answered anew from all that is [`Known`] now. So an answer is
//! of one run, with views and limits of length as ever, and nothing waits
//! inside of it. Called by whoever answers requests.
//!
//! Who walks asks for what is behind the last answer. So more rows are asked
//! for than the second request of a walk wants, and what is left of them is
//! kept for the next ([`Known::left_over`]).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use super::master::{Answer, Dispatch, Owner, Question, Region, What};
use super::owned::{OwnedValue, Row};
use crate::mib::{Contexts, Mib, Value, WalkSink};
use crate::oid::{self, Name};

/// Rows asked for at once at first, and at most: an answer that holds more
/// asks again.
const FIRST_ROWS: usize = 64;
const MOST_ROWS: usize = 256;
/// Questions that one run notes at most; the next run notes the others.
const MAX_MISSING: usize = 256;
/// Bytes of rows known for one request, beyond which it gets no more: far
/// more than an answer holds.
const MAX_KNOWN_BYTES: usize = 1 << 20;
/// Bytes of rows that are kept for the next request of a walk, and how old
/// they may be then.
const MAX_LEFT_OVER_BYTES: usize = 1 << 18;
const LEFT_OVER_MILLIS: u64 = 1_000;

/// What subagents answered for one request so far.
#[derive(Debug, Default)]
pub struct Known {
    runs: BTreeMap<Box<[u32]>, Run>,
    values: BTreeMap<Box<[u32]>, Option<OwnedValue>>,
    bytes: usize,
    rounds: u32,
    /// The context that all is of.
    context: Option<Vec<u8>>,
}

/// Rows behind a name, without a gap.
#[derive(Debug)]
struct Run {
    session: u32,
    /// When they came.
    told_millis: u64,
    /// The answer that was just made looked at them.
    is_used: Cell<bool>,
    rows: Vec<Row>,
    /// There is nothing more up to here; `Some(None)`: nothing at all.
    ended: Option<Option<Box<[u32]>>>,
    failed: bool,
}

impl Known {
    /// Begins to take the answers to the questions of a run.
    pub fn next_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Bytes that it takes.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// How often the request has waited.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What the next request of a walk may begin with: the rows that this
    /// one's answer was made of, with those behind it; `None`: there are
    /// none. Of single values nothing is kept.
    pub fn left_over(mut self) -> Option<Self> {
        self.values.clear();
        self.rounds = 0;
        self.runs.retain(|_, run| run.is_used.get() && !run.failed);
        self.count_bytes();
        let is_of_use = !self.runs.is_empty() && self.bytes <= MAX_LEFT_OVER_BYTES;
        is_of_use.then_some(self)
    }

    /// Forgets what is too old for a request that begins now. Whether there is
    /// anything left.
    pub fn forget_old(&mut self, now_millis: u64) -> bool {
        let is_young = |run: &Run| now_millis.saturating_sub(run.told_millis) < LEFT_OVER_MILLIS;
        self.runs.retain(|_, run| is_young(run));
        self.count_bytes();
        !self.runs.is_empty()
    }

    fn count_bytes(&mut self) {
        let rows = self.runs.values().flat_map(|run| &run.rows);
        self.bytes = rows.map(Row::len_bytes).sum();
    }

    /// Takes a subagent's answer; one beyond what may be known is no better
    /// than none. O(rows).
    pub fn add(&mut self, question: &Question, answer: Answer, now_millis: u64) {
        if self.context.as_ref() != Some(&question.context) {
            // What is left over of another context is of no use.
            self.runs.clear();
            self.context = Some(question.context.clone());
        }
        let answer = match self.bytes > MAX_KNOWN_BYTES {
            true => Answer::Failed,
            false => answer,
        };
        let (rows, has_ended, failed) = match answer {
            Answer::Rows { rows, ended } => (rows, ended, false),
            Answer::Failed => (Vec::new(), false, true),
        };
        self.bytes += rows.iter().map(Row::len_bytes).sum::<usize>();
        match &question.what {
            What::Get(name) => {
                let value = rows.into_iter().next().map(|row| row.value);
                self.values.insert(name.clone(), value);
            }
            What::Next {
                start,
                include,
                end,
                ..
            } => {
                let run = Run {
                    session: question.session,
                    told_millis: now_millis,
                    is_used: Cell::new(false),
                    rows,
                    ended: has_ended.then(|| end.clone()),
                    failed,
                };
                self.runs.insert(behind_of(start, *include), run);
            }
        }
    }

    /// The run that goes on behind a name, and its rows there.
    fn behind(&self, session: u32, after: &[u32]) -> Option<(&Run, &[Row])> {
        let up_to = (Bound::Unbounded, Bound::Included(after));
        let (_, run) = self.runs.range::<[u32], _>(up_to).next_back()?;
        if run.session != session {
            return None;
        }
        let at = run.rows.partition_point(|row| *row.name <= *after);
        let rows = run.rows.get(at..)?;
        // Beyond its last row, it knows something only if it has ended.
        let last = run.rows.last().map(|row| &*row.name);
        let reaches = !rows.is_empty() || run.ended.is_some() || run.failed;
        let is_of_use = reaches || last == Some(after);
        is_of_use.then(|| {
            run.is_used.set(true);
            (run, rows)
        })
    }

    /// Nothing of it was looked at for an answer yet.
    fn begin(&self) {
        self.runs.values().for_each(|run| run.is_used.set(false));
    }
}

/// The key of rows from a name on: the name that they are behind.
fn behind_of(start: &[u32], include: bool) -> Box<[u32]> {
    let before = include.then(|| oid::before(start)).flatten();
    before.map_or_else(|| start.into(), |name| name.as_slice().into())
}

/// The contexts for one run of one request.
pub struct Gathering<'a> {
    own: &'a dyn Contexts,
    dispatch: &'a Dispatch,
    known: &'a Known,
    /// Nothing is waited for any more.
    is_last: bool,
    chosen: OnceCell<Chosen<'a>>,
}

impl<'a> Gathering<'a> {
    /// Of our own objects, those that `dispatch` says are subagents', and
    /// what is known of these. The last run takes what is missing for
    /// unanswerable.
    pub fn new(
        own: &'a dyn Contexts,
        dispatch: &'a Dispatch,
        known: &'a Known,
        is_last: bool,
    ) -> Self {
        known.begin();
        Self {
            own,
            dispatch,
            known,
            is_last: is_last || known.bytes > MAX_KNOWN_BYTES,
            chosen: OnceCell::new(),
        }
    }

    /// What subagents are to be asked before the next run.
    pub fn into_missing(self) -> Vec<Question> {
        let chosen = self.chosen.into_inner();
        chosen.map_or_else(Vec::new, |chosen| chosen.missing.into_inner())
    }
}

impl Contexts for Gathering<'_> {
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        let own = self.own.context(name);
        let Some(regions) = self.dispatch.regions(name) else {
            return own;
        };
        // What is known is of another context: of no use here.
        let is_other = self.known.context.as_deref().is_some_and(|of| of != name);
        let known = (!is_other).then_some(self.known);
        let chosen = self.chosen.get_or_init(|| Chosen {
            own,
            regions,
            known,
            is_last: self.is_last,
            context: name.to_vec(),
            rows: Cell::new(1),
            is_short: Cell::new(false),
            missing: RefCell::default(),
        });
        (chosen.context == name).then_some(chosen as &dyn Mib)
    }

    fn is_by_name_only(&self, name: &[u8]) -> bool {
        self.own.is_by_name_only(name)
    }

    fn is_waiting(&self) -> bool {
        let chosen = self.chosen.get();
        let is_missing = chosen.is_some_and(|chosen| !chosen.missing.borrow().is_empty());
        is_missing || self.own.is_waiting()
    }
}

/// The context that a request is about.
struct Chosen<'a> {
    own: Option<&'a dyn Mib>,
    regions: &'a [Region],
    /// `None`: nothing is, of this context.
    known: Option<&'a Known>,
    is_last: bool,
    context: Vec<u8>,
    rows: Cell<usize>,
    is_short: Cell<bool>,
    missing: RefCell<Vec<Question>>,
}

/// How a walk through a region ended.
enum End {
    /// Its rows are through.
    OfRegion,
    /// The sink has enough, or rows are missing.
    OfWalk,
}

impl Mib for Chosen<'_> {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        let mut own = Vec::with_capacity(names.len());
        let mut own_at = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            match self.region(name).map(|region| region.owner) {
                Some(Owner::Subagent {
                    session,
                    timeout_millis,
                }) => self.get_one(name, session, timeout_millis, &mut |value| sink(at, value)),
                _ => {
                    own.push(*name);
                    own_at.push(at);
                }
            }
        }
        let Some(mib) = self.own else {
            own_at.iter().for_each(|at| sink(*at, Value::NoSuchObject));
            return;
        };
        mib.get(&own, &mut |at, value| {
            if let Some(at) = own_at.get(at) {
                sink(*at, value);
            }
        });
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let at = self.regions.partition_point(|one| *one.start <= *after);
        let regions = self.regions.get(at.saturating_sub(1)..);
        for region in regions.unwrap_or_default() {
            let end = match region.owner {
                Owner::Own => self.walk_own(region, after, sink),
                Owner::Subagent {
                    session,
                    timeout_millis,
                } => self.walk_theirs(region, session, timeout_millis, after, sink),
            };
            if matches!(end, End::OfWalk) {
                return;
            }
        }
    }

    /// Of our own objects; what a subagent has in the midst of a column is
    /// walked for itself.
    fn column_end(&self, name: &[u32]) -> Option<Name> {
        let region = self.region(name)?;
        if region.owner != Owner::Own {
            return None;
        }
        let column = self.own?.column_end(name)?;
        let nearer = region.end.as_deref().filter(|end| **end <= *column);
        // The walk goes on with the region's end itself.
        nearer.map_or(Some(column.clone()), oid::before)
    }

    fn expect(&self, rows: usize) {
        self.rows.set(rows);
    }

    fn fell_short(&self) -> bool {
        self.is_short.take()
    }
}

impl Chosen<'_> {
    fn region(&self, name: &[u32]) -> Option<&Region> {
        let at = self.regions.partition_point(|one| *one.start <= *name);
        self.regions.get(at.checked_sub(1)?)
    }

    fn get_one(
        &self,
        name: &[u32],
        session: u32,
        timeout_millis: u64,
        sink: &mut dyn FnMut(Value<'_>),
    ) {
        match self.known.and_then(|known| known.values.get(name)) {
            Some(Some(value)) => sink(value.value()),
            Some(None) => self.is_short.set(true),
            None => self.miss(session, timeout_millis, What::Get(name.into())),
        }
    }

    fn walk_own(&self, region: &Region, after: &[u32], sink: &mut WalkSink<'_>) -> End {
        let Some(own) = self.own else {
            return End::OfRegion;
        };
        let before = (*region.start > *after)
            .then(|| oid::before(&region.start))
            .flatten();
        let mut end = End::OfRegion;
        own.walk(before.as_deref().unwrap_or(after), &mut |name, value| {
            if region.end.as_deref().is_some_and(|end| name >= end) {
                return ControlFlow::Break(());
            }
            let flow = sink(name, value);
            if flow.is_break() {
                end = End::OfWalk;
            }
            flow
        });
        if own.fell_short() {
            self.is_short.set(true);
            end = End::OfWalk;
        }
        end
    }

    fn walk_theirs(
        &self,
        region: &Region,
        session: u32,
        timeout_millis: u64,
        after: &[u32],
        sink: &mut WalkSink<'_>,
    ) -> End {
        // What begins a region is asked for by its name: subagents know it.
        let mut include = *region.start > *after;
        let mut start: Box<[u32]> = match include {
            true => region.start.clone(),
            false => after.into(),
        };
        let end = region.end.as_deref();
        let is_beyond = |name: &[u32]| end.is_some_and(|end| name >= end);
        // It goes on behind what a request before was answered.
        let mut goes_on = false;
        loop {
            let from = behind_of(&start, include);
            let known = self.known.and_then(|known| known.behind(session, &from));
            let Some((run, rows)) = known else {
                break;
            };
            goes_on |= self.rounds() == 0;
            for row in rows {
                if is_beyond(&row.name) {
                    return End::OfRegion;
                }
                if sink(&row.name, row.value.value()).is_break() {
                    return End::OfWalk;
                }
            }
            if run.failed {
                self.is_short.set(true);
                return End::OfWalk;
            }
            // Where it was asked only to an end that was nearer, more may
            // be behind that.
            let next = match &run.ended {
                Some(None) => return End::OfRegion,
                Some(Some(nearer)) if is_beyond(nearer) => return End::OfRegion,
                Some(Some(nearer)) => Some((nearer, true)),
                None => rows.last().map(|row| (&row.name, false)),
            };
            let Some((name, is_of_it)) = next else { break };
            let is_there = behind_of(name, is_of_it) == from;
            (start, include) = (name.clone(), is_of_it);
            if is_there {
                break;
            }
        }
        let rows = self.rows_to_ask(goes_on);
        let end = region.end.clone();
        let what = What::Next {
            start,
            include,
            end,
            rows,
        };
        self.miss(session, timeout_millis, what);
        End::OfWalk
    }

    fn rounds(&self) -> u32 {
        self.known.map_or(0, Known::rounds)
    }

    /// More at each round, while an answer has room; where a walk goes on, as
    /// many as there may be.
    fn rows_to_ask(&self, goes_on: bool) -> u16 {
        if goes_on {
            return MOST_ROWS as u16;
        }
        let most = FIRST_ROWS << self.rounds().min(2);
        self.rows.get().clamp(1, most.min(MOST_ROWS)) as u16
    }

    fn miss(&self, session: u32, timeout_millis: u64, what: What) {
        self.is_short.set(true);
        let mut missing = self.missing.borrow_mut();
        let is_asked = missing.iter().any(|one: &Question| one.what == what);
        if self.is_last || is_asked || missing.len() >= MAX_MISSING {
            return;
        }
        missing.push(Question {
            session,
            context: self.context.clone(),
            timeout_millis,
            what,
        });
    }
}

#[cfg(test)]
mod tests;
