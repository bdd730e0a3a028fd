//! The same values as net-snmp's snmpd gives, and a common poller.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use lab::situation::routes::{self, Family};
use lab::{Child, wait_until};

use crate::common::PATIENCE;
use crate::{CIDR_ROUTES, INET_ROUTES, World};

/// All of a table but the rows of the kernel's own (routes of protocol
/// `bgp` are those of the situation).
fn table(world: &World, port: u16, table: &str) -> BTreeMap<String, String> {
    let words = format!("-v2c -c public -t 20 -r 1 -Cr50 127.0.0.1:{port} {table}");
    world.walk("snmpbulkwalk", &words).into_iter().collect()
}

/// Which column of a table a name is of.
fn column(name: &str, table: &str) -> u32 {
    let rest = name.strip_prefix(table).unwrap();
    rest.split('.').nth(2).unwrap().parse().unwrap()
}

#[test]
fn routes_have_the_values_that_snmpd_gives() {
    for count in [1_000, 10_000] {
        let programs = ["snmpbulkwalk", "snmpd"];
        let Some(world) = World::new("values", &programs) else {
            return;
        };
        routes::build(&world.netns, Family::V4, count).unwrap();
        let daemon = world.up("");
        let snmpd = world.snmpd(&[]);
        for (oid, protocol_column, extra) in [
            // They have no ipCidrRouteAge; RFC 4292 has it, and 0 where
            // the age is not known.
            (CIDR_ROUTES, 7, vec![8]),
            (INET_ROUTES, 9, vec![]),
        ] {
            let theirs = table(&world, 1163, oid);
            let ours = table(&world, 1161, oid);
            let v4 = |name: &&String| oid == CIDR_ROUTES || is_v4_and_remote(name);
            let mut same = 0;
            for (name, value) in ours.iter().filter(|(name, _)| v4(name)) {
                let column = column(name, oid);
                let Some(their) = theirs.get(name) else {
                    assert!(extra.contains(&column), "only ours: {name} = {value}");
                    continue;
                };
                if column == protocol_column && value != their {
                    // They say local(2) of whatever is not the kernel's;
                    // bgp(14) it is.
                    assert_eq!(
                        (value.as_str(), their.as_str()),
                        ("INTEGER: 14", "INTEGER: 2")
                    );
                } else {
                    assert_eq!(value, their, "{name}");
                }
                same += 1;
            }
            // No row of theirs is missing. (Their IPv6 rows have those of
            // the local table among them; ours are the main table, as the
            // default context has it.)
            let missing = theirs
                .keys()
                .filter(v4)
                .find(|name| !ours.contains_key(*name));
            assert_eq!(missing, None);
            assert!(same >= count * 11, "{oid}: {same}");
        }
        drop(snmpd);
        daemon.end();
    }
}

/// inetCidrRouteDestType ipv4(1), and not one of the networks that are on
/// the links themselves: of those RFC 4292 wants a next hop of no octets,
/// and they have 0.0.0.0, told apart by the link.
fn is_v4_and_remote(name: &str) -> bool {
    let rest = name.strip_prefix(INET_ROUTES).unwrap();
    let parts: Vec<&str> = rest.split('.').collect();
    parts.get(3) == Some(&"1") && parts.get(5..7) != Some(&["198", "18"])
}

#[test]
fn snmp_exporter_scrapes_us() {
    let program = "prometheus-snmp-exporter";
    let Some(world) = World::new("exporter", &["snmpget", program]) else {
        return;
    };
    world
        .netns
        .ip_batch("link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n")
        .unwrap();
    let daemon = world.up("[snmp]\nlisten = ['127.0.0.1:161']\n");
    let config = world.write("snmp.yml", &exporter());
    let mut command = world.netns.command(program);
    command
        .args([
            "--config.file",
            &config,
            "--web.listen-address=127.0.0.1:9116",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _exporter = Child::spawn(command).unwrap();
    let scraped = wait_until(PATIENCE, "a scrape", || {
        let scrape = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect("127.0.0.1:9116")?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            stream.write_all(
                b"GET /snmp?target=127.0.0.1&module=if_mib HTTP/1.0\r\nHost: x\r\n\r\n",
            )?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = world.netns.inside(scrape).unwrap();
        text.ok().filter(|text| text.contains("200 OK"))
    })
    .unwrap();
    for (name, ..) in COLUMNS {
        for link in ["e0", "e1"] {
            let line = format!("{name}{{ifDescr=\"{link}\",");
            assert!(scraped.contains(&line), "{line}: {scraped}");
        }
    }
    assert!(scraped.contains("sysUpTime "), "{scraped}");
    daemon.end();
}

/// Columns of IF-MIB as its generator's `if_mib` has them: name, its number
/// below ifEntry or ifXEntry, and its type.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("ifType", "2.2.1.3", "gauge"),
    ("ifMtu", "2.2.1.4", "gauge"),
    ("ifSpeed", "2.2.1.5", "gauge"),
    ("ifPhysAddress", "2.2.1.6", "PhysAddress48"),
    ("ifAdminStatus", "2.2.1.7", "gauge"),
    ("ifOperStatus", "2.2.1.8", "gauge"),
    ("ifLastChange", "2.2.1.9", "gauge"),
    ("ifInOctets", "2.2.1.10", "counter"),
    ("ifInUcastPkts", "2.2.1.11", "counter"),
    ("ifInDiscards", "2.2.1.13", "counter"),
    ("ifInErrors", "2.2.1.14", "counter"),
    ("ifInUnknownProtos", "2.2.1.15", "counter"),
    ("ifOutOctets", "2.2.1.16", "counter"),
    ("ifOutDiscards", "2.2.1.19", "counter"),
    ("ifOutErrors", "2.2.1.20", "counter"),
    ("ifInMulticastPkts", "31.1.1.1.2", "counter"),
    ("ifHCInOctets", "31.1.1.1.6", "counter"),
    ("ifHCInUcastPkts", "31.1.1.1.7", "counter"),
    ("ifHCOutOctets", "31.1.1.1.10", "counter"),
    ("ifHCOutUcastPkts", "31.1.1.1.11", "counter"),
    ("ifHighSpeed", "31.1.1.1.15", "gauge"),
    ("ifPromiscuousMode", "31.1.1.1.16", "gauge"),
    ("ifConnectorPresent", "31.1.1.1.17", "gauge"),
    ("ifCounterDiscontinuityTime", "31.1.1.1.19", "gauge"),
];

/// What the generator makes of that: the whole tables are walked, each link
/// is named.
fn exporter() -> String {
    let mut text = "if_mib:\n  walk: [1.3.6.1.2.1.2, 1.3.6.1.2.1.31.1.1]\n  \
                    get: [1.3.6.1.2.1.1.3.0]\n  version: 2\n  auth: {community: public}\n  \
                    metrics:\n  - {name: sysUpTime, oid: 1.3.6.1.2.1.1.3, type: gauge, help: x}\n"
        .to_owned();
    for (name, column, kind) in COLUMNS {
        text += &format!(
            "  - name: {name}\n    oid: 1.3.6.1.2.1.{column}\n    type: {kind}\n    help: x\n    \
             indexes: [{{labelname: ifIndex, type: gauge}}]\n    lookups:\n    \
             - {{labels: [ifIndex], labelname: ifDescr, oid: 1.3.6.1.2.1.2.2.1.2, \
             type: DisplayString}}\n"
        );
    }
    text
}
