//! What routers tell of themselves and their BGP peers (BMP, RFC 7854), for
//! the status of feeds.

use std::collections::BTreeMap;

use crate::status::When;

/// A router that feeds a BMP station.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonitoredRouter {
    /// What its sources have behind the `@`.
    pub name: String,
    /// What it says of itself (`sysDescr`).
    pub description: String,
    /// Its address, and the port of its newest connection.
    pub peer: String,
    /// Why it is not connected; `None`: it is.
    pub disconnected: Option<String>,
    /// When it came, or went.
    pub since: Option<When>,
    /// Connections of it that fed.
    pub connections: u64,
    /// Its BGP peers that are known.
    pub peers: u64,
    /// Those of them that are up.
    pub peers_up: u64,
    /// Routes of all its peers.
    pub routes: u64,
    /// Routes that were there when it came (or went) and that it has not
    /// told since.
    pub unconfirmed: u64,
    /// Messages read.
    pub messages: u64,
    /// Messages that have no row here, by what they are.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Peers and sources for which there was no place.
    pub refused: u64,
}

/// A BGP peer of a router, and which of its tables the rows are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonitoredPeer {
    /// What the router's sources have behind the `@`.
    pub router: String,
    /// The peer's address; empty for the router's own table (RFC 9069).
    pub address: String,
    /// In which of the router's tables the peer is, where not in its global
    /// one: a route distinguisher or a number of its own.
    pub distinguisher: String,
    /// The name of that table, where the router says one.
    pub table_name: String,
    /// `adj-rib-in`, `adj-rib-in post-policy`, `adj-rib-out`, `adj-rib-out
    /// post-policy` or `loc-rib`.
    pub rib: &'static str,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub bgp_id: String,
    /// Whether the session is up, as the router says.
    pub is_up: bool,
    /// Times that it went up, and down, since we heard of it.
    pub ups: u64,
    /// The same, down.
    pub downs: u64,
    /// The newest of those, the newest last.
    pub history: Vec<PeerEvent>,
    /// What the router counts (`Statistics Report`), by name.
    pub statistics: BTreeMap<String, u64>,
    /// When it told that; `None`: never.
    pub counted: Option<When>,
    /// Messages that it mirrored, which have no rows.
    pub mirrored: u64,
}

/// A session that went up or down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerEvent {
    /// When we heard of it.
    pub at: When,
    /// Whether it went up.
    pub is_up: bool,
    /// Why it went down.
    pub why: String,
}
