//! `fingerpost addr|route|neigh|rule|nexthop add|replace|change|delete`:
//! one, by pattern, or a million from a file, by the process that asks and
//! with its rights; no daemon takes part.
//!
//! Every way ends in lines of `ip`'s words (`source`); a line becomes a
//! row, the row a message, and messages go out in packs
//! ([`linux::bulk`]). Nothing is kept of a line that is done, but what
//! `--atomic` asks for (`undo`).

mod apply;
pub mod command;
mod lookup;
mod report;
mod request;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod undo;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail};
use ipnet::IpNet;
use linux::Namespace;
use netlink::decode::Item;
use signal_hook::consts::{SIGINT, SIGTERM};
use words::{Context, Object, ParseError, Verb, Words};

use crate::pattern::{self, Numbers};

use source::{Source, Split};

/// What is to be changed.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// `ip`'s words.
    pub words: Vec<String>,
    /// Lines from here; `-`: standard input.
    pub file: Option<PathBuf>,
    /// Numbers for the pattern.
    pub numbers: Option<Numbers>,
    /// A prefix whose parts' first addresses are meant, and their length.
    pub split: Option<(IpNet, u8)>,
    /// The link of these.
    pub dev: Option<String>,
    /// A namespace other than the own.
    pub netns: Option<String>,
    /// `AF_INET` or `AF_INET6` where the words do not say it.
    pub family: Option<u8>,
    /// All or nothing.
    pub atomic: bool,
    /// It stops after so many failures.
    pub max_errors: Option<u64>,
    /// The result as JSON.
    pub json: bool,
}

/// Makes the change. Exit status 1 if any part of it was not made.
pub fn run(object: Object, verb: Verb, change: &Change) -> Result<ExitCode> {
    let namespace = match &change.netns {
        Some(spec) => Namespace::open(spec)?,
        None => Namespace::current()?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("catching signals")?;
    }
    let (source, len) = source(object, change, &stop)?;
    let job = apply::Job {
        object,
        verb,
        change,
        namespace: &namespace,
        stop: &stop,
    };
    apply::run(&job, source, len)
}

fn source(
    object: Object,
    change: &Change,
    stop: &Arc<AtomicBool>,
) -> Result<(Source, Option<u64>)> {
    let words = change.words.join(" ");
    if let Some(path) = &change.file {
        if !words.is_empty() {
            bail!("`{words}`: the words come from the file; nothing may be said beside --file");
        }
        return Source::file(path, object, stop);
    }
    if let Some((prefix, len)) = change.split {
        let link = match &change.dev {
            Some(link) => format!("dev {link} {words}"),
            None => words,
        };
        return Ok((Source::Split(Split::new(prefix, len, link)?), None));
    }
    let source = match &change.numbers {
        Some(numbers) if pattern::is_pattern(&words) => Source::Pattern {
            pattern: words,
            numbers: numbers.clone(),
        },
        Some(_) => bail!("`{words}`: with -n a place for the number is wanted, like 10.0.{{}}.1"),
        None => Source::Once(Some(words)),
    };
    Ok((source, None))
}

/// A line that has been read.
struct Asked {
    verb: Verb,
    item: Item,
    /// Of a rule: whether its priority was said.
    is_placed: bool,
}

/// Reads a line: `ip`'s words after the verb, or the whole of `ip`'s line
/// (`-6 route add …`), whose object and verb then count.
fn read(
    line: &str,
    object: Object,
    verb: Verb,
    context: &mut Context<'_>,
) -> Result<Asked, ParseError> {
    let (object, verb, family, line) = head(line, object, verb)?;
    let usual = (context.verb, context.family);
    context.verb = verb;
    context.family = family.or(context.family);
    let read = row(line, object, context);
    (context.verb, context.family) = usual;
    let (item, is_placed) = read?;
    Ok(Asked {
        verb,
        item,
        is_placed,
    })
}

fn row(line: &str, object: Object, context: &mut Context<'_>) -> Result<(Item, bool), ParseError> {
    let item = match object {
        Object::Addr => Item::Address(words::address(line, context)?),
        Object::Route => Item::Route(words::route(line, context)?),
        Object::Neigh => Item::Neighbour(words::neighbour(line, context)?),
        Object::Nexthop => Item::Nexthop(words::nexthop(line, context)?),
        Object::Rule => {
            let asked = words::rule(line, context)?;
            return Ok((Item::Rule(asked.rule), asked.is_placed));
        }
        Object::Link | Object::Fdb => {
            return Err("links are changed by `fingerpost link`".to_owned());
        }
    };
    Ok((item, true))
}

/// Object, verb and family that a line of `ip -batch` begins with; what
/// follows them.
fn head(
    line: &str,
    object: Object,
    verb: Verb,
) -> Result<(Object, Verb, Option<u8>, &str), ParseError> {
    let mut words = Words::new(line);
    let mut family = None;
    let mut rest = line;
    while let Some(option) = words.peek().filter(|word| word.starts_with('-')) {
        words.next();
        family = match option {
            "-4" => Some(table::AF_INET),
            "-6" => Some(table::AF_INET6),
            _ => {
                return Err(format!(
                    "`{option}` is not understood at the start of a line"
                ));
            }
        };
        rest = words.rest();
    }
    // No row begins with a letter that one of these does, but for a route's
    // type and `default`, which are no objects.
    let Some(named) = words.next().and_then(object_named) else {
        return Ok((object, verb, family, rest));
    };
    let Some(told) = words.next() else {
        return Ok((object, verb, family, rest));
    };
    match Verb::meant(named, told) {
        Some(verb) => Ok((named, verb, family, words.rest())),
        None if named == object => Ok((object, verb, family, rest)),
        None => Err(format!("`{told}` is no change that is made here")),
    }
}

fn object_named(word: &str) -> Option<Object> {
    Some(match word {
        "route" | "ro" | "r" => Object::Route,
        "addr" | "address" | "a" => Object::Addr,
        "neigh" | "neighbor" | "neighbour" | "n" => Object::Neigh,
        "rule" | "ru" => Object::Rule,
        "nexthop" => Object::Nexthop,
        "link" | "l" => Object::Link,
        _ => return None,
    })
}
