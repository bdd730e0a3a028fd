//! The writer against plain maps and lists: random changes, at every limit
//! and beyond; after each, all rows, all indexes, all events.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::large_enum_variant,
    reason = "a test may stop at once, and its steps are few"
)]

extern crate fingerpost_table as table;

#[path = "model/changes.rs"]
mod changes;
#[path = "model/owners.rs"]
mod owners;
#[path = "model/plain.rs"]
mod plain;

use std::time::Duration;

use proptest::prelude::*;
use table::{Change, Event, Events, Generation, Limits, Reader, Writer};

use changes::Step;
use plain::Plain;

/// Applies steps to both; after each, they are the same.
fn same(limits: Limits, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut writer = Writer::new(limits);
    let reader = writer.reader();
    let mut plain = Plain::new(limits);
    let mut seen = Generation(0);
    let mut kept = Vec::new();
    for step in steps {
        match step {
            Step::Limits(limits) => {
                writer.set_limits(limits);
                plain.limits = limits;
            }
            Step::Keep => kept.push((reader.snapshot(), plain.clone())),
            Step::Change(change) => {
                let change = plain.aimed(change);
                let (expected, events) = plain.apply(change.clone());
                prop_assert_eq!(writer.apply(change), expected);
                writer.publish();
                let told = told(&reader, &mut seen);
                prop_assert_eq!(told, events);
            }
        }
        plain.same_as(&reader.snapshot())?;
    }
    // Who holds a snapshot holds one moment.
    for (snapshot, plain) in kept {
        plain.same_as(&snapshot)?;
    }
    Ok(())
}

fn told(reader: &Reader, seen: &mut Generation) -> Vec<Event> {
    match reader.events_after(*seen, Duration::ZERO) {
        Events::FellBehind => panic!("some events are no reason to fall behind"),
        Events::Batches(batches) => {
            if let Some(last) = batches.last() {
                *seen = last.generation;
            }
            batches
                .iter()
                .flat_map(|batch| batch.events.to_vec())
                .collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn all_tables_are_what_plain_maps_would_be(
        limits in changes::limits(),
        steps in proptest::collection::vec(changes::step(), 1..120),
    ) {
        same(limits, steps)?;
    }
}

#[test]
fn a_full_table_takes_changes_of_its_rows_and_says_what_it_refused() {
    let none = changes::limits_of(0);
    let mut writer = Writer::new(changes::limits_of(1));
    let reader = writer.reader();
    let first: Vec<Change> = changes::one_of_each(1).into();
    writer.commit(first).unwrap();
    // Neither one more, nor any with the limit below what is there.
    writer.set_limits(none);
    for change in changes::one_of_each(2) {
        assert!(writer.apply(change).is_err());
    }
    writer.publish();
    let refused = reader.snapshot().refused;
    // Routes that are interpreted and those that are not share a limit.
    let expected = [1, 1, 1, 2, 1, 1, 1];
    assert_eq!(refused.by_table().map(|(_, count)| count), expected);
    assert_eq!((refused.total(), refused.is_none()), (8, false));
    // The rows that are there can be changed.
    let before = reader.snapshot();
    writer.commit(changes::changes_of_each(1)).unwrap();
    let after = reader.snapshot();
    assert_eq!(after.rows(), before.rows());
    assert_eq!(after.generation.0, before.generation.0 + 1);
    // A batch goes on behind what is refused.
    writer.set_limits(changes::limits_of(1));
    let mut batch = changes::one_of_each(2).to_vec();
    batch.push(Change::DeleteLink(1));
    assert!(writer.commit(batch).is_err());
    assert!(reader.snapshot().links.get(1).is_none());
    // There is room again.
    writer.commit([changes::one_of_each(2)[0].clone()]).unwrap();
    assert!(reader.snapshot().links.get(2).is_some());
    writer.forget_refused();
    writer.publish();
    assert!(reader.snapshot().refused.is_none());
}
