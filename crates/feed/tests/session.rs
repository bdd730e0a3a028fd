//! The state machine of a feed, fed with messages as zebra makes them.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod peer;

use fingerpost_feed as feed;

use feed::fpm::Now;
use lab::Random;
use netlink::decode::Item;
use peer::zebra::Zebra;
use peer::{
    CAPTURED, Fed, MAIN, blackhole, by_id, bytes_of, framed, gone, group, net, new, object, via,
};
use table::{Limits, Nexthop, Phase};

#[test]
fn a_captured_route_is_read() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    for byte in bytes_of(&CAPTURED) {
        fed.hear(&[byte]).unwrap();
    }
    assert_eq!(fed.routes(), ["16.0.0.0/24 table 254 metric 20 via "]);
    assert_eq!(fed.tables().routes.of_nexthop(6).count(), 1);
    let feed = fed.status().feed.unwrap();
    assert_eq!((feed.frames, feed.messages), (1, 1));
    fed.tell(&[new(&object(6, "192.0.2.1"))]);
    let expected = ["16.0.0.0/24 table 254 metric 20 via 192.0.2.1@2*1"];
    assert_eq!(fed.routes(), expected);
}

#[test]
fn a_prefix_has_one_route_whatever_its_metric_and_protocol() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    fed.tell(&[new(&via("10.0.0.0/8", 20, "192.0.2.1"))]);
    fed.tell(&[new(&via("10.0.0.0/8", 110, "192.0.2.2"))]);
    let one = ["10.0.0.0/8 table 254 metric 110 via 192.0.2.2@2*1"];
    assert_eq!(fed.routes(), one);
    // Without replacing: both in one frame, and nobody sees it gone.
    fed.tell(&[
        gone(&via("10.0.0.0/8", 110, "192.0.2.2")),
        new(&via("10.0.0.0/8", 20, "192.0.2.3")),
    ]);
    let one = ["10.0.0.0/8 table 254 metric 20 via 192.0.2.3@2*1"];
    assert_eq!(fed.routes(), one);
    // A deletion names the prefix; metric and next hop may be others.
    fed.tell(&[gone(&via("10.0.0.0/8", 7, "192.0.2.9"))]);
    assert_eq!(fed.routes(), [""; 0]);
    // Other tables and lengths are other routes.
    let Item::Route(mut other) = via("10.0.0.0/8", 20, "192.0.2.1") else {
        unreachable!()
    };
    other.table = 1_000;
    fed.tell(&[
        new(&via("10.0.0.0/8", 20, "192.0.2.1")),
        new(&via("10.0.0.0/16", 20, "192.0.2.1")),
        new(&Item::Route(other)),
    ]);
    assert_eq!(fed.routes().len(), 3);
    fed.tell(&[gone(&via("10.0.0.0/8", 20, "192.0.2.1"))]);
    assert_eq!(fed.routes().len(), 2);
}

#[test]
fn routes_follow_their_objects_and_groups() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    fed.tell(&[new(&group(7, &[1, 2])), new(&object(1, "192.0.2.1"))]);
    fed.tell(&[
        new(&by_id("10.0.0.0/8", 20, 7)),
        new(&by_id("11.0.0.0/8", 20, 1)),
    ]);
    fed.tell(&[new(&object(2, "192.0.2.2")), new(&blackhole(3))]);
    fed.tell(&[new(&by_id("12.0.0.0/8", 20, 3))]);
    assert_eq!(
        fed.routes(),
        [
            "10.0.0.0/8 table 254 metric 20 via 192.0.2.1@2*1,192.0.2.2@2*1",
            "11.0.0.0/8 table 254 metric 20 via 192.0.2.1@2*1",
            "blackhole 12.0.0.0/8 table 254 metric 20 via ",
        ]
    );
    // A member goes another way; then one leaves the group.
    fed.tell(&[new(&object(1, "192.0.2.9"))]);
    assert!(fed.routes()[0].ends_with("via 192.0.2.9@2*1,192.0.2.2@2*1"));
    assert!(fed.routes()[1].ends_with("via 192.0.2.9@2*1"));
    fed.tell(&[new(&group(7, &[2]))]);
    assert!(fed.routes()[0].ends_with("via 192.0.2.2@2*1"));
    let gateway = "192.0.2.9".parse().unwrap();
    assert_eq!(fed.tables().routes.via(gateway).count(), 1);
    // An object that goes leaves its routes, which are told apart.
    fed.tell(&[gone(&object(1, "192.0.2.9"))]);
    assert!(fed.routes()[1].ends_with("via 192.0.2.9@2*1"));
    // Its id comes back for something else: that route does not follow.
    fed.tell(&[new(&object(1, "192.0.2.77"))]);
    assert!(fed.routes()[1].ends_with("via 192.0.2.9@2*1"));
    assert_eq!(fed.tables().routes.of_nexthop(1).count(), 0);
}

#[test]
fn rows_stay_when_the_peer_goes_and_are_swept_once_it_told_all_again() {
    let mut fed = Fed::new(Limits::default());
    assert!(matches!(fed.status().phase, Phase::Disconnected(_)));
    fed.connect();
    assert_eq!(fed.status().phase, Phase::Loading);
    let all = ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"];
    for prefix in all {
        fed.tell(&[new(&via(prefix, 20, "192.0.2.1"))]);
    }
    assert_eq!(fed.rest(30), Some(0));
    assert!(fed.status().is_whole());
    fed.lose();
    assert_eq!(fed.status().in_words(), "disconnected: cut");
    assert_eq!((fed.routes().len(), fed.unconfirmed()), (3, 3));
    // However long: nothing is known.
    assert_eq!(fed.rest(10_000), None);
    assert_eq!(fed.routes().len(), 3);
    fed.connect();
    assert_eq!(
        (fed.status().phase, fed.unconfirmed()),
        (Phase::Resyncing, 3)
    );
    fed.tell(&[new(&via(all[0], 20, "192.0.2.1"))]);
    assert_eq!(fed.unconfirmed(), 2);
    assert_eq!(fed.rest(14), None);
    // Another next hop confirms as well.
    fed.tell(&[new(&via(all[1], 30, "192.0.2.7"))]);
    assert_eq!(fed.unconfirmed(), 1);
    assert_eq!(fed.rest(14), None);
    assert_eq!(fed.routes().len(), 3);
    assert_eq!(fed.rest(10), Some(1));
    assert_eq!(fed.routes().len(), 2);
    assert!(fed.status().is_whole());
    assert_eq!(fed.status().feed.unwrap().swept, 1);
}

#[test]
fn tables_that_zebra_tells_once_only_are_not_swept() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    let in_table = |table: u32, gateway: &str| {
        let Item::Route(mut route) = via("10.0.0.0/8", 20, gateway) else {
            unreachable!()
        };
        route.table = table;
        Item::Route(route)
    };
    fed.vrf("red", 100);
    for table in [100, 1_000, MAIN] {
        fed.tell(&[new(&in_table(table, "192.0.2.1"))]);
    }
    fed.rest(30);
    fed.lose();
    fed.connect();
    // Of a VRF and of the main table, and the table of no VRF.
    assert_eq!(fed.rest(30), Some(2));
    assert_eq!(
        fed.routes(),
        ["10.0.0.0/8 table 1000 metric 20 via 192.0.2.1@2*1"]
    );
    assert_eq!(fed.unconfirmed(), 1);
    fed.tell(&[new(&in_table(1_000, "192.0.2.2"))]);
    assert_eq!((fed.unconfirmed(), fed.routes().len()), (0, 1));
    fed.lose();
    fed.connect();
    fed.rest(30);
    fed.tell(&[gone(&in_table(1_000, "192.0.2.2"))]);
    assert_eq!((fed.unconfirmed(), fed.routes().len()), (0, 0));
}

#[test]
fn a_deletion_during_a_resync_counts_as_told() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    fed.tell(&[
        new(&object(1, "192.0.2.1")),
        new(&by_id("10.0.0.0/8", 20, 1)),
    ]);
    fed.rest(30);
    fed.lose();
    fed.connect();
    assert_eq!(fed.unconfirmed(), 2);
    fed.tell(&[gone(&by_id("10.0.0.0/8", 20, 1))]);
    assert_eq!(fed.unconfirmed(), 1);
    fed.tell(&[gone(&object(1, "192.0.2.1"))]);
    assert_eq!((fed.unconfirmed(), fed.routes().len()), (0, 0));
    assert_eq!(fed.rest(30), Some(0));
}

#[test]
fn ids_that_mean_something_else_after_a_restart_never_mix() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    fed.tell(&[new(&object(1, "192.0.2.1")), new(&object(2, "192.0.2.2"))]);
    fed.tell(&[new(&blackhole(3)), new(&group(7, &[1, 2]))]);
    let routes = [
        ("10.0.0.0/8", 1),
        ("11.0.0.0/8", 2),
        ("12.0.0.0/8", 3),
        ("13.0.0.0/8", 7),
    ];
    for (prefix, id) in routes {
        fed.tell(&[new(&by_id(prefix, 20, id))]);
    }
    fed.rest(30);
    let before = fed.routes();
    assert!(before[3].ends_with("via 192.0.2.1@2*1,192.0.2.2@2*1"));
    fed.lose();
    fed.connect();
    // 1 is a blackhole now, 3 a gateway, and 2 is not told yet.
    fed.tell(&[new(&blackhole(1)), new(&object(3, "192.0.2.33"))]);
    assert_eq!(fed.routes(), before);
    let tables = fed.tables();
    for route in tables.routes.iter() {
        let hops = tables.nexthops.hops_of(route.body);
        let own = route.body.next_hops.as_slice();
        assert_eq!(hops.unwrap_or_default(), own, "{}", route.prefix);
    }
    // A route that names 2 before 2 was told has no next hop until then.
    fed.tell(&[new(&by_id("10.0.0.0/8", 20, 2))]);
    assert_eq!(fed.routes()[0], "10.0.0.0/8 table 254 metric 20 via ");
    assert_eq!(fed.routes()[1..], before[1..]);
    let tables = fed.tables();
    let mut waits = tables.routes.exact(MAIN, net("10.0.0.0/8"));
    let hops = tables.nexthops.hops_of(waits.next().unwrap().body);
    assert_eq!(hops, Some(vec![]));
    fed.tell(&[new(&object(2, "192.0.2.22"))]);
    assert!(fed.routes()[0].ends_with("via 192.0.2.22@2*1"));
    assert_eq!(fed.routes()[1..], before[1..]);
    // The group of before means its members of before.
    fed.tell(&[new(&group(7, &[2, 3])), new(&by_id("11.0.0.0/8", 20, 7))]);
    assert!(fed.routes()[1].ends_with("via 192.0.2.22@2*1,192.0.2.33@2*1"));
    assert_eq!(fed.routes()[2..], before[2..]);
    // Two routes and four objects of before are left.
    assert_eq!(fed.unconfirmed(), 6);
    assert_eq!(fed.rest(30), Some(6));
    assert_eq!(fed.routes().len(), 2);
    assert_eq!(fed.tables().nexthops.len(), 4);
}

#[test]
fn an_object_that_changes_during_a_resync_changes_what_was_told_since() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    fed.tell(&[new(&object(1, "192.0.2.1"))]);
    fed.tell(&[
        new(&by_id("10.0.0.0/8", 20, 1)),
        new(&by_id("11.0.0.0/8", 20, 1)),
    ]);
    fed.rest(30);
    fed.lose();
    fed.connect();
    // The same at first; then another, of which only one route knows.
    fed.tell(&[
        new(&object(1, "192.0.2.1")),
        new(&by_id("10.0.0.0/8", 20, 1)),
    ]);
    assert_eq!(fed.unconfirmed(), 1);
    fed.tell(&[new(&object(1, "192.0.2.9"))]);
    assert!(fed.routes()[0].ends_with("via 192.0.2.9@2*1"));
    assert!(fed.routes()[1].ends_with("via 192.0.2.1@2*1"));
    assert_eq!(fed.unconfirmed(), 1);
    assert_eq!(fed.rest(30), Some(1));
    assert_eq!(fed.routes().len(), 1);
}

#[test]
fn limits_refuse_what_is_new_and_say_so() {
    let limits = Limits {
        routes: 2,
        nexthops: 1,
        ..Limits::default()
    };
    let mut fed = Fed::new(limits);
    fed.connect();
    for prefix in ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"] {
        fed.tell(&[new(&via(prefix, 20, "192.0.2.1"))]);
    }
    fed.tell(&[new(&object(1, "192.0.2.1")), new(&object(2, "192.0.2.2"))]);
    assert_eq!(fed.routes().len(), 2);
    // What is there can be changed, in any way.
    fed.tell(&[new(&via("11.0.0.0/8", 30, "192.0.2.2"))]);
    assert!(fed.routes()[1].contains("metric 30"));
    fed.rest(30);
    let status = fed.status();
    assert!(!status.is_whole());
    assert_eq!(
        (status.refused["routes"], status.refused["nexthops"]),
        (1, 1)
    );
    assert_eq!(status.in_words(), "degraded: nexthops, routes miss rows");
}

#[test]
fn what_has_no_row_is_counted_by_its_name() {
    let mut fed = Fed::new(Limits::default());
    fed.connect();
    let message = |kind: u16, payload: &[u8]| {
        let len = u32::try_from(16 + payload.len()).unwrap();
        let head = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat();
        [&head, payload].concat()
    };
    // An LSP, the station of a VTEP, something unheard of.
    let mpls = [28, 20, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    let station = [10, 0, 2, 0, 2, 0, 0, 0, 0, 1, 0, 0];
    let rmac = [&[7, 0, 0, 0, 9, 0, 0, 0, 0x40, 0, 0x12, 0][..], &station].concat();
    fed.tell(&[
        message(24, &mpls),
        message(28, &rmac),
        message(999, &[0; 4]),
    ]);
    let skipped: Vec<_> = fed.status().feed.unwrap().skipped.into_iter().collect();
    assert_eq!(skipped, [("fdb", 1), ("mpls", 1), ("other messages", 1)]);
    assert_eq!(fed.routes().len(), 0);
}

#[test]
fn lies_end_the_stream_with_their_place_and_change_nothing() {
    let route = new(&via("10.0.0.0/8", 20, "192.0.2.1"));
    let good = framed(&route);
    let changed = |at: usize, to: u8| {
        let mut bytes = route.clone();
        bytes[at] = to;
        framed(&bytes)
    };
    let huge = [
        &0x8000_u32.to_ne_bytes()[..],
        &24_u16.to_ne_bytes(),
        &[0; 0x8000 - 6],
    ]
    .concat();
    for (bytes, says) in [
        (changed(0, 0xff), "claims 255 bytes"),
        (changed(28, 0xff), "at byte 12 claims 255 bytes"),
        (framed(&huge), "16384 at most"),
        (framed(&route[..20]), "20 are left"),
        (vec![9], "version 9"),
        (vec![1, 2], "kind 2"),
        (vec![1, 1, 0, 1], "claims 1 bytes"),
    ] {
        let mut fed = Fed::new(Limits::default());
        fed.connect();
        fed.hear(&good).unwrap();
        let error = fed.hear(&bytes).unwrap_err().to_string();
        let place = format!("the frame at byte {}", good.len());
        assert!(error.contains(says) && error.contains(&place), "{error}");
        assert_eq!(fed.routes().len(), 1);
    }
}

/// Random changes, cuts and restarts with ids that mean something else:
/// once all was told the rows are those of a feed that saw nothing else.
#[test]
fn whatever_happens_rows_are_those_of_the_peer_in_the_end() {
    let rounds = std::env::var("FINGERPOST_FUZZ_ROUNDS").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(300);
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let mut fed = Fed::new(Limits::default());
        let mut zebra = Zebra::default();
        fed.connect();
        for _ in 0..=random.below(5) {
            a_life(&mut zebra, &mut fed, &mut random);
        }
        assert!(fed.rest(400).is_some(), "seed {seed}");
        let mut fresh = Fed::new(Limits::default());
        fresh.now = Now::default();
        fresh.connect();
        for item in zebra.objects.values() {
            fresh.tell(&[new(item)]);
        }
        for (prefix, (metric, id)) in &zebra.routes {
            fresh.tell(&[new(&by_id(prefix, *metric, *id))]);
        }
        assert_eq!(fed.routes(), fresh.routes(), "seed {seed}");
        assert_eq!(ids(&fed), ids(&fresh), "seed {seed}");
        assert_eq!(objects(&fed), objects(&fresh), "seed {seed}");
    }
}

fn ids(fed: &Fed) -> Vec<Option<u32>> {
    let tables = fed.tables();
    let routes = tables.routes.iter();
    routes.map(|route| route.body.nexthop_id).collect()
}

fn objects(fed: &Fed) -> Vec<Nexthop> {
    let tables = fed.tables();
    let objects = tables.nexthops.iter();
    objects.map(|object| (**object).clone()).collect()
}

/// Changes, a cut, perhaps a restart, and all told again among changes.
fn a_life(zebra: &mut Zebra, fed: &mut Fed, random: &mut Random) {
    for _ in 0..random.below(40) {
        let told = zebra.change(random);
        fed.tell(&told);
    }
    if random.below(3) == 0 {
        fed.rest(20);
    }
    fed.lose();
    if random.below(2) == 0 {
        *zebra = Zebra::default();
    }
    for _ in 0..random.below(10) {
        zebra.change(random);
    }
    fed.connect();
    for id in zebra.objects.clone().into_keys() {
        if let Some(item) = zebra.objects.get(&id) {
            fed.tell(&[new(item)]);
        }
        if random.below(4) == 0 {
            let told = zebra.change(random);
            fed.tell(&told);
        }
    }
    for prefix in zebra.routes.clone().into_keys() {
        if let Some((metric, id)) = zebra.routes.get(&prefix) {
            fed.tell(&[new(&by_id(&prefix, *metric, *id))]);
        }
        if random.below(4) == 0 {
            let told = zebra.change(random);
            fed.tell(&told);
        }
    }
}
