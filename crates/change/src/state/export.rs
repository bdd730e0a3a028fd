//! The current state as a file: what somebody made, without what the kernel
//! makes by itself. Applied where it was written it changes nothing. Called
//! by [`mod@super`].

use std::collections::HashSet;
use std::io::{self, Write};
use std::net::IpAddr;

use anyhow::Result;
use linux::links::kind_again;
use linux::mirror::now_millis;
use netlink::decode::Item;
use netlink::encode::{LINK_KINDS, LinkKind, words_of_kind};
use serde_json::{Map, Value};
use table::row::address;
use table::row::neighbour::state;
use table::row::route::{protocol, table_id};
use table::row::rule::{action, flag};
use table::{AF_INET, AF_INET6, Rule};
use words::{ONLY_SHOWN, Object};

use super::difference::ALT_MARK;
use super::file::{File, Link, Row};
use super::key::{MARK, key, object};
use super::resolved::Links;
use super::shown::Shower;
use super::wanted::Wanted;
use super::{Job, look::setting};
use crate::rows::undo::{ROWS, listed};

/// `IFAPROT_KERNEL_LO`, `_RA`, `_LL`: the kernel gave it by itself.
const KERNEL_S_OWN: std::ops::RangeInclusive<u8> = 1..=3;

/// What a new bridge is like, in the words of its options.
const USUAL_BRIDGE: [(&str, &str); 24] = [
    ("forward_delay", "1500"),
    ("hello_time", "200"),
    ("max_age", "2000"),
    ("ageing_time", "30000"),
    ("stp_state", "0"),
    ("priority", "32768"),
    ("vlan_filtering", "0"),
    ("vlan_protocol", "802.1Q"),
    ("group_fwd_mask", "0"),
    ("mcast_router", "1"),
    ("mcast_snooping", "1"),
    ("mcast_query_use_ifaddr", "0"),
    ("mcast_querier", "0"),
    ("mcast_hash_max", "4096"),
    ("mcast_igmp_version", "2"),
    ("mcast_mld_version", "1"),
    ("mcast_stats_enabled", "0"),
    ("nf_call_iptables", "0"),
    ("nf_call_ip6tables", "0"),
    ("nf_call_arptables", "0"),
    ("vlan_default_pvid", "1"),
    ("vlan_stats_enabled", "0"),
    ("vlan_stats_per_port", "0"),
    ("no_linklocal_learn", "off"),
];

/// Settings that are written where they are not as those of new links.
const SETTINGS: [(&str, &str); 8] = [
    ("ipv4", "rp_filter"),
    ("ipv4", "proxy_arp"),
    ("ipv4", "arp_ignore"),
    ("ipv4", "arp_announce"),
    ("ipv4", "forwarding"),
    ("ipv6", "disable_ipv6"),
    ("ipv6", "accept_ra"),
    ("ipv6", "forwarding"),
];

/// Writes the file.
pub fn run(job: &Job<'_>) -> Result<()> {
    let links = super::look::links(&job.namespace)?;
    let mut lost = Vec::new();
    let mut file = File::default();
    let mut sorted: Vec<&table::Link> = links.iter().collect();
    sorted.sort_by_cached_key(|link| natural(&link.name));
    for link in sorted {
        file.link.push(self::link(link, &links, &mut lost));
    }
    job.namespace.run(|| {
        for link in &mut file.link {
            settings(link);
        }
    })?;
    let nothing = Wanted::default();
    let shower = Shower::new(&nothing, &links, &job.names);
    let mut keys = HashSet::new();
    for of in ROWS {
        let mut items = listed(&job.namespace, of, now_millis(), &is_made)?;
        // The kernel lists these by indexes and in an order of its own.
        if matches!(of, Object::Addr | Object::Neigh | Object::Fdb) {
            items.sort_by_cached_key(|item| place(item, &links));
        }
        for item in items {
            if matches!(&item, Item::Fdb(row) if is_of_itself(row, &links)) {
                continue;
            }
            let is_alone = matches!(item, Item::Rule(_)) || keys.insert(key(&item));
            match row(&shower, &item) {
                Some(row) if is_alone => into(&mut file, &item).push(row),
                _ => lost.push(format!("{item:?}")),
            }
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "# fingerpost apply FILE makes it so again.")?;
    for what in &lost {
        writeln!(out, "# not carried over: {}", what.replace('\n', " "))?;
    }
    let text = match job.wanted.json {
        true => serde_json::to_string(&file)?,
        false => file.to_toml()?,
    };
    write!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// The link of a row by name, and of what is no address the row: the order
/// of addresses says which is the first.
fn place(item: &Item, links: &Links) -> (Vec<(String, u64)>, String) {
    let (link, row) = match item {
        Item::Address(row) => (row.link, String::new()),
        Item::Neighbour(row) => (row.link, format!("{:?} {}", row.address, row.proxy)),
        Item::Fdb(row) => (
            row.link,
            format!("{} {:?} {:?}", row.lladdr, row.vlan, row.destination),
        ),
        _ => (0, String::new()),
    };
    let name = links.get(link).map_or("", |link| &*link.name);
    (natural(name).0, row)
}

fn into<'a>(file: &'a mut File, item: &Item) -> &'a mut Vec<Row> {
    match object(item) {
        Object::Addr => &mut file.address,
        Object::Neigh => &mut file.neighbour,
        Object::Nexthop => &mut file.nexthop,
        Object::Rule => &mut file.rule,
        Object::Fdb => &mut file.fdb,
        Object::Route | Object::Link => &mut file.route,
    }
}

/// Whether somebody made a row, for as long as it is not taken away.
fn is_made(item: &Item) -> bool {
    match item {
        Item::Address(row) => {
            let is_loopback = match row.local {
                IpAddr::V4(local) => local.octets() == [127, 0, 0, 1],
                IpAddr::V6(local) => local.is_loopback(),
            };
            let is_link_local =
                matches!(row.local, IpAddr::V6(local) if local.is_unicast_link_local());
            let generated =
                is_link_local && row.protocol == 0 && row.flags & address::flag::NODAD == 0;
            row.valid_until_millis.is_none()
                && !KERNEL_S_OWN.contains(&row.protocol)
                && !is_loopback
                && !generated
        }
        Item::Neighbour(row) => {
            let is_lasting = row.proxy || row.state & (state::PERMANENT | state::NOARP) != 0;
            is_lasting && !row.address.is_multicast()
        }
        Item::Nexthop(row) => row.protocol != protocol::KERNEL,
        Item::Route(row) => {
            let body = &row.body;
            let is_made = !matches!(
                body.protocol,
                protocol::KERNEL | protocol::REDIRECT | protocol::RA
            );
            is_made && body.expires_at_millis.is_none()
        }
        Item::Rule(row) => !is_usual(row),
        Item::Fdb(row) => row.state & (state::PERMANENT | state::NOARP) != 0,
        Item::Link(_) | Item::OtherRoute(_) => false,
    }
}

/// One of the rules that each namespace begins with.
fn is_usual(rule: &Rule) -> bool {
    let usual = match rule.family {
        AF_INET => &[
            (0, table_id::LOCAL),
            (32_766, table_id::MAIN),
            (32_767, table_id::DEFAULT),
        ][..],
        AF_INET6 => &[(0, table_id::LOCAL), (32_766, table_id::MAIN)][..],
        _ => &[],
    };
    let plain = Rule {
        family: rule.family,
        priority: rule.priority,
        table: rule.table,
        action: action::TO_TABLE,
        protocol: rule.protocol,
        suppress_prefix_len: rule.suppress_prefix_len,
        suppress_group: rule.suppress_group,
        flags: rule.flags & flag::PERMANENT,
        ..Rule::default()
    };
    *rule == plain && usual.contains(&(rule.priority, rule.table))
}

/// The entry of a port's own address, and of groups, which the kernel makes.
fn is_of_itself(row: &table::FdbEntry, links: &Links) -> bool {
    let is_group = row
        .lladdr
        .octets()
        .first()
        .is_some_and(|first| first & 1 != 0);
    let is_address = |index| {
        links
            .get(index)
            .is_some_and(|link| link.address == row.lladdr)
    };
    is_group && row.destination.is_none()
        || is_address(row.link)
        || row.master.is_some_and(is_address)
}

/// Texts and numbers of a name, so that `e10` comes behind `e9`: the same
/// state gives the same file, whatever the order in which it was made.
fn natural(name: &str) -> (Vec<(String, u64)>, String) {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut was_digit = false;
    for c in name.chars() {
        let digit = c.to_digit(10);
        if digit.is_none() && was_digit {
            parts.push((String::new(), 0));
        }
        was_digit = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                None => text.push(c),
            }
        }
    }
    (parts, name.to_owned())
}

/// A link's table.
fn link(link: &table::Link, links: &Links, lost: &mut Vec<String>) -> Link {
    let name_of = |index: u32| links.get(index).map(|link| link.name.to_string());
    let mark = format!("{ALT_MARK}{}", link.index);
    let alt_names = link.alt_names.iter().filter(|name| ***name != *mark);
    let mut file = Link {
        name: link.name.to_string(),
        up: Some(link.is_up()),
        mtu: (link.mtu > 0).then_some(link.mtu),
        txqueuelen: Some(link.tx_queue_len),
        group: Some(link.group).filter(|group| *group != 0),
        alias: link.alias.as_deref().map(str::to_owned),
        altnames: alt_names.map(ToString::to_string).collect(),
        master: link.master.and_then(name_of),
        ..Link::default()
    };
    let names = link.alt_names.iter().chain(&link.alias);
    if names.chain([&link.name]).any(|text| text.contains('{')) {
        lost.push(format!("link {}: a text of it has a brace", link.name));
        file.alias = None;
        file.altnames.clear();
    }
    let kind = link.kind.as_deref().unwrap_or_default();
    let is_made = LINK_KINDS.iter().any(|known| known.name == kind);
    if is_made {
        let is_ether = link.hardware == table::row::link::hardware::ETHER;
        file.address = Some(link.address.to_string()).filter(|_| is_ether);
        of_kind(link, links, &mut file, lost);
    } else if !kind.is_empty() {
        lost.push(format!(
            "link {} of kind {kind} is not made by a file",
            link.name
        ));
    }
    file
}

fn of_kind(link: &table::Link, links: &Links, file: &mut Link, lost: &mut Vec<String>) {
    let kind = link.kind.as_deref().unwrap_or_default();
    let name_of = |index: u32| links.get(index).map(|link| link.name.to_string());
    let lower = link.lower.filter(|_| link.lower_netns_id.is_none());
    if kind == "veth" {
        let peer = lower.and_then(|lower| links.get(lower));
        match peer {
            Some(peer) if natural(&link.name) < natural(&peer.name) => {
                file.kind = Some(kind.to_owned());
                file.peer = Some(peer.name.to_string());
            }
            Some(_) => {}
            None => lost.push(format!("link {}: its other end is elsewhere", link.name)),
        }
        return;
    }
    file.kind = Some(kind.to_owned());
    file.link = lower
        .filter(|lower| *lower != 0 && *lower != link.index)
        .and_then(name_of);
    let Some(LinkKind::Other { name, data }) = kind_again(link) else {
        return;
    };
    let mut index = |index| name_of(index);
    let words = words_of_kind(name, &data, &mut index);
    let is_usual =
        |word: &str, value: &str| kind == "bridge" && USUAL_BRIDGE.contains(&(word, value));
    let words = words
        .into_iter()
        .filter(|(word, value)| !is_usual(word, value));
    let words: Vec<String> = words
        .flat_map(|(word, value)| [word.to_owned(), value])
        .filter(|word| !word.is_empty())
        .collect();
    file.options = (!words.is_empty()).then(|| words.join(" "));
}

/// Settings that are not as those of new links, in the namespace of the
/// calling thread.
fn settings(link: &mut Link) {
    for (family, name) in SETTINGS {
        let of = |conf: &str| setting(&format!("{family}/conf/{conf}/{name}"));
        let (Some(is), Some(usual)) = (of(&link.name), of("default")) else {
            continue;
        };
        if is != usual && link.name != "lo" {
            let names = link.sysctl.entry(family.to_owned()).or_default();
            names.insert(name.to_owned(), Value::from(is.parse::<i64>().unwrap_or(0)));
        }
    }
}

/// Words that follow from others, or are told and not asked for.
const TOLD: [&str; 9] = [
    "family",
    "valid_life_time",
    "preferred_life_time",
    "permanent",
    "secondary",
    "tentative",
    "dadfailed",
    "deprecated",
    "offload",
];

/// A row's table; `None`: keys cannot say it.
fn row(shower: &Shower<'_>, item: &Item) -> Option<Row> {
    let mut keys = shower.keys(item);
    without_states(&mut keys);
    let mut row = Row::new();
    if keys.contains_key("encap") || keys.values().any(has_encap) {
        // The order of keys tells what is the tunnel's: only words have it.
        let mut lines = Vec::new();
        let json = shower.json(item);
        words::json::lines(object(item), &json, &mut lines).ok()?;
        row.insert("words".to_owned(), lines.pop()?.trim().into());
        return Some(row);
    }
    match item {
        Item::Rule(rule) => {
            if rule.family == AF_INET6 {
                row.insert("family".to_owned(), "inet6".into());
            }
            for (key, prefix) in [("src", rule.source), ("dst", rule.destination)] {
                if let Some(prefix) = prefix {
                    keys.remove(&format!("{key}len"));
                    keys.insert(key.to_owned(), prefix.to_string().into());
                }
            }
        }
        Item::Nexthop(_) => drop(keys.remove("scope")),
        Item::Route(route) if route.body.nexthop_id.is_some() => {
            // The object's, repeated.
            keys.retain(|key, _| !matches!(key.as_str(), "gateway" | "via" | "dev" | "nexthops"));
        }
        // The kernel's label is the link's name.
        Item::Address(_) if keys.get("label") == keys.get("dev") => drop(keys.remove("label")),
        _ => {}
    }
    if let (Item::Route(route), Some(dst)) = (item, keys.get("dst")) {
        // `default` is of both families.
        if dst == "default" && route.prefix.addr().is_ipv6() {
            keys.insert("dst".to_owned(), route.prefix.to_string().into());
        }
        if route.table != table_id::MAIN && !keys.contains_key("table") {
            keys.insert("table".to_owned(), route.table.to_string().into());
        }
    }
    if let Item::Address(address) = item {
        let local = format!("{}/{}", address.local, address.prefix_len);
        keys.insert("local".to_owned(), local.into());
        keys.remove("prefixlen");
    }
    let mark = Value::from(MARK.to_string());
    keys.retain(|key, value| key != "protocol" || *value != mark);
    row.extend(keys.into_iter().map(|(key, value)| (key, plain(value))));
    Some(row)
}

/// Leaves out what a row is like at the moment and nobody sets: a carrier
/// comes and goes, the file is the same. Flags of which there are none too.
fn without_states(keys: &mut Map<String, Value>) {
    keys.retain(|key, value| {
        match (key.as_str(), value) {
            (told, _) if TOLD.contains(&told) => return false,
            ("flags", Value::Array(flags)) => {
                flags.retain(|flag| !flag.as_str().is_some_and(|flag| ONLY_SHOWN.contains(&flag)));
                return !flags.is_empty();
            }
            ("nexthops", Value::Array(hops)) => {
                let hops = hops.iter_mut().filter_map(Value::as_object_mut);
                hops.for_each(without_states);
            }
            _ => {}
        }
        true
    });
}

fn has_encap(value: &Value) -> bool {
    let list = value.as_array().into_iter().flatten();
    let mut objects = list.filter_map(Value::as_object);
    objects.any(|keys| keys.contains_key("encap"))
}

/// TOML has no null: a mark is true.
fn plain(value: Value) -> Value {
    match value {
        Value::Null => Value::Bool(true),
        Value::Array(list) => Value::Array(list.into_iter().map(plain).collect()),
        Value::Object(keys) => Value::Object(
            keys.into_iter()
                .map(|(key, value)| (key, plain(value)))
                .collect(),
        ),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["e10", "e9", "lo", "e9b2", "e", "e9b10", "10", "e010"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(
            names,
            ["10", "e", "e9", "e9b2", "e9b10", "e010", "e10", "lo"]
        );
    }
}
