//! The same generated states kept by systemd-networkd and by ifupdown2, each
//! beside what `import` makes of its files and `apply` of that: the tables
//! are the same, as `ip` lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lab::Random;
use lab::managers::{Ifupdown2, NETWORKD, UNSHARE, networkd};
use serde_json::{Map, Value};

use super::*;

/// So many states of each; more where the environment says so.
fn states() -> usize {
    let said = std::env::var("FP_STATES").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(20)
}

/// A link of a generated state. Those of no kind are there before.
struct Device {
    name: String,
    kind: Kind,
    mtu: usize,
    lladdr: String,
    addresses: Vec<String>,
    gateway: Option<String>,
    routes: Vec<Route>,
    /// Source and priority, to table 100.
    rules: Vec<(String, usize)>,
    is_port: bool,
}

enum Kind {
    There,
    Bridge {
        ports: Vec<String>,
        stp: bool,
        delay: usize,
        ageing: usize,
    },
    Vxlan {
        id: usize,
    },
}

struct Route {
    prefix: String,
    gateway: String,
    table: Option<usize>,
    metric: Option<usize>,
}

fn generated(random: &mut Random) -> Vec<Device> {
    let ethernets = 1 + random.below(4);
    let mut kinds: Vec<(String, Kind)> = (0..ethernets)
        .map(|at| (format!("e{at}"), Kind::There))
        .collect();
    let mut ports = Vec::new();
    if random.below(3) > 0 {
        // The first is never a port: it may have a gateway.
        let first = 1 + random.below(ethernets);
        ports = (first..ethernets).map(|at| format!("e{at}")).collect();
        let kind = Kind::Bridge {
            ports: ports.clone(),
            // With it a port is silent for twice the delay.
            stp: random.below(4) == 0,
            delay: 2 + random.below(2),
            ageing: 10 + random.below(300),
        };
        kinds.push(("br0".to_owned(), kind));
    }
    if random.below(2) == 0 {
        let id = 1 + random.below(1 << 20);
        kinds.push(("vx0".to_owned(), Kind::Vxlan { id }));
    }
    let kinds = kinds.into_iter().enumerate();
    kinds
        .map(|(at, (name, kind))| device(random, at, kind, ports.contains(&name), name))
        .collect()
}

fn device(random: &mut Random, at: usize, kind: Kind, is_port: bool, name: String) -> Device {
    let mut one = Device {
        name,
        kind,
        mtu: 1_280 + random.below(221),
        lladdr: format!("02:00:00:00:{at:02x}:0a"),
        addresses: Vec::new(),
        gateway: None,
        routes: Vec::new(),
        rules: Vec::new(),
        is_port,
    };
    if is_port {
        return one;
    }
    // Who is in the same network as an address: its last part is another.
    let mut near = Vec::new();
    for number in 0..random.below(4) {
        let (head, lengths): (_, [u8; 4]) = match random.below(2) {
            0 => (format!("10.{at}.{number}."), [24, 25, 30, 32]),
            _ => (format!("2001:db8:{at}:{number}::"), [64, 80, 127, 128]),
        };
        let place = random.below(lengths.len());
        one.addresses.push(format!("{head}1/{}", lengths[place]));
        if place < 2 {
            near.push(head);
        }
    }
    for number in 0..random.below(3) {
        let Some(head) = near.get(random.below(near.len().max(1))) else {
            break;
        };
        let prefix = match head.contains(':') {
            true => format!("2001:db8:f{at}:{number}::/64"),
            false => format!("172.{}.{number}.0/24", 16 + at),
        };
        one.routes.push(Route {
            prefix,
            gateway: format!("{head}2"),
            table: [None, Some(100)][random.below(2)],
            metric: [None, Some(50), Some(1_024)][random.below(3)],
        });
    }
    if at == 0 && random.below(2) == 0 {
        one.gateway = near.first().map(|head| format!("{head}3"));
    }
    for number in 0..random.below(3) {
        one.rules
            .push((format!("10.{at}.{number}.0/24"), 100 + at * 10 + number));
    }
    one
}

fn as_networkd(devices: &[Device]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for one in devices {
        let (name, lladdr) = (&one.name, &one.lladdr);
        let made = match &one.kind {
            Kind::There => None,
            Kind::Bridge {
                stp, delay, ageing, ..
            } => Some((
                "bridge",
                format!("[Bridge]\nSTP={stp}\nForwardDelaySec={delay}s\nAgeingTimeSec={ageing}s\n"),
            )),
            Kind::Vxlan { id } => Some((
                "vxlan",
                format!(
                    "[VXLAN]\nVNI={id}\nLocal=192.0.2.9\nRemote=198.51.100.7\n\
                     DestinationPort=4789\nIndependent=true\n"
                ),
            )),
        };
        if let Some((kind, options)) = made {
            let text =
                format!("[NetDev]\nName={name}\nKind={kind}\nMACAddress={lladdr}\n{options}");
            files.insert(format!("{name}.netdev"), text);
        }
        let mut text = format!(
            "[Match]\nName={name}\n[Link]\nMTUBytes={}\nMACAddress={lladdr}\n\
             [Network]\nConfigureWithoutCarrier=yes\nIPv6AcceptRA=no\n",
            one.mtu
        );
        let mut put = |key: &str, value: &str| {
            let _ = writeln!(text, "{key}={value}");
        };
        for address in &one.addresses {
            put("Address", address);
        }
        if let Some(gateway) = &one.gateway {
            put("Gateway", gateway);
        }
        if one.is_port {
            put("Bridge", "br0");
        }
        for route in &one.routes {
            put("[Route]\nDestination", &route.prefix);
            put("Gateway", &route.gateway);
            for (key, value) in [("Table", route.table), ("Metric", route.metric)] {
                if let Some(value) = value {
                    put(key, &value.to_string());
                }
            }
        }
        for (source, priority) in &one.rules {
            put("[RoutingPolicyRule]\nTable=100\nFrom", source);
            put("Priority", &priority.to_string());
        }
        files.insert(format!("{name}.network"), text);
    }
    files
}

fn as_ifupdown(devices: &[Device]) -> String {
    let mut text = String::new();
    for one in devices {
        let name = &one.name;
        let mut put = |key: &str, value: &str| {
            let _ = writeln!(text, "{key} {value}");
        };
        put("auto", name);
        put("iface", name);
        put("  mtu", &one.mtu.to_string());
        put("  hwaddress", &one.lladdr);
        for address in &one.addresses {
            put("  address", address);
        }
        if let Some(gateway) = &one.gateway {
            put("  gateway", gateway);
        }
        match &one.kind {
            Kind::There => {}
            Kind::Bridge {
                ports,
                stp,
                delay,
                ageing,
            } => {
                let ports = match ports.is_empty() {
                    true => "none".to_owned(),
                    false => ports.join(" "),
                };
                put("  bridge-ports", &ports);
                put("  bridge-stp", if *stp { "on" } else { "off" });
                put("  bridge-fd", &delay.to_string());
                put("  bridge-ageing", &ageing.to_string());
            }
            Kind::Vxlan { id } => {
                put("  vxlan-id", &id.to_string());
                put("  vxlan-local-tunnelip", "192.0.2.9");
                put("  vxlan-remoteip", "198.51.100.7");
            }
        }
        for route in &one.routes {
            let family = if route.prefix.contains(':') {
                "-6 "
            } else {
                ""
            };
            let (prefix, gateway) = (&route.prefix, &route.gateway);
            let mut line = format!("ip {family}route add {prefix} via {gateway} dev {name}");
            for (word, value) in [("table", route.table), ("metric", route.metric)] {
                if let Some(value) = value {
                    let _ = write!(line, " {word} {value}");
                }
            }
            put("  up", &line);
        }
        for (source, priority) in &one.rules {
            put(
                "  up",
                &format!("ip rule add from {source} pref {priority} table 100"),
            );
        }
    }
    text
}

/// A namespace with the links that are there before, and their other ends.
fn place(tag: &str, devices: &[Device]) -> Option<Netns> {
    let netns = at_rest(tag)?;
    let there = devices.iter().filter(|one| matches!(one.kind, Kind::There));
    let links: String = there
        .enumerate()
        .map(|(at, one)| {
            format!(
                "link add {} address 02:00:00:00:01:{at:02x} type veth peer name f{at} \
                 address 02:00:00:00:02:{at:02x}\nlink set f{at} up\n",
                one.name
            )
        })
        .collect();
    netns.ip_batch(&format!("link set lo up\n{links}")).unwrap();
    Some(netns)
}

/// What `ip` lists, a line a row, without what the kernel gives by itself
/// and in its own time.
fn listed(netns: &Netns) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for what in [
        "-d link",
        "addr",
        "-4 route show table all",
        "-6 route show table all",
        "-4 rule",
        "-6 rule",
    ] {
        let mut arguments = vec!["-j"];
        arguments.extend(what.split(' '));
        let text = netns.ip(&arguments).unwrap();
        let list: Vec<Map<String, Value>> = serde_json::from_str(&text).unwrap();
        let list = list.into_iter().filter_map(|row| shown(what, row));
        rows.extend(list.map(|row| format!("{what}: {}", Value::Object(row))));
    }
    rows.extend(forwarding(netns));
    rows
}

fn shown(what: &str, mut row: Map<String, Value>) -> Option<Map<String, Value>> {
    let kept: &[&str] = match what {
        "-d link" => {
            let flags = row["flags"].as_array()?;
            let is_up = flags.contains(&"UP".into());
            row.insert("up".to_owned(), is_up.into());
            if let Some(info) = row
                .get_mut("linkinfo")
                .and_then(|info| info.get_mut("info_data"))
            {
                // Timers, and who is the root.
                info.as_object_mut()?.retain(|key, _| {
                    let is_of_now = key.ends_with("_timer")
                        || key.contains("root")
                        || key.contains("topology")
                        || matches!(key.as_str(), "bridge_id" | "fdb_n_learned");
                    !is_of_now
                });
            }
            if let Some(info) = row.get_mut("linkinfo").and_then(Value::as_object_mut) {
                info.remove("info_slave_data");
            }
            &[
                "ifname", "mtu", "address", "master", "link", "txqlen", "group", "up", "linkinfo",
            ]
        }
        "addr" => {
            for address in row.get_mut("addr_info")?.as_array_mut()? {
                let address = address.as_object_mut()?;
                // ifupdown2 says no broadcast address; ifupdown and networkd do.
                address.retain(|key, _| {
                    !matches!(key.as_str(), "broadcast" | "protocol" | "tentative")
                });
            }
            let list = row.get_mut("addr_info")?.as_array_mut()?;
            list.sort_by_key(ToString::to_string);
            &["ifname", "addr_info"]
        }
        _ => {
            // Those of groups come with the carrier.
            let of_group = ["multicast", "anycast"].map(Value::from);
            if row.get("type").is_some_and(|is| of_group.contains(is)) {
                return None;
            }
            row.remove("protocol");
            row.remove("flags");
            return Some(row);
        }
    };
    row.retain(|key, _| kept.contains(&key.as_str()));
    Some(row)
}

/// Entries that somebody made.
fn forwarding(netns: &Netns) -> Vec<String> {
    let text = netns.run("bridge", &["-j", "fdb"]).unwrap();
    let list: Vec<Map<String, Value>> = serde_json::from_str(&text).unwrap();
    let list = list.into_iter().filter(|row| row.contains_key("dst"));
    list.map(|mut row| {
        row.remove("flags");
        format!("fdb: {}", Value::Object(row))
    })
    .collect()
}

/// Imports and applies.
fn ours(netns: &Netns, files: &Files, kind: &str, path: &Path) {
    let imported = fingerpost(netns, &["import", kind, path.to_str().unwrap()]);
    let file = files.write("imported.toml", &said(imported));
    said(files.apply(netns, &file, &[]));
    let again = said(files.apply(netns, &file, &[]));
    assert!(again.contains("nothing was sent"), "{again}");
}

fn compare(theirs: &Netns, ours: &Netns, what: &str) {
    let mut last = (BTreeSet::new(), BTreeSet::new());
    let same = wait_until(std::time::Duration::from_secs(30), what, || {
        last = (listed(theirs), listed(ours));
        (last.0 == last.1).then_some(())
    });
    let theirs: Vec<_> = last.0.difference(&last.1).collect();
    let ours: Vec<_> = last.1.difference(&last.0).collect();
    assert!(
        same.is_ok(),
        "{what}\ntheirs alone: {theirs:#?}\nours alone: {ours:#?}"
    );
}

#[test]
fn what_networkd_does_and_what_is_imported_from_it_is_the_same() {
    assert!(
        Path::new(NETWORKD).exists(),
        "{NETWORKD} is not there: it is in Debian's package systemd"
    );
    let mut random = Random::new(19);
    for state in 0..states() {
        let devices = generated(&mut random);
        let (Some(theirs), Some(own)) = (place("ndth", &devices), place("ndow", &devices)) else {
            return;
        };
        let files = Files::new();
        let directory = files.path().join("network");
        fs::create_dir(&directory).unwrap();
        for (name, text) in as_networkd(&devices) {
            fs::write(directory.join(name), text).unwrap();
        }
        // It asks for the links of its files as a user of its own.
        let mut command = theirs.command(UNSHARE);
        command.args(networkd(&directory, devices.len(), 60));
        said(command.output().unwrap());
        ours(&own, &files, "networkd", &directory);
        let text = as_networkd(&devices);
        compare(&theirs, &own, &format!("state {state}: {text:#?}"));
    }
}

#[test]
fn what_ifupdown2_does_and_what_is_imported_for_it_is_the_same() {
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let mut random = Random::new(20);
    for state in 0..states() {
        let devices = generated(&mut random);
        let (Some(theirs), Some(own)) = (place("iuth", &devices), place("iuow", &devices)) else {
            return;
        };
        let files = Files::new();
        let ifupdown2 = Ifupdown2::fetched(&packages, &files.path().join("memory")).unwrap();
        let text = as_ifupdown(&devices);
        let interfaces = files.write("interfaces", &text);
        said(
            ifupdown2
                .command(&theirs, &interfaces, "ifup")
                .output()
                .unwrap(),
        );
        ours(&own, &files, "ifupdown", &interfaces);
        compare(&theirs, &own, &format!("state {state}: {text}"));
    }
}
