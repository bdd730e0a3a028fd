//! How many rows each table may have, and what was refused for it.

use thiserror::Error;

/// How many rows each table may have. A row beyond is refused and
/// counted; the rows that are there stay and can still be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names its table")]
pub struct Limits {
    pub links: usize,
    pub addresses: usize,
    pub neighbours: usize,
    pub routes: usize,
    pub nexthops: usize,
    pub rules: usize,
    pub fdb: usize,
}

impl Default for Limits {
    /// Four times what the largest router of 2026 holds.
    fn default() -> Self {
        Self {
            links: 1 << 20,
            addresses: 1 << 22,
            neighbours: 1 << 23,
            routes: 1 << 24,
            nexthops: 1 << 22,
            rules: 1 << 20,
            fdb: 1 << 23,
        }
    }
}

/// A table has as many rows as it may have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the table of {table} is full: it may have {limit} rows; raise `limits.{table}`")]
pub struct TableFull {
    /// Which table.
    pub table: &'static str,
    /// Its limit.
    pub limit: usize,
}

/// How often each table refused a new row because it was full. Anything
/// but 0 says that the table lacks rows that its source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each names its table")]
pub struct Refused {
    pub links: u64,
    pub addresses: u64,
    pub neighbours: u64,
    pub routes: u64,
    pub nexthops: u64,
    pub rules: u64,
    pub fdb: u64,
}

impl Refused {
    /// All tables with their names, in the order of [`Limits`].
    pub fn by_table(&self) -> [(&'static str, u64); 7] {
        [
            ("links", self.links),
            ("addresses", self.addresses),
            ("neighbours", self.neighbours),
            ("routes", self.routes),
            ("nexthops", self.nexthops),
            ("rules", self.rules),
            ("fdb", self.fdb),
        ]
    }

    /// Of all tables together.
    pub fn total(&self) -> u64 {
        self.by_table().iter().map(|(_, refused)| refused).sum()
    }

    /// Whether nothing was refused: the tables have all that their source
    /// told.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A table that has a limit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limited {
    Links,
    Addresses,
    Neighbours,
    Routes,
    Nexthops,
    Rules,
    Fdb,
}

impl Limits {
    /// Whether a table of `rows` rows takes one more; if not, that is
    /// counted.
    pub(super) fn admit(
        &self,
        table: Limited,
        rows: usize,
        refused: &mut Refused,
    ) -> Result<(), TableFull> {
        let (name, limit, count) = match table {
            Limited::Links => ("links", self.links, &mut refused.links),
            Limited::Addresses => ("addresses", self.addresses, &mut refused.addresses),
            Limited::Neighbours => ("neighbours", self.neighbours, &mut refused.neighbours),
            Limited::Routes => ("routes", self.routes, &mut refused.routes),
            Limited::Nexthops => ("nexthops", self.nexthops, &mut refused.nexthops),
            Limited::Rules => ("rules", self.rules, &mut refused.rules),
            Limited::Fdb => ("fdb", self.fdb, &mut refused.fdb),
        };
        if rows < limit {
            return Ok(());
        }
        *count = count.saturating_add(1);
        Err(TableFull { table: name, limit })
    }
}
