//! IPv4 gateways of routes, and which of them are the host itself: what the
//! kernel makes of a route by such a one depends on when it was made, so
//! packets that take it are the kernel's. Kept in step here as addresses and
//! routes come and go. Called by what decides about routes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use table::NextHop;

use super::known::Known;

/// With more gateways than this, those that no route has any more are dropped.
const FIRST_LOOK: usize = 1_024;

/// Gateways that were asked about.
#[derive(Debug)]
pub struct Gateways {
    /// And whether each is the host itself.
    asked: BTreeMap<Ipv4Addr, bool>,
    look_at: usize,
    /// A default route was local when it was last looked.
    has_local_default: bool,
}

impl Default for Gateways {
    fn default() -> Self {
        Self {
            asked: BTreeMap::new(),
            look_at: FIRST_LOOK,
            has_local_default: false,
        }
    }
}

impl Gateways {
    /// Whether a next hop is through the host itself, or was. O(log n).
    pub fn is_through_host(&mut self, known: &Known, hop: &NextHop) -> bool {
        let Some(IpAddr::V4(gateway)) = hop.gateway else {
            return false;
        };
        if self.asked.len() >= self.look_at {
            self.asked
                .retain(|gateway, _| known.has_gateway((*gateway).into()));
            self.look_at = FIRST_LOOK.max(2 * self.asked.len());
        }
        self.has_local_default |= known.has_local_default();
        self.asked
            .entry(gateway)
            .or_insert_with(|| known.is_host(gateway));
        known.is_through_host(hop)
    }

    /// The gateways inside a prefix that have become the host itself, or are it
    /// no more. O(gateways inside), but for a default route, which comes before
    /// no other: O(1), unless one is local.
    pub fn changed(&mut self, known: &Known, within: Ipv4Net) -> Vec<IpAddr> {
        let mut changed = Vec::new();
        if within.prefix_len() == 0 && !known.has_local_default() && !self.has_local_default {
            return changed;
        }
        self.has_local_default = known.has_local_default();
        for (gateway, was) in self.asked.range_mut(within.network()..=within.broadcast()) {
            let is = known.is_host(*gateway);
            if std::mem::replace(was, is) != is {
                changed.push((*gateway).into());
            }
        }
        changed
    }
}
