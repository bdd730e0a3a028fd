//! The sections of a `.network`, for one link.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{NOT_KNOWN, Said, Section, are_plain, by_key, bytes};
use crate::state::file::Row;
use crate::state::import::draft::{Draft, Place, Table, hardware, is_name, network, row, yes};

/// Carries a section over.
pub(super) fn of(draft: &mut Draft, link: &str, section: &Section) {
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    if !are_plain(section) {
        return draft.leave(
            at,
            &section.name,
            "it has braces, which are numbers in our file",
        );
    }
    match section.name.as_str() {
        "Match" => {}
        "Link" => each(draft, link, section, of_link),
        "Network" => each(draft, link, section, of_network),
        "Address" => address(draft, link, section),
        "Route" => by_words(draft, section, ROUTE, Table::Route, link_row(link)),
        "RoutingPolicyRule" => rule(draft, section),
        "NextHop" => nexthop(draft, link, section),
        "Neighbor" => by_words(draft, section, NEIGHBOUR, Table::Neighbour, link_row(link)),
        "BridgeFDB" => fdb(draft, link, section),
        name => {
            let name = format!("[{name}]");
            draft.leave(at, &name, "there is nothing like it in declared state");
        }
    }
}

fn link_row(link: &str) -> Row {
    row([("dev", link.into())])
}

type OfKey = fn(&mut Draft, &str, &Said) -> Option<()>;

fn each(draft: &mut Draft, link: &str, section: &Section, of: OfKey) {
    for said in section.said.iter().filter(|said| !said.value.is_empty()) {
        if of(draft, link, said).is_none() {
            draft.leave(said.place(), &said.key, NOT_KNOWN);
        }
    }
}

fn of_link(draft: &mut Draft, name: &str, said: &Said) -> Option<()> {
    let value = said.value.as_str();
    let link = draft.link(name);
    match said.key.as_str() {
        "MTUBytes" => link.mtu = Some(bytes(value)?),
        "MACAddress" => link.address = Some(hardware(value)?),
        "Group" => link.group = Some(value.parse().ok()?),
        "ActivationPolicy" => match value {
            "up" | "always-up" => link.up = Some(true),
            "down" | "always-down" => link.up = Some(false),
            "manual" => link.up = None,
            _ => return None,
        },
        // Of networkd and its friends, not of the link.
        "RequiredForOnline" | "RequiredFamilyForOnline" => {}
        _ => return None,
    }
    Some(())
}

fn of_network(draft: &mut Draft, name: &str, said: &Said) -> Option<()> {
    let value = said.value.as_str();
    let both = |draft: &mut Draft, setting: &str, value: u32| {
        draft.sysctl(name, "ipv4", setting, value);
        draft.sysctl(name, "ipv6", setting, value);
    };
    match said.key.as_str() {
        "Description"
        | "ConfigureWithoutCarrier"
        | "IgnoreCarrierLoss"
        | "KeepConfiguration"
        | "BindCarrier" => {}
        "Address" => draft.address(name, network(value)?),
        "Gateway" => {
            let gateway: IpAddr = value.parse().ok()?;
            let route = row([
                ("dst", "default".into()),
                ("gateway", gateway.to_string().into()),
                ("dev", name.into()),
            ]);
            draft.row(Table::Route, with_family(route, gateway.is_ipv6()));
        }
        "Bridge" | "Bond" | "VRF" if is_name(value) => {
            draft.link(name).master = Some(value.to_owned());
        }
        "VLAN" | "VXLAN" | "MACVLAN" | "IPVLAN" if is_name(value) => {
            draft.link(value).link = Some(name.to_owned());
        }
        "DHCP" if yes(value) == Some(false) => {}
        "IPv6AcceptRA" => draft.sysctl(name, "ipv6", "accept_ra", yes(value)?.into()),
        // `none` of the kernel's modes.
        "LinkLocalAddressing" if matches!(value, "no" | "ipv4") => {
            draft.sysctl(name, "ipv6", "addr_gen_mode", 1);
        }
        "LinkLocalAddressing" if value == "ipv6" => {}
        "IPForward" => match value {
            "ipv4" => draft.sysctl(name, "ipv4", "forwarding", 1),
            "ipv6" => draft.sysctl(name, "ipv6", "forwarding", 1),
            value => both(draft, "forwarding", yes(value)?.into()),
        },
        "IPv4Forwarding" => draft.sysctl(name, "ipv4", "forwarding", yes(value)?.into()),
        "IPv6Forwarding" => draft.sysctl(name, "ipv6", "forwarding", yes(value)?.into()),
        "IPv4ProxyARP" => draft.sysctl(name, "ipv4", "proxy_arp", yes(value)?.into()),
        "IPv4AcceptLocal" => draft.sysctl(name, "ipv4", "accept_local", yes(value)?.into()),
        "IPv4RouteLocalnet" => draft.sysctl(name, "ipv4", "route_localnet", yes(value)?.into()),
        "IPv4ReversePathFilter" => {
            let value = ["no", "strict", "loose"]
                .iter()
                .position(|one| *one == value)?;
            draft.sysctl(name, "ipv4", "rp_filter", value as u32);
        }
        "IPv6DuplicateAddressDetection" => {
            draft.sysctl(name, "ipv6", "dad_transmits", value.parse().ok()?);
        }
        "IPv6HopLimit" => draft.sysctl(name, "ipv6", "hop_limit", value.parse().ok()?),
        "IPv6ProxyNDP" => draft.sysctl(name, "ipv6", "proxy_ndp", yes(value)?.into()),
        "IPv6PrivacyExtensions" => {
            let value = match value {
                "prefer-public" => 1,
                "kernel" => return Some(()),
                value if yes(value)? => 2,
                _ => 0,
            };
            draft.sysctl(name, "ipv6", "use_tempaddr", value);
        }
        _ => return None,
    }
    Some(())
}

fn with_family(mut row: Row, is_v6: bool) -> Row {
    if is_v6 {
        row.insert("family".to_owned(), "inet6".into());
    }
    row
}

/// `[Address]`: with the link where nothing more is said of it.
fn address(draft: &mut Draft, link: &str, section: &Section) {
    let keys = by_key(section);
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    let Some(local) = keys.get("Address").and_then(|said| network(&said.value)) else {
        return draft.leave(at, "Address", "no address with its length");
    };
    let mut made = Row::new();
    for (key, said) in &keys {
        let value = said.value.as_str();
        let plain = |word: &str| Some((word.to_owned(), value.into()));
        let pair = match *key {
            "Address" => continue,
            "Peer" => network(value).and_then(|_| plain("address")),
            "Broadcast" if value.parse::<IpAddr>().is_ok() => plain("broadcast"),
            "Broadcast" if yes(value) == Some(true) => continue,
            "Label" => plain("label"),
            "Scope" => plain("scope"),
            "RouteMetric" => number(value).map(|value| ("metric".to_owned(), value)),
            "AddPrefixRoute" => match yes(value) {
                Some(true) => continue,
                Some(false) => Some(("noprefixroute".to_owned(), true.into())),
                None => None,
            },
            "DuplicateAddressDetection" if value == "none" => {
                Some(("nodad".to_owned(), true.into()))
            }
            _ => None,
        };
        match pair {
            Some((key, value)) => drop(made.insert(key, value)),
            None => draft.leave(said.place(), key, NOT_KNOWN),
        }
    }
    if made.is_empty() {
        return draft.address(link, local);
    }
    let usual = match local {
        IpNet::V4(v4) if v4.prefix_len() < 31 && !made.contains_key("address") => {
            Some(v4.broadcast().to_string())
        }
        _ => None,
    };
    if let Some(usual) = usual {
        made.entry("broadcast".to_owned()).or_insert(usual.into());
    }
    made.insert("dev".to_owned(), link.into());
    made.insert("local".to_owned(), local.to_string().into());
    draft.row(Table::Address, made);
}

fn number(text: &str) -> Option<serde_json::Value> {
    text.parse::<u32>().ok().map(Into::into)
}

/// How a key of theirs is a key of ours.
#[derive(Clone, Copy)]
enum As {
    /// The same text: a word or a number of ip's.
    Text(&'static str),
    /// An address.
    Address(&'static str),
    /// An address with its length; alone it is of itself.
    Prefix(&'static str),
    Number(&'static str),
    Hardware(&'static str),
    /// A mark, where it says yes.
    Mark(&'static str),
    /// In a list of flags.
    Flag(&'static str),
}

const ROUTE: &[(&str, As)] = &[
    ("Destination", As::Prefix("dst")),
    ("Gateway", As::Address("gateway")),
    ("Metric", As::Number("metric")),
    ("Table", As::Text("table")),
    ("Protocol", As::Text("protocol")),
    ("Scope", As::Text("scope")),
    ("Type", As::Text("type")),
    ("PreferredSource", As::Address("prefsrc")),
    ("NextHop", As::Number("nhid")),
    ("IPv6Preference", As::Text("pref")),
    ("GatewayOnLink", As::Flag("onlink")),
];

const NEIGHBOUR: &[(&str, As)] = &[
    ("Address", As::Address("dst")),
    ("LinkLayerAddress", As::Hardware("lladdr")),
];

const RULE: &[(&str, As)] = &[
    ("From", As::Prefix("src")),
    ("To", As::Prefix("dst")),
    ("Table", As::Text("table")),
    ("Priority", As::Number("priority")),
    ("IncomingInterface", As::Text("iif")),
    ("OutgoingInterface", As::Text("oif")),
    ("InvertRule", As::Mark("not")),
];

const NEXTHOP: &[(&str, As)] = &[
    ("Id", As::Number("id")),
    ("Gateway", As::Address("gateway")),
    ("Blackhole", As::Mark("blackhole")),
    ("OnLink", As::Flag("onlink")),
];

const FDB: &[(&str, As)] = &[
    ("MACAddress", As::Hardware("mac")),
    ("Destination", As::Address("dst")),
    ("VLANId", As::Number("vlan")),
];

/// A row of the keys that go over, and whether an address of it is of IPv6.
fn taken(draft: &mut Draft, section: &Section, keys: &[(&str, As)]) -> (Row, Option<bool>) {
    let (mut made, mut is_v6) = (Row::new(), None);
    for (key, said) in by_key(section) {
        let known = keys.iter().find(|(name, _)| *name == key);
        let pair = known.and_then(|(_, how)| how.of(&said.value, &mut is_v6));
        match pair {
            Some((_, serde_json::Value::Null)) => {}
            Some((name, value)) => drop(made.insert(name.to_owned(), value)),
            None => draft.leave(said.place(), key, NOT_KNOWN),
        }
    }
    (made, is_v6)
}

impl As {
    fn of(
        self,
        value: &str,
        is_v6: &mut Option<bool>,
    ) -> Option<(&'static str, serde_json::Value)> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        Some(match self {
            Self::Text(name) if !value.is_empty() && value.chars().all(is_word) => {
                (name, value.into())
            }
            Self::Address(name) => {
                let address: IpAddr = value.parse().ok()?;
                *is_v6 = Some(address.is_ipv6());
                (name, address.to_string().into())
            }
            Self::Prefix(name) => {
                let prefix = network(value)?;
                *is_v6 = Some(prefix.addr().is_ipv6());
                let is_all = prefix.prefix_len() == 0 && name == "dst";
                match is_all {
                    true => (name, "default".into()),
                    false => (name, prefix.to_string().into()),
                }
            }
            Self::Number(name) => (name, number(value)?),
            Self::Hardware(name) => (name, hardware(value)?.into()),
            Self::Mark(name) => match yes(value)? {
                true => (name, true.into()),
                false => (name, serde_json::Value::Null),
            },
            Self::Flag(name) => match yes(value)? {
                true => ("flags", vec![name].into()),
                false => ("flags", serde_json::Value::Null),
            },
            Self::Text(_) => return None,
        })
    }
}

/// A row of a link, if what tells it apart is there.
fn by_words(draft: &mut Draft, section: &Section, keys: &[(&str, As)], table: Table, of: Row) {
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    let (mut made, is_v6) = taken(draft, section, keys);
    if made.is_empty() {
        return draft.leave(at, &section.name, "nothing of it is understood");
    }
    if matches!(table, Table::Route) {
        if !made.contains_key("dst") && !made.contains_key("gateway") {
            return draft.leave(at, "Route", "it has no Destination= and no Gateway=");
        }
        made.entry("dst".to_owned()).or_insert("default".into());
        let is_without_link = made.contains_key("nhid")
            || made
                .get("type")
                .is_some_and(|kind| is_of_no_link(kind.as_str().unwrap_or("")));
        if !is_without_link {
            made.extend(of);
        }
        return draft.row(table, with_family(made, is_v6 == Some(true)));
    }
    made.extend(of);
    draft.row(table, made);
}

/// Routes that lead nowhere.
fn is_of_no_link(kind: &str) -> bool {
    matches!(kind, "blackhole" | "unreachable" | "prohibit" | "throw")
}

fn rule(draft: &mut Draft, section: &Section) {
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    let keys = by_key(section);
    let mark = keys.get("FirewallMark").map(|said| said.value.as_str());
    let family = keys.get("Family").map(|said| said.value.as_str());
    let only: Vec<Said> = section
        .said
        .iter()
        .filter(|said| !matches!(said.key.as_str(), "FirewallMark" | "Family"))
        .cloned()
        .collect();
    let rest = Section {
        path: section.path.clone(),
        line: section.line,
        name: section.name.clone(),
        said: only,
    };
    let (mut made, is_v6) = taken(draft, &rest, RULE);
    if !made.contains_key("priority") {
        return draft.leave(
            at,
            "RoutingPolicyRule",
            "a rule is declared with its Priority=",
        );
    }
    if let Some(mark) = mark {
        let (mark, mask) = mark
            .split_once('/')
            .map_or((mark, None), |(mark, mask)| (mark, Some(mask)));
        made.insert("fwmark".to_owned(), mark.into());
        made.extend(mask.map(|mask| ("fwmask".to_owned(), mask.into())));
    }
    match family {
        Some("both") => {
            draft.row(Table::Rule, made.clone());
            draft.row(Table::Rule, with_family(made, true));
        }
        family => draft.row(
            Table::Rule,
            with_family(made, is_v6 == Some(true) || family == Some("ipv6")),
        ),
    }
}

fn nexthop(draft: &mut Draft, link: &str, section: &Section) {
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    let (mut made, _) = taken(draft, section, NEXTHOP);
    if !made.contains_key("id") {
        return draft.leave(at, "NextHop", "a next hop is declared with its Id=");
    }
    if !made.contains_key("blackhole") {
        made.insert("dev".to_owned(), link.into());
    }
    draft.row(Table::Nexthop, made);
}

fn fdb(draft: &mut Draft, link: &str, section: &Section) {
    let at = Place {
        path: &section.path,
        line: section.line,
    };
    let (mut made, _) = taken(draft, section, FDB);
    if !made.contains_key("mac") {
        return draft.leave(at, "BridgeFDB", "it has no MACAddress=");
    }
    made.insert("ifname".to_owned(), link.into());
    made.insert("flags".to_owned(), vec!["self"].into());
    draft.row(Table::Fdb, made);
}
