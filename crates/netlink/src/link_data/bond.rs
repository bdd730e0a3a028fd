//! `IFLA_BOND_…`, `IFLA_BOND_AD_INFO_…` and `IFLA_BOND_SLAVE_…`.

use table::row::link::bond::{AdInfo, Bond, BondPort};

use super::attributes;

attributes!(Bond {
    1 mode: Own,
    2 active_slave: Own,
    3 miimon: Own,
    4 updelay: Own,
    5 downdelay: Own,
    6 use_carrier: Own,
    7 arp_interval: Own,
    8 arp_ip_target: Counted,
    9 arp_validate: Own,
    10 arp_all_targets: Own,
    11 primary: Own,
    12 primary_reselect: Own,
    13 fail_over_mac: Own,
    14 xmit_hash_policy: Own,
    15 resend_igmp: Own,
    16 num_peer_notif: Own,
    17 all_slaves_active: Own,
    18 min_links: Own,
    19 lp_interval: Own,
    20 packets_per_slave: Own,
    21 ad_lacp_rate: Own,
    22 ad_select: Own,
    23 ad_info: Nest,
    24 ad_actor_sys_prio: Own,
    25 ad_user_port_key: Own,
    26 ad_actor_system: Own,
    27 tlb_dynamic_lb: Own,
    28 peer_notif_delay: Own,
    29 ad_lacp_active: Own,
    30 missed_max: Own,
    31 ns_ip6_target: Counted,
    32 coupled_control: Own,
});

attributes!(AdInfo {
    1 aggregator: Own,
    2 num_ports: Own,
    3 actor_key: Own,
    4 partner_key: Own,
    5 partner_mac: Own,
});

attributes!(BondPort {
    1 state: Own,
    2 mii_status: Own,
    3 link_failure_count: Own,
    4 perm_hwaddr: Own,
    5 queue_id: Own,
    6 ad_aggregator_id: Own,
    7 ad_actor_oper_port_state: Own,
    8 ad_partner_oper_port_state: Own,
    9 prio: Own,
});
