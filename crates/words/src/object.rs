//! The tables, by the names that `ip` has for them.

use serde::{Deserialize, Serialize};

/// Which table is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each names its table")]
pub enum Object {
    Link,
    Addr,
    Neigh,
    Route,
    Nexthop,
    Rule,
    Fdb,
}

impl Object {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 7] = [
        Self::Link,
        Self::Addr,
        Self::Neigh,
        Self::Route,
        Self::Nexthop,
        Self::Rule,
        Self::Fdb,
    ];

    /// Its name: that of its command, and in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Addr => "addr",
            Self::Neigh => "neigh",
            Self::Route => "route",
            Self::Nexthop => "nexthop",
            Self::Rule => "rule",
            Self::Fdb => "fdb",
        }
    }
}
