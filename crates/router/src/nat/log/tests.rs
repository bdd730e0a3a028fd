use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use packet::build::Ip;
use tempfile::TempDir;

use super::journal::{Journal, Limits};
use super::place::{Failed, Writer};
use super::*;
use crate::nat::settings::Settings;
use crate::nat::state::State;

/// Records that a ring has no room for at once.
const MANY: usize = (1 << 16) + 4_000;

/// Keeps what it is given; waits before it takes anything.
struct Kept {
    records: Arc<Mutex<Vec<Record>>>,
    may: std::sync::mpsc::Receiver<()>,
}

impl Writer for Kept {
    fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
        let _ = self.may.recv();
        self.records.lock().unwrap().extend(records);
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A log with one place, what gets there, and what it waits for: once it is
/// dropped it waits no more.
fn kept() -> (Log, Arc<Mutex<Vec<Record>>>, std::sync::mpsc::Sender<()>) {
    let (go, may) = std::sync::mpsc::channel();
    let records = Arc::default();
    let writer = Kept {
        records: Arc::clone(&records),
        may,
    };
    let place = Place::start("a test".to_owned(), Box::new(writer)).unwrap();
    (
        Log {
            places: vec![place],
        },
        records,
        go,
    )
}

fn journal(directory: &Path) -> Journal {
    let limits = Limits {
        file_bytes: 1 << 24,
        files: 1_000,
    };
    Journal::new(directory, limits).unwrap()
}

fn rules(directory: &TempDir, text: &str) -> Settings {
    let path = directory.path().join("rules");
    fs::write(&path, text).unwrap();
    Settings::of_rules(&path).with_events((1 << 16, 1 << 16))
}

#[test]
fn sessions_and_blocks_are_told_in_the_order_they_happened() {
    let directory = TempDir::new().unwrap();
    let settings = rules(
        &directory,
        "alias_address 192.0.2.1\nport_range 1024-65535\n\
         subscribers 10.0.0.0/24\nport_blocks size 4096 most 1\n",
    );
    let mut nat = settings.engine().unwrap();
    // More sessions of each host than are taken in one go.
    for host in 0..3 {
        for port in 0..3_000 {
            let from = Ipv4Addr::new(10, 0, 0, 2 + host);
            let to = Ipv4Addr::new(198, 51, 100, 9);
            let mut bytes = Ip::new(from, to).udp(4_000 + port, 53, b"data");
            let now = 1_000 * u64::from(host) + u64::from(port) / 10;
            assert!(nat.translate_out(&mut bytes, now).goes_on());
        }
    }
    let (log, records, go) = kept();
    drop(go);
    let taken: usize = std::iter::from_fn(|| Some(log.take(&mut nat, 10_000)))
        .take_while(|taken| *taken > 0)
        .sum();
    assert_eq!(taken, 9_003);
    let told = log.end();
    assert_eq!((told[0].written, told[0].lost), (9_003, 0));
    let records = records.lock().unwrap();
    assert!(records.is_sorted_by_key(|record| record.at_millis));
    let blocks = records.iter().filter(|record| !record.is_session());
    assert_eq!(blocks.count(), 3);
}

#[test]
fn an_end_finds_room_for_its_mark_and_all_that_is_left() {
    let (log, records, go) = kept();
    let record = Record::mark(1, What::Exhausted);
    while log.places[0].hand(record, None) {}
    thread::scope(|scope| {
        scope.spawn(move || {
            // Till the mark waits, most likely.
            thread::sleep(Duration::from_millis(50));
            drop(go);
        });
        log.mark(What::Suspended);
    });
    let told = log.end();
    assert_eq!(told[0].lost, 1, "{told:?}");
    let last = records.lock().unwrap().last().map(|record| record.what);
    assert_eq!(last, Some(What::Suspended));
}

/// So many blocks of 64 ports, on alias addresses from 192.0.2.1 on.
fn blocks(many: usize) -> impl Iterator<Item = Record> {
    (0..many as u32).map(|number| {
        let first = 1_024 + 64 * (number % 1_000) as u16;
        Record {
            bits: 32,
            inside: Ipv4Addr::from_bits(0x0a00_0002 + number),
            alias: Ipv4Addr::from_bits(0xc000_0201 + number / 1_000),
            ports: (first, first + 63),
            ..Record::mark(10, What::Taken)
        }
    })
}

/// After a kill with so many blocks a start by these rules: what the journal
/// ends with, how many blocks it knows, how many records were lost.
fn started_anew(many: usize, text: &str) -> (What, usize, u64) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("journal");
    let mut killed = journal(&path);
    let all: Vec<Record> = blocks(many).collect();
    assert!(Writer::write(&mut killed, &all).is_ok());
    killed.kill();
    let settings = rules(&directory, text);
    let state = State::new(None, &settings, Some(&path)).unwrap();
    let place = Place::start("a test".to_owned(), Box::new(journal(&path))).unwrap();
    let log = Log {
        places: vec![place],
    };
    let (_engines, beginning) = state.begin(&settings, 1, 0).unwrap();
    beginning.confirm(&log).unwrap();
    let told = log.end();
    let last = super::journal::last(&path).unwrap().unwrap();
    let held = super::journal::held(&path).unwrap();
    (last.what, held.blocks.len(), told[0].lost)
}

#[test]
fn blocks_that_are_none_any_more_are_given_back_however_many() {
    let same = "alias_address 192.0.2.1\nport_range 1024-65535\n\
                subscribers 10.0.0.0/8\nport_blocks size 64 most 1\n";
    assert_eq!(started_anew(9, same), (What::Recovered, 9, 0));
    // Most are of addresses that are none of ours any more.
    assert_eq!(started_anew(MANY, same), (What::Recovered, 1_000, 0));
    let other = same.replace("192.0.2.1", "203.0.113.1");
    assert_eq!(started_anew(MANY, &other), (What::Started, 0, 0));
}

#[test]
fn a_damaged_journal_keeps_no_translation_from_starting() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("journal");
    let mut written = journal(&path);
    let all: Vec<Record> = blocks(5_000).collect();
    assert!(Writer::write(&mut written, &all).is_ok());
    drop(written);
    let files = fs::read_dir(&path).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    let named = |path: &std::path::PathBuf| path.extension().is_some_and(|of| of == "journal");
    let file = files.find(named).unwrap();
    let whole = fs::read(&file).unwrap();
    let settings = rules(&directory, "alias_address 192.0.2.1\n");
    // Where chunks end, and how many records there are.
    for at in whole.len() - 4 * 11..whole.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= bit;
            fs::write(&file, &damaged).unwrap();
            // A file without an index is closed, or left as it is.
            let _ = fs::remove_file(file.with_extension("index"));
            drop(journal(&path));
            let state = State::new(None, &settings, Some(&path)).unwrap();
            let (_engines, beginning) = state.begin(&settings, 1, 0).unwrap();
            let (log, records, go) = kept();
            drop(go);
            beginning.confirm(&log).unwrap();
            log.end();
            assert_eq!(records.lock().unwrap()[0].what, What::Started);
            assert_eq!(fs::read(&file).unwrap(), damaged, "{at}");
        }
    }
}
