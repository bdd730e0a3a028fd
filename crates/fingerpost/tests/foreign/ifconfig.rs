//! `fingerpost ifconfig` beside the installed `ifconfig`.

use std::fmt::Write;

use crate::{World, text};

/// net-tools lists IPv6 addresses in the order of a hash table: both are
/// sorted within their run.
fn with_sorted_inet6(listing: &str) -> String {
    let lines: Vec<&str> = listing.lines().collect();
    let is_inet6 = |line: &str| line.trim_start().starts_with("inet6");
    let mut sorted = String::new();
    for run in lines.chunk_by(|a, b| is_inet6(a) == is_inet6(b)) {
        let mut run = run.to_vec();
        if is_inet6(run[0]) {
            run.sort_unstable();
        }
        for line in run {
            writeln!(sorted, "{line}").unwrap();
        }
    }
    sorted
}

#[test]
fn byte_for_byte_as_net_tools() {
    let Some(world) = World::new("ifsame", "ifconfig") else {
        return;
    };
    if lab::skip::unless(lab::skip::tun()).is_none() {
        return;
    }
    // No IPv6 autoconfiguration: its packets would count in between.
    world
        .netns
        .sysctl("net/ipv6/conf/default/disable_ipv6", "1")
        .unwrap();
    let mut lines = String::from(
        "link add v0 type veth peer name v1\n\
         link add br0 type bridge\n\
         link set br0 promisc on allmulticast on\n\
         link add ifb0 type ifb\n\
         link set ifb0 dynamic on\n\
         tuntap add tun0 mode tun\n\
         addr add 10.7.0.1 peer 10.7.0.2 dev tun0\n\
         link set tun0 up\n\
         link set v0 up\n\
         link set v1 up\n\
         addr add 10.0.0.1/24 dev v0\n\
         addr add 10.0.9.1/24 broadcast + dev v1\n\
         addr add 10.0.9.2/0 broadcast + dev v1 label v1:named\n",
    );
    for number in 0..256 {
        writeln!(
            lines,
            "addr add 10.1.{}.{}/30 broadcast + dev v0 label v0:{number}",
            number / 64,
            number % 64 * 4 + 1
        )
        .unwrap();
    }
    for name in [
        "eth10",
        "eth2",
        "eth02",
        "eth",
        "x1y",
        "x01y",
        "abcdefghijklmno",
    ] {
        writeln!(lines, "link add {name} type ifb").unwrap();
    }
    world.netns.ip_batch(&lines).unwrap();
    world
        .netns
        .sysctl("net/ipv6/conf/v1/disable_ipv6", "0")
        .unwrap();
    for address in [
        "2001:db8::1/64",
        "fec0::1/64",
        "::10.2.3.4/96",
        "2001:db8:1:2:3:4:5:6/128",
    ] {
        world
            .netns
            .ip(&["addr", "add", address, "dev", "v1", "nodad"])
            .unwrap();
    }
    for line in [
        "-a", "", "-s", "-a -s", "v0", "v0:1", "lo", "-v v0", "-s v0", "br0",
    ] {
        // Neighbour discovery may send in between: then once more.
        let same = (0..10).any(|_| {
            let theirs = with_sorted_inet6(&world.theirs("ifconfig", line));
            theirs == with_sorted_inet6(&world.ours("ifconfig", line))
        });
        if !same {
            let theirs = with_sorted_inet6(&world.theirs("ifconfig", line));
            assert_eq!(
                with_sorted_inet6(&world.ours("ifconfig", line)),
                theirs,
                "{line}"
            );
        }
    }
    for wrong in ["nope", "-x"] {
        let ours = world.run(&world.path("ifconfig"), wrong);
        let theirs = world.run("ifconfig", wrong);
        assert_eq!(ours.status.code(), theirs.status.code(), "{wrong}");
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{wrong}");
    }
}

#[test]
fn addresses_that_net_tools_hides_are_shown() {
    let Some(world) = World::new("ifhidden", "ifconfig") else {
        return;
    };
    world.veth();
    let mut lines = String::new();
    for last in 1..=20 {
        writeln!(lines, "addr add 10.0.{last}.1/30 broadcast + dev v0").unwrap();
    }
    world.netns.ip_batch(&lines).unwrap();
    let ours = world.ours("ifconfig", "v0");
    let bsd = world.ours("fingerpost", "ifconfig v0");
    for last in 1..=20 {
        let line = format!(
            "        inet 10.0.{last}.1  netmask 255.255.255.252  broadcast 10.0.{last}.3\n"
        );
        assert!(ours.contains(&line), "{line}{ours}");
        let line = format!("\tinet 10.0.{last}.1 netmask 0xfffffffc broadcast 10.0.{last}.3\n");
        assert!(bsd.contains(&line), "{line}{bsd}");
    }
    let theirs = world.theirs("ifconfig", "v0");
    let inet = |text: &str| text.lines().filter(|line| line.contains("inet ")).count();
    assert_eq!((inet(&theirs), inet(&ours)), (1, 20));
}

#[test]
fn changes_are_refused_with_the_command_that_makes_them() {
    let Some(world) = World::new("ifchange", "ifconfig") else {
        return;
    };
    let output = world.fingerpost("ifconfig lo 10.0.0.1/24 up");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("\n  ip addr add 10.0.0.1/24 dev lo\n  ip link set lo up\n"),
        "{said}"
    );
    assert_eq!(world.fingerpost("ifconfig nope").status.code(), Some(1));
}
