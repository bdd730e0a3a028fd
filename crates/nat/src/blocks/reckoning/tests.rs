use super::super::{Deterministic, Key};
use super::*;
use crate::key::Random;

fn range(first: [u8; 4], last: [u8; 4]) -> AddressRange {
    AddressRange {
        first: first.into(),
        last: last.into(),
    }
}

/// The worked example of RFC 7422 §2.3: fourteen hosts of 198.51.100.0/28
/// behind one address, 1,024 ports reserved, a dynamic factor of two.
fn worked_example() -> Config {
    let mut config = Config::new(&[Ipv4Addr::new(192, 0, 2, 1)]);
    config.ports = 1_024..=65_535;
    config.subscribers.inside = vec![range([198, 51, 100, 1], [198, 51, 100, 14])];
    config.blocks = Some(Blocks {
        size: 1_008,
        most: 1,
        deterministic: Some(Deterministic {
            ratio: 14,
            dynamic: 2,
            key: None,
        }),
        ..Blocks::default()
    });
    config
}

#[test]
fn the_worked_example_of_rfc_7422() {
    let config = worked_example();
    let reckoning = Reckoning::new(&config).unwrap().unwrap();
    let blocks = config.blocks.as_ref().unwrap();
    let of = |host| {
        let inside = Ipv4Addr::new(198, 51, 100, host);
        let reckoned = reckoning.outside_with(inside, blocks).unwrap();
        assert_eq!(reckoned.alias, Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(reckoned.ports.count() + reckoned.dynamic, 5_040);
        reckoned.ports
    };
    assert_eq!(of(1), PortSet::Row(1_024, 5_055));
    assert_eq!(of(2), PortSet::Row(5_056, 9_087));
    assert_eq!(of(14), PortSet::Row(53_440, 57_471));
    assert_eq!(of(1).count(), 4_032);
    let alias = Ipv4Addr::new(192, 0, 2, 1);
    let who = |port| reckoning.inside(alias, port).map(|range| range.first);
    assert_eq!(who(1_024), Some(Ipv4Addr::new(198, 51, 100, 1)));
    assert_eq!(who(5_056), Some(Ipv4Addr::new(198, 51, 100, 2)));
    assert_eq!(who(57_471), Some(Ipv4Addr::new(198, 51, 100, 14)));
    // Reserved; and the dynamic ones, 57472 to 65535.
    assert_eq!((who(1_023), who(57_472), who(65_535)), (None, None, None));
    assert_eq!(reckoning.inside(Ipv4Addr::new(192, 0, 2, 2), 1_024), None);
    assert_eq!(reckoning.outside(Ipv4Addr::new(198, 51, 100, 15)), None);
    assert_eq!(reckoning.layout.row(14), Some((57_472, 58_479)));
    assert_eq!(reckoning.layout.row(21), Some((64_528, 65_535)));
}

fn drawn(random: &mut Random) -> Config {
    let mut config = Config::new(&[]);
    let addresses = 1 + random.below(6);
    config.addresses = (0..addresses)
        .map(|at| Ipv4Addr::from_bits(0xc000_0200 + at * 3))
        .collect();
    // In another order than theirs.
    config
        .addresses
        .rotate_left(random.below(addresses) as usize);
    let bits = 26 + random.below(7) as u8;
    let size = 1_u32 << (32 - bits);
    config.subscribers.bits = bits;
    let mut at = 0x0a00_0000;
    for _ in 0..1 + random.below(4) {
        let count = 1 + random.below(12);
        config.subscribers.inside.push(AddressRange {
            first: Ipv4Addr::from_bits(at),
            last: Ipv4Addr::from_bits(at + count * size - 1),
        });
        at += (count + random.below(3)) * size;
    }
    config.subscribers.inside.rotate_left(1);
    config.ports = 1 + random.below(30_000) as u16..=40_000 + random.below(25_536) as u16;
    config.blocks = Some(Blocks {
        size: 8 + random.below(200) as u16,
        deterministic: Some(Deterministic {
            ratio: 0,
            dynamic: random.below(4),
            key: (random.below(2) == 0).then_some(Key([9; 16])),
        }),
        ..Blocks::default()
    });
    config
}

#[test]
fn subscriber_and_ports_are_each_others_only_one() {
    let mut random = Random::new(42);
    let mut ports_seen = 0;
    for _ in 0..60 {
        let config = drawn(&mut random);
        let reckoning = Reckoning::new(&config).unwrap().unwrap();
        let mut taken = std::collections::HashSet::new();
        let mut subscribers = 0;
        for range in &config.subscribers.inside {
            let step = 1 << (32 - config.subscribers.bits);
            let all = range.first.to_bits()..=range.last.to_bits();
            for inside in all.step_by(step).map(Ipv4Addr::from_bits) {
                subscribers += 1;
                let reckoned = reckoning.outside(inside).unwrap();
                let ports: Vec<u16> = match &reckoned.ports {
                    PortSet::Row(first, last) => (*first..=*last).collect(),
                    PortSet::Shuffled(ports) => ports.clone(),
                };
                for port in ports {
                    assert!(config.ports.contains(&port));
                    assert!(taken.insert((reckoned.alias, port)), "two have {port}");
                    let back = reckoning.inside(reckoned.alias, port);
                    assert_eq!(back, Some(reckoned.subscriber));
                    ports_seen += 1;
                }
            }
        }
        assert_eq!(reckoning.subscribers(), subscribers);
        // What was not taken is nobody's.
        for alias in &config.addresses {
            for port in (1..=u16::MAX).filter(|port| !taken.contains(&(*alias, *port))) {
                assert_eq!(reckoning.inside(*alias, port), None);
            }
        }
    }
    assert!(ports_seen > 1_000_000);
}

#[test]
fn what_cannot_be_reckoned_is_refused() {
    let mut config = worked_example();
    config.subscribers.inside.clear();
    assert_eq!(Reckoning::new(&config), Err(BlocksError::NoInside));
    let mut config = worked_example();
    config.addresses.clear();
    assert_eq!(Reckoning::new(&config), Err(BlocksError::NoAddress));
    let mut config = worked_example();
    config.subscribers.inside = vec![range([10, 0, 0, 0], [10, 0, 0, 14])];
    let refused = Reckoning::new(&config).unwrap_err();
    assert!(matches!(
        refused,
        BlocksError::Ratio {
            subscribers: 15,
            ratio: 14,
            ..
        }
    ));
    let mut config = worked_example();
    config.subscribers.inside = vec![range([10, 0, 0, 0], [10, 0, 255, 255])];
    if let Some(Deterministic { ratio, .. }) = config
        .blocks
        .as_mut()
        .and_then(|blocks| blocks.deterministic.as_mut())
    {
        *ratio = 0;
    }
    let refused = Reckoning::new(&config).unwrap_err();
    assert!(
        matches!(refused, BlocksError::Thin { ports: 0, .. }),
        "{refused}"
    );
}
