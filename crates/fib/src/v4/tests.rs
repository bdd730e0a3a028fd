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
use crate::{Change4, Path, Route4};

const PATHS: [Path; 3] = [Path::Portable, Path::Avx2, Path::Avx512];

#[derive(Debug, Default, Clone)]
struct Oracle(BTreeMap<(u8, u32), u16>);

impl Oracle {
    fn apply(&mut self, change: Change4) {
        let key = (change.len, change.prefix);
        match change.next_hop {
            Some(next_hop) => self.0.insert(key, next_hop),
            None => self.0.remove(&key),
        };
    }

    fn lookup(&self, address: u32) -> u16 {
        let mut lens = (0..=32).rev();
        let found = lens.find_map(|len| self.0.get(&(len, masked(address, len))));
        found.copied().unwrap_or(0)
    }

    fn routes(&self) -> impl Iterator<Item = Route4> {
        self.0.iter().map(|((len, prefix), next_hop)| Route4 {
            prefix: *prefix,
            len: *len,
            next_hop: *next_hop,
        })
    }
}

fn masked(address: u32, len: u8) -> u32 {
    address & !u32::MAX.checked_shr(len.into()).unwrap_or(0)
}

fn table() -> (Arc<Domain>, Writer4, Reader4) {
    let domain = Domain::new(4);
    let config = Config {
        max_bytes: 4 << 20,
        ..Config::default()
    };
    let (writer, reader) = fib4(config, &domain).unwrap();
    (domain, writer, reader)
}

/// The answers, which are the same by every path, in one pass and in two,
/// and in batches of every length.
fn lookup(domain: &Arc<Domain>, reader: &Reader4, addresses: &[u32]) -> Vec<u16> {
    let mut registered = domain.register().unwrap();
    let section = registered.enter();
    let mut answers = vec![0xffff; addresses.len()];
    reader.lookup(&section, addresses, &mut answers);
    for path in PATHS {
        let Some(reader) = reader.with_path(path) else {
            continue;
        };
        let mut others = vec![0xffff; addresses.len()];
        for (batch, is_large) in [1, 7, 64, 100, 256]
            .into_iter()
            .flat_map(|batch| [(batch, false), (batch, true)])
        {
            others.fill(0xffff);
            for (addresses, answers) in addresses.chunks(batch).zip(others.chunks_mut(batch)) {
                reader.lookup_as(is_large, &section, addresses, answers);
            }
            assert_eq!(answers, others, "{path:?}, batches of {batch}, {is_large}");
        }
    }
    answers
}

/// Prefixes that meet often: a few bits decide where they lie.
fn prefix() -> impl Strategy<Value = (u32, u8)> {
    let some = prop::sample::select(vec![0_u32, 0x0a00_0000, 0x0a00_4000, 0xffff_ff00]);
    let len = prop_oneof![0..=32_u8, 17..=19_u8, 23..=26_u8, Just(32)];
    (some, any::<u32>(), 0..=32_u32, len).prop_map(|(base, random, bits, len)| {
        let random = random.checked_shr(bits).unwrap_or(0);
        (masked(base ^ random, len), len)
    })
}

fn change() -> impl Strategy<Value = Change4> {
    let next_hop = prop::option::weighted(0.7, prop_oneof![1..4_u16, 1..=crate::MAX_NEXT_HOP]);
    (prefix(), next_hop).prop_map(|((prefix, len), next_hop)| Change4 {
        prefix,
        len,
        next_hop,
    })
}

/// Where answers may change: the ends of prefixes and the next addresses.
fn borders(changes: &[Change4]) -> Vec<u32> {
    let of = |change: &Change4| {
        let last = change.prefix | u32::MAX.checked_shr(change.len.into()).unwrap_or(0);
        [
            change.prefix,
            change.prefix.wrapping_sub(1),
            last,
            last.wrapping_add(1),
        ]
    };
    changes.iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_answer_is_the_oracle_s_under_churn(
        steps in prop::collection::vec(prop::collection::vec(change(), 1..60), 1..8),
        random in prop::collection::vec(any::<u32>(), 50),
    ) {
        let (domain, mut writer, reader) = table();
        let mut oracle = Oracle::default();
        let mut addresses = random;
        addresses.extend(borders(&steps.concat()));
        for changes in steps {
            changes.iter().for_each(|change| oracle.apply(*change));
            writer.apply(&changes).unwrap();
            let answers = lookup(&domain, &reader, &addresses);
            for (address, answer) in addresses.iter().zip(answers) {
                prop_assert_eq!(answer, oracle.lookup(*address), "{:#x}", address);
            }
            prop_assert_eq!(writer.stats().routes, oracle.0.len());
        }
        // Built at once, it answers the same, also over what was there.
        for over in [false, true] {
            let (domain, mut writer, reader) = table();
            if over {
                let other = Change4 { prefix: 0x0a00_0000, len: 26, next_hop: Some(9) };
                writer.apply(&[other, Change4 { len: 8, ..other }]).unwrap();
            }
            writer.build(oracle.routes()).unwrap();
            let answers = lookup(&domain, &reader, &addresses);
            for (address, answer) in addresses.iter().zip(answers) {
                prop_assert_eq!(answer, oracle.lookup(*address), "{:#x}", address);
            }
        }
    }
}

#[test]
fn an_empty_table_and_one_default_route() {
    let (domain, mut writer, reader) = table();
    let addresses = [0, 1, 0x7fff_ffff, u32::MAX];
    assert_eq!(lookup(&domain, &reader, &addresses), [0; 4]);
    let change = |next_hop| Change4 {
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

#[test]
fn a_slot_full_of_host_routes_is_exact_and_gives_its_space_back() {
    let (domain, mut writer, reader) = table();
    let hosts: Vec<u32> = (0x0a00_0000..0x0a00_4000).collect();
    let change = |address: &u32, next_hop| Change4 {
        prefix: *address,
        len: 32,
        next_hop,
    };
    let next_hop = |address: u32| 1 + (address.wrapping_mul(0x9e37_79b9) >> 18) as u16;
    let added: Vec<Change4> = hosts
        .iter()
        .map(|address| change(address, Some(next_hop(*address))))
        .collect();
    let before = writer.stats().lookup_bytes;
    writer.apply(&added).unwrap();
    let expected: Vec<u16> = hosts.iter().map(|address| next_hop(*address)).collect();
    assert_eq!(lookup(&domain, &reader, &hosts), expected);
    let withdrawn: Vec<Change4> = hosts.iter().map(|address| change(address, None)).collect();
    writer.apply(&withdrawn).unwrap();
    writer.reclaim();
    assert_eq!(lookup(&domain, &reader, &hosts), vec![0; hosts.len()]);
    assert_eq!(writer.stats().retired_bytes, 0);
    assert_eq!(writer.stats().lookup_bytes, before);
}

#[test]
fn what_is_too_much_is_refused_and_the_rest_stays() {
    let domain = Domain::new(4);
    let config = Config {
        max_routes: 2,
        ..Config::default()
    };
    let (mut writer, reader) = fib4(config, &domain).unwrap();
    let change = |prefix, len| Change4 {
        prefix,
        len,
        next_hop: Some(5),
    };
    let all = [
        change(0x0a00_0000, 8),
        change(0x0b00_0000, 24),
        change(0x0c00_0000, 24),
    ];
    let error = writer.apply(&all).unwrap_err();
    assert!(matches!(
        error,
        crate::Error::Full {
            at: 2,
            max_routes: 2
        }
    ));
    let error = writer.apply(&[change(0x0c00_0000, 12)]).unwrap_err();
    assert!(matches!(error, crate::Error::Full { at: 0, .. }));
    let addresses = [0x0a00_0001, 0x0b00_0001, 0x0c00_0001];
    assert_eq!(lookup(&domain, &reader, &addresses), [5, 5, 0]);
    assert!(writer.apply(&[change(1, 8)]).is_err());
}

#[test]
fn without_space_answers_stay_and_come_when_there_is_some() {
    let domain = Domain::new(2);
    let config = Config {
        max_bytes: 2 << 20,
        ..Config::default()
    };
    let (mut writer, reader) = fib4(config, &domain).unwrap();
    // Half of 2 MiB is slots; 33 slots of host routes take more than 1 MiB.
    let host = |address, next_hop| Change4 {
        prefix: address,
        len: 32,
        next_hop,
    };
    let all: Vec<Change4> = (0..33 << REST_BITS)
        .map(|address| host(address, Some(1 + (address & 1) as u16)))
        .collect();
    let error = writer.apply(&all).unwrap_err();
    assert!(matches!(error, crate::Error::NoSpace { .. }), "{error}");
    // A slot's routes withdrawn at a time, from the last.
    let mut rest = all.as_slice();
    let last = loop {
        let (before, slot) = rest.split_at(rest.len() - (1 << REST_BITS));
        let withdrawn: Vec<Change4> = slot.iter().map(|route| host(route.prefix, None)).collect();
        rest = before;
        if writer.apply(&withdrawn).is_ok() {
            break before.len() as u32;
        }
    };
    let addresses: Vec<u32> = (0..last).collect();
    let expected: Vec<u16> = addresses.iter().map(|at| 1 + (at & 1) as u16).collect();
    assert_eq!(lookup(&domain, &reader, &addresses), expected);
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
fn apply_patiently(writer: &mut Writer4, changes: &[Change4]) {
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
    // Prefixes within one another, in a few slots and below /24.
    let mut random = Random::new(11);
    let routes: Vec<(u32, u8)> = (0..600)
        .map(|_| {
            let len = [8, 14, 19, 22, 24, 26, 29, 32][random.below(8)];
            let address = 0x0a00_0000 | (random.number() as u32 & 0x0001_ffff);
            (masked(address, len), len)
        })
        .collect();
    let hops = |prefix: u32, len: u8| {
        let of = (prefix >> 3).wrapping_mul(33).wrapping_add(u32::from(len)) % 16_000;
        [1 + 2 * of as u16, 2 + 2 * of as u16]
    };
    let addresses: Vec<u32> = (0..256)
        .map(|_| 0x0a00_0000 | (random.number() as u32 & 0x0001_ffff))
        .collect();
    let possible: Vec<Vec<u16>> = addresses
        .iter()
        .map(|address| {
            let holds = |(prefix, len): &&(u32, u8)| masked(*address, *len) == *prefix;
            let mut hops: Vec<u16> = routes
                .iter()
                .filter(holds)
                .flat_map(|(p, l)| hops(*p, *l))
                .collect();
            hops.push(0);
            hops
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
                let mut passes = false;
                let mut answers = [0; 256];
                while !is_done.load(Ordering::Relaxed) {
                    let section = online.enter();
                    // In one pass and in two.
                    passes = !passes;
                    reader.lookup_as(passes, &section, addresses, &mut answers);
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
        while steps < 3_000 || rounds.load(Ordering::Relaxed) < 300 {
            steps += 1;
            let changes: Vec<Change4> = (0..1 + random.below(20))
                .map(|_| {
                    let (prefix, len) = routes[random.below(routes.len())];
                    let next_hop = match random.below(3) {
                        0 => None,
                        which => Some(hops(prefix, len)[which - 1]),
                    };
                    Change4 {
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
        let answers = lookup(&domain, &reader, &addresses);
        for (address, answer) in addresses.iter().zip(answers) {
            assert_eq!(answer, oracle.lookup(*address));
        }
    });
}
