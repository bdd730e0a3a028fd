//! Changes to addresses, routes, neighbours, rules and next hops, with `ip`
//! as the judge.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;
#[path = "changes/listings.rs"]
mod listings;

use std::io::Write;
use std::process::{Output, Stdio};

use common::{PATIENCE, fingerpost, program, said};
use lab::{Netns, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// `ip -batch` lines over every object; the links are those of [`linked`].
const LINES: &str = "\
# addresses
addr add 192.0.2.1/24 brd + dev em1 label em1:x
addr add 198.51.100.1 peer 198.51.100.2/32 dev em1 metric 77
addr add 2001:db8::1/64 dev em1 nodad
addr add 203.0.113.1/24 dev em2 noprefixroute scope link
addr add 2001:db8:1::1/128 dev em1 nodad preferred_lft 0
# neighbours
neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev em1 nud permanent
neigh replace 192.0.2.10 lladdr 02:00:00:00:00:0a dev em1
neigh add 192.0.2.11 lladdr 02:00:00:00:00:0b dev em1 nud noarp proto static
neigh add 2001:db8::9 lladdr 02:00:00:00:00:09 dev em1 router
neigh add proxy 192.0.2.77 dev em1
# next hops
nexthop add id 1 via 192.0.2.9 dev em1
nexthop add id 2 via 192.0.2.10 dev em1 onlink proto bgp
nexthop add id 3 group 1,3/2,5
nexthop add id 4 blackhole
nexthop add id 5 via 2001:db8::9 dev em1
nexthop add id 6 group 1/2 type resilient buckets 8 idle_timer 60
# routes
route add 10.0.0.0/8 via 192.0.2.9 dev em1 metric 5 proto static src 192.0.2.1
route append 10.0.0.0/8 via 192.0.2.10 dev em1 metric 5 proto bgp
route add 10.1.0.0/16 via 192.0.2.9 mtu lock 1400 advmss 1200 initcwnd 20
route add 10.2.0.0/16 nexthop via 192.0.2.9 weight 3 nexthop via 192.0.2.10 dev em1 weight 256
route add 10.3.0.0/16 dev em1 scope link
route add 10.3.0.0/16 dev em1 tos 0x10
route add blackhole 10.4.0.0/16 table 100
route add unreachable 10.5.0.0/16 metric 7
route add prohibit 10.6.0.0/16
route add throw 10.7.0.0/16 table 1000
route add 10.8.0.0/16 nhid 3
route add 10.9.0.0/16 via inet6 fe80::1 dev em1
route add 10.10.0.0/16 via 10.99.99.99 dev em1 onlink
route add local 10.11.0.1 dev lo
route add broadcast 10.11.0.255 dev em1
route add default via 192.0.2.9
route add 10.12.0.0/16 dev em1 realms 3/4
route add default via 2001:db8::9
route add 2001:db8:5::/48 via 2001:db8::9 dev em1 metric 10 pref high
route add 2001:db8:6::/48 nexthop via 2001:db8::9 dev em1 nexthop via fe80::2 dev em1 weight 5
route add 2001:db8:7::/48 nhid 5
route add 2001:db8:8::/48 from 2001:db8:9::/48 dev em1
route add unreachable 2001:db8:a::/48
route replace 10.1.0.0/16 via 192.0.2.10
route change 10.5.0.0/16 metric 7 proto 99 via 192.0.2.9
route del 10.6.0.0/16
route delete 10.3.0.0/16 tos 0x10
# rules
rule add from 10.0.0.0/8 lookup 100 pref 500
rule add fwmark 7/0xff to 10.1.0.0/16 table 1000 priority 501 protocol static
rule add not iif em1 oif em2 goto 32766 pref 502
rule add uidrange 5-6 ipproto tcp sport 5 dport 80-90 prohibit pref 503
rule add tos 0x10 suppress_prefixlength 8 lookup main pref 504
rule add l3mdev pref 505
rule add from 10.99.0.0/16 lookup 100
rule add blackhole from 10.98.0.0/16
rule del from 10.98.0.0/16
rule del pref 504
neigh del 192.0.2.10 dev em1
neigh change 192.0.2.9 lladdr 02:00:00:00:00:ff dev em1 nud permanent
addr del 203.0.113.1/24 dev em2
nexthop replace id 4 via 192.0.2.10 dev em1
nexthop del id 6
";

/// What `ip -batch` does not take for want of its `-6`.
const SIX: [&str; 8] = [
    "rule",
    "add",
    "from",
    "2001:db8::/32",
    "lookup",
    "100",
    "pref",
    "506",
];

/// [`LINES`] and [`SIX`], by `ip`.
fn by_ip(netns: &Netns) {
    netns.ip_batch(LINES).unwrap();
    let six: Vec<&str> = ["-6"].into_iter().chain(SIX).collect();
    netns.ip(&six).unwrap();
}

/// Arguments of several listings.
type Commands = &'static [&'static [&'static str]];

/// A namespace with two links that are up, the same in each.
fn linked(tag: &str) -> Option<Netns> {
    let netns = lab::skip::unless(Netns::new(tag))?;
    netns
        .ip_batch(
            "link add em1 address 02:00:00:00:01:01 index 101 type veth \
             peer name em2 address 02:00:00:00:01:02 index 102\n\
             link set em1 up\nlink set em2 up\n",
        )
        .unwrap();
    // Link-local addresses and their routes come when the check for
    // duplicates is over.
    wait_until(PATIENCE, "the end of duplicate address detection", || {
        let shown = netns.ip(&["-6", "-o", "addr", "show"]).unwrap();
        let settled = shown.matches("fe80::").count() == 2 && !shown.contains("tentative");
        settled.then_some(())
    })
    .unwrap();
    Some(netns)
}

/// All that can be changed, as `ip` tells it.
fn listed(netns: &Netns) -> Vec<String> {
    [
        &["-d", "-j", "route", "show", "table", "all"][..],
        &["-d", "-j", "-6", "route", "show", "table", "all"],
        &["-d", "-j", "rule", "show"],
        &["-d", "-j", "-6", "rule", "show"],
        &["-j", "nexthop", "show"],
        &["-j", "neigh", "show", "nud", "permanent"],
        &["-j", "neigh", "show", "nud", "noarp"],
        &["-j", "neigh", "show", "proxy"],
        &["-o", "addr", "show"],
    ]
    .iter()
    .map(|arguments| {
        let told = netns.ip(arguments).unwrap();
        // One row a line, in an order of their own.
        let told = told.replace("},{\"", "},\n{\"");
        let mut lines: Vec<&str> = told
            .lines()
            .map(|line| line.trim_matches(['[', ']', ',', ' ']))
            // The kernel makes neighbours of multicast groups when it likes.
            .filter(|line| !line.is_empty() && !line.starts_with("{\"dst\":\"ff"))
            .collect();
        lines.sort_unstable();
        lines.join("\n")
    })
    .collect()
}

fn assert_same(left: &Netns, right: &Netns, what: &str) {
    for (left, right) in listed(left).iter().zip(&listed(right)) {
        let only = |these: &str, those: &str| {
            let lines = these
                .lines()
                .filter(|line| !those.lines().any(|of| of == *line));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert!(
            left == right,
            "{what}:\nwanted:\n{}\nfound:\n{}",
            only(left, right),
            only(right, left)
        );
    }
}

/// Runs the program with something on its standard input.
fn fed(netns: &Netns, arguments: &[&str], input: &str) -> Output {
    let mut process = netns
        .command(program())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    // It may end before it has read all.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    process.wait_with_output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ip_s_lines_make_what_ip_makes() {
    let (Some(wanted), Some(made)) = (linked("byip"), linked("byus")) else {
        return;
    };
    by_ip(&wanted);
    let lines = format!("{LINES}{}\n", SIX.join(" "));
    let output = fed(&made, &["route", "add", "--file", "-"], &lines);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_same(&wanted, &made, "by lines");
    // The same words one by one, on the command line.
    let Some(single) = linked("single") else {
        return;
    };
    for line in lines.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        said(fingerpost(&single, &words));
    }
    assert_same(&wanted, &single, "by words");
}

#[test]
fn a_listing_can_be_given_back() {
    let (Some(from), Some(to), Some(ours)) = (linked("from"), linked("to"), linked("ours")) else {
        return;
    };
    // `-d` tells what a plain listing leaves out; the table of a route that
    // is not the main one is told always.
    by_ip(&from);
    let objects: [(&str, Commands, Commands); 5] = [
        (
            "addr",
            &[&["-j", "addr", "show", "dev", "em1"]],
            &[&["addr", "--dev", "em1", "--ndjson"]],
        ),
        (
            "neigh",
            &[
                &["-j", "neigh", "show", "nud", "permanent"],
                &["-j", "neigh", "show", "nud", "noarp"],
                &["-j", "neigh", "show", "proxy"],
            ],
            &[
                &["neigh", "--ndjson", "--state", "permanent,noarp"],
                &["neigh", "--proxy", "--ndjson"],
            ],
        ),
        (
            "nexthop",
            &[&["-j", "nexthop", "show"]],
            &[&["nexthop", "--ndjson"]],
        ),
        (
            "route",
            &[
                &["-4", "-d", "-j", "route", "show", "table", "all"],
                &[
                    "-6", "-d", "-j", "route", "show", "table", "all", "proto", "boot",
                ],
            ],
            &[
                &["-4", "route", "show", "table", "all", "--ndjson", "-d"],
                &[
                    "-6", "route", "show", "table", "all", "proto", "boot", "--ndjson", "-d",
                ],
            ],
        ),
        (
            "rule",
            &[
                &["-d", "-j", "rule", "show"],
                &["-d", "-j", "-6", "rule", "show"],
            ],
            &[
                &["rule", "-4", "--ndjson", "-d"],
                &["rule", "-6", "--ndjson", "-d"],
            ],
        ),
    ];
    for (object, by_ip, by_us) in objects {
        let verb = match object {
            "rule" => "add",
            "route" => "append",
            _ => "replace",
        };
        let listings = by_ip
            .iter()
            .map(|arguments| (from.ip(arguments).unwrap(), &to));
        let own = by_us
            .iter()
            .map(|arguments| (said(fingerpost(&from, arguments)), &ours));
        for (listing, into) in listings.chain(own) {
            let mut arguments = vec![object, verb, "--file", "-"];
            // `default` and `all` do not say of which family they are.
            if listing.contains("\"2001:db8") {
                arguments.push("-6");
            }
            let output = fed(into, &arguments, &listing);
            // Rules and the kernel's own routes, which are there from the
            // start, are told and passed over.
            let complaint = complaint(&output);
            for line in complaint.lines() {
                let known = ["rule", "route"].contains(&object) && line.contains("there already");
                assert!(known, "{object}: {line}\n{listing}");
            }
        }
    }
    for into in [&to, &ours] {
        assert_same(&from, into, "given back");
    }
}

#[test]
fn each_bad_line_is_told_and_the_rest_is_made() {
    let Some(netns) = linked("bad") else { return };
    netns
        .ip(&["addr", "add", "192.0.2.1/24", "dev", "em1"])
        .unwrap();
    let lines = "10.0.0.0/8 via 192.0.2.9\n\
                 # a comment\n\
                 10.0.0.0/8 via 192.0.2.9\n\
                 10.1.0.0/16 via fish\n\
                 10.2.0.0/16 dev nosuch\n\
                 10.3.0.1/16 dev em1\n\
                 10.4.0.0/16 via 172.16.0.1\n\
                 10.5.0.0/16 colour red\n\
                 link add x type dummy\n\
                 \n\
                 10.6.0.0/16 dev em1 # the last\n\
                 10.7.0.0/16 dev em1 encap rpl segs fc00::1\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let path = file.path().to_str().unwrap();
    let output = fingerpost(&netns, &["route", "add", "--file", path, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    for (number, says) in [
        (3, "there already"),
        (4, "via `fish`: an address is expected"),
        (5, "no link is named `nosuch`"),
        (6, "the prefix is 10.3.0.0/16"),
        (7, "Nexthop has invalid gateway"),
        (8, "`colour` is not understood here"),
        (9, "is no change that is made here"),
        (12, "`encap rpl` is not made"),
    ] {
        let start = format!("fingerpost: {path}:{number}: ");
        let line = complaint.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("nothing about line {number}: {complaint}"));
        assert!(line.contains(says), "{line}");
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["done"], &result["failed"]), (&2.into(), &8.into()));
    assert_eq!(result["errors"].as_array().map(Vec::len), Some(8));
    // Stopping early, and what cannot be read at all.
    let output = fingerpost(
        &netns,
        &[
            "route",
            "add",
            "--file",
            path,
            "--max-errors",
            "2",
            "--json",
        ],
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["failed"].as_u64().unwrap() < 9, "{result}");
    for (input, says) in [
        ("[{\"dst\":\"10.0.0.0/8\"", "ends inside a JSON object"),
        ("[5]", "a JSON object is expected"),
        ("{\"dst\":5}", "a prefix is expected"),
        ("{\"fish\":5}", "key `fish`"),
        ("\u{1}\u{2}", "a prefix is expected"),
    ] {
        let output = fed(&netns, &["route", "add", "--file", "-"], input);
        assert_eq!(output.status.code(), Some(1), "{input}");
        let complaint = self::complaint(&output);
        assert!(complaint.contains(says), "{input}: {complaint}");
    }
    let long = "x".repeat(70_000);
    let output = fed(&netns, &["route", "add", "--file", "-"], &long);
    assert!(self::complaint(&output).contains("is it text?"));
    let gone = fingerpost(
        &netns,
        &["route", "add", "10.0.0.0/8", "--netns", "no-such"],
    );
    assert_eq!(gone.status.code(), Some(1));
    assert!(self::complaint(&gone).contains("no-such"));
}

#[test]
fn patterns_and_parts_of_a_prefix() {
    let Some(netns) = linked("parts") else { return };
    said(fingerpost(
        &netns,
        &[
            "addr",
            "add",
            "--split",
            "10.0.0.0/22",
            "--len",
            "30",
            "--dev",
            "em1",
        ],
    ));
    let shown = netns
        .ip(&["-4", "-o", "addr", "show", "dev", "em1"])
        .unwrap();
    assert_eq!(shown.lines().count(), 256);
    assert!(shown.contains("10.0.0.1/30 brd 10.0.0.3"), "{shown}");
    assert!(shown.contains("10.0.3.253/30 brd 10.0.3.255"), "{shown}");
    said(fingerpost(
        &netns,
        &[
            "route",
            "add",
            "-n",
            "300",
            "172.{/256+16}.{%256}.0/24",
            "via",
            "10.0.0.2",
        ],
    ));
    let shown = netns.ip(&["route", "show"]).unwrap();
    assert!(shown.contains("172.17.44.0/24 via 10.0.0.2"), "{shown}");
    said(fingerpost(
        &netns,
        &["route", "del", "-n", "2-300", "172.{/256+16}.{%256}.0/24"],
    ));
    let shown = netns
        .ip(&["route", "show", "root", "172.16.0.0/12"])
        .unwrap();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    for (arguments, says) in [
        (
            &["route", "add", "-n", "5", "10.0.0.0/8"][..],
            "a place for the number",
        ),
        (
            &[
                "addr",
                "add",
                "--split",
                "10.0.0.0/24",
                "--len",
                "20",
                "--dev",
                "em1",
            ],
            "--len 20",
        ),
        (
            &[
                "addr", "add", "--split", "::/0", "--len", "128", "--dev", "em1",
            ],
            "split fewer",
        ),
    ] {
        let output = fingerpost(&netns, arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(complaint(&output).contains(says), "{}", complaint(&output));
    }
}

#[test]
fn all_or_nothing() {
    let (Some(wanted), Some(netns)) = (linked("before"), linked("atomic")) else {
        return;
    };
    for netns in [&wanted, &netns] {
        by_ip(netns);
    }
    let bad = "\
addr add 192.0.2.5/24 dev em1
addr del 192.0.2.1/24 dev em1
addr replace 198.51.100.1 peer 198.51.100.2/32 dev em1 metric 78
route replace 10.0.0.0/8 via 192.0.2.10 dev em1 metric 5
route del 10.8.0.0/16
route add 10.200.0.0/16 dev em1
route append 10.3.0.0/16 dev em2
nexthop del id 1
nexthop add id 50 via 192.0.2.9 dev em1
nexthop replace id 5 via 2001:db8::77 dev em1
rule del pref 500
rule add from 10.77.0.0/16 lookup 7 pref 77
neigh replace 192.0.2.9 lladdr 02:00:00:00:00:01 dev em1
neigh add 192.0.2.99 lladdr 02:00:00:00:00:99 dev em1
neigh del 2001:db8::9 dev em1
route del 2001:db8:6::/48
route add fish
";
    let output = fed(&netns, &["route", "add", "--file", "-", "--atomic"], bad);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert!(complaint.contains("fish"), "{complaint}");
    assert!(!complaint.contains("could not be put back"), "{complaint}");
    assert_same(&wanted, &netns, &format!("undone\n{complaint}"));
    // Without a fault all stays.
    let good = "route add 10.200.0.0/16 dev em1\nroute del 10.8.0.0/16\n";
    said(fed(
        &netns,
        &["route", "add", "--file", "-", "--atomic"],
        good,
    ));
    let shown = netns.ip(&["route", "show"]).unwrap();
    assert!(shown.contains("10.200.0.0/16") && !shown.contains("10.8.0.0/16"));
}

#[test]
fn ctrl_c_takes_back_what_was_done_while_the_rest_is_waited_for() {
    let (Some(wanted), Some(netns)) = (linked("calm"), linked("ctrlc")) else {
        return;
    };
    let mut process = netns
        .command(program())
        .args(["route", "add", "--file", "-", "--atomic"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    for number in 0..600 {
        let (high, low) = (number / 256, number % 256);
        writeln!(stdin, "10.{high}.{low}.0/24 dev em1").unwrap();
    }
    stdin.flush().unwrap();
    wait_until(PATIENCE, "the first routes", || {
        let shown = netns.ip(&["route", "show"]).unwrap();
        shown.contains("10.1.0.0/24").then_some(())
    })
    .unwrap();
    // The end of the input never comes.
    let pid = Pid::from_raw(process.id() as i32).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = wait_until(PATIENCE, "its end", || process.try_wait().unwrap()).unwrap();
    assert_eq!(status.code(), Some(1));
    drop(stdin);
    assert_same(&wanted, &netns, "after Ctrl-C");
}
