//! `fingerpost ifaceseq` and `fingerpost failover` on a real kernel.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod common;

use lab::{Netns, skip};
use serde_json::Value;

/// Runs the program and gives what it wrote and whether it went well.
fn run(netns: &Netns, arguments: &[&str]) -> (String, String, bool) {
    let mut command = netns.command(common::program());
    let output = command.args(arguments).output().unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.success(),
    )
}

fn links(netns: &Netns) -> String {
    netns.ip(&["-br", "link"]).unwrap()
}

#[test]
fn links_are_made_and_gone_again_and_nothing_else_is_touched() {
    let Some(netns) = skip::unless(Netns::new("ifaceseq")) else {
        return;
    };
    netns
        .ip_batch("link add mine type veth peer name yours\n")
        .unwrap();
    let before = links(&netns);
    for arguments in [
        &["ifaceseq", "--here", "-n", "250", "--json"][..],
        &["ifaceseq", "--here", "-n", "20", "--json", "--one-by-one"],
        &["ifaceseq", "--here", "-n", "30", "--json", "-t", "macvlan"],
    ] {
        let (out, complaint, ok) = run(&netns, arguments);
        assert!(ok, "{arguments:?}: {complaint}");
        let told: Value = serde_json::from_str(&out).unwrap();
        assert!(told["create"]["wall_ms"].as_f64().unwrap() > 0.0);
        let has_ends = told["delete"]["last_hundred_per_link_ms"].is_f64();
        assert_eq!(has_ends, told["count"] == 250, "{out}");
        let each = told["create"]["request_p99_ms"].is_f64();
        assert_eq!(each, arguments.contains(&"--one-by-one"), "{out}");
        assert_eq!(links(&netns), before);
    }
}

#[test]
fn a_failure_leaves_the_namespace_as_it_was() {
    let Some(netns) = skip::unless(Netns::new("ifaceseq")) else {
        return;
    };
    netns
        .ip_batch("link add testa7 type veth peer name mine\n")
        .unwrap();
    let before = links(&netns);
    let (_, complaint, ok) = run(&netns, &["ifaceseq", "--here", "-n", "250"]);
    assert!(!ok && complaint.contains("number 7"), "{complaint}");
    assert_eq!(links(&netns), before);
    let (_, complaint, ok) = run(&netns, &["ifaceseq", "-t", "nonsense"]);
    assert!(!ok && complaint.contains("`nonsense`"), "{complaint}");
}

#[test]
fn a_growth_is_a_table_and_a_picture() {
    let Some(netns) = skip::unless(Netns::new("ifaceseq")) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("growth.svg");
    let svg_path = svg.to_str().unwrap();
    let sizes = [
        "ifaceseq", "--growth", "--sizes", "10,250", "--svg", svg_path,
    ];
    let (out, complaint, ok) = run(&netns, &sizes);
    assert!(ok, "{complaint}");
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 5, "{out}");
    assert!(rows[3].trim_start().starts_with("250 "), "{out}");
    let picture = std::fs::read_to_string(svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 4);
}

#[test]
fn a_failover_is_seen_down_and_up() {
    let Some(netns) = skip::unless(Netns::new("failover")) else {
        return;
    };
    let drill = ["failover", "-n", "30", "--rounds", "2", "--json"];
    let (out, complaint, ok) = run(&netns, &drill);
    assert!(ok, "{complaint}");
    let told: Value = serde_json::from_str(&out).unwrap();
    let rounds = told["rounds"].as_array().unwrap();
    let turns: Vec<&str> = rounds
        .iter()
        .filter_map(|turn| turn["to"].as_str())
        .collect();
    assert_eq!(turns, ["down", "up", "down", "up"]);
    assert!(
        rounds
            .iter()
            .all(|turn| turn["watcher_ms"].as_f64() > Some(0.0))
    );
    assert_eq!(told["drift"], 0);
}
