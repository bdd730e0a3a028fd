//! route(8) and netstat(8) beside the installed net-tools, option by option.

use crate::common::Daemon;
use crate::{World, text};

/// Options that lists are made of. (A family that is said twice is listed
/// twice there.)
const ROUTE: [&str; 5] = ["-e", "-e", "-v", "-F", "-4"];

/// Routes of every kind that `/proc/net/route` tells or hides.
const ROUTES: &str = "\
    link add br0 type bridge\n\
    link set br0 up\n\
    link set lo up\n\
    link add v0 type veth peer name v1\n\
    link set v0 up\n\
    link set v1 up\n\
    addr add 10.9.0.1/24 dev br0\n\
    addr add 10.8.0.1/30 dev v1\n\
    route add default via 10.9.0.7\n\
    route add 10.1.0.0/16 via 10.9.0.7 metric 20\n\
    route add 10.1.0.0/24 via 10.9.0.8 metric 6\n\
    route add 10.1.0.0/24 via 10.9.0.8 metric 5 advmss 1000 window 5000 rtt 80ms\n\
    route add 10.2.0.0/16 nexthop via 10.9.0.7 dev br0 weight 2 nexthop via 10.8.0.2 dev v1\n\
    route add blackhole 10.3.0.0/16\n\
    route add unreachable 10.4.0.0/16 metric 7\n\
    route add prohibit 10.5.0.1\n\
    route add throw 10.6.0.0/16\n\
    route add local 10.7.0.1 dev lo table main\n\
    route add 10.11.0.1 dev br0 mtu 1400\n\
    route add 10.12.0.0/16 via inet6 fe80::1 dev br0\n\
    route add 10.13.0.0/24 dev br0 tos 4\n\
    route add 10.13.0.0/24 dev br0\n\
    route add broadcast 10.14.0.0/24 dev br0\n\
    route add 10.15.0.0/16 via 10.9.0.7 table 100\n\
    nexthop add id 3 via 10.9.0.7 dev br0\n\
    route add 10.20.0.0/16 nhid 3\n\
    route add 10.1.0.0/28 dev v0 scope link\n";

#[test]
fn routes_are_listed_byte_for_byte_with_every_combination_of_options() {
    let Some(world) = World::new("routesame", "route") else {
        return;
    };
    world.netns.ip_batch(ROUTES).unwrap();
    for daemon in [None, Some(Daemon::up(&world.netns, &[]))] {
        for chosen in 0..1_u32 << ROUTE.len() {
            let chosen = ROUTE
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1);
            let options: Vec<&str> = chosen.map(|(_, option)| *option).collect();
            let line = format!("-n {}", options.join(" "));
            world.says_the_same("route", &line);
            let line = line.replace("-4", "-A inet");
            world.says_the_same("netstat", &format!("-r {line}"));
        }
        for line in ["-C", "-Cn", "-Cnee", "-Ce", "--numeric --inet"] {
            world.says_the_same("route", line);
            world.says_the_same("netstat", &format!("-r {line}"));
        }
        drop(daemon);
    }
}

#[test]
fn interfaces_are_listed_as_netstat_does() {
    let Some(world) = World::new("netstati", "netstat") else {
        return;
    };
    world.netns.ip_batch(ROUTES).unwrap();
    world.netns.ip(&["link", "set", "v0", "down"]).unwrap();
    for line in ["-i", "-ia", "-in"] {
        world.says_the_same("netstat", line);
    }
    // Of each link net-tools shows the first address; all are here.
    let ours = world.ours("netstat", "-ie");
    assert!(
        ours.starts_with("Kernel Interface table\nbr0: flags="),
        "{ours}"
    );
}

#[test]
fn refusals_say_what_to_do_instead() {
    let Some(world) = World::new("routerefused", "route") else {
        return;
    };
    for (tool, line, code, says) in [
        ("route", "-A ax25", 255, "inet6"),
        ("netstat", "-tln", 255, "`ss`"),
        ("netstat", "-s", 255, "`nstat`"),
        ("netstat", "", 255, "`ss`"),
        ("netstat", "--bogus", 3, "--bogus"),
    ] {
        let output = world.run(&world.path(tool), line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{tool} {line}: {said}");
        assert!(said.contains(says), "{tool} {line}: {said}");
    }
    for tool in ["route", "netstat"] {
        let version = text(&world.run(&world.path(tool), "-V").stdout);
        assert!(version.starts_with(tool), "{version}");
    }
}

#[test]
fn names_are_those_of_the_hosts_and_networks_files() {
    let Some(world) = World::new("routenames", "route") else {
        return;
    };
    world
        .netns
        .ip_batch(
            "link add br0 type bridge\nlink set br0 up\nroute add default dev br0\n\
             route add 127.0.0.1 dev br0\nroute add 127.0.0.0/8 dev br0\n\
             route add 169.254.0.0/16 dev br0\n",
        )
        .unwrap();
    // What no file names would be asked for in the network.
    let listed = world.theirs("route", "");
    assert!(
        listed.contains("default") && listed.contains("localhost"),
        "{listed}"
    );
    for (tool, line) in [("route", ""), ("route", "-e"), ("netstat", "-r")] {
        world.says_the_same(tool, line);
    }
}
