//! A bond and its ports (`IFLA_BOND_…`, `IFLA_BOND_SLAVE_…`,
//! `linux/if_link.h`).
#![allow(missing_docs, reason = "the kernel's own names and meanings")]

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::row::attributes::RawAttributes;

/// Settings and state of a bond. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bond {
    pub mode: Option<u8>,
    pub active_slave: Option<u32>,
    pub miimon: Option<u32>,
    pub updelay: Option<u32>,
    pub downdelay: Option<u32>,
    pub use_carrier: Option<u8>,
    pub arp_interval: Option<u32>,
    pub arp_ip_target: Box<[Ipv4Addr]>,
    pub arp_validate: Option<u32>,
    pub arp_all_targets: Option<u32>,
    pub primary: Option<u32>,
    pub primary_reselect: Option<u8>,
    pub fail_over_mac: Option<u8>,
    pub xmit_hash_policy: Option<u8>,
    pub resend_igmp: Option<u32>,
    pub num_peer_notif: Option<u8>,
    pub all_slaves_active: Option<u8>,
    pub min_links: Option<u32>,
    pub lp_interval: Option<u32>,
    pub packets_per_slave: Option<u32>,
    pub ad_lacp_rate: Option<u8>,
    pub ad_select: Option<u8>,
    pub ad_info: Option<Box<AdInfo>>,
    pub ad_actor_sys_prio: Option<u16>,
    pub ad_user_port_key: Option<u16>,
    pub ad_actor_system: Option<[u8; 6]>,
    pub tlb_dynamic_lb: Option<u8>,
    pub peer_notif_delay: Option<u32>,
    pub ad_lacp_active: Option<u8>,
    pub missed_max: Option<u8>,
    pub ns_ip6_target: Box<[Ipv6Addr]>,
    pub coupled_control: Option<u8>,
    pub rest: RawAttributes,
}

/// The active aggregator of a bond (IEEE 802.1AX).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdInfo {
    pub aggregator: Option<u16>,
    pub num_ports: Option<u16>,
    pub actor_key: Option<u16>,
    pub partner_key: Option<u16>,
    pub partner_mac: Option<[u8; 6]>,
    pub rest: RawAttributes,
}

/// A link as a port of a bond.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BondPort {
    pub state: Option<u8>,
    pub mii_status: Option<u8>,
    pub link_failure_count: Option<u32>,
    pub perm_hwaddr: Option<[u8; 6]>,
    pub queue_id: Option<u16>,
    pub ad_aggregator_id: Option<u16>,
    pub ad_actor_oper_port_state: Option<u8>,
    pub ad_partner_oper_port_state: Option<u16>,
    pub prio: Option<i32>,
    pub rest: RawAttributes,
}
