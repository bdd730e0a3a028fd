//! arp and ifconfig, from the kernel and from a daemon: the same answer.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use common::{Daemon, PATIENCE, fingerpost, furnished, says, sorted};
use lab::{Netns, wait_until};

/// What was answered by the daemon of a namespace, this answer excluded.
fn answers(netns: &Netns) -> u64 {
    let status = says(netns, &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status["answered"]["answers"].as_u64().unwrap()
}

/// All that a run says, lines in an order of their own, with what moves by
/// itself left out; and the number of answers that the daemon gave for it.
fn listed(netns: &Netns, line: &str, still: fn(&str) -> String) -> (String, u64) {
    let before = answers(netns);
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = fingerpost(netns, &arguments);
    let said = still(std::str::from_utf8(&output.stdout).unwrap());
    let complaint = String::from_utf8(output.stderr).unwrap();
    let whole = format!("{}\n{complaint}{}", sorted(&said).join("\n"), output.status);
    // The status before was an answer too.
    (whole, answers(netns) - before - 1)
}

/// Compares the daemon's answer with the kernel's, and sees to it that it
/// is the daemon's, by so many answers. Once more where the kernel changed
/// something in between (duplicate address detection ends, a failed
/// neighbour is collected), or a test beside asked all namespaces.
fn same_from_both(netns: &Netns, line: &str, answered: u64, still: fn(&str) -> String) {
    let (command, rest) = line.split_once(' ').unwrap();
    let direct = format!("{command} --direct {rest}");
    let mut last = None;
    let waited = wait_until(PATIENCE, line, || {
        let daemon = listed(netns, line, still);
        let kernel = listed(netns, &direct, still);
        let is_same = daemon.0 == kernel.0 && (daemon.1, kernel.1) == (answered, 0);
        last = Some((daemon, kernel));
        is_same.then_some(())
    });
    let ((daemon, asked), (kernel, not_asked)) = last.unwrap();
    assert!(
        waited.is_ok(),
        "{line}, {asked} answers:\n{daemon}\nkernel, {not_asked} answers:\n{kernel}"
    );
}

/// Without the seconds that entries have left; an object a line.
fn without_seconds(listing: &str) -> String {
    let cut = |text: &str, before: &str| -> String {
        text.split(before)
            .enumerate()
            .map(|(at, piece)| match at {
                0 => piece.to_owned(),
                _ => format!("{before}{}", piece.trim_start_matches(char::is_numeric)),
            })
            .collect()
    };
    let listing = cut(&cut(listing, "expires in "), "\"expires\":");
    match listing.strip_prefix('[') {
        Some(objects) => objects
            .trim_end_matches("]\n")
            .replace("},{", "}\n{")
            .to_owned(),
        None => listing,
    }
}

/// Without lines of counters.
fn without_counters(listing: &str) -> String {
    let kept = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("RX ") && !line.starts_with("TX ")
    };
    listing.lines().filter(kept).collect::<Vec<_>>().join("\n")
}

/// The name and the MTU of each line.
fn two_columns(listing: &str) -> String {
    let two = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().take(2).collect();
        columns.join(" ")
    };
    listing.lines().map(two).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_arp_table_is_the_same_from_both() {
    let tun = lab::skip::unless(lab::skip::tun());
    let Some((netns, ())) = furnished("arpboth").zip(tun) else {
        return;
    };
    netns
        .ip_batch(
            "link property add dev veth1 altname other\n\
             tuntap add tun0 mode tun\n\
             link set tun0 up\n\
             neigh add 10.8.0.3 lladdr 02:00:00:00:00:03 dev br0 nud noarp\n\
             neigh add 10.8.0.2 lladdr 02:00:00:00:00:03 dev br0 nud permanent\n\
             neigh add 10.9.0.4 lladdr 02:00:00:00:00:04 dev br0 nud stale\n\
             neigh add 10.9.0.5 lladdr 02:00:00:00:00:05 dev br0 nud failed\n\
             neigh add 10.9.0.6 dev tun0 nud permanent\n\
             neigh add proxy 10.9.0.99 dev br0\n\
             neigh add proxy 10.9.0.98 dev tun0\n",
        )
        .unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    for line in [
        "arp -an",
        "arp --json",
        "arp --style linux -n",
        "arp --style linux -an",
        "arp --style linux -van",
        "arp --no-own",
        "arp --json -i br0",
        "arp -i tun0",
        "arp -i other",
        "arp --style linux -vn -i tun0",
        "arp --style linux -vn -i nope",
        "arp --style linux -n -H ether",
        "arp -H ether",
        "arp 10.8.0.2",
        "arp -i veth1 10.8.0.2",
        "arp 10.9.0.1",
        "arp --json 10.9.0.99",
        "arp --style linux -van 10.8.0.2",
        "arp 10.9.0.200",
        "arp --json 10.9.0.200",
        "arp --style linux -n 10.9.0.200",
        "arp --style linux -an 10.9.0.200",
    ] {
        same_from_both(&netns, line, 1, without_seconds);
    }
    // A refusal is no answer.
    same_from_both(&netns, "arp -i nope", 0, without_seconds);
    // The daemon asks for no names.
    same_from_both(&netns, "arp -r --resolve-wait-secs 0", 0, without_seconds);
}

#[test]
fn ages_are_as_fresh_as_the_kernels() {
    let Some(netns) = furnished("arpages") else {
        return;
    };
    netns
        .ip_batch("neigh add 10.9.0.4 lladdr 02:00:00:00:00:04 dev br0 nud stale\n")
        .unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    let left = |direct: &[&str]| -> u64 {
        let line = says(&netns, &[&["arp", "-n", "10.9.0.4"], direct].concat());
        let (_, rest) = line.split_once("expires in ").unwrap();
        rest.split_once(' ').unwrap().0.parse().unwrap()
    };
    // It goes down: what is said in between is in between, but for the
    // kernel's ticks.
    let (before, daemon, after) = (left(&["--direct"]), left(&[]), left(&["--direct"]));
    assert!(
        (after.saturating_sub(1)..=before + 1).contains(&daemon),
        "{before} {daemon} {after}"
    );
}

#[test]
fn interfaces_are_the_same_from_both() {
    let Some(netns) = furnished("ifboth") else {
        return;
    };
    netns
        .ip_batch("link property add dev veth1 altname other\n")
        .unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    for line in [
        "ifconfig -a",
        "ifconfig -u",
        "ifconfig -d",
        "ifconfig other",
        "ifconfig nope",
        "ifconfig --style linux",
        "ifconfig --style linux -a",
        "ifconfig --style linux veth1",
        "ifconfig --style linux veth1:1",
        "ifconfig --style linux nope",
    ] {
        same_from_both(&netns, line, 1, without_counters);
    }
    same_from_both(&netns, "ifconfig -s -a", 1, two_columns);
    same_from_both(&netns, "ifconfig -l", 1, str::to_owned);
    // Counters are there, and no older than a question.
    let shown = says(&netns, &["ifconfig", "--style", "linux", "br0"]);
    assert!(shown.contains("RX packets"), "{shown}");
}
