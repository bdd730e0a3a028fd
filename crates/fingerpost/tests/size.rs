//! At the size of the reports: the same bytes as `ip -j` straight from the
//! kernel, the same rows from the daemon.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod common;

use common::{Daemon, at_rest, says};
use lab::situation::routes::Family;
use lab::{Netns, situation};

const NEIGHBOURS: usize = 100_000;
const ROUTES: usize = 1_000_000;
const V6_ROUTES: usize = 100_000;

/// The tables of `ip`, with its family flag.
const LISTINGS: [&[&str]; 9] = [
    &["link"],
    &["addr"],
    &["neigh"],
    &["route"],
    &["-6", "route"],
    &["-4", "neigh"],
    &["nexthop"],
    &["rule"],
    &["-6", "rule"],
];

#[test]
fn aliases_and_neighbours_of_the_first_report() {
    let Some(netns) = at_rest("report") else {
        return;
    };
    situation::aliases::build(&netns, NEIGHBOURS).unwrap();
    assert!(count(&netns, &["neigh"]) >= NEIGHBOURS);
    assert!(count(&netns, &["addr"]) >= 4_096);
    compare(&netns, &LISTINGS);
}

#[test]
fn a_million_routes() {
    let Some(netns) = at_rest("million") else {
        return;
    };
    situation::routes::build(&netns, Family::V4, ROUTES).unwrap();
    assert!(count(&netns, &["route"]) >= ROUTES);
    compare(&netns, &[&["route"]]);
}

#[test]
fn a_hundred_thousand_v6_routes() {
    let Some(netns) = at_rest("six") else {
        return;
    };
    situation::routes::build(&netns, Family::V6, V6_ROUTES).unwrap();
    assert!(count(&netns, &["-6", "route"]) >= V6_ROUTES);
    compare(&netns, &[&["-6", "route"], &["route"]]);
}

fn count(netns: &Netns, listing: &[&str]) -> usize {
    let counted = says(netns, &[listing, &["--direct", "--count"]].concat());
    counted.trim().parse().unwrap()
}

fn compare(netns: &Netns, listings: &[&[&str]]) {
    for listing in listings {
        let theirs = netns.ip(&[&["-j"], *listing].concat()).unwrap();
        let ours = says(netns, &[*listing, &["--json", "--direct"]].concat());
        // The whole is too much to print.
        assert!(
            ours.trim_end() == theirs.trim_end(),
            "{listing:?}: {}",
            first_difference(&ours, &theirs)
        );
    }
    let _daemon = Daemon::up(netns, &[]);
    for listing in listings {
        let theirs = netns.ip(&[&["-j"], *listing].concat()).unwrap();
        let ours = says(netns, &[*listing, &["--json"]].concat());
        let (mut ours, mut theirs) = (rows(&ours), rows(&theirs));
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours.len(), theirs.len(), "{listing:?}");
        let other = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        assert_eq!(other, None, "{listing:?}");
    }
}

fn first_difference<'a>(ours: &'a str, theirs: &'a str) -> String {
    let at = ours.bytes().zip(theirs.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(ours.len().min(theirs.len()));
    let around = |text: &'a str| text.get(at.saturating_sub(200)..(at + 100).min(text.len()));
    format!(
        "at octet {at}: {:?} is not {:?}",
        around(ours),
        around(theirs)
    )
}

/// The objects of a JSON array, inner ones apart from what is around
/// them: addresses of a link have another order
/// (`docs/decisions/004-order-of-addresses.md`).
fn rows(array: &str) -> Vec<String> {
    let mut open: Vec<String> = vec![String::new()];
    let mut rows = Vec::new();
    let (mut in_text, mut escaped) = (false, false);
    for letter in array.chars() {
        in_text ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        match letter {
            '{' if !in_text => open.push(String::new()),
            '}' if !in_text => rows.extend(open.pop()),
            _ => open.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(open.len(), 1, "unbalanced");
    rows
}
