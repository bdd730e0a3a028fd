//! `[feed.NAME]`: routing daemons that tell their routes. [`SECTIONS`] says what each key is for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use feed::bmp::StationLimits;
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serve::setting::{Section, Setting, Without};
use table::{KERNEL, MAX_FEEDERS};

use super::{LIMITS, RowLimits};

/// Bytes of a name at most.
const MAX_NAME: usize = 32;

/// What the keys are for.
pub const SECTIONS: &[Section] = &[
    Section {
        head: "[feed.NAME]",
        about: "Routes from where they are made, beside the kernel's: FRR's zebra by FPM (`-M \
                dplane_fpm_nl`, `fpm address 127.0.0.1 port 2620`), or routers and their BGP \
                peers by BMP. Each feed has a name of its own (letters, digits, `-`, `_`, `.`; 32 \
                at most; not `kernel`), by which `--source NAME` asks for its routes.",
        settings: &[
            Setting::new(
                "kind",
                Without::Value("\"fpm\""),
                "\"bmp\"",
                "The protocol: \"fpm\" or \"bmp\".",
            ),
            Setting::new(
                "listen",
                Without::Nothing,
                "\"127.0.0.1:2620\"",
                "The TCP address that zebra or the routers connect to. Beyond loopback only with \
                 peers.",
            ),
            Setting::new(
                "peers",
                Without::Value("[]"),
                "[\"192.0.2.0/24\"]",
                "Prefixes that may connect, beside this host.",
            ),
            Setting::new(
                "routers",
                Without::Words("64"),
                "64",
                "By BMP only: routers that are known at most, connected or gone; 1 to 1024.",
            ),
            Setting::new(
                "tables",
                Without::Words("256"),
                "256",
                "By BMP only: peers of a router at most, and tables of them; 1 to 1024.",
            ),
        ],
    },
    Section {
        head: "[feed.NAME.limits]",
        about: "Rows that this feed's own tables may have; by BMP, those of each router.",
        settings: LIMITS,
    },
];

/// By what protocol routes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// FRR's forwarding plane manager protocol: what zebra has chosen.
    #[default]
    Fpm,
    /// The BGP monitoring protocol: what BGP's peers tell.
    Bmp,
}

/// Routing daemons that tell their routes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// By what protocol.
    #[serde(default)]
    pub kind: Kind,
    /// The TCP address that they connect to.
    pub listen: SocketAddr,
    /// Who may connect besides this host.
    #[serde(default)]
    pub peers: Vec<IpNet>,
    /// Rows of its own at most; by BMP, of each of its routers.
    #[serde(default)]
    pub limits: RowLimits,
    /// By BMP: routers at most, connected or gone.
    pub routers: Option<usize>,
    /// By BMP: peers of a router at most, and tables of them.
    pub tables: Option<usize>,
}

impl Feed {
    /// One of this host at an address.
    pub fn at(kind: Kind, listen: SocketAddr) -> Self {
        Self {
            kind,
            listen,
            peers: Vec::new(),
            limits: RowLimits::default(),
            routers: None,
            tables: None,
        }
    }

    /// Whether it may be: beyond loopback only for peers that are named.
    pub fn check(&self) -> Result<(), String> {
        let listen = self.listen;
        if !listen.ip().to_canonical().is_loopback() && self.peers.is_empty() {
            return Err(format!(
                "`listen`: {listen} is beyond loopback, where anybody could tell routes: name \
                 those who may in `peers`"
            ));
        }
        for (name, value) in [("routers", self.routers), ("tables", self.tables)] {
            match (self.kind, value) {
                (_, None) => {}
                (Kind::Fpm, Some(_)) => return Err(format!("`{name}` is for `kind = \"bmp\"`")),
                (Kind::Bmp, Some(value)) if (1..=MAX_FEEDERS).contains(&value) => {}
                (Kind::Bmp, Some(_)) => {
                    return Err(format!("`{name}` is 1 to {MAX_FEEDERS}"));
                }
            }
        }
        Ok(())
    }

    /// How much it takes.
    pub fn limits(&self) -> feed::Limits {
        let rows = self.limits.limits();
        let usual = StationLimits::default();
        match self.kind {
            Kind::Fpm => feed::Limits::Fpm(rows),
            Kind::Bmp => feed::Limits::Bmp(StationLimits {
                rows,
                routers: self.routers.unwrap_or(usual.routers),
                tables: self.tables.unwrap_or(usual.tables),
            }),
        }
    }

    /// The same feed but for its limits.
    pub fn is_but_for_limits(&self, other: &Self) -> bool {
        self.kind == other.kind && self.listen == other.listen && self.peers == other.peers
    }
}

/// Reads the sections and checks what the fields alone cannot say.
pub fn section<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Feed>, D::Error> {
    let feeds = BTreeMap::<String, Feed>::deserialize(from)?;
    check(&feeds).map_err(D::Error::custom)?;
    Ok(feeds)
}

fn check(feeds: &BTreeMap<String, Feed>) -> Result<(), String> {
    if feeds.len() > MAX_FEEDERS {
        return Err(format!("{MAX_FEEDERS} feeds at most"));
    }
    let mut listening = BTreeSet::new();
    for (name, feed) in feeds {
        if !is_name(name) {
            return Err(format!(
                "`{name}` is no name of a feed: take letters, digits, `-`, `_` and `.`, \
                 {MAX_NAME} at most, and not `{KERNEL}`"
            ));
        }
        feed.check().map_err(|error| format!("`{name}`: {error}"))?;
        if !listening.insert(feed.listen) && feed.listen.port() != 0 {
            return Err(format!(
                "`{name}`: another feed listens at {} already",
                feed.listen
            ));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name != KERNEL && name.bytes().all(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        check(&toml::from_str(text).unwrap()).unwrap_err()
    }

    #[test]
    fn feeds_have_names_addresses_and_limits() {
        let text = "[frr]\nlisten = '127.0.0.1:2620'\n[frr.limits]\nroutes = 7\n\
                    [edge-2]\nlisten = '[::1]:2621'\n\
                    [far]\nlisten = '192.0.2.1:2620'\npeers = ['192.0.2.0/24']\n";
        let feeds: BTreeMap<String, Feed> = toml::from_str(text).unwrap();
        check(&feeds).unwrap();
        assert_eq!(feeds["frr"].limits.limits().routes, 7);
        assert_eq!(feeds["far"].peers.len(), 1);
        assert_eq!(feeds["far"].kind, Kind::Fpm);
        let text = "[bmp]\nkind = 'bmp'\nlisten = '127.0.0.1:11019'\nrouters = 3\n\
                    [bmp.limits]\nroutes = 7\n";
        let feeds: BTreeMap<String, Feed> = toml::from_str(text).unwrap();
        check(&feeds).unwrap();
        let limits = match feeds["bmp"].limits() {
            feed::Limits::Bmp(limits) => limits,
            feed::Limits::Fpm(_) => panic!("it is BMP's"),
        };
        assert_eq!((limits.rows.routes, limits.routers), (7, 3));
        assert_eq!(limits.tables, StationLimits::default().tables);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_name() {
        for (text, says) in [
            ("[frr]\nlisten = '0.0.0.0:2620'", "beyond loopback"),
            (
                "[frr]\nlisten = '127.0.0.1:1'\nrouters = 3",
                "`routers` is for",
            ),
            (
                "[b]\nkind = 'bmp'\nlisten = '127.0.0.1:1'\ntables = 0",
                "`tables` is 1 to 1024",
            ),
            ("[kernel]\nlisten = '127.0.0.1:1'", "`kernel` is no name"),
            ("['a b']\nlisten = '127.0.0.1:1'", "`a b` is no name"),
            (
                "[a]\nlisten = '127.0.0.1:1'\n[b]\nlisten = '127.0.0.1:1'",
                "`b`: another feed",
            ),
        ] {
            assert!(refusal(text).contains(says), "{text}");
        }
        for wrong in [
            "[a]",
            "[a]\nlisten = '2620'",
            "[a]\nlisten = '127.0.0.1:1'\nx = 1",
            "[a]\nlisten = '127.0.0.1:1'\nkind = 'mrt'",
        ] {
            assert!(
                toml::from_str::<BTreeMap<String, Feed>>(wrong).is_err(),
                "{wrong}"
            );
        }
        let many = (0..=MAX_FEEDERS).map(|n| format!("[f{n}]\nlisten = '127.0.0.1:{}'\n", n + 1));
        assert!(refusal(&many.collect::<String>()).contains("at most"));
    }
}
