//! Random lives of feeds, recorded: what a replay of all of it has, and what
//! one has that begins with the newest state alone.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod bmp;
mod fpm;
#[path = "../../tests/peer/mod.rs"]
mod peer;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use table::{Limits, Phase, Tables, Writer};

use super::{Declaration, Kind, Replay, ReplayLimits, Tape};

/// The number of the feed in the records.
const FEED: u32 = 7;

#[derive(Debug, Clone)]
pub enum Record {
    Heard(u64, Vec<u8>),
    State(bool),
    Ended,
}

/// A tape in memory.
#[derive(Debug, Default)]
pub struct Memory {
    records: Mutex<Vec<Record>>,
    part: AtomicU32,
    /// It has no room for a state just now.
    is_full: AtomicBool,
}

impl Tape for Memory {
    fn heard(&self, at_micros: u64, payload: &[&[u8]]) {
        self.put(Record::Heard(at_micros, payload.concat()));
    }

    fn state(&self, _: u64, is_whole: bool) {
        self.put(Record::State(is_whole));
    }

    fn ended(&self, _: u64, _: &str) {
        self.put(Record::Ended);
    }

    fn wanted(&self) -> (u32, u64) {
        (self.part.load(Ordering::Relaxed), 0)
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }
}

impl Memory {
    fn put(&self, record: Record) {
        self.records.lock().unwrap().push(record);
    }

    fn next_part(&self) {
        self.part.fetch_add(1, Ordering::Relaxed);
    }

    fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }

    /// What follows stands before the state that is told next.
    fn fill(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// All records, once the state that is being told is whole.
    fn whole(&self) -> Vec<Record> {
        self.is_full.store(false, Ordering::Relaxed);
        let began = Instant::now();
        loop {
            let records = self.records();
            let mut states = records.iter().rev();
            let last = states.find_map(|record| match record {
                Record::State(is_whole) => Some(*is_whole),
                _ => None,
            });
            if last != Some(false) {
                return records;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the state is not told"
            );
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// A replay beside an empty writer.
pub struct Played {
    first: Writer,
    pub replay: Replay,
}

impl Played {
    pub fn new(kind: Kind, name: &str) -> Self {
        let first = Writer::default();
        let mut replay = Replay::new(ReplayLimits {
            rows: Limits::default(),
        });
        let declaration = Declaration {
            kind,
            name: name.into(),
            listening: "127.0.0.1:1".into(),
        };
        replay.begin(true);
        let bytes = declaration.bytes();
        replay.feed(FEED, first.feeders(), &bytes).unwrap();
        Self { first, replay }
    }

    pub fn of(kind: Kind, name: &str, records: &[Record]) -> Self {
        let mut played = Self::new(kind, name);
        played.play(records);
        played
    }

    pub fn play(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Heard(at, payload) => self.replay.heard(FEED, *at, payload).unwrap(),
                Record::State(is_whole) => self.replay.state(FEED, *is_whole).unwrap(),
                Record::Ended => self.replay.ended(FEED),
            }
        }
        self.replay.publish();
    }

    pub fn owners(&self) -> Vec<(String, Arc<Tables>, Phase, u64)> {
        owners(&self.first)
    }
}

/// What is to be the same of all owners: rows, phase, unconfirmed rows.
pub fn owners(first: &Writer) -> Vec<(String, Arc<Tables>, Phase, u64)> {
    let all = first.reader().snapshot();
    let owners = all.owners().map(|owner| {
        let status = owner.status();
        let feed = status.feed.unwrap();
        let name = owner.name().to_owned();
        (
            name,
            Arc::clone(owner.tables()),
            status.phase,
            feed.unconfirmed,
        )
    });
    owners.collect()
}

/// Whether there were rows before all is told again, a part alone may not
/// say.
pub fn is_same(ours: &Phase, theirs: &Phase) -> bool {
    let begins = |of: &Phase| matches!(of, Phase::Loading | Phase::Resyncing);
    ours == theirs || begins(ours) && begins(theirs)
}

/// The records from the newest state on.
pub fn newest_part(records: &[Record]) -> &[Record] {
    let is_begin = |record: &Record| matches!(record, Record::State(false));
    let at = records.iter().rposition(is_begin).unwrap();
    &records[at..]
}

#[test]
fn a_gap_is_said_and_a_state_closes_it() {
    let tape = Arc::new(Memory::default());
    let mut life = fpm::Life::new(3, Arc::clone(&tape));
    life.lives();
    let records = tape.whole();
    let mut played = Played::of(Kind::Fpm, "frr", &records);
    assert_eq!(played.replay.incomplete(), 0);
    played.replay.gap(FEED);
    played.replay.publish();
    assert_eq!(played.replay.incomplete(), 1);
    let said = |played: &Played| format!("{:?}", played.owners()[0].2);
    assert!(
        said(&played).contains("lacks what it heard"),
        "{}",
        said(&played)
    );
    // What it heard after a gap says nothing.
    let heard: Vec<Record> = records
        .iter()
        .filter(|record| matches!(record, Record::Heard(..)))
        .cloned()
        .collect();
    let before = played.owners()[0].1.generation;
    played.play(&heard);
    assert_eq!(played.owners()[0].1.generation, before);
    played.play(newest_part(&records));
    assert_eq!(played.replay.incomplete(), 0);
    assert!(!said(&played).contains("lacks"), "{}", said(&played));
    // A later run, whose feed of that name listens elsewhere.
    played.replay.begin(false);
    let declaration = Declaration {
        kind: Kind::Fpm,
        name: "frr".into(),
        listening: "127.0.0.1:2".into(),
    };
    let feeders = played.first.feeders();
    played
        .replay
        .feed(FEED, feeders, &declaration.bytes())
        .unwrap();
    assert_eq!(played.replay.incomplete(), 1);
    let routes = |played: &Played| played.owners()[0].1.routes.len();
    let before = routes(&played);
    played.play(newest_part(&records));
    assert_eq!((played.replay.incomplete(), routes(&played)), (0, before));
    // So is a state that was not told whole.
    let mut part = Played::new(Kind::Fpm, "frr");
    assert_eq!(part.replay.incomplete(), 1);
    part.play(&newest_part(&records)[..1]);
    part.replay.gap(FEED);
    assert_eq!(part.replay.incomplete(), 1);
}
