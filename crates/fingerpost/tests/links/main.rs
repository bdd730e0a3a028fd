//! `fingerpost link add|delete|set` with a real kernel: what they make,
//! what they refuse, and that a kill at any moment loses nothing.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

#[path = "../common/mod.rs"]
mod common;

mod set;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use common::{PATIENCE, program};
use lab::{Child, Netns, Random, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A namespace, and a directory for journals.
struct Place {
    netns: Netns,
    journals: TempDir,
}

impl Place {
    fn new(tag: &str) -> Option<Self> {
        Some(Self {
            netns: lab::skip::unless(Netns::new(tag))?,
            journals: tempfile::tempdir().unwrap(),
        })
    }

    fn command(&self, line: &str) -> std::process::Command {
        let mut command = self.netns.command(program());
        command.arg("link").args(line.split_whitespace());
        if !line.contains("--no-journal") {
            command.arg("--journal").arg(self.journals.path());
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs it; it must succeed. What it wrote.
    fn does(&self, line: &str) -> String {
        let output = self.run(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it; it must fail with a status. What it complained about.
    fn refuses(&self, line: &str, status: i32) -> String {
        let output = self.run(line);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{line}: {complaint}");
        complaint
    }

    /// Name to index, kind, MAC and group, but for the loopback.
    fn links(&self) -> BTreeMap<String, (u64, String, String, String)> {
        let text = self.netns.ip(&["-j", "-d", "link"]).unwrap();
        let links: Vec<Value> = serde_json::from_str(&text).unwrap();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        links
            .iter()
            .filter(|link| link["ifname"] != "lo")
            .map(|link| {
                let kind = word(&link["linkinfo"]["info_kind"]);
                let index = link["ifindex"].as_u64().unwrap();
                let (mac, group) = (word(&link["address"]), word(&link["group"]));
                (word(&link["ifname"]), (index, kind, mac, group))
            })
            .collect()
    }

    /// Whether a journal is there whose work has not ended.
    fn has_open_journal(&self) -> bool {
        let journals = self.run("journal").stdout;
        journals.windows(4).any(|word| word == b"open")
    }

    fn names(&self) -> BTreeSet<String> {
        self.links().into_keys().collect()
    }
}

fn pairs(numbers: impl Iterator<Item = u32>) -> BTreeSet<String> {
    numbers
        .flat_map(|number| [format!("testa{number}"), format!("testb{number}")])
        .collect()
}

#[test]
fn pairs_are_made_set_and_deleted() {
    let Some(place) = Place::new("link") else {
        return;
    };
    place.does(
        "add -n 300 --kind veth --name testa{} --peer testb{} --up --mtu 1400 \
         --address 02:00:00:00:{/256}:{%256} --addr 10.{/256}.{%256}.1/30 \
         --peer-addr 10.{/256}.{%256}.2/30",
    );
    assert_eq!(place.names(), pairs(1..=300));
    let shown = place.netns.ip(&["-o", "-4", "addr"]).unwrap();
    let is_there = |name: &str, address: &str| {
        let line = shown
            .lines()
            .find(|line| line.contains(&format!(" {name} ")));
        line.is_some_and(|line| line.contains(address))
    };
    assert!(
        is_there("testa300", "10.1.44.1/30 brd 10.1.44.3"),
        "{shown}"
    );
    assert!(is_there("testb7", "10.0.7.2/30"), "{shown}");
    let link = place.netns.ip(&["-o", "link", "show", "testb300"]).unwrap();
    assert!(link.contains(",UP") && link.contains("mtu 1400"), "{link}");
    let link = place.netns.ip(&["-o", "link", "show", "testa300"]).unwrap();
    assert!(link.contains("02:00:00:00:01:2c"), "{link}");
    // ip's words, a choice by kind, and all or nothing.
    place.does("set testa{} -n 1-100 down mtu 1300 alias x");
    let link = place.netns.ip(&["link", "show", "testa100"]).unwrap();
    assert!(!link.contains(",UP") && link.contains("mtu 1300") && link.contains("alias x"));
    place
        .netns
        .ip(&["link", "add", "taken5", "type", "bridge"])
        .unwrap();
    let complaint = place.refuses("set testa{} -n 1-10 name taken{} --atomic", 1);
    assert!(complaint.contains("testa5"), "{complaint}");
    assert!(place.names().contains("testa1") && !place.names().contains("taken1"));
    place.does("set testa{} -n 1-2 name renamed{}");
    assert!(place.names().contains("renamed2"));
    place.does("set renamed{} -n 1-2 name testa{}");
    // One end of a pair takes the other along, as the kernel has it; what
    // stands on the other end is a stranger: said, and refused.
    place.does("add mac type macvlan --link testb1");
    let complaint = place.refuses("delete testa1 testa2", 1);
    assert!(
        complaint.contains("mac (macvlan, with testb1)") && complaint.contains("--cascade"),
        "{complaint}"
    );
    assert!(!complaint.contains("testb2"), "{complaint}");
    let said = place.does("delete --dry-run testa1");
    assert!(said.contains("along: testb1"), "{said}");
    assert_eq!(place.names().len(), 602);
    place.does("delete mac");
    let said = place.does("delete testa{} --peer testb{} -n 2-300 --json");
    let end: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(
        (&end["deleted"], &end["way"]),
        (&598.into(), &"group".into())
    );
    assert_eq!(place.names().len(), 3);
    place.does("delete testa[1-01]");
    assert_eq!(place.names(), ["taken5".to_owned()].into());
}

#[test]
fn ip_s_own_words_and_other_kinds() {
    let Some(place) = Place::new("kinds") else {
        return;
    };
    let Some(other) = Place::new("kinds-there") else {
        return;
    };
    let there = other.netns.name();
    place.does(&format!(
        "add testa{{}} type veth peer name testb{{}} netns {there} -n 3 --split 10.0.0.0/24"
    ));
    assert_eq!(
        other.names(),
        ["testb1", "testb2", "testb3"].map(String::from).into()
    );
    let shown = other.netns.ip(&["-o", "-4", "addr"]).unwrap();
    assert!(shown.contains("10.0.0.10/30"), "{shown}");
    place.does("add br0 type bridge forward_delay 300");
    place.does("add -n 3 --kind macvlan --link testa1 --name mac{} mode bridge");
    place.does("add -n 3 --kind vxlan --name vx{} --master br0 --group 77 id {+100} dstport 4789");
    let shown = place
        .netns
        .ip(&["-o", "-d", "link", "show", "vx3"])
        .unwrap();
    assert!(
        shown.contains("id 103") && shown.contains("master br0"),
        "{shown}"
    );
    assert!(shown.contains("group 77"), "{shown}");
    place.does("add ifb{} type ifb -n 2-4");
    if lab::skip::tun().is_ok() {
        place.does("add -n 3 --kind tap --name tap{} --up --addr 10.9.{}.1/24");
        let shown = place.netns.ip(&["-o", "-4", "addr"]).unwrap();
        assert!(shown.contains("10.9.3.1/24"), "{shown}");
    }
    // In ip's words up and MTU are of the first end; by flags, of both.
    place.does("add first up mtu 1400 type veth peer name second");
    place.does("add --kind veth --name third --peer fourth --up --mtu 1400");
    for (name, is_set) in [
        ("first", true),
        ("second", false),
        ("third", true),
        ("fourth", true),
    ] {
        let link = place.netns.ip(&["-o", "link", "show", name]).unwrap();
        let has = (link.contains(",UP"), link.contains("mtu 1400"));
        assert_eq!(has, (is_set, is_set), "{link}");
    }
    place.does("delete first third");
    // By group, master, parent, kind.
    place.does("delete --group 77 --master br0");
    place.does("delete --link testa1 --kind macvlan");
    other.does("add mac type macvlan --link testb1");
    let complaint = place.refuses("delete --kind veth", 1);
    assert!(
        complaint.contains(&format!(
            "mac (macvlan, with testb1) in the namespace {there}"
        )),
        "{complaint}"
    );
    other.does("delete mac");
    place.does("delete --kind veth");
    assert!(other.names().is_empty());
    // Both ends come back, each in its namespace.
    place.does("delete --undo");
    assert_eq!(
        other.names(),
        ["testb1", "testb2", "testb3"].map(String::from).into()
    );
    let shown = other.netns.ip(&["-o", "-4", "addr"]).unwrap();
    assert!(shown.contains("10.0.0.10/30"), "{shown}");
    place.does("delete --all --cascade");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

/// What the kernel takes of a link that was deleted is as it was.
#[test]
fn undone_links_are_as_they_were() {
    let Some(place) = Place::new("as-before") else {
        return;
    };
    let lines = "link add vx0 type vxlan id 5 dstport 4789\n\
                 link add m0 link vx0 type macvlan mode bridge\n\
                 link add br0 type bridge\n\
                 link add v0 type veth peer name v1\n\
                 link set v0 master br0\n\
                 link set vx0 up promisc on allmulticast on addrgenmode none\n\
                 link set v1 up gso_max_size 30000 gso_max_segs 99 gro_max_size 40000\n\
                 link set m0 up alias \"an uplink\"\n\
                 link property add dev v1 altname other-v1 altname one-more-v1\n\
                 addr add 10.0.0.1/24 dev m0\n";
    place.netns.ip_batch(lines).unwrap();
    let told = || {
        let told = place.netns.ip(&["-j", "-d", "addr"]).unwrap();
        let mut told: serde_json::Value = serde_json::from_str(&told).unwrap();
        for link in told.as_array_mut().unwrap() {
            let link = link.as_object_mut().unwrap();
            // What follows by and by.
            for key in ["operstate", "addr_info", "flags"] {
                link.remove(key);
            }
            if let Some(info) = link
                .get_mut("linkinfo")
                .and_then(|info| info.as_object_mut())
            {
                for data in ["info_data", "info_slave_data"] {
                    let data = info.get_mut(data).and_then(|data| data.as_object_mut());
                    if let Some(data) = data {
                        data.retain(|key, _| !key.ends_with("_timer"));
                        data.remove("state");
                    }
                }
            }
        }
        told
    };
    let before = told();
    place.does("delete vx0 v0 --cascade");
    assert_ne!(told(), before);
    let said = place.does("delete --undo");
    assert!(said.contains("not brought back: counters"), "{said}");
    let after = told();
    let both = before
        .as_array()
        .unwrap()
        .iter()
        .zip(after.as_array().unwrap());
    for (before, after) in both {
        assert_eq!(before, after);
    }
    let flags = place.netns.ip(&["link", "show", "vx0"]).unwrap();
    assert!(flags.contains("ALLMULTI,PROMISC"), "{flags}");
}

/// What goes with links that are deleted: rows that somebody made, ports, and
/// settings under `/proc/sys`.
const BESIDE: &str = "\
    link add br0 address 02:00:00:00:00:20 type bridge
    link add v0 address 02:00:00:00:00:10 type veth peer name v1 address 02:00:00:00:00:11
    link set v0 master br0 up
    link set v1 up
    link set br0 up
    link add vx0 address 02:00:00:00:00:40 type vxlan id 5 dstport 4789 local 10.0.0.1
    addr add 10.0.0.1/24 dev br0
    addr add 2001:db8::1/64 dev br0 nodad
    route add 10.1.0.0/16 via 10.0.0.9
    route add 10.2.0.0/16 nexthop via 10.0.0.8 nexthop via 10.0.0.9 weight 3
    route add 10.4.0.0/16 dev br0 table 77 metric 5
    route add 2001:db8:1::/48 via 2001:db8::9
    neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev br0
    neigh add proxy 10.0.0.77 dev br0
    nexthop add id 1 via 10.0.0.9 dev br0
    nexthop add id 2 group 1
    route add 10.3.0.0/16 nhid 2
";

#[test]
fn what_goes_with_links_comes_back_with_them() {
    let Some(place) = Place::new("beside") else {
        return;
    };
    let netns = &place.netns;
    netns.ip_batch(BESIDE).unwrap();
    let script = "bridge fdb add 02:00:00:00:00:77 dev v0 master static
        bridge fdb append 00:00:00:00:00:00 dev vx0 dst 10.0.0.2
        bridge fdb add 02:00:00:00:00:78 dev vx0 dst 10.0.0.3
        cd /proc/sys/net; echo 2 > ipv4/conf/br0/rp_filter; echo 1 > ipv4/conf/br0/arp_ignore
        echo 0 > ipv6/conf/vx0/accept_ra";
    netns.run("sh", &["-ec", script]).unwrap();
    let told = || {
        let ask =
            "ip route show table all; ip -6 route show table all | grep -v fe80 | grep -v ff00
            ip neigh show nud permanent; ip neigh show proxy; ip nexthop
            bridge fdb | grep -v '33:33:\\|01:00:5e:' | sort; bridge link | grep -o 'master br0'
            cd /proc/sys/net; grep . ipv4/conf/br0/rp_filter ipv4/conf/br0/arp_ignore \
            ipv6/conf/vx0/accept_ra ipv6/conf/vx0/accept_redirects";
        netns.run("sh", &["-c", ask]).unwrap()
    };
    let before = told();
    assert!(before.matches("10.0.0.9").count() > 3, "{before}");
    place.does("delete br0 vx0");
    let said = place.does("delete --undo");
    for what in ["ports are in their masters", "settings under /proc/sys"] {
        assert!(said.contains(what), "{said}");
    }
    let came = wait_until(PATIENCE, "all of it back", || {
        (told() == before).then_some(())
    });
    assert!(came.is_ok(), "before:\n{before}\nafter:\n{}", told());
    // What somebody else made under a name meanwhile is left alone.
    place.does("delete vx0");
    netns.ip(&["link", "add", "vx0", "type", "ifb"]).unwrap();
    place.refuses("delete --undo", 1);
    assert_eq!(place.links()["vx0"].1, "ifb");
}

#[test]
fn new_links_are_in_no_group_of_their_own() {
    let Some(place) = Place::new("groups") else {
        return;
    };
    place.does("add -n 20 --kind veth --name testa{} --peer testb{}");
    let is_usual =
        |(_, (_, _, _, group)): (&String, &(u64, String, String, String))| group == "default";
    assert!(place.links().iter().all(is_usual), "{:?}", place.links());
    // A journal knows them all the same.
    place.does("add --undo");
    assert!(place.names().is_empty(), "{:?}", place.names());
    let told = place.run("journal").stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains(&format!(" in {}, ", place.netns.name())),
        "{told}"
    );
}

#[test]
fn bad_input_is_named_and_counted() {
    let Some(place) = Place::new("bad") else {
        return;
    };
    place
        .netns
        .ip_batch("link add testa3 type bridge\nlink add parent type bridge\n")
        .unwrap();
    let before = place.links();
    let veths = "add --kind veth --peer testb{} --name";
    for (line, status, words) in [
        (
            format!("{veths} a-name-too-long-{{}} -n 3"),
            2,
            "15 at most",
        ),
        (format!("{veths} testb{{}} -n 3"), 2, "twice"),
        (format!("{veths} same -n 3"), 2, "twice"),
        (
            "add -n 300 --kind bridge --name b{} --addr 10.0.{}.1/30".to_owned(),
            2,
            "--split",
        ),
        (
            "add -n 3 --kind macvlan --link nowhere --name m{}".to_owned(),
            1,
            "there is no link `nowhere`",
        ),
        (
            "add -n 3 --kind bridge --name b{} --master nowhere".to_owned(),
            1,
            "there is no link `nowhere`",
        ),
        (
            "add -n 3 --kind nonsense --name n{}".to_owned(),
            1,
            "no kind of link",
        ),
        (
            "add -n 3 --kind bridge --name b{} nonsense 7".to_owned(),
            1,
            "no option `nonsense`",
        ),
        (
            "add -n 5000 --kind vlan --link parent --name v{}".to_owned(),
            2,
            "4094 each",
        ),
        (
            format!("{veths} x{{}} --netns fp-there-is-none -n 3"),
            1,
            "fp-there-is-none",
        ),
        (
            format!("{veths} x{{}} --peer-netns fp-there-is-none -n 3"),
            1,
            "fp-there-is-none",
        ),
        ("delete".to_owned(), 2, "say which links"),
        (
            "set dev testa3 up promisc on".to_owned(),
            2,
            "`promisc` is not understood",
        ),
        (
            "set testa3 mtu 1400 parent".to_owned(),
            2,
            "names come before",
        ),
        (
            "delete dev testa3 type bridge parent".to_owned(),
            2,
            "after `type KIND`",
        ),
        (
            "delete dev testa3 type vlan".to_owned(),
            1,
            "not of that kind",
        ),
        ("delete group 0".to_owned(), 2, "group 0"),
        ("delete group 5".to_owned(), 0, ""),
        ("delete nowhere".to_owned(), 1, "there is no such link"),
        ("delete lo".to_owned(), 1, "no virtual link"),
        ("set testa3".to_owned(), 2, "say what to set"),
        ("set nowhere up".to_owned(), 1, "there is no such link"),
        ("add --resume".to_owned(), 1, "no journal"),
        ("delete --undo nonsense".to_owned(), 1, "nonsense"),
    ] {
        let complaint = place.refuses(&line, status);
        assert!(complaint.contains(words), "{line}: {complaint}");
        assert_eq!(place.links(), before, "{line}");
    }
    // Kinds that this kernel lacks name their module.
    let has_vlan = std::path::Path::new("/proc/net/vlan").exists();
    if !has_vlan {
        let complaint = place.refuses("add -n 2 --kind vlan --link parent --name v{}", 1);
        assert!(complaint.contains("8021q"), "{complaint}");
    }
    // A duplicate: the rest is made; or with --atomic nothing.
    let complaint = place.refuses(&format!("{veths} testa{{}} -n 200 --atomic"), 1);
    assert!(complaint.contains("testa3"), "{complaint}");
    assert_eq!(place.links(), before);
    let output = place.run(&format!("{veths} testa{{}} -n 200 --json"));
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["link"], "testa3");
    assert_eq!(
        (&lines[1]["made"], &lines[1]["failed"]),
        (&199.into(), &1.into())
    );
    // What stood in the way goes; the rest is made, and all is taken back.
    place.netns.ip(&["link", "del", "testa3"]).unwrap();
    place.does("add --resume");
    assert_eq!(place.names().len(), 401);
    place.does("add --undo");
    assert_eq!(place.names(), ["parent".to_owned()].into());
    let journals = place.does("journal");
    let newest: Vec<&str> = journals.lines().next().unwrap().split(' ').collect();
    assert_eq!(newest[1..5], ["add", "200", "links", "undone"]);
    let complaint = place.refuses(&format!("add --undo {}", newest[0]), 1);
    assert!(complaint.contains("already"), "{complaint}");
}

#[test]
fn without_privilege_nothing_is_made_and_it_is_said_why() {
    let Some(place) = Place::new("plain") else {
        return;
    };
    if !lab::skip::user(65534).is_ok_and(|()| true) {
        lab::skip::skip("user 65534 is not known in this user namespace");
        return;
    }
    let mut command = place.netns.command("setpriv");
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            program(),
            "link",
        ])
        .args("add -n 3 --kind bridge --name b{} --no-journal".split_whitespace());
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("CAP_NET_ADMIN"), "{complaint}");
    assert!(place.names().is_empty());
}

#[test]
fn somebody_else_deletes_some_meanwhile() {
    let Some(place) = Place::new("meanwhile") else {
        return;
    };
    place.does("add -n 50 --kind veth --name testa{} --peer testb{}");
    let rows = place.links();
    // Deleted and taken back, with a stranger under one of the names.
    place.does("delete testa{} --peer testb{} -n 50");
    place
        .netns
        .ip(&["link", "add", "testa9", "type", "bridge"])
        .unwrap();
    let complaint = place.refuses("delete --undo", 1);
    assert!(complaint.contains("testa9"), "{complaint}");
    let now = place.links();
    assert_eq!(now["testa9"].1, "bridge");
    assert_eq!(now.len(), 99);
    let is_back = |name: &str| now[name] == rows[name];
    assert!(
        (1..=50)
            .filter(|n| *n != 9)
            .all(|n| is_back(&format!("testa{n}")))
    );
}

/// Kills the program after a while; tells whether it had ended.
fn killed(place: &Place, line: &str, after: Duration) -> bool {
    signalled(place, line, after, Signal::KILL)
}

/// Signals it; tells whether it did all the same what was asked for.
fn signalled(place: &Place, line: &str, after: Duration, signal: Signal) -> bool {
    let mut command = place.command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Child::spawn(command).unwrap();
    std::thread::sleep(after);
    // It may have ended: then there is nobody to kill.
    let _ = child.signal(signal);
    child.wait(PATIENCE).unwrap().success()
}

/// How long a run takes when nobody kills it.
fn time(place: &Place, line: &str) -> Duration {
    let began = Instant::now();
    place.does(line);
    began.elapsed()
}

const ADD: &str = "add -n 150 --kind veth --name testa{} --peer testb{} --addr 10.{}.0.1/30";
const DELETE: &str = "delete testa{} --peer testb{} -n 150";
const KILLS: usize = 25;

#[test]
fn killed_while_it_makes_links() {
    let Some(place) = Place::new("kill-add") else {
        return;
    };
    let stranger = "link add stranger type veth peer name testb\nlink add testa type bridge\n";
    place.netns.ip_batch(stranger).unwrap();
    let strangers = place.links();
    let whole = time(&place, ADD);
    place.does("add --undo");
    assert_eq!(place.links(), strangers);
    let mut random = Random::new(u64::from(std::process::id()));
    for round in 0..KILLS {
        let after = whole.mul_f64(random.below(1000) as f64 / 900.0);
        let ended = killed(&place, ADD, after);
        if !place.has_open_journal() {
            // It was killed before it began, or was through: what is there
            // then is looked at below.
            let has_begun = place.links() != strangers;
            assert!(
                ended || !has_begun || place.names().len() == strangers.len() + 300,
                "{round}"
            );
        } else if round % 2 == 0 {
            place.does("add --resume");
        } else {
            // A stranger in the place of one that was made.
            let swapped = place.names().contains("testa5");
            if swapped {
                let batch = "link del testa5\nlink add testa5 type bridge\n";
                place.netns.ip_batch(batch).unwrap();
            }
            place.does("add --undo");
            let mut left = place.links();
            if swapped {
                assert_eq!(left.remove("testa5").unwrap().1, "bridge");
                place.netns.ip(&["link", "del", "testa5"]).unwrap();
            }
            assert_eq!(left, strangers, "{round}");
            continue;
        }
        if place.links() == strangers {
            continue;
        }
        let mut expected = pairs(1..=150);
        expected.extend(strangers.keys().cloned());
        assert_eq!(place.names(), expected, "{round}");
        let shown = place.netns.ip(&["-o", "-4", "addr"]).unwrap();
        assert_eq!(shown.matches("/30").count(), 150, "{round}");
        let all = place.links();
        assert!(
            strangers
                .iter()
                .all(|(name, link)| all.get(name) == Some(link))
        );
        place.does("add --undo");
        assert_eq!(place.links(), strangers, "{round}");
    }
}

#[test]
fn killed_while_it_deletes_links() {
    let Some(place) = Place::new("kill-delete") else {
        return;
    };
    let stranger = "link add stranger type veth peer name testb\nlink add testa type bridge\n";
    place.netns.ip_batch(stranger).unwrap();
    let strangers = place.links();
    place.does("add -n 300 --kind veth --name testa{} --peer testb{}");
    let whole = time(&place, DELETE);
    place.does("delete --undo");
    let all = place.links();
    assert_eq!(all.len(), 600 + strangers.len());
    let mut rest = all.clone();
    rest.retain(|name, _| !pairs(1..=150).contains(name));
    let mut random = Random::new(u64::from(std::process::id()));
    for round in 0..KILLS {
        let after = whole.mul_f64(random.below(1000) as f64 / 900.0);
        let ended = killed(&place, DELETE, after);
        let is_open = place.has_open_journal();
        // Killed before it began, or between its end and that of the process:
        // nothing in between is without an open journal.
        if !is_open && !ended && place.links() != rest {
            assert_eq!(place.links(), all, "{round}: killed before it began");
            continue;
        }
        if is_open && round % 2 == 0 {
            place.does("delete --resume");
            assert_eq!(place.links(), rest, "{round}");
        }
        // Index, kind, MAC and group of each are as they were.
        place.does("delete --undo");
        assert_eq!(place.links(), all, "{round}");
    }
}

#[test]
fn interrupted_and_all_or_nothing() {
    let Some(place) = Place::new("atomic") else {
        return;
    };
    let line = "add -n 1000 --kind veth --name testa{} --peer testb{} --atomic";
    let whole = time(&place, line);
    place.does("delete --all");
    for part in [0.2, 0.5, 0.8] {
        let mut command = place.command(line);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Child::spawn(command).unwrap();
        std::thread::sleep(whole.mul_f64(part));
        let _ = child.signal(Signal::INT);
        if child.wait(PATIENCE).unwrap().success() {
            // It was through before it heard.
            place.does("add --undo");
        }
        assert!(place.names().is_empty(), "{part}");
    }
}
