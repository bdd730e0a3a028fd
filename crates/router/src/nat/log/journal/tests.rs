use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use lab::Random;

use super::super::place::Writer;
use super::super::record::{Record, What};
use super::*;

const ALIASES: u32 = 3;
/// How far the time of day is ahead of the machine's.
const AHEAD: u64 = 1_600_000_000_000;

fn alias(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0xc000_0201 + number)
}

fn small() -> Limits {
    Limits {
        file_bytes: 1_000,
        files: 10_000,
    }
}

fn write(journal: &mut Journal, record: Record) {
    assert!(Writer::write(journal, &[record]).is_ok());
}

/// Blocks taken and given back at random, and starts among them.
fn history(journal: &mut Journal, steps: u32, seed: u64) -> Vec<Record> {
    let mut random = Random::new(seed);
    let mut owners: HashMap<(u32, u16), u32> = HashMap::new();
    let mut all = Vec::new();
    let mut at_millis = 1_700_000_000_000;
    for step in 0..steps {
        at_millis += random.number() % 5_000;
        let of = |what, block: (u32, u16), owner: u32| Record {
            inside: Ipv4Addr::from_bits(0x6440_0000 + owner * 4),
            bits: 30,
            alias: alias(block.0),
            ports: (block.1, block.1 + 63),
            ..Record::mark(at_millis, what)
        };
        let block = (
            random.below(ALIASES as usize) as u32,
            1_024 + 64 * random.below(20) as u16,
        );
        let record = match (random.below(200), owners.get(&block).copied()) {
            (draw, _) if draw == 0 || step == 0 => {
                owners.clear();
                Record::mark(at_millis, What::Started)
            }
            (_, None) => {
                let owner = random.below(30) as u32;
                owners.insert(block, owner);
                of(What::Taken, block, owner)
            }
            (0..40, Some(owner)) => of(What::Held, block, owner),
            (_, Some(owner)) => {
                owners.remove(&block);
                of(What::GivenBack, block, owner)
            }
        };
        write(journal, record);
        all.push(record);
    }
    all
}

/// Who has what at a time, by going through everything.
fn held(all: &[Record], at_millis: u64) -> Vec<Record> {
    let mut held: Vec<Record> = Vec::new();
    for record in all.iter().filter(|record| record.at_millis <= at_millis) {
        match record.what {
            What::Started => held.clear(),
            _ => {
                let block = (record.alias, record.ports);
                held.retain(|other| (other.alias, other.ports) != block);
                if record.begins() {
                    held.push(*record);
                }
            }
        }
    }
    held
}

fn sorted(mut records: Vec<Record>) -> Vec<String> {
    records.sort_by_key(|record| (record.alias, record.ports));
    let told = records.iter();
    told.map(|record| format!("{} {} {:?}", record.inside, record.alias, record.ports))
        .collect()
}

#[test]
fn a_journal_answers_as_one_who_reads_all_of_it() {
    for seed in 0..4 {
        let directory = tempfile::TempDir::new().unwrap();
        let mut journal = Journal::new(directory.path(), small()).unwrap();
        let all = history(&mut journal, 1_500, seed);
        let mut random = Random::new(seed + 100);
        for _ in 0..250 {
            let step = random.below(all.len());
            let at_millis = all[step].at_millis + random.number() % 3;
            let held = held(&all, at_millis);
            let (number, port) = (
                random.below(ALIASES as usize) as u32,
                1_000 + random.below(1_400) as u16,
            );
            let of_port = |record: &&Record| {
                record.alias == alias(number) && (record.ports.0..=record.ports.1).contains(&port)
            };
            let expected: Vec<Record> = held.iter().filter(of_port).copied().collect();
            let asked = Asked::Port(alias(number), port);
            let answer = ask(directory.path(), asked, at_millis).unwrap();
            let found = answer.found;
            assert_eq!(sorted(found), sorted(expected), "{number}:{port}");
            let inside = Ipv4Addr::from_bits(0x6440_0000 + random.below(120) as u32);
            let of_host = |record: &&Record| record.is_of(inside);
            let expected: Vec<Record> = held.iter().filter(of_host).copied().collect();
            let answer = ask(directory.path(), Asked::Inside(inside), at_millis).unwrap();
            let found = answer.found;
            assert_eq!(sorted(found), sorted(expected), "{inside}");
        }
    }
}

#[test]
fn what_a_killed_process_left_is_taken_up() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let all = history(&mut journal, 20, 9);
    // No index, and half a record at the end.
    journal.kill();
    let Named { path, .. } = files(directory.path()).unwrap().pop().unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    let mut left = std::fs::read(&path).unwrap();
    left.extend([7; 25]);
    std::fs::write(&path, left).unwrap();
    let at = all.last().unwrap().at_millis;
    let ask_all = || {
        let mut found = Vec::new();
        for number in 0..ALIASES {
            for block in 0..20 {
                let asked = Asked::Port(alias(number), 1_024 + 64 * block);
                let answer = ask(directory.path(), asked, at).unwrap();
                found.extend(answer.found);
            }
        }
        sorted(found)
    };
    assert_eq!(ask_all(), sorted(held(&all, at)));
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    assert_eq!(index::read_all(&path).unwrap(), all);
    assert!(std::fs::metadata(&path).unwrap().len() < whole / 2);
    assert!(index_of(&path).exists());
    assert_eq!(ask_all(), sorted(held(&all, at)));
    // A start: what was before holds no more.
    write(&mut journal, Record::mark(at + 1, What::Started));
    let asked = Asked::Port(alias(0), 1_024);
    let answer = ask(directory.path(), asked, at + 2).unwrap();
    assert!(answer.found.is_empty());
    assert_eq!(answer.started_millis, Some(at + 1));
}

#[test]
fn the_oldest_files_go_and_the_answer_says_since_when_it_knows() {
    let directory = tempfile::TempDir::new().unwrap();
    let limits = Limits {
        files: 3,
        ..small()
    };
    let mut journal = Journal::new(directory.path(), limits).unwrap();
    let all = history(&mut journal, 500, 5);
    let files = files(directory.path()).unwrap();
    assert_eq!(files.len(), 3);
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let (held, others): (Vec<_>, Vec<_>) = names.partition(|name| name.contains("-held"));
    assert_eq!(others.len(), 5, "one of the three is still written");
    // What was held is beside files that are there.
    assert!(!held.is_empty() && held.len() <= 6, "{held:?}");
    let asked = Asked::Port(alias(0), 1_024);
    let answer = ask(directory.path(), asked, all[0].at_millis).unwrap();
    assert_eq!(answer.from_millis, Some(files[0].begins));
    assert!(answer.found.is_empty());
}

#[test]
fn sessions_that_ended_do_not_hide_one_that_is_there() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let session = |at_millis, what, remote_port| Record {
        inside: Ipv4Addr::new(100, 64, 0, 1),
        alias: alias(0),
        ports: (2_000, 2_000),
        protocol: 17,
        inside_port: 9,
        remote: Ipv4Addr::new(203, 0, 113, 1),
        remote_port,
        ..Record::mark(at_millis, what)
    };
    // The block is told by the subscriber's first address, as sessions are.
    let block = Record {
        bits: 30,
        inside: Ipv4Addr::new(100, 64, 0, 0),
        alias: alias(0),
        ports: (1_984, 2_047),
        ..Record::mark(1, What::Taken)
    };
    write(&mut journal, block);
    let lasting = session(2, What::SessionMade, 1);
    write(&mut journal, lasting);
    for number in 0..1_200 {
        let at_millis = 10 + 2 * u64::from(number);
        write(
            &mut journal,
            session(at_millis, What::SessionMade, 100 + number),
        );
        write(
            &mut journal,
            session(at_millis + 1, What::SessionEnded, 100 + number),
        );
    }
    for asked in [
        Asked::Port(alias(0), 2_000),
        Asked::Inside(Ipv4Addr::new(100, 64, 0, 1)),
    ] {
        let answer = ask(directory.path(), asked, 1_000_000).unwrap();
        assert!(answer.found.contains(&block), "{asked:?}");
        assert!(answer.found.contains(&lasting), "{asked:?}");
        assert_eq!((answer.found.len(), answer.is_cut), (2, false));
    }
    // With too many of them it is said.
    for number in 0..1_200 {
        let at_millis = 10_000 + u64::from(number);
        write(
            &mut journal,
            session(at_millis, What::SessionMade, 100 + number),
        );
    }
    let asked = Asked::Port(alias(0), 2_000);
    let answer = ask(directory.path(), asked, 1_000_000).unwrap();
    assert_eq!((answer.found.len(), answer.is_cut), (1_000, true));
}

#[test]
fn two_who_write_one_journal_are_kept_apart() {
    let directory = tempfile::TempDir::new().unwrap();
    let first = Journal::new(directory.path(), small()).unwrap();
    let error = Journal::new(directory.path(), small()).unwrap_err();
    assert!(error.to_string().contains("another"), "{error}");
    drop(first);
    Journal::new(directory.path(), small()).unwrap();
}

#[test]
fn damage_before_whole_records_is_said_and_nothing_is_cut_off() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let all = history(&mut journal, 10, 3);
    journal.kill();
    let Named { path, .. } = files(directory.path()).unwrap().pop().unwrap();
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[BEGINS.len() + 2 * bytes::RECORD_BYTES] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let at = all.last().unwrap().at_millis;
    let asked = Asked::Port(alias(0), 1_024);
    let error = ask(directory.path(), asked, at).unwrap_err().to_string();
    assert!(
        error.contains("damaged") && error.contains("nat-"),
        "{error}"
    );
    // It does not keep the next one from writing.
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), damaged);
    write(&mut journal, Record::mark(at + 1, What::Started));
    let answer = ask(directory.path(), asked, at + 2).unwrap();
    assert_eq!(answer.started_millis, Some(at + 1));
    // One that is shorter than its beginning is no reason to stop either.
    std::fs::write(&path, b"FP").unwrap();
    std::fs::write(index_of(&path), [0; 16]).unwrap();
    let error = ask(directory.path(), asked, at).unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn who_was_when_where_is_nobodys_business() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    history(&mut journal, 60, 4);
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0);
    }
}

#[test]
fn a_time_that_came_twice_is_answered_for_both() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let directory = tempfile::TempDir::new().unwrap();
        let mut journal = Journal::new(directory.path(), small()).unwrap();
        let scratch = tempfile::TempDir::new().unwrap();
        let mut elsewhere = Journal::new(scratch.path(), small()).unwrap();
        let mut all = history(&mut elsewhere, 600, seed);
        // The clock is set back now and then, and goes on from there.
        let mut back = 0;
        for record in &mut all {
            if random.below(100) == 0 {
                back += 2_000 + random.number() % 400_000;
            }
            record.at_millis -= back;
            assert!(journal.write_ahead(&[*record], AHEAD - back).is_ok());
            // By another process sometimes.
            if random.below(200) == 0 {
                drop(journal);
                journal = Journal::new(directory.path(), small()).unwrap();
            }
        }
        let mut eras: Vec<std::ops::Range<usize>> = Vec::new();
        for at in 0..all.len() {
            match eras.last_mut() {
                Some(era) if all[at].at_millis + 1_000 >= all[at - 1].at_millis => era.end = at + 1,
                _ => eras.push(at..at + 1),
            }
        }
        assert!(eras.len() > 2);
        for _ in 0..200 {
            let at_millis = all[random.below(all.len())].at_millis + random.number() % 3;
            let mut expected = Vec::new();
            for (number, era) in eras.iter().enumerate() {
                let of_era = &all[era.clone()];
                let before = of_era.iter().filter(|record| record.at_millis <= at_millis);
                let before = before.count();
                let is_newest = number + 1 == eras.len();
                let reaches = of_era.iter().any(|record| record.at_millis >= at_millis);
                if before > 0 && (is_newest || reaches) {
                    expected.extend(held(&all[..era.start + before], u64::MAX));
                }
            }
            let inside = Ipv4Addr::from_bits(0x6440_0000 + random.below(120) as u32);
            expected.retain(|record| record.is_of(inside));
            let answer = ask(directory.path(), Asked::Inside(inside), at_millis).unwrap();
            let [mut found, mut expected] = [sorted(answer.found), sorted(expected)];
            found.dedup();
            expected.dedup();
            assert_eq!(found, expected, "seed {seed}: {inside} at {at_millis}");
        }
        // Its end, whatever the clock says.
        let now = held(&all, u64::MAX);
        let known = super::held::held(directory.path()).unwrap().blocks;
        assert_eq!(sorted(known.into_values().collect()), sorted(now));
    }
}

#[test]
fn records_that_waited_are_no_clock_that_was_set_back() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let mut record = Record {
        inside: Ipv4Addr::new(10, 0, 0, 1),
        alias: alias(0),
        ports: (1_024, 1_087),
        ..Record::mark(0, What::Taken)
    };
    let mut write = |at_millis, ahead| {
        record.at_millis = at_millis;
        record.ports.0 += 1;
        assert!(journal.write_ahead(&[record], ahead).is_ok());
        files(directory.path()).unwrap().last().unwrap().era
    };
    // Two workers with unlike backlogs; the clock is slewed a little.
    for step in 0..20 {
        let [late, early] = [1_020_000 + step, 1_000_000 + step];
        assert_eq!(write(late, AHEAD - step), 0);
        assert_eq!(write(early, AHEAD - step), 0);
    }
    // Set back by a minute: what is of before is of the former era, until
    // the first record with a time of the new clock.
    assert_eq!(write(1_020_010, AHEAD - 60_000), 0);
    assert_eq!(write(970_000, AHEAD - 60_000), 1);
    assert_eq!(write(960_000, AHEAD - 60_000), 1);
    // And on, and set back again.
    assert_eq!(write(2_000_000, AHEAD), 1);
    assert_eq!(write(1_990_000, AHEAD), 1);
    assert_eq!(write(1_990_000, AHEAD - 5_000), 2);
    let ports = Asked::Inside(Ipv4Addr::new(10, 0, 0, 1));
    let answer = ask(directory.path(), ports, u64::MAX).unwrap();
    assert_eq!(answer.found.len(), 46);
}

#[test]
fn damage_in_an_index_is_said() {
    let directory = tempfile::TempDir::new().unwrap();
    let limits = Limits {
        file_bytes: 60_000,
        ..small()
    };
    let mut journal = Journal::new(directory.path(), limits).unwrap();
    let all = history(&mut journal, 1_400, 13);
    drop(journal);
    let path = index_of(&files(directory.path()).unwrap()[0].path);
    let whole = std::fs::read(&path).unwrap();
    let at = all.last().unwrap().at_millis;
    let asked = Asked::Port(alias(1), 1_500);
    let expected = ask(directory.path(), asked, at).unwrap();
    let mut refused = 0;
    // The header, all sums, and of the orders some.
    let ends = |byte: &usize| *byte < 20 || whole.len() - *byte <= 12;
    for byte in (0..whole.len()).filter(|byte| byte.is_multiple_of(37) || ends(byte)) {
        let mut damaged = whole.clone();
        damaged[byte] ^= 0x08;
        std::fs::write(&path, &damaged).unwrap();
        match ask(directory.path(), asked, at) {
            Ok(answer) => assert_eq!(answer, expected, "byte {byte}"),
            Err(error) => {
                assert!(error.to_string().contains("an index is damaged"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} of {}", whole.len());
}

#[test]
fn an_index_of_another_version_is_made_anew() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let all = history(&mut journal, 200, 14);
    drop(journal);
    let all_files = files(directory.path()).unwrap();
    let asked = Asked::Port(alias(1), 1_500);
    let at = all.last().unwrap().at_millis;
    let expected = ask(directory.path(), asked, at).unwrap();
    let written: Vec<Vec<u8>> = all_files
        .iter()
        .map(|file| std::fs::read(index_of(&file.path)).unwrap())
        .collect();
    for (file, whole) in all_files.iter().zip(&written) {
        // The former version had no sums.
        let mut former = whole[..16].to_vec();
        former[7] = b'1';
        former.extend(&whole[20..whole.len() - 4]);
        std::fs::write(index_of(&file.path), former).unwrap();
    }
    assert_eq!(ask(directory.path(), asked, at).unwrap(), expected);
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    for _ in 0..2 * all_files.len() {
        Writer::tick(&mut journal).unwrap();
    }
    for (file, whole) in all_files.iter().zip(&written) {
        assert_eq!(std::fs::read(index_of(&file.path)).unwrap(), *whole);
    }
    assert_eq!(ask(directory.path(), asked, at).unwrap(), expected);
}

/// Nobody waits at an end or a start for a long file to be packed: it is read
/// as it is until the next one who writes has done that.
#[test]
fn a_long_file_is_closed_while_the_next_one_is_written() {
    let directory = tempfile::TempDir::new().unwrap();
    let limits = Limits {
        file_bytes: 16 << 20,
        files: 10,
    };
    let at = 1_700_000_000_000;
    let session = |number: u32| Record {
        inside: Ipv4Addr::from_bits(0x6440_0000 + number),
        alias: alias(0),
        ports: (
            1_024 + number as u16 % 60_000,
            1_024 + number as u16 % 60_000,
        ),
        ..Record::mark(at + u64::from(number), What::SessionMade)
    };
    let mut records = vec![Record::mark(at, What::Started)];
    // A little more than a mebibyte.
    records.extend((0..27_000).map(session));
    let mut journal = Journal::new(directory.path(), limits).unwrap();
    assert!(Writer::write(&mut journal, &records).is_ok());
    let end = Record::mark(at + 60_000, What::Suspended);
    write(&mut journal, end);
    drop(journal);
    let Named { path, .. } = files(directory.path()).unwrap().pop().unwrap();
    let plain = std::fs::metadata(&path).unwrap().len();
    let is_closed = || index_of(&path).exists();
    let asked = Asked::Inside(Ipv4Addr::from_bits(0x6440_0000 + 26_999));
    let ask_it = || ask(directory.path(), asked, at + 60_000).unwrap().found;
    assert!(!is_closed() && plain > 1 << 20);
    assert_eq!(super::last(directory.path()).unwrap(), Some(end));
    assert_eq!(ask_it().len(), 1);
    // The start does not look for blocks where there are sessions.
    assert!(
        super::held::followed(directory.path())
            .unwrap()
            .has_sessions
    );
    let mut journal = Journal::new(directory.path(), limits).unwrap();
    assert!(!is_closed());
    write(&mut journal, Record::mark(at + 60_001, What::Resumed));
    Writer::tick(&mut journal).unwrap();
    assert!(is_closed() && std::fs::metadata(&path).unwrap().len() < plain);
    assert_eq!(ask_it().len(), 1);
    records.push(end);
    assert_eq!(index::read_all(&path).unwrap(), records);
    // A short one is closed at once.
    drop(journal);
    let Named { path, .. } = files(directory.path()).unwrap().pop().unwrap();
    assert!(index_of(&path).exists());
}

#[test]
fn no_question_reads_beyond_what_was_written_down() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let mut all = history(&mut journal, 10, 11);
    // Fifty blocks that stay, and one that comes and goes for ever.
    let at = all.last().unwrap().at_millis;
    let block = |at_millis, what, number: u16| Record {
        inside: Ipv4Addr::new(10, 9, 0, number as u8),
        alias: alias(0),
        ports: (10_000 + 64 * number, 10_063 + 64 * number),
        ..Record::mark(at_millis, what)
    };
    for number in 0..50 {
        all.push(block(at, What::Taken, number));
        write(&mut journal, *all.last().unwrap());
    }
    for step in 0..1_000 {
        let what = [What::Taken, What::GivenBack][step as usize % 2];
        all.push(block(at + step, what, 60));
        write(&mut journal, *all.last().unwrap());
    }
    let files = files(directory.path()).unwrap();
    let is_written = |file: &&Named| held_of(&file.path).exists();
    let from = files.iter().rposition(|file| is_written(&file)).unwrap();
    // Some records for each block, and a file, are between them.
    assert!(
        files.len() - from <= 4 * 60 / 24 + 2,
        "{from} of {}",
        files.len()
    );
    for file in &files[..from] {
        std::fs::remove_file(&file.path).unwrap();
    }
    for number in 0..50 {
        let inside = Asked::Inside(Ipv4Addr::new(10, 9, 0, number));
        let answer = ask(directory.path(), inside, u64::MAX).unwrap();
        assert_eq!(answer.found.len(), 1, "{number}");
        // Since when it was taken.
        assert_eq!(answer.found[0].at_millis, at);
    }
    let known = super::held::held(directory.path()).unwrap().blocks;
    assert_eq!(
        sorted(known.into_values().collect()),
        sorted(held(&all, u64::MAX))
    );
}

#[test]
fn damage_in_a_packed_file_is_said() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), small()).unwrap();
    let all = history(&mut journal, 200, 12);
    drop(journal);
    let file = files(directory.path()).unwrap().remove(0);
    let whole = std::fs::read(&file.path).unwrap();
    let records = index::read_all(&file.path).unwrap();
    assert_eq!(records, all[..records.len()]);
    for at in 0..whole.len() {
        for cut in [false, true] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            if cut {
                damaged.truncate(at);
            }
            std::fs::write(&file.path, &damaged).unwrap();
            // Read, or refused; never something else.
            if let Ok(read) = index::read_all(&file.path) {
                assert_eq!(read, records, "byte {at}");
            }
            let asked = Asked::Port(alias(0), 1_024);
            let _ = ask(directory.path(), asked, records[0].at_millis);
        }
    }
}

/// A journal of so many records, a second apart, asked about moments all over
/// it: each answer is right; what the questions took, sorted.
fn asked_all_over(records: u32, limits: Limits) -> Vec<std::time::Duration> {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Journal::new(directory.path(), limits).unwrap();
    let mut random = Random::new(1);
    let mut owners: HashMap<(u32, u16), u32> = HashMap::new();
    let mut samples = Vec::new();
    let mut batch = vec![Record::mark(1_700_000_000_000, What::Started)];
    for step in 0..records {
        let at_millis = 1_700_000_000_000 + u64::from(step) * 1_000;
        let block = (
            random.below(64) as u32,
            1_024 + 256 * random.below(250) as u16,
        );
        let (what, owner) = match owners.remove(&block) {
            Some(owner) => (What::GivenBack, owner),
            None => {
                let owner = random.below(100_000) as u32;
                owners.insert(block, owner);
                (What::Taken, owner)
            }
        };
        batch.push(Record {
            inside: Ipv4Addr::from_bits(0x6440_0000 + owner),
            bits: 32,
            alias: alias(block.0),
            ports: (block.1, block.1 + 255),
            ..Record::mark(at_millis, what)
        });
        if random.below(records as usize / 200) == 0 {
            let owner = (what == What::Taken).then_some(owner);
            samples.push((at_millis + 7, block, owner));
        }
        if batch.len() >= 1_000 {
            assert!(Writer::write(&mut journal, &batch).is_ok());
            batch.clear();
        }
    }
    assert!(Writer::write(&mut journal, &batch).is_ok());
    drop(journal);
    let mut took: Vec<_> = samples
        .into_iter()
        .map(|(at_millis, (number, port), owner)| {
            let began = std::time::Instant::now();
            let asked = Asked::Port(alias(number), port + 9);
            let answer = ask(directory.path(), asked, at_millis).unwrap();
            let took = began.elapsed();
            let found: Vec<_> = answer.found.iter().map(|record| record.inside).collect();
            let expected = owner.map(|owner| Ipv4Addr::from_bits(0x6440_0000 + owner));
            assert_eq!(
                found,
                Vec::from_iter(expected),
                "{number}:{port} at {at_millis}"
            );
            took
        })
        .collect();
    took.sort_unstable();
    took
}

#[test]
fn a_day_is_asked_about_any_moment() {
    let limits = Limits {
        file_bytes: 40_000,
        files: 10_000,
    };
    assert!(asked_all_over(20_000, limits).len() > 100);
}

/// `cargo test -p fingerpost-router --release --lib a_year -- --ignored --nocapture`
#[test]
#[ignore = "a chore, 700 MB and a minute: cargo test -p fingerpost-router --lib -- --ignored a_year"]
fn a_year_is_asked_about_any_moment() {
    let limits = Limits {
        file_bytes: 16 << 20,
        files: 10_000,
    };
    let took = asked_all_over(365 * 86_400, limits);
    let share = |share: usize| took[(took.len() - 1) * share / 100];
    let (half, most, all) = (share(50), share(99), share(100));
    eprintln!(
        "{} questions: {half:?} (50 %), {most:?} (99 %), {all:?} at most",
        took.len()
    );
}
