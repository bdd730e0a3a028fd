//! What the groups beside IF-MIB, addresses, neighbours and routes are to
//! say: each table made the obvious way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use table::row::neighbour::state;
use table::{Endpoint, KindData, Link, LinkLayerAddress, PortData, Reach, Socket, Tables};

use crate::{Expected, inet, integer, is_link_local};

pub fn prefixes(tables: &Tables) -> Expected {
    let mut rows = BTreeMap::new();
    for row in tables.addresses.iter() {
        let net = IpNet::new(row.peer.unwrap_or(row.local), row.prefix_len);
        let net = net.unwrap().trunc();
        let len = u32::from(net.prefix_len());
        let name = [vec![row.link], inet(Some(net.addr()), None), vec![len]].concat();
        let origin = match net.addr() {
            address if is_link_local(address) => 3,
            _ => 2,
        };
        rows.insert(name, integer(origin));
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 32, 1],
        columns: (5..=9).collect(),
        told: 5,
        rows,
    }
}

fn end(end: &Endpoint) -> Vec<u32> {
    let address = match end.reach {
        Reach::Any => vec![0, 0],
        Reach::Zoned => inet(Some(end.address), Some(end.zone)),
        Reach::V4 | Reach::V6 => inet(Some(end.address), None),
    };
    [address, vec![end.port.into()]].concat()
}

fn first() -> Endpoint {
    Endpoint {
        reach: Reach::Any,
        address: IpAddr::from([0, 0, 0, 0]),
        zone: 0,
        port: 0,
    }
}

pub fn connections(tables: &Tables) -> Expected {
    let states = [0, 5, 3, 4, 6, 7, 11, 1, 8, 9, 2, 10, 4];
    let all = tables.host.sockets.connections_from((first(), first()));
    let rows = all.map(|one: &Socket| {
        let name = [end(&one.local), end(&one.remote)].concat();
        (name, integer(states[usize::from(one.state)]))
    });
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 6, 19, 1],
        columns: vec![7, 8],
        told: 7,
        rows: rows.collect(),
    }
}

pub fn listeners(tables: &Tables) -> Expected {
    let all = tables.host.sockets.listeners_from(first());
    let rows = all.map(|one| (end(&one.local), "Gauge32(0)".to_owned()));
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 6, 20, 1],
        columns: vec![4],
        told: 4,
        rows: rows.collect(),
    }
}

pub fn endpoints(tables: &Tables) -> Expected {
    let all = tables.host.sockets.udp_from((first(), first(), 0));
    let rows = all.map(|one| {
        let name = [end(&one.local), end(&one.remote), vec![one.inode]].concat();
        (name, "Gauge32(0)".to_owned())
    });
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 7, 7, 1],
        columns: vec![8],
        told: 8,
        rows: rows.collect(),
    }
}

pub fn ip_interfaces(tables: &Tables) -> Expected {
    let links = tables.links.iter().map(|link| link.index);
    let rows = links.filter_map(|link| {
        let set = tables.host.ip_interfaces.get(&link)?;
        set.v4?;
        Some((vec![link], integer(1)))
    });
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 4, 28, 1],
        columns: vec![2, 3, 4],
        told: 3,
        rows: rows.collect(),
    }
}

/// Own addresses, that for all, and what the device's lists have: at ports
/// of a bridge and at bridges, of that only groups.
pub fn receive_addresses(tables: &Tables) -> Expected {
    let mut rows = BTreeMap::new();
    for link in tables.links.iter() {
        let name = |address: LinkLayerAddress| {
            let octets = address.octets();
            let head = [link.index, octets.len() as u32];
            let octets = octets.iter().map(|octet| u32::from(*octet));
            head.into_iter().chain(octets).collect::<Vec<u32>>()
        };
        let is_bridged = link.master.is_some() || link.kind.as_deref() == Some("bridge");
        for entry in tables.fdb.of_link(link.index) {
            let is_group = matches!(entry.lladdr.octets()[0], 1 | 0x33);
            let is_told = link.hardware == 1 && entry.master.is_none();
            if is_told && (is_group || !is_bridged) {
                rows.insert(name(entry.lladdr), integer(2));
            }
        }
        for own in [link.address, link.broadcast] {
            if !own.is_none() {
                rows.insert(name(own), integer(3));
            }
        }
    }
    Expected {
        entry: &[1, 3, 6, 1, 2, 1, 31, 1, 4, 1],
        columns: vec![2, 3],
        told: 3,
        rows,
    }
}

/// The bridge that the default context shows: of the masters of entries the
/// lowest, if it is one.
fn shown(tables: &Tables) -> Option<&Link> {
    let masters: BTreeSet<u32> = tables.fdb.iter().filter_map(|entry| entry.master).collect();
    let link = tables.links.get(*masters.first()?)?;
    matches!(link.kind_data, KindData::Bridge(_)).then_some(link)
}

fn filters(link: &Link) -> bool {
    match &link.kind_data {
        KindData::Bridge(bridge) => bridge.vlan_filtering == Some(1),
        _ => false,
    }
}

fn number(tables: &Tables, link: u32) -> u16 {
    match tables.links.get(link).map(|link| &link.slave_data) {
        Some(PortData::Bridge(port)) => port.no.unwrap(),
        _ => 0,
    }
}

pub fn of_bridge(tables: &Tables) -> [Expected; 3] {
    let (mut ports, mut by_address, mut by_vlan) =
        <(BTreeMap<_, _>, BTreeMap<_, _>, BTreeMap<_, _>)>::default();
    if let Some(bridge) = shown(tables) {
        for link in tables.links.iter() {
            let number = u32::from(number(tables, link.index));
            if link.master == Some(bridge.index) && number != 0 {
                ports
                    .entry(vec![number])
                    .or_insert(Vec::new())
                    .push(link.index);
            }
        }
        let stations: BTreeMap<_, _> = tables
            .fdb
            .iter()
            .filter(|entry| entry.master == Some(bridge.index))
            .map(|entry| ((entry.lladdr, entry.vlan), entry))
            .collect();
        for ((lladdr, vlan), entry) in stations {
            let status = match entry.state {
                all if all & state::PERMANENT != 0 => 4,
                all if all & state::NOARP != 0 => 5,
                _ => 3,
            };
            let octets: Vec<u32> = lladdr
                .octets()
                .iter()
                .map(|octet| u32::from(*octet))
                .collect();
            if let Some(vlan) = vlan.filter(|_| filters(bridge)) {
                let name = [vec![u32::from(vlan)], octets.clone()].concat();
                by_vlan.insert(name, integer(status));
            }
            by_address.entry(octets).or_insert(integer(status));
        }
    }
    [
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1],
            columns: (1..=5).collect(),
            told: 1,
            rows: ports
                .into_keys()
                .map(|name: Vec<u32>| (name.clone(), integer(name[0])))
                .collect(),
        },
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1],
            columns: vec![1, 2, 3],
            told: 3,
            rows: by_address,
        },
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1],
            columns: vec![2, 3],
            told: 3,
            rows: by_vlan,
        },
    ]
}

pub fn vlans(tables: &Tables) -> [Expected; 2] {
    let bridge = shown(tables).filter(|link| filters(link));
    let bridge = bridge.map(|link| link.index);
    let all = tables.host.bridge_vlans.from(&(0, 0));
    let all = all.filter(|((of, _), _)| Some(*of) == bridge);
    let vlans: Vec<u32> = all.map(|((_, vlan), _)| (*vlan).into()).collect();
    let rows = |head: &[u32], told: &str| {
        let name = |vlan: &u32| ([head, &[*vlan]].concat(), told.to_owned());
        vlans.iter().map(name).collect::<BTreeMap<_, _>>()
    };
    [
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1],
            columns: vec![3, 4, 5, 6, 7],
            told: 6,
            rows: rows(&[0], "Integer(2)"),
        },
        Expected {
            entry: &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1],
            columns: vec![1, 2, 3, 4, 5],
            told: 5,
            rows: rows(&[], "Integer(1)"),
        },
    ]
}
