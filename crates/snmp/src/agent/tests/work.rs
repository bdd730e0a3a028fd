//! What a request may cost, whatever it asks: the others wait so long.

use std::cell::Cell;

use super::*;
use crate::agent::OVERHEAD;
use crate::agent::run::{MOST_WORK, SEEK};
use crate::message::V2C;
use crate::oid::Name;
use crate::view::{Family, View};

/// Columns of rows below 1.3, the second of them 64-bit counters. Counts
/// what it is asked for.
struct Columns {
    rows: u32,
    /// Whether it says where a column ends.
    knows_ends: bool,
    seeks: Cell<u64>,
    steps: Cell<u64>,
}

impl Columns {
    fn new(rows: u32, knows_ends: bool) -> Self {
        Self {
            rows,
            knows_ends,
            seeks: Cell::new(0),
            steps: Cell::new(0),
        }
    }
}

impl Mib for Columns {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        self.seeks.set(self.seeks.get() + names.len() as u64);
        (0..names.len()).for_each(|at| sink(at, Value::Integer(1)));
    }

    fn walk(&self, after: &[u32], sink: &mut crate::mib::WalkSink<'_>) {
        self.seeks.set(self.seeks.get() + 1);
        let column = after.get(2).copied().unwrap_or(0).max(1);
        let row = after.get(3).map_or(0, |row| row.saturating_add(1));
        for column in column..=3 {
            let first = if Some(&column) == after.get(2) {
                row
            } else {
                0
            };
            for row in first..self.rows {
                self.steps.set(self.steps.get() + 1);
                let value = match column {
                    2 => Value::Counter64(1),
                    _ => Value::Integer(1),
                };
                if sink(&[1, 3, column, row], value).is_break() {
                    return;
                }
            }
        }
    }

    fn column_end(&self, name: &[u32]) -> Option<Name> {
        let end = [name[0], name[1], name[2], u32::MAX];
        self.knows_ends.then(|| end.into_iter().collect())
    }
}

fn bench(mib: Columns, view: View) -> Bench<Columns> {
    let mut config = fixture::config();
    config.max_message_bytes = 65_507;
    config.communities[0].view = view;
    Bench::over(mib, config)
}

/// What a request costs, which is all that it made the objects do.
fn cost(bench: &mut Bench<Columns>, version: i32, ask: &Ask<'_>) -> Response {
    let before = (bench.mib.seeks.get(), bench.mib.steps.get());
    let response = bench.ask(version, ask);
    let seeks = bench.mib.seeks.get() - before.0;
    let steps = bench.mib.steps.get() - before.1;
    let work = bench.agent.work();
    assert!(work <= MOST_WORK + OVERHEAD, "{work}");
    let done = seeks * u64::from(SEEK) + steps;
    assert!(
        done <= u64::from(work) + 2,
        "{seeks} seeks, {steps} steps, {work}"
    );
    response
}

#[test]
fn whatever_is_asked_costs_no_more_than_its_share() {
    let row: &[u32] = &[1, 3, 1, 5];
    let many = vec![row; 900];
    let asks = [
        Ask::bulk(0, i32::MAX, &[&[1, 3]]),
        Ask::bulk(0, i32::MAX, &[&[1, 3, 1], &[1, 3, 2], &[1, 3, 3]]),
        Ask::bulk(0, i32::MAX, &many),
        Ask::bulk(900, 1, &many),
        Ask::of(PduKind::GetNext, &many),
        Ask::of(PduKind::Get, &many),
    ];
    for ask in &asks {
        let mut bench = bench(Columns::new(1_000_000, false), View::all());
        let response = cost(&mut bench, V2C, ask);
        assert_eq!(response.status, 0, "{ask:?}");
        assert!(!response.bindings.is_empty());
    }
    // More names than that are too many.
    let many = vec![row; 2_000];
    let mut bench = bench(Columns::new(10, false), View::all());
    let response = cost(&mut bench, V2C, &Ask::of(PduKind::GetNext, &many));
    assert_eq!(response.status, ErrorStatus::TooBig as i32);
}

#[test]
fn what_is_not_seen_costs_a_share_or_is_jumped_over() {
    let next = Ask::of(PduKind::GetNext, &[&[1, 3, 1, 999_999]]);
    // A column that v1 does not see.
    let mut passing = bench(Columns::new(1_000_000, false), View::all());
    let response = cost(&mut passing, V1, &next);
    assert_eq!(response.status, ErrorStatus::GenErr as i32);
    let mut jumping = bench(Columns::new(1_000_000, true), View::all());
    let response = cost(&mut jumping, V1, &next);
    assert_eq!(response.names(), [&[1, 3, 3, 0][..]]);
    assert!(jumping.mib.steps.get() < 10);
    // A view of nothing but holes.
    let hole = |row: u32| Family {
        subtree: crate::Oid::new(&[1, 3, 1, row]).expect("a name"),
        mask: vec![0xff],
        included: row == u32::MAX,
    };
    let all = Family {
        subtree: crate::Oid::new(&[1, 3]).expect("a name"),
        mask: vec![0xff],
        included: true,
    };
    let holes: Vec<Family> = (0..6_000).map(hole).chain([all]).collect();
    let mut holey = bench(Columns::new(6_000, false), View::new(&holes));
    let response = cost(&mut holey, V2C, &Ask::bulk(0, 10, &[&[1, 3]]));
    assert_eq!(response.status, ErrorStatus::GenErr as i32);
}

/// An answer that is cut short is gone on from: a walk sees all.
#[test]
fn a_walk_in_bulk_sees_every_row() {
    let mut bench = bench(Columns::new(10_000, false), View::all());
    let mut after = vec![1, 3, 1];
    let mut seen = 0;
    loop {
        let response = cost(&mut bench, V2C, &Ask::bulk(0, i32::MAX, &[&after]));
        let (name, value) = response.bindings.last().expect("a binding");
        seen += response.bindings.len();
        if *value == Owned::Nothing(tag::END_OF_MIB_VIEW) {
            break;
        }
        after.clone_from(name);
    }
    assert_eq!(seen, 3 * 10_000 + 1);
}

/// What is not there yet is not counted, and asked again from the start.
#[test]
fn a_request_that_is_put_off_leaves_nothing_behind() {
    struct Waiting<'a>(DefaultContext<'a, Objects>, Cell<bool>);
    impl Contexts for Waiting<'_> {
        fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
            self.0.context(name)
        }
        fn is_waiting(&self) -> bool {
            self.1.get()
        }
    }
    let objects = fixture::objects();
    let contexts = Waiting(DefaultContext(&objects), Cell::new(true));
    let mut agent = Agent::new(fixture::config()).expect("a sound configuration");
    let datagram = Ask::of(PduKind::GetNext, &[&[1, 3]]).datagram(V2C, b"public");
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    let mut ask = |agent: &mut Agent| agent.answer(&datagram, ALLOWED, 0, &contexts, &mut out);
    assert_eq!(ask(&mut agent), Outcome::PutOff);
    assert_eq!(*agent.counters(), Counters::default());
    contexts.1.set(false);
    assert!(matches!(ask(&mut agent), Outcome::Answered(_)));
    assert_eq!(agent.counters().snmp.in_pkts, 1);
}
