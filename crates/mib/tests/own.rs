//! FINGERPOST-MIB: what is said of tables that miss rows, of the last scan,
//! and of feeders.

#[cfg(test)]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fingerpost_mib::Health;
use support::{Rest, get, walk_from};
use table::{Limits, Phase, Reader, Samples, Source, Status, Writer};

const ROOT: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 1, 1];

/// Fares as it is told to.
#[derive(Debug)]
struct Told(Reader, Status);

impl Source for Told {
    fn reader(&self) -> Reader {
        self.0.clone()
    }

    fn status(&self) -> Status {
        self.1.clone()
    }

    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        0
    }
}

fn live() -> Status {
    Status {
        phase: Phase::Live,
        ..Status::default()
    }
}

/// The values of some objects below [`ROOT`], of a source that fares so.
fn told<const N: usize>(writer: &Writer, status: Status, names: [&[u32]; N]) -> [String; N] {
    let rest = Rest {
        health: Health::of(Arc::new(Told(writer.reader(), status))),
        ..Rest::default()
    };
    let tables = writer.reader().snapshot();
    let objects = rest.objects(&tables);
    names.map(|name| get(&objects, &[ROOT, name].concat()))
}

#[test]
fn a_table_that_misses_rows_is_named_and_the_others_are_whole() {
    let writer = Writer::default();
    let names: [&[u32]; 7] = [
        &[1, 1, 0],
        &[1, 2, 0],
        &[1, 3, 0],
        &[1, 5, 0],
        &[2, 1, 4, 3],
        &[2, 1, 4, 4],
        &[2, 1, 5, 3],
    ];
    let whole = told(&writer, live(), names);
    assert_eq!(whole[..2], ["Integer(2)", "Integer(1)"]);
    assert_eq!(whole[4..], ["Integer(1)", "Integer(1)", "Counter64(0)"]);
    let status = Status {
        incomplete: ["neighbours"].into(),
        refused: [("neighbours", 70), ("routes", 2)].into(),
        ..live()
    };
    let lacking = told(&writer, status, names);
    assert_eq!(lacking[..2], ["Integer(4)", "Integer(2)"]);
    let words = format!("{:?}", b"degraded: neighbours miss rows");
    assert_eq!(lacking[2], format!("OctetString({words})"));
    assert_eq!(
        lacking[3..],
        ["Counter64(72)", "Integer(2)", "Integer(1)", "Counter64(70)"]
    );
}

#[test]
fn while_tables_are_listed_again_none_is_complete() {
    let writer = Writer::default();
    let names: [&[u32]; 3] = [&[1, 1, 0], &[1, 2, 0], &[2, 1, 4, 4]];
    for (phase, state, complete) in [(Phase::Loading, 1, 2), (Phase::Resyncing, 3, 2)] {
        let status = Status { phase, ..live() };
        let expected = [state, 2, complete].map(|number| format!("Integer({number})"));
        assert_eq!(told(&writer, status, names), expected);
    }
    // A recording at its end is whole, unless it has a gap.
    for (has_gap, complete) in [(false, 1), (true, 2)] {
        let status = Status {
            phase: Phase::Ended("the recording ended".into()),
            has_gap,
            ..live()
        };
        let expected = [5, complete, complete].map(|number| format!("Integer({number})"));
        assert_eq!(told(&writer, status, names), expected);
    }
}

#[test]
fn the_last_scan_is_told_once_there_was_one() {
    let writer = Writer::default();
    let names: [&[u32]; 4] = [&[1, 8, 0], &[1, 10, 0], &[1, 11, 0], &[1, 12, 0]];
    let none = told(&writer, live(), names);
    assert_eq!(none[0], "Counter32(0)");
    assert_eq!(none[1..], ["NoSuchInstance"; 3]);
    let status = Status {
        scans: 3,
        last_scan: Instant::now().checked_sub(Duration::from_secs(30)),
        last_scan_time: Duration::from_millis(17),
        last_scan_drift: 2,
        ..live()
    };
    let scanned = ["Counter32(3)", "Gauge32(30)", "Gauge32(2)", "Gauge32(17)"];
    assert_eq!(told(&writer, status, names), scanned);
}

#[test]
fn feeders_are_rows_by_their_names() {
    let writer = Writer::default();
    let join = |name: &str| writer.feeders().join(name, Limits::default()).unwrap();
    let (_b, mut aa, _a) = (join("b"), join("aa"), join("a"));
    aa.begin();
    aa.end();
    let rest = Rest::default();
    let tables = writer.reader().snapshot();
    let objects = rest.objects(&tables);
    let complete = [ROOT, &[3, 1, 3]].concat();
    let rows = walk_from(&objects, &complete, 3);
    let row = |index: &[u32], value: &str| ([&complete, index].concat(), value.to_owned());
    let expected = [
        row(&[1, 97], "Integer(2)"),
        row(&[1, 98], "Integer(2)"),
        row(&[2, 97, 97], "Integer(1)"),
    ];
    assert_eq!(rows, expected);
    for (name, value) in &rows {
        assert_eq!(&get(&objects, name), value);
    }
}
