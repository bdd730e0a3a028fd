//! A bond and its ports.

use std::net::IpAddr;

use table::row::link::bond::{AdInfo, Bond, BondPort};

use super::put::Put;
use crate::fields::{Value, Visit};

const MODES: &[&str] = &[
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
const ARP_VALIDATE: &[&str] = &[
    "none",
    "active",
    "backup",
    "all",
    "filter",
    "filter_active",
    "filter_backup",
];
const HASH_POLICIES: &[&str] = &[
    "layer2",
    "layer3+4",
    "layer2+3",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

pub(super) fn show<V: Visit>(bond: &Bond, put: &mut Put<'_, '_, V>) {
    put.named("mode", "mode", MODES, bond.mode);
    put.device("active_slave", "active_slave", bond.active_slave);
    monitoring(bond, put);
    put.device("primary", "primary", bond.primary);
    put.named(
        "primary_reselect",
        "primary_reselect",
        &["always", "better", "failure"],
        bond.primary_reselect,
    );
    put.named(
        "fail_over_mac",
        "fail_over_mac",
        &["none", "active", "follow"],
        bond.fail_over_mac,
    );
    put.named(
        "xmit_hash_policy",
        "xmit_hash_policy",
        HASH_POLICIES,
        bond.xmit_hash_policy,
    );
    let numbers = [
        ("resend_igmp", "resend_igmp", bond.resend_igmp),
        (
            "num_peer_notif",
            "num_grat_arp",
            bond.num_peer_notif.map(u32::from),
        ),
        (
            "all_slaves_active",
            "all_slaves_active",
            bond.all_slaves_active.map(u32::from),
        ),
        ("min_links", "min_links", bond.min_links),
        ("lp_interval", "lp_interval", bond.lp_interval),
        (
            "packets_per_slave",
            "packets_per_slave",
            bond.packets_per_slave,
        ),
    ];
    for (key, word, number) in numbers {
        put.number(key, word, number);
    }
    aggregation(bond, put);
    put.number("tlb_dynamic_lb", "tlb_dynamic_lb", bond.tlb_dynamic_lb);
}

/// How the state of ports is told.
fn monitoring<V: Visit>(bond: &Bond, put: &mut Put<'_, '_, V>) {
    let numbers = [
        ("miimon", bond.miimon),
        ("updelay", bond.updelay),
        ("downdelay", bond.downdelay),
        ("peer_notify_delay", bond.peer_notif_delay),
        ("use_carrier", bond.use_carrier.map(u32::from)),
        ("arp_interval", bond.arp_interval),
        ("arp_missed_max", bond.missed_max.map(u32::from)),
    ];
    for (key, number) in numbers {
        put.number(key, key, number);
    }
    let v4 = bond.arp_ip_target.iter().copied().map(IpAddr::V4);
    targets(put, "arp_ip_target", "arp_ip_target ", v4);
    let v6 = bond.ns_ip6_target.iter().copied().map(IpAddr::V6);
    targets(put, "ns_ip6_target", "ns_ip6_target ", v6);
    match bond.arp_validate {
        Some(0) => {
            put.field("arp_validate", Value::Present);
            put.say("arp_validate", Value::Text("none"));
        }
        how => put.named("arp_validate", "arp_validate", ARP_VALIDATE, how),
    }
    put.named(
        "arp_all_targets",
        "arp_all_targets",
        &["any", "all"],
        bond.arp_all_targets,
    );
}

fn targets<V: Visit>(
    put: &mut Put<'_, '_, V>,
    key: &'static str,
    word: &str,
    addresses: impl ExactSizeIterator<Item = IpAddr>,
) {
    if addresses.len() > 0 {
        put.list(key, word, ",", addresses.map(Value::Address));
    }
}

/// LACP (IEEE 802.1AX).
fn aggregation<V: Visit>(bond: &Bond, put: &mut Put<'_, '_, V>) {
    put.named(
        "ad_lacp_active",
        "lacp_active",
        &["off", "on"],
        bond.ad_lacp_active,
    );
    put.named(
        "ad_lacp_rate",
        "lacp_rate",
        &["slow", "fast"],
        bond.ad_lacp_rate,
    );
    put.named(
        "ad_select",
        "ad_select",
        &["stable", "bandwidth", "count"],
        bond.ad_select,
    );
    if let Some(info) = &bond.ad_info {
        aggregator(info, put);
    }
    put.number(
        "ad_actor_sys_prio",
        "ad_actor_sys_prio",
        bond.ad_actor_sys_prio,
    );
    put.number(
        "ad_user_port_key",
        "ad_user_port_key",
        bond.ad_user_port_key,
    );
    put.mac("ad_actor_system", "ad_actor_system", bond.ad_actor_system);
}

fn aggregator<V: Visit>(info: &AdInfo, put: &mut Put<'_, '_, V>) {
    put.object("ad_info");
    put.number("aggregator", "ad_aggregator", info.aggregator);
    put.number("num_ports", "ad_num_ports", info.num_ports);
    put.number("actor_key", "ad_actor_key", info.actor_key);
    put.number("partner_key", "ad_partner_key", info.partner_key);
    put.mac("partner_mac", "ad_partner_mac", info.partner_mac);
    put.end_object();
}

pub(super) fn show_port<V: Visit>(port: &BondPort, put: &mut Put<'_, '_, V>) {
    match port.state {
        Some(other @ 2..) => put.number("state_index", "state", Some(other)),
        state => put.named("state", "state", &["ACTIVE", "BACKUP"], state),
    }
    match port.mii_status {
        Some(other @ 4..) => put.number("mii_status_index", "mii_status", Some(other)),
        status => put.named(
            "mii_status",
            "mii_status",
            &["UP", "GOING_DOWN", "DOWN", "GOING_BACK"],
            status,
        ),
    }
    put.number(
        "link_failure_count",
        "link_failure_count",
        port.link_failure_count,
    );
    put.mac("perm_hwaddr", "perm_hwaddr", port.perm_hwaddr);
    put.number("queue_id", "queue_id", port.queue_id);
    if let Some(prio) = port.prio {
        put.value("prio", "prio", Value::Signed(prio.into()));
    }
    put.number(
        "ad_aggregator_id",
        "ad_aggregator_id",
        port.ad_aggregator_id,
    );
    let actor = port.ad_actor_oper_port_state.map(u16::from);
    put.number(
        "ad_actor_oper_port_state",
        "ad_actor_oper_port_state",
        actor,
    );
    port_state(put, "ad_actor_oper_port_state_str", actor);
    let partner = port.ad_partner_oper_port_state;
    put.number(
        "ad_partner_oper_port_state",
        "ad_partner_oper_port_state",
        partner,
    );
    port_state(put, "ad_partner_oper_port_state_str", partner);
}

/// What a port of LACP says of itself (IEEE 802.1AX 6.4.2.3).
const PORT_STATES: [&str; 8] = [
    "active",
    "short_timeout",
    "aggregating",
    "in_sync",
    "collecting",
    "distributing",
    "defaulted",
    "expired",
];

fn port_state<V: Visit>(put: &mut Put<'_, '_, V>, key: &'static str, state: Option<u16>) {
    if let Some(state) = state {
        let bits = PORT_STATES.iter().enumerate();
        let set = bits.filter(|(bit, _)| state & 1 << bit != 0);
        put.raw(key);
        put.raw(" ");
        put.flags(key, set.map(|(_, name)| Value::Text(name)));
    }
}
