//! Kept recordings with random changes: whatever comes of them is no
//! panic, and whatever is not a record is said to be none.
//!
//! `FINGERPOST_FUZZ_ROUNDS` sets how many.

use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use lab::Random;
use linux::recording::{Player, Reader, Record};
use table::Limits;

use crate::live::kept_at;

/// A record of its own.
#[derive(Clone)]
struct Owned {
    kind: u16,
    namespace: u32,
    at_micros: u64,
    payload: Vec<u8>,
}

fn records(name: &str) -> Vec<Owned> {
    let packed = File::open(kept_at().join(format!("{name}.rec.gz"))).unwrap();
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
            4 => record.kind = random.below(14) as u16,
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
