//! A bridge and its ports (`IFLA_BR_…`, `IFLA_BRPORT_…`,
//! `linux/if_link.h`). Timers and counts of what was learned move without
//! an announcement and are no part of a row.
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use crate::row::attributes::RawAttributes;

/// Settings and state of a bridge. Times are hundredths of a second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bridge {
    pub forward_delay: Option<u32>,
    pub hello_time: Option<u32>,
    pub max_age: Option<u32>,
    pub ageing_time: Option<u32>,
    pub stp_state: Option<u32>,
    pub priority: Option<u16>,
    pub vlan_filtering: Option<u8>,
    pub vlan_protocol: Option<u16>,
    pub group_fwd_mask: Option<u16>,
    pub root_id: Option<BridgeId>,
    pub bridge_id: Option<BridgeId>,
    pub root_port: Option<u16>,
    pub root_path_cost: Option<u32>,
    pub topology_change: Option<u8>,
    pub topology_change_detected: Option<u8>,
    pub group_addr: Option<[u8; 6]>,
    pub mcast_router: Option<u8>,
    pub mcast_snooping: Option<u8>,
    pub mcast_query_use_ifaddr: Option<u8>,
    pub mcast_querier: Option<u8>,
    pub mcast_hash_elasticity: Option<u32>,
    pub mcast_hash_max: Option<u32>,
    pub mcast_last_member_cnt: Option<u32>,
    pub mcast_startup_query_cnt: Option<u32>,
    pub mcast_last_member_intvl: Option<u64>,
    pub mcast_membership_intvl: Option<u64>,
    pub mcast_querier_intvl: Option<u64>,
    pub mcast_query_intvl: Option<u64>,
    pub mcast_query_response_intvl: Option<u64>,
    pub mcast_startup_query_intvl: Option<u64>,
    pub nf_call_iptables: Option<u8>,
    pub nf_call_ip6tables: Option<u8>,
    pub nf_call_arptables: Option<u8>,
    pub vlan_default_pvid: Option<u16>,
    pub vlan_stats_enabled: Option<u8>,
    pub mcast_stats_enabled: Option<u8>,
    pub mcast_igmp_version: Option<u8>,
    pub mcast_mld_version: Option<u8>,
    pub vlan_stats_per_port: Option<u8>,
    /// Bits of `BR_BOOLOPT_…`, and which of them are meant.
    pub multi_boolopt: Option<(u32, u32)>,
    pub fdb_max_learned: Option<u32>,
    pub rest: RawAttributes,
}

/// The identifier of a bridge (IEEE 802.1D 9.2.5): its priority and a MAC
/// address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeId(pub [u8; 8]);

/// A link as a port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BridgePort {
    pub state: Option<u8>,
    pub priority: Option<u16>,
    pub cost: Option<u32>,
    /// Hairpin.
    pub mode: Option<u8>,
    pub guard: Option<u8>,
    pub protect: Option<u8>,
    pub fast_leave: Option<u8>,
    pub learning: Option<u8>,
    pub unicast_flood: Option<u8>,
    pub proxyarp: Option<u8>,
    pub learning_sync: Option<u8>,
    pub proxyarp_wifi: Option<u8>,
    pub root_id: Option<BridgeId>,
    pub bridge_id: Option<BridgeId>,
    pub designated_port: Option<u16>,
    pub designated_cost: Option<u16>,
    pub id: Option<u16>,
    pub no: Option<u16>,
    pub topology_change_ack: Option<u8>,
    pub config_pending: Option<u8>,
    pub multicast_router: Option<u8>,
    pub mcast_flood: Option<u8>,
    pub mcast_to_ucast: Option<u8>,
    pub vlan_tunnel: Option<u8>,
    pub bcast_flood: Option<u8>,
    pub group_fwd_mask: Option<u16>,
    pub neigh_suppress: Option<u8>,
    pub isolated: Option<u8>,
    pub backup_port: Option<u32>,
    pub mrp_ring_open: Option<u8>,
    pub mrp_in_open: Option<u8>,
    pub mcast_eht_hosts_limit: Option<u32>,
    pub locked: Option<u8>,
    pub mab: Option<u8>,
    pub mcast_max_groups: Option<u32>,
    pub neigh_vlan_suppress: Option<u8>,
    pub backup_nhid: Option<u32>,
    pub rest: RawAttributes,
}
