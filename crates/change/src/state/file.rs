//! A file of declared state as it is written: plain data, serde both ways.
//! What it means is read by `wanted`; `docs/state.md` is its
//! manual. Called by whoever reads or writes such files, import too.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A row of a table: the keys of its listing (`--json`), or `words` in
/// `ip`'s own.
pub type Row = BTreeMap<String, Value>;

/// Settings under `/proc/sys/net/FAMILY/conf/LINK`: family, name, value.
pub type Sysctl = BTreeMap<String, BTreeMap<String, Value>>;

/// A whole file. `L` and `R` are its tables: as they are, or with the place
/// where each stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File<L = Link, R = Row> {
    /// `[[link]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<L>,
    /// `[[address]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub address: Vec<R>,
    /// `[[neighbour]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub neighbour: Vec<R>,
    /// `[[nexthop]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub nexthop: Vec<R>,
    /// `[[route]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<R>,
    /// `[[rule]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<R>,
    /// `[[fdb]]`
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub fdb: Vec<R>,
}

impl<L, R> Default for File<L, R> {
    fn default() -> Self {
        Self {
            link: Vec::new(),
            address: Vec::new(),
            neighbour: Vec::new(),
            nexthop: Vec::new(),
            route: Vec::new(),
            rule: Vec::new(),
            fdb: Vec::new(),
        }
    }
}

impl File {
    /// As TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// `[[link]]`: what is not said is left as it is, or the kernel's choice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Its name; `{1..100}` in it: one for each number.
    pub name: String,
    /// It is made, if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The kind's options, in `ip`'s words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// A veth's other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The link below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What it is a port of; empty: of nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// Whether it is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// `IFLA_MTU`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// `IFLA_TXQLEN`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txqueuelen: Option<u32>,
    /// `IFLA_GROUP`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Link-layer address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// That of a veth's other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<String>,
    /// `IFLA_IFALIAS`; empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Alternative names that it has.
    #[serde(
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub altnames: Vec<String>,
    /// IP addresses with their length.
    #[serde(
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub addresses: Vec<String>,
    /// Those of a veth's other end.
    #[serde(
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub peer_addresses: Vec<String>,
    /// Settings under `/proc/sys`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: Sysctl,
}

/// One text, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a text, or a list of texts, is expected")]
    enum Either {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Either::deserialize(from)? {
        Either::One(one) => vec![one],
        Either::Many(many) => many,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[[link]]
name = "cust{1..4096}"
kind = "veth"
peer = "custb{}"
up = true
addresses = "10.0.{/64}.{%64*4+1}/30"
sysctl.ipv6.disable_ipv6 = 1

[[route]]
dst = "10.9.{1..4096/256}.{%256}/32"
dev = "cust{}"
"#;

    #[test]
    fn a_file_is_read_and_written() {
        let file: File = toml::from_str(TEXT).unwrap();
        assert_eq!(file.link[0].addresses, ["10.0.{/64}.{%64*4+1}/30"]);
        assert_eq!(file.link[0].sysctl["ipv6"]["disable_ipv6"], 1);
        assert_eq!(file.route[0]["dev"], "cust{}");
        let again: File = toml::from_str(&file.to_toml().unwrap()).unwrap();
        assert_eq!(again, file);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for wrong in [
            "[[lnk]]",
            "[[link]]\nmtus = 4",
            "[[link]]\nmtu = \"x\"",
            "[[link]]\naddresses = 5",
        ] {
            assert!(toml::from_str::<File>(wrong).is_err(), "{wrong}");
        }
    }
}
