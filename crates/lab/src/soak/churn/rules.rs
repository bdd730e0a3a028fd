//! Rules of both families.

use super::{link, pick};
use crate::Random;

/// A rule added or deleted.
pub(super) fn rule(random: &mut Random, lines: &mut Vec<String>) {
    let family = pick(random, &["", "", "-6 "]);
    let (n, link) = (random.below(6), link(random));
    let net = random.below(4);
    let what = match (random.below(14), family) {
        (0, _) => format!("iif {link} lookup 100"),
        (1, _) => format!("oif {link} lookup 100"),
        (2, _) => format!("fwmark {n}/0xff lookup 100"),
        (3, _) => format!("goto {}", 600 + random.below(4)),
        (4, "") => format!("from 10.{net}.0.0/24 lookup 100"),
        (5, "") => format!("to 10.10{n}.0.0/16 prohibit"),
        (4 | 5, _) => format!("from 2001:db8:{net}::/64 lookup 100"),
        (6, _) => format!("uidrange {n}-10 lookup 100"),
        (7, _) => format!("not fwmark {n} lookup main suppress_prefixlength {n}"),
        (8, _) => format!("ipproto tcp dport {n}00-900 lookup 101"),
        (9, _) => "tos 8 lookup 101".into(),
        (10, _) => format!("tun_id {n} lookup 101 protocol bgp"),
        (11, _) => "l3mdev".into(),
        (12, _) => format!("lookup main suppress_ifgroup {n}"),
        _ => "lookup 100".into(),
    };
    lines.push(match random.below(4) {
        0 => format!("ip {family}rule del pref {}", 500 + n),
        1 => format!("ip {family}rule add pref {} {what}", 600 + random.below(4)),
        _ => format!("ip {family}rule add pref {} {what}", 500 + n),
    });
}
