//! Links made, set, moved, enslaved and deleted.

use super::{link, pick};
use crate::Random;

/// Links that come and go.
pub(super) const MADE: &[&str] = &[
    "vl1", "vl2", "vx1", "vx2", "mv1", "mt1", "iv1", "red", "bo1", "br1", "t0", "ge1", "gr1", "if1",
];

/// Up, down, carrier.
pub(super) fn state(random: &mut Random, lines: &mut Vec<String>) {
    let link = link(random);
    let on = pick(random, &["on", "off"]);
    lines.push(match random.below(12) {
        0..4 => format!("ip link set {link} down"),
        4..9 => format!("ip link set {link} up"),
        9 => format!("ip link set {link} carrier {on}"),
        10 => format!("ip link set {link} protodown {on}"),
        // The other end's carrier.
        _ => format!(
            "ip link set p{} {}",
            random.below(4),
            pick(random, &["up", "down"])
        ),
    });
}

/// What is set of a link.
pub(super) fn settings(random: &mut Random, lines: &mut Vec<String>) {
    let link = link(random);
    let n = random.below(5);
    let on = pick(random, &["on", "off"]);
    let line = match random.below(14) {
        0 => {
            let mtu = [1200, 1280, 1400, 1500, 9000][n];
            format!("ip link set {link} mtu {mtu}")
        }
        1 => format!("ip link set {link} group {n}"),
        2 => format!("ip link set {link} alias 'alias {n}'"),
        3 => format!("ip link property add dev {link} altname {link}-other{n}"),
        4 => format!("ip link property del dev {link} altname {link}-other{n}"),
        5 => format!("ip link set {link} address 02:00:00:00:01:0{n}"),
        6 => {
            lines.push(format!("ip link set {link} name {link}x"));
            format!("ip link set {link}x name {link}")
        }
        7 => format!("ip link set {link} promisc {on}"),
        8 => format!("ip link set {link} multicast {on}"),
        9 => format!("ip link set {link} allmulticast {on}"),
        10 => format!("ip link set {link} txqueuelen {}", 100 * n),
        11 => format!(
            "ip link set {link} addrgenmode {}",
            pick(random, &["eui64", "none", "random"])
        ),
        12 => format!(
            "bridge link set dev {link} {} {on}",
            pick(random, &["learning", "flood", "isolated", "neigh_suppress"])
        ),
        _ => format!("ip link set {link} arp {on}"),
    };
    lines.push(line);
}

/// Links made and deleted.
pub(super) fn made(random: &mut Random, lines: &mut Vec<String>) {
    let n = random.below(4);
    let (name, made) = match random.below(19) {
        0 => return lines.push(format!("ip link del v{n}")),
        1 | 2 => {
            let made = format!("ip link add v{n} type veth peer name p{n}");
            lines.extend([made, format!("ip link set p{n} up")]);
            return lines.push(format!("ip link set v{n} up"));
        }
        3 => ("vl1", format!("link v{n} name vl1 type vlan id 7")),
        4 => ("vl2", "link br0 name vl2 type vlan id 8".into()),
        5 => (
            "vx1",
            // Not over the other end of a port.
            format!(
                "vx1 type vxlan id 5 dstport 4789 local 10.0.0.1 dev v{}",
                n % 2
            ),
        ),
        6 => (
            "vx2",
            "vx2 type vxlan id 6 dstport 4790 remote 2001:db8:1::9 dev v1".into(),
        ),
        7 | 8 => {
            let mode = pick(random, &["bridge", "passthru", "private", "vepa"]);
            (
                "mv1",
                format!("link v{n} name mv1 type macvlan mode {mode}"),
            )
        }
        9 => (
            "mt1",
            format!("link v{n} name mt1 type macvtap mode bridge"),
        ),
        10 => ("iv1", format!("link v{n} name iv1 type ipvlan mode l3")),
        11 => ("red", "red type vrf table 77".into()),
        12 => ("bo1", "bo1 type bond mode active-backup miimon 100".into()),
        13 => ("br1", "br1 type bridge vlan_filtering 1".into()),
        14 => ("ge1", "ge1 type geneve id 9 remote 10.0.0.9".into()),
        15 => ("gr1", "gr1 type gretap remote 10.0.0.9".into()),
        16 => ("if1", "if1 type ifb".into()),
        17 => {
            lines.push("ip tuntap add t0 mode tap".into());
            return lines.push("ip link set t0 up".into());
        }
        _ => return lines.push(unmade(random)),
    };
    lines.push(format!("ip link add {made}"));
    lines.push(format!("ip link set {name} up"));
}

fn unmade(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!(
            "ip link set br0 type bridge vlan_filtering {}",
            random.below(2)
        ),
        1 => "ip link del br0".into(),
        2 => "ip link add br0 type bridge".into(),
        _ => format!("ip link del {}", pick(random, MADE)),
    }
}

/// What bridges may have for ports: what goes out of one comes in by none of
/// them again, or a loop would flood the machine.
pub(super) const PORTS: &[&str] = &["p2", "p3", "p2", "p3", "vx1", "if1", "t0"];

/// Masters given and taken.
pub(super) fn enslaved(random: &mut Random, lines: &mut Vec<String>) {
    let port = pick(random, PORTS);
    let link = match random.below(4) {
        0 => link(random),
        _ => pick(random, &["p2", "p3", "v3", "v2", "vx1"]).into(),
    };
    match random.below(7) {
        0..2 => lines.push(format!("ip link set {link} nomaster")),
        2 => lines.push(format!("ip link set {link} master red")),
        3 => {
            lines.push(format!("ip link set {link} down"));
            lines.push(format!("ip link set {link} master bo1"));
        }
        4 => lines.push(format!("ip link set {port} master br1")),
        _ => lines.push(format!("ip link set {port} master br0")),
    }
}

/// Links that leave for another namespace, and come back.
pub(super) fn moved(random: &mut Random, lines: &mut Vec<String>) {
    let link = match random.below(3) {
        0 => pick(random, &["vx1", "vx2", "mv1", "br0", "d0", "t0"]).into(),
        _ => format!("v{}", random.below(4)),
    };
    let there = format!("ip link set {link} netns $OTHER");
    let back = format!("ip -n $OTHER link set {link} netns $HERE");
    match random.below(4) {
        0 => lines.push(there),
        1 => lines.push(back),
        2 => lines.extend([there, back, format!("ip link set {link} up")]),
        _ => {
            lines.push(there);
            lines.push(format!("ip -n $OTHER link set {link} up"));
            lines.push(format!(
                "bridge -n $OTHER fdb append 02:00:00:00:07:01 dev {link} dst 10.0.0.9"
            ));
            lines.extend([back, format!("ip link set {link} up")]);
        }
    }
}
