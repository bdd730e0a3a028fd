//! The state machine of a BMP station, fed with messages as routers make
//! them.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod router;

use fingerpost_feed::bmp::{Broken, StationLimits};
use ipnet::IpNet;
use lab::bmp::{Peer, flag, message, open, reach_v6, termination, tlv};
use lab::mrt::Attributes;
use router::{Fed, net, path};
use table::{Limits, Phase};

fn one() -> Peer {
    Peer::new([192, 0, 2, 1].into(), 65_001)
}

fn two() -> Peer {
    Peer::new("2001:db8::2".parse().unwrap(), 70_000)
}

fn nets(all: &[&str]) -> Vec<IpNet> {
    all.iter().map(|text| net(text)).collect()
}

/// A router `edge` with a peer that is up.
fn up() -> Fed {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("edge");
    fed.says(&one().plain_up());
    fed
}

const ONE: &str = "bmp:192.0.2.1@edge";

#[test]
fn each_table_of_a_peer_is_a_source() {
    let mut fed = up();
    let how = path(&[65_001, 7]);
    for (flags, prefix) in [
        (0, "10.0.0.0/8"),
        (flag::POST_POLICY, "11.0.0.0/8"),
        (flag::OUT, "12.0.0.0/8"),
        (flag::OUT | flag::POST_POLICY, "13.0.0.0/8"),
    ] {
        fed.says(&one().with(flags).update(&[], &how, &nets(&[prefix])));
    }
    let own = Peer::loc_rib(65_000);
    fed.says(&own.plain_up());
    fed.says(&own.update(&[], &how, &nets(&["14.0.0.0/8"])));
    let mut red = Peer {
        kind: 1,
        distinguisher: [0, 0, 0xfd, 0xe8, 0, 0, 0, 7],
        ..two()
    };
    red.flags = flag::POST_POLICY;
    fed.says(&red.plain_up());
    let v6 = reach_v6(path(&[70_000]), two().address, &nets(&["2001:db8:7::/48"]));
    fed.says(&red.update(&[], &v6, &[]));
    let shown: Vec<(String, Vec<String>)> = fed.sources();
    let expected = [
        ("bmp:192.0.2.1@edge", "10.0.0.0/8 via 198.51.100.1 65001 7"),
        (
            "bmp:192.0.2.1_out-post@edge",
            "13.0.0.0/8 via 198.51.100.1 65001 7",
        ),
        (
            "bmp:192.0.2.1_out@edge",
            "12.0.0.0/8 via 198.51.100.1 65001 7",
        ),
        (
            "bmp:192.0.2.1_post@edge",
            "11.0.0.0/8 via 198.51.100.1 65001 7",
        ),
        (
            "bmp:2001:db8::2_65000:7_post@edge",
            "2001:db8:7::/48 via 2001:db8::2 70000",
        ),
        ("bmp:loc-rib@edge", "14.0.0.0/8 via 198.51.100.1 65001 7"),
    ];
    let expected = expected.map(|(name, row)| (name.to_owned(), vec![row.to_owned()]));
    assert_eq!(shown, expected);
    // The router may be left away while it is the only one with that peer.
    assert_eq!(fed.routes("bmp:192.0.2.1").len(), 1);
    let monitored = fed.status("bmp:2001:db8::2_65000:7_post").feed.unwrap();
    let monitored = monitored.monitored.unwrap();
    assert_eq!(
        (&*monitored.router, &*monitored.address),
        ("edge", "2001:db8::2")
    );
    assert_eq!(
        (&*monitored.distinguisher, monitored.asn),
        ("65000:7", 70_000)
    );
    assert_eq!(
        (monitored.rib, monitored.is_up),
        ("adj-rib-in post-policy", true)
    );
}

#[test]
fn routes_change_and_go_and_are_those_of_their_peer_alone() {
    let mut fed = up();
    fed.says(&two().plain_up());
    let some = nets(&["10.0.0.0/8", "10.1.0.0/16"]);
    fed.says(&one().update(&[], &path(&[65_001]), &some));
    fed.says(&two().update(&[], &path(&[70_000]), &some[..1]));
    fed.says(&one().update(&some[..1], &path(&[65_001, 9]), &some[1..]));
    assert_eq!(fed.routes(ONE), ["10.1.0.0/16 via 198.51.100.1 65001 9"]);
    assert_eq!(
        fed.routes("bmp:2001:db8::2@edge"),
        ["10.0.0.0/8 via 198.51.100.1 70000"]
    );
    // AS numbers of two bytes, where the header says so.
    let old = Attributes::default()
        .origin(0)
        .raw(0x40, 2, &[2, 1, 0xfd, 0xe9]);
    let old = old.next_hop([198, 51, 100, 7].into());
    let legacy = one().with(flag::TWO_BYTE_AS);
    fed.says(&legacy.update(&[], &old, &nets(&["12.0.0.0/8"])));
    assert_eq!(fed.routes(ONE)[1], "12.0.0.0/8 via 198.51.100.7 65001");
}

#[test]
fn paths_of_two_bytes_without_a_word_of_it_are_told_by_their_lengths() {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("edge");
    // The peer does not know AS numbers of four bytes.
    let old = lab::mrt::message(1, &[4, 0xfd, 0xe9, 0, 90, 192, 0, 2, 1, 0]);
    fed.says(&one().up(&open(65_000, &[]), &old));
    let of_two = Attributes::default()
        .origin(0)
        .raw(0x40, 2, &[2, 2, 0xfd, 0xe9, 0, 9]);
    let of_two = of_two.next_hop([198, 51, 100, 1].into());
    fed.says(&one().update(&[], &of_two, &nets(&["10.0.0.0/8"])));
    // Another router writes four bytes whatever its peers know.
    fed.says(&one().update(&[], &path(&[65_001, 7]), &nets(&["11.0.0.0/8"])));
    assert_eq!(
        fed.routes(ONE),
        [
            "10.0.0.0/8 via 198.51.100.1 65001 9",
            "11.0.0.0/8 via 198.51.100.1 65001 7"
        ]
    );
    // Where the peer does, it is what it says: nothing that can be read.
    fed.says(&two().plain_up());
    fed.says(&two().update(&[], &of_two, &nets(&["10.0.0.0/8"])));
    assert_eq!(fed.routes("bmp:2001:db8::2"), [""; 0]);
}

#[test]
fn a_routers_own_table_needs_no_peer_up() {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("go");
    let own = Peer::loc_rib(65_000);
    let some = nets(&["10.0.0.0/8"]);
    fed.says(&own.update(&[], &path(&[65_001]), &some));
    assert_eq!(fed.routes("bmp:loc-rib").len(), 1);
    let peer = fed
        .status("bmp:loc-rib@go")
        .feed
        .unwrap()
        .monitored
        .unwrap();
    assert_eq!((peer.is_up, peer.asn, peer.rib), (true, 65_000, "loc-rib"));
    fed.says(&own.down(6, &[]));
    fed.says(&own.update(&[], &path(&[65_001]), &some));
    assert_eq!(fed.routes("bmp:loc-rib"), [""; 0]);
}

#[test]
fn several_paths_of_a_prefix_where_both_sides_agreed_to() {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("edge");
    let both = |does: u8| {
        let add_path = [0, 1, 1, does];
        open(65_001, &[(1, &[0, 1, 0, 1]), (69, &add_path)])
    };
    fed.says(&one().up(&both(1), &both(2)));
    let told = |ids: &[u8]| -> Vec<u8> {
        let how = path(&[65_001]).0;
        let mut update = vec![0, 0];
        update.extend((how.len() as u16).to_be_bytes());
        update.extend(how);
        for id in ids {
            update.extend([0, 0, 0, *id, 8, 10]);
        }
        lab::mrt::message(2, &update)
    };
    fed.says(&one().says(&told(&[1, 2])));
    assert_eq!(fed.routes(ONE).len(), 2);
    let gone = lab::mrt::message(2, &[0, 6, 0, 0, 0, 1, 8, 10, 0, 0]);
    fed.says(&one().says(&gone));
    assert_eq!(fed.routes(ONE).len(), 1);
    // What the router tells that peer has none: it would have to send.
    let out = one().with(flag::OUT);
    fed.says(&out.update(&[], &path(&[65_000]), &nets(&["10.0.0.0/8"])));
    assert_eq!(fed.routes("bmp:192.0.2.1_out@edge").len(), 1);
}

#[test]
fn path_identifiers_that_are_not_written_are_not_read() {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("frr");
    let both = open(65_001, &[(1, &[0, 1, 0, 1]), (69, &[0, 1, 1, 3])]);
    fed.says(&one().up(&both, &both));
    let some = nets(&["10.0.0.0/8", "11.1.0.0/16"]);
    fed.says(&one().update(&[], &path(&[65_001]), &some));
    assert_eq!(fed.routes("bmp:192.0.2.1").len(), 2);
    // What could be one is none, from then on.
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["12.0.0.0/32"])));
    assert!(fed.routes("bmp:192.0.2.1")[2].starts_with("12.0.0.0/32 "));
}

#[test]
fn opens_that_cannot_be_read_are_no_reason_to_end_the_connection() {
    let mut fed = Fed::new(StationLimits::default());
    fed.connect("edge");
    let dummy = lab::mrt::message(1, &[]);
    fed.says(&one().up(&dummy, &dummy));
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    assert_eq!(fed.routes(ONE).len(), 1);
    assert_eq!(fed.skipped("OPENs that cannot be read"), 1);
    // Of a family that has no rows, with a next hop of its own form.
    let other = path(&[65_001]).raw(0x80, 14, &[0, 25, 70, 7, 1, 2, 3, 4, 5, 6, 7, 0, 9]);
    fed.says(&one().update(&[], &other, &[]));
    assert_eq!(fed.skipped("routes of other families"), 1);
}

#[test]
fn a_peer_that_is_down_takes_its_routes_along_and_says_why() {
    let mut fed = up();
    fed.says(&two().plain_up());
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    fed.says(
        &one()
            .with(flag::OUT)
            .update(&[], &path(&[1]), &nets(&["10.0.0.0/8"])),
    );
    fed.says(&two().update(&[], &path(&[70_000]), &nets(&["10.0.0.0/8"])));
    let shut = lab::mrt::message(3, &[6, 2]);
    fed.says(&one().down(3, &shut));
    for gone in [ONE, "bmp:192.0.2.1_out@edge"] {
        assert_eq!(fed.routes(gone), [""; 0]);
        let status = fed.status(gone);
        assert_eq!(
            (status.phase, status.feed.as_ref().unwrap().unconfirmed),
            (Phase::Live, 0)
        );
        let peer = status.feed.unwrap().monitored.clone().unwrap();
        assert_eq!((peer.is_up, peer.ups, peer.downs), (false, 1, 1));
        let last = peer.history.last().unwrap();
        assert_eq!(
            (last.is_up, &*last.why),
            (false, "the peer closed: administrative shutdown")
        );
    }
    assert_eq!(fed.routes("bmp:2001:db8::2").len(), 1);
    // Routes of one that is down are not believed.
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    assert_eq!(fed.routes(ONE), [""; 0]);
    assert_eq!(fed.skipped("routes of peers that are not up"), 1);
    // It comes again.
    fed.says(&one().plain_up());
    assert_eq!(fed.status(ONE).phase, Phase::Loading);
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["11.0.0.0/8"])));
    fed.says(&one().end_of_rib(false));
    fed.says(&one().end_of_rib(true));
    assert_eq!(fed.routes(ONE), ["11.0.0.0/8 via 198.51.100.1 65001"]);
    assert_eq!(fed.status(ONE).phase, Phase::Live);
}

#[test]
fn ends_of_all_families_say_that_all_was_told() {
    let mut fed = up();
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    assert_eq!(fed.status(ONE).phase, Phase::Loading);
    fed.says(&one().end_of_rib(false));
    // Both speak of IPv6 as well.
    assert_eq!(fed.status(ONE).phase, Phase::Loading);
    fed.says(&one().end_of_rib(true));
    assert_eq!(fed.status(ONE).phase, Phase::Live);
    assert!(fed.status(ONE).is_whole());
    // A peer that has nothing is there all the same.
    fed.says(&two().plain_up());
    fed.says(&two().end_of_rib(false));
    assert_eq!(fed.status("bmp:2001:db8::2").phase, Phase::Loading);
}

#[test]
fn rows_stay_when_a_router_goes_and_go_when_it_does_not_tell_them_again() {
    let mut fed = up();
    let all = nets(&["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"]);
    fed.says(&one().update(&[], &path(&[65_001]), &all));
    fed.says(&two().plain_up());
    fed.says(&two().update(&[], &path(&[70_000]), &all));
    for peer in [one(), two()] {
        fed.says(&peer.end_of_rib(false));
        fed.says(&peer.end_of_rib(true));
    }
    fed.lose("cut");
    let both = [ONE, "bmp:2001:db8::2@edge"];
    for name in both {
        assert_eq!(fed.status(name).phase, Phase::Disconnected("cut".into()));
        assert_eq!((fed.routes(name).len(), fed.unconfirmed(name)), (3, 3));
    }
    // However long: nothing is known.
    fed.rest(10_000);
    assert_eq!(fed.routes(ONE).len(), 3);
    fed.connect("edge");
    fed.says(&one().plain_up());
    assert_eq!(fed.status(ONE).phase, Phase::Resyncing);
    fed.says(&one().update(&[], &path(&[65_001]), &all[..1]));
    // Another path confirms as well.
    fed.says(&one().update(&[], &path(&[65_001, 8]), &all[1..2]));
    assert_eq!((fed.routes(ONE).len(), fed.unconfirmed(ONE)), (3, 1));
    fed.says(&one().end_of_rib(false));
    assert_eq!((fed.routes(ONE).len(), fed.unconfirmed(ONE)), (3, 1));
    fed.says(&one().end_of_rib(true));
    assert_eq!((fed.routes(ONE).len(), fed.unconfirmed(ONE)), (2, 0));
    assert_eq!(fed.status(ONE).phase, Phase::Live);
    // The other peer has not come back: it may, and its rows go at last.
    assert_eq!(
        (fed.routes(both[1]).len(), fed.unconfirmed(both[1])),
        (3, 3)
    );
    fed.rest(290);
    assert_eq!(fed.routes(both[1]).len(), 3);
    fed.rest(20);
    assert_eq!(fed.routes(both[1]), [""; 0]);
    assert_eq!(fed.status(both[1]).feed.unwrap().swept, 3);
}

#[test]
fn a_table_whose_router_says_nothing_of_it_yet_is_not_swept() {
    let mut fed = up();
    let all = nets(&["10.0.0.0/8", "11.0.0.0/8"]);
    fed.says(&one().update(&[], &path(&[65_001]), &all));
    fed.rest(30);
    fed.lose("cut");
    fed.connect("edge");
    fed.says(&one().plain_up());
    // Nobody moves, and then it tells one of them.
    fed.rest(200);
    assert_eq!((fed.routes(ONE).len(), fed.unconfirmed(ONE)), (2, 2));
    assert_eq!(fed.status(ONE).phase, Phase::Resyncing);
    fed.says(&one().update(&[], &path(&[65_001]), &all[..1]));
    fed.rest(14);
    assert_eq!(fed.routes(ONE).len(), 2);
    fed.rest(10);
    assert_eq!((fed.routes(ONE).len(), fed.unconfirmed(ONE)), (1, 0));
    // One that never says anything is not waited for without end.
    fed.lose("cut");
    fed.connect("edge");
    fed.says(&one().plain_up());
    fed.rest(310);
    assert_eq!(fed.routes(ONE), [""; 0]);
}

#[test]
fn a_host_of_many_names_leaves_places_to_others() {
    let mut fed = Fed::new(StationLimits {
        routers: 8,
        ..StationLimits::default()
    });
    for number in 0..6 {
        let name = format!("r{number}");
        fed.connect_from([127, 0, 0, 1], 1 + number, &name).unwrap();
    }
    let refused = fed.connect_from([127, 0, 0, 1], 9, "r9").unwrap_err();
    let host = [127, 0, 0, 1].into();
    assert_eq!(refused, Broken::TooManyOfHost { host, routers: 6 });
    fed.connect_from([127, 0, 0, 2], 1, "other").unwrap();
    fed.says(&one().plain_up());
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    fed.lose("cut");
    // One of its own that is gone makes room, and nobody else's.
    fed.lose_at(0, "cut");
    fed.connect_from([127, 0, 0, 1], 9, "r9").unwrap();
    assert!(fed.connect_from([127, 0, 0, 1], 10, "r10").is_err());
    assert_eq!(fed.routes("bmp:192.0.2.1@other").len(), 1);
}

#[test]
fn a_table_that_waits_behind_others_is_not_swept() {
    let mut fed = up();
    let all = nets(&["10.0.0.0/8", "11.0.0.0/8"]);
    fed.says(&one().update(&[], &path(&[65_001]), &all));
    fed.says(&two().plain_up());
    fed.says(&two().update(&[], &path(&[70_000]), &all));
    fed.rest(30);
    fed.lose("cut");
    fed.connect("edge");
    fed.says(&one().plain_up());
    fed.says(&two().plain_up());
    // For two minutes the router tells what the first has, and no end.
    for number in 0..120_u8 {
        for of in 0..200_u8 {
            let prefix = IpNet::new([20, number, of, 0].into(), 24).unwrap();
            fed.says(&one().update(&[], &path(&[65_001]), &[prefix]));
        }
        fed.rest(1);
    }
    assert_eq!(fed.unconfirmed("bmp:2001:db8::2"), 2);
    fed.says(&two().update(&[], &path(&[70_000]), &all[..1]));
    fed.rest(14);
    assert_eq!(fed.unconfirmed("bmp:2001:db8::2"), 1);
    fed.rest(10);
    assert_eq!(fed.routes("bmp:2001:db8::2").len(), 1);
}

#[test]
fn routers_are_told_apart_and_one_that_comes_again_is_the_same() {
    let limits = StationLimits {
        routers: 2,
        ..StationLimits::default()
    };
    let mut fed = Fed::new(limits);
    for (port, name) in [(1, "edge"), (2, "edge.2"), (3, "edge")] {
        if port == 3 {
            // The same while it is here is another, for which there is no
            // place; once it is gone, it is the same.
            let again = fed.connect_from([127, 0, 0, 1], port, name).unwrap_err();
            assert_eq!(again, Broken::TooMany(2));
            fed.lose_at(0, "cut");
        }
        fed.connect_from([127, 0, 0, 1], port, name).unwrap();
        fed.says(&one().plain_up());
        fed.says(&one().update(&[], &path(&[65_001, port.into()]), &nets(&["10.0.0.0/8"])));
    }
    assert_eq!(fed.routes(ONE), ["10.0.0.0/8 via 198.51.100.1 65001 3"]);
    assert_eq!(fed.status(ONE).feed.unwrap().connections, 2);
    // Two have that peer: which is meant must be said.
    assert!(fed.find("bmp:192.0.2.1").is_none());
    assert_eq!(fed.routes("bmp:192.0.2.1@edge.2").len(), 1);
    // Another of the name, from elsewhere: there is no place, until one of
    // the first two is gone.
    let refused = fed.connect_from([127, 0, 0, 9], 4, "edge").unwrap_err();
    assert_eq!(refused, Broken::TooMany(2));
    fed.lose("cut");
    fed.connect_from([127, 0, 0, 9], 4, "ed ge").unwrap();
    fed.says(&one().plain_up());
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    assert!(fed.find("bmp:192.0.2.1@edge").is_none());
    assert_eq!(fed.routes("bmp:192.0.2.1@ed-ge").len(), 1);
    let routers = fed.status("bmp").feed.unwrap().routers.unwrap();
    let names: Vec<&str> = routers.iter().map(|router| &*router.name).collect();
    assert_eq!(names, ["edge.2", "ed-ge"]);
    assert_eq!(
        (routers[1].peers, routers[1].peers_up, routers[1].routes),
        (1, 1, 1)
    );
}

#[test]
fn a_router_that_ends_says_why() {
    let mut fed = up();
    fed.says(&one().update(&[], &path(&[65_001]), &nets(&["10.0.0.0/8"])));
    let why = fed.ends(&termination(2, "no memory"));
    assert_eq!(why.as_deref(), Some("out of resources: no memory"));
    assert_eq!(fed.routes(ONE).len(), 1);
}

#[test]
fn what_is_counted_is_shown_and_what_is_mirrored_is_counted() {
    let mut fed = up();
    fed.says(&one().end_of_rib(false));
    fed.says(&one().statistics(&[(0, &[0, 0, 0, 3]), (7, &[0, 0, 0, 0, 0, 0, 1, 0])]));
    fed.says(&one().statistics(&[(0, &[0, 0, 0, 4])]));
    fed.says(&one().mirrors(&lab::mrt::message(4, &[])));
    fed.says(&two().statistics(&[]));
    fed.says(&message(99, b"from the future"));
    let peer = fed.status(ONE).feed.unwrap().monitored.unwrap();
    let told: Vec<(&str, u64)> = peer
        .statistics
        .iter()
        .map(|(name, of)| (&**name, *of))
        .collect();
    assert_eq!(told, [("adj_rib_in_routes", 256), ("prefixes_rejected", 4)]);
    assert_eq!(peer.mirrored, 1);
    for what in [
        "mirrored messages",
        "statistics of unknown peers",
        "messages of unknown types",
    ] {
        assert_eq!(fed.skipped(what), 1, "{what}");
    }
}

#[test]
fn limits_hold_for_a_router_as_a_whole() {
    let limits = StationLimits {
        rows: Limits {
            routes: 3,
            ..Limits::default()
        },
        tables: 2,
        ..StationLimits::default()
    };
    let mut fed = Fed::new(limits);
    fed.connect("edge");
    let all = nets(&["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8", "13.0.0.0/8"]);
    fed.says(&one().plain_up());
    fed.says(&two().plain_up());
    fed.says(&one().update(&[], &path(&[65_001]), &all[..2]));
    fed.says(&two().update(&[], &path(&[70_000]), &all));
    assert_eq!(
        (fed.routes(ONE).len(), fed.routes("bmp:2001:db8::2").len()),
        (2, 1)
    );
    let status = fed.status("bmp:2001:db8::2");
    assert_eq!(status.refused["routes"], 3);
    assert!(!status.is_whole());
    assert!(status.last_trouble.unwrap().contains("limits.routes"));
    // What is there may change; what goes makes room for the other.
    fed.says(&one().update(&[], &path(&[65_001, 2]), &all[..1]));
    assert_eq!(fed.routes(ONE)[0], "10.0.0.0/8 via 198.51.100.1 65001 2");
    fed.says(&one().update(&all[..2], &Attributes::default(), &[]));
    fed.says(&two().update(&[], &path(&[70_000]), &all));
    assert_eq!(fed.routes("bmp:2001:db8::2").len(), 3);
    // A third peer, while two are up; and once one is down.
    let three = Peer::new([192, 0, 2, 3].into(), 65_003);
    fed.says(&three.plain_up());
    assert_eq!(
        fed.status("bmp").feed.unwrap().routers.unwrap()[0].refused,
        1
    );
    fed.says(&two().down(4, &[]));
    fed.says(&three.plain_up());
    fed.says(&three.update(&[], &path(&[65_003]), &all[..1]));
    assert_eq!(fed.routes("bmp:192.0.2.3").len(), 1);
    assert!(fed.find("bmp:2001:db8::2").is_none());
    // More tables than may be.
    fed.says(&one().with(flag::OUT).update(&[], &path(&[1]), &all[..1]));
    assert!(fed.find("bmp:192.0.2.1_out").is_none());
    assert_eq!(
        fed.status("bmp").feed.unwrap().routers.unwrap()[0].refused,
        2
    );
}

#[test]
fn attributes_that_cannot_be_read_withdraw_and_lies_end_the_connection() {
    let mut fed = up();
    let some = nets(&["10.0.0.0/8"]);
    fed.says(&one().update(&[], &path(&[65_001]), &some));
    // RFC 7606: an origin of two bytes.
    let wrong = path(&[65_001]).raw(0x40, 4, &[1]);
    fed.says(&one().update(&[], &wrong, &some));
    assert_eq!(fed.routes(ONE), [""; 0]);
    let status = fed.status(ONE);
    assert_eq!(status.malformed, 1);
    assert!(
        status
            .last_trouble
            .unwrap()
            .contains("10.0.0.0/8 is taken as withdrawn")
    );
    fed.says(&one().update(&[], &path(&[65_001]), &some));

    let long = path(&[65_001]).raw(0xd0, 99, &[7; 60_000]);
    let mut cut = one().update(&[], &path(&[65_001]), &some);
    let at = cut.len() - 1;
    cut[at - 1] = 33;
    let open = open(1, &[]);
    for (bytes, says) in [
        (vec![4], "is of version 4"),
        (vec![3, 0, 0, 0, 1], "claims 1 bytes"),
        (cut, "a prefix is 33 long"),
        (
            one().update(&[], &long, &nets(&["11.0.0.0/8"])),
            "the attributes of a path is 60",
        ),
        (one().says(&[255; 18]), "the header of a message is cut off"),
        (
            one().says(&lab::mrt::message(2, &[0, 9])),
            "the withdrawn prefixes is cut off",
        ),
        (one().up(&open, &open[..20]), "a message is cut off"),
        (message(0, &[0; 41]), "the header of a peer is cut off"),
        (
            message(5, &tlv(1, &[7])),
            "the reason of a termination is cut off",
        ),
    ] {
        let offset = fed.offset();
        let error = fed.hear(&bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(
            error.contains(&format!("at byte {offset}")),
            "{offset}: {error}"
        );
        fed.lose(&error);
        assert_eq!(fed.routes(ONE).len(), 1, "{says}");
        fed.connect("edge");
        fed.says(&one().plain_up());
    }
    assert_eq!(fed.status("bmp").malformed, 9);
    // Who does not say who it is is no router.
    let error = fed.first(&one().plain_up()).unwrap_err().to_string();
    assert!(error.contains("an initiation is expected"), "{error}");
    assert!(error.contains("(peer up)"), "{error}");
}

/// What BIRD 3.3.2 told, with one peer that is up: both ends of each table
/// before any route. (At its first route it ended by an assertion of its
/// own.)
#[test]
fn what_bird_told_is_read() {
    let bytes = include_bytes!("files/bird-3.3.2.bmp");
    // The initiation stands by itself.
    let (first, told) = bytes.split_at(33);
    let mut fed = Fed::new(StationLimits::default());
    fed.first_of(first);
    fed.says(told);
    let status = fed.status("bmp");
    let feed = status.feed.unwrap();
    let routers = feed.routers.unwrap();
    assert_eq!((routers[0].name.as_str(), routers[0].peers_up), ("bird", 1));
    assert_eq!(routers[0].description, "BIRD of the lab");
    for table in ["bmp:192.0.2.2@bird", "bmp:192.0.2.2_post@bird"] {
        let status = fed.status(table);
        assert_eq!(status.phase, Phase::Live, "{table}");
        let monitored = status.feed.unwrap().monitored.unwrap();
        assert_eq!((monitored.asn, monitored.is_up), (65_002, true));
    }
}
