//! `info_data` and `info_slave_data` of a listing as the words that make them
//! again. Most keys are words; here stand those that are not. Pure; called by
//! [`super::info`].

use serde_json::{Map, Value};

use Told::{As, Not, OnlyIf, Switch, UnlessOff};

/// What a key of a listing is to who makes the link again.
#[derive(Debug, Clone, Copy)]
enum Told {
    /// This word, with the value behind it.
    As(&'static str),
    /// The first word where it is true or 1, else the second.
    Switch(&'static str, &'static str),
    /// Its own word, unless it is 0: a kernel that lacks it refuses that too.
    UnlessOff,
    /// Nothing: the kernel's business, or counted.
    Not,
    /// Nothing, where it is as in a new link; something else cannot be said.
    OnlyIf(&'static str),
}

const BRIDGE: &[(&str, Told)] = &[
    ("bridge_id", Not),
    ("root_id", Not),
    ("root_port", Not),
    ("root_path_cost", Not),
    ("topology_change", Not),
    ("topology_change_detected", Not),
    ("hello_timer", Not),
    ("tcn_timer", Not),
    ("topology_change_timer", Not),
    ("gc_timer", Not),
    ("fdb_n_learned", Not),
    // Fixed since Linux 5.10.
    ("mcast_hash_elasticity", Not),
    ("fdb_max_learned", OnlyIf("0")),
    ("group_addr", OnlyIf("01:80:c2:00:00:00")),
    ("mcast_last_member_cnt", OnlyIf("2")),
    ("mcast_startup_query_cnt", OnlyIf("2")),
    ("mcast_last_member_intvl", OnlyIf("100")),
    ("mcast_membership_intvl", OnlyIf("26000")),
    ("mcast_querier_intvl", OnlyIf("25500")),
    ("mcast_query_intvl", OnlyIf("12500")),
    ("mcast_query_response_intvl", OnlyIf("1000")),
    // The kernel rounds by its clock's ticks.
    ("mcast_startup_query_intvl", OnlyIf("3124 3125")),
    (
        "no_linklocal_learn",
        Switch("no_linklocal_learn on", "no_linklocal_learn off"),
    ),
    ("vlan_filtering", UnlessOff),
    ("mcast_vlan_snooping", Switch("mcast_vlan_snooping on", "")),
];

const VXLAN: &[(&str, Told)] = &[
    ("group6", As("group")),
    ("remote6", As("remote")),
    ("local6", As("local")),
    ("link", As("dev")),
    ("port", As("dstport")),
    ("label", As("flowlabel")),
    ("limit", As("maxaddress")),
    ("learning", Switch("learning", "nolearning")),
    ("proxy", Switch("proxy", "noproxy")),
    ("rsc", Switch("rsc", "norsc")),
    ("l2miss", Switch("l2miss", "nol2miss")),
    ("l3miss", Switch("l3miss", "nol3miss")),
    ("udp_csum", Switch("udpcsum", "noudpcsum")),
    (
        "udp_zero_csum6_tx",
        Switch("udp6zerocsumtx", "noudp6zerocsumtx"),
    ),
    (
        "udp_zero_csum6_rx",
        Switch("udp6zerocsumrx", "noudp6zerocsumrx"),
    ),
];

const MACVLAN: &[(&str, Told)] = &[("usedbcqueuelen", Not)];

/// Of a port of a bridge; `[[link]]` says none of it.
const PORT: &[(&str, Told)] = &[
    ("state", Not),
    ("cost", Not),
    ("id", Not),
    ("no", Not),
    ("designated_port", Not),
    ("designated_cost", Not),
    ("bridge_id", Not),
    ("root_id", Not),
    ("hold_timer", Not),
    ("message_age_timer", Not),
    ("forward_delay_timer", Not),
    ("topology_change_ack", Not),
    ("config_pending", Not),
    ("group_fwd_mask_str", Not),
    ("priority", OnlyIf("32")),
    ("hairpin", OnlyIf("false")),
    ("guard", OnlyIf("false")),
    ("root_block", OnlyIf("false")),
    ("fastleave", OnlyIf("false")),
    ("learning", OnlyIf("true")),
    ("flood", OnlyIf("true")),
    ("proxy_arp", OnlyIf("false")),
    ("proxy_arp_wifi", OnlyIf("false")),
    ("multicast_router", OnlyIf("1")),
    ("mcast_flood", OnlyIf("true")),
    ("bcast_flood", OnlyIf("true")),
    ("mcast_to_unicast", OnlyIf("false")),
    ("neigh_suppress", OnlyIf("false")),
    ("neigh_vlan_suppress", OnlyIf("false")),
    ("group_fwd_mask", OnlyIf("0")),
    ("vlan_tunnel", OnlyIf("false")),
    ("isolated", OnlyIf("false")),
    ("locked", OnlyIf("false")),
    ("mab", OnlyIf("false")),
    ("mcast_n_groups", Not),
    ("mcast_max_groups", OnlyIf("0")),
];

/// The words for a key of a kind's `info_data`; none for what is not made.
/// `None`: it cannot be said.
pub fn words(kind: &str, key: &str, value: &Value) -> Option<Vec<String>> {
    let table = match kind {
        "bridge" => BRIDGE,
        "vxlan" => VXLAN,
        "macvlan" | "macvtap" => MACVLAN,
        _ => &[],
    };
    let said = plain(value);
    match (kind, key, value) {
        // 0 is the host's own range, or its own choice of a lifetime.
        ("vxlan", "port_range", Value::Object(range)) => return Some(range_of(range)),
        ("vxlan", "ttl", _) if said == "0" => return Some(Vec::new()),
        ("vlan", "flags", Value::Array(flags)) => return Some(vlan_flags(flags)),
        // Its flags are words.
        ("macvlan" | "macvtap", "flags", _) => return Some(vec![said]),
        _ => {}
    }
    let known = table.iter().find(|(known, _)| *known == key);
    Some(match known.map(|(_, told)| *told) {
        Some(Not) => Vec::new(),
        Some(UnlessOff) if said == "0" => Vec::new(),
        Some(UnlessOff) => vec![key.to_owned(), said],
        Some(OnlyIf(usual)) => return usual.split(' ').any(|one| one == said).then(Vec::new),
        Some(Switch(on, off)) => {
            let is_on = matches!(value, Value::Bool(true)) || said == "1";
            let words = if is_on { on } else { off };
            words.split_whitespace().map(str::to_owned).collect()
        }
        Some(As(word)) => vec![word.to_owned(), said],
        // That it is so is the word alone.
        None => match value {
            Value::Bool(true) => vec![key.to_owned()],
            Value::Bool(false) => Vec::new(),
            _ => vec![key.to_owned(), said],
        },
    })
}

/// The key of a port's `info_slave_data` that differs from a new port's.
pub fn unusual(kind: Option<&str>, data: &Map<String, Value>) -> Option<String> {
    if kind != Some("bridge") {
        return None;
    }
    let differs = |(key, value): &(&String, &Value)| {
        let known = PORT.iter().find(|(known, _)| known == key);
        match known.map(|(_, told)| *told) {
            Some(OnlyIf(usual)) => plain(value) != usual,
            Some(_) => false,
            None => true,
        }
    };
    data.iter().find(differs).map(|(key, _)| key.clone())
}

/// `["REORDER_HDR"]`: each that can be, on or off.
fn vlan_flags(flags: &[Value]) -> Vec<String> {
    const ALL: [(&str, &str); 5] = [
        ("REORDER_HDR", "reorder_hdr"),
        ("GVRP", "gvrp"),
        ("MVRP", "mvrp"),
        ("LOOSE_BINDING", "loose_binding"),
        ("BRIDGE_BINDING", "bridge_binding"),
    ];
    let each = ALL.iter().flat_map(|(name, word)| {
        let is_on = flags.iter().any(|flag| flag == name);
        [*word, if is_on { "on" } else { "off" }]
    });
    each.map(str::to_owned).collect()
}

fn range_of(range: &Map<String, Value>) -> Vec<String> {
    let part = |key: &str| range.get(key).map(plain).unwrap_or_default();
    match (part("low"), part("high")) {
        (low, high) if low == "0" && high == "0" => Vec::new(),
        (low, high) => vec!["srcport".to_owned(), low, high],
    }
}

/// A value as `ip` takes it; that a word is there is nothing behind it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(is) => is.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use netlink::encode::kind_of_words;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_word_is_one_of_its_kind() {
        for (kind, table) in [("bridge", BRIDGE), ("vxlan", VXLAN), ("macvlan", MACVLAN)] {
            for (key, told) in table {
                let value = match told {
                    As("group" | "remote" | "local") => json!("192.0.2.1"),
                    OnlyIf(usual) => json!(usual.split(' ').next().unwrap()),
                    _ => json!(1),
                };
                let words = words(kind, key, &value).unwrap();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let read = kind_of_words(kind, &words, &mut |_| Some(1));
                assert!(read.is_ok(), "{kind} {words:?}: {read:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_told() {
        assert_eq!(words("bridge", "mcast_querier_intvl", &json!(99)), None);
        assert_eq!(
            words("vxlan", "learning", &json!(false)).unwrap(),
            ["nolearning"]
        );
        assert_eq!(
            words("vxlan", "external", &json!(true)).unwrap(),
            ["external"]
        );
        let range = json!({"low": 5, "high": 6});
        assert_eq!(
            words("vxlan", "port_range", &range).unwrap(),
            ["srcport", "5", "6"]
        );
        let port = json!({"hairpin": true, "state": "forwarding"});
        let port = port.as_object().unwrap();
        let flags = words("vlan", "flags", &json!(["GVRP"])).unwrap().join(" ");
        assert!(
            flags.starts_with("reorder_hdr off gvrp on mvrp off"),
            "{flags}"
        );
        assert_eq!(unusual(Some("bridge"), port).as_deref(), Some("hairpin"));
        assert_eq!(unusual(Some("bond"), port), None);
    }
}
