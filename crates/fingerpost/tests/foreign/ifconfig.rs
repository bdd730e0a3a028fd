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
fn links_are_changed_in_bsd_s_words() {
    let Some(world) = World::new("ifbsd", "ifconfig") else {
        return;
    };
    world.veth();
    let shown = || world.ours("fingerpost", "addr -o --dev v0");
    for (line, has, has_not) in [
        ("v0 inet 10.0.0.1/24", "10.0.0.1/24 brd 10.0.0.255", "-"),
        (
            "v0 10.0.0.2 netmask 0xffffff00",
            "10.0.0.2/24",
            "10.0.0.1/24",
        ),
        ("v0 inet 10.1.0.1/30 alias", "10.1.0.1/30", "-"),
        (
            "v0 inet 10.2.0.1/24 broadcast 10.2.0.9 alias",
            "10.2.0.1/24 brd 10.2.0.9",
            "-",
        ),
        ("v0 inet 10.1.0.1 -alias", "10.0.0.2/24", "10.1.0.1"),
        ("v0 inet6 2001:db8::1 prefixlen 48", "2001:db8::1/48", "-"),
        ("v0 inet6 2001:db8::2/64 alias", "2001:db8::2/64", "-"),
        (
            "v0 inet6 2001:db8::1 delete",
            "2001:db8::2/64",
            "2001:db8::1/48",
        ),
        (
            "v0 inet 10.3.0.1 10.3.0.2 alias",
            "10.3.0.1 peer 10.3.0.2/32",
            "-",
        ),
    ] {
        let output = world.fingerpost(&format!("ifconfig {line}"));
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        let shown = shown();
        assert!(shown.contains(has), "{line}: {shown}");
        assert!(
            has_not == "-" || !shown.contains(has_not),
            "{line}: {shown}"
        );
    }
    let link = || world.ours("fingerpost", "link --json --dev v0");
    for (line, has) in [
        (
            "v0 ether 2:0:0:0:0:9 mtu 1400",
            "\"address\":\"02:00:00:00:00:09\"",
        ),
        ("v0 description uplink", "\"ifalias\":\"uplink\""),
        ("v0 promisc -arp down", "\"NOARP\",\"PROMISC\"]"),
    ] {
        let output = world.fingerpost(&format!("ifconfig {line}"));
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        let shown = link();
        assert!(shown.contains(has), "{line}: {shown}");
    }
    let output = world.fingerpost("ifconfig v0 name w0 up");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(world.ours("fingerpost", "link --dev w0").contains(",UP"));
    // The kernel gives IPv6 addresses of its own, whenever it comes to it.
    let v4 = || {
        let all = world.ours("fingerpost", "addr -o");
        let lines: Vec<_> = all.lines().filter(|line| line.contains(" inet ")).collect();
        lines.join("\n")
    };
    let before = v4();
    assert!(before.contains("10.3.0.1 peer"), "{before}");
    for (line, code, says) in [
        ("w0 10.9.0.1", 2, "prefix is not said"),
        ("w0 mtu 1300 up bogus:", 2, "`bogus:`"),
        ("w0 create", 255, "link add"),
        ("nope up", 255, "nope"),
        ("w0 inet 10.99.0.1 -alias", 1, "SIOCDIFADDR"),
        ("w0:1 destroy", 255, "w0:1"),
        ("w0:1 10.9.0.1/24", 255, "w0:1"),
        // One of its other addresses: the first is not taken away for it.
        ("w0 10.2.0.1/24", 1, "another address of the link"),
    ] {
        let output = world.fingerpost(&format!("ifconfig {line}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(says), "{line}: {said}");
    }
    assert_eq!(v4(), before);
    // The first address said again: the routes by it stay.
    world
        .netns
        .ip(&["route", "add", "10.77.0.0/16", "via", "10.0.0.9"])
        .unwrap();
    let again = world.fingerpost("ifconfig w0 10.0.0.2/24");
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(v4(), before);
    assert!(
        world
            .netns
            .ip(&["route"])
            .unwrap()
            .contains("10.77.0.0/16 via 10.0.0.9")
    );
    assert!(world.fingerpost("ifconfig w0 destroy").status.success());
    assert_eq!(world.fingerpost("ifconfig w0").status.code(), Some(1));
}
