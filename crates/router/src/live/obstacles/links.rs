//! Obstacles at a port: what it is a member of, what is on it, filters and
//! queueing disciplines.

use super::seen::{PortSeen, Seen};
use super::{Kind, Obstacle, Scope};

/// Disciplines that neither shape nor drop but for a queue that is full, and
/// keep the order within a flow.
const PLAIN: [&str; 8] = [
    "noqueue",
    "mq",
    "pfifo_fast",
    "fq_codel",
    "fq",
    "pfifo",
    "bfifo",
    "noop",
];
/// Where filters are.
const CLASSIFYING: [&str; 2] = ["clsact", "ingress"];
/// Kinds of links that take packets of the address of the link that they are
/// on.
const SHARING: [&str; 4] = ["ipvlan", "ipvtap", "macsec", "hsr"];
/// `MACVLAN_MODE_PASSTHRU` and `MACVLAN_MODE_SOURCE`: the other modes take
/// packets by their own address.
const TAKING: [u32; 2] = [8, 16];

pub fn find(seen: &Seen, found: &mut Vec<Obstacle>) {
    for port in &seen.ports {
        of_port(seen, port, found);
    }
}

fn of_port(seen: &Seen, port: &PortSeen, found: &mut Vec<Obstacle>) {
    let (index, name) = (port.link.index, &*port.link.name);
    let mut add = |kind, what| {
        found.push(Obstacle {
            kind,
            scope: Scope::Port(index),
            what,
        });
    };
    if let Some(master) = port.link.master {
        let master = seen.links.iter().find(|link| link.index == master);
        let master = master.map_or("another link", |link| &*link.name);
        add(Kind::Member, format!("{name} is a port of {master}"));
    }
    if port.link.kind.as_deref() == Some("bond") {
        let what = format!(
            "{name} is a bond: the kernel forwards what it receives; take the links out of it, \
             or leave it out here"
        );
        add(Kind::Bond, what);
    }
    for upper in &seen.links {
        if upper.lower == Some(index) && upper.lower_netns_id.is_none() && shares_address(upper) {
            let kind = upper.kind.as_deref().unwrap_or_default();
            add(Kind::Upper, format!("{} ({kind}) is on {name}", upper.name));
        }
    }
    for qdisc in seen.qdiscs.iter().filter(|qdisc| qdisc.link == index) {
        let kind = &*qdisc.kind;
        if CLASSIFYING.contains(&kind) {
            add(Kind::Tc, format!("filters may be at {kind} of {name}"));
        } else if !PLAIN.contains(&kind) {
            add(Kind::Qdisc, format!("{kind} on {name}"));
        }
    }
    if port.tcx_programs > 0 {
        add(Kind::Tc, format!("programs are at tcx of {name}"));
    }
    let tells_tags = port.features.is_some_and(|features| features.tells_tags);
    if !(tells_tags && port.asks_tags) {
        add(
            Kind::VlanTags,
            format!(
                "{name} may take VLAN tags off unseen: `ethtool -K {name} rxvlan off` \
                 (of a veth: `txvlan off` at its other end), then accept it"
            ),
        );
    }
}

fn shares_address(upper: &table::Link) -> bool {
    let Some(kind) = upper.kind.as_deref() else {
        return false;
    };
    let takes = || {
        matches!(
            &upper.kind_data,
            table::row::link::KindData::Macvlan(data)
                if data.mode.is_some_and(|mode| TAKING.contains(&mode))
        )
    };
    SHARING.contains(&kind) || (kind.starts_with("macv") && takes())
}
