//! `fingerpost ip` and `fingerpost bridge` beside iproute2: tables of
//! commands (`commands/*.txt`), each run by both in namespaces that are alike.
//! Same standard output, same exit status, same effect; or refused by name,
//! which the table says with a leading `- `. Anything else is a failure.
//!
//! A line `@ …` begins anew, with what the situation's `ip -batch` lines
//! make (`;` between); `#` is a comment; `… < a; b` gives standard input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "in a test a panic is the failure, also outside of the test's own function"
)]

#[path = "../common/mod.rs"]
mod common;

mod fallback;
mod kinds;
mod monitor;
mod twins;

use twins::{Outcome, Twins};

/// Runs a table; all its failures are told at once.
fn table(name: &str, text: &str, asks: bool, least: usize) {
    let Some(mut twins) = Twins::new() else {
        return;
    };
    let (mut alike, mut refused, mut said) = (0, 0, 0);
    let mut failures = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(situation) = line.strip_prefix('@') {
            twins.begin(situation);
            continue;
        }
        let (marked, command) = match line.strip_prefix("- ") {
            Some(command) => (true, command),
            None => (false, line),
        };
        let place = number + 1;
        match (twins.run(command, asks), marked) {
            (Outcome::Alike { same_message }, false) => {
                alike += 1;
                said += usize::from(same_message);
            }
            (Outcome::Refused, true) => refused += 1,
            (Outcome::Alike { .. }, true) => {
                failures.push(format!(
                    "{place}: {command}\n  is built: take its mark away"
                ));
            }
            (Outcome::Refused, false) => {
                failures.push(format!("{place}: {command}\n  is refused, and not marked"));
            }
            (Outcome::Different(how), _) => failures.push(format!("{place}: {command}\n{how}")),
        }
    }
    eprintln!(
        "{name}: {alike} alike ({said} with the same message), {refused} refused by name, {} \
         different",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(alike >= least, "{name}: {alike} commands of {least}");
}

#[test]
fn questions_are_answered_as_ip_answers_them() {
    table("reading", include_str!("commands/reading.txt"), true, 350);
}

#[test]
fn changes_have_the_effect_that_ip_s_have() {
    table(
        "changing",
        include_str!("commands/changing.txt"),
        false,
        470,
    );
}

#[test]
fn scripts_do_not_notice() {
    table("scripts", include_str!("commands/scripts.txt"), false, 350);
}
