//! Segments as the clock, the bounds and what is there already make them.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::*;
use crate::mirror::difference::CompleteTables;
use crate::recording::{Listed, Outcome, Reader};

struct Directory(PathBuf);

impl Directory {
    fn new(tag: &str) -> Self {
        let name = format!("fp-history-{tag}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn settings(&self) -> Settings {
        Settings {
            directory: self.0.clone(),
            limit_bytes: MIN_HISTORY_BYTES,
            keep: Duration::from_secs(3_600),
            counters: None,
            group: None,
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that failed has said so already.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Part, kinds and times of the records of a segment.
fn read(segment: &Segment) -> (u32, Vec<(u16, u64)>) {
    let file = File::open(&segment.path).unwrap();
    let mut bytes = Vec::new();
    match segment.is_packed {
        true => MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap(),
        false => (&file).read_to_end(&mut bytes).unwrap(),
    };
    let mut reader = Reader::open(&bytes[..]).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        records.push((record.kind, record.at_micros));
    }
    (reader.head().part, records)
}

fn list(tap: &Tap, at: u64) {
    tap.put(kind::BEGIN, at, &[&[0, 0]]);
    tap.put(kind::ANSWER, at, &[b"row"]);
    let listed = Outcome::Listed(Listed {
        whole: CompleteTables::NONE,
        complete: true,
        interrupted: 0,
    });
    tap.put(kind::LISTED, at, &[&listed.payload()]);
}

fn written(keeper: &Keeper, records: u64) {
    let gauge = keeper.gauge();
    lab::wait_until(Duration::from_secs(60), "the records", || {
        (gauge.status().records >= records).then_some(())
    })
    .unwrap();
}

#[test]
fn a_clock_that_is_set_back_begins_a_segment() {
    let directory = Directory::new("back");
    let keeper = Keeper::start(directory.settings()).unwrap();
    let tap = keeper.tap(7, "blue");
    let now = now_micros();
    list(&tap, now);
    tap.put(kind::EVENT, now + 10, &[b"before"]);
    // Out of order, as threads are.
    tap.put(kind::EVENT, now + 5, &[b"before"]);
    tap.put(kind::EVENT, now - 3_600_000_000, &[b"after"]);
    tap.put(kind::EVENT, now - 3_599_000_000, &[b"after"]);
    written(&keeper, 8);
    drop(keeper);
    let segments = shelf::segments(&directory.0).unwrap();
    assert_eq!(segments.len(), 2, "{segments:?}");
    let (first, before) = read(&segments[0]);
    let (second, after) = read(&segments[1]);
    assert_eq!((first, second), (0, 1), "nothing is missing between them");
    let events = |records: &[(u16, u64)]| -> Vec<u64> {
        let events = records.iter().filter(|(kind, _)| *kind == kind::EVENT);
        events.map(|(_, at)| *at).collect()
    };
    assert_eq!(events(&before), [now + 10, now + 5]);
    assert_eq!(events(&after), [now - 3_600_000_000, now - 3_599_000_000]);
    assert_eq!(after[0].0, kind::NAMESPACE);
}

#[test]
fn what_a_daemon_left_is_gone_on_with_and_kept_in_bounds() {
    let directory = Directory::new("bounds");
    for run in 0..3 {
        let keeper = Keeper::start(directory.settings()).unwrap();
        list(&keeper.tap(7, ""), now_micros());
        written(&keeper, 4);
        assert_eq!(keeper.gauge().status().removed, 0, "{run}");
    }
    let sequences = |directory: &Directory| -> Vec<u64> {
        let segments = shelf::segments(&directory.0).unwrap();
        segments.iter().map(|one| one.sequence).collect()
    };
    assert_eq!(sequences(&directory), [0, 1, 2]);
    // All but the last were over long ago.
    std::thread::sleep(Duration::from_millis(20));
    let settings = Settings {
        keep: Duration::from_millis(10),
        ..directory.settings()
    };
    let keeper = Keeper::start(settings).unwrap();
    assert_eq!(keeper.gauge().status().removed, 2);
    drop(keeper);
    assert_eq!(sequences(&directory), [2, 3]);
}

#[test]
fn a_listing_that_has_no_place_is_told_and_what_comes_is_counted() {
    let directory = Directory::new("small");
    let keeper = Keeper::start(directory.settings()).unwrap();
    let tap = keeper.tap(7, "");
    tap.put(kind::BEGIN, now_micros(), &[&[0, 0]]);
    for _ in 0..2 * MIN_HISTORY_BYTES / (32 << 10) {
        tap.put(kind::ANSWER, now_micros(), &[&[0; 32 << 10]]);
    }
    let gauge = keeper.gauge();
    let stopped = lab::wait_until(Duration::from_secs(60), "it to stop", || {
        gauge.status().stopped
    });
    assert!(stopped.unwrap().contains("limit_bytes"));
    assert!(gauge.status().lost > 0);
    // A segment without a whole listing is of no use to anybody.
    drop(keeper);
    let segments = shelf::segments(&directory.0).unwrap();
    assert!(segments.len() <= 1, "{segments:?}");
}

#[test]
fn a_directory_that_is_somebodys_is_left_alone() {
    let directory = Directory::new("taken");
    fs::create_dir(&directory.0).unwrap();
    fs::write(directory.0.join("letter"), "dear").unwrap();
    let refused = Keeper::start(directory.settings()).unwrap_err().to_string();
    assert!(refused.contains("`letter`"), "{refused}");
    assert!(check(&directory.0).is_err());
    fs::remove_file(directory.0.join("letter")).unwrap();
    check(&directory.0).unwrap();
    let first = Keeper::start(directory.settings()).unwrap();
    let second = Keeper::start(directory.settings()).unwrap_err().to_string();
    assert!(second.contains("another daemon"), "{second}");
    drop(first);
    Keeper::start(directory.settings()).unwrap();
}
