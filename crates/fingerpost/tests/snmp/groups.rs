//! The groups that managers ask for beside interfaces, addresses and routes,
//! compared with what `ss`, `bridge`, `ip` and `/proc` say.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};

use lab::wait_until;
use serde_json::Value;

use crate::World;
use crate::common::{PATIENCE, furnished};

const SECTION: &str = "\
[snmp]
listen = ['127.0.0.1:1161']
[[snmp.community]]
name = 'public'
[[snmp.community]]
name = 'second'
context = 'bridge-br1'
";

const AT: &str = "-v2c -t 5 -r 2 -Cr20 127.0.0.1:1161";

/// The rows of a column: what is behind its name, and the value.
fn column(world: &World, community: &str, name: &str) -> BTreeMap<Vec<u32>, String> {
    let words = format!("-c {community} {AT} {name}");
    let head = format!("{name}.");
    let rows = world.walk("snmpbulkwalk", &words).into_iter();
    rows.filter_map(|(name, value)| {
        let index = name.strip_prefix(&head)?.split('.');
        Some((index.map(|sub| sub.parse().unwrap()).collect(), value))
    })
    .collect()
}

fn json(world: &World, program: &str, words: &str) -> Vec<Value> {
    let words: Vec<&str> = words.split(' ').collect();
    let text = world.netns.run(program, &words).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// An end of a socket as `ss` writes it, as sub-identifiers.
fn end(text: &str) -> Vec<u32> {
    let (address, port) = text.rsplit_once(':').unwrap();
    let port: u32 = port.parse().unwrap_or(0);
    let (address, zone) = match address.split_once('%') {
        Some((address, _)) => (
            address.to_owned() + if address.starts_with('[') { "]" } else { "" },
            true,
        ),
        None => (address.to_owned(), false),
    };
    assert!(!zone, "{text}: no socket here is bound to a link");
    let address = address.trim_matches(['[', ']']);
    let mut name: Vec<u32> = match address {
        "*" => vec![0, 0],
        address => match address.parse::<IpAddr>().unwrap() {
            IpAddr::V4(v4) => [&[1, 4][..], &v4.octets().map(u32::from)].concat(),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => [&[1, 4][..], &v4.octets().map(u32::from)].concat(),
                None => [&[2, 16][..], &v6.octets().map(u32::from)].concat(),
            },
        },
    };
    name.push(port);
    name
}

/// The ends of sockets as `ss` lists them.
fn listed(world: &World, words: &str) -> BTreeSet<(Vec<u32>, Vec<u32>)> {
    let words: Vec<&str> = words.split(' ').collect();
    let text = world.netns.run("ss", &words).unwrap();
    let lines = text.lines().map(|line| {
        let mut words = line
            .split_whitespace()
            .rev()
            .filter(|word| word.contains(':'));
        let (remote, local) = (words.next().unwrap(), words.next().unwrap());
        let remote = match remote {
            "0.0.0.0:*" | "[::]:*" | "*:*" => vec![0, 0, 0],
            remote => end(remote),
        };
        (end(local), remote)
    });
    lines.collect()
}

#[test]
fn sockets_are_those_of_ss() {
    let Some(world) =
        furnished("sockets").and_then(|netns| World::with(netns, &["snmpbulkwalk", "ss"]))
    else {
        return;
    };
    let sockets = world.netns.inside(|| {
        let v4 = TcpListener::bind("127.0.0.1:8001").unwrap();
        let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 8_002)).unwrap();
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 8_003)).unwrap();
        let streams = [
            TcpStream::connect("127.0.0.1:8001").unwrap(),
            // IPv4 at a listener of both.
            TcpStream::connect("127.0.0.1:8002").unwrap(),
            TcpStream::connect((Ipv6Addr::LOCALHOST, 8_003)).unwrap(),
        ];
        let udp = UdpSocket::bind("127.0.0.1:9001").unwrap();
        let connected = UdpSocket::bind((Ipv6Addr::LOCALHOST, 9_002)).unwrap();
        connected.connect((Ipv6Addr::LOCALHOST, 9_003)).unwrap();
        (v4, both, v6, streams, udp, connected)
    });
    let sockets = sockets.unwrap();
    let daemon = world.up(SECTION);
    let of = |name: &str| column(&world, "public", name);
    // tcpListenerProcess; the other end of a listener is nobody.
    let ours: BTreeSet<_> = of(".1.3.6.1.2.1.6.20.1.4").into_keys().collect();
    let theirs = listed(&world, "-Hltn").into_iter().map(|(local, _)| local);
    assert_eq!(ours, theirs.collect());
    for port in [8_001, 8_002, 8_003] {
        assert!(
            ours.iter().any(|name| name.last() == Some(&port)),
            "{ours:?}"
        );
    }
    // tcpConnectionState: all established.
    let states = of(".1.3.6.1.2.1.6.19.1.7");
    let theirs = listed(&world, "-Htn state established");
    let names: BTreeSet<_> = theirs
        .into_iter()
        .map(|(local, remote)| [local, remote].concat())
        .collect();
    assert_eq!(states.keys().cloned().collect::<BTreeSet<_>>(), names);
    assert_eq!(states.len(), 6);
    assert!(
        states.values().all(|state| state == "INTEGER: 5"),
        "{states:?}"
    );
    // udpEndpointProcess; each question has a socket of its own.
    let ours: BTreeSet<Vec<u32>> = of(".1.3.6.1.2.1.7.7.1.8")
        .into_keys()
        .map(|name| name[..name.len() - 1].to_vec())
        .collect();
    for (local, remote) in listed(&world, "-Huan") {
        let name = [local, remote].concat();
        assert!(ours.contains(&name), "{name:?} of {ours:?}");
    }
    drop(sockets);
    // They go with their sockets.
    wait_until(PATIENCE, "listeners to go", || {
        let ours = of(".1.3.6.1.2.1.6.20.1.4");
        let is_there = |name: &Vec<u32>| name.last() == Some(&8_001);
        (!ours.keys().any(is_there)).then_some(())
    })
    .unwrap();
    daemon.end();
}

fn octets(text: &str) -> Vec<u32> {
    text.split(':')
        .map(|octet| u32::from_str_radix(octet, 16).unwrap())
        .collect()
}

/// The bits of a `PortList`, as snmpbulkwalk shows octets.
fn ports(value: &str) -> BTreeSet<u32> {
    // What can be printed net-snmp's tools print.
    let quoted = value.strip_prefix("STRING: \"");
    let octets: Vec<u8> = match quoted.and_then(|rest| rest.strip_suffix('"')) {
        Some(text) => text.bytes().collect(),
        None => {
            let hex = value.strip_prefix("Hex-STRING: ").unwrap_or_default();
            let octet = |octet| u8::from_str_radix(octet, 16).unwrap();
            hex.split_whitespace().map(octet).collect()
        }
    };
    let bits = octets.into_iter().enumerate().flat_map(|(at, octet)| {
        let set = (0..8).filter(move |bit| octet & (0x80 >> bit) != 0);
        set.map(move |bit| at as u32 * 8 + bit + 1)
    });
    bits.collect()
}

#[test]
fn bridges_are_those_of_bridge() {
    let Some(world) =
        furnished("bridges").and_then(|netns| World::with(netns, &["snmpbulkwalk", "bridge"]))
    else {
        return;
    };
    let made = world.netns.ip_batch(
        "link add br1 type bridge\n\
         link add p1 type veth peer name q1\n\
         link add p2 type veth peer name q2\n\
         link set p1 master br1\n\
         link set p2 master br1\n\
         link set br1 up\n\
         link set p1 up\n\
         link set q1 up\n\
         link set p2 up\n\
         link set q2 up\n",
    );
    made.unwrap();
    let bridge = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        world.netns.run("bridge", &words).unwrap();
    };
    // A station is taken in by a port that forwards.
    wait_until(PATIENCE, "the ports to forward", || {
        let words = [
            "fdb",
            "replace",
            "02:00:00:00:02:09",
            "dev",
            "p2",
            "master",
            "dynamic",
        ];
        world.netns.run("bridge", &words).ok()
    })
    .unwrap();
    bridge("fdb add 02:00:00:00:01:09 dev p1 master static");
    let filtering = "link set br1 type bridge vlan_filtering 1\n";
    let filters = world.netns.ip_batch(filtering).is_ok();
    if filters {
        bridge("vlan add dev p1 vid 10-12");
        bridge("vlan add dev p2 vid 11 untagged pvid");
        for (at, vlan) in [(1, 10), (2, 11), (3, 1), (1, 11)] {
            let mac = format!("02:00:00:00:01:0{at}");
            bridge(&format!("fdb add {mac} dev p1 master static vlan {vlan}"));
        }
        bridge("fdb add 02:00:00:00:02:01 dev p2 master dynamic vlan 11");
    } else {
        lab::skip::skip("this kernel's bridge filters no VLANs");
    }
    let daemon = world.up(SECTION);
    let of = |name: &str| column(&world, "second", name);
    let index_of = |name: &str| {
        let link = &json(&world, "ip", &format!("-j -d link show dev {name}"))[0];
        let port = &link["linkinfo"]["info_slave_data"]["no"];
        let port = u32::from_str_radix(port.as_str().unwrap().trim_start_matches("0x"), 16);
        (port.unwrap(), link["ifindex"].as_u64().unwrap())
    };
    let (p1, p2) = (index_of("p1"), index_of("p2"));
    let base: BTreeMap<_, _> = [p1, p2]
        .map(|(port, index)| (vec![port], format!("INTEGER: {index}")))
        .into();
    assert_eq!(of(".1.3.6.1.2.1.17.1.4.1.2"), base);
    let number = |name: &str| match name {
        "p1" => p1.0,
        "p2" => p2.0,
        _ => 0,
    };
    stations(&world, &number);
    if filters {
        vlans(&world, &number);
        let pvids = of(".1.3.6.1.2.1.17.7.1.4.5.1.1");
        assert_eq!(pvids[&vec![p1.0]], "Gauge32: 1");
        assert_eq!(pvids[&vec![p2.0]], "Gauge32: 11");
    }
    // The default context shows the first bridge, which filters none.
    let first = column(&world, "public", ".1.3.6.1.2.1.17.1.4.1.2");
    assert_eq!(first.len(), 1);
    assert!(column(&world, "public", ".1.3.6.1.2.1.17.7").is_empty());
    daemon.end();
}

/// Forwarding entries, with the port and the status of each.
fn stations(world: &World, number: &dyn Fn(&str) -> u32) {
    let (mut by_vlan, mut by_address) = (BTreeMap::new(), BTreeMap::new());
    for entry in json(world, "bridge", "-j fdb show br br1") {
        if entry["master"] != "br1" {
            continue;
        }
        let mac = octets(entry["mac"].as_str().unwrap());
        let port = format!("INTEGER: {}", number(entry["ifname"].as_str().unwrap()));
        let status = match entry["state"].as_str() {
            Some("permanent") => "INTEGER: 4",
            Some("static") => "INTEGER: 5",
            _ => "INTEGER: 3",
        };
        let told = (port, status.to_owned());
        match entry["vlan"].as_u64() {
            Some(vlan) => {
                by_vlan.insert([vec![vlan as u32], mac.clone()].concat(), told.clone());
                by_address.entry(mac).or_insert(told);
            }
            // An address without a VLAN is before the same in one.
            None => {
                by_address.insert(mac, told);
            }
        }
    }
    assert!(by_address.len() >= 4, "{by_address:?}");
    for (table, expected) in [
        (".1.3.6.1.2.1.17.4.3.1", by_address),
        (".1.3.6.1.2.1.17.7.1.2.2.1", by_vlan),
    ] {
        let of = |column_number: u32| column(world, "second", &format!("{table}.{column_number}"));
        let (ports, statuses) = (of(2), of(3));
        let told = ports.into_iter().map(|(name, port)| {
            let status = statuses[&name].clone();
            (name, (port, status))
        });
        assert_eq!(told.collect::<BTreeMap<_, _>>(), expected, "{table}");
    }
}

/// VLANs, and the ports that are in each.
fn vlans(world: &World, number: &dyn Fn(&str) -> u32) {
    let egress = column(world, "second", ".1.3.6.1.2.1.17.7.1.4.2.1.4");
    let untagged = column(world, "second", ".1.3.6.1.2.1.17.7.1.4.3.1.4");
    let (mut expected, mut plain) = (BTreeMap::new(), BTreeMap::new());
    for port in json(world, "bridge", "-j vlan show") {
        let name = port["ifname"].as_str().unwrap();
        let number = number(name);
        for vlan in port["vlans"].as_array().unwrap() {
            let first = vlan["vlan"].as_u64().unwrap() as u32;
            let last = vlan["vlanEnd"].as_u64().map_or(first, |last| last as u32);
            let flags = vlan["flags"].as_array().into_iter().flatten();
            let is_plain = flags.clone().any(|flag| flag == "Egress Untagged");
            for vlan in first..=last {
                // Of another bridge, or the bridge itself, which has no port.
                if number == 0 && name != "br1" {
                    continue;
                }
                let ports: &mut BTreeSet<u32> = expected.entry(vlan).or_default();
                let plain: &mut BTreeSet<u32> = plain.entry(vlan).or_default();
                if number != 0 {
                    ports.insert(number);
                    plain.extend(is_plain.then_some(number));
                }
            }
        }
    }
    let told = |lists: &BTreeMap<Vec<u32>, String>| -> BTreeMap<u32, BTreeSet<u32>> {
        let lists = lists.iter();
        lists
            .map(|(name, list)| (*name.last().unwrap(), ports(list)))
            .collect()
    };
    assert_eq!(told(&egress), expected);
    assert_eq!(told(&untagged), plain);
}

/// Names and values of a group of `/proc/net/snmp`.
fn counted(world: &World, group: &str) -> BTreeMap<String, u64> {
    let text = world.netns.run("cat", &["/proc/net/snmp"]).unwrap();
    let head = format!("{group}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&head));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let names = names.split(' ').map(str::to_owned);
    let values = values.split(' ').map(|value| value.parse().unwrap_or(0));
    names.zip(values).collect()
}

#[test]
fn what_protocols_count_is_what_the_kernel_counts() {
    let Some(world) = furnished("counts").and_then(|netns| World::with(netns, &["snmpbulkwalk"]))
    else {
        return;
    };
    // Datagrams for nobody are answered by ICMP, and a connection is refused.
    let refused = world.netns.inside(|| {
        for nobody in ["127.0.0.1:9", "[::1]:9"] {
            let own = if nobody.starts_with('[') {
                "[::1]:0"
            } else {
                "127.0.0.1:0"
            };
            UdpSocket::bind(own).unwrap().send_to(b"x", nobody).unwrap();
        }
        TcpStream::connect("127.0.0.1:1").is_err()
    });
    assert!(refused.unwrap());
    let daemon = world.up(SECTION);
    let number = |value: &str| value.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let scalar = |name: &str| {
        let words = format!("-v2c -c public -t 5 127.0.0.1:1161 {name}.0");
        number(world.tool("snmpget", &words).lines().next().unwrap())
    };
    let tcp = counted(&world, "Tcp");
    for (object, name) in [
        (5, "ActiveOpens"),
        (7, "AttemptFails"),
        (10, "InSegs"),
        (15, "OutRsts"),
        (18, "OutSegs"),
    ] {
        let told = scalar(&format!(".1.3.6.1.2.1.6.{object}"));
        assert_eq!(told, tcp[name], "{name}");
    }
    assert!(tcp["ActiveOpens"] > 0);
    // By type: destination unreachable, of IPv4 and of IPv6.
    let received = column(&world, "public", ".1.3.6.1.2.1.5.30.1.3");
    for name in [[1, 3], [2, 1]] {
        assert_eq!(number(&received[&name.to_vec()]), 1, "{name:?}");
    }
    assert_eq!(scalar(".1.3.6.1.2.1.5.3"), 1, "icmpInDestUnreachs");
    // Each question counts itself.
    let before = counted(&world, "Udp")["InDatagrams"];
    let told = wait_until(PATIENCE, "a sample of now", || {
        let told = scalar(".1.3.6.1.2.1.7.1");
        (told >= before).then_some(told)
    });
    let after = counted(&world, "Udp")["InDatagrams"];
    let told = told.unwrap();
    // Those of IPv6 count as well: there are none here.
    assert!(told <= after, "{before} {told} {after}");
    daemon.end();
}

#[test]
fn the_host_is_the_one_that_proc_tells() {
    let Some(world) = furnished("host").and_then(|netns| World::with(netns, &["snmpbulkwalk"]))
    else {
        return;
    };
    let daemon = world.up(SECTION);
    let of = |name: &str| column(&world, "public", name);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .unwrap();
    let total = total.trim().trim_end_matches(" kB");
    let memory = of(".1.3.6.1.2.1.25.2.2");
    assert_eq!(memory[&vec![0]], format!("INTEGER: {total}"));
    assert_eq!(
        of(".1.3.6.1.4.1.2021.4.5")[&vec![0]],
        format!("INTEGER: {total}")
    );
    let processors = std::thread::available_parallelism().unwrap().get();
    let loads = of(".1.3.6.1.2.1.25.3.3.1.2");
    assert!(loads.len() >= processors, "{loads:?}");
    for load in loads.values() {
        let load: u32 = load.strip_prefix("INTEGER: ").unwrap().parse().unwrap();
        assert!(load <= 100);
    }
    // Links are devices.
    let links = json(&world, "ip", "-j link show");
    let indexes: BTreeSet<String> = links
        .iter()
        .map(|link| format!("INTEGER: {}", link["ifindex"]))
        .collect();
    let devices: BTreeSet<String> = of(".1.3.6.1.2.1.25.3.4.1.1").into_values().collect();
    assert_eq!(devices, indexes);
    let names = of(".1.3.6.1.2.1.25.3.2.1.3");
    assert!(
        names.values().any(|name| name == "STRING: \"br0\""),
        "{names:?}"
    );
    // The root's size, in its own units.
    let df = world
        .netns
        .run("df", &["-B1", "--output=size,used", "/"])
        .unwrap();
    let size: u64 = df
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let described = of(".1.3.6.1.2.1.25.2.3.1.3");
    if let Some((row, _)) = described.iter().find(|(_, name)| *name == "STRING: \"/\"") {
        let part = |name: &str| -> u64 {
            let rows = of(name);
            rows[row]
                .strip_prefix("INTEGER: ")
                .unwrap()
                .parse()
                .unwrap()
        };
        let (unit, units) = (
            part(".1.3.6.1.2.1.25.2.3.1.4"),
            part(".1.3.6.1.2.1.25.2.3.1.5"),
        );
        assert_eq!(unit * units, size);
    }
    let loads = of(".1.3.6.1.4.1.2021.10.1.3");
    assert_eq!(loads.len(), 3);
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let ticks = &of(".1.3.6.1.2.1.25.1.1")[&vec![0]];
    let ticks = ticks
        .split(['(', ')'])
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap();
    assert!((uptime - ticks / 100.0).abs() < 60.0, "{uptime} {ticks}");
    daemon.end();
}
