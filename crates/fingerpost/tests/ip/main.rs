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

mod batches;
mod fallback;
mod kinds;
mod monitor;
mod twins;
mod vlans;

use twins::table;

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

#[test]
fn odd_questions_are_answered_as_ip_answers_them() {
    let odd = include_str!("commands/odd-reading.txt");
    table("odd questions", odd, true, 350);
}

#[test]
fn odd_changes_have_the_effect_that_ip_s_have() {
    let odd = include_str!("commands/odd-changing.txt");
    table("odd changes", odd, false, 600);
}
