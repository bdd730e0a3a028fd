//! Whose an alias port was at a time, and which ports somebody had.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use super::files;
use super::index::{By, Indexed, Key, kind};
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

/// Asks a journal about a time. A few halvings for each file; a file that is
/// still written, or has no index, is read whole.
pub fn ask(directory: &Path, asked: Asked, at_millis: u64) -> io::Result<Answer> {
    let files = files(directory)?;
    let mut answer = Answer {
        from_millis: files.first().map(|(millis, _)| *millis),
        ..Answer::default()
    };
    // What was decided: later files say more than earlier ones.
    let mut known: Vec<Record> = Vec::new();
    for (_, path) in files
        .iter()
        .rev()
        .filter(|(millis, _)| *millis <= at_millis)
    {
        let is_wanted = |record: &Record| match asked {
            Asked::Port(alias, _) => record.alias == alias || kind(record) == 0,
            Asked::Inside(inside) => record.is_of(inside) || kind(record) == 0,
        };
        let file = Indexed::open(path, &is_wanted).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        let since = started(&file, at_millis)?;
        let latest = match asked {
            Asked::Port(alias, port) => by_port(&file, alias, port, at_millis)?,
            Asked::Inside(inside) => by_inside(&file, inside, at_millis)?,
        };
        for record in latest {
            let is_known = known.iter().any(|later| is_same(later, &record));
            if !is_known && since.is_none_or(|since| record.at_millis >= since) {
                known.push(record);
            }
        }
        if since.is_some() {
            // What was before a start holds no more.
            answer.started_millis = since;
            break;
        }
        // Nor what was before the block was taken, or given back.
        let tells = |record: &Record| matches!(record.what, What::Taken | What::GivenBack);
        if matches!(asked, Asked::Port(..)) && known.iter().any(tells) {
            break;
        }
    }
    answer.found = known.into_iter().filter(Record::begins).collect();
    answer.is_cut = answer.found.len() > MOST_SESSIONS;
    answer.found.truncate(MOST_SESSIONS);
    Ok(answer)
}

/// Whether two records are about the same block or session.
fn is_same(one: &Record, other: &Record) -> bool {
    let of = |record: &Record| {
        let session = record.is_session().then_some((
            record.protocol,
            record.inside,
            record.inside_port,
            record.remote,
            record.remote_port,
        ));
        (record.alias, record.ports, session)
    };
    of(one) == of(other)
}

/// The last start or stop in a file up to a time.
fn started(file: &Indexed, at_millis: u64) -> io::Result<Option<u64>> {
    let after = file.below(By::Alias, (0, 0, 0, at_millis), true)?;
    match after.checked_sub(1) {
        Some(place) => Ok(Some(file.at(By::Alias, place)?.at_millis)),
        None => Ok(None),
    }
}

/// The latest record of each block and session that has a port, up to a time.
fn by_port(file: &Indexed, alias: Ipv4Addr, port: u16, at: u64) -> io::Result<Vec<Record>> {
    let mut found = Vec::new();
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
        note(file, By::Alias, begin..end, &mut found, |record| {
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
    note(file, By::Alias, begin..end, &mut found, |_| true)?;
    Ok(found)
}

/// The latest record of each block and session of an inside address.
fn by_inside(file: &Indexed, inside: Ipv4Addr, at: u64) -> io::Result<Vec<Record>> {
    let mut found = Vec::new();
    // A subscriber is told by its first address: of each length of a prefix
    // another one.
    for bits in (8..=32).rev() {
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let first = inside.to_bits() & mask;
        for kind in [1, 2] {
            let key = |at| -> Key { (kind, first, 0, at) };
            let begin = file.below(By::Inside, key(0), false)?;
            let end = file.below(By::Inside, key(at), true)?;
            note(file, By::Inside, begin..end, &mut found, |record| {
                record.has_ports() && record.is_of(inside)
            })?;
        }
    }
    Ok(found)
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
    found: &mut Vec<Record>,
    fits: impl Fn(&Record) -> bool,
) -> io::Result<()> {
    for place in places.rev() {
        let record = file.at(by, place)?;
        let is_new = !found.iter().any(|later| is_same(later, &record));
        if is_new && fits(&record) {
            found.push(record);
        }
        if found.len() > MOST_SESSIONS {
            break;
        }
    }
    Ok(())
}
