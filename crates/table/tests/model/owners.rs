//! Several owners beside each other against plain maps and lists: random
//! changes, limits, resyncs, leavings; after each, all rows, all indexes,
//! all events of all owners.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use table::{
    Change, Event, Events, Feeder, Feeders, Generation, JoinError, KERNEL, Limits, MAX_FEEDERS,
    OfOwner, Operation, Phase, Reader, Row, Samples, Source, Status, TableFull, Writer,
};

use crate::changes::{self, Aimed};
use crate::plain::{self, Plain};
use crate::told;

const NAMES: [&str; 3] = ["bgp", "isis", "static-1"];

#[derive(Debug, Clone)]
enum Step {
    /// The first owner changes something.
    First(Aimed),
    /// The n-th feeder does.
    Feeder(usize, Aimed),
    /// It tells the n-th of its rows again.
    Again(usize, usize),
    Limits(usize, Limits),
    Begin(usize),
    End(usize),
    /// It leaves, or joins.
    Turn(usize, Limits),
    Keep,
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..NAMES.len();
    let aimed = || {
        changes::step().prop_filter_map("a change", |step| match step {
            changes::Step::Change(change) => Some(change),
            _ => None,
        })
    };
    prop_oneof![
        6 => aimed().prop_map(Step::First),
        12 => (who(), aimed()).prop_map(|(who, change)| Step::Feeder(who, change)),
        12 => (who(), any::<usize>()).prop_map(|(who, at)| Step::Again(who, at)),
        1 => (who(), changes::limits()).prop_map(|(who, limits)| Step::Limits(who, limits)),
        3 => who().prop_map(Step::Begin),
        3 => who().prop_map(Step::End),
        2 => (who(), changes::limits()).prop_map(|(who, limits)| Step::Turn(who, limits)),
        1 => Just(Step::Keep),
    ]
}

/// A feeder beside what it should be.
struct Fed {
    feeder: Feeder,
    reader: Reader,
    plain: Plain,
    seen: Generation,
    /// What deletes each row that was not told again.
    stale: Option<Vec<Change>>,
}

impl Fed {
    fn join(feeders: &Feeders, name: &str, limits: Limits) -> Self {
        let feeder = feeders.join(name, limits).unwrap();
        let reader = feeder.reader();
        Self {
            seen: reader.snapshot().generation,
            plain: Plain::new(limits),
            reader,
            feeder,
            stale: None,
        }
    }

    fn change(&mut self, change: Change) -> Result<(), TestCaseError> {
        let applied = self.feeder.apply(change.clone());
        self.feeder.publish();
        let mut told = told(&self.reader, &mut self.seen);
        self.made_room(&mut told)?;
        let (expected, events) = self.plain.apply(change.clone());
        if let Err(full) = &expected {
            self.has_no_room(full)?;
        }
        prop_assert_eq!(told, events);
        if let Some(stale) = &mut self.stale
            && expected.is_ok()
            && let Some(deletion) = plain::deletion_of(&change)
        {
            stale.retain(|of| *of != deletion);
        }
        prop_assert_eq!(applied, expected);
        Ok(())
    }

    /// A row that was not told again may have made room for a new one.
    fn made_room(&mut self, told: &mut Vec<Event>) -> Result<(), TestCaseError> {
        let is_room = |events: &[Event]| match events {
            [first, second] => {
                first.operation == Operation::Deleted
                    && second.operation == Operation::Added
                    && !is_move(first, second)
            }
            _ => false,
        };
        let Some(stale) = self.stale.as_mut().filter(|_| is_room(told)) else {
            return Ok(());
        };
        let deletion = plain::deletion_of_row(&told.remove(0).row);
        let at = stale.iter().position(|of| *of == deletion);
        prop_assert!(at.is_some(), "{deletion:?} was told again");
        stale.remove(at.unwrap());
        let (deleted, events) = self.plain.apply(deletion);
        prop_assert!(deleted.is_ok() && events.len() == 1);
        Ok(())
    }

    /// Of a table that is full, no row is left that was not told again.
    fn has_no_room(&self, full: &TableFull) -> Result<(), TestCaseError> {
        if self.plain.len_of(full.table) > full.limit {
            return Ok(());
        }
        let stale = self.stale.iter().flatten();
        for deletion in stale.filter(|of| plain::table_of(of) == full.table) {
            let (_, events) = self.plain.clone().apply(deletion.clone());
            prop_assert!(events.is_empty(), "{deletion:?} could make room");
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.feeder.begin();
        self.plain.forget_refused();
        self.stale = Some(
            self.plain
                .rows()
                .iter()
                .filter_map(plain::deletion_of)
                .collect(),
        );
    }

    fn end(&mut self) -> Result<(), TestCaseError> {
        let mut swept = 0;
        for deletion in self.stale.take().unwrap_or_default() {
            let (_, events) = self.plain.apply(deletion);
            swept += events.len();
        }
        prop_assert_eq!(self.feeder.end(), swept);
        prop_assert_eq!(told(&self.reader, &mut self.seen).len(), swept);
        prop_assert_eq!(self.status().phase, Phase::Live);
        Ok(())
    }

    fn status(&self) -> Status {
        let whole = self.reader.of(KERNEL).unwrap().snapshot();
        let owner = whole.owners();
        let mut owner = owner.filter(|owner| owner.name() == self.feeder.name());
        owner.next().unwrap().status()
    }

    fn same(&self) -> Result<(), TestCaseError> {
        self.plain.same_as(&self.reader.snapshot())?;
        let incomplete = self.status().incomplete;
        let refused = self.reader.snapshot().refused.by_table();
        let lacking = refused.into_iter().filter(|(_, count)| *count > 0);
        let lacking = lacking.map(|(table, _)| table).collect();
        prop_assert_eq!(incomplete, lacking);
        Ok(())
    }
}

/// A forwarding entry whose station went to another port.
fn is_move(gone: &Event, new: &Event) -> bool {
    match (&gone.row, &new.row) {
        (Row::Fdb(gone), Row::Fdb(new)) => {
            gone.station().is_some() && gone.station() == new.station()
        }
        _ => false,
    }
}

/// All owners are what plain maps would be, in one snapshot and each alone.
fn all_same(reader: &Reader, first: &Plain, fed: &[Option<Fed>]) -> Result<(), TestCaseError> {
    let whole = reader.snapshot();
    first.same_as(&whole)?;
    let mut names: Vec<&str> = Vec::new();
    for fed in fed.iter().flatten() {
        fed.same()?;
        let name = fed.feeder.name();
        fed.plain.same_as(&whole.of(name).unwrap())?;
        fed.plain.same_as(&reader.of(name).unwrap().snapshot())?;
        names.push(name);
    }
    names.sort_unstable();
    let owners: Vec<&str> = whole.owners().map(|owner| owner.name()).collect();
    prop_assert_eq!(owners, names);
    Ok(())
}

fn run(limits: Limits, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut writer = Writer::new(limits);
    let (reader, feeders) = (writer.reader(), writer.feeders());
    let mut first = Plain::new(limits);
    let mut seen = Generation(0);
    let mut fed: Vec<Option<Fed>> = NAMES
        .iter()
        .map(|name| Some(Fed::join(&feeders, name, changes::limits_of(1_000))))
        .collect();
    let mut kept = Vec::new();
    for step in steps {
        match step {
            Step::First(change) => {
                let change = first.aimed(change);
                let (expected, events) = first.apply(change.clone());
                prop_assert_eq!(writer.apply(change), expected);
                writer.publish();
                prop_assert_eq!(told(&reader, &mut seen), events);
            }
            Step::Turn(who, limits) => {
                let gone = fed[who].take();
                match gone {
                    Some(gone) => left(gone)?,
                    None => fed[who] = Some(Fed::join(&feeders, NAMES[who], limits)),
                }
            }
            Step::Keep => {
                let plains = fed.iter().flatten();
                let plains = plains.map(|fed| (fed.feeder.name().to_owned(), fed.plain.clone()));
                kept.push((reader.snapshot(), first.clone(), plains.collect::<Vec<_>>()));
            }
            Step::Feeder(who, change) => {
                if let Some(fed) = &mut fed[who] {
                    fed.change(fed.plain.aimed(change))?;
                }
            }
            Step::Again(who, at) => {
                if let Some(fed) = &mut fed[who] {
                    let rows = fed.plain.rows();
                    if !rows.is_empty() {
                        fed.change(rows[at % rows.len()].clone())?;
                    }
                }
            }
            Step::Limits(who, limits) => {
                if let Some(fed) = &mut fed[who] {
                    fed.feeder.set_limits(limits);
                    fed.plain.limits = limits;
                }
            }
            Step::Begin(who) => {
                if let Some(fed) = &mut fed[who] {
                    fed.begin();
                    fed.feeder.publish();
                }
            }
            Step::End(who) => {
                if let Some(fed) = &mut fed[who] {
                    fed.end()?;
                }
            }
        }
        // No owner hears of another.
        prop_assert_eq!(told(&reader, &mut seen), Vec::new());
        all_same(&reader, &first, &fed)?;
    }
    // Who holds a snapshot holds one moment of all owners.
    for (snapshot, first, plains) in kept {
        first.same_as(&snapshot)?;
        for (name, plain) in plains {
            plain.same_as(&snapshot.of(&name).unwrap())?;
        }
    }
    Ok(())
}

/// What is left of an owner that left: nothing, and a word.
fn left(gone: Fed) -> Result<(), TestCaseError> {
    let (reader, seen) = (gone.reader.clone(), gone.seen);
    drop(gone);
    prop_assert_eq!(reader.snapshot().rows(), 0);
    prop_assert_eq!(
        reader.events_after(seen, Duration::ZERO),
        Events::FellBehind
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn all_owners_are_what_plain_maps_would_be(
        limits in changes::limits(),
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        run(limits, steps)?;
    }
}

#[test]
fn who_may_join_and_how_many() {
    let writer = Writer::default();
    let feeders = writer.feeders();
    let long = "x".repeat(113);
    for name in ["", KERNEL, "a b", "a/b", "\u{e9}", &long] {
        let refused = feeders.join(name, Limits::default()).unwrap_err();
        assert_eq!(refused, JoinError::BadName(name.to_owned()));
    }
    let join = |at: usize| feeders.join(&format!("f{at}"), Limits::default());
    let mut joined: Vec<Feeder> = (0..MAX_FEEDERS).map(|at| join(at).unwrap()).collect();
    assert_eq!(join(0).unwrap_err(), JoinError::Taken("f0".to_owned()));
    assert_eq!(join(MAX_FEEDERS).unwrap_err(), JoinError::TooMany);
    joined.remove(3);
    // Another of the same name is behind the one before.
    let before = joined[0].publish();
    drop(joined.remove(0));
    let again = join(0).unwrap();
    assert!(again.tables().generation > before);
    assert_eq!(writer.reader().snapshot().owners().count(), MAX_FEEDERS - 1);
}

/// What the first owner's mirror would be.
#[derive(Debug)]
struct Mirror(Reader);

impl Source for Mirror {
    fn reader(&self) -> Reader {
        self.0.clone()
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn samples(&self) -> Option<&Samples> {
        None
    }

    fn now_millis(&self) -> u64 {
        77
    }
}

#[test]
fn an_owner_is_a_source_with_the_names_of_the_first_one_s_links() {
    let mut writer = Writer::default();
    let mirror: Arc<dyn Source> = Arc::new(Mirror(writer.reader()));
    assert!(OfOwner::new(&mirror, "bgp").is_none());
    let mut feeder = writer.feeders().join("bgp", Limits::default()).unwrap();
    let source = OfOwner::new(&mirror, "bgp").unwrap();
    assert_eq!(source.status().phase, Phase::Loading);
    let [link, _, _, route, ..] = changes::one_of_each(1);
    writer.commit([link]).unwrap();
    feeder.begin();
    feeder.commit([route]).unwrap();
    assert_eq!(feeder.end(), 0);
    let tables = source.reader().snapshot();
    assert_eq!((tables.routes.len(), tables.links.len()), (1, 0));
    assert!(tables.named_links().get(1).is_some());
    assert_eq!(source.status().phase, Phase::Live);
    assert_eq!(
        (source.now_millis(), source.samples().is_none()),
        (77, true)
    );
    feeder.begin();
    assert_eq!(source.status().phase, Phase::Resyncing);
    assert_eq!(feeder.end(), 1);
    assert_eq!(source.status().resyncs, 1);
    drop(feeder);
    assert_eq!(source.status().phase, Phase::Ended("bgp left".to_owned()));
    assert!(OfOwner::new(&mirror, "bgp").is_none());
}

#[test]
fn a_resync_and_a_leaving_take_steps_that_do_not_grow_with_the_rows() {
    let touched = |rows: u32| {
        let mut writer = Writer::default();
        let mut feeder = writer.feeders().join("bgp", Limits::default()).unwrap();
        let put = |number| changes::one_of_each(number)[1].clone();
        feeder.commit((0..rows).map(put)).unwrap();
        let before = table::touched();
        feeder.begin();
        drop(feeder);
        writer.commit([put(1)]).unwrap();
        let after = table::touched();
        before.zip(after).map(|(before, after)| after - before)
    };
    let (few, many) = (touched(2), touched(200));
    assert!(
        few.zip(many).is_none_or(|(few, many)| many <= few + 4),
        "{few:?} {many:?}"
    );
}

#[test]
fn a_resync_sweeps_what_was_not_told_again_and_nothing_else() {
    let writer = Writer::default();
    let mut feeder = writer.feeders().join("bgp", Limits::default()).unwrap();
    let (first, second) = (changes::one_of_each(1), changes::one_of_each(2));
    feeder.commit(first.clone()).unwrap();
    feeder.commit(second).unwrap();
    feeder.begin();
    feeder.commit(first.clone()).unwrap();
    assert_eq!(feeder.tables().rows(), 16);
    assert_eq!(feeder.end(), 8);
    assert_eq!(feeder.tables().rows(), 8);
    feeder.begin();
    feeder.commit(first).unwrap();
    assert_eq!(feeder.end(), 0);
}
