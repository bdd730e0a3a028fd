//! The walk against the obvious: a list of all names and values, made row
//! by row and sorted.

#[cfg(test)]
mod more;
#[cfg(test)]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::{Ipv4Net, Ipv6Net};
use more::{
    connections, endpoints, ip_interfaces, listeners, of_bridge, prefixes, receive_addresses, vlans,
};
use proptest::prelude::*;
use support::{Binding, Rest, any_tables, get, walk_from};
use table::{NextHop, RoutePlace, RouteRef, Tables};

/// Names of rows and the value of one of their columns, as the RFCs say.
pub(crate) struct Expected {
    pub(crate) entry: &'static [u32],
    pub(crate) columns: Vec<u32>,
    /// Which column is compared by value.
    pub(crate) told: u32,
    pub(crate) rows: BTreeMap<Vec<u32>, String>,
}

pub(crate) fn octets(address: IpAddr) -> Vec<u32> {
    match address {
        IpAddr::V4(v4) => v4.octets().map(u32::from).to_vec(),
        IpAddr::V6(v6) => v6.octets().map(u32::from).to_vec(),
    }
}

pub(crate) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80)
}

/// Type, length and octets.
pub(crate) fn inet(address: Option<IpAddr>, zone: Option<u32>) -> Vec<u32> {
    let Some(address) = address else {
        return vec![0, 0];
    };
    let mut all = octets(address);
    let kind = match zone {
        Some(zone) if is_link_local(address) => {
            all.extend(zone.to_be_bytes().map(u32::from));
            4
        }
        _ if address.is_ipv6() => 2,
        _ => 1,
    };
    [vec![kind, all.len() as u32], all].concat()
}

pub(crate) fn integer(number: impl TryInto<i32>) -> String {
    format!("Integer({})", number.try_into().unwrap_or(i32::MAX))
}

fn main_routes(tables: &Tables) -> Vec<(u32, RouteRef<'_>)> {
    let all = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    let defaults = all.map(RoutePlace::first_of);
    let runs = defaults.map(|first| tables.routes.run(254, &first).collect::<Vec<_>>());
    runs.concat()
}

fn hops<'a>(route: &RouteRef<'a>) -> Vec<Option<&'a NextHop>> {
    let hops = route.body.next_hops.as_slice();
    if hops.is_empty() {
        vec![None]
    } else {
        hops.iter().map(Some).collect()
    }
}

fn inet_routes(tables: &Tables) -> Expected {
    let mut rows = BTreeMap::new();
    for (ordinal, route) in main_routes(tables) {
        let mut named = BTreeSet::new();
        for (at, hop) in hops(&route).into_iter().enumerate() {
            let hop_name = inet(hop.and_then(|hop| hop.gateway), hop.map(|hop| hop.link));
            let is_repeat = !named.insert(hop_name.clone());
            let plain_metric = if route.prefix.addr().is_ipv6() {
                1_024
            } else {
                0
            };
            let is_plain = (route.tos, route.metric, ordinal) == (0, plain_metric, 1 << 31);
            let policy = if is_plain && !is_repeat {
                vec![2, 0, 0]
            } else {
                let repeat = if is_repeat { at as u32 + 1 } else { 0 };
                vec![6, 0, 0, route.tos.into(), route.metric, ordinal, repeat]
            };
            let name = [
                inet(Some(route.prefix.addr()), None),
                vec![route.prefix.prefix_len().into()],
                policy,
                hop_name,
            ]
            .concat();
            let link = hop.map_or(0, |hop| hop.link);
            assert!(rows.insert(name, integer(link)).is_none(), "a name twice");
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 24, 7, 1],
        columns: (7..=17).collect(),
        told: 7,
        rows,
    }
}

fn v4_gateway(hop: Option<&NextHop>) -> Vec<u32> {
    match hop.and_then(|hop| hop.gateway) {
        Some(gateway @ IpAddr::V4(_)) => octets(gateway),
        _ => vec![0; 4],
    }
}

fn cidr_routes(tables: &Tables) -> Expected {
    let mut rows = BTreeMap::new();
    for (_, route) in main_routes(tables) {
        let ipnet::IpNet::V4(prefix) = route.prefix else {
            continue;
        };
        for hop in hops(&route) {
            let name = [
                octets(prefix.addr().into()),
                octets(prefix.netmask().into()),
                vec![route.tos.into()],
                v4_gateway(hop),
            ]
            .concat();
            // Routes come as the kernel prefers them: the first stays.
            rows.entry(name).or_insert(integer(route.metric));
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 24, 4, 1],
        columns: (1..=16).collect(),
        told: 11,
        rows,
    }
}

fn oldest_routes(tables: &Tables) -> Expected {
    let mut best: BTreeMap<Vec<u32>, (u8, String)> = BTreeMap::new();
    for (_, route) in main_routes(tables) {
        if route.prefix.addr().is_ipv6() {
            continue;
        }
        let len = route.prefix.prefix_len();
        let name = octets(route.prefix.addr());
        if best.get(&name).is_none_or(|(other, _)| *other < len) {
            best.insert(name, (len, integer(route.metric)));
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 21, 1],
        columns: (1..=13).collect(),
        told: 3,
        rows: best
            .into_iter()
            .map(|(name, (_, told))| (name, told))
            .collect(),
    }
}

fn addresses(tables: &Tables) -> [Expected; 2] {
    let (mut v4, mut all) = (BTreeMap::new(), BTreeMap::new());
    // By link: the lowest index stays.
    for row in tables.addresses.iter() {
        if row.local.is_ipv4() {
            v4.entry(octets(row.local)).or_insert(integer(row.link));
        }
        let name = inet(Some(row.local), Some(row.link));
        all.entry(name).or_insert(integer(row.link));
    }
    [
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 4, 20, 1],
            columns: (1..=5).collect(),
            told: 2,
            rows: v4,
        },
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 4, 34, 1],
            columns: (3..=11).collect(),
            told: 3,
            rows: all,
        },
    ]
}

fn neighbours(tables: &Tables) -> [Expected; 2] {
    let (mut media, mut physical) = (BTreeMap::new(), BTreeMap::new());
    for row in tables.neighbours.iter() {
        if row.proxy || row.state == 0x40 {
            continue;
        }
        let kind = match row.state {
            0x80 => 4,
            0x20 => 2,
            _ => 3,
        };
        if row.address.is_ipv4() {
            media.insert(
                [vec![row.link], octets(row.address)].concat(),
                integer(kind),
            );
        }
        let name = [vec![row.link], inet(Some(row.address), None)].concat();
        physical.insert(name, integer(kind));
    }
    [
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 4, 22, 1],
            columns: (1..=4).collect(),
            told: 4,
            rows: media,
        },
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 4, 35, 1],
            columns: (4..=8).collect(),
            told: 6,
            rows: physical,
        },
    ]
}

fn stack(tables: &Tables) -> Expected {
    let mut pairs = BTreeSet::new();
    let is_there = |index: &u32| tables.links.get(*index).is_some();
    for link in tables.links.iter() {
        pairs.extend(
            link.master
                .filter(is_there)
                .map(|master| (master, link.index)),
        );
        let below = link.lower.filter(|lower| *lower != link.index);
        pairs.extend(below.filter(is_there).map(|lower| (link.index, lower)));
    }
    for link in tables.links.iter() {
        let index = link.index;
        if !pairs
            .iter()
            .any(|&(higher, lower)| lower == index && higher != 0)
        {
            pairs.insert((0, index));
        }
        if !pairs
            .iter()
            .any(|&(higher, lower)| higher == index && lower != 0)
        {
            pairs.insert((index, 0));
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 31, 1, 2, 1],
        columns: vec![3],
        told: 3,
        rows: pairs
            .into_iter()
            .map(|(a, b)| (vec![a, b], integer(1)))
            .collect(),
    }
}

fn routers(tables: &Tables) -> Expected {
    let mut rows = BTreeMap::new();
    for (_, route) in main_routes(tables) {
        if route.prefix.prefix_len() != 0 {
            continue;
        }
        for hop in hops(&route).into_iter().flatten() {
            if hop.gateway.is_some() {
                let name = [inet(hop.gateway, Some(hop.link)), vec![hop.link]].concat();
                rows.insert(name, integer(0));
            }
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 37, 1],
        columns: vec![4, 5],
        told: 5,
        rows,
    }
}

fn interfaces(tables: &Tables) -> Expected {
    let rows = tables.links.iter();
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 2, 2, 1],
        // Without a sample there are no counters.
        columns: (1..=9).chain(21..=22).collect(),
        told: 7,
        rows: rows
            .map(|link| (vec![link.index], integer(2 - (link.index % 2) as i32)))
            .collect(),
    }
}

fn expected(tables: &Tables) -> Vec<Expected> {
    let mut all = vec![
        prefixes(tables),
        connections(tables),
        listeners(tables),
        endpoints(tables),
        ip_interfaces(tables),
        receive_addresses(tables),
        interfaces(tables),
        inet_routes(tables),
        cidr_routes(tables),
        oldest_routes(tables),
        stack(tables),
        routers(tables),
    ];
    all.extend(addresses(tables));
    all.extend(neighbours(tables));
    all.extend(of_bridge(tables));
    all.extend(vlans(tables));
    all
}

/// The bindings of a walk that belong to a table.
fn of_entry<'a>(walk: &'a [Binding], entry: &[u32]) -> Vec<&'a Binding> {
    walk.iter()
        .filter(|(name, _)| name.starts_with(entry))
        .collect()
}

fn compare(tables: &Tables, walk: &[Binding]) -> Result<(), TestCaseError> {
    for table in expected(tables) {
        let names: Vec<Vec<u32>> = table
            .columns
            .iter()
            .flat_map(|column| {
                let rows = table.rows.keys();
                rows.map(|index| [table.entry, &[*column], index].concat())
            })
            .collect();
        let walked = of_entry(walk, table.entry);
        let walked_names: Vec<_> = walked.iter().map(|(name, _)| name.clone()).collect();
        prop_assert_eq!(walked_names, names);
        let head = [table.entry, &[table.told]].concat();
        let told: Vec<_> = of_entry(walk, &head)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        prop_assert_eq!(told, table.rows.values().collect::<Vec<_>>());
    }
    Ok(())
}

/// A name near one that is there: cut, longer, or with a number changed.
fn near(walk: &[Binding], which: usize, cut: usize, how: u8, number: u32) -> Vec<u32> {
    let mut name = walk[which % walk.len()].0.clone();
    let at = cut % name.len();
    match how {
        0 => name.truncate(at),
        1 => name.push(number),
        2 => name[at] = name[at].wrapping_add(1),
        3 => name[at] = name[at].wrapping_sub(1),
        _ => name[at] = number,
    }
    name
}

proptest! {
    #[test]
    fn a_walk_is_the_sorted_list_of_all(tables in any_tables()) {
        let rest = Rest::default();
        let objects = rest.objects(&tables);
        let walk = walk_from(&objects, &[], usize::MAX);
        prop_assert!(walk.windows(2).all(|pair| pair[0].0 < pair[1].0), "it goes backwards");
        compare(&tables, &walk)?;
        for (name, value) in &walk {
            prop_assert_eq!(&get(&objects, name), value, "get of {:?}", name);
        }
    }

    #[test]
    fn the_successor_of_any_name_is_the_next_of_the_walk(
        tables in any_tables(),
        probes in proptest::collection::vec(
            (any::<usize>(), any::<usize>(), 0u8..5, prop_oneof![0u32..300, any::<u32>()]),
            60,
        ),
    ) {
        let rest = Rest::default();
        let objects = rest.objects(&tables);
        let walk = walk_from(&objects, &[], usize::MAX);
        let near_ones = probes.iter().map(|&(which, cut, how, number)| near(&walk, which, cut, how, number));
        let own = walk.iter().map(|(name, _)| name.clone());
        for name in near_ones.chain(own) {
            let next = walk.get(walk.partition_point(|(other, _)| *other <= name));
            let found = walk_from(&objects, &name, 1);
            prop_assert_eq!(found.first(), next, "behind {:?}", name);
            if walk.binary_search_by(|(other, _)| other.cmp(&name)).is_err() {
                let value = get(&objects, &name);
                prop_assert!(value.starts_with("NoSuch"), "{:?}: {}", name, value);
            }
        }
    }
}

#[test]
fn what_is_no_object_and_what_no_instance() {
    let tables = Tables::default();
    let rest = Rest::default();
    let objects = rest.objects(&tables);
    let says = |name: &str| {
        let name: snmp::Oid = name.parse().unwrap();
        get(&objects, &name)
    };
    assert_eq!(says("1.3.6.1.2.1.1.3.0"), "TimeTicks(6000)");
    assert_eq!(says("1.3.6.1.2.1.1.3.1"), "NoSuchInstance");
    assert_eq!(says("1.3.6.1.2.1.1.3"), "NoSuchInstance");
    assert_eq!(says("1.3.6.1.2.1.2.2.1.2.7"), "NoSuchInstance");
    assert_eq!(says("1.3.6.1.2.1.2.2.1.23.7"), "NoSuchObject");
    assert_eq!(says("1.3.6.1.2.1.2.2.1"), "NoSuchObject");
    assert_eq!(says("1.3.6.1.2.1.99.1.0"), "NoSuchObject");
    assert_eq!(says(""), "NoSuchObject");
    assert_eq!(walk_from(&objects, &[u32::MAX; 128], 1), []);
    assert_eq!(walk_from(&objects, &[1, 3, 7], 1), []);
}
