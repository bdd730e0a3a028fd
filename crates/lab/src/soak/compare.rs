//! What the daemon says beside what `ip` and `bridge` say.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Outcome, Soak};
use crate::{Netns, decisions, wait_until};

/// How long the scan after the changes may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the kernel may take to announce IPv6 addresses that it lists: it
/// does so from a queue that waits for the lock of links, which all namespaces
/// share (`addrconf_dad_work`), also where it looks for no duplicates.
const QUEUE_PATIENCE: Duration = Duration::from_secs(300);

/// Looks at both sides at least, before they count as different: on a
/// loaded machine one takes seconds, and the kernel goes on between its
/// halves.
const LOOKS: usize = 6;

/// A listing: its name, as the program asks, as the kernel's tools do.
type Listing = (&'static str, &'static str, &'static str);

const LISTINGS: [Listing; 10] = [
    ("links", "link", "ip -j link"),
    ("addresses", "addr", "ip -j addr"),
    ("neighbours", "neigh", "ip -j neigh"),
    ("proxies", "neigh show proxy", "ip -j neigh show proxy"),
    (
        "routes",
        "-4 route show table all",
        "ip -j -4 route show table all",
    ),
    (
        "routes6",
        "-6 route show table all",
        "ip -j -6 route show table all",
    ),
    ("nexthops", "nexthop", "ip -j nexthop"),
    ("rules", "-4 rule", "ip -j -4 rule"),
    ("rules6", "-6 rule", "ip -j -6 rule"),
    ("fdb", "fdb", "bridge -j fdb"),
];

/// What moves by itself: lifetimes, how long a group has been unbalanced,
/// and counts of the kernel's readers.
const UNSTEADY: [&str; 5] = [
    "valid_life_time",
    "preferred_life_time",
    "expires",
    "unbalanced_time",
    "txqlen",
];

/// Compares until nothing differs, as long as `soak` lets it settle; what
/// differs at the end is told. A scan that found drift counts as a
/// difference too.
pub(super) fn compare(
    netns: &Netns,
    soak: &Soak,
    questions: &[String],
    log: &Path,
) -> Result<Outcome> {
    let program = &soak.program;
    let deadline = Instant::now() + soak.settles;
    let mut outcome = Outcome::default();
    let mut looks = Looks::default();
    loop {
        outcome.looks += 1;
        let mut found = looks.tables(netns, program)?;
        if found.is_empty() {
            found = decisions::compare(netns, program, questions)?;
        }
        outcome.differences = found;
        // While it lists anew it says so, and the kernel answers for it.
        let lists = |difference: &String| difference.contains("the daemon's tables are");
        let waits = |difference: &String| {
            let is_kernels = difference.starts_with("addresses: the kernel has");
            let is_queued = ["tentative", "nodad"].map(|flag| format!("\"{flag}\":true"));
            is_kernels && is_queued.iter().any(|flag| difference.contains(flag))
        };
        let differences = &outcome.differences;
        let patience = if differences.iter().any(lists) {
            PATIENCE
        } else if differences.iter().any(waits) {
            QUEUE_PATIENCE
        } else {
            Duration::ZERO
        };
        let is_late = Instant::now() >= deadline + patience && outcome.looks >= LOOKS;
        if outcome.differences.is_empty() || is_late {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if soak.scans && outcome.differences.is_empty() {
        wait_until(PATIENCE, "a scan for drift", || {
            // A listing after a loss does what a scan does.
            let listed = |what| of_mirror(netns, program, what).unwrap_or(1) > 0;
            (listed("scans") || listed("resyncs")).then_some(())
        })?;
        outcome.differences = looks.tables(netns, program)?;
    }
    outcome.resyncs = of_mirror(netns, program, "resyncs")?;
    let drift = of_mirror(netns, program, "drift")?;
    if drift > 0 {
        let log = std::fs::read_to_string(log)?;
        let said = log.lines().filter(|line| line.contains("drifted"));
        let found = format!("a scan found {drift} rows that had drifted");
        outcome.differences.push(found);
        outcome.differences.extend(said.map(str::to_owned));
    }
    Ok(outcome)
}

/// A number that the daemon says of its mirror.
fn of_mirror(netns: &Netns, program: &str, what: &str) -> Result<u64> {
    let text = netns.run(program, &["status", "--json"])?;
    let status: Value = serde_json::from_str(&text)?;
    let number = status.pointer(&format!("/mirror/{what}"));
    let number = number.and_then(Value::as_u64);
    number.with_context(|| format!("a status without {what}"))
}

/// Rows of each listing, in the order of [`LISTINGS`].
type Listed = Vec<Vec<String>>;

/// The daemon's listings beside the kernel's of before and of after: what the
/// kernel changes by itself between two listings is not the daemon's fault.
#[derive(Debug, Default)]
struct Looks {
    /// What the kernel listed at the last look.
    before: Option<Listed>,
}

impl Looks {
    /// What differs from the kernel's listings of both moments.
    fn tables(&mut self, netns: &Netns, program: &str) -> Result<Vec<String>> {
        let ours = listed(netns, |(_, ours, _)| format!("{program} -j {ours}"))?;
        let theirs = listed(netns, |(_, _, theirs)| theirs.to_owned())?;
        let mut found = differences(&ours, &theirs);
        if let Some(before) = &self.before {
            let then = differences(&ours, before);
            found.retain(|difference| then.contains(difference));
        }
        self.before = Some(theirs);
        Ok(found)
    }
}

fn listed(netns: &Netns, command: impl Fn(Listing) -> String) -> Result<Listed> {
    let texts = outputs(netns, &LISTINGS.map(command))?;
    let named = LISTINGS.iter().zip(&texts);
    Ok(named.map(|((name, ..), text)| rows(name, text)).collect())
}

fn differences(ours: &Listed, theirs: &Listed) -> Vec<String> {
    let mut found = Vec::new();
    for ((name, ..), (ours, theirs)) in LISTINGS.iter().zip(ours.iter().zip(theirs)) {
        let is_left = |(at, row): &(usize, &String)| {
            *name != "routes6" || !is_hidden(row, &ours[..*at], theirs)
        };
        let left = ours.iter().enumerate().filter(is_left);
        let ours: Vec<String> = left.map(|(_, row)| row.clone()).collect();
        for (who, has, lacks) in [("kernel", theirs, &ours), ("daemon", &ours, theirs)] {
            let only = only_in(has, lacks);
            found.extend(
                only.iter()
                    .map(|row| format!("{name}: the {who} has {row}")),
            );
        }
    }
    found
}

/// Rows that one side has more often than the other.
fn only_in(has: &[String], lacks: &[String]) -> Vec<String> {
    let mut left = lacks.to_vec();
    let is_missing = |row: &&String| match left.iter().position(|other| other == *row) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    has.iter().filter(is_missing).cloned().collect()
}

/// Whether the kernel's listing leaves an IPv6 route out that it has: one
/// without a gateway that was made between the paths of another of its place.
/// After the first path it goes on behind the last (`fib6_dump_node`), so it
/// stands behind the other in ours.
fn is_hidden(row: &str, before: &[String], theirs: &[String]) -> bool {
    let parsed = |row: &str| serde_json::from_str::<Value>(row).unwrap_or_default();
    let place = |row: &Value| {
        let mut place = ["dst", "from", "metric", "table"].map(|name| row.get(name).cloned());
        // That of a tunnel stands where the route's own would.
        if row.get("encap").is_some_and(|encap| encap == "seg6local") {
            place[3] = None;
        }
        place
    };
    let row = parsed(row);
    let may_be = row.get("gateway").is_none() && row.get("nexthops").is_none();
    let has_paths = |other: &String| {
        let other = parsed(other);
        other.get("nexthops").is_some() && place(&other) == place(&row)
    };
    may_be && !theirs.contains(&row.to_string()) && before.iter().any(has_paths)
}

/// The answers to commands, run in one shell.
fn outputs(netns: &Netns, commands: &[String]) -> Result<Vec<String>> {
    let script: String = commands
        .iter()
        .map(|command| format!("{command} 2>/dev/null; echo; echo @@@@\n"))
        .collect();
    let text = netns.run("sh", &["-c", &script])?;
    Ok(text
        .split("@@@@\n")
        .take(commands.len())
        .map(str::to_owned)
        .collect())
}

/// Rows of a JSON array without what moves by itself.
fn rows(name: &str, text: &str) -> Vec<String> {
    let rows: Vec<Value> = serde_json::from_str(text.trim()).unwrap_or_default();
    rows.into_iter()
        .filter(|row| row.as_object().is_some_and(|row| !row.is_empty()))
        .map(|mut row| {
            without_unsteady(&mut row);
            if name == "neighbours" {
                without_attempts(&mut row);
            }
            if name == "routes" {
                without_unnoticed(&mut row);
            }
            row.to_string()
        })
        .collect()
}

/// What the kernel tries to resolve, for traffic or because it manages it,
/// goes from failed to incomplete and back by itself each second
/// (`__neigh_event_send`, `neigh_managed_work`, `neigh_timer_handler`), and
/// only that it failed is announced: the two listings are of two moments.
fn without_attempts(row: &mut Value) {
    if let Some(Value::Array(states)) = row.get_mut("state") {
        states.retain(|state| state != "INCOMPLETE" && state != "FAILED");
    }
}

fn without_unsteady(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !UNSTEADY.contains(&name.as_str()));
            if let Some(Value::Array(addresses)) = members.get_mut("addr_info") {
                // In which order the kernel has a link's addresses is not
                // told by its events.
                addresses.sort_by_key(Value::to_string);
            }
            members.values_mut().for_each(without_unsteady);
        }
        Value::Array(items) => {
            items.retain(|item| item.as_object().is_none_or(|item| !item.is_empty()));
            items.iter_mut().for_each(without_unsteady);
        }
        _ => {}
    }
}

/// Takes marks of IPv4 routes away that the kernel sets when something
/// happens, not as things are, and neither announces nor shows elsewhere:
/// `linkdown` of a whole route with several hops (`fib_sync_down_dev`
/// counts hops at that moment), of a hop that is dead besides
/// (`fib_sync_up` after a change of the carrier), and both marks of a hop
/// by an IPv6 gateway that was made without a carrier
/// (`fib_check_nh_v6_gw`): the mirror follows it as far as events tell when
/// the kernel looked (`silent::is_noticed`).
fn without_unnoticed(row: &mut Value) {
    without_marks(row);
    let Some(Value::Array(hops)) = row.get_mut("nexthops") else {
        return;
    };
    hops.iter_mut().for_each(without_marks);
    if let Some(Value::Array(flags)) = row.get_mut("flags") {
        flags.retain(|flag| flag != "linkdown" && flag != "dead");
    }
}

fn without_marks(hop: &mut Value) {
    let by_v6 = hop.pointer("/via/family").is_some_and(|it| it == "inet6");
    if let Some(Value::Array(flags)) = hop.get_mut("flags") {
        let is_dead = flags.iter().any(|flag| flag == "dead");
        flags.retain(|flag| flag != "linkdown" || !(is_dead || by_v6));
        flags.retain(|flag| flag != "dead" || !by_v6);
    }
}
