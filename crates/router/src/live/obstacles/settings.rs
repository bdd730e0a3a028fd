//! Obstacles among settings: policy rules, several next hops, forwarding.

use table::{AF_INET6, Rule};

use super::seen::{Family, Seen};
use super::{Kind, Obstacle, Scope};

/// Hash policies by more than addresses (0) and ports (1) look into packets,
/// which the lookup of a program cannot.
const MOST_POLICY: u32 = 1;

pub fn find(seen: &Seen, found: &mut Vec<Obstacle>) {
    for rule in &seen.rules {
        if let Some(selector) = unknown_selector(rule) {
            found.push(Obstacle {
                kind: Kind::Rule,
                scope: Scope::Family(family(rule)),
                what: format!(
                    "the rule {} for {} goes by {selector}",
                    rule.priority,
                    family(rule).name()
                ),
            });
        }
    }
    for (family, policy) in [Family::V4, Family::V6].into_iter().zip(seen.hash_policies) {
        if policy > MOST_POLICY {
            found.push(Obstacle {
                kind: Kind::Multipath,
                scope: Scope::Family(family),
                what: format!("fib_multipath_hash_policy {policy} for {}", family.name()),
            });
        }
    }
    forwarding(seen, found);
}

fn family(rule: &Rule) -> Family {
    if rule.family == AF_INET6 {
        Family::V6
    } else {
        Family::V4
    }
}

/// What a rule goes by that the program does not tell the lookup.
fn unknown_selector(rule: &Rule) -> Option<&'static str> {
    if rule.fwmark.is_some() {
        return Some("fwmark");
    }
    if rule.tunnel_id.is_some() {
        return Some("tun_id");
    }
    None
}

fn forwarding(seen: &Seen, found: &mut Vec<Obstacle>) {
    let mut add = |scope, what: String| {
        found.push(Obstacle {
            kind: Kind::Forwarding,
            scope,
            what,
        });
    };
    if !seen.forwards_v6 {
        let what = "net.ipv6.conf.all.forwarding is 0";
        add(Scope::Family(Family::V6), what.to_owned());
    }
    if !seen.loopback_forwards {
        let what = "net.ipv4.conf.lo.forwarding is 0 (`sysctl -w net.ipv4.ip_forward=1`)";
        add(Scope::Family(Family::V4), what.to_owned());
    }
    for port in &seen.ports {
        let (index, name) = (port.link.index, &port.link.name);
        if !port.link.forwards_v4 {
            let what = format!("net.ipv4.conf.{name}.forwarding is 0");
            add(Scope::Into(index, Family::V4), what);
        }
        if port.link.v6_disabled {
            let what = format!("net.ipv6.conf.{name}.disable_ipv6 is 1");
            add(Scope::Into(index, Family::V6), what);
        }
    }
}
