//! What may be asked. Plain data: built by the command line, carried over
//! the control socket as JSON, answered from a snapshot or a dump.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
pub use words::Object;

use crate::rule_match::RuleMatch;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// As `ip` prints them.
    #[default]
    Text,
    /// One JSON array in the shape of `ip -j`.
    Json,
    /// One JSON object a line, the same objects.
    Ndjson,
    /// A header line, then a line a row (RFC 4180).
    Csv,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Which table.
    pub object: Object,
    /// Which rows.
    #[serde(default)]
    pub filter: Filter,
    /// How they are written.
    #[serde(default)]
    pub output: Output,
}

/// Which rows are wanted: all conditions that are set must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// `4` or `6`.
    pub family: Option<u8>,
    /// Name of the row's link, or one of its alternative names. For
    /// routes: of any of its next hops.
    pub dev: Option<String>,
    /// Pattern of the link's name: `*`, `?`, `[a-z]`.
    pub name: Option<String>,
    /// Addresses and neighbours inside this prefix; routes inside it
    /// (`ip route show to root PREFIX`).
    pub to: Option<IpNet>,
    /// Routes of exactly this prefix (`ip route show to exact`, and plain
    /// `ip route show PREFIX`).
    pub exact: Option<IpNet>,
    /// Routes that cover this prefix (`ip route show to match`).
    pub covering: Option<IpNet>,
    /// Link-layer address, as text (`00:0c:29:65:4d:48`).
    pub mac: Option<String>,
    /// Neighbour states by name (`reachable`, `stale`, …; `all`); operational
    /// states for links.
    pub state: Vec<String>,
    /// Routes of a table by name or number; `all` for every table. Without
    /// it: `main` (for IPv6 without `local`), as `ip route` does.
    pub table: Option<String>,
    /// Protocol by name or number.
    pub proto: Option<String>,
    /// Type of routes by name (`unicast`, `local`, …).
    pub route_type: Option<String>,
    /// Scope by name or number.
    pub scope: Option<String>,
    /// Routes by preferred source; rules by source.
    pub src: Option<IpAddr>,
    /// Routes and next hops by gateway.
    pub via: Option<IpAddr>,
    /// Next hops by id; routes by the id of their next-hop object.
    pub id: Option<u32>,
    /// Next hops: only groups.
    pub groups: bool,
    /// Only links that are up (rows on them, for other objects).
    pub up: bool,
    /// Name of the link's master.
    pub master: Option<String>,
    /// Links without a master.
    pub nomaster: bool,
    /// Kind of link (`veth`, `bridge`, …).
    pub kind: Option<String>,
    /// Name of the VRF.
    pub vrf: Option<String>,
    /// Group number of the link.
    pub group: Option<u32>,
    /// Rules by priority; routes by metric.
    pub priority: Option<u32>,
    /// Rules by what they ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleMatch>,
    /// Proxy neighbours instead of the others.
    pub proxy: bool,
    /// VLAN of forwarding entries.
    pub vlan: Option<u16>,
    /// Addresses by their flags, by name (`permanent`, `deprecated`, …); with
    /// a leading `-` those without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Of routes with several next hops none is picked by `dev` or `via`, as
    /// `ip` has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_hop: bool,
    /// Addresses by label: a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Routes by their AS path: a pattern (`path_patterns`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_path: Option<String>,
    /// Routes that have all of these communities, `A:B` or `A:B:C`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub community: Vec<String>,
    /// Routes by the AS that they come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_as: Option<u32>,
    /// The rows of this owner instead of the kernel's. Whoever answers
    /// chooses its tables; no row is looked at for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How counters are written in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// All digits.
    #[default]
    Exact,
    /// `1.23k`: powers of 1,000 (`ip -h`).
    Decimal,
    /// `1.21ki`: powers of 1,024 (`ip -h -iec`).
    Binary,
}

impl Units {
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// How the answer is written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// The format.
    pub format: Format,
    /// Columns by name, in this order; empty: all. In text format, columns
    /// make a plain table.
    pub fields: Vec<String>,
    /// Column to sort by; a leading `-` sorts downwards.
    pub sort: Option<String>,
    /// Only the number of rows.
    pub count: bool,
    /// More details (`ip -d`).
    pub details: bool,
    /// Counters and ages (`ip -s`).
    pub statistics: bool,
    /// Errors by their kinds as well (`ip -s -s`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub errors: bool,
    /// How counters are written.
    #[serde(skip_serializing_if = "Units::is_exact")]
    pub units: Units,
    /// One line a row (`ip -o`).
    pub oneline: bool,
    /// Colours of text, as marks ([`crate::colour`]).
    pub colour: bool,
    /// A table of the most important (`ip -br`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// Numbers in the place of names of protocols, scopes and tables
    /// (`ip -N`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub numeric: bool,
    /// In JSON, beside a row's fields: the line of text that `ip` shows for
    /// it, as `words`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub words: bool,
    /// In JSON, which metrics of a route are locked: a listing that is given
    /// back has to tell it, and `ip -j` does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locks: bool,
    /// Name of the namespace, shown as a first column when several are
    /// asked.
    pub netns: Option<String>,
}
