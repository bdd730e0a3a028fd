//! What a row costs in tables a hundred times as large: the same, but for
//! the depth of the trees.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[cfg(test)]
mod support;

use std::ops::ControlFlow;

use snmp::Mib;
use support::{Rest, address, fdb, link};
use table::row::link::hardware;
use table::{Change, KindData, Link, LinkLayerAddress, Tables, Writer, touched};

const FEW: u32 = 1_000;
const MANY: u32 = 100_000;
/// Names told in a row.
const ROWS: usize = 200;

fn mac(number: u32) -> LinkLayerAddress {
    let [_, a, b, c] = number.to_be_bytes();
    LinkLayerAddress::new(&[2, 0, 0, a, b, c]).unwrap()
}

/// A bridge with so many stations, one in ten in a VLAN, a link with so many
/// addresses of one prefix, and so many links.
fn tables(rows: u32) -> Tables {
    let bridge = Link {
        index: 1,
        name: "br0".into(),
        kind_data: KindData::Bridge(Box::default()),
        ..Link::default()
    };
    let stations = (0..rows).map(|at| {
        let vlan = (at % 10 == 0).then_some(7);
        Change::PutFdb(fdb(2, Some(1), mac(at), vlan, 2))
    });
    let addresses = (0..rows).map(|at| {
        let local = std::net::Ipv4Addr::from(0x0a00_0000 + at).into();
        Change::PutAddress(address(2, local, 8))
    });
    let more = (3..rows).map(|index| {
        Change::PutLink(Link {
            hardware: hardware::ETHER,
            address: mac(index),
            ..link(index, None, None)
        })
    });
    let mut writer = Writer::default();
    writer
        .commit([
            Change::PutLink(bridge),
            Change::PutLink(link(2, Some(1), None)),
        ])
        .unwrap();
    writer
        .commit(stations.chain(addresses).chain(more))
        .unwrap();
    writer.tables().clone()
}

/// Nodes and rows looked at for some names behind a name; `None` in a build
/// that does not count.
fn cost(tables: &Tables, after: &[u32]) -> Option<u64> {
    let rest = Rest::default();
    let objects = rest.objects(tables);
    let before = touched();
    let mut told = 0;
    objects.walk(after, &mut |_, _| {
        told += 1;
        if told < ROWS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert_eq!(told, ROWS, "{after:?}");
    Some(touched()? - before?)
}

#[test]
fn a_row_costs_the_same_among_a_hundred_times_as_many() {
    let (few, many) = (tables(FEW), tables(MANY));
    let roots: [&[u32]; 6] = [
        // dot1dTpFdbTable, dot1qTpFdbTable (a tenth of the rows; its columns
        // follow each other).
        &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 1],
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1],
        // ipAddressTable and the one row of ipAddressPrefixTable before it.
        &[1, 3, 6, 1, 2, 1, 4, 32, 1],
        &[1, 3, 6, 1, 2, 1, 4, 34, 1, 5],
        // ifRcvAddressTable, behind the port of the bridge.
        &[1, 3, 6, 1, 2, 1, 31, 1, 4],
        &[1, 3, 6, 1, 2, 1, 25, 3, 4, 1],
    ];
    for root in roots {
        let (small, large) = (cost(&few, root), cost(&many, root));
        let Some((small, large)) = small.zip(large) else {
            continue;
        };
        assert!(
            large <= small * 2 + 500,
            "{root:?}: {small} looked at for {ROWS} rows of {FEW}, {large} of {MANY}"
        );
    }
}
