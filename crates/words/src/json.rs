//! Rows as JSON objects back into words: what `--ndjson` and `ip -j` print
//! can be given back. A key that is not known is an error: what it says
//! must not be lost in silence.

mod value;

use std::borrow::Cow;

use crate::Object;

use crate::line::ParseError;
use value::{Row, Value};

/// How a key becomes words.
#[derive(Clone, Copy)]
enum How {
    /// This word, then the value.
    Word(&'static str),
    /// The value alone.
    Alone,
    /// The key's own word, if the value is null or true.
    Mark(&'static str),
    /// Told to the reader, not to the kernel.
    Ignored,
}

use How::{Alone, Ignored, Mark, Word};

const ROUTE: &[(&str, How)] = &[
    ("type", Alone),
    ("dst", Alone),
    ("from", Word("from")),
    ("tos", Word("tos")),
    ("gateway", Word("via")),
    ("dev", Word("dev")),
    ("table", Word("table")),
    ("protocol", Word("proto")),
    ("scope", Word("scope")),
    ("prefsrc", Word("src")),
    ("metric", Word("metric")),
    ("nhid", Word("nhid")),
    ("pref", Word("pref")),
    ("expires", Word("expires")),
    ("weight", Word("weight")),
    ("error", Ignored),
    ("nh_info", Ignored),
    ("cache", Ignored),
    ("age", Ignored),
    ("used", Ignored),
    ("users", Ignored),
    ("netns", Ignored),
];

/// Beside a next-hop object its contents are repeated.
const OF_NEXTHOP: &[&str] = &["gateway", "via", "dev", "nexthops", "weight", "nh_info"];

const NEIGH: &[(&str, How)] = &[
    ("dst", Alone),
    ("dev", Word("dev")),
    ("lladdr", Word("lladdr")),
    ("protocol", Word("proto")),
    ("proxy", Mark("proxy")),
    ("router", Mark("router")),
    ("managed", Mark("managed")),
    ("extern_learn", Mark("extern_learn")),
    ("used", Ignored),
    ("confirmed", Ignored),
    ("updated", Ignored),
    ("probes", Ignored),
    ("refcnt", Ignored),
    ("offload", Ignored),
    ("netns", Ignored),
];

const ADDR: &[(&str, How)] = &[
    ("address", Word("peer")),
    ("broadcast", Word("brd")),
    ("anycast", Word("anycast")),
    ("scope", Word("scope")),
    ("label", Word("label")),
    ("metric", Word("metric")),
    ("protocol", Word("proto")),
    ("valid_life_time", Word("valid_lft")),
    ("preferred_life_time", Word("preferred_lft")),
    ("nodad", Mark("nodad")),
    ("noprefixroute", Mark("noprefixroute")),
    ("home", Mark("home")),
    ("mngtmpaddr", Mark("mngtmpaddr")),
    ("autojoin", Mark("autojoin")),
    ("optimistic", Mark("optimistic")),
    ("family", Ignored),
    ("local", Ignored),
    ("prefixlen", Ignored),
    ("dynamic", Ignored),
    ("secondary", Ignored),
    ("temporary", Ignored),
    ("tentative", Ignored),
    ("deprecated", Ignored),
    ("dadfailed", Ignored),
    ("permanent", Ignored),
    ("stable-privacy", Ignored),
    ("ifa_flags", Ignored),
    ("netns", Ignored),
];

const RULE: &[(&str, How)] = &[
    ("not", Mark("not")),
    ("priority", Word("priority")),
    ("fwmark", Ignored),
    ("fwmask", Ignored),
    ("tos", Word("tos")),
    ("iif", Word("iif")),
    ("oif", Word("oif")),
    ("ipproto", Word("ipproto")),
    ("sport", Word("sport")),
    ("dport", Word("dport")),
    ("table", Word("lookup")),
    ("goto", Word("goto")),
    ("tun_id", Word("tun_id")),
    ("protocol", Word("protocol")),
    ("suppress_prefixlen", Word("suppress_prefixlength")),
    ("suppress_ifgroup", Word("suppress_ifgroup")),
    ("l3mdev", Mark("l3mdev")),
    ("nop", Mark("nop")),
    ("action", Alone),
    ("iif_detached", Ignored),
    ("oif_detached", Ignored),
    ("unresolved", Ignored),
    ("netns", Ignored),
];

const NEXTHOP: &[(&str, How)] = &[
    ("id", Word("id")),
    ("gateway", Word("via")),
    ("dev", Word("dev")),
    ("protocol", Word("proto")),
    ("type", Word("type")),
    ("blackhole", Mark("blackhole")),
    ("fdb", Mark("fdb")),
    ("scope", Ignored),
    ("netns", Ignored),
];

const FDB: &[(&str, How)] = &[
    ("mac", Alone),
    ("ifname", Word("dev")),
    ("dev", Word("dev")),
    ("dst", Word("dst")),
    ("vlan", Word("vlan")),
    ("port", Word("port")),
    ("vni", Word("vni")),
    ("src_vni", Word("src_vni")),
    ("viaIf", Word("via")),
    ("via", Word("via")),
    ("nhid", Word("nhid")),
    ("master", Word("master")),
    ("linkNetNsId", Ignored),
    ("netns", Ignored),
];

/// The keys that say something of a row that is made, beside those that are
/// read together with others: for manuals.
pub fn keys(object: Object) -> Vec<&'static str> {
    let (table, others): (&[_], &[_]) = match object {
        Object::Route => (
            ROUTE,
            &["via", "flags", "metrics", "flow", "nexthops", "encap"],
        ),
        Object::Neigh => (NEIGH, &["state"]),
        Object::Addr => (ADDR, &["local"]),
        Object::Rule => (
            RULE,
            &["src", "dst", "fwmark", "fwmask", "flow_from", "flow_to"],
        ),
        Object::Nexthop => (
            NEXTHOP,
            &["via", "flags", "group", "resilient_args", "encap"],
        ),
        Object::Fdb => (FDB, &["flags", "state"]),
        Object::Link => (&[], &[]),
    };
    let said = table.iter().filter(|(_, how)| !matches!(how, Ignored));
    said.map(|(key, _)| *key)
        .chain(others.iter().copied())
        .collect()
}

/// The lines that an object stands for: one, but for a link with its
/// addresses.
pub fn lines(object: Object, text: &[u8], out: &mut Vec<String>) -> Result<(), ParseError> {
    let row: Row<'_> =
        serde_json::from_slice(text).map_err(|error| format!("no JSON object: {error}"))?;
    if object == Object::Addr {
        return addresses(&row, out);
    }
    let mut line = String::new();
    match object {
        Object::Route => route(&row, &mut line)?,
        Object::Neigh => neighbour(&row, &mut line)?,
        Object::Rule => rule(&row, &mut line)?,
        Object::Nexthop => nexthop(&row, &mut line)?,
        Object::Fdb => fdb(&row, &mut line)?,
        Object::Addr | Object::Link => {}
    }
    out.push(line);
    Ok(())
}

/// `special` takes the keys that it knows.
fn each(
    row: &Row<'_>,
    table: &[(&str, How)],
    line: &mut String,
    mut special: impl FnMut(&str, &Value<'_>, &mut String) -> Result<bool, ParseError>,
) -> Result<(), ParseError> {
    let mut keys = row.iter().peekable();
    while let Some((key, value)) = keys.next() {
        if key == "encap" {
            encap(&scalar(key, value)?, &mut keys, line)?;
            continue;
        }
        if special(key, value, line)? {
            continue;
        }
        let how = table.iter().find(|(known, _)| *known == key);
        match how.map(|(_, how)| *how) {
            Some(Word(word)) => push(line, word, &scalar(key, value)?),
            Some(Alone) => push(line, "", &scalar(key, value)?),
            Some(Mark(word)) if matches!(value, Value::Null | Value::Bool(true)) => {
                push(line, word, "");
            }
            Some(Mark(_) | Ignored) => {}
            None => return Err(format!("key `{key}` of the JSON object is not understood")),
        }
    }
    Ok(())
}

fn push(line: &mut String, word: &str, value: &str) {
    for part in [word, value] {
        if !part.is_empty() {
            line.push(' ');
            line.push_str(part);
        }
    }
}

fn scalar<'a>(key: &str, value: &'a Value<'_>) -> Result<Cow<'a, str>, ParseError> {
    match value {
        Value::String(text) if !text.contains(char::is_whitespace) => Ok(Cow::Borrowed(text)),
        Value::Number(number) => Ok(number.to_string().into()),
        _ => Err(format!("key `{key}` of the JSON object has no plain value")),
    }
}

fn text<'a>(row: &'a Row<'_>, key: &str) -> Option<&'a str> {
    row.get(key)?.as_str()
}

/// The words among a list of flags that may be told.
fn flags(value: &Value<'_>, told: &[&str], line: &mut String) {
    for flag in value.elements() {
        if let Some(flag) = flag.as_str().filter(|flag| told.contains(flag)) {
            push(line, flag, "");
        }
    }
}

/// `{"family":"inet6","host":"fe80::1"}`
fn via(value: &Value<'_>, line: &mut String) -> Result<(), ParseError> {
    let host = value.get("host").and_then(Value::as_str);
    let host = host.ok_or_else(|| "key `via` of the JSON object has no `host`".to_owned())?;
    push(line, "via", host);
    Ok(())
}

fn route(row: &Row<'_>, line: &mut String) -> Result<(), ParseError> {
    // The type and the prefix come first, wherever the keys stand.
    for key in ["type", "dst"] {
        if let Some(value) = row.get(key) {
            push(line, "", &scalar(key, value)?);
        }
    }
    let has_object = row.get("nhid").is_some();
    let mut later = String::new();
    each(row, ROUTE, line, |key, value, line| {
        match key {
            "type" | "dst" => {}
            _ if has_object && OF_NEXTHOP.contains(&key) => {}
            "via" => via(value, line)?,
            "flags" => flags(value, &["onlink", "pervasive"], line),
            "metrics" => metrics(value, line)?,
            "flow" => {
                let realm = |key| value.get(key).map(|value| scalar(key, value));
                let both = [realm("from").transpose()?, realm("to").transpose()?];
                let parts: Vec<_> = both.into_iter().flatten().collect();
                push(line, "realms", &parts.join("/"));
            }
            "nexthops" => {
                for hop in value.elements() {
                    let hop = hop.as_object();
                    let hop = hop.ok_or_else(|| "a next hop is no JSON object".to_owned())?;
                    push(&mut later, "nexthop", "");
                    each(hop, ROUTE, &mut later, |key, value, line| {
                        match key {
                            "via" => via(value, line)?,
                            "flags" => flags(value, &["onlink"], line),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    line.push_str(&later);
    Ok(())
}

/// `[{"mtu":1400,"ecn":null,"rto_min":200,"locked":["mtu"]}]`
fn metrics(value: &Value<'_>, line: &mut String) -> Result<(), ParseError> {
    /// In milliseconds, whatever the kernel keeps.
    const TIMES: [&str; 3] = ["rtt", "rttvar", "rto_min"];
    for metrics in value.elements() {
        let locked = metrics.get("locked").map(Value::elements);
        let is_locked = |name: &str| {
            let mut names = locked.unwrap_or_default().iter();
            names.any(|locked| locked.as_str() == Some(name))
        };
        for (name, value) in metrics.as_object().into_iter().flat_map(Row::iter) {
            match value {
                Value::Array(_) if name == "locked" => continue,
                // What a connection may do are keys by themselves.
                Value::Null => {
                    push(line, "features", name);
                    continue;
                }
                _ => push(line, name, if is_locked(name) { "lock" } else { "" }),
            }
            let unit = if TIMES.contains(&name) { "ms" } else { "" };
            push(line, &format!("{}{unit}", scalar(name, value)?), "");
        }
    }
    Ok(())
}

/// What the keys say of a tunnel that stand behind `encap`, up to one that
/// is none of its own.
fn encap<'r>(
    kind: &str,
    rest: &mut std::iter::Peekable<impl Iterator<Item = (&'r str, &'r Value<'r>)>>,
    line: &mut String,
) -> Result<(), ParseError> {
    push(line, "encap", kind);
    let own: &[&str] = match kind {
        "mpls" => &["dst", "ttl"],
        "ip" => &["id", "src", "dst", "ttl", "tos", "key", "csum", "seq"],
        "ip6" => &["id", "src", "dst", "hoplimit", "tc", "key", "csum", "seq"],
        "seg6" => &["mode", "segs"],
        "seg6local" => &["action", "table", "vrftable", "nh4", "nh6", "iif", "oif"],
        other => return Err(format!("`encap` `{other}` is not made by Fingerpost")),
    };
    while let Some((key, value)) = rest.next_if(|(key, _)| own.contains(key)) {
        match (key, value) {
            ("dst", labels) if kind == "mpls" => push(line, "", &scalar(key, labels)?),
            ("segs", segments) => {
                let segments = segments.elements();
                push(line, "segs", &segments.len().to_string());
                push(line, "[", "");
                for segment in segments {
                    push(line, "", &scalar(key, segment)?);
                }
                push(line, "]", "");
            }
            (key, Value::Bool(true)) => push(line, key, ""),
            (key, value) => push(line, key, &scalar(key, value)?),
        }
    }
    Ok(())
}

fn neighbour(row: &Row<'_>, line: &mut String) -> Result<(), ParseError> {
    // The address first: words behind it may be states.
    if let Some(dst) = row.get("dst") {
        push(line, "", &scalar("dst", dst)?);
    }
    each(row, NEIGH, line, |key, value, line| {
        match key {
            "dst" => {}
            "state" => {
                for state in value.elements() {
                    push(line, "nud", &scalar(key, state)?);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn fdb(row: &Row<'_>, line: &mut String) -> Result<(), ParseError> {
    let mac = row.get("mac");
    let mac = mac.ok_or_else(|| "the JSON object has no `mac`".to_owned())?;
    push(line, "", &scalar("mac", mac)?);
    let all = [
        "self",
        "router",
        "extern_learn",
        "offload",
        "master",
        "sticky",
        "locked",
    ];
    each(row, FDB, line, |key, value, line| {
        match key {
            "mac" => {}
            "flags" => flags(value, &all, line),
            // What was learnt has no word.
            "state" => match scalar(key, value)?.as_ref() {
                "" => push(line, "dynamic", ""),
                state => push(line, state, ""),
            },
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// A link as `ip -j addr` prints it, or one address by itself that names
/// its link.
fn addresses(row: &Row<'_>, out: &mut Vec<String>) -> Result<(), ParseError> {
    let link = text(row, "ifname").or_else(|| text(row, "dev"));
    let link = link.ok_or_else(|| "the JSON object names no link (`ifname`)".to_owned())?;
    let Some(Value::Array(list)) = row.get("addr_info") else {
        return Err("the JSON object has no `addr_info`".to_owned());
    };
    for address in list {
        let address = address.as_object();
        let address = address.ok_or_else(|| "an address is no JSON object".to_owned())?;
        let local = text(address, "local")
            .ok_or_else(|| "an address of the JSON object has no `local`".to_owned())?;
        let len = address.get("prefixlen").and_then(Value::as_u64);
        let len = len.ok_or_else(|| format!("{local} has no `prefixlen`"))?;
        let mut line = format!("{local}/{len} dev {link}");
        if address.get("address").is_some() {
            // The length is the peer's then.
            line = format!("{local} dev {link}");
        }
        each(address, ADDR, &mut line, |key, value, line| {
            if key == "address" {
                push(line, "peer", &format!("{}/{len}", scalar(key, value)?));
            }
            Ok(key == "address")
        })?;
        out.push(line);
    }
    Ok(())
}

fn rule(row: &Row<'_>, line: &mut String) -> Result<(), ParseError> {
    for (key, len, word) in [("src", "srclen", "from"), ("dst", "dstlen", "to")] {
        let Some(prefix) = text(row, key) else {
            continue;
        };
        match row.get(len).and_then(Value::as_u64) {
            Some(len) => push(line, word, &format!("{prefix}/{len}")),
            None => push(line, word, prefix),
        }
    }
    if let Some(mark) = text(row, "fwmark") {
        match text(row, "fwmask") {
            Some(mask) => push(line, "fwmark", &format!("{mark}/{mask}")),
            None => push(line, "fwmark", mark),
        }
    }
    let pairs = [
        ("uid_start", "uid_end", "uidrange"),
        ("sport_start", "sport_end", "sport"),
        ("dport_start", "dport_end", "dport"),
    ];
    for (low, high, word) in pairs {
        if let (Some(from), Some(to)) = (row.get(low), row.get(high)) {
            let range = format!("{}-{}", scalar(low, from)?, scalar(high, to)?);
            push(line, word, &range);
        }
    }
    let known: Vec<&str> = pairs
        .iter()
        .flat_map(|(low, high, _)| [*low, *high])
        .collect();
    each(row, RULE, line, |key, value, line| match key {
        "src" | "dst" | "srclen" | "dstlen" => Ok(true),
        // `to_tbl` is what a rule does that looks up a table.
        "action" => {
            if let Some(action) = value.as_str().filter(|action| *action != "to_tbl") {
                push(line, action, "");
            }
            Ok(true)
        }
        // It is read with the realm that it leads to.
        "flow_from" => Ok(row.get("flow_to").is_some()),
        "flow_to" => {
            let to = scalar(key, value)?;
            match row.get("flow_from") {
                Some(from) => push(
                    line,
                    "realms",
                    &format!("{}/{to}", scalar("flow_from", from)?),
                ),
                None => push(line, "realms", &to),
            }
            Ok(true)
        }
        _ => Ok(known.contains(&key)),
    })
}

fn nexthop(row: &Row<'_>, line: &mut String) -> Result<(), ParseError> {
    each(row, NEXTHOP, line, |key, value, line| {
        match key {
            "via" => via(value, line)?,
            "flags" => flags(value, &["onlink"], line),
            "group" => {
                let mut members = Vec::new();
                for member in value.elements() {
                    let id = member.get("id").and_then(Value::as_u64);
                    let id = id.ok_or_else(|| "a member of a group has no `id`".to_owned())?;
                    let weight = member.get("weight").and_then(Value::as_u64).unwrap_or(1);
                    members.push(format!("{id},{weight}"));
                }
                push(line, "group", &members.join("/"));
            }
            "resilient_args" => {
                for key in ["buckets", "idle_timer", "unbalanced_timer"] {
                    if let Some(value) = value.get(key) {
                        push(line, key, &scalar(key, value)?);
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_manuals_are_understood() {
        let objects = [
            Object::Route,
            Object::Neigh,
            Object::Addr,
            Object::Rule,
            Object::Nexthop,
        ];
        let is_understood = |object, text: &str| {
            let read = lines(object, text.as_bytes(), &mut Vec::new());
            !read.is_err_and(|error| error.contains("is not understood"))
        };
        for object in objects {
            for key in keys(object) {
                let with = match object {
                    Object::Addr => format!("{{\"addr_info\":[{{\"{key}\":\"1\"}}]}}"),
                    // Said of two at once.
                    Object::Rule => format!("{{\"{key}\":\"1\",\"flow_to\":1}}"),
                    _ => format!("{{\"{key}\":\"1\"}}"),
                };
                assert!(is_understood(object, &with), "{with}");
            }
        }
    }
}
