//! NATV2-MIB (RFC 7659) of a real translation: behind our master and behind
//! net-snmp's, walked by net-snmp's tools; its notifications.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

use lab::{Child, Netns, skip, wait_until};
use rustix::process::Signal;

use crate::common::{PATIENCE, program, put_clients_behind};
use crate::{Walked, World};

const NATV2: &str = ".1.3.6.1.2.1.234";
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const RULES: &str = "alias_address 192.0.2.1-192.0.2.2 192.0.2.9\nport_range 1024-2023\n\
                     subscribers 10.0.0.0/24\nport_blocks size 100 most 2\nlimit ports 150\n\
                     mapping endpoint-independent\nmax_flows 5000\nmax_subscribers 100\n\
                     subscriber_counters yes\n";
/// What is told where subscribers are not counted.
const UNCOUNTED: &[u32] = &[8, 9, 10, 11, 12];

/// Columns of the RFC that can be read, by table.
const COLUMNS: [(&str, &[u32]); 7] = [
    (
        SUBSCRIBERS,
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17],
    ),
    (
        "2.1.1",
        &[
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
            26,
        ],
    ),
    ("2.2.1", &[3, 4, 5, 6]),
    ("2.3.1", &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18]),
    ("2.4.1", &[4, 5]),
    ("2.5.1", &[6, 7, 8, 9, 10, 11, 12]),
    ("2.6.1", &[7, 8, 9, 10, 11, 12, 13, 14]),
];
const SUBSCRIBERS: &str = "1.1.1";

/// A client behind a translation that knows a master.
fn translation(world: &World, client: &Netns, master: &str, options: &[&str]) -> Child {
    translation_by(world, client, master, RULES, options)
}

fn translation_by(
    world: &World,
    client: &Netns,
    master: &str,
    rules: &str,
    options: &[&str],
) -> Child {
    let rules = world.write("rules", rules);
    let mut command = world.netns.command(program());
    command
        .args(["nat", "run", "--tun", "fpin", "fpout", "--rules", &rules])
        .arg("--agentx")
        .arg(world.path(master))
        .args(options)
        .stdout(Stdio::null());
    let nat = Child::spawn(command).unwrap();
    put_clients_behind(&world.netns, client, 11);
    nat
}

/// Hosts send from so many ports each.
fn send(client: &Netns, hosts: std::ops::Range<u8>, ports: u16) {
    let sent = client.inside(|| {
        for host in hosts {
            for port in 0..ports {
                let from = (Ipv4Addr::new(10, 0, 0, host), 4_000 + port);
                let socket = UdpSocket::bind(from).unwrap();
                socket.send_to(b"data", (REMOTE, 9_000)).unwrap();
            }
        }
    });
    sent.unwrap();
}

fn walk(world: &World, port: u16, subtree: &str) -> Walked {
    let words = format!("-v2c -c public -t 20 127.0.0.1:{port} {subtree}");
    world.walk("snmpwalk", &words)
}

fn value<'a>(walked: &'a Walked, name: &str) -> Option<&'a str> {
    let wanted = format!("{NATV2}.{name}");
    let found = walked.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, value)| value.as_str())
}

#[test]
fn a_translation_is_walked_behind_either_master() {
    let Some(world) = World::new("natv2", &["snmpwalk", "snmpbulkwalk", "snmpget", "snmpd"]) else {
        return;
    };
    let Some(()) = skip::unless(skip::tun()) else {
        return;
    };
    let client = Netns::new("natv2in").unwrap();
    world.netns.ip(&["link", "set", "lo", "up"]).unwrap();
    let _daemon = world.up(&format!(
        "[snmp]\nagentx_master = '{}'\n",
        world.path("agentx").display()
    ));
    let mut nat = translation(&world, &client, "agentx", &[]);
    let subscribers = |port| {
        let words = format!("-v2c -c public -t 20 127.0.0.1:{port} {NATV2}.1.1.1.7");
        let text = world.tool("snmpwalk", &words);
        text.matches("Gauge32: 10\n").count()
    };
    wait_until(PATIENCE, "subscribers", || {
        send(&client, 2..12, 10);
        (subscribers(1161) == 10).then_some(())
    })
    .unwrap();
    let walked = walk(&world, 1161, NATV2);
    every_column_is_there(&walked, &[]);
    maps_are_told(&walked);
    for (name, wanted) in [
        ("2.1.1.3.1", "INTEGER: 0"),
        ("2.1.1.4.1", "INTEGER: 2"),
        ("2.1.1.5.1", "INTEGER: 1"),
        ("2.1.1.7.1", "Gauge32: 10"),
        ("2.1.1.8.1", "Gauge32: 100"),
        ("2.1.1.11.1", "Counter64: 100"),
        ("2.1.1.24.1", "Gauge32: 5000"),
        ("2.1.1.26.1", "Gauge32: 100"),
        ("2.2.1.3.1.17", "Gauge32: 100"),
        ("2.2.1.3.1.6", "Gauge32: 0"),
        ("2.3.1.5.1.1", "Gauge32: 1024"),
        ("2.3.1.6.1.1", "Gauge32: 2023"),
        ("2.3.1.15.1.1", "INTEGER: -1"),
        ("2.4.1.4.1.1.1", "Hex-STRING: C0 00 02 01 "),
        ("2.4.1.5.1.1.1", "Hex-STRING: C0 00 02 02 "),
        ("2.4.1.4.1.1.2", "Hex-STRING: C0 00 02 09 "),
        ("1.1.1.15.1", "Gauge32: 150"),
        ("1.1.1.9.1", "Counter64: 1"),
        ("1.1.1.10.1", "Counter64: 10"),
        ("1.1.1.11.1", "Counter64: 0"),
        ("1.1.1.12.1", "Counter64: 0"),
        ("2.1.1.15.1", "Counter64: 0"),
        ("2.1.1.17.1", "Counter64: 0"),
        ("2.3.1.11.1.1", "Counter64: 0"),
    ] {
        assert_eq!(value(&walked, name), Some(wanted), "{name}: {walked:?}");
    }
    // GETNEXT, GETBULK and GET say the same.
    let words = format!("-v2c -c public -t 20 -Cr7 127.0.0.1:1161 {NATV2}.1");
    let bulk = world.walk("snmpbulkwalk", &words);
    let of_subscribers = format!("{NATV2}.1.");
    let one_by_one: Vec<_> = walked
        .iter()
        .filter(|(name, _)| name.starts_with(&of_subscribers))
        .cloned()
        .collect();
    // Each answer of the master tells its clock, to a hundredth of a second:
    // times may be one apart.
    let but_times = |rows: Vec<(String, String)>| -> Vec<_> {
        let is_time = |(_, value): &(String, String)| value.starts_with("Timeticks");
        rows.into_iter().filter(|row| !is_time(row)).collect()
    };
    assert_eq!(bulk.len(), one_by_one.len());
    assert_eq!(but_times(bulk), but_times(one_by_one));
    let get = |name: &str| {
        let words = format!("-v2c -c public -t 20 127.0.0.1:1161 {NATV2}.{name}");
        world.tool("snmpget", &words)
    };
    assert!(get("1.1.1.7.1").ends_with("Gauge32: 10\n"));
    assert!(get("1.1.1.7.4711").contains("No Such Instance"));
    assert!(get("1.1.1.13.1").contains("No Such Object"));
    assert!(get("2.1.1.8.2").contains("No Such Instance"));
    assert!(get("2.5.1.8.1").contains("No Such Instance"));
    assert!(get("2.5.1.5.1").contains("No Such Object"));
    assert!(get("2.7.1.8.1").contains("No Such Object"));
    // GET and GETNEXT of a map in the midst of the others.
    let of_maps = format!("{NATV2}.2.6.1.");
    let maps = walked.iter().filter(|(name, _)| name.starts_with(&of_maps));
    let maps: Vec<_> = maps.collect();
    for (at, (name, _)) in maps.iter().enumerate().step_by(97) {
        let below = name.strip_prefix(&format!("{NATV2}.")).unwrap();
        let told = get(below);
        assert!(!told.contains("No Such"), "{told}");
        let words = format!("-v2c -c public -t 20 127.0.0.1:1161 {name}");
        let next = world.tool("snmpgetnext", &words);
        if let Some((behind, _)) = maps.get(at + 1) {
            assert!(next.starts_with(&format!("{behind} ")), "{next}: {behind}");
        }
    }
    nat.signal(Signal::INT).unwrap();
    assert!(nat.wait(PATIENCE).unwrap().success());
    wait_until(PATIENCE, "its objects to go", || {
        get("2.1.1.8.1").contains("No Such").then_some(())
    })
    .unwrap();
    // The same behind net-snmp's.
    let _snmpd = world.snmpd(&[]);
    let rules = RULES.replace("subscriber_counters yes\n", "");
    let _nat = translation_by(&world, &client, "master", &rules, &[]);
    wait_until(PATIENCE, "subscribers", || {
        send(&client, 2..12, 10);
        (subscribers(1163) == 10).then_some(())
    })
    .unwrap();
    let walked = walk(&world, 1163, NATV2);
    every_column_is_there(&walked, UNCOUNTED);
    maps_are_told(&walked);
}

/// Ten hosts behind three addresses, with ten ports each: all of them, in
/// order, each with its host.
fn maps_are_told(walked: &Walked) {
    let below = |entry: &str| -> Vec<(String, String)> {
        let prefix = format!("{NATV2}.{entry}.");
        let rows = walked.iter().filter_map(|(name, value)| {
            let index = name.strip_prefix(&prefix)?;
            Some((index.to_owned(), value.clone()))
        });
        rows.collect()
    };
    // The instance, "internal", IPv4, the address, the alias address.
    let addresses = below("2.5.1.10");
    assert_eq!(addresses.len(), 10);
    for (number, (index, alias)) in addresses.iter().enumerate() {
        let inside = format!(
            "1.8.105.110.116.101.114.110.97.108.1.4.10.0.0.{}.",
            number + 2
        );
        assert!(index.starts_with(&inside), "{index}");
        assert!(alias.starts_with("Hex-STRING: C0 00 02 0"), "{alias}");
    }
    // The instance, UDP, "external", IPv4, the alias address, the port.
    let (insides, ports) = (below("2.6.1.9"), below("2.6.1.12"));
    let subscribers = below("2.6.1.14");
    assert_eq!(
        (insides.len(), ports.len(), subscribers.len()),
        (100, 100, 100)
    );
    let mut ends = std::collections::BTreeSet::new();
    for ((inside, port), subscriber) in insides.iter().zip(&ports).zip(&subscribers) {
        let (index, inside) = inside;
        let prefix = "1.17.8.101.120.116.101.114.110.97.108.1.4.192.0.2.";
        assert!(index.starts_with(prefix) && *index == port.0, "{index}");
        ends.insert((inside.clone(), port.1.clone()));
        // Whose it is, is the row of the table of subscribers.
        let number = subscriber.1.strip_prefix("Gauge32: ").unwrap();
        let own = value(walked, &format!("1.1.1.4.{number}"));
        assert_eq!(own, Some(inside.as_str()));
    }
    assert_eq!(ends.len(), 100);
}

/// Each column of the RFC is told, but some of subscribers.
fn every_column_is_there(walked: &Walked, missing: &[u32]) {
    for (entry, all) in COLUMNS {
        for column in all {
            let name = format!("{NATV2}.{entry}.{column}.");
            let is_there = walked.iter().any(|(one, _)| one.starts_with(&name));
            let is_told = entry != SUBSCRIBERS || !missing.contains(column);
            assert_eq!(is_there, is_told, "{name}");
        }
    }
    let known = COLUMNS.map(|(entry, ..)| format!("{NATV2}.{entry}."));
    for (name, _) in walked {
        assert!(known.iter().any(|entry| name.starts_with(entry)), "{name}");
    }
}

#[test]
fn managers_are_told_as_ports_run_low_and_are_free_again() {
    let Some(world) = World::new("natv2told", &["snmpwalk", "snmpd", "snmptrapd"]) else {
        return;
    };
    let Some(()) = skip::unless(skip::tun()) else {
        return;
    };
    let client = Netns::new("natv2toldin").unwrap();
    world.netns.ip(&["link", "set", "lo", "up"]).unwrap();
    let receiver = world.netns.inside(|| UdpSocket::bind("127.0.0.1:2001"));
    let receiver = receiver.unwrap().unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let _daemon = world.up(&format!(
        "[snmp]\nagentx_master = '{}'\n[[snmp.target]]\naddress = '127.0.0.1:2001'\n",
        world.path("agentx").display()
    ));
    let control = world.path("control");
    let control = control.to_str().unwrap();
    // 3,000 ports: 3 percent are 90.
    let options = [
        "--notify-pool-high",
        "3",
        "--notify-pool-low",
        "1",
        "--notify-mappings",
        "50",
        "--notify-subscribers",
        "9",
        "--notify-subscriber-mappings",
        "10",
        "--control",
        control,
    ];
    let _nat = translation(&world, &client, "agentx", &options);
    let mut heard = Vec::new();
    let mut hear = |number: u8| {
        wait_until(PATIENCE, "a notification", || {
            send(&client, 2..12, 10);
            let mut datagram = [0; 1_500];
            let len = receiver.recv(&mut datagram).unwrap_or(0);
            heard.push(datagram[..len].to_vec());
            // natv2MIBNotifications: 1.3.6.1.2.1.234.0.N in BER.
            let name = [0x2b, 6, 1, 2, 1, 0x81, 0x6a, 0, number];
            let is_told = |of: &Vec<u8>| of.windows(name.len()).any(|one| one == name);
            heard.iter().any(is_told).then_some(())
        })
        .unwrap();
    };
    for number in [2, 3, 4, 5] {
        hear(number);
    }
    // Nobody sends any more, and all is cleared.
    let mut datagram = [0; 1_500];
    let low = [0x2b, 6, 1, 2, 1, 0x81, 0x6a, 0, 1];
    wait_until(PATIENCE, "the pool to be told as free", || {
        let clear = ["nat", "clear", "--all", "--control", control];
        let cleared = world.fingerpost(&clear).output().unwrap();
        assert!(cleared.status.success());
        let len = receiver.recv(&mut datagram).unwrap_or(0);
        datagram[..len]
            .windows(low.len())
            .any(|one| one == low)
            .then_some(())
    })
    .unwrap();
    let _ = fs::remove_file(control);
}

#[test]
fn what_is_not_counted_is_not_to_be_told() {
    let Some(world) = World::new("natv2uncounted", &[]) else {
        return;
    };
    let rules = world.write("rules", "alias_address 192.0.2.1\n");
    let mut command = world.netns.command(program());
    command.args(["nat", "run", "--tun", "fpin", "fpout", "--rules", &rules]);
    command.arg("--agentx").arg(world.path("nobody"));
    let output = command.args(["--notify-subscriber-mappings", "5"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`subscriber_counters yes`"), "{said}");
}
