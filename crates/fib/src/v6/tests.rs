//! The table against the plain oracle: a map of prefixes, asked longest
//! first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lab::Random;
use memory::quiescent::Domain;
use proptest::prelude::*;

use super::*;
use crate::{Change6, Path, Route6};

const PATHS: [Path; 3] = [Path::Portable, Path::Avx2, Path::Avx512];

#[derive(Debug, Default, Clone)]
struct Oracle(BTreeMap<(u8, u128), u16>);

impl Oracle {
    fn apply(&mut self, change: Change6) {
        let key = (change.len, change.prefix);
        match change.next_hop {
            Some(next_hop) => self.0.insert(key, next_hop),
            None => self.0.remove(&key),
        };
    }

    fn lookup(&self, address: u128) -> u16 {
        let mut lens = (0..=128).rev();
        let found = lens.find_map(|len| self.0.get(&(len, masked(address, len))));
        found.copied().unwrap_or(0)
    }

    fn routes(&self) -> impl Iterator<Item = Route6> {
        self.0.iter().map(|((len, prefix), next_hop)| Route6 {
            prefix: *prefix,
            len: *len,
            next_hop: *next_hop,
        })
    }
}

fn masked(address: u128, len: u8) -> u128 {
    address & !u128::MAX.checked_shr(len.into()).unwrap_or(0)
}

fn table() -> (Arc<Domain>, Writer6, Reader6) {
    let domain = Domain::new(4);
    let config = Config {
        max_bytes: 16 << 20,
        ..Config::default()
    };
    let (writer, reader) = fib6(config, &domain).unwrap();
    (domain, writer, reader)
}

/// The answers, which are the same by every path and in batches of every
/// length.
fn lookup(domain: &Arc<Domain>, reader: &Reader6, addresses: &[u128]) -> Vec<u16> {
    let mut registered = domain.register().unwrap();
    let section = registered.enter();
    let mut answers = vec![0xffff; addresses.len()];
    reader.lookup(&section, addresses, &mut answers);
    for path in PATHS {
        let Some(reader) = reader.with_path(path) else {
            continue;
        };
        let mut others = vec![0xffff; addresses.len()];
        for batch in [1, 7, 64, 100] {
            for (addresses, answers) in addresses.chunks(batch).zip(others.chunks_mut(batch)) {
                reader.lookup(&section, addresses, answers);
            }
            assert_eq!(answers, others, "{path:?}, batches of {batch}");
        }
    }
    answers
}

/// Prefixes that meet often: few bits decide where they lie.
fn prefix() -> impl Strategy<Value = (u128, u8)> {
    let base = prop::sample::select(vec![
        0_u128,
        0x2001 << 112,
        (0x2001_0db8 << 96) | 7,
        u128::MAX,
    ]);
    let len = prop_oneof![
        0..=128_u8,
        14..=18_u8,
        28..=33_u8,
        48..=64_u8,
        92..=98_u8,
        124..=128_u8
    ];
    (base, any::<u128>(), 0..=128_u32, len).prop_map(|(base, random, bits, len)| {
        let random = random.checked_shr(bits).unwrap_or(0);
        (masked(base ^ random, len), len)
    })
}

fn change() -> impl Strategy<Value = Change6> {
    let next_hop = prop::option::weighted(0.7, prop_oneof![1..4_u16, 1..=crate::MAX_NEXT_HOP]);
    (prefix(), next_hop).prop_map(|((prefix, len), next_hop)| Change6 {
        prefix,
        len,
        next_hop,
    })
}

/// Where answers may change: the ends of prefixes and the next addresses.
fn borders(changes: &[Change6]) -> Vec<u128> {
    let of = |change: &Change6| {
        let last = change.prefix | u128::MAX.checked_shr(change.len.into()).unwrap_or(0);
        [
            change.prefix,
            change.prefix.wrapping_sub(1),
            last,
            last.wrapping_add(1),
        ]
    };
    changes.iter().flat_map(of).collect()
}

fn assert_exact(domain: &Arc<Domain>, reader: &Reader6, oracle: &Oracle, addresses: &[u128]) {
    let answers = lookup(domain, reader, addresses);
    for (address, answer) in addresses.iter().zip(answers) {
        assert_eq!(answer, oracle.lookup(*address), "{address:#x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn every_answer_is_the_oracle_s_under_churn(
        steps in prop::collection::vec(prop::collection::vec(change(), 1..60), 1..6),
        random in prop::collection::vec(any::<u128>(), 50),
    ) {
        let (domain, mut writer, reader) = table();
        let mut oracle = Oracle::default();
        let mut addresses = random;
        addresses.extend(borders(&steps.concat()));
        for changes in steps {
            changes.iter().for_each(|change| oracle.apply(*change));
            writer.apply(&changes).unwrap();
            assert_exact(&domain, &reader, &oracle, &addresses);
            prop_assert_eq!(writer.stats().routes, oracle.0.len());
        }
        // Built at once, it answers the same, also over what was there.
        for over in [false, true] {
            let (domain, mut writer, reader) = table();
            if over {
                let other = Change6 { prefix: 0x2001 << 112, len: 40, next_hop: Some(9) };
                let lens = [8, 20, 40, 100];
                let prefix = |len| masked(other.prefix, len);
                writer.apply(&lens.map(|len| Change6 { prefix: prefix(len), len, ..other })).unwrap();
            }
            writer.build(oracle.routes()).unwrap();
            assert_exact(&domain, &reader, &oracle, &addresses);
            prop_assert_eq!(writer.stats().routes, oracle.0.len());
        }
    }
}

#[test]
fn an_empty_table_and_one_default_route() {
    let (domain, mut writer, reader) = table();
    let addresses = [0, 1, 0x2001 << 112, u128::MAX];
    assert_eq!(lookup(&domain, &reader, &addresses), [0; 4]);
    let change = |next_hop| Change6 {
        prefix: 0,
        len: 0,
        next_hop,
    };
    writer.apply(&[change(Some(crate::MAX_NEXT_HOP))]).unwrap();
    assert_eq!(
        lookup(&domain, &reader, &addresses),
        [crate::MAX_NEXT_HOP; 4]
    );
    writer.apply(&[change(None)]).unwrap();
    assert_eq!(lookup(&domain, &reader, &addresses), [0; 4]);
    assert_eq!(writer.stats().routes, 0);
}

/// More keys than fit a node, than fit two levels, and so far apart that
/// distances need their scale; then all of it withdrawn.
#[test]
fn a_crowded_32_is_exact_and_gives_its_space_back() {
    let domain = Domain::new(4);
    let (mut writer, reader) = fib6(Config::default(), &domain).unwrap();
    let mut oracle = Oracle::default();
    let before = writer.stats().lookup_bytes;
    let mut random = Random::new(5);
    let changes: Vec<Change6> = (0..30_000_u128)
        .map(|at| Change6 {
            prefix: (0x2001_0db8 << 96) | (at << 65) | (u128::from(random.number() % 3) << 20),
            len: [64, 96, 110, 128][random.below(4)],
            next_hop: Some(1 + random.below(30_000) as u16),
        })
        .map(|change| Change6 {
            prefix: masked(change.prefix, change.len),
            ..change
        })
        .collect();
    changes.iter().for_each(|change| oracle.apply(*change));
    writer.apply(&changes).unwrap();
    let some: Vec<Change6> = changes.iter().step_by(7).copied().collect();
    assert_exact(&domain, &reader, &oracle, &borders(&some));
    let withdrawn: Vec<Change6> = changes
        .iter()
        .map(|change| Change6 {
            next_hop: None,
            ..*change
        })
        .collect();
    writer.apply(&withdrawn).unwrap();
    writer.reclaim();
    assert_exact(&domain, &reader, &Oracle::default(), &borders(&some));
    let stats = writer.stats();
    assert_eq!((stats.routes, stats.retired_bytes), (0, 0));
    // The record of no route, and the block of it.
    assert!(stats.lookup_bytes <= before + 64 + 4 * BLOCK);
}

/// As many networks in a /32 as fill a node, some nodes beneath it, and
/// nodes beneath those: their places are found by where the gaps are.
#[test]
fn a_32_with_any_number_of_networks_is_exact() {
    let (domain, mut writer, reader) = table();
    let mut random = Random::new(23);
    let mut oracle = Oracle::default();
    let mut changes = Vec::new();
    for count in (1..=40).chain([240, 256, 258, 300, 4_200]) {
        for change in std::mem::take(&mut changes) {
            let gone = Change6 {
                next_hop: None,
                ..change
            };
            oracle.apply(gone);
            writer.apply(&[gone]).unwrap();
        }
        changes.extend((0..count).map(|_| {
            let len = [40, 48, 48, 48, 56, 64, 128][random.below(7)];
            let bits = u128::from(random.number()) << 32;
            Change6 {
                prefix: masked((0x2001_0db8 << 96) | bits, len),
                len,
                next_hop: Some(1 + random.below(100) as u16),
            }
        }));
        changes.iter().for_each(|change| oracle.apply(*change));
        writer.apply(&changes).unwrap();
        assert_exact(&domain, &reader, &oracle, &borders(&changes));
    }
}

/// Tells readers to end.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes changes, again and again while there is no space: a reader that has
/// lost its core within a batch holds up what was taken out.
fn apply_patiently(writer: &mut Writer6, changes: &[Change6]) {
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(error) = writer.apply(changes) {
        assert!(matches!(error, crate::Error::NoSpace { .. }), "{error}");
        assert!(Instant::now() < until, "{error}");
        std::thread::yield_now();
    }
}

/// Each route leads to one of two next hops of its own at any time: a
/// reader that sees a third reads something that was reused too early.
#[test]
fn readers_see_an_old_or_a_new_answer_and_nothing_else() {
    let (domain, mut writer, reader) = table();
    let mut random = Random::new(11);
    let place = |random: &mut Random| {
        let bits =
            u128::from(random.number() & 0xffff_ffff) << 64 | u128::from(random.number() & 3);
        (0x2001_0db8 << 96) | bits
    };
    let routes: Vec<(u128, u8)> = (0..400)
        .map(|_| {
            let len = [12, 20, 29, 32, 40, 48, 64, 128][random.below(8)];
            (masked(place(&mut random), len), len)
        })
        .collect();
    let hops = |prefix: u128, len: u8| {
        let of = ((prefix >> 64) as u32)
            .wrapping_mul(33)
            .wrapping_add(u32::from(len))
            % 16_000;
        [1 + 2 * of as u16, 2 + 2 * of as u16]
    };
    let addresses: Vec<u128> = (0..256)
        .map(|at| match at % 2 {
            0 => place(&mut random),
            _ => routes[random.below(routes.len())].0,
        })
        .collect();
    let possible: Vec<Vec<u16>> = addresses
        .iter()
        .map(|address| {
            let holds = |(prefix, len): &&(u128, u8)| masked(*address, *len) == *prefix;
            let hops = routes.iter().filter(holds).flat_map(|(p, l)| hops(*p, *l));
            hops.chain([0]).collect()
        })
        .collect();
    let is_done = AtomicBool::new(false);
    let rounds = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for path in PATHS.into_iter().filter(|path| path.is_here()) {
            let (reader, domain) = (reader.with_path(path).unwrap(), Arc::clone(&domain));
            let (addresses, possible, is_done, rounds) = (&addresses, &possible, &is_done, &rounds);
            scope.spawn(move || {
                let mut registered = domain.register().unwrap();
                let mut online = registered.online();
                let mut answers = [0; 256];
                while !is_done.load(Ordering::Relaxed) {
                    let section = online.enter();
                    reader.lookup(&section, addresses, &mut answers);
                    for (at, answer) in answers.iter().enumerate() {
                        assert!(
                            possible[at].contains(answer),
                            "{:#x}: {answer}",
                            addresses[at]
                        );
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // They end also when the writer fails.
        let _done = Done(&is_done);
        // Until readers have looked often enough, whatever the machine does.
        let mut oracle = Oracle::default();
        let mut steps = 0;
        while steps < 2_000 || rounds.load(Ordering::Relaxed) < 300 {
            steps += 1;
            let changes: Vec<Change6> = (0..1 + random.below(20))
                .map(|_| {
                    let (prefix, len) = routes[random.below(routes.len())];
                    let next_hop = match random.below(3) {
                        0 => None,
                        which => Some(hops(prefix, len)[which - 1]),
                    };
                    Change6 {
                        prefix,
                        len,
                        next_hop,
                    }
                })
                .collect();
            changes.iter().for_each(|change| oracle.apply(*change));
            apply_patiently(&mut writer, &changes);
        }
        is_done.store(true, Ordering::Relaxed);
        assert_exact(&domain, &reader, &oracle, &addresses);
    });
}

#[test]
fn what_is_too_much_is_refused_and_the_rest_stays() {
    let domain = Domain::new(4);
    let config = Config {
        max_routes: 2,
        ..Config::default()
    };
    let (mut writer, reader) = fib6(config, &domain).unwrap();
    let change = |top: u128, len| Change6 {
        prefix: top << 112,
        len,
        next_hop: Some(5),
    };
    let all = [change(0x2001, 16), change(0x2002, 24), change(0x2003, 64)];
    let error = writer.apply(&all).unwrap_err();
    assert!(matches!(
        error,
        crate::Error::Full {
            at: 2,
            max_routes: 2
        }
    ));
    assert!(writer.apply(&[change(0x2003, 16)]).is_err());
    let addresses = [0x2001 << 112, 0x2002 << 112, 0x2003 << 112];
    assert_eq!(lookup(&domain, &reader, &addresses), [5, 5, 0]);
}

#[test]
fn without_space_answers_stay_and_come_when_there_is_some() {
    let domain = Domain::new(2);
    let config = Config {
        max_bytes: 2 << 20,
        ..Config::default()
    };
    let (mut writer, reader) = fib6(config, &domain).unwrap();
    let change = |top: u128, next_hop| Change6 {
        prefix: (0x2000 + top) << 112,
        len: 48,
        next_hop,
    };
    // Of 2 MiB, a block takes 256 KiB.
    let all: Vec<Change6> = (0..16)
        .map(|top| change(top, Some(top as u16 + 1)))
        .collect();
    assert!(matches!(
        writer.apply(&all),
        Err(crate::Error::NoSpace { .. })
    ));
    let mut last = 16;
    while writer.apply(&[change(last - 1, None)]).is_err() {
        last -= 1;
        assert!(last > 2, "no withdrawal made space");
    }
    let addresses: Vec<u128> = (0..last - 1).map(|top| (0x2000 + top) << 112).collect();
    let expected: Vec<u16> = (0..last - 1).map(|top| top as u16 + 1).collect();
    assert_eq!(lookup(&domain, &reader, &addresses), expected);
}
