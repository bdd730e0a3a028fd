//! `-f FILE`: many entries in few system calls.
//!
//! A line that cannot be applied does not stop the others; each is named
//! with its number, its text and the reason.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use linux::{Namespace, bulk};
use netlink::decode::Operation;
use table::Neighbour;

use super::arguments::{self, Set, Wanted};
use super::change::{System, explained, request};
use crate::direct::rows::Rows;
use crate::foreign::host;

/// A file may be so long: several million lines.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The bar is drawn anew after so many lines.
const BAR_STEP: usize = 512;

/// Applies the lines of a file's text ([`read`]). Gives `false` when some
/// were not.
pub fn run(
    path: &Option<PathBuf>,
    text: &str,
    wanted: &Wanted,
    namespace: &Namespace,
) -> Result<bool> {
    let name = path.as_ref().map_or_else(
        || "standard input".into(),
        |path| path.display().to_string(),
    );
    let system = System::read(&Rows::new(namespace)?, wanted)?;
    let mut failures = Vec::new();
    let lines = parse(text, &mut failures);
    let total = lines.len() + failures.len();
    let addresses = resolve(&lines, wanted);
    let entries = entries(&lines, &addresses, &system, &mut failures);
    let is_permitted = apply(namespace, &entries, &mut failures)?;
    if !is_permitted {
        bail!("only root (CAP_NET_ADMIN) may change the kernel's ARP table; nothing was changed");
    }
    report(&name, total, failures)
}

/// A line with an entry.
struct Line<'a> {
    number: usize,
    text: &'a str,
    set: Set,
}

/// A line that could not be applied.
struct Failure<'a> {
    number: usize,
    text: &'a str,
    why: String,
}

/// Reads a file whole, or standard input.
pub fn read(path: Option<&Path>) -> Result<String> {
    let mut text = String::new();
    let (len, name) = match path {
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| name.clone())?;
            let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
            (read.with_context(|| name.clone())?, name)
        }
        None => {
            let stdin = io::stdin().lock();
            let read = stdin.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
            (read.context("standard input")?, "standard input".into())
        }
    };
    if len as u64 > MAX_FILE_BYTES {
        bail!("{name}: longer than {MAX_FILE_BYTES} bytes; split it");
    }
    Ok(text)
}

fn parse<'a>(text: &'a str, failures: &mut Vec<Failure<'a>>) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let number = index + 1;
        let content = text.split_once('#').map_or(text, |(content, _)| content);
        let words: Vec<&str> = content.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        match arguments::set(&words, false) {
            Ok(set) => lines.push(Line { number, text, set }),
            Err(why) => failures.push(Failure { number, text, why }),
        }
    }
    lines
}

/// The addresses of the hosts that are given by name.
fn resolve(lines: &[Line<'_>], wanted: &Wanted) -> HashMap<Box<str>, Ipv4Addr> {
    let names: HashSet<&str> = lines
        .iter()
        .map(|line| line.set.host.as_str())
        .filter(|host| host.parse::<Ipv4Addr>().is_err())
        .collect();
    let names = names.into_iter().map(Box::from).collect();
    host::ask_all(names, wanted.patience, |host| host::address_of(host))
}

fn entries<'a>(
    lines: &[Line<'a>],
    addresses: &HashMap<Box<str>, Ipv4Addr>,
    system: &System,
    failures: &mut Vec<Failure<'a>>,
) -> Vec<(usize, &'a str, Neighbour)> {
    let mut entries = Vec::with_capacity(lines.len());
    for Line { number, text, set } in lines {
        let address = match set.host.parse() {
            Ok(address) => Ok(address),
            Err(_) => addresses
                .get(set.host.as_str())
                .copied()
                .ok_or_else(|| format!("no host of the name `{}` has an IPv4 address", set.host)),
        };
        match address.and_then(|address| system.neighbour(set, address)) {
            Ok(neighbour) => entries.push((*number, *text, neighbour)),
            Err(why) => failures.push(Failure {
                number: *number,
                text,
                why,
            }),
        }
    }
    entries
}

/// Applies all; gives `false` if the kernel lets this user change nothing.
fn apply<'a>(
    namespace: &Namespace,
    entries: &[(usize, &'a str, Neighbour)],
    failures: &mut Vec<Failure<'a>>,
) -> Result<bool> {
    let bar = bar(entries.len());
    let mut denied = 0;
    let requests = entries
        .iter()
        .map(|(_, _, neighbour)| request(Operation::New, neighbour));
    bulk::apply(namespace, requests, &mut |place, result| {
        if place % BAR_STEP == 0 {
            bar.set_position(place as u64);
        }
        let (Err(refusal), Some((number, text, _))) = (result, entries.get(place)) else {
            return;
        };
        denied += usize::from(refusal.source.kind() == ErrorKind::PermissionDenied);
        failures.push(Failure {
            number: *number,
            text,
            why: explained(&refusal),
        });
    })?;
    bar.finish_and_clear();
    Ok(entries.is_empty() || denied < entries.len())
}

/// A bar on a terminal, nothing elsewhere.
fn bar(len: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(len as u64);
    match ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} entries, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn report(name: &str, total: usize, mut failures: Vec<Failure<'_>>) -> Result<bool> {
    if failures.is_empty() {
        return Ok(true);
    }
    failures.sort_by_key(|failure| failure.number);
    let mut out = io::BufWriter::new(io::stderr().lock());
    for Failure { number, text, why } in &failures {
        writeln!(out, "arp: {name}:{number}: {why}: {}", text.trim())?;
    }
    let failed = failures.len();
    let done = total - failed;
    writeln!(
        out,
        "arp: {name}: {failed} of {total} entries failed, {done} are made"
    )?;
    out.flush()?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_none_and_bad_lines_are_told() {
        let text = "# ethers\n\n10.0.0.1 2:0:0:0:0:1 temp # a host\n10.0.0.2\n\
                    10.0.0.3 2:0:0:0:0:3 reject\n  \n10.0.0.4\t2:0:0:0:0:4 pub\n";
        let mut failures = Vec::new();
        let lines = parse(text, &mut failures);
        let made: Vec<_> = lines
            .iter()
            .map(|line| (line.number, &*line.set.host))
            .collect();
        assert_eq!(made, [(3, "10.0.0.1"), (7, "10.0.0.4")]);
        assert!(lines[0].set.temporary && lines[1].set.published);
        let failed: Vec<_> = failures.iter().map(|failure| failure.number).collect();
        assert_eq!(failed, [4, 5]);
        assert!(failures[1].why.contains("reject"));
    }
}
