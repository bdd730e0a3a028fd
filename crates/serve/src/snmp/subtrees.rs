//! The subtrees that a subagent registers. Called by [`super::subagent`].
//!
//! Each is as specific as what net-snmp's own modules register, for a
//! master hands a question to the most specific registration, and among
//! equals to the one of the lowest priority: so ours are asked even where
//! its own modules are not switched off. The system, snmp and SNMPv3 groups
//! are the master's; so are ICMP, TCP, UDP, the host and its own UCD-SNMP-MIB,
//! which it has of itself.

/// All of ours.
pub const ALL: &[&[u32]] = &[
    // IF-MIB: ifNumber, ifTable, ifXTable, ifStackTable, ifTableLastChange,
    // ifRcvAddressTable, ifStackLastChange.
    &[1, 3, 6, 1, 2, 1, 2, 1],
    &[1, 3, 6, 1, 2, 1, 2, 2],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1],
    &[1, 3, 6, 1, 2, 1, 31, 1, 2],
    &[1, 3, 6, 1, 2, 1, 31, 1, 4],
    &[1, 3, 6, 1, 2, 1, 31, 1, 5],
    &[1, 3, 6, 1, 2, 1, 31, 1, 6],
    // IP-MIB: ipForwarding, ipDefaultTTL and the counters of RFC 1213,
    // ipRoutingDiscards, ipv6IpForwarding, ipv6IpDefaultHopLimit.
    &[1, 3, 6, 1, 2, 1, 4, 1],
    &[1, 3, 6, 1, 2, 1, 4, 2],
    &[1, 3, 6, 1, 2, 1, 4, 3],
    &[1, 3, 6, 1, 2, 1, 4, 4],
    &[1, 3, 6, 1, 2, 1, 4, 5],
    &[1, 3, 6, 1, 2, 1, 4, 6],
    &[1, 3, 6, 1, 2, 1, 4, 7],
    &[1, 3, 6, 1, 2, 1, 4, 8],
    &[1, 3, 6, 1, 2, 1, 4, 9],
    &[1, 3, 6, 1, 2, 1, 4, 10],
    &[1, 3, 6, 1, 2, 1, 4, 11],
    &[1, 3, 6, 1, 2, 1, 4, 12],
    &[1, 3, 6, 1, 2, 1, 4, 13],
    &[1, 3, 6, 1, 2, 1, 4, 14],
    &[1, 3, 6, 1, 2, 1, 4, 15],
    &[1, 3, 6, 1, 2, 1, 4, 16],
    &[1, 3, 6, 1, 2, 1, 4, 17],
    &[1, 3, 6, 1, 2, 1, 4, 18],
    &[1, 3, 6, 1, 2, 1, 4, 19],
    &[1, 3, 6, 1, 2, 1, 4, 23],
    &[1, 3, 6, 1, 2, 1, 4, 25],
    &[1, 3, 6, 1, 2, 1, 4, 26],
    // ipAddrTable, column by column.
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 1],
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2],
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 3],
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 4],
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 5],
    // ipRouteTable.
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 1],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 2],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 3],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 4],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 5],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 6],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 7],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 8],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 9],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 10],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 11],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 12],
    &[1, 3, 6, 1, 2, 1, 4, 21, 1, 13],
    // ipNetToMediaTable.
    &[1, 3, 6, 1, 2, 1, 4, 22, 1, 1],
    &[1, 3, 6, 1, 2, 1, 4, 22, 1, 2],
    &[1, 3, 6, 1, 2, 1, 4, 22, 1, 3],
    &[1, 3, 6, 1, 2, 1, 4, 22, 1, 4],
    // IP-FORWARD-MIB: ipCidrRouteNumber and table, inetCidrRouteNumber
    // (its instance, as the master's own) and table,
    // inetCidrRouteDiscards.
    &[1, 3, 6, 1, 2, 1, 4, 24, 3],
    &[1, 3, 6, 1, 2, 1, 4, 24, 4],
    &[1, 3, 6, 1, 2, 1, 4, 24, 6, 0],
    &[1, 3, 6, 1, 2, 1, 4, 24, 7],
    &[1, 3, 6, 1, 2, 1, 4, 24, 8],
    // ipSystemStatsTable, ipIfStatsTableLastChange, ipIfStatsTable.
    &[1, 3, 6, 1, 2, 1, 4, 31, 1],
    &[1, 3, 6, 1, 2, 1, 4, 31, 2],
    &[1, 3, 6, 1, 2, 1, 4, 31, 3],
    // ipv4InterfaceTable and ipv6InterfaceTable, each behind its
    // LastChange.
    &[1, 3, 6, 1, 2, 1, 4, 27],
    &[1, 3, 6, 1, 2, 1, 4, 28],
    &[1, 3, 6, 1, 2, 1, 4, 29],
    &[1, 3, 6, 1, 2, 1, 4, 30],
    // ipAddressPrefixTable, ipAddressSpinLock, ipAddressTable,
    // ipNetToPhysicalTable, ipv6ScopeZoneIndexTable, ipDefaultRouterTable.
    &[1, 3, 6, 1, 2, 1, 4, 32],
    &[1, 3, 6, 1, 2, 1, 4, 33],
    &[1, 3, 6, 1, 2, 1, 4, 34],
    &[1, 3, 6, 1, 2, 1, 4, 35],
    &[1, 3, 6, 1, 2, 1, 4, 36],
    &[1, 3, 6, 1, 2, 1, 4, 37],
    // BRIDGE-MIB and Q-BRIDGE-MIB, ENTITY-MIB.
    &[1, 3, 6, 1, 2, 1, 17],
    &[1, 3, 6, 1, 2, 1, 47, 1, 1],
    &[1, 3, 6, 1, 2, 1, 47, 1, 4],
    // FINGERPOST-MIB.
    &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1],
];

/// Of these, what differs between the contexts of one namespace: the
/// routes, and which bridge is shown.
pub const ROUTES: &[&[u32]] = &[
    &[1, 3, 6, 1, 2, 1, 4, 21],
    &[1, 3, 6, 1, 2, 1, 4, 24],
    &[1, 3, 6, 1, 2, 1, 17],
];
