//! Next-hop objects, groups of them, and the routes that use them.

use super::{link, pick};
use crate::Random;

/// Objects, groups and resilient groups.
pub(super) fn object(random: &mut Random, lines: &mut Vec<String>) {
    let (id, net, host) = (1 + random.below(5), random.below(4), 2 + random.below(5));
    let (one, two) = (1 + random.below(3), 1 + random.below(5));
    let resilient = "type resilient buckets 8 idle_timer 120";
    let line = match random.below(16) {
        0..4 => format!("ip nexthop replace id {id} via 10.{net}.0.{host} dev v{net}"),
        4..6 => format!("ip nexthop replace id {id} via 2001:db8:{net}::{host} dev v{net}"),
        6 => format!("ip nexthop replace id {id} blackhole"),
        7 => format!("ip nexthop replace id {} group {id},{one}/{two}", 10 + id),
        8 => format!(
            "ip nexthop replace id {} group {id},{one}/{two},{}",
            10 + id,
            1 + random.below(200)
        ),
        9 => format!("ip nexthop add id {} group {id}/{two} {resilient}", 20 + id),
        10 => format!("ip nexthop replace id {} group {id} {resilient}", 20 + id),
        11 => format!(
            "ip nexthop del id {}",
            [id, 10 + id, 20 + id][random.below(3)]
        ),
        12 => format!("ip nexthop replace id {id} via 10.{net}.0.{host} dev v{net} onlink"),
        13 => format!(
            "ip nexthop replace id {id} encap ip id 7 dst 10.0.0.9 via 10.{net}.0.{host} dev v{net}"
        ),
        14 => {
            lines.push(format!(
                "ip nexthop add id 30 via fe80::{host} dev v{net} fdb"
            ));
            "ip nexthop add id 31 group 30 fdb".into()
        }
        _ => format!("ip nexthop replace id {id} dev {}", link(random)),
    };
    lines.push(line);
}

/// Routes by an object or a group.
pub(super) fn route(random: &mut Random, lines: &mut Vec<String>) {
    let id = [0, 10, 20][random.below(3)] + 1 + random.below(5);
    let n = random.below(6);
    let verb = pick(random, &["add", "replace", "append"]);
    lines.push(match random.below(5) {
        0..2 => format!("ip route {verb} 10.12{n}.0.0/16 nhid {id}"),
        2 => format!("ip route {verb} 10.12{n}.0.0/16 nhid {id} metric 9 table 100"),
        _ => format!("ip -6 route {verb} 2001:db8:8{n}::/48 nhid {id}"),
    });
}
