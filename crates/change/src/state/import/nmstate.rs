//! nmstate's YAML or JSON: interfaces, routes, rules.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use marked_yaml::Node;
use marked_yaml::types::MarkedMappingNode;
use netlink::encode::named_value;

use super::draft::{Draft, Place, Table, hardware, is_name, is_plain, network, row, yes};
use super::yaml::{NOT_KNOWN, each, items, line, parse, text};
use super::{Imported, Texts};
use crate::state::file::Row;

/// Reads a file.
pub fn import(from: &mut dyn Texts, path: &Path) -> Result<Imported, String> {
    let mut draft = Draft::default();
    let whole = parse(path, &from.read(path)?)?;
    if let Some(whole) = whole.as_mapping() {
        each(
            &mut draft,
            path,
            whole,
            &mut |draft, key, value| match key {
                "interfaces" => list(draft, path, value, interface),
                "routes" | "route-rules" => {
                    let of: OfItem = if key == "routes" { route } else { rule };
                    each(
                        draft,
                        path,
                        value.as_mapping()?,
                        &mut |draft, key, value| {
                            // `running` is what is there, not what is to be.
                            (key == "config").then(|| list(draft, path, value, of))?
                        },
                    );
                    Some(())
                }
                _ => None,
            },
        );
    }
    Ok(draft.finish())
}

type OfItem = fn(&mut Draft, &Path, &MarkedMappingNode) -> Result<(), String>;

/// Hands each item of a list over; what is not carried is left by its line.
fn list(draft: &mut Draft, path: &Path, value: &Node, of: OfItem) -> Option<()> {
    for item in items(value)? {
        let at = Place {
            path,
            line: line(item),
        };
        let done = match item.as_mapping() {
            Some(map) => of(draft, path, map).map_err(|why| (said(map), why)),
            None => Err(("-".to_owned(), NOT_KNOWN.to_owned())),
        };
        if let Err((key, why)) = done {
            draft.leave(at, &key, why);
        }
    }
    Some(())
}

/// What an item is called by.
fn said(map: &MarkedMappingNode) -> String {
    let names = ["name", "destination", "ip-from", "ip-to"];
    let found = names.iter().find_map(|name| map.get_scalar(name));
    found.map_or("-", |found| found.as_str()).to_owned()
}

/// A whole number of a mapping.
fn number(value: &Node) -> Option<u32> {
    text(value)?.parse().ok()
}

fn switch(value: &Node) -> Option<String> {
    yes(text(value)?).map(|value| u32::from(value).to_string())
}

fn name_of(value: &Node) -> Option<String> {
    text(value).filter(|name| is_name(name)).map(str::to_owned)
}

fn interface(draft: &mut Draft, path: &Path, map: &MarkedMappingNode) -> Result<(), String> {
    let word = |key: &str| map.get_scalar(key).map(|value| value.as_str());
    let name = word("name").filter(|name| is_name(name));
    let name = name.ok_or("it has no name, or one that no link may have")?;
    if let Some(by) = word("identifier").filter(|by| *by != "name") {
        return Err(format!(
            "links are declared by their names, and not by `{by}`"
        ));
    }
    let kind = match word("type").unwrap_or("unknown") {
        "ethernet" | "unknown" | "loopback" => None,
        "linux-bridge" => Some("bridge"),
        kind @ ("bond" | "vlan" | "vxlan" | "vrf" | "dummy" | "veth") => Some(kind),
        other => return Err(format!("links of type {other} are not carried over")),
    };
    match word("state") {
        None | Some("up") => draft.link(name).up = Some(true),
        Some("down") => draft.link(name).up = Some(false),
        Some("absent") => return Err("that a link is not there is not declared".to_owned()),
        Some("ignore") => return Ok(()),
        Some(other) => return Err(format!("the state {other} is not known")),
    }
    draft.link(name).kind = kind.map(str::to_owned);
    each(draft, path, map, &mut |draft, key, value| {
        let link = draft.link(name);
        match key {
            "name" | "type" | "state" | "identifier" | "profile-name" => {}
            "mtu" => link.mtu = Some(number(value)?),
            "mac-address" => link.address = Some(hardware(text(value)?)?),
            "controller" => link.master = Some(name_of(value)?),
            "description" => {
                link.alias = Some(text(value).filter(|text| is_plain(text))?.to_owned());
            }
            "ipv4" | "ipv6" => ip(draft, path, name, value)?,
            "bridge" if kind == Some("bridge") => bridge(draft, path, name, value)?,
            "link-aggregation" if kind == Some("bond") => bond(draft, path, name, value)?,
            "vlan" | "vxlan" | "vrf" | "veth" if kind == Some(key) => {
                made(draft, path, name, key, value)?;
            }
            _ => return None,
        }
        Some(())
    });
    Ok(())
}

fn ip(draft: &mut Draft, path: &Path, link: &str, value: &Node) -> Option<()> {
    let map = value.as_mapping()?;
    let is_off = map
        .get_scalar("enabled")
        .is_some_and(|value| yes(value.as_str()) == Some(false));
    each(draft, path, map, &mut |draft, key, value| match key {
        "enabled" => yes(text(value)?).map(|_| ()),
        "dhcp" | "autoconf" if yes(text(value)?) == Some(false) => Some(()),
        "address" if is_off => Some(()),
        "address" => {
            for item in items(value)? {
                let at = Place {
                    path,
                    line: line(item),
                };
                match address(item) {
                    Some(address) => draft.address(link, address),
                    None => draft.leave(at, "address", NOT_KNOWN),
                }
            }
            Some(())
        }
        _ => None,
    });
    Some(())
}

fn address(item: &Node) -> Option<IpNet> {
    let map = item.as_mapping()?;
    let known = |(key, _): (&marked_yaml::types::MarkedScalarNode, &Node)| {
        matches!(key.as_str(), "ip" | "prefix-length")
    };
    if !map.iter().all(known) {
        return None;
    }
    let ip: IpAddr = map.get_scalar("ip")?.as_str().parse().ok()?;
    let length = map.get_scalar("prefix-length")?.as_str().parse().ok()?;
    IpNet::new(ip, length).ok()
}

fn bridge(draft: &mut Draft, path: &Path, name: &str, value: &Node) -> Option<()> {
    each(
        draft,
        path,
        value.as_mapping()?,
        &mut |draft, key, value| match key {
            "port" | "ports" => {
                for item in items(value)? {
                    let port = item.as_mapping()?;
                    each(draft, path, port, &mut |draft, key, value| {
                        let port = (key == "name").then(|| name_of(value))??;
                        draft.link(&port).master = Some(name.to_owned());
                        Some(())
                    });
                }
                Some(())
            }
            "options" => {
                each(
                    draft,
                    path,
                    value.as_mapping()?,
                    &mut |draft, key, value| {
                        if key == "stp" {
                            each(
                                draft,
                                path,
                                value.as_mapping()?,
                                &mut |draft, key, value| stp(draft, name, key, value),
                            );
                            return Some(());
                        }
                        let (word, value) = match key {
                            "group-forward-mask" => ("group_fwd_mask", number(value)?.to_string()),
                            "mac-ageing-time" => {
                                ("ageing_time", number(value)?.checked_mul(100)?.to_string())
                            }
                            "multicast-snooping" => ("mcast_snooping", switch(value)?),
                            _ => return None,
                        };
                        draft.option(name, word, &value);
                        Some(())
                    },
                );
                Some(())
            }
            _ => None,
        },
    );
    Some(())
}

fn stp(draft: &mut Draft, name: &str, key: &str, value: &Node) -> Option<()> {
    let centis = || {
        number(value)?
            .checked_mul(100)
            .map(|value| value.to_string())
    };
    let (word, value) = match key {
        "enabled" => ("stp_state", switch(value)?),
        "forward-delay" => ("forward_delay", centis()?),
        "hello-time" => ("hello_time", centis()?),
        "max-age" => ("max_age", centis()?),
        "priority" => ("priority", number(value)?.to_string()),
        _ => return None,
    };
    draft.option(name, word, &value);
    Some(())
}

fn bond(draft: &mut Draft, path: &Path, name: &str, value: &Node) -> Option<()> {
    each(
        draft,
        path,
        value.as_mapping()?,
        &mut |draft, key, value| match key {
            "mode" => {
                draft.option(name, "mode", named_value("bond", "mode", text(value)?)?);
                Some(())
            }
            "port" | "ports" => {
                for item in items(value)? {
                    let port = name_of(item)?;
                    draft.link(&port).master = Some(name.to_owned());
                }
                Some(())
            }
            "options" => {
                each(
                    draft,
                    path,
                    value.as_mapping()?,
                    &mut |draft, key, value| {
                        let (word, value) = match key {
                            "miimon" | "updelay" | "downdelay" => (key, number(value)?.to_string()),
                            "lacp_rate" if matches!(text(value)?, "slow" | "fast") => {
                                (key, text(value)?.to_owned())
                            }
                            "primary" => (key, name_of(value)?),
                            "xmit_hash_policy" => {
                                const POLICIES: [&str; 5] =
                                    ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"];
                                (
                                    key,
                                    POLICIES
                                        .into_iter()
                                        .find(|one| text(value) == Some(*one))?
                                        .to_owned(),
                                )
                            }
                            _ => return None,
                        };
                        draft.option(name, word, &value);
                        Some(())
                    },
                );
                Some(())
            }
            _ => None,
        },
    );
    Some(())
}

/// What a VLAN, a VXLAN, a VRF or a veth is made of.
fn made(draft: &mut Draft, path: &Path, name: &str, kind: &str, value: &Node) -> Option<()> {
    each(
        draft,
        path,
        value.as_mapping()?,
        &mut |draft, key, value| {
            let (word, value) = match (kind, key) {
                ("vlan" | "vxlan", "base-iface") => {
                    draft.link(name).link = Some(name_of(value)?);
                    return Some(());
                }
                ("vlan" | "vxlan", "id") => ("id", number(value)?.to_string()),
                ("vlan", "protocol") if matches!(text(value)?, "802.1q" | "802.1ad") => {
                    ("protocol", text(value)?.to_owned())
                }
                ("vxlan", "remote" | "local") => {
                    let address: IpAddr = text(value)?.parse().ok()?;
                    let word = if key == "remote" { "remote" } else { "local" };
                    (word, address.to_string())
                }
                ("vxlan", "destination-port") => ("dstport", number(value)?.to_string()),
                ("vrf", "route-table-id") => ("table", number(value)?.to_string()),
                ("vrf", "port" | "ports") => {
                    for item in items(value)? {
                        let port = name_of(item)?;
                        draft.link(&port).master = Some(name.to_owned());
                    }
                    return Some(());
                }
                ("veth", "peer") => {
                    draft.link(name).peer = Some(name_of(value)?);
                    return Some(());
                }
                _ => return None,
            };
            draft.option(name, word, &value);
            Some(())
        },
    );
    Some(())
}

fn is_absent(map: &MarkedMappingNode) -> Result<(), String> {
    match map.get_scalar("state").map(|state| state.as_str()) {
        None => Ok(()),
        Some(state) => Err(format!("what is {state} is not declared")),
    }
}

fn route(draft: &mut Draft, path: &Path, map: &MarkedMappingNode) -> Result<(), String> {
    is_absent(map)?;
    let (mut made, mut is_v6) = (Row::new(), false);
    each(draft, path, map, &mut |_, key, value| {
        let (name, value) = match key {
            "destination" => {
                let to = network(text(value)?)?;
                is_v6 |= to.addr().is_ipv6();
                let to = if to.prefix_len() == 0 {
                    "default".to_owned()
                } else {
                    to.to_string()
                };
                ("dst", to.into())
            }
            // Neither says anything.
            "next-hop-address"
                if text(value).is_none_or(|text| text == "0.0.0.0" || text == "::") =>
            {
                return Some(());
            }
            "next-hop-address" => {
                let via: IpAddr = text(value)?.parse().ok()?;
                is_v6 |= via.is_ipv6();
                ("gateway", via.to_string().into())
            }
            "next-hop-interface" => ("dev", name_of(value)?.into()),
            "metric" if matches!(text(value), Some("-1")) => return Some(()),
            "metric" => ("metric", number(value)?.into()),
            "table-id" if number(value)? == 0 => return Some(()),
            "table-id" => ("table", number(value)?.into()),
            "route-type" if matches!(text(value)?, "blackhole" | "unreachable" | "prohibit") => {
                ("type", text(value)?.into())
            }
            "source" => {
                let source: IpAddr = text(value)?.parse().ok()?;
                ("prefsrc", source.to_string().into())
            }
            _ => return None,
        };
        made.insert(name.to_owned(), value);
        Some(())
    });
    if !made.contains_key("dst") {
        return Err("it has no destination".to_owned());
    }
    draft.row(Table::Route, with_family(made, is_v6));
    Ok(())
}

fn rule(draft: &mut Draft, path: &Path, map: &MarkedMappingNode) -> Result<(), String> {
    is_absent(map)?;
    let (mut made, mut is_v6) = (Row::new(), false);
    each(draft, path, map, &mut |_, key, value| {
        let (name, value) = match key {
            "ip-from" | "ip-to" => {
                let prefix = network(text(value)?)?;
                is_v6 |= prefix.addr().is_ipv6();
                let name = if key == "ip-from" { "src" } else { "dst" };
                (name, prefix.to_string().into())
            }
            "family" => {
                is_v6 |= text(value)? == "ipv6";
                return matches!(text(value)?, "ipv4" | "ipv6").then_some(());
            }
            "priority" => ("priority", number(value)?.into()),
            "route-table" => ("table", number(value)?.into()),
            "iif" => ("iif", name_of(value)?.into()),
            "fwmark" | "fwmask" => {
                let text = text(value)?;
                let hex = text.strip_prefix("0x");
                let found = hex
                    .map_or(text.parse(), |hex| u32::from_str_radix(hex, 16))
                    .ok()?;
                let name = if key == "fwmark" { "fwmark" } else { "fwmask" };
                (name, found.to_string().into())
            }
            _ => return None,
        };
        made.insert(name.to_owned(), value);
        Some(())
    });
    if !made.contains_key("priority") {
        return Err("a rule is declared with its priority".to_owned());
    }
    draft.row(Table::Rule, with_family(made, is_v6));
    Ok(())
}

fn with_family(row_of: Row, is_v6: bool) -> Row {
    let more = is_v6.then(|| row([("family", "inet6".into())]));
    row_of
        .into_iter()
        .chain(more.into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests;
