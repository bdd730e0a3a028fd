//! Whose an alias port was at a time, and which ports somebody had.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use super::index::{self, By, Indexed, Key, kind};
use super::{Named, files, held_of};
use crate::nat::log::record::{Record, What};

/// Sessions told of one port at most.
const MOST_SESSIONS: usize = 1_000;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Whose an alias port is.
    Port(Ipv4Addr, u16),
    /// What an inside address has.
    Inside(Ipv4Addr),
}

/// What a journal knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Of each block and session the record that says since when it was
    /// whose.
    pub found: Vec<Record>,
    /// When the journal begins, milliseconds since 1970: before that it knows
    /// nothing. `None`: it is empty.
    pub from_millis: Option<u64>,
    /// When the translation was started last before the time asked for.
    pub started_millis: Option<u64>,
    /// More sessions than are told.
    pub is_cut: bool,
}

/// Asks a journal about a time; with `u64::MAX` about its end. A few halvings
/// for each file back to where it was written down what is held; a file that
/// is still written, or has no index, is read whole. A time that came twice,
/// because the time of day was set back, is asked about in both eras.
pub fn ask(directory: &Path, asked: Asked, at_millis: u64) -> io::Result<Answer> {
    let files = files(directory)?;
    let mut answer = Answer {
        from_millis: files.iter().map(|file| file.begins).min(),
        ..Answer::default()
    };
    let mut known = HashSet::new();
    for end in passages(&files, at_millis)? {
        let of = files.get(..end).unwrap_or(&files);
        for record in passage(of, asked, at_millis, &mut answer)? {
            if known.insert((about(&record), record.inside)) {
                answer.found.push(record);
            }
        }
    }
    answer.is_cut |= answer.found.len() > MOST_SESSIONS;
    answer.found.truncate(MOST_SESSIONS);
    Ok(answer)
}

/// How many files there are each time that a time comes: those of the last
/// era that had begun before it, and of each former one that reached it.
fn passages(files: &[Named], at_millis: u64) -> io::Result<Vec<usize>> {
    let mut ends = Vec::new();
    let mut end = files.len();
    while let Some(last) = end.checked_sub(1).and_then(|at| files.get(at)) {
        let begin = files.partition_point(|file| file.era < last.era);
        let of_era = files.get(begin..end).unwrap_or_default();
        let is_newest = end == files.len();
        let reaches = is_newest || {
            let records = index::read_all(&last.path)?;
            records.iter().any(|record| record.at_millis >= at_millis)
        };
        let before = of_era.partition_point(|file| file.begins <= at_millis);
        if before > 0 && reaches {
            ends.push(begin + before);
        }
        end = begin;
    }
    Ok(ends)
}

/// What was held when a time came that is in the last of some files, or
/// behind it.
fn passage(
    files: &[Named],
    asked: Asked,
    at_millis: u64,
    answer: &mut Answer,
) -> io::Result<Vec<Record>> {
    let era = files.last().map_or(0, |file| file.era);
    let mut known = Known::default();
    for file in files.iter().rev() {
        // What an era before has is all before.
        let at = if file.era == era { at_millis } else { u64::MAX };
        let since = known.look(&file.path, asked, at)?;
        if since.is_some() {
            // What was before a start holds no more.
            answer.started_millis = answer.started_millis.max(since);
            break;
        }
        // Nor what was before the block was taken, or given back.
        if known.is_full() || matches!(asked, Asked::Port(..)) && known.has_block {
            break;
        }
        let written_down = held_of(&file.path);
        if written_down.exists() {
            known.look(&written_down, asked, u64::MAX)?;
            break;
        }
    }
    answer.is_cut |= known.is_full();
    Ok(known.held)
}

/// What a record is about: a block, or a session of one of its ports.
type About = (
    Ipv4Addr,
    (u16, u16),
    Option<(u8, Ipv4Addr, u16, Ipv4Addr, u16)>,
);

fn about(record: &Record) -> About {
    let session = record.is_session().then_some((
        record.protocol,
        record.inside,
        record.inside_port,
        record.remote,
        record.remote_port,
    ));
    (record.alias, record.ports, session)
}

/// What was decided: later records say more than earlier ones.
#[derive(Default)]
struct Known {
    /// Before that nothing holds any more.
    since: u64,
    /// Before that no session does; nor does one of a file before.
    sessions_since: u64,
    sessions_are_over: bool,
    /// Blocks and sessions of which something is known, those that ended
    /// included.
    decided: HashSet<About>,
    /// The latest record of each that is somebody's.
    held: Vec<Record>,
    /// Whether a block was seen as it was taken or given back.
    has_block: bool,
}

impl Known {
    /// Looks what a file says up to a time. When the translation began in it
    /// last, if it did.
    fn look(&mut self, path: &Path, asked: Asked, at_millis: u64) -> io::Result<Option<u64>> {
        let is_wanted = |record: &Record| match asked {
            Asked::Port(alias, _) => record.alias == alias || kind(record) == 0,
            Asked::Inside(inside) => record.is_of(inside) || kind(record) == 0,
        };
        let file = Indexed::open(path, &is_wanted).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        self.sessions_are_over |= self.sessions_since > 0;
        let since = self.begin(&file, at_millis)?;
        match asked {
            Asked::Port(alias, port) => by_port(&file, alias, port, at_millis, self)?,
            Asked::Inside(inside) => by_inside(&file, inside, at_millis, self)?,
        }
        Ok(since)
    }

    /// Looks when the translation began last in a file up to a time, and
    /// when it went on without its sessions; `None`: it did not begin there.
    fn begin(&mut self, file: &Indexed, at_millis: u64) -> io::Result<Option<u64>> {
        let after = file.below(By::Alias, (0, 0, 0, at_millis), true)?;
        for place in (0..after).rev() {
            let mark = file.at(By::Alias, place)?;
            if mark.what != What::Recovered {
                self.since = mark.at_millis;
                return Ok(Some(mark.at_millis));
            }
            self.sessions_since = self.sessions_since.max(mark.at_millis);
        }
        Ok(None)
    }

    fn note(&mut self, record: Record) {
        let is_over = self.sessions_are_over || record.at_millis < self.sessions_since;
        if record.is_session() && is_over {
            return;
        }
        if record.at_millis < self.since || !self.decided.insert(about(&record)) {
            return;
        }
        self.has_block |= matches!(record.what, What::Taken | What::GivenBack);
        if record.begins() {
            self.held.push(record);
        }
    }

    /// Whether more is held than is told.
    fn is_full(&self) -> bool {
        self.held.len() > MOST_SESSIONS
    }
}

/// The latest record of each block and session that has a port, up to a time.
fn by_port(
    file: &Indexed,
    alias: Ipv4Addr,
    port: u16,
    at: u64,
    known: &mut Known,
) -> io::Result<()> {
    let least = port.saturating_sub(file.widest);
    let mut first = port;
    // Each first port below, as long as a block from there may reach it.
    loop {
        let end = file.below(By::Alias, (1, alias.to_bits(), first, at), true)?;
        let Some(record) = before(file, By::Alias, end)? else {
            break;
        };
        if record.alias != alias || kind(&record) != 1 {
            break;
        }
        let begins = record.ports.0;
        if begins < least {
            break;
        }
        // The last of its first port: later ones stand behind the time.
        if begins < first {
            first = begins;
            continue;
        }
        // Blocks of the same first port, of several sizes perhaps.
        let begin = file.below(By::Alias, (1, alias.to_bits(), begins, 0), false)?;
        note(file, By::Alias, begin..end, known, |record| {
            record.has_ports() && (record.ports.0..=record.ports.1).contains(&port)
        })?;
        match begins.checked_sub(1) {
            Some(next) => first = next,
            None => break,
        }
    }
    let key = |at| (2, alias.to_bits(), port, at);
    let begin = file.below(By::Alias, key(0), false)?;
    let end = file.below(By::Alias, key(at), true)?;
    note(file, By::Alias, begin..end, known, |_| true)
}

/// The latest record of each block and session of an inside address, up to a
/// time.
fn by_inside(file: &Indexed, inside: Ipv4Addr, at: u64, known: &mut Known) -> io::Result<()> {
    // A subscriber is told by its first address: of each length of a prefix
    // another one. A session is told by its own.
    let blocks = (8..=32).rev().map(|bits| (1, bits));
    for (kind, bits) in blocks.chain([(2, 32)]) {
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let first = inside.to_bits() & mask;
        let key = |at| -> Key { (kind, first, 0, at) };
        let begin = file.below(By::Inside, key(0), false)?;
        let end = file.below(By::Inside, key(at), true)?;
        note(file, By::Inside, begin..end, known, |record| {
            record.has_ports() && record.is_of(inside)
        })?;
    }
    Ok(())
}

fn before(file: &Indexed, by: By, end: u32) -> io::Result<Option<Record>> {
    let place = end.checked_sub(1);
    place.map(|place| file.at(by, place)).transpose()
}

/// Takes the latest record of each block or session from some places, the
/// last ones first.
fn note(
    file: &Indexed,
    by: By,
    places: std::ops::Range<u32>,
    known: &mut Known,
    fits: impl Fn(&Record) -> bool,
) -> io::Result<()> {
    for place in places.rev() {
        let record = file.at(by, place)?;
        if fits(&record) {
            known.note(record);
        }
        if known.is_full() {
            break;
        }
    }
    Ok(())
}
