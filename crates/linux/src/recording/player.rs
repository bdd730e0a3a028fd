//! The mirrors' machines, fed by the records of a recording.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use netlink::message::{kind, messages};
use table::{Feeders, Limits, Phase, SourceState, TableFull, Writer};

use super::format::{BadRecord, Input, Outcome, Purpose, Record, Which};
use super::reader::Head;
use super::replayed::Replayed;
use crate::dump::SEQUENCE;
use crate::mirror::ip_statistics::Texts;
use crate::mirror::machine::{Applied, Found, Machine, Refused};

/// Namespaces of a recording at most; the records of more are passed over.
const MAX_NAMESPACES: usize = 16_384;
/// Records after which readers see what came of them.
const BATCH: usize = 256;

/// Replays recordings: one machine for each namespace, the same as behind
/// a living mirror, fed by records instead of by the kernel.
#[derive(Debug)]
pub struct Player {
    limits: Limits,
    played: Vec<Played>,
    /// Which namespace a number of the part at hand means.
    numbers: BTreeMap<u32, usize>,
    /// The number and the place that the last record had.
    last: Option<(u32, usize)>,
    head: Option<Head>,
    unpublished: usize,
    progress: Progress,
    new: Vec<(String, Replayed)>,
}

/// A namespace that is replayed.
#[derive(Debug)]
struct Played {
    inode: u64,
    name: String,
    machine: Machine,
    state: Arc<SourceState>,
    purpose: Purpose,
    which: Which,
    applied: Applied,
    is_touched: bool,
}

/// How far a replay is, and what it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Records replayed.
    pub records: u64,
    /// Netlink messages among them: rows of listings and events.
    pub messages: u64,
    /// Time of the first record, microseconds since the UNIX epoch.
    pub first_micros: u64,
    /// Time of the newest.
    pub newest_micros: u64,
    /// Gaps in the recording, and parts that are missing.
    pub gaps: u64,
    /// Records that are missing, as far as the recorder counted them.
    pub lost: u64,
    /// Records of a kind that a later release has.
    pub unknown: u64,
}

impl Player {
    /// Nothing replayed yet; tables may have so many rows.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            played: Vec::new(),
            numbers: BTreeMap::new(),
            last: None,
            head: None,
            unpublished: 0,
            progress: Progress::default(),
            new: Vec::new(),
        }
    }

    /// A file begins. The part after the last one goes on where that
    /// ended, and so it says; anything else leaves a gap that its first
    /// listing closes.
    pub fn begin(&mut self, head: Head) -> bool {
        let follows = |last: Head| last.run_micros == head.run_micros && last.part + 1 == head.part;
        let is_next = self.head.is_some_and(follows);
        if !is_next && self.head.is_some() {
            self.progress.gaps += 1;
            self.played.iter_mut().for_each(|one| one.machine.gap());
        }
        self.head = Some(head);
        self.numbers.clear();
        self.last = None;
        is_next
    }

    /// Where feeds join whose rows stand beside a namespace's, by its number
    /// in the part at hand.
    pub fn feeders(&mut self, namespace: u32) -> Option<Feeders> {
        let at = self.numbers.get(&namespace)?;
        let one = self.played.get_mut(*at)?;
        Some(one.machine.writer().feeders())
    }

    /// The number that a namespace has in the part at hand, by its inode and
    /// its name.
    pub fn number_of(&self, inode: u64, name: &str) -> Option<u32> {
        let is_it = |one: &Played| one.inode == inode && one.name == name;
        let mut numbers = self.numbers.iter();
        let found = numbers.find(|(_, at)| self.played.get(**at).is_some_and(is_it));
        found.map(|(number, _)| *number)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The namespaces that came since this was last called: how each was
    /// named (empty: the daemon's own), and its tables.
    pub fn take_new(&mut self) -> Vec<(String, Replayed)> {
        std::mem::take(&mut self.new)
    }

    /// Namespaces whose tables are not whole: no listing of them since a
    /// gap, or since the recording's beginning.
    pub fn incomplete(&self) -> usize {
        let is_incomplete = |one: &&Played| !one.machine.is_whole();
        self.played.iter().filter(is_incomplete).count()
    }

    /// Feeds a record in. Costs what the mirror's own work costs.
    pub fn take(&mut self, record: &Record<'_>) -> Result<(), BadRecord> {
        let input = record.input()?;
        let progress = &mut self.progress;
        progress.records += 1;
        if progress.first_micros == 0 {
            progress.first_micros = record.at_micros;
        }
        progress.newest_micros = progress.newest_micros.max(record.at_micros);
        match input {
            Input::Namespace { inode, name } => {
                self.namespace(record.namespace, inode, name);
                return Ok(());
            }
            Input::Unknown(_) => {
                progress.unknown += 1;
                return Ok(());
            }
            // For who replays feeds; for who looks how far a history reaches.
            Input::Feed { .. } | Input::FeedHeard(_) | Input::FeedState { .. } | Input::Alive => {
                return Ok(());
            }
            Input::Gap { records, .. } => {
                progress.gaps += 1;
                progress.lost += records;
            }
            _ => {}
        }
        let at = match self.last {
            Some((number, at)) if number == record.namespace => Some(at),
            _ => self.numbers.get(&record.namespace).copied(),
        };
        // A record whose namespace was lost in a gap, or had no place.
        let Some((at, one)) = at.and_then(|at| Some((at, self.played.get_mut(at)?))) else {
            return Ok(());
        };
        self.last = Some((record.namespace, at));
        self.progress.messages += one.take(input, record.at_micros);
        self.unpublished += 1;
        if self.unpublished >= BATCH {
            self.publish();
        }
        Ok(())
    }

    /// Time has come so far, though no record says so: what lifetimes are
    /// left is reckoned from it.
    pub fn reach(&mut self, at_micros: u64) {
        let newest = &mut self.progress.newest_micros;
        *newest = at_micros.max(*newest);
    }

    /// Lets readers see what came of the records so far.
    pub fn publish(&mut self) {
        self.unpublished = 0;
        let newest = self.progress.newest_micros;
        for one in &mut self.played {
            one.state.set_clock(newest);
            if std::mem::take(&mut one.is_touched) {
                one.publish();
            }
        }
    }

    fn namespace(&mut self, number: u32, inode: u64, name: &str) {
        let mut all = self.played.iter();
        let known = all.position(|one| one.inode == inode && one.name == name);
        let at = known.unwrap_or(self.played.len());
        if known.is_none() {
            if at >= MAX_NAMESPACES {
                return;
            }
            let writer = Writer::new(self.limits);
            let reader = writer.reader();
            let state = Arc::new(SourceState::default());
            let replayed = Replayed::new(inode, reader, Arc::clone(&state));
            self.new.push((name.to_owned(), replayed));
            self.played.push(Played {
                inode,
                name: name.to_owned(),
                machine: Machine::new(writer, self.limits),
                state,
                purpose: Purpose::Load,
                which: Which::All,
                applied: Applied::default(),
                is_touched: false,
            });
        }
        self.numbers.insert(number, at);
        self.last = None;
    }
}

impl Played {
    /// Feeds an input in; gives the number of netlink messages in it.
    fn take(&mut self, input: Input<'_>, at_micros: u64) -> u64 {
        let now_millis = at_micros / 1000;
        let machine = &mut self.machine;
        self.is_touched = true;
        match input {
            Input::Event(datagram) => {
                let before = self.applied.events;
                let applied = machine.event(datagram, now_millis);
                self.note(applied);
                return self.applied.events - before;
            }
            Input::Answer(datagram) => return self.answer(datagram),
            Input::Begin(purpose, which) => {
                (self.purpose, self.which) = (purpose, which);
                machine.begin(purpose, which);
            }
            Input::Request(_) => machine.request(now_millis),
            Input::Listed(Outcome::Void) => machine.fail(),
            Input::Listed(Outcome::Listed(listed)) => {
                let found = machine.end(&listed, now_millis);
                self.listed(found, listed.interrupted, now_millis);
            }
            Input::Overrun => {
                machine.overrun();
                self.state.update(|status| {
                    status.overruns += 1;
                    status.phase = Phase::Resyncing;
                });
            }
            Input::Speeds(known) => machine.speeds(known, now_millis),
            Input::Ip(texts) => machine.ip(&Texts(texts.map(str::to_owned)), now_millis),
            Input::Ended(why) => self
                .state
                .update(|status| status.phase = Phase::Ended(why.to_owned())),
            Input::Gap { .. } => machine.gap(),
            Input::Counters { of_all, links } => {
                machine.counted_again(of_all, links, now_millis);
            }
            Input::Alive
            | Input::Namespace { .. }
            | Input::Feed { .. }
            | Input::FeedHeard(_)
            | Input::FeedState { .. }
            | Input::Unknown(_) => {}
        }
        0
    }

    fn answer(&mut self, datagram: &[u8]) -> u64 {
        let mut rows = 0;
        for message in messages(datagram) {
            let Ok(message) = message else {
                self.applied.malformed += 1;
                break;
            };
            if message.sequence != SEQUENCE {
                continue;
            }
            if matches!(message.kind, kind::DONE | kind::ERROR) {
                break;
            }
            rows += 1;
            // The mirror that recorded it gave the listing up at such a
            // message, and said so in its next record.
            self.applied.malformed += u64::from(self.machine.row(&message).is_err());
        }
        rows
    }

    fn note(&mut self, applied: Applied) {
        self.applied.events += applied.events;
        self.applied.malformed += applied.malformed;
        self.applied.full = applied.full.or(self.applied.full.take());
        self.refused(&applied.refused);
    }

    fn refused(&self, refused: &Refused) {
        let incomplete = self.machine.incomplete().clone();
        self.state.update(|status| {
            status.incomplete = incomplete;
            for (table, rows) in refused {
                *status.refused.entry(table).or_default() += rows;
            }
        });
    }

    fn listed(&mut self, found: Found, interrupted: u64, now_millis: u64) {
        self.note(found.applied);
        self.refused(&found.refused);
        let full = found.full.as_ref().map(TableFull::to_string);
        let (purpose, which) = (self.purpose, self.which);
        self.state.update(|status| {
            status.interrupted_dumps += interrupted;
            status.full = full.or(status.full.take());
            match purpose {
                Purpose::Load => {}
                Purpose::Resync => status.resyncs += 1,
                Purpose::Scan => {
                    status.scans += 1;
                    status.last_scan_millis = now_millis;
                    status.last_scan = Some(Instant::now());
                    status.last_scan_drift = found.drift as u64;
                }
                Purpose::Sample => return,
            }
            if which == Which::All {
                status.phase = Phase::Live;
            }
            if found.drift > 0 {
                status.drift += found.drift as u64;
                status.drift_examples = found.examples;
            }
        });
    }

    fn publish(&mut self) {
        self.machine.writer().publish();
        let applied = std::mem::take(&mut self.applied);
        let has_gap = !self.machine.is_whole();
        self.state.update(|status| {
            status.has_gap = has_gap;
            status.events += applied.events;
            status.malformed += applied.malformed;
            if let Some(full) = &applied.full {
                status.full = Some(full.to_string());
            }
        });
    }
}
