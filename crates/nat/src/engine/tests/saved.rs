//! A state that was saved and taken up: the engine answers as the one that
//! went on would.

use super::*;
use crate::saved::{ChunkReader, Chunks, Record, SavedError, tag};
use crate::{Blocks, TakenUp};

pub(super) fn saved(nat: &mut Nat, now: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunks = Chunks::new(&mut bytes).unwrap();
    nat.save(now, &mut chunks).unwrap();
    chunks.flush().unwrap();
    bytes
}

pub(super) fn taken_up(
    nat: &mut Nat,
    bytes: &[u8],
    gone: u64,
    now: u64,
) -> Result<TakenUp, SavedError> {
    let mut reader = ChunkReader::new(bytes)?;
    nat.take_up(&mut reader, gone, now)
}

/// Another engine with the state and the rules of one.
fn again(nat: &mut Nat, now: u64) -> Nat {
    let bytes = saved(nat, now);
    let mut other = Nat::new(nat.config().clone()).unwrap();
    let taken = taken_up(&mut other, &bytes, 0, now).unwrap();
    assert_eq!(taken.left_out, 0);
    other
}

#[test]
fn it_answers_as_the_one_that_went_on() {
    let steps = 1_000;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut config = generated::config(&mut random, seed);
        // Without maps: what those know is learned anew, in another order.
        config.ports = 40_000..=40_063;
        if generated::is_reckoned(&config) {
            config.ports = 40_000..=40_255;
        }
        let mut nat = Nat::new(config).unwrap();
        let mut now = 0;
        for _ in 0..100 + seed {
            generated::step(&mut nat, &mut random, &mut now);
        }
        // What was forgotten as a whole (`forget_flows`) is not saved; until
        // it is swept it still counts here.
        nat.maintain(now, usize::MAX);
        let mut other = again(&mut nat, now);
        super::books::audit(&other);
        assert_eq!(nat.ports.counted(), other.ports.counted());
        for step in 0..steps {
            let (mut same, mut then) = (random, now);
            let went_on = generated::step(&mut nat, &mut random, &mut now);
            let taken_up = generated::step(&mut other, &mut same, &mut then);
            assert_eq!(taken_up, went_on, "seed {seed}, step {step}");
        }
        super::books::audit(&other);
        other.maintain(now + 100_000_000, usize::MAX);
        other.maintain(now + 200_000_000, usize::MAX);
        super::books::audit(&other);
        assert_eq!(other.ports.counted(), 0, "seed {seed}");
    }
}

#[test]
fn ages_go_on_while_nobody_is_there() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 1_000);
    let bytes = saved(&mut nat, 61_000);
    for (gone, lives) in [(0, true), (58_000, true), (62_000, false)] {
        let mut other = Nat::new(nat.config().clone()).unwrap();
        // By another clock.
        taken_up(&mut other, &bytes, gone, 7).unwrap();
        let verdict = back(&mut other, (REMOTE, 5_300), port, 8);
        assert_eq!(verdict == Verdict::Translated, lives, "{gone} ms");
    }
}

#[test]
fn what_is_no_state_of_these_settings_is_refused_by_name() {
    let mut config = config(100);
    config.blocks = Some(Blocks::default());
    let mut nat = Nat::new(config.clone()).unwrap();
    out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    let bytes = saved(&mut nat, 0);
    let complaint = |config: &Config, bytes: &[u8]| {
        let mut other = Nat::new(config.clone()).unwrap();
        let refused = taken_up(&mut other, bytes, 0, 0);
        refused.map_err(|error| error.to_string()).unwrap_err()
    };
    assert!(complaint(&config, b"something else").contains("no saved state"));
    let mut later = bytes.clone();
    later[6] = 200;
    assert!(complaint(&config, &later).contains("version 200"));
    let mut damaged = bytes.clone();
    damaged[60] ^= 1;
    assert!(complaint(&config, &damaged).contains("damaged"));
    assert!(complaint(&config, &bytes[..bytes.len() - 1]).contains("its end is missing"));
    let mut other = config.clone();
    other.blocks = Some(Blocks {
        size: 64,
        ..Blocks::default()
    });
    assert!(complaint(&other, &bytes).contains("layout of port blocks"));
    let mut other = config.clone();
    other.subscribers.bits = 24;
    assert!(complaint(&other, &bytes).contains("subscribers' prefixes"));
}

#[test]
fn more_flows_than_may_be_are_left_out() {
    let mut nat = Nat::new(config(100)).unwrap();
    for port in 1..=50 {
        out(&mut nat, (HOST, port), (REMOTE, 5_300), 0);
    }
    let bytes = saved(&mut nat, 0);
    let mut other = Nat::new(config(20)).unwrap();
    let taken = taken_up(&mut other, &bytes, 0, 0).unwrap();
    assert_eq!((taken.flows, taken.left_out), (20, 30));
    super::books::audit(&other);
    assert_eq!(
        out(&mut other, (HOST, 50), (REMOTE, 5_300), 0).0,
        Verdict::TableFull
    );
}

/// The chunks of a state again, each record as `change` says.
fn rewritten(bytes: &[u8], change: &mut dyn FnMut([u8; 4], Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut reader = ChunkReader::new(bytes).unwrap();
    let mut out = Vec::new();
    let mut chunks = Chunks::new(&mut out).unwrap();
    loop {
        let chunk = reader.next_chunk().unwrap();
        for record in chunk.raw() {
            chunks
                .record(chunk.tag, &change(chunk.tag, record.to_vec()))
                .unwrap();
        }
        if chunk.tag == tag::END {
            break;
        }
    }
    chunks.flush().unwrap();
    out
}

#[test]
fn a_later_version_may_say_more() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let config = generated::config(&mut random, seed);
        let mut nat = Nat::new(config.clone()).unwrap();
        let mut now = 0;
        for _ in 0..300 {
            generated::step(&mut nat, &mut random, &mut now);
        }
        let bytes = saved(&mut nat, now);
        let later = rewritten(&bytes, &mut |_, mut record| {
            record.extend([7; 5]);
            record
        });
        let known = nat.config().clone();
        let [one, other] = [&bytes, &later].map(|bytes| {
            let mut nat = Nat::new(known.clone()).unwrap();
            taken_up(&mut nat, bytes, 0, now).unwrap();
            saved(&mut nat, now)
        });
        assert_eq!(one, other);
    }
}

#[test]
fn whatever_stands_in_it_the_books_are_right() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let config = generated::config(&mut random, seed);
        let mut nat = Nat::new(config).unwrap();
        let mut now = 0;
        for _ in 0..300 {
            generated::step(&mut nat, &mut random, &mut now);
        }
        let bytes = saved(&mut nat, now);
        let wrong = rewritten(&bytes, &mut |of, mut record| {
            if of != tag::ENGINE && random.below(10) == 0 {
                let at = random.below(record.len() as u32) as usize;
                record[at] = random.next() as u8;
            }
            record
        });
        let mut other = Nat::new(nat.config().clone()).unwrap();
        taken_up(&mut other, &wrong, 0, now).unwrap();
        super::books::audit(&other);
        for _ in 0..300 {
            generated::step(&mut other, &mut random, &mut now);
            super::books::audit(&other);
        }
    }
}

#[test]
fn a_block_that_a_record_tells_of_rests_with_whom_it_was() {
    let mut config = config(1_000);
    config.limits.block_events = 100;
    // Two blocks in all.
    config.ports = 40_000..=40_127;
    config.blocks = Some(Blocks {
        size: 64,
        most: 1,
        ..Blocks::default()
    });
    let mut nat = Nat::new(config).unwrap();
    let (lower, upper) = ((40_000, 40_063), (40_064, 40_127));
    assert!(nat.hold_block(HOST, ALIAS, upper, 1_000));
    super::books::audit(&nat);
    // It is his; elsewhere are none.
    assert!(!nat.hold_block(host(1), ALIAS, upper, 1_000));
    assert!(!nat.hold_block(host(1), REMOTE, lower, 1_000));
    assert!(!nat.hold_block(host(1), ALIAS, (30_000, 30_063), 1_000));
    // Who tells of it knows it already.
    assert_eq!(nat.next_block_event(), None);
    let of = |number, now, nat: &mut Nat| out(nat, (host(number), 1), (REMOTE, 53), now);
    let (verdict, port) = of(1, 1_000, &mut nat);
    assert_eq!((verdict, port < 40_064), (Verdict::Translated, true));
    assert_eq!(of(2, 120_000, &mut nat).0, Verdict::PortsExhausted);
    // Its owner takes it up again at once; else it is free after its rest.
    let mut late = again(&mut nat, 120_000);
    let (verdict, port) = of(0, 120_000, &mut nat);
    assert_eq!((verdict, port >= 40_064), (Verdict::Translated, true));
    assert_eq!(of(2, 122_000, &mut late).0, Verdict::Translated);
    super::books::audit(&late);
}

/// A record of blocks of another size, or of one that its subscriber cannot
/// have any more: until it has rested nobody gets a port of it.
#[test]
fn ports_of_a_block_that_is_none_any_more_rest_with_nobody() {
    let blocks = |size, most| {
        let mut config = config(1_000);
        config.limits.block_events = 100;
        // 256 ports.
        config.ports = 40_000..=40_255;
        config.blocks = Some(Blocks {
            size,
            most,
            ..Blocks::default()
        });
        Nat::new(config).unwrap()
    };
    let of = |number, now, nat: &mut Nat| out(nat, (host(number), 1), (REMOTE, 53), now);
    // Size now, size then, first port then, and what of 256 ports is free.
    for (size, first, last, free) in [
        (128, 40_000, 40_063, 40_128..=40_255),
        (128, 40_064, 40_127, 40_128..=40_255),
        (128, 40_100, 40_150, 1..=0),
        (64, 40_000, 40_127, 40_128..=40_255),
        (100, 40_050, 40_199, 1..=0),
        (128, 39_000, 40_063, 40_128..=40_255),
    ] {
        let mut nat = blocks(size, 1);
        assert!(!nat.hold_block(HOST, ALIAS, (first, last), 1_000));
        // The same again changes nothing.
        assert!(!nat.hold_block(host(9), ALIAS, (first, last), 1_000));
        super::books::audit(&nat);
        let mut got = 0;
        for number in 0..8 {
            let (verdict, port) = of(number, 60_000, &mut nat);
            if verdict == Verdict::Translated {
                assert!(free.contains(&port), "{size} {first}: {port}");
                got += 1;
            }
        }
        assert_eq!(got > 0, !free.is_empty(), "{size} {first}");
        nat.maintain(122_000, 1_000);
        let after =
            (20..28).filter(|number| of(*number, 122_000, &mut nat).0 == Verdict::Translated);
        assert!(after.count() > 0, "{size} {first}: free again");
        super::books::audit(&nat);
    }
    // One block more than he may have.
    let mut nat = blocks(128, 1);
    assert!(nat.hold_block(HOST, ALIAS, (40_000, 40_127), 1_000));
    assert!(!nat.hold_block(HOST, ALIAS, (40_128, 40_255), 1_000));
    assert_eq!(of(1, 60_000, &mut nat).0, Verdict::PortsExhausted);
    let (verdict, port) = of(0, 60_000, &mut nat);
    assert_eq!((verdict, port < 40_128), (Verdict::Translated, true));
    super::books::audit(&nat);
}

#[test]
fn records_that_nobody_wrote_are_passed_by() {
    let mut nat = Nat::new(config(100)).unwrap();
    let (_, port) = out(&mut nat, (HOST, 1), (REMOTE, 5_300), 0);
    let mut bytes = Vec::new();
    let mut chunks = Chunks::new(&mut bytes).unwrap();
    let record = Record::default().u8(1).u16(2).u32(3).u64(4).with([5]);
    let whole = saved(&mut nat, 0);
    rewritten(&whole, &mut |tag, kept| {
        chunks.record(tag, &kept).unwrap();
        chunks.record(*b"newr", record.bytes()).unwrap();
        kept
    });
    chunks.flush().unwrap();
    let mut other = Nat::new(nat.config().clone()).unwrap();
    assert_eq!(taken_up(&mut other, &bytes, 0, 0).unwrap().flows, 1);
    assert_eq!(
        back(&mut other, (REMOTE, 5_300), port, 0),
        Verdict::Translated
    );
}
