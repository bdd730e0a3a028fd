use std::collections::BTreeMap;

use proptest::prelude::*;

use super::node::LEAF;
use super::*;

#[derive(Debug, Clone)]
enum Step {
    Insert(u16, u32),
    Remove(u16),
    Run(u16, u8),
    RemoveRun(u16, u8),
    Share,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u16..2000, any::<u32>()).prop_map(|(k, v)| Step::Insert(k, v)),
        3 => (0u16..2000).prop_map(Step::Remove),
        1 => (0u16..2000, any::<u8>()).prop_map(|(k, n)| Step::Run(k, n)),
        1 => (0u16..2000, any::<u8>()).prop_map(|(k, n)| Step::RemoveRun(k, n)),
        1 => Just(Step::Share),
    ]
}

fn same(ours: &Ordered<u16, u32>, oracle: &BTreeMap<u16, u32>, probe: u16) {
    assert_eq!(ours.len(), oracle.len());
    assert!(ours.iter().eq(oracle.iter()));
    assert!(ours.from(&probe).eq(oracle.range(probe..)));
    let after = (Bound::Excluded(probe), Bound::Unbounded);
    assert!(ours.after(&probe).eq(oracle.range(after)));
    let rank = ours.rank(&probe);
    assert_eq!(rank, oracle.range(..probe).count());
    assert!(ours.from_rank(rank).eq(oracle.range(probe..)));
    let far = usize::from(probe) * 7;
    assert!(ours.from_rank(far).eq(oracle.iter().skip(far)));
    assert_eq!(ours.last_to(&probe), oracle.range(..=probe).next_back());
    assert_eq!(ours.get(&probe), oracle.get(&probe));
    assert_eq!(ours.first(), oracle.first_key_value());
    assert_eq!(ours.last(), oracle.last_key_value());
}

fn apply(step: &Step, ours: &mut Ordered<u16, u32>, oracle: &mut BTreeMap<u16, u32>) {
    match *step {
        Step::Insert(k, v) => assert_eq!(ours.insert(k, v), oracle.insert(k, v)),
        Step::Remove(k) => assert_eq!(ours.remove(&k), oracle.remove(&k)),
        Step::Run(k, n) => {
            for k in k..k + u16::from(n) {
                assert_eq!(ours.insert(k, 0), oracle.insert(k, 0));
            }
        }
        Step::RemoveRun(k, n) => {
            for k in k..k + u16::from(n) {
                assert_eq!(ours.remove(&k), oracle.remove(&k));
            }
        }
        Step::Share => {}
    }
}

proptest! {
    #[test]
    fn behaves_as_a_btree_map_and_leaves_clones_alone(
        steps in proptest::collection::vec(step(), 1..200),
        probe in 0u16..2300,
    ) {
        let mut ours = Ordered::default();
        let mut oracle = BTreeMap::new();
        let mut shared = Vec::new();
        for step in &steps {
            apply(step, &mut ours, &mut oracle);
            if matches!(step, Step::Share) {
                shared.push((ours.clone(), oracle.clone()));
            }
            same(&ours, &oracle, probe);
        }
        for (ours, oracle) in &shared {
            same(ours, oracle, probe);
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Up,
    Down,
    Random(u64),
    /// Several runs, each row of the next one.
    Runs(u16),
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Up),
        Just(Order::Down),
        any::<u64>().prop_map(Order::Random),
        (2u16..80).prop_map(Order::Runs),
    ]
}

impl Order {
    fn of<K: Copy>(self, keys: impl Iterator<Item = K>) -> Vec<K> {
        let mut keys: Vec<K> = keys.collect();
        match self {
            Self::Up => {}
            Self::Down => keys.reverse(),
            Self::Random(seed) => memory::Random::new(seed).shuffle(&mut keys),
            Self::Runs(runs) => {
                let length = keys.len().div_ceil(runs.into());
                let row = |at| keys.iter().skip(at).step_by(length);
                keys = (0..length).flat_map(row).copied().collect();
            }
        }
        keys
    }
}

#[derive(Debug, Clone)]
enum Many {
    Load(Order, u16, u16),
    Unload(Order, u16, u16),
    Share,
}

fn many() -> impl Strategy<Value = Many> {
    prop_oneof![
        4 => (order(), 0u16..9000, 1u16..4000).prop_map(|(o, k, n)| Many::Load(o, k, n)),
        2 => (order(), 0u16..9000, 1u16..4000).prop_map(|(o, k, n)| Many::Unload(o, k, n)),
        2 => Just(Many::Share),
    ]
}

/// Every count, every key between two nodes, and one depth for all leaves.
/// Gives the depth.
fn sound<V>(node: &Node<u16, V>, low: Option<u16>, high: Option<u16>) -> usize {
    match node {
        Node::Leaf(leaf) => {
            assert_eq!(leaf.keys.len(), leaf.values.len());
            assert!(leaf.keys.is_sorted_by(|a, b| a < b));
            let within = |k: &u16| low.is_none_or(|low| low <= *k) && high.is_none_or(|h| *k < h);
            assert!(!leaf.keys.is_empty() && leaf.keys.iter().all(within));
            1
        }
        Node::Inner(inner) => {
            let children = inner.children.len();
            assert_eq!(inner.separators.len() + 1, children);
            assert!(
                inner
                    .children
                    .iter()
                    .map(|c| c.count())
                    .eq(inner.counts.iter().copied())
            );
            let bounds = |at: usize| match at {
                0 => low,
                _ => inner.separators.get(at - 1).copied().or(high),
            };
            let depths = inner.children.iter().zip(0..);
            let mut depths = depths.map(|(c, at)| sound(c, bounds(at), bounds(at + 1)));
            let depth = depths.next().unwrap();
            assert!(depths.all(|other| other == depth));
            depth + 1
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Thousands of rows a step: levels come and go, and leaves share their
    /// rows with neighbours that clones still hold.
    #[test]
    fn loads_in_any_order_leave_a_sound_tree_and_clones_alone(
        steps in proptest::collection::vec(many(), 1..16),
        probe in 0u16..13_000,
    ) {
        let mut ours = Ordered::default();
        let mut oracle = BTreeMap::new();
        let mut shared = Vec::new();
        for (step, value) in steps.iter().zip(0u32..) {
            match *step {
                Many::Load(order, from, rows) => for k in order.of(from..from + rows) {
                    assert_eq!(ours.insert(k, value), oracle.insert(k, value));
                },
                Many::Unload(order, from, rows) => for k in order.of(from..from + rows) {
                    assert_eq!(ours.remove(&k), oracle.remove(&k));
                },
                Many::Share => shared.push((ours.clone(), oracle.clone())),
            }
            same(&ours, &oracle, probe);
            if let Some(root) = &ours.root {
                sound(root, None, None);
            }
        }
        for (ours, oracle) in &shared {
            same(ours, oracle, probe);
        }
    }
}

#[test]
fn a_load_in_any_order_fills_its_leaves() {
    const ROWS: u32 = 100_000;
    let full = ROWS as usize / LEAF * (size_of::<Node<u32, u32>>() + 16);
    let orders = [
        (Order::Up, 4),
        (Order::Down, 6),
        (Order::Random(1), 25),
        (Order::Runs(2), 25),
        (Order::Runs(2000), 25),
    ];
    for (order, most_waste) in orders {
        let mut ours = Ordered::default();
        for k in order.of(0..ROWS) {
            ours.insert(k, k);
        }
        let waste = ours.heap_bytes() * 100 / full - 100;
        assert!(
            waste <= most_waste,
            "{order:?}: {waste} % more than full leaves"
        );
    }
}

#[test]
fn a_hundred_thousand_random_rows_come_and_go() {
    let mut ours = Ordered::default();
    let mut oracle = BTreeMap::new();
    let mut random = memory::Random::new(1);
    for _ in 0..300_000 {
        let key = random.below(100_000) as u32;
        if random.below(2) == 0 {
            assert_eq!(ours.insert(key, key), oracle.insert(key, key));
        } else {
            assert_eq!(ours.remove(&key), oracle.remove(&key));
        }
    }
    assert!(ours.iter().eq(oracle.iter()));
    for (skip, row) in oracle.iter().enumerate().step_by(97) {
        assert_eq!(ours.from_rank(skip).next(), Some(row));
        assert_eq!(ours.rank(row.0), skip);
    }
    assert_eq!(ours.from_rank(oracle.len()).next(), None);
    assert_eq!(ours.from_rank(usize::MAX).next(), None);
}

proptest! {
    /// A tree that was built is one that takes changes like any other, and
    /// rows out of order are not taken.
    #[test]
    fn what_is_built_in_order_is_what_was_taken(
        mut keys in proptest::collection::vec(0u16..20_000, 0..9_000),
        steps in proptest::collection::vec(step(), 0..200),
        probe in 0u16..2300,
    ) {
        keys.sort_unstable();
        let mut build = Build::default();
        let mut oracle = BTreeMap::new();
        for key in keys {
            let is_new = oracle.insert(key, u32::from(key)).is_none();
            prop_assert_eq!(build.push(key, u32::from(key)), is_new);
            prop_assert!(!build.push(key / 2, 0));
            prop_assert_eq!(build.len(), oracle.len());
        }
        let mut ours = build.finish();
        ours.root.iter().for_each(|root| _ = sound(root, None, None));
        same(&ours, &oracle, probe);
        for step in &steps {
            apply(step, &mut ours, &mut oracle);
        }
        ours.root.iter().for_each(|root| _ = sound(root, None, None));
        same(&ours, &oracle, probe);
    }
}
