//! Statements as people write them for osquery's network tables.

use view::Object;

use crate::tables::{Namespace, filled};

#[test]
fn statements_for_osquery_run_after_renaming_routes() {
    let writer = filled(3);
    let namespace = Namespace::new(&writer);
    let default = namespace.rows(
        "select destination, netmask, gateway, interface, metric, type from osquery_routes \
         where destination = '0.0.0.0' and netmask = 0",
    );
    assert_eq!(default, ["0.0.0.0,0,192.0.2.1,l1,0,gateway"]);
    let one = namespace.rows(
        "SELECT interface, address, mask, type FROM interface_addresses \
         WHERE interface = 'l7' AND address LIKE '10.%' ORDER BY address LIMIT 2",
    );
    assert_eq!(
        one,
        [
            "l7,10.1.7.0,255.255.255.0,manual",
            "l7,10.1.7.1,255.255.255.255,manual"
        ]
    );
    let details = namespace
        .rows("SELECT interface, mac, mtu, type FROM interface_details WHERE interface = 'l7'");
    assert_eq!(details, ["l7,02:00:00:00:ab:07,1507,ether"]);
    let joined = namespace.rows(
        "SELECT d.interface, a.address FROM interface_details d \
         JOIN interface_addresses a USING (interface) WHERE d.mac = '02:00:00:00:ab:07'",
    );
    assert_eq!(joined.len(), 10);
    let cache = namespace.rows("SELECT address, mac, interface, permanent FROM arp_cache");
    assert!(cache.len() > 100);
    // Two hosts with one address of the link layer, as one looks for them.
    let twins = namespace.rows(
        "SELECT mac, count(address) AS n FROM arp_cache GROUP BY mac HAVING n > 1 ORDER BY n DESC",
    );
    assert!(!twins.is_empty());
    let inside = namespace.rows(
        "SELECT address FROM interface_addresses WHERE in_cidr_block('10.1.7.0/24', address)",
    );
    assert_eq!(inside.len(), 10);
}

/// Statements as they stand in osquery's packs and manual, and in those of
/// programs that ask it, of its network tables: `routes` renamed.
const STATEMENTS: [(&str, Rows); 18] = [
    ("select * from arp_cache;", Rows::Some),
    (
        "SELECT address, mac, COUNT(mac) AS mac_count FROM arp_cache GROUP BY mac HAVING count(mac) > 1;",
        Rows::Some,
    ),
    (
        "SELECT address, mac, mac_count FROM (SELECT address, mac, COUNT(mac) AS mac_count \
         FROM arp_cache GROUP BY mac) WHERE mac_count > 1;",
        Rows::Some,
    ),
    (
        "SELECT address, mac, interface, permanent FROM arp_cache WHERE permanent = 0",
        Rows::Some,
    ),
    (
        "SELECT address FROM arp_cache WHERE permanent = '0' AND address NOT LIKE '224.%'",
        Rows::Some,
    ),
    (
        "SELECT * FROM arp_cache WHERE mac = '02:00:00:00:AB:07' AND interface != 'lo'",
        Rows::Any,
    ),
    (
        "select * from interface_addresses where interface = 'l7'",
        Rows::Some,
    ),
    (
        "SELECT interface, address, mask, type FROM interface_addresses WHERE address != '';",
        Rows::Some,
    ),
    (
        "select ia.interface, address, mac, ibytes, obytes from interface_details id join \
         interface_addresses ia on ia.interface = id.interface where length(mac) > 0 and \
         mac != '00:00:00:00:00:00' order by (ibytes + obytes) desc;",
        Rows::Some,
    ),
    (
        "SELECT address, mac, id.interface FROM interface_details AS id, interface_addresses AS ia \
         WHERE id.interface = ia.interface;",
        Rows::Some,
    ),
    (
        "SELECT mac FROM interface_details WHERE interface in (SELECT DISTINCT interface FROM \
         interface_addresses WHERE interface NOT IN ('lo')) LIMIT 1",
        Rows::Some,
    ),
    (
        "SELECT interface, mac, type, mtu, metric, flags, ipackets, opackets, ibytes, obytes, \
         ierrors, oerrors, idrops, odrops, collisions, last_change, link_speed, pci_slot \
         FROM interface_details;",
        Rows::Some,
    ),
    (
        "SELECT id.interface, id.mac, ia.address, ia.mask, ia.broadcast from interface_details as id, \
         interface_addresses as ia where ia.interface = id.interface and ia.broadcast > '';",
        Rows::Any,
    ),
    (
        "SELECT destination, netmask, gateway, source, flags, interface, mtu, metric, type, hopcount FROM osquery_routes",
        Rows::Some,
    ),
    (
        "SELECT interface, gateway, destination FROM osquery_routes WHERE destination IN ('0.0.0.0', '::')",
        Rows::Some,
    ),
    (
        "SELECT * FROM osquery_routes WHERE destination = '0.0.0.0' AND netmask = '0' AND type = 'gateway'",
        Rows::Some,
    ),
    (
        "SELECT COUNT(*) AS n, interface FROM osquery_routes WHERE netmask > 8 GROUP BY interface ORDER BY n DESC",
        Rows::Some,
    ),
    (
        "SELECT r.gateway, a.mac FROM osquery_routes r JOIN arp_cache a ON a.address = r.gateway \
         WHERE r.destination = '0.0.0.0'",
        Rows::Any,
    ),
];

/// How many rows are had.
#[derive(PartialEq)]
enum Rows {
    Some,
    Any,
}

#[test]
fn osquery_s_own_statements_run_after_renaming() {
    let writer = filled(3);
    let namespace = Namespace::new(&writer);
    for (statement, expected) in STATEMENTS {
        let rows = namespace.rows(statement);
        assert!(expected == Rows::Any || !rows.is_empty(), "{statement}");
    }
    // Compared as osquery's columns are: a text with a number, and the other
    // way about; link-layer addresses in either case.
    for (one, other) in [
        (
            "arp_cache where permanent = 1",
            "arp_cache where permanent = '1'",
        ),
        (
            "osquery_routes where netmask = 24",
            "osquery_routes where netmask = '24'",
        ),
        (
            "interface_details where mac = '02:00:00:00:ab:07'",
            "interface_details where mac = '02:00:00:00:AB:07'",
        ),
    ] {
        let count = |from: &str| namespace.rows(&format!("select count(*) from {from}"));
        assert_eq!(count(one), count(other), "{one}");
        assert_ne!(count(one), ["0"], "{one}");
    }
}

#[test]
fn every_column_of_every_table_can_be_asked_for() {
    let writer = filled(3);
    let namespace = Namespace::new(&writer);
    for (table, columns) in fingerpost_query::tables() {
        // Another process has these (`nat`).
        if table.starts_with("nat_") {
            continue;
        }
        for column in columns {
            namespace.rows(&format!("select {column} from {table} limit 50"));
        }
    }
    assert!(view::columns(Object::Link).len() > 100);
}
