//! What zebra is told back of the routes that packets go by here, read as
//! it reads it.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod peer;

use fingerpost_feed as feed;

use feed::fpm::Frames;
use netlink::decode::{Decoded, Item, Operation, decode};
use netlink::message::messages;
use peer::{CAPTURED, Fed, MAIN, blackhole, by_id, bytes_of, gone, new, object, via};
use table::row::route::flag;

/// `NLM_F_REQUEST`, without which zebra passes a message over.
const REQUEST: u16 = 1;

/// The acknowledgements in a stream: prefix, metric, id of the next hop,
/// and whether packets go by the route.
fn read(bytes: &[u8]) -> Vec<(String, u32, Option<u32>, bool)> {
    let mut frames = Frames::default();
    frames.push(bytes);
    let mut all = Vec::new();
    while let Some(frame) = frames.next_frame().unwrap() {
        // zebra reads the first message of a frame alone.
        let mut in_frame = messages(frame.payload);
        let message = in_frame.next().unwrap().unwrap();
        assert!(in_frame.next().is_none());
        assert_eq!(message.flags & REQUEST, REQUEST);
        let Decoded::Announcement(told) = decode(&message, 0).unwrap() else {
            unreachable!()
        };
        assert_eq!(told.operation, Operation::New);
        let Item::Route(row) = told.item else {
            unreachable!()
        };
        assert_eq!(row.table, MAIN);
        let is_forwarded = match row.body.flags & (flag::OFFLOAD | flag::OFFLOAD_FAILED) {
            flag::OFFLOAD => true,
            flag::OFFLOAD_FAILED => false,
            other => unreachable!("{other}"),
        };
        all.push((
            row.prefix.to_string(),
            row.metric,
            row.body.nexthop_id,
            is_forwarded,
        ));
    }
    assert_eq!(frames.pending(), 0);
    all
}

fn yes(prefix: &str) -> (String, u32, Option<u32>, bool) {
    (prefix.to_owned(), 20, None, true)
}

fn no(prefix: &str) -> (String, u32, Option<u32>, bool) {
    (prefix.to_owned(), 20, None, false)
}

#[test]
fn the_bytes_are_those_that_zebra_sent_with_one_flag_more() {
    // Its id means something.
    let mut fed = Fed::forwarding();
    fed.connect();
    fed.tell(&[new(&object(6, "192.0.2.1"))]);
    fed.hear(&bytes_of(&CAPTURED)).unwrap();
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    fed.forwards(&[]);
    // `RTM_NEWROUTE`, `NLM_F_REQUEST`, `RTM_F_OFFLOAD`; the number of the
    // table once more, as RTA_TABLE.
    let expected: [u32; 16] = [
        0x0101_0040,
        0x3c00_0000,
        0x1800_0100,
        0,
        0,
        0x0218_0000,
        0xfeba_0001,
        0x0040_0000,
        0x0800_0100,
        0x1000_0000,
        0x0800_0f00,
        0xfe00_0000,
        0x0800_0600,
        0x1400_0000,
        0x0800_1e00,
        0x0600_0000,
    ];
    assert_eq!(fed.told_back(usize::MAX), bytes_of(&expected));
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    let counted = fed.status().feed.unwrap();
    assert_eq!((counted.acknowledged, counted.acknowledged_refused), (1, 0));
}

#[test]
fn nothing_is_told_before_the_forwarding_has_seen_it_and_then_how_it_is() {
    let mut fed = Fed::forwarding();
    fed.connect();
    fed.forwards(&[]);
    let route = |number: u8| via(&format!("10.{number}.0.0/16"), 20, "192.0.2.1");
    fed.tell(&[new(&route(1)), new(&route(2))]);
    // Not seen yet.
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    fed.forwards(&[("10.2.0.0/16", true)]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [yes("10.1.0.0/16"), no("10.2.0.0/16")]);
    // Room was made: told anew, though zebra said nothing.
    fed.forwards(&[("10.2.0.0/16", false)]);
    assert_eq!(read(&fed.told_back(usize::MAX)), [yes("10.2.0.0/16")]);
    // What changed since is not acknowledged for what it was before.
    fed.tell(&[new(&via("10.1.0.0/16", 30, "192.0.2.7"))]);
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    fed.tell(&[new(&via("10.1.0.0/16", 40, "192.0.2.8"))]);
    fed.forwards(&[]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [("10.1.0.0/16".to_owned(), 40, None, true)]);
    // Gone, and gone before its turn: nothing to say.
    fed.tell(&[gone(&route(1)), new(&route(3))]);
    fed.tell(&[gone(&route(3))]);
    fed.forwards(&[]);
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
}

#[test]
fn routes_of_the_kernel_and_of_tables_that_packets_are_not_looked_up_in_are_not_acknowledged() {
    let mut fed = Fed::forwarding();
    fed.connect();
    let with = |change: fn(&mut table::Route)| {
        let Item::Route(mut row) = via("10.1.0.0/16", 20, "192.0.2.1") else {
            unreachable!()
        };
        change(&mut row);
        new(&Item::Route(row))
    };
    fed.tell(&[
        with(|row| row.table = 1_000),
        with(|row| row.body.protocol = 2),
    ]);
    fed.forwards(&[]);
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
}

#[test]
fn a_blackhole_and_an_id_are_told_as_they_came() {
    let mut fed = Fed::forwarding();
    fed.connect();
    fed.tell(&[new(&blackhole(9)), new(&by_id("10.1.0.0/16", 20, 9))]);
    fed.forwards(&[]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [("10.1.0.0/16".to_owned(), 20, Some(9), true)]);
}

#[test]
fn another_connection_is_told_of_what_it_told_and_of_nothing_else() {
    let mut fed = Fed::forwarding();
    fed.connect();
    let route = |number: u8| via(&format!("10.{number}.0.0/16"), 20, "192.0.2.1");
    fed.tell(&[new(&route(1)), new(&route(2)), new(&route(3))]);
    fed.forwards(&[("10.3.0.0/16", true)]);
    // The peer takes half of a frame, and goes.
    assert_eq!(fed.told_back(10).len(), 10);
    fed.lose();
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    fed.connect();
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    // Told again as it was: no row changed, and it is waited for.
    fed.tell(&[new(&route(3)), new(&route(2))]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [no("10.3.0.0/16"), yes("10.2.0.0/16")]);
}

#[test]
fn what_readers_have_not_seen_is_not_acknowledged_for_what_they_have() {
    let mut fed = Fed::forwarding();
    fed.connect();
    let route = |metric: u32| via("10.1.0.0/16", metric, "192.0.2.1");
    fed.tell(&[new(&route(20))]);
    fed.forwards(&[]);
    // Told again before its turn came: nobody has seen that.
    fed.tell_unpublished(&[new(&route(30))]);
    assert_eq!(fed.unsent(), None);
    fed.publish();
    assert_eq!(fed.unsent(), None);
    fed.forwards(&[]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [("10.1.0.0/16".to_owned(), 30, None, true)]);
    // A next hop changes, and its routes with it, of which zebra says nothing.
    fed.tell(&[
        new(&object(6, "192.0.2.1")),
        new(&by_id("10.2.0.0/16", 20, 6)),
    ]);
    fed.forwards(&[]);
    fed.tell_unpublished(&[new(&object(6, "192.0.2.9"))]);
    assert_eq!(fed.unsent(), None);
    fed.publish();
    assert_eq!(fed.unsent(), None);
    fed.forwards(&[]);
    let told = read(&fed.told_back(usize::MAX));
    assert_eq!(told, [("10.2.0.0/16".to_owned(), 20, Some(6), true)]);
}

#[test]
fn a_table_that_packets_are_looked_up_in_later_is_acknowledged_then() {
    let mut fed = Fed::forwarding();
    fed.connect();
    let of_table = |prefix: &str, gateway: &str, table: u32| {
        let Item::Route(mut row) = via(prefix, 20, gateway) else {
            unreachable!()
        };
        row.table = table;
        new(&Item::Route(row))
    };
    fed.tell(&[
        of_table("10.1.0.0/16", "192.0.2.1", 100),
        of_table("2001:db8:1::/48", "2001:db8::1", 100),
    ]);
    fed.forwards(&[]);
    assert_eq!(fed.told_back(usize::MAX), [0_u8; 0]);
    // For one family alone.
    fed.forwards_tables(&[(2, MAIN), (2, 100)]);
    let bytes = fed.told_back(usize::MAX);
    let all: Vec<_> = messages(&bytes[4..]).collect();
    assert_eq!(all.len(), 1);
    let Decoded::Announcement(told) = decode(all[0].as_ref().unwrap(), 0).unwrap() else {
        unreachable!()
    };
    let Item::Route(row) = told.item else {
        unreachable!()
    };
    assert_eq!(
        (row.table, row.prefix.to_string().as_str()),
        (100, "10.1.0.0/16")
    );
}

#[test]
fn a_route_from_one_source_alone_is_not_forwarded_by() {
    let mut fed = Fed::forwarding();
    fed.connect();
    let Item::Route(mut row) = via("2001:db8:1::/48", 20, "2001:db8::1") else {
        unreachable!()
    };
    row.body.source = Some("2001:db8:2::/48".parse().unwrap());
    fed.tell(&[new(&Item::Route(row))]);
    fed.forwards(&[]);
    assert_eq!(read(&fed.told_back(usize::MAX)), [no("2001:db8:1::/48")]);
}

#[test]
fn a_forwarding_that_lags_is_not_ahead_of_what_it_has_seen_however_much_waits() {
    let routes: u32 = 100_000;
    let prefix = |number: u32| format!("{}/32", std::net::Ipv4Addr::from((10 << 24) + number));
    let mut fed = Fed::forwarding();
    fed.connect();
    fed.forwards(&[]);
    let tell_all = |fed: &mut Fed, metric: u32| {
        for some in (0..routes).collect::<Vec<_>>().chunks(100) {
            let some = some.iter();
            let some = some.map(|number| new(&via(&prefix(*number), metric, "192.0.2.1")));
            fed.tell(&some.collect::<Vec<_>>());
        }
    };
    tell_all(&mut fed, 20);
    fed.forwards(&[]);
    // Some are told, and while the rest waits all are told anew.
    // Frames of 72 bytes.
    let some = 50 * 72;
    assert!(
        read(&fed.told_back(some))
            .iter()
            .all(|(_, metric, ..)| *metric == 20)
    );
    tell_all(&mut fed, 30);
    // Refused or no more: what it says is of what it has seen.
    let before = fed.told_back(usize::MAX);
    assert!(read(&before).iter().all(|(_, metric, ..)| *metric == 20));
    fed.forwards(&[]);
    let told = read(&fed.told_back(usize::MAX));
    assert!(told.iter().all(|(_, metric, ..)| *metric == 30));
    let prefixes: std::collections::BTreeSet<&String> = told.iter().map(|told| &told.0).collect();
    assert_eq!(prefixes.len(), routes as usize);
}

#[test]
fn what_waits_is_bounded_and_everything_is_told_at_last() {
    let routes: u32 = 100_000;
    let prefix = |number: u32| format!("{}/32", std::net::Ipv4Addr::from((10 << 24) + number));
    let mut fed = Fed::forwarding();
    fed.connect();
    fed.forwards(&[]);
    let mut told = std::collections::BTreeMap::new();
    let mut take = |fed: &mut Fed, most: usize| {
        let bytes = fed.told_back(most);
        for (prefix, metric, ..) in read(&bytes) {
            told.insert(prefix, metric);
        }
        bytes.len()
    };
    // A peer that reads nothing while it tells, three times over.
    let mut waiting = 0;
    for metric in [20, 30, 40] {
        for number in (0..routes).collect::<Vec<_>>().chunks(100) {
            let some = number
                .iter()
                .map(|number| new(&via(&prefix(*number), metric, "192.0.2.1")));
            fed.tell(&some.collect::<Vec<_>>());
            waiting = waiting.max(fed.unsent().unwrap_or_default());
            fed.forwards(&[]);
        }
    }
    assert!(waiting < 66_000, "{waiting} bytes wait");
    assert!(take(&mut fed, usize::MAX) > 0);
    assert_eq!(told.len(), routes as usize);
    assert!(told.values().all(|metric| *metric == 40));
}
