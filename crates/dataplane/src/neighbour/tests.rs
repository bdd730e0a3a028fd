use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lab::Random;

use super::*;

fn via(number: u32) -> Adjacency {
    let [a, b, c, d] = number.to_be_bytes();
    Adjacency::of_port(Kind::Rewrite, number as u16, 1_500)
        .with_addresses([2, 0, a, b, c, d], [d, c, b, a, 0, 2])
        .with_vlan(number as u16)
}

/// An adjacency of which every part says the same number.
fn number_of(adjacency: Adjacency) -> u32 {
    let addresses = adjacency.addresses();
    let number = u32::from_be_bytes([addresses[2], addresses[3], addresses[4], addresses[5]]);
    assert_eq!(adjacency, via(number), "two adjacencies in one");
    number
}

fn small() -> (Arc<Domain>, Writer) {
    let domain = Domain::new(4);
    let limits = Limits {
        neighbours: 256,
        groups: 4,
    };
    let writer = Writer::new(&domain, limits);
    (domain, writer)
}

fn ask(table: &Table, section: &Section<'_>, key: Key) -> Option<u32> {
    let place = table.place(key);
    let spot = table.spot(section, place);
    let found = table.neighbour_at(section, key, place, spot).map(number_of);
    let one_by_one = table.neighbour(section, key, place).map(number_of);
    // A writer may have been in between.
    assert!(one_by_one == found || one_by_one.is_none() || found.is_none() || one_by_one > found);
    found
}

#[test]
fn neighbours_are_those_of_a_map_under_churn() {
    let (domain, mut writer) = small();
    let table = Arc::clone(writer.table());
    let mut reader = domain.register().unwrap();
    let mut oracle: HashMap<Key, u32> = HashMap::new();
    let mut random = Random::new(7);
    let key_of = |random: &mut Random| {
        let port = random.below(3) as u16;
        match random.below(2) {
            0 => Key::v4(port, 0x0a00_0000 + random.below(150) as u32),
            _ => Key::v6(port, 0xfe80 << 112 | random.below(150) as u128),
        }
    };
    for step in 0..60_000_u32 {
        let key = key_of(&mut random);
        if random.below(3) > 0 {
            match writer.put_neighbour(key, via(step)) {
                Ok(()) => {
                    oracle.insert(key, step);
                }
                Err(full) => {
                    // Some places wait for their grace.
                    assert!(oracle.len() > 150, "{full} with {}", oracle.len());
                    assert!(!oracle.contains_key(&key));
                }
            }
        } else {
            writer.remove_neighbour(key);
            oracle.remove(&key);
        }
        if step % 7 == 0 {
            while !writer.settle() {}
            let section = reader.enter();
            for _ in 0..20 {
                let key = key_of(&mut random);
                assert_eq!(ask(&table, &section, key), oracle.get(&key).copied());
            }
        }
    }
}

#[test]
fn another_one_with_the_same_tag_is_told_apart() {
    let (domain, mut writer) = small();
    let keys: Vec<Key> = (0..200).map(|at| Key::v4(1, at)).collect();
    for (key, number) in keys.iter().zip(0..) {
        writer.put_neighbour(*key, via(number)).unwrap();
    }
    writer.settle();
    let mut reader = domain.register().unwrap();
    let section = reader.enter();
    let table = writer.table();
    for (key, number) in keys.iter().zip(0..) {
        let place = table.place(*key);
        // The spot of another one, as an equal tag would give it.
        let other = table.spot(&section, table.place(keys[(number as usize + 1) % 200]));
        let found = table.neighbour_at(&section, *key, place, other);
        assert_eq!(found.map(number_of), Some(number));
        assert_eq!(
            table.neighbour_at(&section, *key, place, Spot::default()),
            None
        );
    }
}

#[test]
fn a_change_waits_for_a_reader_and_then_shows() {
    let (domain, mut writer) = small();
    let table = Arc::clone(writer.table());
    let hop = writer.add_next_hop(Key::default(), via(1)).unwrap();
    assert!(writer.settle());
    let mut reader = domain.register().unwrap();
    let mut second = domain.register().unwrap();
    let section = reader.enter();
    // The first change shows at once; the half it left may be in use.
    writer.set_next_hop(hop, via(2));
    writer.settle();
    assert_eq!(number_of(table.next_hop(&section, hop)), 2);
    for number in 3..10 {
        writer.set_next_hop(hop, via(number));
        assert!(!writer.settle());
        assert_eq!(number_of(table.next_hop(&section, hop)), 2);
    }
    drop(section);
    assert!(writer.settle());
    let section = second.enter();
    assert_eq!(number_of(table.next_hop(&section, hop)), 9);
}

#[test]
fn a_number_comes_back_only_when_no_reader_can_have_it() {
    let (domain, mut writer) = small();
    let mut reader = domain.register().unwrap();
    let hop = writer.add_next_hop(Key::default(), via(1)).unwrap();
    writer.settle();
    let section = reader.enter();
    writer.remove_next_hop(hop);
    assert!(!writer.settle());
    let other = writer.add_next_hop(Key::default(), via(2)).unwrap();
    assert_ne!(other, hop);
    assert_eq!(number_of(writer.table().next_hop(&section, hop)), 1);
    drop(section);
    while !writer.settle() {}
    assert_eq!(writer.add_next_hop(Key::default(), via(3)), Ok(hop));
}

#[test]
fn what_has_no_room_is_refused() {
    let (_, mut writer) = small();
    for number in 1..MAX_NEXT_HOPS {
        let hop = writer.add_next_hop(Key::default(), Adjacency::default());
        assert_eq!(hop, Ok(number as u16));
    }
    assert!(writer.add_next_hop(Key::default(), via(1)).is_err());
    let member = Member {
        next_hop: 1,
        weight: 1,
        identity: 1,
    };
    for number in 1..=4 {
        assert_eq!(writer.add_group(&[member]), Ok(number));
    }
    assert!(writer.add_group(&[member]).is_err());
}

#[test]
fn a_flow_finds_a_member_of_its_group() {
    let (domain, mut writer) = small();
    let member = |next_hop, weight| Member {
        next_hop,
        weight,
        identity: u64::from(next_hop),
    };
    let group = writer.add_group(&[member(5, 1), member(6, 3)]).unwrap();
    let mut reader = domain.register().unwrap();
    let section = reader.enter();
    let table = writer.table();
    let hashes = (0..=u16::MAX).map(|hash| u32::from(hash) << 16);
    let fives = hashes.filter(|&hash| table.member(&section, group, hash) == 5);
    assert_eq!(fives.count(), 1 << 14);
    assert_eq!(table.member(&section, 200, 0), 0);
}

#[test]
fn readers_never_see_two_adjacencies_in_one() {
    let (domain, mut writer) = small();
    let hop = writer.add_next_hop(Key::default(), via(1)).unwrap();
    let keys: Vec<Key> = (0..40).map(|at| Key::v4(1, at)).collect();
    writer.settle();
    let table = Arc::clone(writer.table());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (mut reader, table, keys, done) =
                (domain.register().unwrap(), &table, &keys, &done);
            scope.spawn(move || {
                let mut newest = 0;
                let mut online = reader.online();
                while !done.load(Ordering::Relaxed) {
                    let section = online.enter();
                    for key in keys {
                        ask(table, &section, *key);
                    }
                    let number = number_of(table.next_hop(&section, hop));
                    assert!(number >= newest, "back from {newest} to {number}");
                    newest = number;
                }
            });
        }
        let mut random = Random::new(3);
        for number in 2..20_000 {
            writer.set_next_hop(hop, via(number));
            let key = keys[random.below(40)];
            match random.below(3) {
                0 => writer.remove_neighbour(key),
                // Refused while too many places wait for their grace.
                _ => drop(writer.put_neighbour(key, via(number))),
            }
            writer.settle();
        }
        done.store(true, Ordering::Relaxed);
    });
}
