//! How many changes of each kind were made, and how many the kernel took:
//! a kind that is always refused proves nothing.

use std::collections::BTreeMap;
use std::fmt;

/// Made and taken, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, (u64, u64)>);

/// A kind, and the words that its lines have, all of them; the first that
/// fits counts.
const KINDS: &[(&str, &[&str])] = &[
    ("daemon stopped", &["kill "]),
    ("settings", &["echo "]),
    ("VXLAN stations", &["bridge fdb", "dev vx"]),
    ("bridge stations", &["bridge fdb"]),
    ("bridge ports' settings", &["bridge "]),
    ("links moved", &["link set", " netns "]),
    ("links renamed", &["link set", " name "]),
    ("links enslaved", &["link set", "master"]),
    ("carrier", &["link set", "carrier"]),
    ("carrier", &["link set", "protodown"]),
    ("links down", &["link set", " down"]),
    ("links up", &["link set", " up"]),
    ("links made", &["link add"]),
    ("links made", &["tuntap add"]),
    ("links deleted", &["link del"]),
    ("links' other settings", &["link "]),
    ("addresses with lifetimes", &["addr ", "_lft"]),
    ("addresses", &["addr "]),
    ("proxies", &["neigh ", "proxy"]),
    ("managed neighbours", &["neigh ", "managed"]),
    ("neighbours", &["neigh "]),
    ("resilient groups", &["nexthop ", "resilient"]),
    ("groups", &["ip nexthop", " group "]),
    ("next-hop objects", &["ip nexthop"]),
    ("routes by objects", &["route ", "nhid"]),
    ("routes with encap", &["route ", "encap"]),
    ("routes of several hops", &["route ", "nexthop"]),
    ("routes onlink", &["route ", "onlink"]),
    ("IPv6 routes", &["ip -6 route"]),
    ("IPv4 routes", &["ip route"]),
    ("rules", &["rule "]),
];

impl Tally {
    /// Counts a line; whether the kernel took it.
    pub(super) fn count(&mut self, line: &str, is_taken: bool) {
        let fits = |(_, words): &&(&str, &[&str])| words.iter().all(|word| line.contains(word));
        let kind = KINDS.iter().find(fits).map_or("others", |(kind, _)| kind);
        let (made, taken) = self.0.entry(kind).or_default();
        *made += 1;
        *taken += u64::from(is_taken);
    }

    /// Adds what another run made.
    pub fn add(&mut self, other: &Self) {
        for (kind, (made, taken)) in &other.0 {
            let (all_made, all_taken) = self.0.entry(kind).or_default();
            *all_made += made;
            *all_taken += taken;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, (made, taken))) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            write!(f, "{between}{kind} {taken} of {made}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_made_and_every_line_is_of_one() {
        let mut tally = Tally::default();
        for line in super::super::lines(3, 20_000) {
            tally.count(&line, true);
        }
        for (kind, _) in KINDS {
            assert!(tally.0.contains_key(kind), "{kind}");
        }
        assert!(!tally.0.contains_key("others"), "{tally}");
        let before = tally.clone();
        tally.count("ip link set v0 netns $OTHER", false);
        assert_ne!(before, tally);
        let (made, taken) = tally.0["links moved"];
        assert_eq!(made, taken + 1);
    }
}
