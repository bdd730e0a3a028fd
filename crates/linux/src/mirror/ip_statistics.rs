//! What IP counted in a namespace, and how it is set: read from `/proc`
//! while a mirror samples, as nothing else tells it. (What IPv6 counted on
//! each link comes with the links.) Called by the mirror's worker only.

use std::fs;

use netlink::decode::{Ipv6Layout, Ipv6Statistics};
use table::{AF_INET, AF_INET6, IpCounters, IpPlace, IpSettings};

use crate::error::Error;
use crate::namespace::Namespace;

/// What the files say, in the order of [`FILES`]; empty where this kernel
/// has none of a name. A recording keeps them as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Texts(pub [String; FILES.len()]);

/// The files that are read.
const FILES: [&str; 6] = [
    "/proc/thread-self/net/snmp",
    "/proc/thread-self/net/netstat",
    "/proc/thread-self/net/snmp6",
    "/proc/sys/net/ipv4/ipfrag_time",
    "/proc/sys/net/ipv6/conf/all/forwarding",
    "/proc/sys/net/ipv6/conf/default/hop_limit",
];

/// Reads the files, as they are inside a namespace: six small ones.
pub(super) fn read(namespace: &Namespace) -> Result<Texts, Error> {
    namespace.run(|| Texts(FILES.map(|file| fs::read_to_string(file).unwrap_or_default())))
}

/// The counters of the whole namespace, and the settings. A kernel without
/// IPv6 has none of that family.
pub(super) fn understand(texts: &Texts) -> (Vec<(IpPlace, IpCounters)>, IpSettings) {
    let Texts([snmp, netstat, snmp6, ..]) = texts;
    let place = |family| IpPlace { family, link: 0 };
    let mut counters = Vec::new();
    if !snmp.is_empty() {
        counters.push((place(AF_INET), v4(snmp, netstat)));
    }
    if !snmp6.is_empty() {
        counters.push((place(AF_INET6), v6(snmp6)));
    }
    (counters, settings(texts))
}

/// What IPv6 counted on each link; nothing where the kernel's order of
/// numbers is not known, for a wrong number is worse than none.
pub(super) fn by_link(
    links: &[(u32, Ipv6Statistics)],
) -> impl Iterator<Item = (IpPlace, IpCounters)> {
    let layout = Ipv6Layout::of(links.iter().map(|(_, statistics)| statistics));
    links.iter().filter_map(move |(link, statistics)| {
        let place = IpPlace {
            family: AF_INET6,
            link: *link,
        };
        Some((place, statistics.counters(layout?)))
    })
}

fn settings(texts: &Texts) -> IpSettings {
    let Texts([snmp, _, _, fragment_time, v6_forwarding, hop_limit]) = texts;
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let small = |value: Option<u64>| value.and_then(|value| value.try_into().ok());
    IpSettings {
        v4_forwarding: table_value(snmp, "Ip", "Forwarding") == Some(1),
        v4_default_ttl: small(table_value(snmp, "Ip", "DefaultTTL")).unwrap_or(0),
        v4_reassembly_secs: number(fragment_time).unwrap_or(0),
        v6_forwarding: number(v6_forwarding).is_some_and(|value| value != 0),
        v6_hop_limit: small(number(hop_limit).map(u64::from)).unwrap_or(0),
    }
}

/// `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then one of
/// values, both beginning with the group's name.
pub(super) fn table_value(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| {
        let (head, rest) = line.split_once(": ")?;
        (head == group).then(|| rest.split_ascii_whitespace())
    });
    let (mut names, mut values) = (lines.next()?, lines.next()?);
    let place = names.position(|found| found == name)?;
    values.nth(place)?.parse().ok()
}

fn v4(snmp: &str, netstat: &str) -> IpCounters {
    let ip = |name| table_value(snmp, "Ip", name);
    let counted = |name| ip(name).unwrap_or(0);
    let more = |name| table_value(netstat, "IpExt", name).unwrap_or(0);
    IpCounters {
        in_receives: counted("InReceives"),
        in_octets: more("InOctets"),
        in_header_errors: counted("InHdrErrors"),
        in_no_routes: more("InNoRoutes"),
        in_address_errors: counted("InAddrErrors"),
        in_unknown_protocols: counted("InUnknownProtos"),
        in_truncated: more("InTruncatedPkts"),
        in_discards: counted("InDiscards"),
        in_delivers: counted("InDelivers"),
        in_multicasts: more("InMcastPkts"),
        in_multicast_octets: more("InMcastOctets"),
        in_broadcasts: more("InBcastPkts"),
        out_requests: counted("OutRequests"),
        out_octets: more("OutOctets"),
        out_discards: counted("OutDiscards"),
        out_no_routes: counted("OutNoRoutes"),
        out_forwarded: counted("ForwDatagrams"),
        // Not before Linux 6.9: what was asked for and what was forwarded.
        out_transmits: ip("OutTransmits")
            .unwrap_or(counted("OutRequests") + counted("ForwDatagrams")),
        out_multicasts: more("OutMcastPkts"),
        out_multicast_octets: more("OutMcastOctets"),
        out_broadcasts: more("OutBcastPkts"),
        reassembly_requests: counted("ReasmReqds"),
        reassembly_oks: counted("ReasmOKs"),
        reassembly_fails: counted("ReasmFails"),
        fragment_oks: counted("FragOKs"),
        fragment_fails: counted("FragFails"),
        fragment_creates: counted("FragCreates"),
    }
}

/// `/proc/net/snmp6`: a name, which begins with the group's, and a value a
/// line.
pub(super) fn v6_value(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    lines.find_map(|line| {
        let (found, value) = line.split_once(char::is_whitespace)?;
        (found == name).then(|| value.trim().parse().ok())?
    })
}

fn v6(snmp6: &str) -> IpCounters {
    let ip = |name: &str| v6_value(snmp6, "Ip6", name);
    let counted = |name| ip(name).unwrap_or(0);
    IpCounters {
        in_receives: counted("InReceives"),
        in_octets: counted("InOctets"),
        in_header_errors: counted("InHdrErrors") + counted("InTooBigErrors"),
        in_no_routes: counted("InNoRoutes"),
        in_address_errors: counted("InAddrErrors"),
        in_unknown_protocols: counted("InUnknownProtos"),
        in_truncated: counted("InTruncatedPkts"),
        in_discards: counted("InDiscards"),
        in_delivers: counted("InDelivers"),
        in_multicasts: counted("InMcastPkts"),
        in_multicast_octets: counted("InMcastOctets"),
        in_broadcasts: counted("InBcastPkts"),
        out_requests: counted("OutRequests"),
        out_octets: counted("OutOctets"),
        out_discards: counted("OutDiscards"),
        out_no_routes: counted("OutNoRoutes"),
        out_forwarded: counted("OutForwDatagrams"),
        out_transmits: ip("OutTransmits")
            .unwrap_or(counted("OutRequests") + counted("OutForwDatagrams")),
        out_multicasts: counted("OutMcastPkts"),
        out_multicast_octets: counted("OutMcastOctets"),
        out_broadcasts: counted("OutBcastPkts"),
        reassembly_requests: counted("ReasmReqds"),
        reassembly_oks: counted("ReasmOKs"),
        reassembly_fails: counted("ReasmFails"),
        fragment_oks: counted("FragOKs"),
        fragment_fails: counted("FragFails"),
        fragment_creates: counted("FragCreates"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let snmp = "Ip: Forwarding DefaultTTL InReceives ForwDatagrams OutRequests\n\
                    Ip: 1 64 12378 3 8183\nIcmp: InMsgs\nIcmp: 2\n";
        let netstat = "TcpExt: InOctets\nTcpExt: 1\nIpExt: InNoRoutes InOctets\nIpExt: 7 99\n";
        let all = v4(snmp, netstat);
        assert_eq!(
            (all.in_receives, all.in_octets, all.in_no_routes),
            (12_378, 99, 7)
        );
        assert_eq!(all.out_transmits, 8_186, "an older kernel");
        let mut texts = Texts::default();
        texts.0[0] = snmp.to_owned();
        let set = settings(&texts);
        assert!(set.v4_forwarding && set.v4_default_ttl == 64);
        let all =
            v6("Ip6InReceives     \t42\nIp6InTooBigErrors\t5\nIp6InHdrErrors\t6\nIcmp6InMsgs 3\n");
        assert_eq!((all.in_receives, all.in_header_errors), (42, 11));
        assert_eq!(v4("", "nonsense"), IpCounters::default());
    }
}
