//! The pages of `docs/guide`, as their readers would go by them: every
//! command is run, in order, and says what stands below it.
//!
//! A block of `console` has commands behind `$`, which go on behind `>`.
//! Of what is expected `…` stands for some text, and alone for lines.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{Daemon, furnished, program};
use lab::{Netns, situation, skip};
use packet::build::Ip;

/// A command of a page, and what it is to say.
#[derive(Debug)]
struct Step {
    command: String,
    expected: Vec<String>,
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// The commands of a page.
fn steps(page: &str) -> Vec<Step> {
    let text = fs::read_to_string(guide().join(page)).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_console = language == "console";
        } else if !is_console {
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                expected: Vec::new(),
            });
        } else if let Some(more) = line.strip_prefix("> ") {
            let last = steps.last_mut().unwrap();
            last.command += "\n";
            last.command += more;
        } else {
            steps.last_mut().unwrap().expected.push(line.to_owned());
        }
    }
    assert!(steps.len() > 2, "{page}: {steps:?}");
    steps
}

/// Whether a line is what is expected: `…` is any text.
fn is_like(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether lines are what is expected: `…` alone is any number of them.
fn are_like(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, more)) if first == "…" => {
            (0..=lines.len()).any(|at| are_like(&lines[at..], more))
        }
        Some((first, more)) => {
            lines.first().is_some_and(|line| is_like(line, first)) && are_like(&lines[1..], more)
        }
    }
}

/// What runs the commands in one shell. Each is followed by a mark with its
/// status; a daemon that was started is waited for.
fn script(steps: &[Step], instead: &[(&str, &str)]) -> String {
    let mut text = String::from("set -m\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for step in steps {
        let replaced = instead.iter().find(|(of, _)| step.command == *of);
        let command = replaced.map_or(step.command.as_str(), |(_, other)| other);
        text += command;
        text += "\nstatus=$?\n";
        if command.starts_with("fingerpost up") {
            text += "for at in $(seq 600); do fingerpost status >/dev/null 2>&1 && break; \
                     sleep 0.1; done; fingerpost status >/dev/null; status=$?\n";
        }
        text += "echo \"@@ $status\"\n";
    }
    text
}

/// Goes by a page inside a namespace, in a directory of its own; `instead`
/// has commands that are others in a test.
fn follow(page: &str, netns: &Netns, directory: &Path, instead: &[(&str, &str)]) {
    let steps = steps(page);
    for (of, _) in instead {
        assert!(steps.iter().any(|step| step.command == *of), "{of}");
    }
    let bin = directory.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(program(), bin.join("fingerpost")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    fs::write(directory.join("page"), script(&steps, instead)).unwrap();
    let mut shell = netns.command("timeout");
    shell
        .args(["--kill-after=10", "300", "bash", "page"])
        .current_dir(directory)
        .env("PATH", path)
        .env(common::STATE, directory.join("state"));
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut parts = said.split_inclusive('\n').map(str::trim_end).peekable();
    for step in &steps {
        let mut lines = Vec::new();
        while let Some(line) = parts.next_if(|line| !line.starts_with("@@ ")) {
            lines.push(line);
        }
        let status = parts.next();
        let about = format!(
            "{page}: {}\n{}\n{complaints}",
            step.command,
            lines.join("\n")
        );
        assert_eq!(status, Some("@@ 0"), "{about}");
        assert!(are_like(&lines, &step.expected), "{about}");
    }
}

/// A page in a namespace with rows in every table.
fn follow_furnished(page: &str, tag: &str) {
    let Some(netns) = furnished(tag) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    follow(page, &netns, directory.path(), &[]);
}

#[test]
fn my_arp_report_takes_minutes() {
    let Some(netns) = skip::unless(Netns::new("guidearp")) else {
        return;
    };
    situation::aliases::build(&netns, 300).unwrap();
    let directory = tempfile::tempdir().unwrap();
    follow("arp-report.md", &netns, directory.path(), &[]);
}

#[test]
fn restart_a_router_with_10_000_interfaces() {
    let Some(netns) = skip::unless(Netns::new("guidelinks")) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    follow(
        "restart.md",
        &netns,
        directory.path(),
        &[("N=10000", "N=100")],
    );
}

#[test]
fn keep_a_machines_interfaces_as_a_file_says() {
    let Some(netns) = common::at_rest("guidestate") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    follow("declared.md", &netns, directory.path(), &[]);
}

#[test]
fn take_net_snmp_off_a_full_table() {
    follow_furnished("snmp.md", "guidesnmp");
}

#[test]
fn ask_with_sql() {
    let Some(netns) = furnished("guidesql") else {
        return;
    };
    netns.ip(&["link", "set", "lo", "up"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    follow("sql.md", &netns, directory.path(), &[]);
}

#[test]
fn find_who_owns_a_mac_on_any_of_my_bridges() {
    let Some(netns) = furnished("guidemac") else {
        return;
    };
    netns
        .ip_batch(
            "link add br1 type bridge\n\
             link add port1 type veth peer name host1\n\
             link set port1 master br1 up\n\
             link set br1 up\n\
             link set host1 up\n\
             addr add 10.1.0.1/24 dev br1\n\
             neigh add 10.1.0.42 lladdr 02:00:00:00:00:42 dev br1 nud permanent\n",
        )
        .unwrap();
    let entry = [
        "fdb",
        "add",
        "02:00:00:00:00:42",
        "dev",
        "port1",
        "master",
        "static",
    ];
    let added = netns.command("bridge").args(entry).status().unwrap();
    assert!(added.success());
    let directory = tempfile::tempdir().unwrap();
    follow("mac.md", &netns, directory.path(), &[]);
}

#[test]
fn nat_for_a_few_thousand_customers() {
    let Some(netns) = skip::unless(Netns::new("guidenat")) else {
        return;
    };
    netns
        .ip_batch(
            "link add lan type veth peer name customers\nlink set lan up\nlink set customers up\n",
        )
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let remote = Ipv4Addr::new(198, 51, 100, 7);
    let customer = |at: u8| Ip::new(Ipv4Addr::new(100, 64, 1, at), remote);
    let packets: Vec<_> = (1..=100)
        .map(|at| customer(at).udp(4_000, 53, b"question"))
        .collect();
    let capture = common::capture(common::RAW, &packets);
    fs::write(directory.path().join("lan.pcap"), capture).unwrap();
    follow("nat.md", &netns, directory.path(), &[]);
}

#[test]
fn a_bug_report_as_a_file() {
    follow_furnished("bug-report.md", "guidebug");
}

#[test]
fn what_was_at_a_time() {
    let Some(netns) = furnished("guidepast") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("history");
    let config = format!("[history]\ndirectory = \"{}\"\n", history.display());
    fs::write(directory.path().join("fingerpost.toml"), config).unwrap();
    follow("history.md", &netns, directory.path(), &[]);
}

#[test]
fn monitor_with_prometheus_and_grafana() {
    let Some(netns) = furnished("guideprom") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for file in ["prometheus.yml", "alerts.yml"] {
        fs::copy(guide().join(file), directory.path().join(file)).unwrap();
    }
    follow("monitoring.md", &netns, directory.path(), &[]);
}

/// Names of metrics in what Prometheus is asked.
fn metrics(expression: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c: char| !is_name(c));
    let ours = ["fingerpost_", "node_network_", "process_"];
    let of_ours = words.filter(|word| ours.iter().any(|begin| word.starts_with(begin)));
    of_ours.map(str::to_owned).collect()
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let Some(netns) = furnished("guidedash") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let mut curl = netns.command("curl");
    curl.args(["-sS", "http://127.0.0.1:9797/metrics"]);
    let told = common::said(curl.output().unwrap());
    let known: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let text = fs::read_to_string(guide().join("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut asked = BTreeSet::new();
    for panel in panels {
        let place = &panel["gridPos"];
        let at = |name: &str| place[name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel}");
        assert!(panel["title"].is_string() && panel["type"].is_string());
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            asked.extend(metrics(target["expr"].as_str().unwrap()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = &variable["query"];
        asked.extend(metrics(query["query"].as_str().unwrap_or_default()));
    }
    let alerts = fs::read_to_string(guide().join("alerts.yml")).unwrap();
    for line in alerts.lines().filter(|line| line.contains("expr:")) {
        asked.extend(metrics(line));
    }
    assert!(asked.len() > 12 && panels.len() > 8, "{asked:?}");
    for metric in &asked {
        assert!(known.contains(metric.as_str()), "{metric}");
    }
}

#[test]
fn every_page_is_listed_and_followed() {
    let list = fs::read_to_string(guide().join("README.md")).unwrap();
    let this = include_str!("guide.rs");
    let pages = fs::read_dir(guide()).unwrap().map(|entry| entry.unwrap());
    let pages = pages.map(|entry| entry.file_name().into_string().unwrap());
    let pages: Vec<String> = pages
        .filter(|name| name.ends_with(".md") && name != "README.md")
        .collect();
    assert!(pages.len() >= 7, "{pages:?}");
    for page in pages {
        assert!(list.contains(&format!("]({page})")), "{page} is not listed");
        assert!(this.contains(&format!("\"{page}\"")), "{page} is not run");
    }
}

#[test]
fn expectations_can_fail() {
    let like = |lines: &[&str], expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
        are_like(lines, &expected)
    };
    assert!(like(&["a 7 b", "c"], &["a … b", "c"]));
    assert!(like(&["a", "b", "c"], &["a", "…"]));
    assert!(like(&["a", "b", "c"], &["…", "c"]));
    assert!(!like(&["a", "b"], &["a"]));
    assert!(!like(&["a 7 c"], &["a … b"]));
    assert!(!like(&[], &["a"]));
    assert!(!like(&["a"], &[]));
}
