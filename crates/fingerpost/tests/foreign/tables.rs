//! Tables of commands (`commands/*.txt`), each run by net-tools and by our
//! program under the tool's name. Same standard output, same exit status,
//! same effect; or refused by name, which the table says with a leading `- `.
//! Anything else is a failure.
//!
//! What changes something is run in namespaces that are alike (`twins`), what
//! lists in one. A line `@ …` begins anew, with what the situation's
//! `ip -batch` lines make (`;` between); `#` is a comment; `… < a; b` gives
//! standard input.

use std::process::Output;

use crate::World;
use crate::twins::table;

/// What stands in a refusal by name.
const REFUSED: &str = "is not built here, and nothing was done";

#[test]
fn routes_are_changed_as_route_changes_them() {
    table("route", include_str!("commands/route.txt"), false, 150);
}

#[test]
fn arp_entries_are_changed_as_arp_changes_them() {
    table("arp", include_str!("commands/arp.txt"), false, 65);
}

#[test]
fn links_are_changed_as_ifconfig_changes_them() {
    table(
        "ifconfig",
        include_str!("commands/ifconfig.txt"),
        false,
        130,
    );
}

#[test]
fn lists_are_those_of_net_tools() {
    let mut world = None;
    let mut failures = Vec::new();
    let mut alike = 0;
    for (at, line) in include_str!("commands/lists.txt").lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(situation) = line.strip_prefix('@') {
            let Some(made) = World::new("lists", "route") else {
                return;
            };
            made.netns
                .ip_batch(&(situation.replace(';', "\n") + "\n"))
                .unwrap();
            world = Some(made);
            continue;
        }
        let world: &World = world.as_ref().unwrap();
        let (refused, line) = match line.strip_prefix("- ") {
            Some(line) => (true, line),
            None => (false, line),
        };
        match listed(world, line, refused) {
            None => alike += usize::from(!refused),
            Some(how) => failures.push(format!("{}: {line}\n{how}", at + 1)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(alike >= 90, "{alike}");
}

/// How a list differs.
fn listed(world: &World, line: &str, refused: bool) -> Option<String> {
    let (tool, rest) = line.split_once(' ').unwrap_or((line, ""));
    if refused {
        let ours = world.run(&world.path(tool), rest);
        let said = String::from_utf8_lossy(&ours.stderr);
        let is_plain = ours.stdout.is_empty() && ours.status.code() == Some(255);
        return (!is_plain || !said.contains(REFUSED)).then(|| format!("{ours:?}"));
    }
    // A version is everybody's own.
    let is_own = ["-V", "--version", "-version", "-h"].contains(&rest);
    let shown = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // So is what may be said; that it is shown is not.
        let is_usage = text.to_lowercase().starts_with("usage");
        let text = match (is_own, is_usage) {
            (true, _) => String::new(),
            (false, true) => "usage".to_owned(),
            (false, false) => text,
        };
        (output.status.code(), text)
    };
    let mut last = None;
    for _ in 0..5 {
        let before = shown(&world.run(tool, rest));
        let ours = shown(&world.run(&world.path(tool), rest));
        if ours == before {
            return None;
        }
        last = Some(format!("  theirs: {before:?}\n  ours: {ours:?}"));
    }
    last
}
