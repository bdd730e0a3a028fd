//! What only the IPv6 layout can get wrong.

use lab::Random;
use memory::quiescent::Domain;

use super::*;
use crate::tests::{Oracle, assert_exact, borders, lookup, masked, table};
use crate::{Change6, Config, Error, fib};

/// More keys than fit a node, than fit two levels, and so far apart that
/// distances need their scale; then all of it withdrawn.
#[test]
fn a_crowded_32_is_exact_and_gives_its_space_back() {
    let domain = Domain::new(4);
    let (mut writer, reader) = fib(Config::default(), &domain).unwrap();
    let mut oracle = Oracle::new();
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
    assert_exact(&domain, &reader, &Oracle::new(), &borders(&some));
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
    let mut oracle = Oracle::new();
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

#[test]
fn without_space_answers_stay_and_come_when_there_is_some() {
    let domain = Domain::new(2);
    let config = Config {
        max_bytes: 2 << 20,
        ..Config::default()
    };
    let (mut writer, reader) = fib(config, &domain).unwrap();
    let change = |top: u128, next_hop| Change6 {
        prefix: (0x2000 + top) << 112,
        len: 48,
        next_hop,
    };
    // Of 2 MiB, a block takes 256 KiB.
    let all: Vec<Change6> = (0..16)
        .map(|top| change(top, Some(top as u16 + 1)))
        .collect();
    assert!(matches!(writer.apply(&all), Err(Error::NoSpace { .. })));
    let mut last = 16;
    while writer.apply(&[change(last - 1, None)]).is_err() {
        last -= 1;
        assert!(last > 2, "no withdrawal made space");
    }
    let addresses: Vec<u128> = (0..last - 1).map(|top| (0x2000 + top) << 112).collect();
    let expected: Vec<u16> = (0..last - 1).map(|top| top as u16 + 1).collect();
    assert_eq!(lookup(&domain, &reader, &addresses), expected);
}
