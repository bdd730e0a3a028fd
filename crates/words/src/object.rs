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
