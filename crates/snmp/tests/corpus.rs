//! The corpus of the fuzz targets `snmp_message` and `snmp_agent`, what
//! net-snmp's tools sent, replayed through what the targets do: as it is,
//! cut at every length, with every byte changed, and changed at random.

#![allow(clippy::expect_used, reason = "a test fails by it")]
#![allow(dead_code, reason = "the fixture has more than one user")]

use std::env;

use lab::Random;

#[path = "../../../fuzz/src/snmp.rs"]
mod check;

/// Random changes tried for each target. More of them:
/// `FINGERPOST_FUZZ_ROUNDS=10000000 cargo test -p fingerpost-snmp --test corpus`.
const ROUNDS: usize = 20_000;

fn replay(target: &str, check: fn(&[u8])) {
    let files = lab::corpus::files(target, 20).expect("the corpus");
    for bytes in &files {
        check(bytes);
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            for byte in [
                0,
                1,
                0x7f,
                0x80,
                0x82,
                0xff,
                bytes[at].wrapping_add(1),
                bytes[at] ^ 0x20,
            ] {
                changed[at] = byte;
                check(&changed);
            }
            changed[at] = bytes[at];
        }
    }
    let rounds = env::var("FINGERPOST_FUZZ_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let mut random = Random::new(4);
    for _ in 0..rounds {
        check(&change(&files, &mut random));
    }
}

/// A file with some bytes changed, taken out, or put in from another.
fn change(files: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let many = random.below(8).min(bytes.len() - at);
        match random.below(4) {
            0 => bytes[at] = random.number() as u8,
            1 => {
                bytes[at] = bytes[at]
                    .wrapping_add(random.below(5) as u8)
                    .wrapping_sub(2)
            }
            2 => drop(bytes.drain(at..at + many)),
            _ => {
                let other = &files[random.below(files.len())];
                let from = random.below(other.len());
                let part = &other[from..other.len().min(from + many * 4)];
                bytes.splice(at..at + many, part.iter().copied());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn snmp_message() {
    replay("snmp_message", check::snmp_message);
}

#[test]
fn snmp_agent() {
    replay("snmp_agent", check::snmp_agent);
}
