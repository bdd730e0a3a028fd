//! Recordings: made from real namespaces, replayed to the same tables, and
//! what goes wrong on the way.
//!
//! The expected tables come from the kernel's own `ip -j`, never from us.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

#[path = "../common/mod.rs"]
mod common;

mod collected;
mod kept;
mod live;
mod past;
mod trouble;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use common::{OBJECTS, fingerpost, program, said};
use lab::Netns;
use serde_json::Value;

/// What a namespace's tables hold: for each object, `ip -j`'s rows.
type Tables = BTreeMap<String, Vec<Value>>;

/// The listings that are compared, and how ip is asked for them: the FDB
/// has a program of its own.
const LISTINGS: [(&str, &[&str]); 8] = [
    ("link", &["ip", "-j", "link", "show"]),
    ("addr", &["ip", "-j", "addr", "show"]),
    ("neigh", &["ip", "-j", "neigh", "show"]),
    (
        "route -4",
        &["ip", "-j", "-4", "route", "show", "table", "all"],
    ),
    (
        "route -6",
        &["ip", "-j", "-6", "route", "show", "table", "all"],
    ),
    ("nexthop", &["ip", "-j", "nexthop", "show"]),
    ("rule", &["ip", "-j", "rule", "show"]),
    ("fdb", &["bridge", "-j", "fdb", "show"]),
];

/// How we are asked for the same.
fn question(listing: &str) -> Vec<&str> {
    let mut words: Vec<&str> = listing.split(' ').collect();
    words.push("--json");
    if words[0] == "route" {
        words.extend(["--table", "all"]);
    }
    words
}

/// The rows of a JSON listing, in an order of their own, without what the
/// kernel counts or lets pass between two looks: the ages of rows, and the
/// state of what nobody configured.
fn rows(json: &str) -> Vec<Value> {
    let mut rows: Vec<Value> = if json.trim().is_empty() {
        Vec::new()
    } else {
        serde_json::from_str(json).unwrap()
    };
    rows.iter_mut().for_each(strip);
    rows.sort_by_key(Value::to_string);
    rows
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in PASSING {
                fields.remove(*name);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        _ => {}
    }
}

/// A bridge's and a tunnel's timers, and lifetimes that run down.
const PASSING: &[&str] = &[
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "gc_timer",
    "hold_timer",
    "message_age_timer",
    "forward_delay_timer",
    "valid_life_time",
    "preferred_life_time",
    "expires",
];

/// What the kernel says that a namespace holds.
fn kernel(netns: &Netns) -> Tables {
    let listed = LISTINGS.map(|(listing, words)| {
        let text = netns.run(words[0], &words[1..]).unwrap();
        (listing.to_owned(), rows(&text))
    });
    listed.into()
}

/// What the daemon of a namespace says.
fn daemon(netns: &Netns) -> Tables {
    let listed = LISTINGS.map(|(listing, _)| {
        let text = said(fingerpost(netns, &question(listing)));
        (listing.to_owned(), rows(&text))
    });
    listed.into()
}

/// Runs a replay for one question, without privileges.
fn replay(files: &[&Path], arguments: &[&str], question: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("replay").args(files).args(arguments);
    command.arg("--").args(question);
    command.output().unwrap()
}

/// What a replay says that a recording holds.
fn replayed(files: &[&Path], arguments: &[&str]) -> Tables {
    let listed = LISTINGS.map(|(listing, _)| {
        let text = said(replay(files, arguments, &question(listing)));
        (listing.to_owned(), rows(&text))
    });
    listed.into()
}

/// Fails with the rows that differ, not with a million that do not.
fn assert_same(found: &Tables, expected: &Tables) {
    for (listing, expected) in expected {
        let found = found.get(listing).map_or(&[][..], Vec::as_slice);
        let missing: Vec<_> = expected.iter().filter(|row| !found.contains(row)).collect();
        let extra: Vec<_> = found.iter().filter(|row| !expected.contains(row)).collect();
        assert!(
            missing.is_empty() && extra.is_empty() && found.len() == expected.len(),
            "{listing}: missing {missing:#?}\nextra {extra:#?}"
        );
    }
    assert_eq!(OBJECTS.len(), 7, "a new table wants a listing here");
}
