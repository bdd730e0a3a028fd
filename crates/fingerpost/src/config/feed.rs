//! `[feed.NAME]`: a routing daemon that tells its routes.
//!
//! ```toml
//! [feed.frr]
//! listen = "127.0.0.1:2620"       # zebra: fpm address 127.0.0.1 port 2620
//! peers = ["192.0.2.0/24"]        # who may connect besides this host
//!
//! [feed.frr.limits]               # of this feed's own rows
//! routes = 2000000
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use table::{KERNEL, MAX_FEEDERS};

use super::RowLimits;

/// Bytes of a name at most.
const MAX_NAME: usize = 32;

/// A routing daemon that tells its routes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// The TCP address that it connects to.
    pub listen: SocketAddr,
    /// Who may connect besides this host.
    #[serde(default)]
    pub peers: Vec<IpNet>,
    /// Rows of its own at most.
    #[serde(default)]
    pub limits: RowLimits,
}

impl Feed {
    /// One of this host at an address.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            peers: Vec::new(),
            limits: RowLimits::default(),
        }
    }

    /// Whether it may be: beyond loopback only for peers that are named.
    pub fn check(&self) -> Result<(), String> {
        let listen = self.listen;
        match listen.ip().to_canonical().is_loopback() || !self.peers.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "`listen`: {listen} is beyond loopback, where anybody could tell routes: name \
                 those who may in `peers`"
            )),
        }
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
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_name() {
        for (text, says) in [
            ("[frr]\nlisten = '0.0.0.0:2620'", "beyond loopback"),
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
