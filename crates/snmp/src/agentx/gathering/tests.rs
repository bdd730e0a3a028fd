use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::agentx::{Config, Event, Master, MasterConfig, Now, Registration, Session};
use crate::mib::DefaultContext;
use crate::oid::Oid;

/// The obvious agent: a map.
#[derive(Clone, Debug, Default)]
struct Map(BTreeMap<Vec<u32>, u32>);

impl Mib for Map {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        for (at, name) in names.iter().enumerate() {
            let value = self.0.get(*name);
            let value = value.map_or(Value::NoSuchInstance, |v| Value::Gauge32(*v));
            sink(at, value);
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        for (name, value) in self.0.range::<[u32], _>(behind) {
            if sink(name, Value::Gauge32(*value)).is_break() {
                return;
            }
        }
    }

    fn column_end(&self, name: &[u32]) -> Option<Name> {
        let [table, column, ..] = *name else {
            return None;
        };
        Some([table, column, u32::MAX].into_iter().collect())
    }
}

const NOW: Now = Now {
    millis: 0,
    up_time: 0,
};

/// A subagent of ours, as a real one, and what it has.
struct Subagent {
    session: Session,
    connection: u32,
    map: Map,
    subtrees: Vec<Vec<u32>>,
    priority: u8,
}

/// A master with subagents, and the agent's own objects.
struct World {
    own: Map,
    own_subtrees: &'static [&'static [u32]],
    master: Master,
    subagents: Vec<Subagent>,
}

impl World {
    fn new(own: Map, own_subtrees: &'static [&'static [u32]]) -> Self {
        let config = MasterConfig {
            timeout_millis: 1_000,
            own: own_subtrees.to_vec(),
        };
        Self {
            own,
            own_subtrees,
            master: Master::new(config),
            subagents: Vec::new(),
        }
    }

    fn attach(&mut self, map: Map, subtrees: Vec<Vec<u32>>, priority: u8) {
        let registrations = subtrees.iter().map(|subtree| Registration {
            context: Vec::new(),
            subtree: Oid::new(subtree).unwrap(),
        });
        let mut session = Session::new(Config {
            id: Oid::default(),
            description: String::new(),
            priority,
            registrations: registrations.collect(),
            patience_millis: 1_000,
            ping_millis: 500,
        });
        session.connected(0);
        let connection = self.master.connected();
        self.subagents.push(Subagent {
            session,
            connection,
            map,
            subtrees,
            priority,
        });
        self.carry();
    }

    /// Carries octets between all until nobody has any.
    fn carry(&mut self) {
        loop {
            let mut is_quiet = true;
            for one in &mut self.subagents {
                let octets = one.session.to_write().to_vec();
                one.session.written(octets.len());
                self.master.received(one.connection, &octets, NOW).unwrap();
                let answers = self.master.to_write(one.connection).to_vec();
                self.master.written(one.connection, answers.len());
                one.session.received(&answers, 0);
                one.session.work(&DefaultContext(&one.map), 0).unwrap();
                is_quiet &= octets.is_empty() && answers.is_empty();
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Who is to answer for a name, by looking at all: 0 is the agent.
    fn owner(&self, name: &[u32]) -> usize {
        let own = self.own_subtrees.iter().map(|own| (own.to_vec(), 100, 0));
        let theirs = self.subagents.iter().zip(1..).flat_map(|(one, number)| {
            let subtrees = one.subtrees.iter();
            subtrees.map(move |subtree| (subtree.clone(), one.priority, number))
        });
        let all = own.chain(theirs);
        let of_name = all.filter(|(subtree, ..)| name.starts_with(subtree));
        let best = of_name.min_by_key(|(subtree, priority, number)| {
            (std::cmp::Reverse(subtree.len()), *priority, *number)
        });
        best.map_or(0, |(.., number)| number)
    }

    /// All that is to be seen.
    fn expected(&self) -> Vec<(Vec<u32>, u32)> {
        let maps = std::iter::once(&self.own).chain(self.subagents.iter().map(|one| &one.map));
        let mut all: Vec<(Vec<u32>, u32)> = maps
            .zip(0..)
            .flat_map(|(map, number)| {
                let rows = map.0.iter();
                rows.filter(move |(name, _)| self.owner(name) == number)
                    .map(|(name, value)| (name.clone(), *value))
            })
            .collect();
        all.sort();
        all
    }

    /// What `task` gives of the gathered objects once it waits for nothing.
    fn gathered<T>(&mut self, task: impl Fn(&dyn Mib) -> T) -> (T, u32) {
        let (done, known) = self.gathered_from(Known::default(), task);
        (done, known.rounds())
    }

    /// The same where something is known already; and what is known then.
    fn gathered_from<T>(&mut self, mut known: Known, task: impl Fn(&dyn Mib) -> T) -> (T, Known) {
        let dispatch = self.master.dispatch();
        loop {
            let own = self.own.clone();
            let own = DefaultContext(&own);
            let gathering = Gathering::new(&own, &dispatch, &known, false);
            let done = task(gathering.context(b"").unwrap());
            let missing = gathering.into_missing();
            if missing.is_empty() {
                return (done, known);
            }
            known.next_round();
            for (token, question) in missing.iter().enumerate() {
                self.master.ask(token as u64, question.clone(), 0);
            }
            self.carry();
            for event in self.master.events() {
                if let Event::Answered { token, answer } = event {
                    assert_ne!(answer, Answer::Failed);
                    known.add(&missing[token as usize], answer, 0);
                }
            }
        }
    }

    fn walk(&mut self, after: &[u32], most: usize) -> (Vec<(Vec<u32>, u32)>, u32) {
        let (rows, known) = self.walk_from(Known::default(), after, most);
        (rows, known.rounds())
    }

    fn walk_from(
        &mut self,
        known: Known,
        after: &[u32],
        most: usize,
    ) -> (Vec<(Vec<u32>, u32)>, Known) {
        self.gathered_from(known, |mib| {
            let mut rows = Vec::new();
            mib.expect(most);
            mib.walk(after, &mut |name, value| {
                let Value::Gauge32(value) = value else {
                    panic!("{value:?}");
                };
                rows.push((name.to_vec(), value));
                match rows.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            rows
        })
    }
}

const OWN: &[&[u32]] = &[&[1, 1], &[1, 2, 2], &[3]];

fn name() -> impl Strategy<Value = Vec<u32>> {
    vec(1..=3_u32, 1..5)
}

fn map() -> impl Strategy<Value = Map> {
    btree_map(name(), any::<u32>(), 0..40).prop_map(Map)
}

fn subagent() -> impl Strategy<Value = (Map, Vec<Vec<u32>>, u8)> {
    let subtrees = vec(vec(1..=3_u32, 1..4), 0..5);
    (map(), subtrees, 99..=101_u8)
}

proptest! {
    #[test]
    fn a_walk_is_that_of_all_tables_as_one(
        own in map(),
        subagents in vec(subagent(), 0..4),
        after in vec(0..=4_u32, 0..5),
        most in 1..50_usize,
    ) {
        let mut world = World::new(own, OWN);
        for (map, mut subtrees, priority) in subagents {
            subtrees.sort();
            subtrees.dedup();
            // One priority for each subtree is one's alone.
            let taken = |subtree: &Vec<u32>| world.subagents.iter().any(|other| {
                other.priority == priority && other.subtrees.contains(subtree)
            });
            subtrees.retain(|subtree| !taken(subtree));
            world.attach(map, subtrees, priority);
        }
        if world.master.dispatch().is_empty() {
            return Ok(());
        }
        let expected = world.expected();
        let behind = expected.iter().filter(|(name, _)| *name > after);
        let behind: Vec<_> = behind.take(most).cloned().collect();
        let (walked, rounds) = world.walk(&after, most);
        prop_assert_eq!(walked, behind);
        prop_assert!(rounds <= 32, "{} rounds", rounds);
        // In pieces, each from what is left over of the one before.
        let (mut at, mut pieces, mut known) = (after.clone(), Vec::new(), Known::default());
        loop {
            let (piece, then) = world.walk_from(known, &at, most);
            let Some((last, _)) = piece.last() else { break };
            at = last.clone();
            pieces.extend(piece);
            known = then.left_over().unwrap_or_default();
        }
        let behind = expected.iter().filter(|(name, _)| *name > after);
        prop_assert_eq!(pieces, behind.cloned().collect::<Vec<_>>());
        let (got, _) = world.gathered(|mib| {
            let mut value = None;
            mib.get(&[&after], &mut |_, found| {
                value = match found {
                    Value::Gauge32(number) => Some(number),
                    _ => None,
                };
            });
            value
        });
        let there = expected.iter().find(|(name, _)| *name == after);
        prop_assert_eq!(got, there.map(|(_, value)| *value));
    }
}

#[test]
fn many_rows_come_in_few_questions() {
    let rows = (0..2_000).map(|n| (vec![2, 1, n], n)).collect();
    let mut world = World::new(Map::default(), OWN);
    world.attach(Map(rows), vec![vec![2]], 127);
    let (walked, rounds) = world.walk(&[], 1_800);
    assert_eq!(walked.len(), 1_800);
    assert!(rounds <= 10, "{rounds}");
    // Who wants ten gets ten, asked for at once.
    assert_eq!(world.walk(&[2, 1, 5], 10).1, 1);
    let counters = world.master.sessions(0).next().unwrap().counters;
    assert!(counters.rows <= 1_800 + 256 + 10, "{}", counters.rows);
}

#[test]
fn who_walks_on_finds_what_is_left_over_for_a_second() {
    let rows = (0..2_000).map(|n| (vec![2, 1, n], n)).collect();
    let mut world = World::new(Map::default(), OWN);
    world.attach(Map(rows), vec![vec![2]], 127);
    let asked = |world: &World| world.master.counters().asked;
    let (_, known) = world.walk_from(Known::default(), &[2, 1], 10);
    assert_eq!((known.rounds(), asked(&world)), (1, 1));
    // The second asks for more than it wants, and those behind it for none.
    let mut known = known.left_over().unwrap();
    let mut at = 9;
    for _ in 0..25 {
        let (rows, then) = world.walk_from(known, &[2, 1, at], 10);
        let expected: Vec<u32> = (at + 1..=at + 10).collect();
        assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), expected);
        at += 10;
        known = then.left_over().unwrap();
    }
    assert_eq!(asked(&world), 2);
    // Somewhere else nothing is left over, and later it is too old.
    let (rows, then) = world.walk_from(known, &[2, 1, 999], 10);
    assert_eq!((rows.len(), rows[0].1, asked(&world)), (10, 1_000, 3));
    let mut known = then.left_over().unwrap();
    assert!(known.forget_old(999) && !known.forget_old(1_000));
    assert_eq!(known.len_bytes(), 0);
    // Of single values nothing is left.
    let got = world.gathered_from(Known::default(), |mib| {
        mib.get(&[&[2, 1, 5]], &mut |_, _| {});
    });
    assert!(got.1.left_over().is_none());
}

#[test]
fn what_is_left_over_is_of_one_context_and_of_its_session() {
    let rows = |from: u32| Map((0..100).map(|n| (vec![2, 1, n], from + n)).collect());
    let mut world = World::new(Map::default(), OWN);
    world.attach(rows(0), vec![vec![2]], 127);
    let (_, known) = world.walk_from(Known::default(), &[2, 1], 10);
    let mut known = known.left_over().unwrap();
    known.context = Some(b"another".to_vec());
    let (rows, known) = world.walk_from(known, &[2, 1, 3], 3);
    assert_eq!((rows[0].1, known.rounds()), (4, 1));
}

#[test]
fn a_column_ends_before_what_a_subagent_has_of_it() {
    let mut world = World::new(Map::default(), OWN);
    world.attach(Map::default(), vec![vec![3, 1, 5]], 127);
    let end = |world: &mut World, name: &[u32]| {
        let told = world.gathered(|mib| mib.column_end(name)).0;
        told.map(|end| end.to_vec())
    };
    assert_eq!(end(&mut world, &[3, 2, 1]), Some(vec![3, 2, u32::MAX]));
    assert_eq!(end(&mut world, &[3, 1, 6]), Some(vec![3, 1, u32::MAX]));
    assert_eq!(end(&mut world, &[3, 1, 5, 1]), None);
    let nearer = end(&mut world, &[3, 1, 2, 7]).unwrap();
    assert_eq!(nearer.len(), oid::MAX_SUB_IDS);
    assert!(nearer.starts_with(&[3, 1, 4, u32::MAX]));
}

#[test]
fn what_is_known_for_a_request_is_bounded() {
    let question = |number: u32| Question {
        session: 1,
        context: Vec::new(),
        timeout_millis: 1_000,
        what: What::Get([2, number].into()),
    };
    let answer = || Answer::Rows {
        rows: vec![Row {
            name: [2].into(),
            value: OwnedValue::OctetString(vec![0; MAX_KNOWN_BYTES].into()),
        }],
        ended: true,
    };
    let mut known = Known::default();
    (0..3).for_each(|number| known.add(&question(number), answer(), 0));
    assert!(known.len_bytes() < MAX_KNOWN_BYTES + 1_000);
    let there = known.values.values().filter(|value| value.is_some());
    assert_eq!((known.values.len(), there.count()), (3, 1));
}

#[test]
fn what_cannot_be_told_is_said_so() {
    let mut world = World::new(Map(BTreeMap::from([(vec![1, 1], 1)])), OWN);
    world.attach(Map(BTreeMap::from([(vec![2, 1], 2)])), vec![vec![2]], 127);
    let dispatch = world.master.dispatch();
    let own = world.own.clone();
    let own = DefaultContext(&own);
    let mut known = Known::default();
    let walk = |known: &Known, is_last| {
        let gathering = Gathering::new(&own, &dispatch, known, is_last);
        let mib = gathering.context(b"").unwrap();
        let mut rows = 0;
        mib.walk(&[], &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        });
        let is_short = mib.fell_short();
        assert!(!mib.fell_short());
        (rows, is_short, gathering.into_missing())
    };
    // What is missing is asked for, but for the last time.
    let (rows, is_short, missing) = walk(&known, false);
    assert_eq!((rows, is_short, missing.len()), (1, true, 1));
    let (rows, is_short, none) = walk(&known, true);
    assert_eq!((rows, is_short, none.len()), (1, true, 0));
    known.add(&missing[0], Answer::Failed, 0);
    let (rows, is_short, none) = walk(&known, false);
    assert_eq!((rows, is_short, none.len()), (1, true, 0));
}
