use std::net::IpAddr;

use table::row::neighbour::state;
use table::{Change, Limits, Link, LinkLayerAddress, Neighbour, Writer};
use view::{Filter, Object, Output};

use super::*;
use crate::budget::Budget;
use crate::source::Source;

fn link(index: u32, name: &str) -> Change {
    Change::PutLink(Link {
        index,
        name: name.into(),
        ..Link::default()
    })
}

fn neighbour(link: u32, last: u8) -> Neighbour {
    Neighbour {
        link,
        address: IpAddr::from([192, 0, 2, last]),
        proxy: false,
        lladdr: LinkLayerAddress::NONE,
        state: state::PERMANENT,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

fn put(link: u32, last: u8) -> Change {
    Change::PutNeighbour(neighbour(link, last))
}

fn about(object: Object, dev: Option<&str>) -> Question {
    Question {
        object,
        filter: Filter {
            dev: dev.map(str::to_owned),
            ..Filter::default()
        },
        output: Output::default(),
    }
}

/// Room for all that a feed keeps.
fn lease() -> Lease {
    let budget = Budget::new(4 * MAX_BYTES);
    budget.lease(Source::Watchers, 0).unwrap()
}

/// A writer with two links, and its feed.
fn feed() -> (Writer, Feed) {
    let mut writer = Writer::new(Limits::default());
    writer.commit([link(1, "a"), link(2, "b")]).unwrap();
    let feed = Feed::new(writer.reader(), None, Arc::default(), lease());
    (writer, feed)
}

fn take(feed: &mut Feed, seen: u64, questions: &[Question], room: usize) -> (Taken, String) {
    let mut wanted = feed.watches(questions).unwrap();
    let mut out = Vec::new();
    let taken = feed.take(seen, questions, &mut wanted, "s", room, &mut out);
    (taken, String::from_utf8(out).unwrap())
}

#[test]
fn the_last_event_of_a_generation_has_its_id() {
    let (mut writer, mut feed) = feed();
    let seen = feed.latest();
    writer.commit([put(1, 1), put(2, 2), put(1, 3)]).unwrap();
    feed.catch_up();
    let of_a = [about(Object::Neigh, Some("a"))];
    let (taken, out) = take(&mut feed, seen, &of_a, 1 << 20);
    assert_eq!(taken, Taken::UpTo(seen + 1));
    let events: Vec<&str> = out.trim_end().split("\n\n").collect();
    assert_eq!(events.len(), 2, "{out}");
    assert!(events[0].starts_with("event: added\ndata: {\"event\":\"added\""));
    let id = format!("id: s-{}\nevent: added\ndata: {{", seen + 1);
    assert!(events[1].starts_with(&id), "{out}");
    assert!(events[1].contains("192.0.2.3"));
}

#[test]
fn a_stream_takes_whole_generations_as_far_as_there_is_room() {
    let (mut writer, mut feed) = feed();
    let seen = feed.latest();
    for last in 0..10 {
        writer.commit([put(1, last)]).unwrap();
    }
    feed.catch_up();
    let all = [about(Object::Neigh, None)];
    let (mut at, mut events) = (seen, 0);
    while at < feed.latest() {
        let (taken, out) = take(&mut feed, at, &all, 150);
        let Taken::UpTo(next) = taken else {
            panic!("{taken:?}")
        };
        assert!(next > at);
        events += out.matches("id: ").count();
        at = next;
    }
    assert_eq!(events, 10);
}

#[test]
fn what_happened_before_anybody_watched_is_told_if_it_is_still_known() {
    let (mut writer, _) = feed();
    let seen = writer.tables().generation.0;
    writer.commit([put(1, 1)]).unwrap();
    writer.commit([put(1, 2)]).unwrap();
    let mut feed = Feed::new(writer.reader(), None, Arc::default(), lease());
    writer.commit([put(1, 3)]).unwrap();
    feed.catch_up();
    let all = [about(Object::Neigh, None)];
    assert_eq!(take(&mut feed, seen, &all, 99).0, Taken::FellBehind);
    feed.reach_back(seen);
    let (taken, out) = take(&mut feed, seen, &all, 1 << 20);
    assert_eq!(taken, Taken::UpTo(feed.latest()));
    for last in 1..=3 {
        assert_eq!(
            out.matches(&format!("192.0.2.{last}\"")).count(),
            1,
            "{out}"
        );
    }
}

#[test]
fn who_is_too_far_behind_or_ahead_is_told_so() {
    let (mut writer, mut feed) = feed();
    let all = [about(Object::Neigh, None)];
    let seen = feed.latest();
    // Too large a batch is kept for nobody.
    writer.without_events();
    writer.commit([put(1, 1)]).unwrap();
    feed.catch_up();
    assert_eq!(take(&mut feed, seen, &all, 99).0, Taken::FellBehind);
    let ahead = feed.latest() + 1;
    assert_eq!(take(&mut feed, ahead, &all, 99).0, Taken::FellBehind);
    let latest = feed.latest();
    let (taken, out) = take(&mut feed, latest, &all, 99);
    assert_eq!((taken, out.as_str()), (Taken::UpTo(latest), ""));
}

#[test]
fn what_is_kept_is_bounded() {
    let (mut writer, mut feed) = feed();
    for round in 0..200_u32 {
        let changes = (0..2_000_u32).map(|n| {
            Change::PutNeighbour(Neighbour {
                address: IpAddr::from((0x0a00_0000 + n).to_be_bytes()),
                state: if round % 2 == 0 {
                    state::STALE
                } else {
                    state::REACHABLE
                },
                ..neighbour(1, 0)
            })
        });
        writer.commit(changes).unwrap();
        feed.catch_up();
        assert!(feed.bytes <= MAX_BYTES + (1 << 20));
    }
    assert!(feed.since > 1);
    let counted: usize = feed.batches.iter().map(Batch::bytes).sum();
    assert_eq!(counted, feed.bytes);
}

#[test]
fn a_filter_knows_its_link_again_under_another_number() {
    let (mut writer, mut feed) = feed();
    let of_a = [about(Object::Neigh, Some("a"))];
    let mut wanted = feed.watches(&of_a).unwrap();
    let seen = feed.latest();
    writer
        .commit([Change::DeleteLink(1), link(7, "a"), put(7, 1), put(2, 2)])
        .unwrap();
    feed.catch_up();
    let mut out = Vec::new();
    feed.take(seen, &of_a, &mut wanted, "s", 1 << 20, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("192.0.2.1\"") && !out.contains("192.0.2.2\""),
        "{out}"
    );
}

/// A next-hop object of a feeder.
fn nexthop(id: u32) -> Change {
    Change::PutNexthop(table::Nexthop {
        id,
        blackhole: true,
        ..table::Nexthop::default()
    })
}

#[test]
fn a_feeder_that_joins_again_under_its_name_is_followed_and_nobody_misses_that_it_left() {
    let writer = Writer::default();
    let join = || writer.feeders().join("bgp", Limits::default()).unwrap();
    let mut feeder = join();
    let mut feed = Feed::new(
        writer.reader(),
        Some("bgp".to_owned()),
        Arc::default(),
        lease(),
    );
    let questions = [about(Object::Nexthop, None)];
    let seen = feed.latest();
    feeder.commit([nexthop(1)]).unwrap();
    feed.catch_up();
    let (taken, out) = take(&mut feed, seen, &questions, 1 << 20);
    assert!(
        taken == Taken::UpTo(seen + 1) && out.contains("\"id\":1"),
        "{out}"
    );
    drop(feeder);
    feed.catch_up();
    let (taken, _) = take(&mut feed, seen + 1, &questions, 1 << 20);
    assert_eq!(taken, Taken::FellBehind);
    let mut feeder = join();
    feed.catch_up();
    let seen = feed.latest();
    feeder.commit([nexthop(7)]).unwrap();
    feed.catch_up();
    let (taken, out) = take(&mut feed, seen, &questions, 1 << 20);
    assert!(
        matches!(taken, Taken::UpTo(_)) && out.contains("\"id\":7"),
        "{out}"
    );
}
