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

#[test]
fn every_column_of_every_table_can_be_asked_for() {
    let writer = filled(3);
    let namespace = Namespace::new(&writer);
    for (table, columns) in fingerpost_query::tables() {
        for column in columns {
            namespace.rows(&format!("select {column} from {table} limit 50"));
        }
    }
    assert!(view::columns(Object::Link).len() > 100);
}
