//! `-f`: the lines of a file like ethers(5), each an entry. All are read
//! before the first is made, and made in packs; one that cannot be is told,
//! and the others go on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use anyhow::Result;
use linux::{Namespace, bulk};
use netlink::decode::Operation;
use table::Neighbour;

use super::apply::System;
use super::{Entry, FAILED, Said, WRONG_WORDS, entry, failed};
use crate::arp::change::request;
use crate::foreign::failed::{Failed, reason};

/// A line may be so long, and a file have so many.
const MAX_LINE_BYTES: usize = 1024;
const MAX_LINES: usize = 4 << 20;

/// The entries of a file, and the lines that are none.
#[derive(Debug)]
pub struct Lines {
    file: String,
    entries: Vec<(usize, Entry)>,
}

fn complain(text: &str) {
    // Nobody to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

fn unread(file: &str) -> Failed {
    failed(format!("arp: cannot open etherfile {file} !"))
}

/// Opens a file, for which all rights may be needed.
pub fn open(file: &str) -> Result<File, Failed> {
    File::open(file).map_err(|_| unread(file))
}

/// Reads a file. What net-tools would leave in the middle for is refused.
pub fn read(file: &str, from: File, said: &Said) -> Result<Lines, Failed> {
    let unread = |_| unread(file);
    let mut reader = BufReader::new(from);
    let mut lines = Lines {
        file: file.to_owned(),
        entries: Vec::new(),
    };
    let mut octets = Vec::new();
    for number in 1.. {
        octets.clear();
        let mut line = (&mut reader).take(MAX_LINE_BYTES as u64 + 1);
        let read = line.read_until(b'\n', &mut octets).map_err(unread)?;
        if read == 0 {
            break;
        }
        if octets.len() > MAX_LINE_BYTES || number > MAX_LINES {
            let what = format!("{file}:{number}");
            let instead = "a line has up to 1024 octets, a file up to 4 million lines";
            return Err(Failed::not_built("arp", &what, instead));
        }
        let text = String::from_utf8_lossy(&octets);
        let text = text.trim_end_matches('\n');
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let entry = lines.entry(number, text, said)?;
        lines.entries.extend(entry.map(|entry| (number, entry)));
    }
    Ok(lines)
}

impl Lines {
    fn entry(&self, number: usize, text: &str, said: &Said) -> Result<Option<Entry>, Failed> {
        let file = &self.file;
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.len() < 2 {
            complain(&format!(
                "arp: format error on line {number} of etherfile {file} !"
            ));
            return Ok(None);
        }
        // ethers(5) has the host behind its address.
        if words.first().is_some_and(|word| word.contains(':')) {
            words.swap(0, 1);
        }
        match entry(&words, said) {
            Ok(entry) => Ok(Some(entry)),
            Err(wrong) if wrong.status == WRONG_WORDS => {
                let what = format!("{file}:{number}: {text}");
                Err(Failed::not_built("arp", &what, "a word is not known"))
            }
            Err(wrong) if wrong.status == FAILED && wrong.text.contains("not built") => Err(wrong),
            Err(wrong) => {
                complain(&wrong.text);
                self.unset(number);
                Ok(None)
            }
        }
    }

    fn unset(&self, number: usize) {
        complain(&format!(
            "arp: cannot set entry on line {number} of etherfile {} !",
            self.file
        ));
    }

    /// Makes the entries.
    pub fn apply(&self, namespace: &Namespace) -> Result<()> {
        let mut system = System::read(namespace)?;
        let mut rows: Vec<(usize, Neighbour)> = Vec::with_capacity(self.entries.len());
        for (number, entry) in &self.entries {
            match system.neighbour(entry)? {
                Ok(row) => rows.push((*number, row)),
                Err(why) => {
                    complain(&why);
                    self.unset(*number);
                }
            }
        }
        let requests = rows.iter().map(|(_, row)| request(Operation::New, row));
        bulk::apply(namespace, requests, &mut |place, result| {
            if let (Err(refusal), Some((number, _))) = (result, rows.get(place)) {
                complain(&format!("SIOCSARP: {}", reason(&refusal.source)));
                self.unset(*number);
            }
        })?;
        Ok(())
    }
}
