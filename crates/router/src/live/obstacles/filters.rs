//! Obstacles that filter, translate or encrypt: nftables, iptables, tracked
//! connections, IPsec.

use netlink::on_the_way::{BaseChain, family, hook};

use super::seen::{Family, Seen};
use super::{Kind, Obstacle, Scope};

const AF_INET6: u16 = 10;

pub fn find(seen: &Seen, found: &mut Vec<Obstacle>) {
    for chain in &seen.chains {
        if !chain.is_busy {
            continue;
        }
        for scope in scopes(seen, chain) {
            found.push(Obstacle {
                kind: Kind::Nft,
                scope,
                what: format!(
                    "the chain {} of nftables' table {}",
                    chain.name, chain.table
                ),
            });
        }
    }
    for (family, table) in &seen.iptables {
        found.push(Obstacle {
            kind: Kind::Iptables,
            scope: Scope::Family(*family),
            what: format!("the table {table} of iptables for {}", family.name()),
        });
    }
    if seen.connections > 0 {
        found.push(Obstacle {
            kind: Kind::Conntrack,
            scope: Scope::All,
            what: "connections are tracked (nf_conntrack)".to_owned(),
        });
    }
    for family in &seen.policies {
        let (scope, name) = match *family {
            AF_INET6 => (Scope::Family(Family::V6), "IPv6"),
            2 => (Scope::Family(Family::V4), "IPv4"),
            _ => (Scope::All, "all"),
        };
        found.push(Obstacle {
            kind: Kind::Xfrm,
            scope,
            what: format!("IPsec policies for {name} (`ip xfrm policy`)"),
        });
    }
}

/// The packets of ours that meet a chain.
fn scopes(seen: &Seen, chain: &BaseChain) -> Vec<Scope> {
    let is_on_the_way = matches!(
        chain.hook,
        hook::PREROUTING | hook::FORWARD | hook::POSTROUTING
    );
    match chain.family {
        family::IPV4 if is_on_the_way => vec![Scope::Family(Family::V4)],
        family::IPV6 if is_on_the_way => vec![Scope::Family(Family::V6)],
        family::INET if is_on_the_way => vec![Scope::All],
        family::INET if chain.hook == hook::INGRESS => on_ports(seen, chain),
        family::NETDEV => on_ports(seen, chain),
        _ => Vec::new(),
    }
}

fn on_ports(seen: &Seen, chain: &BaseChain) -> Vec<Scope> {
    let ports = seen.ports.iter().map(|port| &port.link);
    ports
        .filter(|link| chain.devices.contains(&link.name))
        .map(|link| Scope::Port(link.index))
        .collect()
}
