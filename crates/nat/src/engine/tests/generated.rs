//! Engines of all kinds, and what may happen to one.

use super::*;
use crate::blocks::{Deterministic, Key as Secret};
use crate::{Blocks, Timeouts};

/// Another alias address than the usual one.
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Settings by chance.
pub(super) fn config(random: &mut Random, seed: u64) -> Config {
    let mut below = |bound: u32| random.below(bound);
    let mut config = super::config(4 + below(100) as usize);
    config.seed = seed;
    config.limits.at_cap = [AtCap::Evict, AtCap::Refuse][below(2) as usize];
    if below(3) > 0 {
        config.udp = Behaviour::FULL_CONE;
    }
    if below(2) > 0 {
        config.tcp = Behaviour::FULL_CONE;
    }
    config.target = (below(3) == 0).then_some(host(3));
    config.mode.deny_incoming = config.target.is_none();
    config.pooling = [crate::Pooling::Paired, crate::Pooling::Arbitrary][below(2) as usize];
    config.port_choice = [PortChoice::Same, PortChoice::Random][below(2) as usize];
    config.ports = 40_000..=40_000 + [63, 255][below(2) as usize];
    config.subscribers.bits = 31 + below(2) as u8;
    config.subscribers.most = 2 + below(8) as usize;
    let quotas = &mut config.subscribers.quotas;
    for quota in [
        &mut quotas.ports,
        &mut quotas.sessions,
        &mut quotas.half_open,
    ] {
        if below(2) == 0 {
            quota.all = 1 + below(10);
        }
    }
    let is_reckoned = below(3) == 0;
    config.blocks = (below(5) > 0).then(|| Blocks {
        size: 8 + below(8) as u16,
        most: 1 + below(3) as u8,
        active_secs: [0, 50][below(2) as usize],
        hold_down_secs: [0, 30, 120][below(3) as usize],
        interim_secs: [0, 20][below(2) as usize],
        ..Blocks::default()
    });
    if let Some(blocks) = config.blocks.as_mut().filter(|_| is_reckoned) {
        config.subscribers.bits = 31;
        config.subscribers.inside = vec![crate::AddressRange::of_prefix(HOST, 29)];
        blocks.size = 8;
        config.ports = 40_000..=40_255;
        blocks.deterministic = Some(Deterministic {
            ratio: 0,
            dynamic: below(3),
            key: (below(2) == 0).then_some(Secret([3; 16])),
        });
    }
    config
}

/// Whether blocks can be reckoned.
pub(super) fn is_reckoned(config: &Config) -> bool {
    let blocks = config.blocks.as_ref();
    blocks.is_some_and(|blocks| blocks.deterministic.is_some())
}

/// Something happens; what became of the packets of it.
pub(super) fn step(nat: &mut Nat, random: &mut Random, now: &mut u64) -> Vec<(Verdict, Vec<u8>)> {
    let mut came = Vec::new();
    let mut below = |bound: u32| random.below(bound);
    *now += u64::from(below(2_000));
    let source = (host(below(9)), 1 + below(6) as u16);
    let to = (
        Ipv4Addr::from(u32::from(REMOTE) + below(3)),
        53 + below(3) as u16,
    );
    match below(40) {
        0 => nat.forget_flows(),
        1 if !is_reckoned(nat.config()) => nat
            .set_addresses(&[[ALIAS, OTHER][below(2) as usize]])
            .unwrap(),
        2 => {
            let udp = [Behaviour::SYMMETRIC, Behaviour::FULL_CONE][below(2) as usize];
            nat.set_udp(udp);
        }
        3 => nat.set_timeouts(Timeouts {
            udp_unreplied_secs: 1 + below(100),
            ..Timeouts::default()
        }),
        4 => *now += 100_000,
        5 => drop(nat.maintain(*now, below(100) as usize)),
        6 => drop(remove(nat, source, to)),
        7..14 => {
            let flags = [SYN, ACK, packet::tcp::RST][below(3) as usize];
            let mut segment = Ip::new(source.0, to.0).tcp(&Segment {
                source_port: source.1,
                destination_port: to.1,
                flags,
                ..Segment::default()
            });
            let verdict = nat.translate_out(&mut segment, *now);
            came.push((verdict, segment.clone()));
            let port = u16::from_be_bytes([segment[20], segment[21]]);
            let mut answer = Ip::new(to.0, ALIAS).tcp(&Segment {
                source_port: to.1,
                destination_port: port,
                flags: ACK,
                ..Segment::default()
            });
            let verdict = nat.translate_in(&mut answer, *now);
            came.push((verdict, answer));
        }
        14..30 => {
            let mut bytes = Ip::new(source.0, to.0).udp(source.1, to.1, b"data");
            let verdict = nat.translate_out(&mut bytes, *now);
            came.push((verdict, bytes));
        }
        _ => {
            let port = 40_000 + below(64) as u16;
            let mut bytes = Ip::new(to.0, ALIAS).udp(to.1, port, b"data");
            let verdict = nat.translate_in(&mut bytes, *now);
            came.push((verdict, bytes));
        }
    }
    came
}
