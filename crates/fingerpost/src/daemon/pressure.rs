//! How near the kernel is to refusing neighbours.
//!
//! `gc_thresh3` bounds the neighbours of a family over all namespaces, and
//! only the host's own namespace shows it. Permanent entries and those that
//! a program has learnt do not count towards it.

use std::fs;

use table::Tables;
use table::row::neighbour::{flag, state};

use serve::status::Pressure;

/// Counts towards the limits. O(neighbours).
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    v4: u64,
    v6: u64,
}

impl Count {
    /// Adds the neighbours of a namespace.
    pub fn add(&mut self, tables: &Tables) {
        let counting = tables.neighbours.iter().filter(|row| {
            !row.proxy && row.state & state::PERMANENT == 0 && row.flags & flag::EXT_LEARNED == 0
        });
        for row in counting {
            if row.address.is_ipv4() {
                self.v4 += 1;
            } else {
                self.v6 += 1;
            }
        }
    }

    /// The counts against the limits that this namespace shows.
    pub fn against_limits(self) -> Vec<Pressure> {
        [(4, "ipv4", self.v4), (6, "ipv6", self.v6)]
            .into_iter()
            .filter_map(|(family, settings, rows)| {
                let path = format!("/proc/sys/net/{settings}/neigh/default/gc_thresh3");
                let limit = fs::read_to_string(path).ok()?.trim().parse().ok()?;
                Some(Pressure {
                    family,
                    rows,
                    limit,
                })
            })
            .collect()
    }
}
