//! `fingerpost arp` beside the installed `arp`.

use std::fmt::Write;

use crate::{World, text};

/// Lines for `ip -batch`: so many permanent neighbours on v0, from 10.64.0.1
/// on.
pub fn permanent(count: u32) -> String {
    let mut lines = String::new();
    for number in 1..=count {
        let [_, a, b, c] = number.to_be_bytes();
        writeln!(
            lines,
            "neigh add 10.{}.{b}.{c} lladdr 02:00:00:{a:02x}:{b:02x}:{c:02x} dev v0 nud permanent",
            64 + a
        )
        .unwrap();
    }
    lines
}

/// A world with every kind of entry, but for a proxy entry of every link:
/// the kernel forgets to free that with its namespace, and a later one may
/// find it in its table.
fn every_kind(tag: &str) -> Option<World> {
    lab::skip::unless(lab::skip::tun())?;
    let world = World::new(tag, "arp")?;
    world.veth();
    let mut lines = String::from(
        "tuntap add tun0 mode tun\n\
         link set tun0 up\n\
         addr add 10.0.0.1/24 dev v0\n\
         addr add 10.0.1.1/30 broadcast 10.0.1.3 dev v0\n\
         neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev lo nud permanent\n\
         neigh add 10.9.0.3 dev tun0 nud permanent\n\
         neigh add proxy 10.0.0.99 dev v0\n\
         neigh add proxy 10.0.0.98 dev tun0\n\
         neigh add 2001:db8::5 lladdr 02:00:00:00:00:05 dev v0 nud permanent\n",
    );
    for (last, state) in ["permanent", "reachable", "stale", "failed", "noarp", "none"]
        .iter()
        .enumerate()
    {
        let last = last + 10;
        writeln!(
            lines,
            "neigh add 10.0.0.{last} lladdr 02:00:00:00:00:{last} dev v0 nud {state}"
        )
        .unwrap();
    }
    world.netns.ip_batch(&lines).unwrap();
    Some(world)
}

#[test]
fn byte_for_byte_as_net_tools() {
    let Some(world) = every_kind("arpsame") else {
        return;
    };
    world.netns.ip_batch(&permanent(3000)).unwrap();
    for line in [
        "-n",
        "-an",
        "-ane",
        "-vn",
        "-van",
        "-n -i v0",
        "-n -i tun0",
        "-n -i nope",
        "-van -i nope",
        "-n -H ether",
        "-van -H eui64",
        "-n 10.0.0.10",
        "-an 10.0.0.10",
        "-n 10.0.0.200",
        "-an 10.0.0.200",
        "-vn 10.0.0.200",
        "-n -A inet",
        "-n -p inet",
    ] {
        world.says_the_same("arp", line);
    }
    assert!(world.theirs("arp", "-an").lines().count() > 3000);
}

#[test]
fn an_empty_table_says_what_net_tools_says() {
    let Some(world) = World::new("arpempty", "arp") else {
        return;
    };
    for line in [
        "-n",
        "-an",
        "-vn",
        "-n -i v0",
        "-n 10.0.0.1",
        "-van 10.0.0.1",
    ] {
        assert_eq!(
            world.ours("arp", line),
            world.theirs("arp", line),
            "arp {line}"
        );
    }
    assert_eq!(world.ours("fingerpost", "arp --json"), "[]\n");
}

#[test]
fn the_reporters_aliases_are_listed_as_permanent() {
    let Some(world) = World::new("arpown", "arp") else {
        return;
    };
    world
        .netns
        .ip_batch("link add em1 type veth peer name p\nlink set p up\n")
        .unwrap();
    world
        .netns
        .ip_batch("link set em1 address 00:0c:29:65:4d:48 up\n")
        .unwrap();
    let mut lines = String::new();
    for net in 0..256 {
        let (third, last) = (net / 64, net % 64 * 4);
        writeln!(
            lines,
            "addr add 10.0.{third}.{}/30 broadcast 10.0.{third}.{} dev em1",
            last + 1,
            last + 3
        )
        .unwrap();
    }
    writeln!(
        lines,
        "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev em1 nud stale"
    )
    .unwrap();
    world.netns.ip_batch(&lines).unwrap();
    let listed = world.ours("fingerpost", "arp -an");
    for net in 0..256 {
        let row = format!(
            "? (10.0.{}.{}) at 00:0c:29:65:4d:48 on em1 permanent [ethernet]\n",
            net / 64,
            net % 64 * 4 + 1
        );
        assert!(listed.contains(&row), "{row}{listed}");
    }
    let expires = listed
        .lines()
        .find(|line| line.contains("(10.0.0.2)"))
        .unwrap();
    let seconds = expires
        .strip_prefix("? (10.0.0.2) at 02:00:00:00:00:02 on em1 expires in ")
        .and_then(|rest| rest.strip_suffix(" seconds [ethernet]"))
        .unwrap();
    assert!(seconds.parse::<u64>().unwrap() <= 60, "{expires}");
    assert_eq!(listed.lines().count(), 257);
    assert_eq!(
        world.ours("fingerpost", "arp -an --no-own").lines().count(),
        1
    );
    assert_eq!(world.ours("fingerpost", "arp 10.0.3.1").lines().count(), 1);
}

#[test]
fn entries_are_made_replaced_and_deleted() {
    let Some(world) = every_kind("arpset") else {
        return;
    };
    let run = |line: &str| {
        let output = world.fingerpost(line);
        (output.status.code(), text(&output.stderr))
    };
    let done = (Some(0), String::new());
    let shown = |host: &str| world.ours("arp", &format!("-an {host}"));
    // The link is the one with the longest prefix that holds the host.
    assert_eq!(run("arp -s 10.0.1.2 2:0:0:0:0:50"), done);
    assert_eq!(
        shown("10.0.1.2"),
        "? (10.0.1.2) at 02:00:00:00:00:50 [ether] PERM on v0\n"
    );
    assert_eq!(run("arp -S 10.0.1.2 2:0:0:0:0:51 temp"), done);
    assert_eq!(
        shown("10.0.1.2"),
        "? (10.0.1.2) at 02:00:00:00:00:51 [ether] on v0\n"
    );
    assert_eq!(run("arp -Ds 10.0.0.60 v0 pub"), done);
    assert_eq!(
        shown("10.0.0.60"),
        "? (10.0.0.60) at <from_interface> PERM PUB on v0\n"
    );
    assert_eq!(run("arp -s 10.0.0.61 auto pub only"), done);
    assert_eq!(
        shown("10.0.0.61"),
        "? (10.0.0.61) at <from_interface> PERM PUB on v0\n"
    );

    let (code, said) = run("arp -s 10.77.0.1 2:0:0:0:0:50");
    assert_eq!(code, Some(1));
    assert!(said.contains("name the link with -i"), "{said}");
    assert_eq!(run("arp -i v0 -s 10.77.0.1 2:0:0:0:0:50"), done);
    let (code, said) = run("arp -s 10.0.0.62 2:0:0:0:0:50 blackhole");
    assert_eq!(code, Some(2));
    assert!(
        said.contains("ip route add blackhole 10.0.0.62/32"),
        "{said}"
    );

    assert_eq!(run("arp -d 10.0.0.60 pub"), done);
    assert_eq!(run("arp -d 10.0.1.2"), done);
    let (code, said) = run("arp -d 10.0.1.2");
    assert_eq!((code, &*said), (Some(1), "No ARP entry for 10.0.1.2\n"));
    assert_eq!(run("arp -d -a -i tun0"), done);
    assert!(!shown("").contains("tun0"));
    assert!(shown("").contains("10.0.0.10"));
    assert_eq!(run("arp -d -a"), done);
    assert_eq!(world.theirs("arp", "-an"), "");
}

#[test]
fn a_file_of_many_lines_says_which_failed_and_why() {
    let Some(world) = World::new("arpfile", "arp") else {
        return;
    };
    world.veth();
    world
        .netns
        .ip(&["addr", "add", "10.0.0.1/8", "dev", "v0"])
        .unwrap();
    let mut lines = String::from("# made for a test\n");
    for number in 0..3000_u32 {
        let [_, _, b, c] = number.to_be_bytes();
        writeln!(lines, "10.64.{b}.{c}\t02:00:00:00:{b:x}:{c:x} # a host").unwrap();
    }
    lines.push_str(
        "10.0.0.2 02:00:00:00:00\n10.0.0.3\n172.16.0.1 2:0:0:0:0:1\n\
         10.0.0.4 2:0:0:0:0:4 temp\n10.0.0.5 2:0:0:0:0:5 reject\n10.0.0.6 zz\n",
    );
    let path = world.file("ethers", &lines);
    let output = world.fingerpost(&format!("arp -f {path}"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let said: Vec<&str> = said.lines().collect();
    for (at, number, why) in [
        (0, 3002, "Invalid link address"),
        (1, 3003, "HOST LLADDR"),
        (2, 3004, "172.16.0.1 is in no prefix"),
        (3, 3006, "`reject`"),
        (4, 3007, "`zz`"),
    ] {
        let line = said[at];
        assert!(
            line.starts_with(&format!("arp: {path}:{number}: ")),
            "{line}"
        );
        assert!(line.contains(why), "{line}");
    }
    assert!(said[2].ends_with(": 172.16.0.1 2:0:0:0:0:1"), "{said:?}");
    assert_eq!(
        said[5..],
        [format!(
            "arp: {path}: 5 of 3006 entries failed, 3001 are made"
        )]
    );
    assert_eq!(world.theirs("arp", "-an").lines().count(), 3001);

    assert_eq!(world.fingerpost("arp -f /nowhere").status.code(), Some(1));
}

#[test]
fn names_come_from_the_hosts_file_and_are_not_waited_for_long() {
    let Some(world) = World::new("arpnames", "arp") else {
        return;
    };
    world.veth();
    world
        .netns
        .ip(&["addr", "add", "10.0.0.1/24", "dev", "v0"])
        .unwrap();
    world.netns.ip_batch(&permanent(300)).unwrap();
    let listed = world.ours("fingerpost", "arp -r --resolve-wait-secs 0.1");
    assert_eq!(listed.lines().count(), 301);
    // 127.0.0.1 is in every hosts file.
    world
        .netns
        .ip(&[
            "neigh",
            "add",
            "127.0.0.1",
            "lladdr",
            "2:0:0:0:0:1",
            "dev",
            "v0",
            "nud",
            "permanent",
        ])
        .unwrap();
    let theirs = world.theirs("arp", "-a 127.0.0.1");
    assert_eq!(world.ours("arp", "-a 127.0.0.1"), theirs);
}

/// Options of a listing, and what may stand behind them.
const OPTIONS: [&str; 9] = [
    "-a", "-e", "-v", "-D", "-i v0", "-i lo", "-H ether", "-A inet", "10.0.0.7",
];

#[test]
fn every_pair_of_options_and_every_wrong_one_is_as_with_net_tools() {
    let Some(world) = World::new("arpoptions", "arp") else {
        return;
    };
    world.veth();
    world
        .netns
        .ip_batch(
            "addr add 10.0.0.1/24 dev v0\n\
             neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev v0 nud permanent\n\
             neigh add 10.0.0.8 lladdr 02:00:00:00:00:08 dev v0 nud stale\n\
             neigh add proxy 10.0.0.9 dev v0\n",
        )
        .unwrap();
    for (at, one) in OPTIONS.iter().enumerate() {
        for other in &OPTIONS[at + 1..] {
            world.says_the_same("arp", &format!("-n {one} {other}"));
        }
    }
    for wrong in [
        "-x",
        "-n -H fish",
        "-n -i nope",
        "-s",
        "-s 10.0.0.99",
        "-d",
        "-V",
        "--help",
    ] {
        let ours = world.run(&world.path("arp"), wrong);
        let theirs = world.run("arp", wrong);
        assert_eq!(
            ours.status.code(),
            theirs.status.code(),
            "{wrong}: {ours:?}"
        );
    }
}
