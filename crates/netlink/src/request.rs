//! Questions to the kernel (`RTM_GET…`), their headers exact: they pass
//! `NETLINK_GET_STRICT_CHK`, without which the kernel ignores filters.

use std::net::{IpAddr, Ipv4Addr};

use table::row::neighbour::flag::PROXY;
use table::{AF_INET, AF_INET6};

use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::{AF_BRIDGE, AF_UNSPEC, ifla, nda, netconfa, netnsa, nha, rta};
use crate::malformed::TooLong;
use crate::message::{flag, kind};

/// `RTEXT_FILTER_SKIP_STATS`: the counters of address families, which
/// nobody here reads, are left out.
const SKIP_STATS: u32 = 1 << 3;

/// `RTEXT_FILTER_BRVLAN_COMPRESSED`.
const VLANS_IN_RANGES: u32 = 1 << 2;

/// `RTM_F_LOOKUP_TABLE`: answer with the table of the route that was found.
const LOOKUP_TABLE: u32 = 0x1000;
/// `RTM_F_FIB_MATCH`: answer with the route as it stands in its table.
const FIB_MATCH: u32 = 0x2000;

/// Names of up to this many bytes fit `IFLA_IFNAME` (`IFNAMSIZ` less its
/// NUL); longer ones are alternative names.
const MAX_NAME: usize = 15;

/// A dump: a table, or the part of it the kernel can pick out by itself.
/// `family` is `AF_INET` (2), `AF_INET6` (10) or 0 for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// Links.
    Links {
        /// With all counters. Without, the kernel (6.18) leaves out those
        /// of IPv6, some 600 bytes a link; `IFLA_STATS64` always comes.
        counters: bool,
    },
    /// Links of a kind (`IFLA_INFO_KIND`). A kernel that has no such kind
    /// gives all.
    LinksOfKind {
        /// `veth`, `macvlan`, …
        kind: &'static str,
        /// With all counters. Without, the kernel first reckons how long a
        /// link's message may be, of all links that there are
        /// (`rtnl_calcit`, 0.5 µs each); with them it does not, and refuses
        /// (`EMSGSIZE`) where one takes more than a page.
        counters: bool,
    },
    /// Addresses.
    Addresses {
        /// Address family.
        family: u8,
        /// Only of this link. Answered with `ENODEV` when there is no such
        /// link.
        link: Option<u32>,
    },
    /// Neighbours (not forwarding entries).
    Neighbours {
        /// Address family.
        family: u8,
        /// Only of this link.
        link: Option<u32>,
        /// Only of links with this master.
        master: Option<u32>,
        /// The proxy entries instead of the others.
        proxy: bool,
    },
    /// Forwarding entries of bridges and VXLANs.
    Fdb {
        /// Only of this port.
        link: Option<u32>,
        /// Only of this bridge.
        master: Option<u32>,
    },
    /// Routes, without the cached ones. Those of family 0 include MPLS and
    /// multicast forwarding, as far as the kernel has them.
    Routes {
        /// Address family.
        family: u8,
        /// Only of this table. Answered with `ENOENT` when the family is
        /// named and has no such table: nothing is in it.
        table: Option<u32>,
        /// Only through this link. Answered with `ENODEV` when there is no
        /// such link.
        link: Option<u32>,
        /// Only of this `RTPROT_…`.
        protocol: Option<u8>,
        /// Only of this `RTN_…`.
        kind: Option<u8>,
    },
    /// Next-hop objects of all families, and groups.
    Nexthops,
    /// Rules.
    Rules {
        /// Address family.
        family: u8,
    },
    /// How links resolve neighbours: the link that came last into the
    /// namespace first.
    NeighbourTables {
        /// Address family.
        family: u8,
    },
    /// Settings of a family (`net.ipv6.conf`) on each link.
    Settings {
        /// Address family.
        family: u8,
    },
    /// Bridges and their ports, with the VLANs of each in ranges.
    PortVlans,
    /// Ports of bridges, without the rest of their links.
    BridgePorts,
    /// Multicast groups of bridges.
    BridgeGroups,
    /// Buckets of resilient groups of next hops.
    NexthopBuckets(BucketFilter),
    /// What holds for all links of a family (`net.ipv4.conf.all`): one
    /// message, and an acknowledgement in the place of a dump's end.
    SettingsOfAll {
        /// Address family.
        family: u8,
    },
    /// Which way packets to an address of the host's own go, and in which table
    /// that is found: one message, and an acknowledgement in the place of a
    /// dump's end.
    TableOfOwn {
        /// The address.
        address: Ipv4Addr,
    },
}

/// Which buckets are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketFilter {
    /// Address family, of which the kernel makes what it likes.
    pub family: u8,
    /// Of this group.
    pub group: Option<u32>,
    /// Leading to this next hop.
    pub nexthop: Option<u32>,
    /// Whose next hop is over this link.
    pub link: Option<u32>,
    /// Or over one of this master.
    pub master: Option<u32>,
}

impl Dump {
    /// Appends the request to `out`.
    pub fn encode(&self, sequence: u32, out: &mut Vec<u8>) {
        let get = |out, kind, structure: &[u8]| {
            Build::start(out, kind, flag::REQUEST | flag::DUMP, sequence, structure)
        };
        let build = match *self {
            Dump::Links { counters } => {
                let mut build = get(out, kind::GETLINK, &ifinfomsg(0));
                if !counters {
                    build.put_u32(ifla::EXT_MASK, SKIP_STATS);
                }
                build
            }
            Dump::LinksOfKind { kind: of, counters } => {
                let mut build = get(out, kind::GETLINK, &ifinfomsg(0));
                if !counters {
                    build.put_u32(ifla::EXT_MASK, SKIP_STATS);
                }
                let info = build.open(ifla::LINKINFO | NESTED);
                build.put(ifla::INFO_KIND, of.as_bytes());
                build.close(&info);
                build
            }
            Dump::Addresses { family, link } => {
                let index = link.unwrap_or(0).to_ne_bytes();
                let [i0, i1, i2, i3] = index;
                get(out, kind::GETADDR, &[family, 0, 0, 0, i0, i1, i2, i3])
            }
            Dump::Neighbours {
                family,
                link,
                master,
                proxy,
            } => {
                let flags = if proxy { PROXY as u8 } else { 0 };
                let mut build = get(out, kind::GETNEIGH, &ndmsg(family, flags));
                put_if(&mut build, nda::IFINDEX, link);
                put_if(&mut build, nda::MASTER, master);
                build
            }
            Dump::Fdb { link, master } => {
                let mut build = get(out, kind::GETNEIGH, &ndmsg(AF_BRIDGE, 0));
                put_if(&mut build, nda::IFINDEX, link);
                put_if(&mut build, nda::MASTER, master);
                build
            }
            Dump::Routes {
                family,
                table,
                link,
                protocol,
                kind,
            } => {
                let mut header = [0; 12];
                let [rtm_family, _, _, _, _, rtm_protocol, _, rtm_type, ..] = &mut header;
                *rtm_family = family;
                *rtm_protocol = protocol.unwrap_or(0);
                *rtm_type = kind.unwrap_or(0);
                let mut build = get(out, kind::GETROUTE, &header);
                put_if(&mut build, rta::TABLE, table);
                put_if(&mut build, rta::OIF, link);
                build
            }
            Dump::Nexthops => get(out, kind::GETNEXTHOP, &[0; 8]),
            Dump::Rules { family } => {
                let mut header = [0; 12];
                let [rule_family, ..] = &mut header;
                *rule_family = family;
                get(out, kind::GETRULE, &header)
            }
            Dump::NeighbourTables { family } => get(out, kind::GETNEIGHTBL, &[family, 0, 0, 0]),
            Dump::Settings { family } => get(out, kind::GETNETCONF, &[family, 0, 0, 0]),
            Dump::PortVlans => {
                let mut build = get(out, kind::GETLINK, &of_bridges());
                build.put_u32(ifla::EXT_MASK, VLANS_IN_RANGES);
                build
            }
            Dump::BridgePorts => get(out, kind::GETLINK, &of_bridges()),
            Dump::BridgeGroups => get(out, kind::GETMDB, &[AF_BRIDGE, 0, 0, 0, 0, 0, 0, 0]),
            Dump::NexthopBuckets(filter) => {
                let mut build = get(
                    out,
                    kind::GETNEXTHOPBUCKET,
                    &[filter.family, 0, 0, 0, 0, 0, 0, 0],
                );
                let numbers = [
                    (nha::ID, filter.group),
                    (nha::OIF, filter.link),
                    (nha::MASTER, filter.master),
                ];
                for (kind, number) in numbers {
                    if let Some(number) = number {
                        build.put_u32(kind, number);
                    }
                }
                if let Some(nexthop) = filter.nexthop {
                    let bucket = build.open(nha::RES_BUCKET | NESTED);
                    build.put_u32(nha::RES_BUCKET_NH_ID, nexthop);
                    build.close(&bucket);
                }
                build
            }
            Dump::SettingsOfAll { family } => {
                let flags = flag::REQUEST | flag::ACK;
                let header = [family, 0, 0, 0];
                let mut build = Build::start(out, kind::GETNETCONF, flags, sequence, &header);
                build.put(netconfa::IFINDEX, &netconfa::IFINDEX_ALL.to_ne_bytes());
                build
            }
            Dump::TableOfOwn { address } => {
                let flags = flag::REQUEST | flag::ACK;
                let [f0, f1, f2, f3] = LOOKUP_TABLE.to_ne_bytes();
                let header = [AF_INET, 32, 0, 0, 0, 0, 0, 0, f0, f1, f2, f3];
                let mut build = Build::start(out, kind::GETROUTE, flags, sequence, &header);
                build.put_address(rta::DST, address.into());
                build
            }
        };
        build.end_small();
    }
}

fn put_if(build: &mut Build<'_>, kind: u16, value: Option<u32>) {
    if let Some(value) = value {
        build.put_u32(kind, value);
    }
}

fn ifinfomsg(index: u32) -> [u8; 16] {
    let [i0, i1, i2, i3] = index.to_ne_bytes();
    [AF_UNSPEC, 0, 0, 0, i0, i1, i2, i3, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Of bridges and their ports.
fn of_bridges() -> [u8; 16] {
    let mut header = ifinfomsg(0);
    let [family, ..] = &mut header;
    *family = AF_BRIDGE;
    header
}

fn ndmsg(family: u8, flags: u8) -> [u8; 12] {
    [family, 0, 0, 0, 0, 0, 0, 0, 0, 0, flags, 0]
}

/// Asks for one bucket of a resilient group.
pub fn get_nexthop_bucket(group: u32, index: u16, sequence: u32, out: &mut Vec<u8>) {
    let kind = kind::GETNEXTHOPBUCKET;
    let mut build = Build::start(out, kind, flag::REQUEST, sequence, &[0; 8]);
    build.put_u32(nha::ID, group);
    let bucket = build.open(nha::RES_BUCKET | NESTED);
    build.put_u16(nha::RES_BUCKET_INDEX, index);
    build.close(&bucket);
    build.end_small();
}

/// Asks for one link, without its counters; the answer is one `link`
/// message, or `ENODEV`.
pub fn get_link(index: u32, sequence: u32, out: &mut Vec<u8>) {
    let header = ifinfomsg(index);
    let mut build = Build::start(out, kind::GETLINK, flag::REQUEST, sequence, &header);
    build.put_u32(ifla::EXT_MASK, SKIP_STATS);
    build.end_small();
}

/// Asks for the counters of one link, which `link_stats` reads, or of all
/// (`None`): a tenth of what a whole link costs the kernel (Linux 4.7).
pub fn get_link_stats(index: Option<u32>, sequence: u32, out: &mut Vec<u8>) {
    /// `IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64)`.
    const LINK_64: u32 = 1;
    let mut header = [0; 12];
    header[4..8].copy_from_slice(&index.unwrap_or(0).to_ne_bytes());
    header[8..].copy_from_slice(&LINK_64.to_ne_bytes());
    let flags = match index {
        Some(_) => flag::REQUEST,
        None => flag::REQUEST | flag::DUMP,
    };
    Build::start(out, kind::GETSTATS, flags, sequence, &header).end_small();
}

/// Asks for the link of a name, its own or an alternative one: one
/// question, however many links there are.
pub fn get_link_by_name(name: &str, sequence: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let header = ifinfomsg(0);
    let mut build = Build::start(out, kind::GETLINK, flag::REQUEST, sequence, &header);
    build.put_u32(ifla::EXT_MASK, SKIP_STATS);
    let attribute = if table::text::octets(name).len() <= MAX_NAME {
        ifla::IFNAME
    } else {
        ifla::ALT_IFNAME
    };
    build.put_text(attribute, name);
    build.end()
}

/// Asks for the number that a namespace, given by a file descriptor of the
/// sender, has in the socket's own (`IFLA_LINK_NETNSID` speaks of it); the
/// answer is read by [`crate::decode::netns_id`].
pub fn get_netns_id(descriptor: i32, sequence: u32, out: &mut Vec<u8>) {
    let header = [AF_UNSPEC, 0, 0, 0];
    let mut build = Build::start(out, kind::GETNSID, flag::REQUEST, sequence, &header);
    build.put(netnsa::FD, &descriptor.to_ne_bytes());
    build.end_small();
}

/// Asks for a neighbour on a link, or for a proxy entry; the answer is a
/// message that [`crate::decode::neighbour`] reads.
pub fn get_neighbour(address: IpAddr, link: u32, proxy: bool, sequence: u32, out: &mut Vec<u8>) {
    let family = match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    };
    let [i0, i1, i2, i3] = link.to_ne_bytes();
    let flags = if proxy { PROXY as u8 } else { 0 };
    let header = [family, 0, 0, 0, i0, i1, i2, i3, 0, 0, flags, 0];
    let mut build = Build::start(out, kind::GETNEIGH, flag::REQUEST, sequence, &header);
    build.put_address(nda::DST, address);
    build.end_small();
}

/// What [`get_route`] asks for beside the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteQuery {
    /// `RTA_SRC`: source of the packet; must be of the destination's
    /// family.
    pub source: Option<IpAddr>,
    /// `RTA_OIF`: it leaves through this link.
    pub output: Option<u32>,
    /// `RTA_IIF`: it came in by this link.
    pub input: Option<u32>,
    /// `RTA_MARK`.
    pub mark: Option<u32>,
    /// `RTA_UID`.
    pub uid: Option<u32>,
    /// `rtm_tos`.
    pub tos: u8,
    /// `RTA_IP_PROTO`. The kernel knows TCP, UDP and ICMP.
    pub ip_protocol: Option<u8>,
    /// `RTA_SPORT`.
    pub source_port: Option<u16>,
    /// `RTA_DPORT`.
    pub destination_port: Option<u16>,
    /// `RTM_F_FIB_MATCH`: the route as it stands in its table, instead of
    /// what a packet would take.
    pub fib_match: bool,
}

/// Asks which way a packet to `destination` goes. The answer is one
/// `route` message (with the table it was found in), or an errno.
pub fn get_route(destination: IpAddr, query: &RouteQuery, sequence: u32, out: &mut Vec<u8>) {
    // IPv6 always names the table, and refuses the flag that asks for it.
    let (family, bits, lookup_table) = match destination {
        IpAddr::V4(_) => (AF_INET, 32, LOOKUP_TABLE),
        IpAddr::V6(_) => (AF_INET6, 128, 0),
    };
    let src_len = if query.source.is_some() { bits } else { 0 };
    let fib_match = if query.fib_match { FIB_MATCH } else { 0 };
    let [f0, f1, f2, f3] = (lookup_table | fib_match).to_ne_bytes();
    let header = [family, bits, src_len, query.tos, 0, 0, 0, 0, f0, f1, f2, f3];
    let mut build = Build::start(out, kind::GETROUTE, flag::REQUEST, sequence, &header);
    build.put_address(rta::DST, destination);
    if let Some(source) = query.source {
        build.put_address(rta::SRC, source);
    }
    put_if(&mut build, rta::OIF, query.output);
    put_if(&mut build, rta::IIF, query.input);
    put_if(&mut build, rta::MARK, query.mark);
    put_if(&mut build, rta::UID, query.uid);
    if let Some(protocol) = query.ip_protocol {
        build.put_u8(rta::IP_PROTO, protocol);
    }
    for (kind, port) in [
        (rta::SPORT, query.source_port),
        (rta::DPORT, query.destination_port),
    ] {
        if let Some(port) = port {
            build.put(kind, &port.to_be_bytes());
        }
    }
    build.end_small();
}
