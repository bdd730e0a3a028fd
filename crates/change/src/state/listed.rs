//! A link as its listing prints it (`ip -j`, `--ndjson`) as a table of a
//! file. Called by [`super::source`].

mod options;

use netlink::encode::{LINK_KINDS, kind_of_words};
use serde_json::{Map, Value};

use super::file::{Link, Row};

/// What is the kernel's business, or counted.
const IGNORED: &[&str] = &[
    "ifindex",
    "qdisc",
    "operstate",
    "linkmode",
    "link_type",
    "broadcast",
    "permaddr",
    "min_mtu",
    "max_mtu",
    "promiscuity",
    "allmulti",
    "num_tx_queues",
    "num_rx_queues",
    "gso_max_size",
    "gso_max_segs",
    "gso_ipv4_max_size",
    "gro_max_size",
    "gro_ipv4_max_size",
    "tso_max_size",
    "tso_max_segs",
    "parentbus",
    "parentdev",
    "inet6_addr_gen_mode",
    "stats",
    "stats64",
    "netns",
    "link_netnsid",
    "link_index",
];

/// The link, unless the row only names it, and its addresses.
pub fn link(row: &Map<String, Value>) -> Result<(Option<Link>, Vec<Row>), String> {
    let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text("ifname").ok_or("the link has no `ifname`")?;
    let mut link = Link {
        name: name.clone(),
        ..Link::default()
    };
    let mut addresses = Vec::new();
    for (key, value) in row {
        match key.as_str() {
            "ifname" => {}
            "addr_info" => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for address in list {
                    addresses.extend(self::address(&name, address)?);
                }
            }
            "flags" => {
                let flags = value.as_array().map(Vec::as_slice).unwrap_or_default();
                link.up = Some(flags.iter().any(|flag| flag == "UP"));
            }
            "mtu" => link.mtu = number(key, value)?,
            "txqlen" => link.txqueuelen = number(key, value)?,
            "group" => link.group = group(value)?,
            "address" => link.address = text(key),
            "master" => link.master = text(key),
            "link" => link.link = text(key),
            "ifalias" => link.alias = text(key),
            "altnames" => link.altnames = texts(value),
            "linkinfo" => info(value, &mut link)?,
            key if IGNORED.contains(&key) => {}
            key => return Err(format!("key `{key}` of the link is not understood")),
        }
    }
    if link.kind.as_deref() == Some("veth") {
        // What a listing calls its link is the other end.
        link.peer = link.link.take();
        if link.peer.is_none() {
            link.kind = None;
        }
    }
    if link.kind.is_none() {
        // What it stands on is its kind's to say, which a short listing does
        // not tell.
        link.link = None;
    }
    Ok((Some(link), addresses))
}

fn number(key: &str, value: &Value) -> Result<Option<u32>, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.ok_or_else(|| format!("key `{key}` of the link is no number"))?;
    Ok(Some(number))
}

fn group(value: &Value) -> Result<Option<u32>, String> {
    match value {
        Value::String(text) => words::values::group(text).map(Some),
        value => number("group", value),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// `{"info_kind":"vlan","info_data":{"id":5}}`
fn info(value: &Value, link: &mut Link) -> Result<(), String> {
    let kind = value.get("info_kind").and_then(Value::as_str);
    let Some(known) = LINK_KINDS.iter().find(|known| Some(known.name) == kind) else {
        return Ok(());
    };
    link.kind = Some(known.name.to_owned());
    let data = value.get("info_data").and_then(Value::as_object);
    let mut options: Vec<String> = Vec::new();
    let cannot = |key: &str, of: &str| {
        format!(
            "key `{key}` of a {of} is not made from a listing; `fingerpost export` writes a file \
             with what can be made"
        )
    };
    for (key, value) in data.into_iter().flatten() {
        let words = options::words(known.name, key, value);
        let words = words.ok_or_else(|| cannot(key, known.name))?;
        let said: Vec<&str> = words.iter().map(String::as_str).collect();
        if kind_of_words(known.name, &said, &mut |_| Some(1)).is_err() {
            return Err(cannot(key, known.name));
        }
        options.extend(words.into_iter().filter(|word| !word.is_empty()));
    }
    link.options = (!options.is_empty()).then(|| options.join(" "));
    let port = value.get("info_slave_kind").and_then(Value::as_str);
    let data = value.get("info_slave_data").and_then(Value::as_object);
    match data.and_then(|data| options::unusual(port, data)) {
        Some(key) => Err(cannot(&key, "port")),
        None => Ok(()),
    }
}

/// Words about an address that follow from the rest.
const OF_ADDRESS: &[&str] = &[
    "family",
    "dynamic",
    "secondary",
    "temporary",
    "tentative",
    "deprecated",
    "dadfailed",
    "permanent",
    "stable-privacy",
    "ifa_flags",
    "valid_life_time",
    "preferred_life_time",
];

/// One of `addr_info`; `None`: one that expires, which nobody declares.
fn address(link: &str, address: &Value) -> Result<Option<Row>, String> {
    let Value::Object(keys) = address else {
        return Err("an address is no JSON object".to_owned());
    };
    if keys
        .get("dynamic")
        .is_some_and(|is| *is != Value::Bool(false))
    {
        return Ok(None);
    }
    let mut row: Row = keys.clone().into_iter().collect();
    row.retain(|key, _| !OF_ADDRESS.contains(&key.as_str()));
    row.insert("dev".to_owned(), link.into());
    Ok(Some(row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listed_link_is_a_table_of_a_file() {
        let row = json!({
            "ifindex": 7, "ifname": "v1", "link": "v2", "flags": ["BROADCAST", "UP"], "mtu": 1400,
            "qdisc": "noqueue", "group": "default", "linkinfo": {"info_kind": "veth"},
            "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 30,
                "scope": "global", "valid_life_time": 4_294_967_295_u32}],
        });
        let (link, addresses) = link(row.as_object().unwrap()).unwrap();
        let link = link.unwrap();
        assert_eq!(link.peer.as_deref(), Some("v2"));
        assert_eq!(
            (link.up, link.mtu, link.group),
            (Some(true), Some(1400), Some(0))
        );
        assert_eq!(addresses[0]["dev"], "v1");
        assert!(!addresses[0].contains_key("valid_life_time"));
    }

    #[test]
    fn what_a_link_stands_on_is_left_where_its_kind_is_not_told() {
        let row = json!({"ifname": "e0", "link": "e1", "mtu": 1500, "flags": ["UP"]});
        let (link, _) = link(row.as_object().unwrap()).unwrap();
        let link = link.unwrap();
        assert_eq!((link.kind, link.link, link.peer), (None, None, None));
        assert_eq!(link.mtu, Some(1500));
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        for row in [
            json!({"ifname": "a", "mtu": 5, "colour": "red"}),
            json!({"mtu": 5}),
            json!({"ifname": "b", "linkinfo": {"info_kind": "bridge", "info_data": {"colour": 5}}}),
            json!({"ifname": "b", "linkinfo": {"info_kind": "ifb", "info_slave_kind": "bridge",
                "info_slave_data": {"isolated": true}}}),
        ] {
            assert!(link(row.as_object().unwrap()).is_err(), "{row}");
        }
    }
}
