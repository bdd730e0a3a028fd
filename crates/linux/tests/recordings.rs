//! Recordings that nobody made: kept ones with random changes, and the
//! corpus of the fuzz target `recording`. Whatever is in them, nothing
//! panics.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many changed ones are tried.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../../fuzz/src/recording.rs"]
mod recording;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use fingerpost_linux::recording::{Player, Reader, Record};
use flate2::read::GzDecoder;
use lab::Random;
use table::Limits;

/// A record of its own.
#[derive(Clone)]
struct Owned {
    kind: u16,
    namespace: u32,
    at_micros: u64,
    payload: Vec<u8>,
}

fn records(name: &str) -> Vec<Owned> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fingerpost/tests/recordings/kept");
    let packed = File::open(kept.join(format!("{name}.rec.gz"))).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let mut reader = Reader::open(&bytes[..]).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        records.push(Owned {
            kind: record.kind,
            namespace: record.namespace,
            at_micros: record.at_micros,
            payload: record.payload.to_vec(),
        });
    }
    records
}

/// Changes some records: their bytes, their length, their kind, their
/// order, whether they are there.
fn mutate(records: &mut Vec<Owned>, random: &mut Random) {
    for _ in 0..1 + random.below(20) {
        let at = random.below(records.len());
        let other = random.below(records.len());
        let record = &mut records[at];
        let place = random.below(record.payload.len().max(1));
        match random.below(7) {
            0..3 => {
                if let Some(byte) = record.payload.get_mut(place) {
                    *byte = random.number() as u8;
                }
            }
            3 => record.payload.truncate(place),
            4 => record.kind = random.below(18) as u16,
            5 => records.swap(at, other),
            _ => {
                records.remove(at);
            }
        }
        if records.is_empty() {
            return;
        }
    }
}

#[test]
fn whatever_is_in_a_recording_is_replayed_or_refused() {
    let rounds = std::env::var("FINGERPOST_FUZZ_ROUNDS");
    let rounds: usize = rounds.map_or(40, |rounds| rounds.parse().unwrap());
    let mut random = Random::new(11);
    for name in ["churn", "overrun", "deleted"] {
        let whole = records(name);
        for _ in 0..rounds {
            let mut changed = whole.clone();
            mutate(&mut changed, &mut random);
            let mut player = Player::new(Limits::default());
            for record in &changed {
                let record = Record {
                    kind: record.kind,
                    namespace: record.namespace,
                    at_micros: record.at_micros,
                    payload: &record.payload,
                };
                // A refusal is an answer too; what follows is tried.
                let _ = player.take(&record);
            }
            player.publish();
            assert!(player.take_new().len() <= 30, "{name}");
        }
    }
}

#[test]
fn the_corpus_and_what_is_near_it() {
    for bytes in lab::corpus::files("recording", 3).unwrap() {
        recording::recording(&bytes);
        for at in (0..bytes.len()).step_by(7) {
            recording::recording(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            recording::recording(&changed);
        }
    }
}
