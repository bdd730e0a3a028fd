use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn a_map_gives_every_port_once_and_knows_when_it_is_full() {
    for ports in [65, 100, 128, 4_096, 32_768, 65_535] {
        let mut map = Map::new(ports);
        let mut random = Random::new(u64::from(ports));
        let mut seen = BTreeSet::new();
        while let Some(port) = map.candidate(&mut random) {
            assert!(port < ports && seen.insert(port), "{port} of {ports}");
            map.set(port);
        }
        assert_eq!(seen.len(), ports as usize);
        assert!(map.is_full());
        map.clear(ports - 1);
        assert_eq!(map.candidate(&mut random), Some(ports - 1));
    }
}

#[test]
fn a_map_comes_with_a_crowd_and_goes_with_it() {
    let mut ports = Ports::new(1_000, 1_999, 100_000);
    let group = Group(0x1234_5678_9abc);
    for port in 0..499 {
        ports.took(group, 1_000 + port);
        assert!(ports.map(group).is_none());
    }
    ports.took(group, 1_499);
    assert!(ports.map(group).is_some());
    assert!(ports.map(Group(0xffff_0000_0000)).is_none());
    let with_map = ports.memory_bytes();
    for port in 0..500 {
        ports.gave(group, 1_000 + port);
    }
    assert!(ports.map(group).is_none());
    assert!(ports.memory_bytes() < with_map);
}

#[test]
fn maps_have_a_limit() {
    let mut ports = Ports::new(1, 65_535, 64);
    let mut maps = 0;
    for group in 0..100_u64 {
        let group = Group(group << 20);
        for port in 1..20_000 {
            ports.took(group, port);
        }
        maps += usize::from(ports.map(group).is_some());
    }
    assert!((1..4).contains(&maps), "{maps}");
}

proptest! {
    #[test]
    fn a_map_is_a_set(steps in proptest::collection::vec((0_u32..200, any::<bool>()), 0..600), seed: u64) {
        let mut map = Map::new(200);
        let mut set = BTreeSet::new();
        let mut random = Random::new(seed);
        for (port, set_it) in steps {
            if set_it {
                map.set(port);
                set.insert(port);
            } else {
                map.clear(port);
                set.remove(&port);
            }
            prop_assert_eq!(map.is_full(), set.len() == 200);
            match map.candidate(&mut random) {
                Some(port) => prop_assert!(port < 200 && !set.contains(&port)),
                None => prop_assert_eq!(set.len(), 200),
            }
        }
    }
}
