//! netplan's YAML: a file, or a directory of them, of which a later one adds
//! to an earlier.

use std::net::IpAddr;
use std::path::Path;

use marked_yaml::Node;
use marked_yaml::types::MarkedMappingNode;
use netlink::encode::named_value;

use super::draft::{Draft, Place, Table, hardware, is_name, is_plain, network, row, yes};
use super::yaml::{NOT_KNOWN, each, items, line, parse, text, texts};
use super::{Imported, Texts};
use crate::state::file::Row;

/// Reads a file, or all of a directory.
pub fn import(from: &mut dyn Texts, path: &Path) -> Result<Imported, String> {
    let is_file = path
        .extension()
        .is_some_and(|end| end == "yaml" || end == "yml");
    let files = match is_file {
        true => vec![path.to_owned()],
        false => from.matching(&path.join("*.yaml"))?,
    };
    if files.is_empty() {
        return Err(format!("{}: there are no files", path.display()));
    }
    let mut draft = Draft::default();
    for file in &files {
        let whole = parse(file, &from.read(file)?)?;
        let Some(whole) = whole.as_mapping() else {
            continue;
        };
        each(&mut draft, file, whole, &mut |draft, key, value| {
            let network = value.as_mapping().filter(|_| key == "network")?;
            each(draft, file, network, &mut |draft, key, value| {
                section(draft, file, key, value)
            });
            Some(())
        });
    }
    Ok(draft.finish())
}

fn section(draft: &mut Draft, path: &Path, name: &str, value: &Node) -> Option<()> {
    let kind = match name {
        "version" | "renderer" => return Some(()),
        "ethernets" => None,
        "bridges" => Some("bridge"),
        "bonds" => Some("bond"),
        "vlans" => Some("vlan"),
        "vrfs" => Some("vrf"),
        "tunnels" => Some("vxlan"),
        "dummy-devices" => Some("dummy"),
        "virtual-ethernets" => Some("veth"),
        _ => return None,
    };
    each(draft, path, value.as_mapping()?, &mut |draft, id, value| {
        let device = value.as_mapping()?;
        let at = Place {
            path,
            line: line(value),
        };
        let Some(link) = named(id, device) else {
            let why = "links are declared by their names: this is matched by something else";
            draft.leave(at, id, why);
            return Some(());
        };
        if kind == Some("vxlan")
            && device
                .get_scalar("mode")
                .is_none_or(|mode| mode.as_str() != "vxlan")
        {
            draft.leave(at, id, "of tunnels those of mode vxlan are carried over");
            return Some(());
        }
        let made = draft.link(&link);
        made.up = Some(true);
        made.kind = kind.map(str::to_owned);
        let vrf = device
            .get_scalar("table")
            .map(|table| table.as_str().to_owned());
        let of = Of {
            path,
            link: &link,
            kind,
            table: vrf.filter(|_| kind == Some("vrf")),
        };
        each(draft, path, device, &mut |draft, key, value| {
            of.key(draft, key, value)
        });
        Some(())
    });
    Some(())
}

/// The name of a device, where it can be told without looking at devices.
fn named(id: &str, device: &MarkedMappingNode) -> Option<String> {
    let name = match device.get_node("match") {
        None => id,
        Some(Node::Mapping(by)) if by.iter().count() == 1 => by.get_scalar("name")?.as_str(),
        Some(_) => return None,
    };
    let is_pattern = name.contains(['*', '?', '[']);
    (is_name(name) && !is_pattern).then(|| name.to_owned())
}

/// A device under way.
struct Of<'a> {
    path: &'a Path,
    link: &'a str,
    kind: Option<&'a str>,
    /// Of a VRF.
    table: Option<String>,
}

impl Of<'_> {
    fn key(&self, draft: &mut Draft, key: &str, value: &Node) -> Option<()> {
        let link = self.link;
        let number = || text(value)?.parse::<u32>().ok();
        match key {
            "match" | "optional" | "critical" | "renderer" | "ignore-carrier" => {}
            "mode" if self.kind == Some("vxlan") => {}
            "set-name" if text(value)? == link => {}
            "dhcp4" | "dhcp6" | "wakeonlan" if yes(text(value)?) == Some(false) => {}
            "mtu" => draft.link(link).mtu = Some(number()?),
            "macaddress" => draft.link(link).address = Some(hardware(text(value)?)?),
            "accept-ra" => draft.sysctl(link, "ipv6", "accept_ra", yes(text(value)?)?.into()),
            "ipv6-privacy" => {
                let setting = if yes(text(value)?)? { 2 } else { 0 };
                draft.sysctl(link, "ipv6", "use_tempaddr", setting);
            }
            "link-local" => match texts(value)?[..] {
                [] | ["ipv4"] => draft.sysctl(link, "ipv6", "addr_gen_mode", 1),
                ["ipv6"] => {}
                _ => return None,
            },
            "activation-mode" => match text(value)? {
                "off" => draft.link(link).up = Some(false),
                "manual" => draft.link(link).up = None,
                _ => return None,
            },
            "addresses" => self.list(draft, value, Self::address)?,
            "gateway4" | "gateway6" => {
                let gateway: IpAddr = text(value)?.parse().ok()?;
                let made = row([
                    ("dst", "default".into()),
                    ("gateway", gateway.to_string().into()),
                    ("dev", link.into()),
                ]);
                draft.row(Table::Route, with_family(made, gateway.is_ipv6()));
            }
            "routes" => self.list(draft, value, Self::route)?,
            "routing-policy" => self.list(draft, value, Self::rule)?,
            "interfaces" if matches!(self.kind, Some("bridge" | "bond" | "vrf")) => {
                let ports = texts(value)?;
                if !ports.iter().all(|port| is_name(port)) {
                    return None;
                }
                for port in ports {
                    draft.link(port).master = Some(link.to_owned());
                }
            }
            "parameters" if matches!(self.kind, Some("bridge" | "bond")) => {
                each(
                    draft,
                    self.path,
                    value.as_mapping()?,
                    &mut |draft, key, value| self.parameter(draft, key, text(value)?),
                );
            }
            "peer" if self.kind == Some("veth") => {
                draft.link(link).peer = Some(text(value).filter(|peer| is_name(peer))?.to_owned());
            }
            "link" if matches!(self.kind, Some("vlan" | "vxlan")) => {
                draft.link(link).link = Some(text(value).filter(|name| is_name(name))?.to_owned());
            }
            "id" if matches!(self.kind, Some("vlan" | "vxlan")) => {
                draft.option(link, "id", &number()?.to_string());
            }
            "table" if self.kind == Some("vrf") => {
                draft.option(link, "table", &number()?.to_string());
            }
            "local" | "remote" if self.kind == Some("vxlan") => {
                let address: IpAddr = text(value)?.parse().ok()?;
                draft.option(link, key, &address.to_string());
            }
            "port" if self.kind == Some("vxlan") => {
                draft.option(link, "dstport", &number()?.to_string());
            }
            "mac-learning" if self.kind == Some("vxlan") => {
                let word = if yes(text(value)?)? {
                    "learning"
                } else {
                    "nolearning"
                };
                draft.option(link, word, "");
            }
            _ => return None,
        }
        Some(())
    }

    /// Hands each item of a list over; what is not carried is left by its
    /// line.
    fn list(
        &self,
        draft: &mut Draft,
        value: &Node,
        of: fn(&Self, &mut Draft, &Node) -> Option<()>,
    ) -> Option<()> {
        for item in items(value)? {
            if of(self, draft, item).is_none() {
                let at = Place {
                    path: self.path,
                    line: line(item),
                };
                draft.leave(at, text(item).unwrap_or(self.link), NOT_KNOWN);
            }
        }
        Some(())
    }

    fn parameter(&self, draft: &mut Draft, key: &str, value: &str) -> Option<()> {
        let number = || value.parse::<u32>().ok();
        // Without a unit: seconds of a bridge, milliseconds of a bond.
        let centis = || number()?.checked_mul(100).map(|value| value.to_string());
        let (word, value) = match (self.kind?, key) {
            ("bridge", "stp") => ("stp_state", u32::from(yes(value)?).to_string()),
            ("bridge", "forward-delay") => ("forward_delay", centis()?),
            ("bridge", "hello-time") => ("hello_time", centis()?),
            ("bridge", "max-age") => ("max_age", centis()?),
            ("bridge", "ageing-time" | "aging-time") => ("ageing_time", centis()?),
            ("bridge", "priority") => ("priority", number()?.to_string()),
            ("bond", "mode") => ("mode", named_value("bond", "mode", value)?.to_owned()),
            ("bond", "mii-monitor-interval") => ("miimon", number()?.to_string()),
            ("bond", "up-delay") => ("updelay", number()?.to_string()),
            ("bond", "down-delay") => ("downdelay", number()?.to_string()),
            ("bond", "lacp-rate") if matches!(value, "slow" | "fast") => {
                ("lacp_rate", value.to_owned())
            }
            ("bond", "primary") if is_name(value) => ("primary", value.to_owned()),
            ("bond", "transmit-hash-policy")
                if matches!(
                    value,
                    "layer2" | "layer3+4" | "layer2+3" | "encap2+3" | "encap3+4"
                ) =>
            {
                ("xmit_hash_policy", value.to_owned())
            }
            _ => return None,
        };
        draft.option(self.link, word, &value);
        Some(())
    }

    fn address(&self, draft: &mut Draft, item: &Node) -> Option<()> {
        let Some(map) = item.as_mapping() else {
            draft.address(self.link, network(text(item)?)?);
            return Some(());
        };
        // `- 10.0.0.1/24: {label: eth0:x}`
        let (address, more) = map.iter().next().filter(|_| map.iter().count() == 1)?;
        let address = network(address.as_str())?;
        let mut label = None;
        each(
            draft,
            self.path,
            more.as_mapping()?,
            &mut |_, key, value| match key {
                "label" => text(value)
                    .filter(|text| is_plain(text))
                    .map(|text| label = Some(text.to_owned())),
                "lifetime" if text(value)? == "forever" => Some(()),
                _ => None,
            },
        );
        match label {
            None => draft.address(self.link, address),
            Some(label) => {
                let made = row([
                    ("dev", self.link.into()),
                    ("local", address.to_string().into()),
                    ("label", label.into()),
                ]);
                draft.row(Table::Address, made);
            }
        }
        Some(())
    }

    fn route(&self, draft: &mut Draft, item: &Node) -> Option<()> {
        let (mut made, mut is_v6) = (Row::new(), false);
        let mut needs_link = true;
        each(
            draft,
            self.path,
            item.as_mapping()?,
            &mut |_, key, value| {
                let value = text(value)?;
                let (name, value) = match key {
                    "to" if matches!(value, "default" | "0.0.0.0/0" | "::/0") => {
                        is_v6 |= value == "::/0";
                        ("dst", "default".into())
                    }
                    "to" => (
                        "dst",
                        family(network(value)?.addr(), &mut is_v6, network(value)?),
                    ),
                    "via" => ("gateway", family(value.parse().ok()?, &mut is_v6, value)),
                    "from" => ("prefsrc", family(value.parse().ok()?, &mut is_v6, value)),
                    "metric" => ("metric", value.parse::<u32>().ok()?.into()),
                    "table" => ("table", value.parse::<u32>().ok()?.into()),
                    "scope" if matches!(value, "global" | "link" | "host") => {
                        ("scope", value.into())
                    }
                    "type" if value == "unicast" => return Some(()),
                    "type"
                        if matches!(value, "blackhole" | "unreachable" | "prohibit" | "throw") =>
                    {
                        needs_link = false;
                        ("type", value.into())
                    }
                    "on-link" if yes(value)? => ("flags", vec!["onlink"].into()),
                    "on-link" => return Some(()),
                    _ => return None,
                };
                made.insert(name.to_owned(), value);
                Some(())
            },
        );
        if !made.contains_key("dst") {
            return None;
        }
        if needs_link {
            made.insert("dev".to_owned(), self.link.into());
        }
        self.put_table(&mut made);
        draft.row(Table::Route, with_family(made, is_v6));
        Some(())
    }

    /// What names no table is of the VRF's.
    fn put_table(&self, made: &mut Row) {
        let table = self.table.as_ref();
        if let Some(table) = table.and_then(|table| table.parse::<u32>().ok()) {
            made.entry("table".to_owned()).or_insert(table.into());
        }
    }

    fn rule(&self, draft: &mut Draft, item: &Node) -> Option<()> {
        let (mut made, mut is_v6) = (Row::new(), false);
        each(
            draft,
            self.path,
            item.as_mapping()?,
            &mut |_, key, value| {
                let value = text(value)?;
                let (name, value) = match key {
                    "from" => (
                        "src",
                        family(network(value)?.addr(), &mut is_v6, network(value)?),
                    ),
                    "to" => (
                        "dst",
                        family(network(value)?.addr(), &mut is_v6, network(value)?),
                    ),
                    "table" => ("table", value.parse::<u32>().ok()?.into()),
                    "priority" => ("priority", value.parse::<u32>().ok()?.into()),
                    "mark" => ("fwmark", value.parse::<u32>().ok()?.to_string().into()),
                    _ => return None,
                };
                made.insert(name.to_owned(), value);
                Some(())
            },
        );
        // A rule is declared with its priority.
        made.get("priority")?;
        self.put_table(&mut made);
        draft.row(Table::Rule, with_family(made, is_v6));
        Some(())
    }
}

/// A value as text, and the family that it says.
fn family(address: IpAddr, is_v6: &mut bool, value: impl ToString) -> serde_json::Value {
    *is_v6 |= address.is_ipv6();
    value.to_string().into()
}

fn with_family(mut row: Row, is_v6: bool) -> Row {
    if is_v6 {
        row.insert("family".to_owned(), "inet6".into());
    }
    row
}

#[cfg(test)]
mod tests;
