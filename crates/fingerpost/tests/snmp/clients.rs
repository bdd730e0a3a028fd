//! Stock clients of several makers, beside net-snmp's tools of the other
//! tests and snmp_exporter (which asks by gosnmp) in `peers`: pysnmp and
//! mrtg's cfgmaker; and what LibreNMS asks a router.

use std::collections::BTreeSet;

use crate::World;
use crate::common::said;

/// The host's own, which has Debian's libraries.
const PYTHON: &str = "/usr/bin/python3";

/// A walk by pysnmp, with a community and as a user of version 3: names and
/// values, a line each.
const PYSNMP: &str = r#"
import sys
from pysnmp.hlapi import *

user = UsmUserData('anna', 'pass phrase', 'pass phrase',
                   authProtocol=usmHMAC192SHA256AuthProtocol,
                   privProtocol=usmAesCfb128Protocol)
for who in [CommunityData('public', mpModel=1), user]:
    at = UdpTransportTarget(('127.0.0.1', 1161), timeout=10, retries=2)
    below = ObjectType(ObjectIdentity(sys.argv[1]))
    for failed, status, _, bindings in bulkCmd(
            SnmpEngine(), who, at, ContextData(), 0, 20, below,
            lexicographicMode=False, lookupMib=False):
        if failed or status:
            sys.exit(f'{failed} {status}')
        for name, value in bindings:
            print('.' + str(name), value.prettyPrint())
    print('end')
"#;

#[test]
fn pysnmp_walks_as_net_snmp_does() {
    let Some(world) = World::new("pysnmp", &[PYTHON, "snmpbulkwalk"]) else {
        return;
    };
    let has = world.netns.run(PYTHON, &["-c", "import pysnmp.hlapi"]);
    if has.is_err() {
        return lab::skip::skip("python3-pysnmp4 is not installed");
    }
    links(&world);
    world.user("anna", "SHA-256", "AES");
    let daemon = world.up("");
    let script = world.write("walk.py", PYSNMP);
    for table in [".1.3.6.1.2.1.2.2.1.2", ".1.3.6.1.2.1.4.24.7.1.7"] {
        let walked = world.netns.run(PYTHON, &[&script, &table[1..]]).unwrap();
        let walks: Vec<Vec<&str>> = walked
            .split_terminator("end\n")
            .map(|walk| {
                walk.lines()
                    .map(|line| line.split(' ').next().unwrap())
                    .collect()
            })
            .collect();
        let words = format!("-v2c -c public -t 10 127.0.0.1:1161 {table}");
        let theirs = world.walk("snmpbulkwalk", &words);
        let theirs: Vec<&str> = theirs.iter().map(|(name, _)| &**name).collect();
        assert!(theirs.len() >= 3, "{theirs:?}");
        assert_eq!(walks, [theirs.clone(), theirs]);
    }
    daemon.end();
}

fn links(world: &World) {
    let lines = "link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n\
                 link set lo up\naddr add 10.7.0.1/24 dev e0\n\
                 route add 10.8.0.0/16 via 10.7.0.2\nroute add 10.9.0.0/16 via 10.7.0.2\n";
    world.netns.ip_batch(lines).unwrap();
}

#[test]
fn cfgmaker_finds_the_interfaces_and_their_addresses() {
    let Some(world) = World::new("cfgmaker", &["cfgmaker"]) else {
        return;
    };
    links(&world);
    let daemon = world.up("[snmp]\nname = 'r1'\ncontact = 'noc'\n");
    let options = [
        "--no-down",
        "--show-op-down",
        "--snmp-options=:1161:10:2::2",
    ];
    let arguments = [&options[..], &["public@127.0.0.1"]].concat();
    let config = said(
        world
            .netns
            .command("cfgmaker")
            .args(arguments)
            .output()
            .unwrap(),
    );
    for part in [
        "### Interface 1 >>",
        "Descr: 'e0'",
        "Name: 'e0'",
        "Ip: '10.7.0.1'",
        "Target[127.0.0.1_",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    daemon.end();
}

/// What LibreNMS asks of a router when it finds it and then every five
/// minutes (its pages on discovery and polling modules), below which there
/// is something; with net-snmp's names.
const LIBRENMS: &[(&str, &str)] = &[
    // core, os
    ("sysDescr", ".1.3.6.1.2.1.1.1.0"),
    ("sysObjectID", ".1.3.6.1.2.1.1.2.0"),
    ("sysUpTime", ".1.3.6.1.2.1.1.3.0"),
    ("sysContact", ".1.3.6.1.2.1.1.4.0"),
    ("sysName", ".1.3.6.1.2.1.1.5.0"),
    ("sysLocation", ".1.3.6.1.2.1.1.6.0"),
    ("snmpEngineTime", ".1.3.6.1.6.3.10.2.1.3.0"),
    // ports
    ("ifNumber", ".1.3.6.1.2.1.2.1.0"),
    ("ifIndex", ".1.3.6.1.2.1.2.2.1.1"),
    ("ifDescr", ".1.3.6.1.2.1.2.2.1.2"),
    ("ifType", ".1.3.6.1.2.1.2.2.1.3"),
    ("ifMtu", ".1.3.6.1.2.1.2.2.1.4"),
    ("ifSpeed", ".1.3.6.1.2.1.2.2.1.5"),
    ("ifPhysAddress", ".1.3.6.1.2.1.2.2.1.6"),
    ("ifAdminStatus", ".1.3.6.1.2.1.2.2.1.7"),
    ("ifOperStatus", ".1.3.6.1.2.1.2.2.1.8"),
    ("ifLastChange", ".1.3.6.1.2.1.2.2.1.9"),
    ("ifInOctets", ".1.3.6.1.2.1.2.2.1.10"),
    ("ifInUcastPkts", ".1.3.6.1.2.1.2.2.1.11"),
    ("ifInNUcastPkts", ".1.3.6.1.2.1.2.2.1.12"),
    ("ifInDiscards", ".1.3.6.1.2.1.2.2.1.13"),
    ("ifInErrors", ".1.3.6.1.2.1.2.2.1.14"),
    ("ifInUnknownProtos", ".1.3.6.1.2.1.2.2.1.15"),
    ("ifOutOctets", ".1.3.6.1.2.1.2.2.1.16"),
    ("ifOutUcastPkts", ".1.3.6.1.2.1.2.2.1.17"),
    ("ifOutNUcastPkts", ".1.3.6.1.2.1.2.2.1.18"),
    ("ifOutDiscards", ".1.3.6.1.2.1.2.2.1.19"),
    ("ifOutErrors", ".1.3.6.1.2.1.2.2.1.20"),
    ("ifName", ".1.3.6.1.2.1.31.1.1.1.1"),
    ("ifHCInOctets", ".1.3.6.1.2.1.31.1.1.1.6"),
    ("ifHCInUcastPkts", ".1.3.6.1.2.1.31.1.1.1.7"),
    ("ifHCInMulticastPkts", ".1.3.6.1.2.1.31.1.1.1.8"),
    ("ifHCInBroadcastPkts", ".1.3.6.1.2.1.31.1.1.1.9"),
    ("ifHCOutOctets", ".1.3.6.1.2.1.31.1.1.1.10"),
    ("ifHCOutUcastPkts", ".1.3.6.1.2.1.31.1.1.1.11"),
    ("ifHCOutMulticastPkts", ".1.3.6.1.2.1.31.1.1.1.12"),
    ("ifHCOutBroadcastPkts", ".1.3.6.1.2.1.31.1.1.1.13"),
    ("ifHighSpeed", ".1.3.6.1.2.1.31.1.1.1.15"),
    ("ifPromiscuousMode", ".1.3.6.1.2.1.31.1.1.1.16"),
    ("ifConnectorPresent", ".1.3.6.1.2.1.31.1.1.1.17"),
    ("ifAlias", ".1.3.6.1.2.1.31.1.1.1.18"),
    // ports-stack
    ("ifStackStatus", ".1.3.6.1.2.1.31.1.2.1.3"),
    // ipv4-addresses, ipv6-addresses
    ("ipAdEntIfIndex", ".1.3.6.1.2.1.4.20.1.2"),
    ("ipAdEntNetMask", ".1.3.6.1.2.1.4.20.1.3"),
    ("ipAddressIfIndex", ".1.3.6.1.2.1.4.34.1.3"),
    ("ipAddressPrefix", ".1.3.6.1.2.1.4.34.1.5"),
    ("ipAddressOrigin", ".1.3.6.1.2.1.4.34.1.6"),
    // arp-table, ipv6-nd
    ("ipNetToMediaPhysAddress", ".1.3.6.1.2.1.4.22.1.2"),
    ("ipNetToPhysicalPhysAddress", ".1.3.6.1.2.1.4.35.1.4"),
    // route
    ("inetCidrRouteNumber", ".1.3.6.1.2.1.4.24.6.0"),
    ("inetCidrRouteIfIndex", ".1.3.6.1.2.1.4.24.7.1.7"),
    ("inetCidrRouteType", ".1.3.6.1.2.1.4.24.7.1.8"),
    ("inetCidrRouteProto", ".1.3.6.1.2.1.4.24.7.1.9"),
    ("inetCidrRouteMetric1", ".1.3.6.1.2.1.4.24.7.1.12"),
    ("ipCidrRouteIfIndex", ".1.3.6.1.2.1.4.24.4.1.5"),
    // netstats
    ("ipInReceives", ".1.3.6.1.2.1.4.3.0"),
    ("ipForwDatagrams", ".1.3.6.1.2.1.4.6.0"),
    ("ipOutRequests", ".1.3.6.1.2.1.4.10.0"),
    ("ipSystemStatsHCInReceives", ".1.3.6.1.2.1.4.31.1.1.4"),
    ("snmpInPkts", ".1.3.6.1.2.1.11.1.0"),
    ("snmpOutPkts", ".1.3.6.1.2.1.11.2.0"),
    ("snmpInTotalReqVars", ".1.3.6.1.2.1.11.13.0"),
    ("tcpActiveOpens", ".1.3.6.1.2.1.6.5.0"),
    ("tcpCurrEstab", ".1.3.6.1.2.1.6.9.0"),
    ("udpInDatagrams", ".1.3.6.1.2.1.7.1.0"),
    ("icmpStatsInMsgs", ".1.3.6.1.2.1.5.29.1"),
    // uptime, processors, storage, hr-device, ucd-diskio's neighbours
    ("hrSystemUptime", ".1.3.6.1.2.1.25.1.1.0"),
    ("hrSystemProcesses", ".1.3.6.1.2.1.25.1.6.0"),
    ("hrStorageDescr", ".1.3.6.1.2.1.25.2.3.1.3"),
    ("hrDeviceDescr", ".1.3.6.1.2.1.25.3.2.1.3"),
    ("hrProcessorLoad", ".1.3.6.1.2.1.25.3.3.1.2"),
    ("laLoadInt", ".1.3.6.1.4.1.2021.10.1.5"),
    ("memTotalReal", ".1.3.6.1.4.1.2021.4.5.0"),
    ("ssCpuRawUser", ".1.3.6.1.4.1.2021.11.50.0"),
    // entity-physical, ports' duplex
    ("entPhysicalDescr", ".1.3.6.1.2.1.47.1.1.1.1.2"),
    ("dot3StatsDuplexStatus", ".1.3.6.1.2.1.10.7.2.1.19"),
];

/// What it asks as well, and is not there: why.
const NOT_THERE: &[(&str, &str, &str)] = &[
    (
        "entPhySensorValue",
        ".1.3.6.1.2.1.99.1.1.1.4",
        "sensors are lm-sensors' by AgentX",
    ),
    (
        "lldpRemSysName",
        ".1.0.8802.1.1.2.1.4.1.1.9",
        "lldpd's by AgentX",
    ),
    (
        "cdpCacheDeviceId",
        ".1.3.6.1.4.1.9.9.23.1.2.1.1.6",
        "of Cisco's",
    ),
    ("bgpPeerState", ".1.3.6.1.2.1.15.3.1.2", "FRR's by AgentX"),
    ("ospfRouterId", ".1.3.6.1.2.1.14.1.1.0", "FRR's by AgentX"),
    (
        "mplsVpnConfiguredVrfs",
        ".1.3.6.1.3.118.1.1.1.0",
        "Linux has none of it",
    ),
    (
        "upsIdentModel",
        ".1.3.6.1.2.1.33.1.1.2.0",
        "a router is no UPS",
    ),
];

#[test]
fn what_librenms_asks_is_there_or_named() {
    let Some(world) = World::new("librenms", &["snmpbulkwalk", "ip"]) else {
        return;
    };
    links(&world);
    let neighbours = "neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev e0\n\
                      addr add 2001:db8::1/64 dev e0 nodad\n\
                      neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev e0\n";
    world.netns.ip_batch(neighbours).unwrap();
    let daemon = world.up("");
    let missing = lab::wait_until(crate::common::PATIENCE, "all that LibreNMS asks", || {
        let mut missing = BTreeSet::new();
        for (name, oid) in LIBRENMS {
            if !is_there(&world, oid) {
                missing.insert(*name);
            }
        }
        missing.is_empty().then_some(missing)
    });
    assert!(missing.is_ok(), "{missing:?}");
    for (name, oid, why) in NOT_THERE {
        assert!(
            !is_there(&world, oid),
            "{name} is there, though it is said: {why}"
        );
    }
    daemon.end();
}

/// Whether there is an object of this name, or below it.
fn is_there(world: &World, oid: &str) -> bool {
    let words = format!("-v2c -c public -t 10 -r 1 127.0.0.1:1161 {oid}");
    let scalar = oid.strip_suffix(".0").is_some();
    let tool = if scalar { "snmpget" } else { "snmpbulkwalk" };
    let got = world.tool(tool, &words);
    got.contains(" = ") && !got.contains("No Such") && !got.contains("No more variables")
}
