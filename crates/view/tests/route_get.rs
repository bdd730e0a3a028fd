//! `route get` against `ip route get`: the kernel's decision, for many
//! addresses, with rules, types of service, next-hop objects and links
//! that are down.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use std::time::Duration;

use fingerpost_view as view;
use lab::{Netns, Random};
use serde_json::Value;
use support::{Rows, now_millis};
use view::{Format, Names, RouteQuestion, route_get};

/// One primary address a network, so that the order in which addresses
/// were made does not decide.
const LINKS: &str = "
link add a0 type veth peer name a1
link add b0 type veth peer name b1
link add c0 type veth peer name c1
link add e0 type veth peer name e1
link set a0 up
link set a1 up
link set b0 up
link set b1 up
link set c0 up
link set e0 up
link set e1 up
link set e0 group 7
addr add 192.0.2.1/24 brd + dev a0
addr add 192.0.2.2/24 dev a0
addr add 198.51.100.1/24 brd + dev b0
addr add 10.9.0.1/30 dev c0
addr add 203.0.113.1 peer 203.0.113.2/32 dev e0
addr add 2001:db8:a::1/64 dev a0
addr add 2001:db8:b::1/64 dev b0
addr add fd00:e::1/64 dev e0
";

const ROUTES: &str = "
route add default via 192.0.2.254
route add default via 198.51.100.254 metric 100
route add 10.0.0.0/8 via 192.0.2.254 src 192.0.2.2 mtu 1400
route add 10.1.0.0/16 via 198.51.100.254
route add 10.1.1.0/24 via 198.51.100.253 metric 5
route add 10.1.1.0/24 via 192.0.2.253 metric 7
route add 10.1.1.128/25 dev e0 scope link
route add 10.1.2.0/24 nexthop via 192.0.2.254 weight 3 nexthop via 198.51.100.254
route add 10.1.3.0/24 via 10.9.0.2
route add blackhole 10.2.0.0/16
route add unreachable 10.3.0.0/16
route add prohibit 10.4.0.0/16
route add throw 10.5.0.0/16
route add 10.6.0.0/16 via 192.0.2.254 tos 0x10
route add 10.6.0.0/16 via 198.51.100.254
route add 10.7.0.0/16 via 192.0.2.253 realms 3/5
route add 10.8.0.0/16 via 10.77.0.1 dev b0 onlink
route add 10.10.0.0/16 via inet6 2001:db8:a::fe dev a0
route add 10.12.0.0/16 dev a0 scope link
route add 10.20.0.0/16 via 198.51.100.9 table 100
route add 10.30.0.0/16 via 198.51.100.9 table 100
route add throw 10.30.1.0/24 table 100
route add default via 192.0.2.77 table 200
route add 10.40.0.0/16 via 192.0.2.77 table 200
nexthop add id 1 via 192.0.2.254 dev a0
nexthop add id 2 via 198.51.100.254 dev b0
nexthop add id 3 blackhole
nexthop add id 10 group 1,3/2,1
route add 10.50.0.0/16 nhid 1
route add 10.51.0.0/16 nhid 10
route add 10.52.0.0/16 nhid 3
route add ::/0 via 2001:db8:a::fe
route add 2001:db8:100::/48 via 2001:db8:b::fe
route add 2001:db8:100:1::/64 via 2001:db8:a::fd metric 5
route add 2001:db8:102::/48 nexthop via 2001:db8:a::fe nexthop via 2001:db8:b::fe
route add blackhole 2001:db8:103::/48
route add unreachable 2001:db8:104::/48
route add prohibit 2001:db8:105::/48
route add throw 2001:db8:106::/48
route add 2001:db8:109::/48 via 2001:db8:a::fe src 2001:db8:b::1 mtu 1300
route add 2001:db8:10a::/48 via fe80::1 dev b0 pref high
route add fd01::/16 via fd00:e::2
rule add pref 100 to 10.20.0.0/16 lookup 100
rule add pref 101 to 10.30.0.0/16 lookup 100
rule add pref 102 from 192.0.2.2 lookup 200
rule add pref 103 fwmark 0x10/0xf0 lookup 200
rule add pref 104 to 10.60.0.0/16 goto 110
rule add pref 105 to 10.60.0.0/16 prohibit
rule add pref 106 to 10.61.0.0/16 prohibit
rule add pref 107 to 10.62.0.0/16 unreachable
rule add pref 108 to 10.63.0.0/16 blackhole
rule add pref 109 not from all lookup 200
rule add pref 110 nop
rule add pref 111 to 10.64.0.0/14 lookup main suppress_prefixlength 8
rule add pref 112 to 10.64.0.0/14 lookup 200
rule add pref 113 to 10.1.1.128/25 lookup main suppress_ifgroup 7
rule add pref 114 oif b0 to 10.40.0.0/16 lookup 200
rule add pref 115 iif lo tos 0x08 to 10.40.0.0/16 lookup 200
rule add pref 116 to 10.70.0.0/16 ipproto tcp lookup 200
rule add pref 117 uidrange 5000-6000 lookup 200
";

fn namespace() -> Option<Netns> {
    lab::skip::unless(lab::skip::user(6_000))?;
    let netns = lab::skip::unless(Netns::new("view-get"))?;
    netns
        .sysctl("net/ipv6/conf/default/accept_dad", "0")
        .unwrap();
    netns.ip_batch(LINKS).unwrap();
    let links = ["a0", "b0", "e0", "a1", "b1", "e1"];
    support::wait_for_final_addresses(&netns, &["2001:db8:a::1", "2001:db8:b::1", "fd00:e::1"]);
    for link in links {
        support::wait_for_link_local(&netns, link);
    }
    netns.ip_batch(ROUTES).unwrap();
    Some(netns)
}

/// What we say: the object of `--json`, or the kernel's word for why not.
fn ours(rows: &table::Tables, question: &RouteQuestion) -> Result<Value, String> {
    let mut question = question.clone();
    question.output.format = Format::Json;
    let mut out = Vec::new();
    match route_get(&question, rows, &Names::default(), now_millis(), &mut out) {
        Ok(_) => Ok(serde_json::from_slice::<Value>(&out).unwrap()[0].clone()),
        Err(error) => Err(error.to_string().split(':').next().unwrap().to_owned()),
    }
}

fn theirs(netns: &Netns, words: &str) -> Result<Value, String> {
    let mut arguments = vec!["-j", "route", "get"];
    arguments.extend(words.split(' '));
    let output = netns.command("ip").args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    match errors.trim().strip_prefix("RTNETLINK answers: ") {
        Some(error) => Err(error.to_owned()),
        None if !errors.is_empty() => Err(errors),
        None => {
            let answers = serde_json::from_slice::<Value>(&output.stdout).unwrap();
            Ok(answers[0].clone())
        }
    }
}

/// Of a group the kernel takes one member by a hash: the same if ours has
/// it among its members.
fn same(ours: &Result<Value, String>, theirs: &Result<Value, String>) -> bool {
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else {
        return ours == theirs;
    };
    let mut ours = ours.clone();
    if let Some(members) = ours.as_object_mut().and_then(|o| o.remove("nexthops")) {
        let is_theirs = |member: &&Value| {
            member["gateway"] == theirs["gateway"] && member["dev"] == theirs["dev"]
        };
        let Some(member) = members.as_array().unwrap().iter().find(is_theirs) else {
            return false;
        };
        ours["gateway"] = member["gateway"].clone();
        ours["dev"] = member["dev"].clone();
        // Each member has a source of its own; ours is the first one's.
        ours["prefsrc"] = theirs["prefsrc"].clone();
    }
    ours == *theirs
}

/// The question that the words behind `route get` ask.
fn question(words: &str) -> RouteQuestion {
    let mut parts = words.split(' ');
    let mut question = RouteQuestion::to(parts.next().unwrap().parse().unwrap());
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        match key {
            "from" => question.from = Some(value.parse().unwrap()),
            "iif" => question.iif = Some(value.into()),
            "oif" => question.oif = Some(value.into()),
            "mark" => question.mark = number(value),
            "tos" => question.tos = number(value) as u8,
            "uid" => question.uid = Some(number(value)),
            "ipproto" => question.ipproto = Some(if value == "tcp" { 6 } else { 17 }),
            "sport" => question.sport = Some(number(value) as u16),
            "dport" => question.dport = Some(number(value) as u16),
            _ => panic!("{key}"),
        }
    }
    question
}

/// How late an address may be announced, and its routes made.
const SETTLES: Duration = Duration::from_secs(60);

/// Situations at random; `FINGERPOST_ROUTE_SEEDS` says how many, from
/// which on (`FIRST-LAST`). Each asks 200 questions.
#[test]
fn the_kernel_s_decision_in_situations_at_random() {
    if lab::skip::unless(lab::skip::user(6_000)).is_none() {
        return;
    }
    let seeds = std::env::var("FINGERPOST_ROUTE_SEEDS").unwrap_or("1-20".into());
    let (first, last) = seeds.split_once('-').unwrap();
    let mut wrong = Vec::new();
    for seed in first.parse().unwrap()..=last.parse().unwrap() {
        let Some(netns) = lab::skip::unless(Netns::new("view-random")) else {
            return;
        };
        netns
            .sysctl("net/ipv6/conf/default/accept_dad", "0")
            .unwrap();
        // A packet that came in is answered for as by a router.
        netns.sysctl("net/ipv4/conf/all/forwarding", "1").unwrap();
        lab::decisions::change(&netns, &lab::decisions::situation(seed)).unwrap();
        let questions = lab::decisions::questions(seed, 200);
        // Some addresses are announced, and their routes made, a little late.
        let mut found = Vec::new();
        let agreed = lab::wait_until(SETTLES, "agreement", || {
            let tables = Rows::of(&netns).tables();
            let answers = questions
                .iter()
                .map(|words| ours(&tables, &question(words)));
            let answers: Vec<_> = answers.collect();
            let theirs = lab::decisions::of_kernel(&netns, &questions).unwrap();
            found = lab::decisions::differences(&questions, &answers, &theirs);
            found.is_empty().then_some(())
        });
        if agreed.is_err() {
            wrong.push(format!(
                "seed {seed}, {}:\n{}",
                found.len(),
                found.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(netns: &Netns, tables: &table::Tables, words: &str) -> Option<String> {
    let mut parts = words.split(' ');
    let mut question = RouteQuestion::to(parts.next().unwrap().parse().unwrap());
    question.uid = Some(0);
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        match key {
            "from" => question.from = Some(value.parse().unwrap()),
            "oif" => question.oif = Some(value.into()),
            "mark" => question.mark = value.parse().unwrap(),
            "tos" => question.tos = value.parse().unwrap(),
            "uid" => question.uid = Some(value.parse().unwrap()),
            _ => panic!("{key}"),
        }
    }
    let words = words
        .replace(" tos 16", " tos 0x10")
        .replace(" tos 8", " tos 0x08");
    let mut question_v6 = question.clone();
    if question.to.is_ipv6() {
        // IPv6 answers do not tell the user.
        question_v6.uid = None;
    }
    let (ours, theirs) = (ours(tables, &question_v6), theirs(netns, &words));
    (!same(&ours, &theirs)).then(|| format!("{words}\n  ours:   {ours:?}\n  theirs: {theirs:?}"))
}

#[test]
fn the_kernel_s_decision_for_many_packets() {
    let Some(netns) = namespace() else { return };
    let tables = Rows::of(&netns).tables();
    let mut asked: Vec<String> = [
        "8.8.8.8",
        "127.0.0.1",
        "127.1.2.3",
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.255",
        "192.0.2.77",
        "198.51.100.7",
        "203.0.113.2",
        "203.0.113.3",
        "10.9.0.2",
        "10.9.0.1",
        "224.0.0.1",
        "224.0.0.5",
        "239.1.2.3",
        "255.255.255.255",
        "0.0.0.0",
        "10.0.0.1",
        "10.1.0.1",
        "10.1.1.1",
        "10.1.1.129",
        "10.1.2.3",
        "10.1.3.4",
        "10.2.0.1",
        "10.3.0.1",
        "10.4.0.1",
        "10.5.0.1",
        "10.6.0.1",
        "10.6.0.1 tos 16",
        "10.7.0.1",
        "10.8.0.1",
        "10.10.0.1",
        "10.12.0.1",
        "10.20.0.1",
        "10.30.0.1",
        "10.30.1.1",
        "10.40.0.1",
        "10.40.0.1 tos 8",
        "10.50.0.1",
        "10.51.0.1",
        "10.52.0.1",
        "10.60.0.1",
        "10.61.0.1",
        "10.62.0.1",
        "10.63.0.1",
        "10.64.0.1",
        "10.70.0.1",
        "8.8.8.8 from 192.0.2.2",
        "8.8.8.8 from 192.0.2.1",
        "8.8.8.8 from 9.9.9.9",
        "8.8.8.8 mark 16",
        "8.8.8.8 tos 16",
        "8.8.8.8 mark 31",
        "8.8.8.8 mark 32",
        "8.8.8.8 oif b0",
        "8.8.8.8 oif e0",
        "10.2.0.1 oif b0",
        "10.40.0.1 oif b0",
        "224.0.0.5 oif b0",
        "255.255.255.255 oif b0",
        "8.8.8.8 uid 5500",
        "10.1.1.1 oif a0",
        "192.0.2.9 oif c0",
        "2001:db8:a::7",
        "2001:db8:b::7",
        "2001:db8:a::1",
        "2001:db8:100::1",
        "2001:db8:100:1::1",
        "2001:db8:102::1",
        "2001:db8:103::1",
        "2001:db8:104::1",
        "2001:db8:105::1",
        "2001:db8:106::1",
        "2001:db8:109::1",
        "2001:db8:10a::1",
        "fd01::1",
        "fd00:e::5",
        "2a00::1",
        "::1",
        "fe80::1 oif b0",
        "fe80::1 oif e0",
        "ff02::1 oif a0",
        "ff05::2 oif b0",
        "2a00::1 oif a0",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut random = Random::new(7);
    for _ in 0..300 {
        let [_, b, c, d, ..] = random.number().to_ne_bytes();
        asked.push(format!("10.{}.{c}.{d}", b % 72));
        asked.push(format!(
            "2001:db8:{:x}:{:x}::{d:x}",
            0x100 + u16::from(b % 12),
            c % 3
        ));
    }
    let wrong: Vec<String> = asked
        .iter()
        .filter_map(|words| check(&netns, &tables, words))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        asked.len(),
        wrong.join("\n")
    );

    // Links that are down or without a carrier, and objects whose contents
    // routes do not repeat.
    netns.ip(&["link", "set", "b1", "down"]).unwrap();
    netns.ip(&["link", "set", "a0", "mtu", "1499"]).unwrap();
    netns.sysctl("net/ipv4/nexthop_compat_mode", "0").unwrap();
    let tables = Rows::of(&netns).tables();
    let wrong: Vec<String> = asked
        .iter()
        .filter(|words| !words.contains(':'))
        .filter_map(|words| check(&netns, &tables, words))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        asked.len(),
        wrong.join("\n")
    );
}
