//! How routers are that feed a BMP station, and the peers whose tables they
//! tell.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use table::{MonitoredPeer, MonitoredRouter};

use crate::clock::Age;

/// A router that feeds a station.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterStatus {
    /// What its sources have behind the `@`.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// Its address, and the port of its newest connection.
    pub peer: String,
    /// Why it is not connected.
    pub disconnected: Option<String>,
    /// When it came, or went, milliseconds since the UNIX epoch.
    pub since_millis: u64,
    /// How long ago that was, when the status was told, seconds: by a clock
    /// that nobody sets.
    pub since_secs: u64,
    /// Connections of it that fed.
    pub connections: u64,
    /// Its BGP peers that are known.
    pub peers: u64,
    /// Those that are up.
    pub peers_up: u64,
    /// Routes of all of them.
    pub routes: u64,
    /// Routes that it did not tell since it came, or went.
    pub unconfirmed: u64,
    /// Messages read.
    pub messages: u64,
    /// Messages that have no row, by what they are.
    pub skipped: BTreeMap<String, u64>,
    /// Peers and tables for which there was no place.
    pub refused: u64,
}

/// The peer whose table a source is, as its router tells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// What the router's sources have behind the `@`.
    pub router: String,
    /// The peer's address; empty for the router's own table.
    pub address: String,
    /// In which of the router's tables it is, where not in its global one.
    pub distinguisher: String,
    /// The name of that table.
    pub table_name: String,
    /// `adj-rib-in`, `adj-rib-in post-policy`, …, `loc-rib`.
    pub rib: String,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub bgp_id: String,
    /// Whether its session is up.
    pub up: bool,
    /// Times that it went up since we heard of it.
    pub ups: u64,
    /// Times that it went down.
    pub downs: u64,
    /// The newest of those, the newest last.
    pub history: Vec<EventStatus>,
    /// What the router counts, by name.
    pub statistics: BTreeMap<String, u64>,
    /// When it told that, milliseconds since the UNIX epoch.
    pub statistics_millis: Option<u64>,
    /// How long ago that was, when the status was told, seconds.
    pub statistics_secs: Option<u64>,
    /// Messages that it mirrored.
    pub mirrored: u64,
}

/// A session that went up or down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventStatus {
    /// When we heard of it, milliseconds since the UNIX epoch.
    pub at_millis: u64,
    /// How long ago that was, when the status was told, seconds.
    pub secs: u64,
    /// Whether it went up.
    pub up: bool,
    /// Why it went down.
    pub why: String,
}

impl RouterStatus {
    pub(super) fn of(router: &MonitoredRouter, age: Age) -> Self {
        let skipped = router.skipped.iter();
        Self {
            name: router.name.clone(),
            description: router.description.clone(),
            peer: router.peer.clone(),
            disconnected: router.disconnected.clone(),
            since_millis: router.since.map_or(0, |since| since.millis),
            since_secs: router.since.map_or(0, |since| age.secs(since)),
            connections: router.connections,
            peers: router.peers,
            peers_up: router.peers_up,
            routes: router.routes,
            unconfirmed: router.unconfirmed,
            messages: router.messages,
            skipped: skipped.map(|(what, n)| ((*what).to_owned(), *n)).collect(),
            refused: router.refused,
        }
    }
}

impl PeerStatus {
    pub(super) fn of(peer: &MonitoredPeer, age: Age) -> Self {
        let history = peer.history.iter().map(|event| EventStatus {
            at_millis: event.at.millis,
            secs: age.secs(event.at),
            up: event.is_up,
            why: event.why.clone(),
        });
        Self {
            router: peer.router.clone(),
            address: peer.address.clone(),
            distinguisher: peer.distinguisher.clone(),
            table_name: peer.table_name.clone(),
            rib: peer.rib.to_owned(),
            asn: peer.asn,
            bgp_id: peer.bgp_id.clone(),
            up: peer.is_up,
            ups: peer.ups,
            downs: peer.downs,
            history: history.collect(),
            statistics: peer.statistics.clone(),
            statistics_millis: peer.counted.map(|at| at.millis),
            statistics_secs: peer.counted.map(|at| age.secs(at)),
            mirrored: peer.mirrored,
        }
    }
}

impl RouterStatus {
    /// Writes it for people.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (name, secs) = (&self.name, self.since_secs);
        match &self.disconnected {
            None => write!(out, "  router {name}: {} came {secs} s ago", self.peer)?,
            Some(why) => write!(out, "  router {name}: gone {secs} s ago: {why}")?,
        }
        let skipped = self.skipped.iter().map(|(what, n)| format!(", {n} {what}"));
        write!(
            out,
            "; {} peers, {} up, {} routes, {} unconfirmed, {} messages ({} skipped{}), {} connections",
            self.peers,
            self.peers_up,
            self.routes,
            self.unconfirmed,
            self.messages,
            self.skipped.values().sum::<u64>(),
            skipped.collect::<String>(),
            self.connections
        )?;
        if self.refused > 0 {
            write!(out, ", {} peers or tables had no place", self.refused)?;
        }
        writeln!(out, "; {}", self.description)
    }
}

impl PeerStatus {
    /// Writes it for people.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "  {} of {}", self.rib, self.router)?;
        for (what, value) in [
            ("peer", &self.address),
            ("in", &self.distinguisher),
            ("table", &self.table_name),
        ] {
            if !value.is_empty() {
                write!(out, ", {what} {value}")?;
            }
        }
        let state = if self.up { "up" } else { "down" };
        write!(out, ", AS {}, id {}: {state}", self.asn, self.bgp_id)?;
        if let Some(last) = self.history.last() {
            write!(out, " since {} s", last.secs)?;
        }
        write!(out, "; {} times up, {} down", self.ups, self.downs)?;
        if let Some(down) = self.history.iter().rev().find(|event| !event.up) {
            write!(out, ", the last {} s ago: {}", down.secs, down.why)?;
        }
        writeln!(out)?;
        if let Some(secs) = self.statistics_secs {
            let all = self
                .statistics
                .iter()
                .map(|(of, value)| format!(", {of} {value}"));
            let all = all.collect::<String>();
            writeln!(out, "  counted {secs} s ago{all}")?;
        }
        Ok(())
    }
}
