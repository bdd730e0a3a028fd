//! GetBulk beside the obvious way: one successor after the other, row by
//! row, each encoded to see whether it fits.

use proptest::prelude::*;

use super::*;
use crate::message::V2C;
use crate::view::{Family, View};

/// RFC 3416 §4.2.3 as it is written, up to a number of bytes.
fn oracle(mib: &dyn Mib, view: &View, ask: &Ask<'_>, room: usize) -> Vec<(Vec<u32>, Owned)> {
    let seen = |after: &[u32]| {
        let mut after = after.to_vec();
        loop {
            let next = successor(mib, &after)?;
            if view.contains(&next.0) {
                return Some(next);
            }
            after = next.0;
        }
    };
    let mut bindings: Vec<(Vec<u32>, Owned)> = Vec::new();
    let mut left = room;
    let mut push = |binding: (Vec<u32>, Owned), bindings: &mut Vec<_>| {
        let len = len(&binding);
        let fits = len <= left;
        if fits {
            left -= len;
            bindings.push(binding);
        }
        fits
    };
    let end = |name: &[u32]| (name.to_vec(), Owned::Nothing(tag::END_OF_MIB_VIEW));
    let non_repeaters = (ask.first.max(0) as usize).min(ask.names.len());
    let (once, repeated) = ask.names.split_at(non_repeaters);
    for name in once {
        let binding = seen(name).unwrap_or_else(|| end(name));
        if !push(binding, &mut bindings) {
            return bindings;
        }
    }
    let mut row: Vec<Vec<u32>> = repeated.iter().map(|name| name.to_vec()).collect();
    for _ in 0..ask.second.max(0) {
        let mut ended = true;
        for name in &mut row {
            let binding = seen(name).unwrap_or_else(|| end(name));
            ended &= binding.1 == Owned::Nothing(tag::END_OF_MIB_VIEW);
            name.clone_from(&binding.0);
            if !push(binding, &mut bindings) {
                return bindings;
            }
        }
        if ended {
            break;
        }
    }
    bindings
}

/// Bytes of a binding.
fn len((name, value): &(Vec<u32>, Owned)) -> usize {
    let mut buffer = vec![0; ANSWER_BUFFER_BYTES];
    let mut out = Writer::new(&mut buffer);
    let value = match value {
        Owned::Bytes(tag::OCTET_STRING, bytes) => Value::OctetString(bytes),
        Owned::Bytes(tag::OPAQUE, bytes) => Value::Opaque(bytes),
        Owned::Bytes(_, _) => Value::IpAddress([0; 4]),
        Owned::Name(name) => Value::ObjectIdentifier(name),
        Owned::Number(tag::INTEGER, number) => Value::Integer(*number as i32),
        Owned::Number(_, number) => Value::Counter64(*number as u64),
        Owned::Nothing(_) => Value::Null,
    };
    out.binding(name, &value).expect("room");
    out.len()
}

/// Bytes of an answer but its bindings, its three long lengths included.
const AROUND: usize = 4 + 3 + 8 + 4 + 3 + 3 + 3 + 4;

fn check(objects: Objects, families: &[Family], ask: &Ask<'_>, max_bytes: usize) {
    let mut config = fixture::config();
    config.max_message_bytes = max_bytes;
    let view = View::new(families);
    config.communities[0].view = view.clone();
    let mut bench = Bench::over(objects, config);
    let response = bench.ask(V2C, ask);
    let expected = oracle(&bench.mib, &view, ask, max_bytes - AROUND);
    if expected.is_empty() && response.status != 0 {
        assert_eq!(response.status, ErrorStatus::TooBig as i32);
    } else {
        let same = response.bindings.iter().zip(&expected);
        let same = same
            .take_while(|(found, expected)| found == expected)
            .count();
        let found = response.bindings.len();
        assert!(
            found == same && expected.len() == same,
            "{same} of {found} found and of {} expected are the same",
            expected.len()
        );
    }
}

fn name() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..4u32, 1..5).prop_map(|tail| [&[1, 3][..], &tail].concat())
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<i32>().prop_map(Value::Integer),
        any::<u64>().prop_map(Value::Counter64),
        any::<u32>().prop_map(Value::Gauge32),
        (0..200usize).prop_map(|len| Value::OctetString(&[7; 200][..len])),
    ]
}

fn family() -> impl Strategy<Value = Family> {
    (name(), any::<u8>(), any::<bool>()).prop_map(|(subtree, mask, included)| Family {
        subtree: crate::Oid::new(&subtree).expect("short"),
        mask: vec![mask | 0xc0],
        included,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn as_the_rfc_says(
        objects in prop::collection::btree_map(name(), value(), 0..120),
        names in prop::collection::vec(name(), 0..6),
        non_repeaters in -1..4i32,
        repetitions in prop_oneof![-1..20i32, Just(i32::MAX)],
        max_bytes in 484..3_000usize,
        families in prop::collection::vec(family(), 0..4),
        whole in any::<bool>(),
    ) {
        let names: Vec<&[u32]> = names.iter().map(|name| &name[..]).collect();
        let ask = Ask::bulk(non_repeaters, repetitions, &names);
        let mut families = families;
        families.push(Family {
            subtree: "1.3".parse().expect("a name"),
            mask: Vec::new(),
            included: whole,
        });
        check(Objects(objects), &families, &ask, max_bytes);
    }
}

#[test]
fn a_whole_table_by_columns() {
    let columns: Vec<Vec<u32>> = (1..=4)
        .map(|column| [&[1, 3, 6, 1, 2, 1, 1, 10, 1][..], &[column]].concat())
        .collect();
    let names: Vec<&[u32]> = columns.iter().map(|name| &name[..]).collect();
    let all = Family {
        subtree: crate::Oid::default(),
        mask: Vec::new(),
        included: true,
    };
    for max_bytes in [484, 1_400, 65_507] {
        for many in 1..=4 {
            let ask = Ask::bulk(0, i32::MAX, &names[..many]);
            check(
                fixture::objects(),
                std::slice::from_ref(&all),
                &ask,
                max_bytes,
            );
        }
    }
}

/// Rows without end: even ones are 64-bit counters.
struct Endless(std::cell::Cell<usize>);

impl Mib for Endless {
    fn get(&self, _: &[&[u32]], _: &mut dyn FnMut(usize, Value<'_>)) {}

    fn walk(&self, after: &[u32], sink: &mut crate::mib::WalkSink<'_>) {
        let from = after.get(2).map_or(0, |last| last.saturating_add(1));
        for last in from..10_000_000 {
            self.0.set(self.0.get() + 1);
            let value = match last {
                5_000_000.. => Value::Counter64(1),
                _ => Value::Integer(1),
            };
            if sink(&[1, 3, last], value).is_break() {
                break;
            }
        }
    }
}

fn endless(families: &[(&str, u8, bool)]) -> Bench<Endless> {
    let families: Vec<Family> = families
        .iter()
        .map(|(subtree, mask, included)| Family {
            subtree: subtree.parse().expect("a name"),
            mask: vec![*mask],
            included: *included,
        })
        .collect();
    let mut config = fixture::config();
    config.communities[0].view = View::new(&families);
    Bench::over(Endless(Default::default()), config)
}

/// A hole of the view is jumped over and not tried row by row.
#[test]
fn a_hole_is_one_seek() {
    let mut bench = endless(&[("1.3.4000000", 0xff, true)]);
    let response = bench.ask(V2C, &Ask::bulk(0, 10, &[&[1, 3]]));
    let end = (vec![1, 3, 4_000_000], Owned::Nothing(tag::END_OF_MIB_VIEW));
    assert_eq!(response.bindings.last(), Some(&end));
    assert_eq!(response.bindings.len(), 2);
    assert!(bench.mib.0.get() < 10, "{} rows", bench.mib.0.get());
}

/// What is passed over in vain is bounded for a whole request.
#[test]
fn nobody_is_held_up() {
    let names: Vec<&[u32]> = vec![&[1, 3, 5_000_000]; 80];
    let mut bench = endless(&[("1.3", 0xff, true)]);
    let response = bench.ask(V1, &Ask::of(PduKind::GetNext, &names));
    let status = ErrorStatus::GenErr as i32;
    assert_eq!((response.status, response.index), (status, 1));
    assert!(bench.mib.0.get() < 300_000, "{} rows", bench.mib.0.get());
    // A view in which no row is: its holes are all there is.
    let holes: Vec<(String, bool)> = (0..6_000)
        .map(|row| (format!("1.3.{row}"), false))
        .chain([("1.3".to_owned(), true)])
        .collect();
    let holes: Vec<_> = holes
        .iter()
        .map(|(name, seen)| (&name[..], 0xff, *seen))
        .collect();
    for names in [&[&[1, 3][..]][..], &[&[1, 3], &[1, 3]]] {
        let mut bench = endless(&holes);
        let response = bench.ask(V2C, &Ask::bulk(0, 10, names));
        assert_eq!((response.status, response.index), (status, 1));
        assert!(bench.mib.0.get() < 10_000, "{} rows", bench.mib.0.get());
    }
}
