//! Whose each block is at a journal's end: for who goes on after a kill.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::{files, index};
use crate::nat::log::record::{Record, What};

/// The last record of a journal; `None`: there is none.
pub fn last(directory: &Path) -> io::Result<Option<Record>> {
    for path in all(directory)?.iter().rev() {
        if let Some(record) = index::read_all(path)?.last() {
            return Ok(Some(*record));
        }
    }
    Ok(None)
}

/// The blocks that somebody has at its end: for each the record that says
/// since when. Files are read from the last one back to the last start.
pub fn held(directory: &Path) -> io::Result<Vec<Record>> {
    let mut decided = HashSet::new();
    let mut held = Vec::new();
    for path in all(directory)?.iter().rev() {
        let records = index::read_all(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        for record in records.iter().rev() {
            if matches!(record.what, What::Started | What::Stopped) {
                return Ok(held);
            }
            if record.is_session() || !record.has_ports() {
                continue;
            }
            if decided.insert((record.alias, record.ports)) && record.begins() {
                held.push(*record);
            }
        }
    }
    Ok(held)
}

fn all(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    match files(directory) {
        Ok(files) => Ok(files.into_iter().map(|(_, path)| path).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
