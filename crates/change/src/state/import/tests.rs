//! The same state, written as each of the four has it, is imported as the
//! same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lab::Random;

use super::testing::Known;
use super::{Imported, ifupdown, netplan, networkd, nmstate};
use crate::state::file::File;

/// A device of a generated state.
struct Device {
    name: String,
    kind: Kind,
    mtu: u32,
    address: Option<String>,
    addresses: Vec<String>,
    gateway: Option<&'static str>,
}

enum Kind {
    Ethernet,
    Vlan {
        id: usize,
    },
    Bridge {
        ports: Vec<String>,
        stp: bool,
        delay: usize,
    },
    Bond {
        ports: Vec<String>,
        miimon: usize,
    },
}

fn generated(random: &mut Random) -> Vec<Device> {
    let ethernets = 1 + random.below(6);
    let mut free: Vec<String> = (1..ethernets).map(|at| format!("e{at}")).collect();
    let mut ports = |random: &mut Random| {
        let some = random.below(free.len() + 1);
        free.split_off(free.len() - some)
    };
    let mut kinds: Vec<(String, Kind)> = (0..ethernets)
        .map(|at| (format!("e{at}"), Kind::Ethernet))
        .collect();
    if random.below(2) == 0 {
        let (ports, stp) = (ports(random), random.below(2) == 0);
        let delay = random.below(30);
        kinds.push(("br0".to_owned(), Kind::Bridge { ports, stp, delay }));
    }
    if random.below(2) == 0 {
        let (ports, miimon) = (ports(random), random.below(1_000));
        kinds.push(("bond0".to_owned(), Kind::Bond { ports, miimon }));
    }
    for _ in 0..random.below(3) {
        let id = 1 + random.below(4_000);
        kinds.push((format!("e0.{id}"), Kind::Vlan { id }));
    }
    kinds.dedup_by(|one, other| one.0 == other.0);
    let devices = kinds
        .into_iter()
        .enumerate()
        .map(|(at, (name, kind))| Device {
            name,
            kind,
            mtu: 1_280 + random.below(7_000) as u32,
            address: (random.below(2) == 0).then(|| format!("02:00:00:00:{at:02x}:0a")),
            addresses: (0..random.below(4))
                .map(|number| match random.below(2) {
                    0 => format!("10.{at}.{number}.1/{}", 8 + random.below(25)),
                    _ => format!("2001:db8:{at}:{number}::1/{}", 48 + random.below(81)),
                })
                .collect(),
            gateway: [None, Some("192.0.2.1"), Some("2001:db8::1")][random.below(3)],
        });
    devices.collect()
}

fn as_ifupdown(devices: &[Device]) -> (PathBuf, String) {
    let mut text = String::new();
    for one in devices {
        let name = &one.name;
        let _ = writeln!(text, "auto {name}\niface {name}\n  mtu {}", one.mtu);
        for address in &one.addresses {
            let _ = writeln!(text, "  address {address}");
        }
        if let Some(address) = &one.address {
            let _ = writeln!(text, "  hwaddress ether {address}");
        }
        if let Some(gateway) = one.gateway {
            let _ = writeln!(text, "  gateway {gateway}");
        }
        let _ = match &one.kind {
            Kind::Ethernet | Kind::Vlan { .. } => Ok(()),
            Kind::Bridge { ports, stp, delay } => {
                let (ports, stp) = (ports.join(" "), if *stp { "on" } else { "off" });
                writeln!(
                    text,
                    "  bridge_ports {ports}\n  bridge_stp {stp}\n  bridge_fd {delay}"
                )
            }
            Kind::Bond { ports, miimon } => {
                let ports = ports.join(" ");
                writeln!(
                    text,
                    "  bond-slaves {ports}\n  bond-mode 1\n  bond-miimon {miimon}"
                )
            }
        };
    }
    ("interfaces".into(), text)
}

fn as_networkd(devices: &[Device]) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let holder = |name: &str| {
        devices.iter().find_map(|one| match &one.kind {
            Kind::Bridge { ports, .. } if ports.iter().any(|port| port == name) => {
                Some(("Bridge", &one.name))
            }
            Kind::Bond { ports, .. } if ports.iter().any(|port| port == name) => {
                Some(("Bond", &one.name))
            }
            _ => None,
        })
    };
    for one in devices {
        let name = &one.name;
        let made = match &one.kind {
            Kind::Ethernet => None,
            Kind::Vlan { id } => Some(("vlan", format!("[VLAN]\nId={id}\n"))),
            Kind::Bridge { stp, delay, .. } => Some((
                "bridge",
                format!("[Bridge]\nSTP={stp}\nForwardDelaySec={delay}s\n"),
            )),
            Kind::Bond { miimon, .. } => {
                let interval = format!("MIIMonitorSec={}ms", miimon / 10 * 10);
                Some(("bond", format!("[Bond]\nMode=active-backup\n{interval}\n")))
            }
        };
        if let Some((kind, options)) = made {
            let text = format!("[NetDev]\nName={name}\nKind={kind}\n{options}");
            files.insert(format!("n/{name}.netdev").into(), text);
        }
        let mut text = format!("[Match]\nName={name}\n[Link]\nMTUBytes={}\n", one.mtu);
        if let Some(address) = &one.address {
            let _ = writeln!(text, "MACAddress={address}");
        }
        text += "[Network]\n";
        for address in &one.addresses {
            let _ = writeln!(text, "Address={address}");
        }
        if let Some(gateway) = one.gateway {
            let _ = writeln!(text, "Gateway={gateway}");
        }
        if let Some((key, holder)) = holder(name) {
            // The others leave it as it is.
            let _ = writeln!(text, "{key}={holder}\nLinkLocalAddressing=ipv6");
        }
        if name == "e0" {
            for vlan in devices
                .iter()
                .filter(|one| matches!(one.kind, Kind::Vlan { .. }))
            {
                let _ = writeln!(text, "VLAN={}", vlan.name);
            }
        }
        files.insert(format!("n/{name}.network").into(), text);
    }
    files
}

fn as_netplan(devices: &[Device]) -> String {
    let mut text = "network:\n  version: 2\n".to_owned();
    type IsOf = fn(&Kind) -> bool;
    let sections: [(&str, IsOf); 4] = [
        ("ethernets", |kind| matches!(kind, Kind::Ethernet)),
        ("vlans", |kind| matches!(kind, Kind::Vlan { .. })),
        ("bridges", |kind| matches!(kind, Kind::Bridge { .. })),
        ("bonds", |kind| matches!(kind, Kind::Bond { .. })),
    ];
    for (section, is_of) in sections {
        let mut of = devices.iter().filter(|one| is_of(&one.kind)).peekable();
        if of.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "  {section}:");
        for one in of {
            let _ = writeln!(text, "    {}:\n      mtu: {}", one.name, one.mtu);
            if let Some(address) = &one.address {
                let _ = writeln!(text, "      macaddress: '{address}'");
            }
            let addresses = one.addresses.iter().map(|one| format!("'{one}'"));
            let addresses: Vec<String> = addresses.collect();
            let _ = writeln!(text, "      addresses: [{}]", addresses.join(", "));
            if let Some(gateway) = one.gateway {
                let family = if gateway.contains(':') { 6 } else { 4 };
                let _ = writeln!(text, "      gateway{family}: '{gateway}'");
            }
            let _ = match &one.kind {
                Kind::Ethernet => Ok(()),
                Kind::Vlan { id } => writeln!(text, "      id: {id}\n      link: e0"),
                Kind::Bridge { ports, stp, delay } => writeln!(
                    text,
                    "      interfaces: [{}]\n      parameters: {{stp: {stp}, forward-delay: {delay}}}",
                    ports.join(", ")
                ),
                Kind::Bond { ports, miimon } => writeln!(
                    text,
                    "      interfaces: [{}]\n      parameters: {{mode: active-backup, mii-monitor-interval: {miimon}}}",
                    ports.join(", ")
                ),
            };
        }
    }
    text
}

fn as_nmstate(devices: &[Device]) -> String {
    let mut text = "interfaces:\n".to_owned();
    let mut routes = String::new();
    for one in devices {
        let kind = match one.kind {
            Kind::Ethernet => "ethernet",
            Kind::Vlan { .. } => "vlan",
            Kind::Bridge { .. } => "linux-bridge",
            Kind::Bond { .. } => "bond",
        };
        let _ = writeln!(
            text,
            "- name: {}\n  type: {kind}\n  state: up\n  mtu: {}",
            one.name, one.mtu
        );
        if let Some(address) = &one.address {
            let _ = writeln!(text, "  mac-address: '{address}'");
        }
        // In the order of the others, whatever the family: by two keys.
        for (key, is_v6) in [("ipv4", false), ("ipv6", true)] {
            let of = one
                .addresses
                .iter()
                .filter(|text| text.contains(':') == is_v6);
            let of = of.filter_map(|text| text.split_once('/'));
            let of: Vec<String> = of
                .map(|(ip, length)| format!("{{ip: '{ip}', prefix-length: {length}}}"))
                .collect();
            let _ = writeln!(
                text,
                "  {key}: {{enabled: {}, address: [{}]}}",
                !of.is_empty(),
                of.join(", ")
            );
        }
        let _ = match &one.kind {
            Kind::Ethernet => Ok(()),
            Kind::Vlan { id } => writeln!(text, "  vlan: {{base-iface: e0, id: {id}}}"),
            Kind::Bridge { ports, stp, delay } => {
                let ports: Vec<String> = ports
                    .iter()
                    .map(|port| format!("{{name: {port}}}"))
                    .collect();
                writeln!(
                    text,
                    "  bridge: {{options: {{stp: {{enabled: {stp}, forward-delay: {delay}}}}}, port: [{}]}}",
                    ports.join(", ")
                )
            }
            Kind::Bond { ports, miimon } => writeln!(
                text,
                "  link-aggregation: {{mode: active-backup, options: {{miimon: {miimon}}}, port: [{}]}}",
                ports.join(", ")
            ),
        };
        if let Some(gateway) = one.gateway {
            let to = if gateway.contains(':') {
                "::/0"
            } else {
                "0.0.0.0/0"
            };
            let _ = writeln!(
                routes,
                "  - {{destination: '{to}', next-hop-address: '{gateway}', next-hop-interface: '{}'}}",
                one.name
            );
        }
    }
    if !routes.is_empty() {
        let _ = write!(text, "routes:\n  config:\n{routes}");
    }
    text
}

/// A file in an order of its own.
fn sorted(imported: Imported) -> File {
    assert_eq!(imported.left, []);
    let mut file = imported.file;
    file.link.sort_by(|one, other| one.name.cmp(&other.name));
    for link in &mut file.link {
        link.addresses.sort();
        // Whatever the order of the words.
        let options = link.options.take().unwrap_or_default();
        let mut words: Vec<&str> = options.split(' ').collect();
        words.sort_unstable();
        link.options = Some(words.join(" "));
    }
    file.route.sort_by_key(|row| format!("{row:?}"));
    file
}

#[test]
fn the_same_state_of_each_of_the_four_is_the_same() {
    let mut random = Random::new(41);
    for round in 0..300 {
        let mut devices = generated(&mut random);
        for one in &mut devices {
            if let Kind::Bond { miimon, .. } = &mut one.kind {
                // systemd's times are told in hundredths here.
                *miimon = *miimon / 10 * 10;
            }
        }
        let (path, text) = as_ifupdown(&devices);
        let one = |path: &str, text: String| Known(BTreeMap::from([(PathBuf::from(path), text)]));
        let mut expected =
            sorted(ifupdown::import(&mut one("interfaces", text.clone()), &path).unwrap());
        for link in &mut expected.link {
            // It alone takes IPv6 off a bridge's ports.
            link.sysctl.clear();
        }
        let found = networkd::import(&mut Known(as_networkd(&devices)), Path::new("n")).unwrap();
        assert_eq!(sorted(found), expected, "{round}: networkd\n{text}");
        let found = netplan::import(
            &mut one("n.yaml", as_netplan(&devices)),
            Path::new("n.yaml"),
        )
        .unwrap();
        assert_eq!(sorted(found), expected, "{round}: netplan\n{text}");
        let found =
            nmstate::import(&mut one("n.yml", as_nmstate(&devices)), Path::new("n.yml")).unwrap();
        assert_eq!(sorted(found), expected, "{round}: nmstate\n{text}");
    }
}
