//! At size: every route exactly once with net-snmp's own patience, and the
//! tables that kill its agent. A million routes, 4,000 interfaces and
//! 100,000 neighbours, and the 6,000 links at once of `informed`, where
//! `FINGERPOST_FULL_SIZE` is set; a twentieth of them otherwise.

use std::collections::HashSet;
use std::env;

use lab::situation::routes::{self, Family};
use lab::situation::{links, neighbours};

use crate::{CIDR_ROUTES, INET_ROUTES, World};

/// How many of so many are taken.
pub fn size(full: usize) -> usize {
    if env::var_os("FINGERPOST_FULL_SIZE").is_some() {
        full
    } else {
        full / 20
    }
}

/// The names under a column, each of them once.
fn names(world: &World, column: &str) -> HashSet<String> {
    let words = format!("-v2c -c public -Cr50 127.0.0.1:1161 {column}");
    let rows = world.walk("snmpbulkwalk", &words);
    let count = rows.len();
    let names: HashSet<String> = rows.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), count, "a name came twice");
    names
}

#[test]
fn every_route_exactly_once() {
    let Some(world) = World::new("once", &["snmpbulkwalk"]) else {
        return;
    };
    let count = size(1_000_000);
    routes::build(&world.netns, Family::V4, count).unwrap();
    let daemon = world.up("");
    let prefixes = routes::prefixes(Family::V4, count).unwrap();
    let text = |prefix: &ipnet::IpNet| prefix.addr().to_string();
    let inet = names(&world, &format!("{INET_ROUTES}.1.8"));
    let destinations: HashSet<String> = inet
        .iter()
        .filter_map(|name| {
            // .1.8.1(ipv4).4.a.b.c.d.length
            let rest = name.strip_prefix(INET_ROUTES)?.strip_prefix(".1.8.1.4.")?;
            Some(rest.split('.').take(5).collect::<Vec<_>>().join("."))
        })
        .collect();
    for prefix in &prefixes {
        let wanted = format!("{}.{}", text(prefix), prefix.prefix_len());
        assert!(destinations.contains(&wanted), "{wanted}");
    }
    let cidr = names(&world, &format!("{CIDR_ROUTES}.1.6"));
    let destinations: HashSet<String> = cidr
        .iter()
        .filter_map(|name| {
            let rest = name.strip_prefix(CIDR_ROUTES)?.strip_prefix(".1.6.")?;
            Some(rest.split('.').take(8).collect::<Vec<_>>().join("."))
        })
        .collect();
    for prefix in &prefixes {
        let wanted = format!("{}.{}", text(prefix), prefix.netmask());
        assert!(destinations.contains(&wanted), "{wanted}");
    }
    assert!(cidr.len() >= count && inet.len() >= cidr.len());
    daemon.end();
}

#[test]
fn addresses_of_many_interfaces_and_many_neighbours() {
    let Some(world) = World::new("many", &["snmpbulkwalk"]) else {
        return;
    };
    let (interfaces, others) = (size(4_000), size(100_000));
    links::build(&world.netns, interfaces).unwrap();
    neighbours::build(&world.netns, others).unwrap();
    let daemon = world.up("");
    let addresses = names(&world, ".1.3.6.1.2.1.4.20.1.1");
    assert!(addresses.len() > interfaces, "{}", addresses.len());
    let media = names(&world, ".1.3.6.1.2.1.4.22.1.2");
    assert_eq!(media.len(), others);
    let octets = names(&world, ".1.3.6.1.2.1.31.1.1.1.6");
    assert!(octets.len() > interfaces);
    daemon.end();
}
