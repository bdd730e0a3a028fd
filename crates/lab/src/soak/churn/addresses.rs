//! Addresses, and neighbours of every state.

use super::{link, pick};
use crate::Random;

const LIFETIMES: &[&str] = &[
    "",
    "",
    "",
    " valid_lft 3000 preferred_lft 2000",
    " valid_lft 3000 preferred_lft 0",
];

/// Addresses of both families, with lifetimes and secondaries.
pub(super) fn address(random: &mut Random, lines: &mut Vec<String>) {
    let link = link(random);
    let (net, host) = (random.below(4), 1 + random.below(5));
    let lifetime = pick(random, LIFETIMES);
    lines.push(match random.below(20) {
        0..5 => format!("ip addr add 10.{net}.0.{host}/24 dev {link}{lifetime}"),
        5 => format!("ip addr add 10.{net}.0.{host}/25 dev {link}"),
        6 => format!("ip addr add 10.9.{net}.{host}/32 dev {link}"),
        7 => format!("ip addr add 10.8.0.{host} peer 10.8.1.{host}/30 dev {link}"),
        8..10 => format!("ip addr del 10.{net}.0.{host}/24 dev {link}"),
        10 => format!("ip addr flush dev {link}"),
        11..14 => format!("ip addr add 2001:db8:{net}::{host}/64 dev {link} nodad{lifetime}"),
        14 => format!("ip addr del 2001:db8:{net}::{host}/64 dev {link}"),
        15 => format!("ip addr change 10.{net}.0.{host}/24 dev {link} metric {host}"),
        16 => format!("ip addr change 10.{net}.0.{host}/24 dev {link}{lifetime}"),
        17 => format!("ip addr add 10.{net}.0.{host}/24 dev {link} noprefixroute scope link"),
        18 => format!(
            "ip addr add 2001:db8:{net}::{host}/64 dev {link} nodad {}",
            pick(random, &["noprefixroute", "home", "metric 77"])
        ),
        _ => format!("ip addr change 2001:db8:{net}::{host}/64 dev {link} preferred_lft 0"),
    });
}

/// Neighbours of every state, proxies, and those that the kernel keeps
/// resolved.
pub(super) fn neighbour(random: &mut Random, lines: &mut Vec<String>) {
    let link = link(random);
    let (net, host) = (random.below(4), 1 + random.below(6));
    let to = match random.below(2) {
        0 => format!("10.{net}.0.{host}"),
        _ => format!("2001:db8:{net}::{host}"),
    };
    let state = pick(
        random,
        &["permanent", "permanent", "noarp", "stale", "reachable"],
    );
    let lladdr = format!("lladdr 02:00:00:00:00:0{host}");
    lines.push(match random.below(13) {
        0..4 => format!("ip neigh replace {to} {lladdr} dev {link} nud {state}"),
        4 => format!("ip neigh del {to} dev {link}"),
        5 => format!("ip neigh add proxy {to} dev {link}"),
        6 => format!("ip neigh del proxy {to} dev {link}"),
        7 => format!("ip neigh replace {to} dev {link} managed"),
        8 => format!("ip neigh replace {to} {lladdr} dev {link} extern_learn"),
        9 => format!("ip neigh replace {to} {lladdr} dev {link} router nud {state}"),
        10 => format!("ip neigh replace {to} {lladdr} dev {link} protocol bgp"),
        11 => format!("ip neigh change {to} dev {link} nud none"),
        _ => format!("ip neigh flush dev {link} nud permanent"),
    });
}
