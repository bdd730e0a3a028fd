//! Which part of a table is read: of the rows that are wanted, what the
//! kernel can pick out by itself. Pure; called by [`super::look`].

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use netlink::request::Dump;
use table::{AF_INET, AF_INET6};
use words::Object;

use super::key::Key;
use super::resolved::TO_BE_MADE;
use crate::rows::undo::dumps;

/// So many links or tables of a family are asked for one by one; of more
/// than these all are listed.
const MAX_PARTS: usize = 8;

/// What lists all rows of some keys, and as little beside them as it can.
pub fn dumps_of(object: Object, keys: &HashSet<&Key>) -> Vec<Dump> {
    match object {
        Object::Addr => on_links(keys, &|key| match key {
            Key::Address(link, local, ..) => Some((family(local), *link, false)),
            _ => None,
        })
        .into_iter()
        .map(|(family, link, _)| Dump::Addresses { family, link })
        .collect(),
        Object::Neigh => on_links(keys, &|key| match key {
            Key::Neighbour(key) => Some((family(&key.address), key.link, key.proxy)),
            _ => None,
        })
        .into_iter()
        .map(|(family, link, proxy)| Dump::Neighbours {
            family,
            link,
            master: None,
            proxy,
        })
        .collect(),
        Object::Route => routes(keys),
        Object::Rule => {
            let families = keys.iter().filter_map(|key| match key {
                Key::Rule(family, _) => Some(*family),
                _ => None,
            });
            let families: BTreeSet<u8> = families.collect();
            let rules = families.into_iter();
            rules.map(|family| Dump::Rules { family }).collect()
        }
        Object::Nexthop | Object::Fdb | Object::Link => dumps(object, None),
    }
}

fn family(address: &IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}

/// Family, link and whether they are proxies, of rows on links.
type Part<Link> = (u8, Link, bool);

/// The parts of a table that rows are in. A link that is still to be made has
/// none.
fn on_links(
    keys: &HashSet<&Key>,
    part: &dyn Fn(&Key) -> Option<Part<u32>>,
) -> Vec<Part<Option<u32>>> {
    let parts = keys.iter().filter_map(|key| part(key));
    let parts: BTreeSet<_> = parts.filter(|(_, link, _)| *link < TO_BE_MADE).collect();
    if parts.len() <= MAX_PARTS {
        let parts = parts.into_iter();
        return parts
            .map(|(family, link, proxy)| (family, Some(link), proxy))
            .collect();
    }
    let whole: BTreeSet<_> = parts
        .into_iter()
        .map(|(family, _, proxy)| (family, None, proxy))
        .collect();
    whole.into_iter().collect()
}

fn routes(keys: &HashSet<&Key>) -> Vec<Dump> {
    let mut dumps = Vec::new();
    for is_v6 in [false, true] {
        let tables = keys.iter().filter_map(|key| match key {
            Key::Route { table, prefix, .. } => {
                (prefix.addr().is_ipv6() == is_v6).then_some(*table)
            }
            _ => None,
        });
        let tables: BTreeSet<u32> = tables.collect();
        let of = |table| Dump::Routes {
            family: if is_v6 { AF_INET6 } else { AF_INET },
            table,
            link: None,
            protocol: None,
            kind: None,
        };
        match tables.len() {
            0 => {}
            1..=MAX_PARTS => dumps.extend(tables.into_iter().map(|table| of(Some(table)))),
            _ => dumps.push(of(None)),
        }
    }
    dumps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(object: Object, keys: &[Key]) -> Vec<Dump> {
        dumps_of(object, &keys.iter().collect())
    }

    fn route(table: u32, prefix: &str) -> Key {
        Key::Route {
            table,
            prefix: prefix.parse().unwrap(),
            tos: 0,
            metric: 0,
            source: None,
        }
    }

    #[test]
    fn only_the_tables_and_families_that_are_wanted_are_read() {
        let dumps = of(
            Object::Route,
            &[
                route(254, "10.0.0.0/8"),
                route(254, "10.1.0.0/16"),
                route(100, "2001:db8::/32"),
            ],
        );
        let of_table = |family, table| Dump::Routes {
            family,
            table,
            link: None,
            protocol: None,
            kind: None,
        };
        assert_eq!(
            dumps,
            [of_table(AF_INET, Some(254)), of_table(AF_INET6, Some(100))]
        );
        // At the limit, and beyond it.
        let many = |count: usize| -> Vec<Key> {
            let tables = 1..=count as u32;
            tables.map(|table| route(table, "10.0.0.0/8")).collect()
        };
        assert_eq!(of(Object::Route, &many(MAX_PARTS)).len(), MAX_PARTS);
        assert_eq!(
            of(Object::Route, &many(MAX_PARTS + 1)),
            [of_table(AF_INET, None)]
        );
        assert_eq!(
            of(Object::Rule, &[Key::Rule(AF_INET6, 5)]),
            [Dump::Rules { family: AF_INET6 }]
        );
    }

    #[test]
    fn a_few_links_are_asked_one_by_one_and_none_that_is_not_there() {
        let address = |link| Key::Address(link, "10.0.0.1".parse().unwrap(), 24, None);
        let of_link = |link| Dump::Addresses {
            family: AF_INET,
            link,
        };
        assert_eq!(
            of(Object::Addr, &[address(5), address(TO_BE_MADE | 1)]),
            [of_link(Some(5))]
        );
        assert!(of(Object::Addr, &[address(TO_BE_MADE)]).is_empty());
        let many = |count: usize| -> Vec<Key> { (1..=count as u32).map(address).collect() };
        assert_eq!(of(Object::Addr, &many(MAX_PARTS)).len(), MAX_PARTS);
        assert_eq!(of(Object::Addr, &many(MAX_PARTS + 1)), [of_link(None)]);
    }
}
