//! What changes what the kernel does, and the daemon stopped for a while.

use super::{link, pick};
use crate::Random;

/// A setting of the kernel's.
pub(super) fn setting(random: &mut Random, lines: &mut Vec<String>) {
    let link = match random.below(4) {
        0 => "all".to_owned(),
        _ => link(random),
    };
    let at = match random.below(14) {
        0 => format!("ipv4/conf/{link}/ignore_routes_with_linkdown"),
        1 => format!("ipv6/conf/{link}/ignore_routes_with_linkdown"),
        2 => format!("ipv4/conf/{link}/arp_ignore"),
        3 | 4 => format!("ipv4/conf/{link}/promote_secondaries"),
        5 => format!("ipv4/conf/{link}/arp_notify"),
        6 => "ipv4/fib_multipath_hash_policy".into(),
        7 => "ipv6/fib_multipath_hash_policy".into(),
        8 => format!("ipv4/conf/{link}/arp_announce"),
        9 => format!("ipv4/conf/{link}/arp_evict_nocarrier"),
        10 => format!("ipv4/conf/{link}/forwarding"),
        // Never of all links, or the questions about IPv6 would be few.
        11 | 12 if link != "all" => format!("ipv6/conf/{link}/disable_ipv6"),
        _ => format!("ipv6/conf/{link}/keep_addr_on_down"),
    };
    // How a flow is hashed has four ways, all else is on or off.
    let values = if at.ends_with("hash_policy") { 4 } else { 2 };
    let value = random.below(values);
    lines.push(format!("echo {value} > /proc/sys/net/{at}"));
}

/// The daemon stopped, so that events queue up, or let go on.
pub(super) fn stopped(random: &mut Random, lines: &mut Vec<String>) {
    lines.push(pick(random, &["kill -STOP $DAEMON", "kill -CONT $DAEMON"]).into());
}
