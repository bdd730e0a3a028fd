//! Whose each block is at a journal's end: for who goes on after a kill, and
//! for the next file.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::path::Path;

use super::{Named, files, held_of, index};
use crate::nat::log::record::{Record, What};

/// An alias address, first and last port.
type Block = (Ipv4Addr, (u16, u16));

/// What is held, as records come.
#[derive(Debug, Default)]
pub struct Held {
    /// For each block the record that says since when.
    pub blocks: HashMap<Block, Record>,
    /// Whether there were sessions since the translation began: those are not
    /// followed.
    pub has_sessions: bool,
}

impl Held {
    /// The next record in order.
    pub fn note(&mut self, record: &Record) {
        let block = (record.alias, record.ports);
        match record.what {
            What::Started | What::Stopped => *self = Self::default(),
            What::Recovered => self.has_sessions = false,
            What::SessionMade | What::SessionEnded => self.has_sessions = true,
            // A block that is told again is held since it was taken.
            What::Taken => drop(self.blocks.insert(block, *record)),
            What::Held => drop(self.blocks.entry(block).or_insert(*record)),
            What::GivenBack => drop(self.blocks.remove(&block)),
            What::Exhausted | What::Quota(_) | What::Suspended | What::Resumed => {}
        }
    }
}

/// The last record of a journal; `None`: there is none.
pub fn last(directory: &Path) -> io::Result<Option<Record>> {
    for Named { path, .. } in all(directory)?.iter().rev() {
        if let Some(record) = index::tail(path)?.last() {
            return Ok(Some(*record));
        }
        // None there that is whole: one before may be.
        if let Some(record) = index::read_all(path)?.last() {
            return Ok(Some(*record));
        }
    }
    Ok(None)
}

/// What is held at its end, for who goes on writing: where the last records
/// are of sessions it is not followed, and not looked for.
pub fn followed(directory: &Path) -> io::Result<Held> {
    let last = all(directory)?.pop();
    let tail = last.map(|Named { path, .. }| index::tail(&path));
    for record in tail.transpose()?.unwrap_or_default().iter().rev() {
        match record.what {
            What::Started | What::Stopped | What::Recovered => break,
            _ if record.is_session() => {
                return Ok(Held {
                    has_sessions: true,
                    ..Held::default()
                });
            }
            _ => {}
        }
    }
    held(directory)
}

/// The blocks that somebody has at its end. Files are read from the last one
/// back to the last start, or to where it was written down what is held.
pub fn held(directory: &Path) -> io::Result<Held> {
    let mut decided = HashSet::new();
    let mut held = Held::default();
    let mut sessions_are_over = false;
    for Named { path, .. } in all(directory)?.iter().rev() {
        let at =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        for record in index::read_all(path).map_err(at)?.iter().rev() {
            match record.what {
                What::Started | What::Stopped => return Ok(held),
                What::Recovered => sessions_are_over = true,
                _ if record.is_session() => held.has_sessions |= !sessions_are_over,
                _ if record.has_ports() => {
                    let block = (record.alias, record.ports);
                    if decided.insert(block) && record.begins() {
                        held.blocks.insert(block, *record);
                    }
                }
                _ => {}
            }
        }
        let written_down = held_of(path);
        if written_down.exists() {
            for record in index::read_all(&written_down).map_err(at)? {
                let block = (record.alias, record.ports);
                if decided.insert(block) {
                    held.blocks.insert(block, record);
                }
            }
            return Ok(held);
        }
    }
    Ok(held)
}

fn all(directory: &Path) -> io::Result<Vec<Named>> {
    match files(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}
