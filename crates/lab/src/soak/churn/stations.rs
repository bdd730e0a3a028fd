//! Forwarding entries of bridges and VXLAN devices.

use super::links::PORTS;
use super::{link, pick};
use crate::Random;

/// A forwarding entry: stations move between ports, remote ends change.
pub(super) fn station(random: &mut Random, lines: &mut Vec<String>) {
    let n = random.below(5);
    let port = pick(random, PORTS);
    let far = format!("10.0.0.{}", 2 + random.below(4));
    let vxlan = pick(random, &["vx1", "vx1", "vx2"]);
    let kind = pick(
        random,
        &["static", "dynamic", "sticky", "local", "extern_learn"],
    );
    lines.push(match random.below(15) {
        0..3 => format!("bridge fdb replace 02:00:00:00:02:0{n} dev {port} master {kind}"),
        3 => format!("bridge fdb del 02:00:00:00:02:0{n} dev {port} master"),
        4 => format!("bridge fdb add 02:00:00:00:02:0{n} dev {port} master vlan {n} static"),
        5 => format!("bridge fdb append 00:00:00:00:00:00 dev {vxlan} dst {far}"),
        6 => format!("bridge fdb replace 02:00:00:00:03:0{n} dev {vxlan} dst {far}"),
        7 => format!(
            "bridge fdb append {} dev {vxlan} dst {far} via {}",
            pick(random, &["00:00:00:00:00:00", "01:00:00:00:03:01"]),
            link(random)
        ),
        8 => format!("bridge fdb del 02:00:00:00:03:0{n} dev {vxlan}"),
        9 => format!("bridge fdb append 01:00:00:00:03:0{n} dev {vxlan} dst {far} port 479{n}"),
        10 => format!("bridge fdb del 00:00:00:00:00:00 dev {vxlan} dst {far}"),
        11 => format!("bridge fdb replace 02:00:00:00:03:0{n} dev {vxlan} nhid 31"),
        12 => format!(
            "bridge fdb add 02:00:00:00:04:0{n} dev {} self permanent",
            link(random)
        ),
        13 => format!("bridge vlan add vid {} dev {port}", 1 + n),
        _ => format!("bridge fdb flush dev {port} master"),
    });
}
