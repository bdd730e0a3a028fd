//! Questions, from the kernel and from a daemon: the same answer.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use common::{Daemon, OBJECTS, fingerpost, furnished, program, read_until, said, says, sorted};
use lab::{Child, wait_until};
use serde_json::Value;

/// Filters, by object, that pick some rows and not all.
const FILTERED: &[&[&str]] = &[
    &["link", "--dev", "veth0"],
    &["link", "--kind", "veth"],
    &["link", "show", "master", "br0"],
    &["link", "--up", "--name", "veth*"],
    &["addr", "show", "dev", "br0"],
    &["addr", "-6", "--to", "2001:db8::/32"],
    &["neigh", "--mac", "02:00:00:00:00:07"],
    &["neigh", "show", "dev", "br0", "nud", "permanent"],
    &["neigh", "--to", "10.9.0.0/24"],
    &["route", "--to", "10.0.0.0/8"],
    &["route", "show", "10.1.0.0/16"],
    &["route", "show", "to", "match", "10.1.2.3"],
    &["route", "table", "100"],
    &["route", "show", "table", "all"],
    &["-6", "route"],
    &["route", "--proto", "bgp"],
    &["route", "--via", "10.9.0.7"],
    &["route", "--dev", "veth1"],
    &["nexthop", "groups"],
    &["nexthop", "--id", "1"],
    &["rule", "--priority", "1000"],
    &["fdb", "--dev", "veth0"],
];

#[test]
fn the_daemon_and_the_kernel_give_the_same_answers() {
    let Some(netns) = furnished("same") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let whole = OBJECTS.iter().map(|object| vec![*object]);
    let filtered = FILTERED.iter().map(|arguments| arguments.to_vec());
    for question in whole.chain(filtered) {
        for format in [None, Some("--ndjson"), Some("--csv"), Some("--count")] {
            let asked: Vec<&str> = question.iter().copied().chain(format).collect();
            let direct: Vec<&str> = asked.iter().copied().chain(["--direct"]).collect();
            let (daemon, kernel) = (says(&netns, &asked), says(&netns, &direct));
            assert_eq!(sorted(&daemon), sorted(&kernel), "{asked:?}");
            assert!(!daemon.is_empty(), "{asked:?}");
        }
    }
}

#[test]
fn sorted_answers_are_the_same_to_the_octet() {
    let Some(netns) = furnished("sort") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    for (object, by) in [("neigh", "dst"), ("link", "-ifindex"), ("route", "dst")] {
        let asked = [object, "--json", "--sort", by];
        let daemon = says(&netns, &asked);
        let kernel = says(&netns, &[asked.as_slice(), &["--direct"]].concat());
        if object != "route" {
            assert_eq!(daemon, kernel, "{asked:?}");
        }
        let rows: serde_json::Value = serde_json::from_str(&kernel).unwrap();
        assert!(rows.as_array().is_some_and(|rows| rows.len() > 1));
    }
}

#[test]
fn json_is_what_ip_writes() {
    let Some(netns) = furnished("json") else {
        return;
    };
    for object in ["neigh", "route", "rule", "nexthop", "link", "addr"] {
        let ours = rows(&says(&netns, &["-j", object]));
        let theirs = rows(&netns.ip(&["-j", object]).unwrap());
        assert_eq!(ours, theirs, "{object}");
    }
}

/// The rows of a JSON array in an order of their own.
fn rows(text: &str) -> Vec<String> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_route_of_a_packet_is_the_same_from_both() {
    let Some(netns) = furnished("get") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    for asked in [
        &["10.1.7.7"][..],
        &["10.1.2.3"],
        &["10.2.0.1"],
        &["192.0.2.1"],
        &["10.9.0.1"],
        &["10.9.0.255"],
        &["127.0.0.1"],
        &["10.9.0.9", "from", "10.9.0.1"],
        &["10.8.0.2", "oif", "veth1"],
        &["2001:db8:1::1"],
        &["2001:db8::9"],
    ] {
        for format in [None, Some("--json")] {
            let get = ["route", "get"].iter().chain(asked).copied();
            let asked: Vec<&str> = get.chain(format).collect();
            let direct: Vec<&str> = asked.iter().copied().chain(["--direct"]).collect();
            assert_eq!(says(&netns, &asked), says(&netns, &direct), "{asked:?}");
        }
    }
    for asked in [&["10.3.0.1", "mark", "7"][..], &["2001:db8:ffff::1"]] {
        for direct in [None, Some("--direct")] {
            let get = ["route", "get"].iter().chain(asked).copied();
            let asked: Vec<&str> = get.chain(direct).collect();
            let output = fingerpost(&netns, &asked);
            assert_eq!(output.status.code(), Some(1), "{asked:?}");
        }
    }
}

#[test]
fn an_empty_answer_is_valid_and_no_error() {
    let Some(netns) = furnished("empty") else {
        return;
    };
    for daemon in [None, Some(Daemon::up(&netns, &[]))] {
        let nothing = says(&netns, &["neigh", "--to", "203.0.113.0/24", "--json"]);
        assert_eq!(nothing, "[]\n");
        assert_eq!(says(&netns, &["route", "table", "4711"]), "");
        assert_eq!(
            says(&netns, &["neigh", "--to", "203.0.113.0/24", "--count"]),
            "0\n"
        );
        drop(daemon);
    }
}

#[test]
fn a_device_that_is_not_there_fails_as_with_ip() {
    let Some(netns) = furnished("nodev") else {
        return;
    };
    for daemon in [None, Some(Daemon::up(&netns, &[]))] {
        for object in ["link", "addr", "neigh", "route", "fdb"] {
            let output = fingerpost(&netns, &[object, "show", "dev", "nope"]);
            assert_eq!(output.status.code(), Some(1), "{object}");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(
                complaint.contains("Cannot find device \"nope\""),
                "{complaint}"
            );
        }
        drop(daemon);
    }
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let Some(netns) = furnished("head") else {
        return;
    };
    let routes: String = (0..20_000)
        .map(|n| format!("route add 10.64.{}.{}/32 dev br0\n", n / 256, n % 256))
        .collect();
    netns.ip_batch(&routes).unwrap();
    for daemon in [None, Some(Daemon::up(&netns, &[]))] {
        let mut command = netns.command(program());
        command
            .args(["route", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Child::spawn(command).unwrap();
        let mut stdout = process.process().stdout.take().unwrap();
        read_until(&mut stdout, "10.64");
        drop(stdout);
        assert!(process.wait(common::PATIENCE).unwrap().success());
        let mut complaint = String::new();
        std::io::Read::read_to_string(
            &mut process.process().stderr.take().unwrap(),
            &mut complaint,
        )
        .unwrap();
        assert_eq!(complaint, "");
        drop(daemon);
    }
}

#[test]
fn changes_are_watched_in_the_daemon_and_without() {
    let Some(netns) = furnished("watch") else {
        return;
    };
    for daemon in [None, Some(Daemon::up(&netns, &[]))] {
        let mut command = netns.command(program());
        command
            .args(["neigh", "--watch", "--dev", "br0"])
            .stdout(Stdio::piped());
        let mut process = Child::spawn(command).unwrap();
        let stdout = process.process().stdout.take().unwrap();
        // When the watch begins is not told: changes are made until one
        // was seen.
        let seen = std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            line
        });
        let mut up = false;
        wait_until(common::PATIENCE, "a change", || {
            up = !up;
            let change = if up { "replace" } else { "del" };
            for device in ["veth1", "br0"] {
                netns
                    .ip(&[
                        "neigh",
                        change,
                        "10.9.0.99",
                        "lladdr",
                        "02:00:00:00:00:99",
                        "dev",
                        device,
                    ])
                    .unwrap();
            }
            seen.is_finished().then_some(())
        })
        .unwrap();
        let line = seen.join().unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["dev"], "br0", "{line}");
        assert_eq!(event["dst"], "10.9.0.99", "{line}");
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let age = now.as_millis() as u64 - event["time_millis"].as_u64().unwrap();
        assert!(age < 3_600_000, "{line}");
        drop((process, daemon));
        let _ = netns.ip(&["neigh", "del", "10.9.0.99", "dev", "br0"]);
        let _ = netns.ip(&["neigh", "del", "10.9.0.99", "dev", "veth1"]);
    }
}

#[test]
fn other_namespaces_are_asked_by_name_and_all_at_once() {
    let Some(one) = furnished("other") else {
        return;
    };
    let Some(two) = furnished("another") else {
        return;
    };
    let from_outside =
        |arguments: &[&str]| said(Command::new(program()).args(arguments).output().unwrap());
    let named = from_outside(&["--netns", one.name(), "neigh"]);
    assert_eq!(sorted(&named), sorted(&says(&one, &["neigh"])));
    // Other tests' namespaces and daemons come and go: one that ends in the
    // middle of its answer is an error that names it.
    let all = wait_until(common::PATIENCE, "an answer of all namespaces", || {
        let mut asked = Command::new(program());
        asked.args(["neigh", "--all-netns", "--json"]);
        let output = asked.output().unwrap();
        output.status.success().then(|| said(output))
    });
    let all: Vec<serde_json::Value> = serde_json::from_str(&all.unwrap()).unwrap();
    for netns in [&one, &two] {
        let of_it = all
            .iter()
            .filter(|row| row["netns"] == netns.name())
            .count();
        assert_eq!(of_it.to_string(), says(netns, &["neigh", "--count"]).trim());
    }
}

/// What is said to words that need not be UTF-8, as octets.
fn octets_said(mut command: Command, words: &[&[u8]]) -> Vec<u8> {
    let words = words.iter().map(|word| OsStr::from_bytes(word));
    let output = command.args(words).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    output.stdout
}

#[test]
fn names_that_are_not_utf_8_are_shown_asked_for_and_given_back() {
    const NAME: &[u8] = b"x\xff\xee\xbe\x81";
    let Some(netns) = furnished("octets") else {
        return;
    };
    let ip = |words: &[&[u8]]| octets_said(netns.command("ip"), words);
    let _ = ip(&[b"link", b"add", NAME, b"type", b"bridge"]);
    let _ = ip(&[b"link", b"add", b"x\xfe", b"type", b"bridge"]);
    let _ = ip(&[b"link", b"set", b"dev", NAME, b"alias", b"caf\xe9"]);
    let altname = [NAME, b"-and-longer-than-15"].concat();
    let added: [&[u8]; 7] = [
        b"link",
        b"property",
        b"add",
        b"dev",
        NAME,
        b"altname",
        &altname,
    ];
    let _ = ip(&added);
    let daemon = Daemon::up(&netns, &[]);
    let ours = |words: &[&[u8]]| octets_said(netns.command(program()), words);
    for direct in [false, true] {
        let direct: &[&[u8]] = if direct { &[b"--direct"] } else { &[] };
        for asked in [NAME, b"x\xfe", &altname] {
            let words: [&[u8]; 4] = [b"link", b"show", b"dev", asked];
            let (theirs, said) = (ip(&words), ours(&[&words[..], direct].concat()));
            assert_eq!(
                String::from_utf8_lossy(&said),
                String::from_utf8_lossy(&theirs)
            );
            assert!(said == theirs, "octet by octet");
        }
        // JSON is UTF-8, and its name asks for the same link.
        let json = ours(&[&[b"link".as_slice(), b"--json", b"dev", NAME], direct].concat());
        let rows: Value = serde_json::from_slice(&json).unwrap();
        let name = rows[0]["ifname"].as_str().unwrap();
        let again = ours(
            &[
                &[b"link".as_slice(), b"--json", b"dev", name.as_bytes()],
                direct,
            ]
            .concat(),
        );
        assert_eq!(again, json);
    }
    // A change finds it, too.
    let _ = ours(&[b"link", b"set", b"dev", NAME, b"alias", b"other\xe8"]);
    let shown = ip(&[b"link", b"show", b"dev", NAME]);
    assert!(
        shown.windows(7).any(|part| part == b"other\xe8\n"),
        "{shown:?}"
    );
    daemon.end();
}
