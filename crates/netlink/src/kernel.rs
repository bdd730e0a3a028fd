//! Numbers of the kernel's headers that only this crate needs. Names are
//! the kernel's, without the prefix that the module stands for.

pub(crate) mod lwtunnel;

/// `IFLA_…`, `linux/if_link.h`.
pub(crate) mod ifla {
    pub(crate) const ADDRESS: u16 = 1;
    pub(crate) const BROADCAST: u16 = 2;
    pub(crate) const IFNAME: u16 = 3;
    pub(crate) const MTU: u16 = 4;
    pub(crate) const LINK: u16 = 5;
    pub(crate) const QDISC: u16 = 6;
    pub(crate) const MASTER: u16 = 10;
    pub(crate) const PROTINFO: u16 = 12;
    pub(crate) const TXQLEN: u16 = 13;
    pub(crate) const OPERSTATE: u16 = 16;
    pub(crate) const LINKMODE: u16 = 17;
    pub(crate) const LINKINFO: u16 = 18;
    pub(crate) const NET_NS_PID: u16 = 19;
    pub(crate) const IFALIAS: u16 = 20;
    pub(crate) const STATS64: u16 = 23;
    /// Of a message of statistics (`IFLA_STATS_LINK_64`), not of a link.
    pub(crate) const STATS_LINK_64: u16 = 1;
    pub(crate) const AF_SPEC: u16 = 26;
    pub(crate) const GROUP: u16 = 27;
    pub(crate) const CARRIER: u16 = 33;
    pub(crate) const NET_NS_FD: u16 = 28;
    pub(crate) const EXT_MASK: u16 = 29;
    pub(crate) const PROMISCUITY: u16 = 30;
    pub(crate) const NUM_TX_QUEUES: u16 = 31;
    pub(crate) const NUM_RX_QUEUES: u16 = 32;
    pub(crate) const GSO_MAX_SEGS: u16 = 40;
    pub(crate) const GSO_MAX_SIZE: u16 = 41;
    pub(crate) const GRO_MAX_SIZE: u16 = 58;
    pub(crate) const TSO_MAX_SIZE: u16 = 59;
    pub(crate) const TSO_MAX_SEGS: u16 = 60;
    pub(crate) const ALLMULTI: u16 = 61;
    pub(crate) const EVENT: u16 = 44;
    pub(crate) const CARRIER_CHANGES: u16 = 35;
    pub(crate) const LINK_NETNSID: u16 = 37;
    pub(crate) const PROTO_DOWN: u16 = 39;
    pub(crate) const MIN_MTU: u16 = 50;
    pub(crate) const MAX_MTU: u16 = 51;
    pub(crate) const PROP_LIST: u16 = 52;
    pub(crate) const ALT_IFNAME: u16 = 53;
    pub(crate) const PERM_ADDRESS: u16 = 54;
    pub(crate) const PARENT_DEV_NAME: u16 = 56;
    pub(crate) const PARENT_DEV_BUS_NAME: u16 = 57;
    /// Inside `LINKINFO`.
    pub(crate) const INFO_KIND: u16 = 1;
    pub(crate) const INFO_DATA: u16 = 2;
    pub(crate) const INFO_SLAVE_KIND: u16 = 4;
    pub(crate) const INFO_SLAVE_DATA: u16 = 5;
    /// Inside the `INFO_DATA` of a veth (`linux/veth.h`).
    pub(crate) const VETH_INFO_PEER: u16 = 1;
    /// Inside `AF_SPEC`, under `AF_INET`.
    pub(crate) const INET_CONF: u16 = 1;
    /// Inside `AF_SPEC`, under `AF_INET6`.
    pub(crate) const INET6_CONF: u16 = 2;
    pub(crate) const INET6_STATS: u16 = 3;
    pub(crate) const INET6_ADDR_GEN_MODE: u16 = 8;
}

/// `NETCONFA_…`, `linux/netconf.h`.
pub(crate) mod netconfa {
    pub(crate) const IFINDEX: u16 = 1;
    pub(crate) const FORWARDING: u16 = 2;
    pub(crate) const RP_FILTER: u16 = 3;
    pub(crate) const MC_FORWARDING: u16 = 4;
    pub(crate) const PROXY_NEIGH: u16 = 5;
    pub(crate) const IGNORE_ROUTES_WITH_LINKDOWN: u16 = 6;
    pub(crate) const INPUT: u16 = 7;
    /// A link's index that stands for all links.
    pub(crate) const IFINDEX_ALL: i32 = -1;
}

/// `NDTA_…` and `NDTPA_…`, `linux/neighbour.h`.
pub(crate) mod ndta {
    pub(crate) const PARMS: u16 = 6;
    pub(crate) const PARMS_IFINDEX: u16 = 1;
    pub(crate) const PARMS_REACHABLE_TIME: u16 = 3;
    pub(crate) const PARMS_RETRANS_TIME: u16 = 5;
}

/// `IFA_…`, `linux/if_addr.h`.
pub(crate) mod ifa {
    pub(crate) const ADDRESS: u16 = 1;
    pub(crate) const LOCAL: u16 = 2;
    pub(crate) const LABEL: u16 = 3;
    pub(crate) const BROADCAST: u16 = 4;
    pub(crate) const ANYCAST: u16 = 5;
    pub(crate) const CACHEINFO: u16 = 6;
    pub(crate) const FLAGS: u16 = 8;
    pub(crate) const RT_PRIORITY: u16 = 9;
    pub(crate) const PROTO: u16 = 11;
    /// A lifetime without end, in seconds.
    pub(crate) const INFINITY: u32 = u32::MAX;
}

/// `NDA_…`, `linux/neighbour.h`.
pub(crate) mod nda {
    pub(crate) const DST: u16 = 1;
    pub(crate) const LLADDR: u16 = 2;
    pub(crate) const CACHEINFO: u16 = 3;
    pub(crate) const PROBES: u16 = 4;
    pub(crate) const VLAN: u16 = 5;
    pub(crate) const PORT: u16 = 6;
    pub(crate) const VNI: u16 = 7;
    pub(crate) const IFINDEX: u16 = 8;
    pub(crate) const MASTER: u16 = 9;
    pub(crate) const LINK_NETNSID: u16 = 10;
    pub(crate) const SRC_VNI: u16 = 11;
    pub(crate) const PROTOCOL: u16 = 12;
    pub(crate) const NH_ID: u16 = 13;
    pub(crate) const FDB_EXT_ATTRS: u16 = 14;
    pub(crate) const FLAGS_EXT: u16 = 15;
    /// Inside `FDB_EXT_ATTRS`.
    pub(crate) const NFEA_ACTIVITY_NOTIFY: u16 = 1;
}

/// `RTA_…`, `linux/rtnetlink.h`.
pub(crate) mod rta {
    pub(crate) const DST: u16 = 1;
    pub(crate) const SRC: u16 = 2;
    pub(crate) const IIF: u16 = 3;
    pub(crate) const OIF: u16 = 4;
    pub(crate) const GATEWAY: u16 = 5;
    pub(crate) const PRIORITY: u16 = 6;
    pub(crate) const PREFSRC: u16 = 7;
    pub(crate) const METRICS: u16 = 8;
    pub(crate) const MULTIPATH: u16 = 9;
    pub(crate) const FLOW: u16 = 11;
    pub(crate) const CACHEINFO: u16 = 12;
    pub(crate) const TABLE: u16 = 15;
    pub(crate) const MARK: u16 = 16;
    pub(crate) const MFC_STATS: u16 = 17;
    pub(crate) const VIA: u16 = 18;
    pub(crate) const PREF: u16 = 20;
    pub(crate) const ENCAP_TYPE: u16 = 21;
    pub(crate) const ENCAP: u16 = 22;
    pub(crate) const EXPIRES: u16 = 23;
    pub(crate) const PAD: u16 = 24;
    pub(crate) const UID: u16 = 25;
    pub(crate) const IP_PROTO: u16 = 27;
    pub(crate) const SPORT: u16 = 28;
    pub(crate) const DPORT: u16 = 29;
    pub(crate) const NH_ID: u16 = 30;
    /// `RTAX_LOCK`, inside `METRICS`.
    pub(crate) const RTAX_LOCK: u16 = 1;
}

/// `NHA_…`, `linux/nexthop.h`.
pub(crate) mod nha {
    pub(crate) const ID: u16 = 1;
    pub(crate) const GROUP: u16 = 2;
    pub(crate) const GROUP_TYPE: u16 = 3;
    pub(crate) const BLACKHOLE: u16 = 4;
    pub(crate) const OIF: u16 = 5;
    pub(crate) const GATEWAY: u16 = 6;
    pub(crate) const ENCAP_TYPE: u16 = 7;
    pub(crate) const ENCAP: u16 = 8;
    pub(crate) const FDB: u16 = 11;
    pub(crate) const RES_GROUP: u16 = 12;
    pub(crate) const OP_FLAGS: u16 = 14;
    pub(crate) const GROUP_STATS: u16 = 15;
    pub(crate) const HW_STATS_ENABLE: u16 = 16;
    pub(crate) const HW_STATS_USED: u16 = 17;
    /// Inside `RES_GROUP`.
    pub(crate) const RES_GROUP_BUCKETS: u16 = 1;
    pub(crate) const RES_GROUP_IDLE_TIMER: u16 = 2;
    pub(crate) const RES_GROUP_UNBALANCED_TIMER: u16 = 3;
    pub(crate) const RES_GROUP_UNBALANCED_TIME: u16 = 4;
    pub(crate) const MASTER: u16 = 10;
    pub(crate) const RES_BUCKET: u16 = 13;
    /// Inside `RES_BUCKET`.
    pub(crate) const RES_BUCKET_INDEX: u16 = 1;
    pub(crate) const RES_BUCKET_IDLE_TIME: u16 = 2;
    pub(crate) const RES_BUCKET_NH_ID: u16 = 3;
}

/// `MDBA_…` and `MDBE_…`, `linux/if_bridge.h`.
pub(crate) mod mdba {
    pub(crate) const MDB: u16 = 1;
    pub(crate) const ROUTER: u16 = 2;
    /// Inside `MDB`, and inside that.
    pub(crate) const MDB_ENTRY: u16 = 1;
    pub(crate) const MDB_ENTRY_INFO: u16 = 1;
    /// Behind `struct br_mdb_entry`.
    pub(crate) const EATTR_TIMER: u16 = 1;
    pub(crate) const EATTR_SRC_LIST: u16 = 2;
    pub(crate) const EATTR_GROUP_MODE: u16 = 3;
    pub(crate) const EATTR_SOURCE: u16 = 4;
    pub(crate) const EATTR_RTPROT: u16 = 5;
    pub(crate) const SRCLIST_ENTRY: u16 = 1;
    pub(crate) const SRCATTR_ADDRESS: u16 = 1;
    pub(crate) const SRCATTR_TIMER: u16 = 2;
    /// Inside `ROUTER`.
    pub(crate) const ROUTER_PORT: u16 = 1;
    pub(crate) const ROUTER_PATTR_TIMER: u16 = 1;
    pub(crate) const ROUTER_PATTR_TYPE: u16 = 2;
    /// Of a change.
    pub(crate) const SET_ENTRY: u16 = 1;
    pub(crate) const SET_ENTRY_ATTRS: u16 = 2;
    pub(crate) const SET_SOURCE: u16 = 1;
    /// Bytes of `struct br_mdb_entry`; its state; EtherTypes of groups.
    pub(crate) const ENTRY_BYTES: usize = 28;
    pub(crate) const PERMANENT: u8 = 1;
    pub(crate) const ETH_P_IP: u16 = 0x0800;
    pub(crate) const ETH_P_IPV6: u16 = 0x86dd;
}

/// `IFLA_BRIDGE_…`, inside `AF_SPEC` of `AF_BRIDGE`, `linux/if_bridge.h`.
pub(crate) mod bridge {
    pub(crate) const FLAGS: u16 = 0;
    pub(crate) const MODE: u16 = 1;
    pub(crate) const VLAN_INFO: u16 = 2;
    pub(crate) const VLAN_TUNNEL_INFO: u16 = 3;
    pub(crate) const VLAN_TUNNEL_ID: u16 = 1;
    pub(crate) const VLAN_TUNNEL_VID: u16 = 2;
    pub(crate) const VLAN_TUNNEL_FLAGS: u16 = 3;
    /// `BRIDGE_FLAGS_…`
    pub(crate) const FLAGS_MASTER: u16 = 1;
    pub(crate) const FLAGS_SELF: u16 = 2;
    /// `BRIDGE_VLAN_INFO_…`
    pub(crate) const PVID: u16 = 1 << 1;
    pub(crate) const UNTAGGED: u16 = 1 << 2;
    pub(crate) const RANGE_BEGIN: u16 = 1 << 3;
    pub(crate) const RANGE_END: u16 = 1 << 4;
}

/// `FRA_…`, `linux/fib_rules.h`.
pub(crate) mod fra {
    pub(crate) const DST: u16 = 1;
    pub(crate) const SRC: u16 = 2;
    pub(crate) const IIFNAME: u16 = 3;
    pub(crate) const GOTO: u16 = 4;
    pub(crate) const PRIORITY: u16 = 6;
    pub(crate) const FWMARK: u16 = 10;
    pub(crate) const FLOW: u16 = 11;
    pub(crate) const TUN_ID: u16 = 12;
    pub(crate) const SUPPRESS_IFGROUP: u16 = 13;
    pub(crate) const SUPPRESS_PREFIXLEN: u16 = 14;
    pub(crate) const TABLE: u16 = 15;
    pub(crate) const FWMASK: u16 = 16;
    pub(crate) const OIFNAME: u16 = 17;
    pub(crate) const PAD: u16 = 18;
    pub(crate) const L3MDEV: u16 = 19;
    pub(crate) const UID_RANGE: u16 = 20;
    pub(crate) const PROTOCOL: u16 = 21;
    pub(crate) const IP_PROTO: u16 = 22;
    pub(crate) const SPORT_RANGE: u16 = 23;
    pub(crate) const DPORT_RANGE: u16 = 24;
    pub(crate) const DSCP: u16 = 25;
    pub(crate) const FLOWLABEL: u16 = 26;
    pub(crate) const FLOWLABEL_MASK: u16 = 27;
    pub(crate) const SPORT_MASK: u16 = 28;
    pub(crate) const DPORT_MASK: u16 = 29;
    pub(crate) const DSCP_MASK: u16 = 30;
}

/// `NETNSA_…`, `linux/net_namespace.h`.
pub(crate) mod netnsa {
    pub(crate) const NSID: u16 = 1;
    pub(crate) const FD: u16 = 3;
}

/// `NLMSGERR_ATTR_…`, `linux/netlink.h`.
pub(crate) mod nlmsgerr {
    pub(crate) const MSG: u16 = 1;
    pub(crate) const OFFS: u16 = 2;
}

/// `AF_UNSPEC`.
pub(crate) const AF_UNSPEC: u8 = 0;
/// `AF_BRIDGE`, alias `PF_BRIDGE`.
pub(crate) const AF_BRIDGE: u8 = 7;

/// The kernel tells ages and timers in `USER_HZ`, hundredths of a second
/// on every architecture Fingerpost runs on.
pub(crate) const MILLIS_PER_TICK: u64 = 10;
