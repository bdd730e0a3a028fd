//! Which inside hosts must be one part's, because redirects bind them
//! together: servers of one pool, and all that one alias endpoint may lead
//! to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;

use crate::rules::{Redirect, Rules};

/// Stands for "whatever the alias address is".
const CURRENT: u32 = 0;

/// Hosts in classes: a forest, each pointing at one of its class.
#[derive(Debug, Default)]
struct Forest {
    above: BTreeMap<u32, u32>,
}

impl Forest {
    fn root(&mut self, host: u32) -> u32 {
        let mut at = host;
        loop {
            let above = *self.above.entry(at).or_insert(at);
            if above == at {
                break;
            }
            at = above;
        }
        // The way is shorter next time.
        self.above.insert(host, at);
        at
    }

    /// The lower address stands for both.
    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.above.insert(one.max(other), one.min(other));
    }
}

/// What redirects say about who belongs together.
#[derive(Debug, Default)]
pub struct Classes {
    /// Hosts that are not alone, and the lowest address of their class.
    pub hosts: HashMap<u32, u32>,
    /// Alias addresses that redirects without ports speak for, each with a
    /// host of its class.
    pub whole: HashMap<u32, u32>,
}

/// Alias ports that lead to a host: protocol, alias, first, last, host.
type Lead = (u8, u32, u32, u32, u32);

impl Classes {
    /// Of all redirects; `own`: the alias addresses, `mask`: the bits that
    /// tell a subscriber, whose hosts are one. O(redirects and
    /// servers, and their logarithm).
    pub fn of(rules: &Rules, own: &[u32], mask: u32) -> Self {
        let mut forest = Forest::default();
        let mut leads: Vec<Lead> = Vec::new();
        let mut whole = HashMap::new();
        let mut place = 0;
        while let Some((handle, redirect, next)) = rules.next_from(place) {
            place = next;
            let servers = rules.servers(handle).iter().map(|server| server.address);
            let hosts: Vec<u32> = redirect
                .inside
                .into_iter()
                .chain(servers)
                .map(Ipv4Addr::to_bits)
                .collect();
            // Without one it is whoever has the alias address.
            let hosts = match (hosts.is_empty(), redirect.alias) {
                (false, _) => hosts,
                (true, Some(alias)) => vec![alias.to_bits()],
                (true, None) => own.to_vec(),
            };
            let hosts: Vec<u32> = hosts.into_iter().map(|host| host & mask).collect();
            let Some(first) = hosts.first().copied() else {
                continue;
            };
            for host in &hosts {
                forest.join(first, *host);
            }
            match lead(redirect, first) {
                Some(lead) => leads.push(lead),
                None => {
                    if let Some(alias) = redirect.alias {
                        let known = *whole.entry(alias.to_bits()).or_insert(first);
                        forest.join(known, first);
                    }
                }
            }
        }
        join_overlapping(&mut forest, leads);
        Self {
            hosts: crowded(&mut forest),
            whole,
        }
    }
}

fn lead(redirect: &Redirect, host: u32) -> Option<Lead> {
    let last = redirect.ports.checked_sub(1)?;
    let first = u32::from(redirect.alias_port);
    let alias = redirect.alias.map_or(CURRENT, Ipv4Addr::to_bits);
    let protocol = redirect.protocol.unwrap_or_default();
    Some((protocol, alias, first, first + u32::from(last), host))
}

/// Hosts behind ranges of ports that overlap: of one alias address, or of
/// any and of "the current one".
fn join_overlapping(forest: &mut Forest, mut leads: Vec<Lead>) {
    leads.sort_unstable();
    // Ranges of the current address as they were merged: by protocol and
    // first port, the last one and a host.
    let mut current: BTreeMap<(u8, u32), (u32, u32)> = BTreeMap::new();
    let mut run: Option<Lead> = None;
    for lead in leads {
        let (protocol, alias, first, last, host) = lead;
        let joins = run.filter(|run| (run.0, run.1) == (protocol, alias) && first <= run.3);
        let merged = match joins {
            Some(run) => {
                forest.join(run.4, host);
                (protocol, alias, run.2, run.3.max(last), run.4)
            }
            None => lead,
        };
        run = Some(merged);
        if alias == CURRENT {
            current.insert((protocol, merged.2), (merged.3, merged.4));
            continue;
        }
        // "The current one" sorts first, so all of it is known here.
        let begins = current.range(..=(protocol, last)).rev();
        for (_, (_, other)) in
            begins.take_while(|((of, _), (end, _))| *of == protocol && *end >= first)
        {
            forest.join(*other, host);
        }
    }
}

/// Hosts of classes of more than one.
fn crowded(forest: &mut Forest) -> HashMap<u32, u32> {
    let hosts: Vec<u32> = forest.above.keys().copied().collect();
    let rooted: Vec<(u32, u32)> = hosts
        .into_iter()
        .map(|host| (host, forest.root(host)))
        .collect();
    let apart = rooted.iter().filter(|(host, root)| host != root);
    let crowds: BTreeSet<u32> = apart.map(|(_, root)| *root).collect();
    rooted
        .into_iter()
        .filter(|(_, root)| crowds.contains(root))
        .collect()
}
