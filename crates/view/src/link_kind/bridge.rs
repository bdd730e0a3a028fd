//! A bridge and its ports.

use table::row::link::bridge::{Bridge, BridgeId, BridgePort};

use super::put::Put;
use super::vlan;
use crate::fields::{Value, Visit};

/// `BR_BOOLOPT_…`, `linux/if_bridge.h`.
const NO_LL_LEARN: u32 = 1;
const MCAST_VLAN_SNOOPING: u32 = 2;

pub(super) fn show<V: Visit>(bridge: &Bridge, link: u32, put: &mut Put<'_, '_, V>) {
    let numbers = [
        ("forward_delay", bridge.forward_delay),
        ("hello_time", bridge.hello_time),
        ("max_age", bridge.max_age),
        ("ageing_time", bridge.ageing_time),
        ("stp_state", bridge.stp_state),
        ("priority", bridge.priority.map(u32::from)),
        ("vlan_filtering", bridge.vlan_filtering.map(u32::from)),
    ];
    for (key, number) in numbers {
        put.number(key, key, number);
    }
    vlan::protocol(put, "vlan_protocol", bridge.vlan_protocol);
    id(put, "bridge_id", "bridge_id", bridge.bridge_id);
    id(put, "root_id", "designated_root", bridge.root_id);
    let numbers = [
        ("root_port", bridge.root_port.map(u32::from)),
        ("root_path_cost", bridge.root_path_cost),
        ("topology_change", bridge.topology_change.map(u32::from)),
        (
            "topology_change_detected",
            bridge.topology_change_detected.map(u32::from),
        ),
    ];
    for (key, number) in numbers {
        put.number(key, key, number);
    }
    timers(link, put);
    let numbers = [
        ("vlan_default_pvid", bridge.vlan_default_pvid.map(u32::from)),
        (
            "vlan_stats_enabled",
            bridge.vlan_stats_enabled.map(u32::from),
        ),
        (
            "vlan_stats_per_port",
            bridge.vlan_stats_per_port.map(u32::from),
        ),
    ];
    for (key, number) in numbers {
        put.number(key, key, number);
    }
    put.hex("group_fwd_mask", "group_fwd_mask", bridge.group_fwd_mask);
    put.mac("group_addr", "group_address", bridge.group_addr);
    multicast(bridge, put);
    let numbers = [
        ("nf_call_iptables", bridge.nf_call_iptables),
        ("nf_call_ip6tables", bridge.nf_call_ip6tables),
        ("nf_call_arptables", bridge.nf_call_arptables),
    ];
    for (key, number) in numbers {
        put.number(key, key, number);
    }
}

fn timers<V: Visit>(link: u32, put: &mut Put<'_, '_, V>) {
    let known = put.view.unannounced(link);
    if let Some(timers) = known.and_then(|known| known.bridge) {
        put.timer("hello_timer", timers.hello);
        put.timer("tcn_timer", timers.tcn);
        put.timer("topology_change_timer", timers.topology_change);
        put.timer("gc_timer", timers.gc);
    }
}

fn port_timers<V: Visit>(link: u32, put: &mut Put<'_, '_, V>) {
    let known = put.view.unannounced(link);
    if let Some(timers) = known.and_then(|known| known.port) {
        put.timer("hold_timer", timers.hold);
        put.timer("message_age_timer", timers.message_age);
        put.timer("forward_delay_timer", timers.forward_delay);
    }
}

fn multicast<V: Visit>(bridge: &Bridge, put: &mut Put<'_, '_, V>) {
    put.number("mcast_snooping", "mcast_snooping", bridge.mcast_snooping);
    if let Some((on, known)) = bridge.multi_boolopt {
        let options = [
            ("no_linklocal_learn", NO_LL_LEARN),
            ("mcast_vlan_snooping", MCAST_VLAN_SNOOPING),
        ];
        for (key, bit) in options.into_iter().filter(|(_, bit)| known & bit != 0) {
            put.number(key, key, Some(u32::from(on & bit != 0)));
        }
    }
    let small = |number: Option<u8>| number.map(u64::from);
    let number = |number: Option<u32>| number.map(u64::from);
    let numbers = [
        ("mcast_router", "mcast_router", small(bridge.mcast_router)),
        (
            "mcast_query_use_ifaddr",
            "mcast_query_use_ifaddr",
            small(bridge.mcast_query_use_ifaddr),
        ),
        (
            "mcast_querier",
            "mcast_querier",
            small(bridge.mcast_querier),
        ),
        (
            "mcast_hash_elasticity",
            "mcast_hash_elasticity",
            number(bridge.mcast_hash_elasticity),
        ),
        (
            "mcast_hash_max",
            "mcast_hash_max",
            number(bridge.mcast_hash_max),
        ),
        (
            "mcast_last_member_cnt",
            "mcast_last_member_count",
            number(bridge.mcast_last_member_cnt),
        ),
        (
            "mcast_startup_query_cnt",
            "mcast_startup_query_count",
            number(bridge.mcast_startup_query_cnt),
        ),
        (
            "mcast_last_member_intvl",
            "mcast_last_member_interval",
            bridge.mcast_last_member_intvl,
        ),
        (
            "mcast_membership_intvl",
            "mcast_membership_interval",
            bridge.mcast_membership_intvl,
        ),
        (
            "mcast_querier_intvl",
            "mcast_querier_interval",
            bridge.mcast_querier_intvl,
        ),
        (
            "mcast_query_intvl",
            "mcast_query_interval",
            bridge.mcast_query_intvl,
        ),
        (
            "mcast_query_response_intvl",
            "mcast_query_response_interval",
            bridge.mcast_query_response_intvl,
        ),
        (
            "mcast_startup_query_intvl",
            "mcast_startup_query_interval",
            bridge.mcast_startup_query_intvl,
        ),
        (
            "mcast_stats_enabled",
            "mcast_stats_enabled",
            small(bridge.mcast_stats_enabled),
        ),
        (
            "mcast_igmp_version",
            "mcast_igmp_version",
            small(bridge.mcast_igmp_version),
        ),
        (
            "mcast_mld_version",
            "mcast_mld_version",
            small(bridge.mcast_mld_version),
        ),
    ];
    for (key, word, number) in numbers {
        put.number(key, word, number);
    }
}

/// Priority, a dot, and the address without leading zeros.
fn id<V: Visit>(put: &mut Put<'_, '_, V>, key: &'static str, word: &str, id: Option<BridgeId>) {
    if let Some(BridgeId([p0, p1, a, b, c, d, e, f])) = id {
        let text = format!("{p0:02x}{p1:02x}.{a:x}:{b:x}:{c:x}:{d:x}:{e:x}:{f:x}");
        put.value(key, word, Value::Text(&text));
    }
}

/// `BR_STATE_…`
pub(crate) const STATES: &[&str] = &[
    "disabled",
    "listening",
    "learning",
    "forwarding",
    "blocking",
];

pub(super) fn show_port<V: Visit>(port: &BridgePort, link: u32, put: &mut Put<'_, '_, V>) {
    match port.state {
        Some(other @ 5..) => {
            put.field("state_index", Value::Number(other.into()));
            put.say("state", Value::Text(&format!("({other})")));
        }
        state => put.named("state", "state", STATES, state),
    }
    put.number("priority", "priority", port.priority);
    put.number("cost", "cost", port.cost);
    let switches = [
        ("hairpin", port.mode),
        ("guard", port.guard),
        ("root_block", port.protect),
        ("fastleave", port.fast_leave),
        ("learning", port.learning),
        ("flood", port.unicast_flood),
    ];
    for (key, switch) in switches {
        put.on_off(key, switch);
    }
    spanning_tree(port, link, put);
    put.on_off("proxy_arp", port.proxyarp);
    put.on_off("proxy_arp_wifi", port.proxyarp_wifi);
    put.number("multicast_router", "mcast_router", port.multicast_router);
    // JSON has it under another name already.
    if let Some(fast_leave) = port.fast_leave {
        let word = if fast_leave != 0 { "on" } else { "off" };
        put.say("mcast_fast_leave", Value::Text(word));
    }
    let switches = [
        ("mcast_flood", port.mcast_flood),
        ("bcast_flood", port.bcast_flood),
        ("mcast_to_unicast", port.mcast_to_ucast),
        ("neigh_suppress", port.neigh_suppress),
    ];
    for (key, switch) in switches {
        put.on_off(key, switch);
    }
    if let Some(mask) = port.group_fwd_mask {
        put.hex("group_fwd_mask", "group_fwd_mask", Some(mask));
        let names = mask_names(mask);
        put.value(
            "group_fwd_mask_str",
            "group_fwd_mask_str",
            Value::Text(&names),
        );
    }
    put.on_off("vlan_tunnel", port.vlan_tunnel);
    put.on_off("isolated", port.isolated);
    put.on_off("locked", port.locked);
    put.device_or_star("backup_port", port.backup_port);
}

fn spanning_tree<V: Visit>(port: &BridgePort, link: u32, put: &mut Put<'_, '_, V>) {
    put.hex("id", "port_id", port.id);
    put.hex("no", "port_no", port.no);
    put.number("designated_port", "designated_port", port.designated_port);
    put.number("designated_cost", "designated_cost", port.designated_cost);
    id(put, "bridge_id", "designated_bridge", port.bridge_id);
    id(put, "root_id", "designated_root", port.root_id);
    port_timers(link, put);
    put.number(
        "topology_change_ack",
        "topology_change_ack",
        port.topology_change_ack,
    );
    put.number("config_pending", "config_pending", port.config_pending);
}

/// Addresses 01-80-C2-00-00-0X that are forwarded, by protocol where one
/// is known by it (IEEE 802.1Q table 8-1).
fn mask_names(mask: u16) -> String {
    let bits = (0..16).filter(|bit| mask & 1 << bit != 0);
    let names: Vec<String> = bits
        .map(|bit| match bit {
            0 => "stp".to_owned(),
            2 => "lacp".to_owned(),
            14 => "lldp".to_owned(),
            bit => format!("{:#x}", 1 << bit),
        })
        .collect();
    match names.is_empty() {
        true => "0x0".to_owned(),
        false => names.join(","),
    }
}
