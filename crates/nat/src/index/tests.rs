use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::key::Random;

fn spread(name: u32) -> u64 {
    Random::new(u64::from(name)).next()
}

fn find(index: &Index, hash_of: fn(u32) -> u64, name: u32) -> bool {
    index.find(hash_of(name), |other| other == name).is_some()
}

#[test]
fn it_grows_from_one_bucket_and_loses_nothing() {
    let mut index = Index::new(0, 200_000).unwrap();
    let mut work = Work::default();
    for name in 0..200_000 {
        let mut one = Work::default();
        assert!(index.insert(spread(name), name, (spread, |_| ()), &mut one));
        assert!(one.moved <= (SLOTS * 4) as u32, "{one:?}");
        work.moved += one.moved;
    }
    assert_eq!(index.len(), 200_000);
    assert!((0..200_000).all(|name| find(&index, spread, name)));
    assert!(!(200_000..300_000).any(|name| find(&index, spread, name)));
    assert!(work.moved < 200_000 * 2, "{work:?}");
    for name in 0..200_000 {
        assert!(index.remove(spread(name), name, &mut work));
        assert!(!index.remove(spread(name), name, &mut work));
    }
    assert_eq!(index.len(), 0);
}

#[test]
fn names_that_all_collide_fill_a_chain_and_are_refused() {
    let same = |_: u32| 0xab00_0000_0000_0001_u64;
    let mut index = Index::new(100_000, 100_000).unwrap();
    let mut work = Work::default();
    let most = (SLOTS * (MAX_CHAIN + 1)) as u32;
    for name in 0..most {
        assert!(
            index.insert(same(name), name, (same, |_| ()), &mut work),
            "{name}"
        );
    }
    assert!(!index.insert(same(0), most, (same, |_| ()), &mut work));
    for name in 0..most {
        assert!(find(&index, same, name));
    }
    for name in 0..most {
        assert!(index.remove(same(name), name, &mut work));
    }
    assert!(
        index
            .buckets
            .iter()
            .all(|line| line.used() == 0 && line.link() == 0)
    );
}

proptest! {
    /// Few buckets, many names: chains, pulls and splits, against a set.
    #[test]
    fn it_is_a_set(steps in proptest::collection::vec((0_u32..400, any::<bool>()), 0..2_000), bits in 0_u32..8) {
        // Hashes that collide in most of their bits.
        let hash_of = |name: u32| {
            let spread = spread(name);
            spread & (0xff00_0000_0000_0000 | ((1 << bits) - 1))
        };
        let mut index = Index::new(0, 400).unwrap();
        let mut set = BTreeSet::new();
        let mut work = Work::default();
        for (name, insert) in steps {
            if insert && !set.contains(&name) {
                if index.insert(hash_of(name), name, (hash_of, |_| ()), &mut work) {
                    set.insert(name);
                }
            } else if !insert {
                prop_assert_eq!(index.remove(hash_of(name), name, &mut work), set.remove(&name));
            }
            prop_assert_eq!(index.len(), set.len());
        }
        for name in 0..400 {
            let found = index.find(hash_of(name), |other| other == name);
            prop_assert_eq!(found.is_some(), set.contains(&name));
        }
    }
}
