//! What comes of records: peers, best paths, changes, and what cannot be
//! read.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::net::IpAddr;
use std::sync::Arc;

use fingerpost_bgp::mrt::{Header, Reader};
use fingerpost_bgp::{Bad, Rib};
use ipnet::IpNet;
use lab::Random;
use lab::mrt::{self, Attributes};
use table::{Limits, OfOwner, Packet, Phase, Source, Tables};

const ONE: (IpAddr, u32) = (IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 3_001);
const TWO: (IpAddr, u32) = (IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 3_002);

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn path(numbers: &[u32]) -> Attributes {
    Attributes::default()
        .origin(0)
        .as_path(&[(2, numbers.to_vec())])
        .next_hop("198.51.100.1".parse().unwrap())
}

fn header(seconds: u64, kind: u16, subtype: u16) -> Header {
    Header {
        at_micros: seconds * 1_000_000,
        kind,
        subtype,
    }
}

/// A table of two peers; the first has the longer paths.
fn dumped(prefixes: &[&str]) -> Rib {
    let mut rib = Rib::new(Limits::default());
    dump(&mut rib, prefixes);
    rib
}

fn dump(rib: &mut Rib, prefixes: &[&str]) {
    rib.take(&header(10, 13, 1), &mrt::peer_index(&[ONE, TWO]))
        .unwrap();
    let (long, short) = (path(&[3_001, 7, 8]), path(&[3_002, 8]));
    for prefix in prefixes {
        let entries = [(0, None, &long.0[..]), (1, None, &short.0[..])];
        let (subtype, body) = mrt::rib(0, net(prefix), &entries);
        rib.take(&header(10, 13, subtype), &body).unwrap();
    }
    rib.publish();
}

fn tables(rib: &Rib) -> Arc<Tables> {
    rib.source().reader().snapshot()
}

/// The prefixes of a table, each with its neighbour AS.
fn shown(tables: &Tables) -> Vec<(String, u32)> {
    let routes = tables.routes.iter();
    let shown = routes.map(|route| {
        let path = route.body.path.as_path().unwrap();
        (route.prefix.to_string(), path.neighbour().unwrap())
    });
    shown.collect()
}

fn of(rib: &Rib, peer: &str) -> Vec<(String, u32)> {
    shown(&tables(rib).of(peer).unwrap())
}

fn all(prefixes: &[&str], neighbour: u32) -> Vec<(String, u32)> {
    prefixes
        .iter()
        .map(|of| ((*of).to_owned(), neighbour))
        .collect()
}

#[test]
fn peers_have_tables_of_their_own_and_the_best_paths_are_the_files() {
    let some = ["10.0.0.0/8", "10.1.0.0/16"];
    let rib = dumped(&some);
    assert_eq!(of(&rib, "peer-192.0.2.1"), all(&some, 3_001));
    assert_eq!(of(&rib, "peer-192.0.2.2"), all(&some, 3_002));
    let best = tables(&rib);
    assert_eq!(shown(&best), all(&some, 3_002));
    let packet = Packet::to("10.1.2.3".parse().unwrap());
    let route = best.route_of(&packet).unwrap().route.unwrap();
    assert_eq!(route.prefix, net("10.1.0.0/16"));
    assert_eq!(
        route.body.next_hops.as_slice()[0].gateway,
        Some("198.51.100.1".parse().unwrap())
    );
    let source = rib.source();
    assert_eq!(source.status().phase, Phase::Live);
    assert_eq!((source.incomplete(), source.now_millis()), (None, 10_000));
}

#[test]
fn what_peers_say_later_changes_their_tables_and_the_best() {
    let mut rib = dumped(&["10.0.0.0/8", "10.1.0.0/16"]);
    let say = |rib: &mut Rib, seconds, peer, gone: &[&str], new: &Attributes, there: &[&str]| {
        let nets = |all: &[&str]| -> Vec<IpNet> { all.iter().map(|of| net(of)).collect() };
        let body = mrt::update(peer, &nets(gone), new, &nets(there));
        rib.take(&header(seconds, 17, 4), &body).unwrap();
        rib.publish();
    };
    say(
        &mut rib,
        20,
        TWO,
        &["10.0.0.0/8", "99.0.0.0/8"],
        &Attributes::default(),
        &[],
    );
    assert_eq!(of(&rib, "peer-192.0.2.2"), all(&["10.1.0.0/16"], 3_002));
    assert_eq!(
        shown(&tables(&rib)),
        [("10.0.0.0/8".into(), 3_001), ("10.1.0.0/16".into(), 3_002)]
    );
    // A longer path takes the place of the shorter; a new peer has one.
    say(
        &mut rib,
        21,
        TWO,
        &[],
        &path(&[3_002, 1, 2, 3]),
        &["10.1.0.0/16"],
    );
    assert_eq!(
        shown(&tables(&rib)),
        all(&["10.0.0.0/8", "10.1.0.0/16"], 3_001)
    );
    let three = ("2001:db8::1".parse().unwrap(), 70_000);
    say(
        &mut rib,
        22,
        three,
        &[],
        &path(&[70_000]),
        &["10.0.0.0/8", "11.0.0.0/8"],
    );
    assert_eq!(
        of(&rib, "peer-2001-db8--1"),
        all(&["10.0.0.0/8", "11.0.0.0/8"], 70_000)
    );
    assert_eq!(
        shown(&tables(&rib)),
        [
            ("10.0.0.0/8".into(), 70_000),
            ("10.1.0.0/16".into(), 3_001),
            ("11.0.0.0/8".into(), 70_000)
        ]
    );
    // Its session ends, and its paths with it; that it comes up says nothing.
    for (old, new, left) in [(5, 6, 2), (6, 1, 0)] {
        rib.take(&header(23, 16, 5), &mrt::state_change(three, old, new))
            .unwrap();
        rib.publish();
        assert_eq!(of(&rib, "peer-2001-db8--1").len(), left);
    }
    assert_eq!(
        shown(&tables(&rib)),
        all(&["10.0.0.0/8", "10.1.0.0/16"], 3_001)
    );
    assert_eq!(rib.source().now_millis(), 23_000);
    let counts = rib.counts();
    assert_eq!(
        (counts.paths, counts.withdrawn, counts.malformed),
        (7, 4, 0)
    );
}

#[test]
fn several_paths_of_a_peer_have_identifiers() {
    let mut rib = Rib::new(Limits::default());
    rib.take(&header(1, 13, 1), &mrt::peer_index(&[ONE]))
        .unwrap();
    let (a, b) = (path(&[3_001, 9]), path(&[3_001]));
    let entries = [
        (0, Some(1), &a.0[..]),
        (0, Some(2), &b.0[..]),
        (0, Some(3), &a.0[..]),
    ];
    let (subtype, body) = mrt::rib(0, net("10.0.0.0/8"), &entries);
    assert_eq!(subtype, 8);
    rib.take(&header(1, 13, subtype), &body).unwrap();
    rib.publish();
    let ids = |rib: &Rib| -> Vec<Option<u32>> {
        let tables = tables(rib).of("peer-192.0.2.1").unwrap();
        tables
            .routes
            .iter()
            .map(|route| route.body.path.path_id())
            .collect()
    };
    assert_eq!(ids(&rib), [Some(1), Some(2), Some(3)]);
    let best = tables(&rib)
        .routes
        .iter()
        .map(|route| route.body.path.path_id())
        .next();
    assert_eq!(best, Some(Some(2)));
    // An update with identifiers: 2 goes, 3 has another path.
    let mut body = mrt::update(ONE, &[], &path(&[3_001, 1]), &[]);
    body.truncate(20);
    let update = [
        &[0, 6, 0, 0, 0, 2, 8, 10][..],
        &(path(&[3_001, 1]).0.len() as u16).to_be_bytes(),
        &path(&[3_001, 1]).0,
        &[0, 0, 0, 3, 8, 10],
    ]
    .concat();
    body.extend_from_slice(&[255; 16]);
    body.extend_from_slice(&(update.len() as u16 + 19).to_be_bytes());
    body.push(2);
    body.extend(update);
    rib.take(&header(2, 16, 9), &body).unwrap();
    rib.publish();
    assert_eq!(ids(&rib), [Some(1), Some(3)]);
}

#[test]
fn a_later_dump_tells_anew_what_its_peers_have() {
    let mut rib = dumped(&["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]);
    let three = ("192.0.2.3".parse().unwrap(), 3);
    let body = mrt::update(three, &[], &path(&[3, 4, 5, 6]), &[net("10.1.0.0/16")]);
    rib.take(&header(20, 16, 4), &body).unwrap();
    dump(&mut rib, &["10.0.0.0/8", "12.0.0.0/8"]);
    // IPv6 is not in it; the third peer neither.
    let v4 = ["10.0.0.0/8", "12.0.0.0/8", "2001:db8::/32"];
    assert_eq!(of(&rib, "peer-192.0.2.1"), all(&v4, 3_001));
    assert_eq!(of(&rib, "peer-192.0.2.3"), all(&["10.1.0.0/16"], 3));
    assert_eq!(
        shown(&tables(&rib)),
        [
            ("10.0.0.0/8".into(), 3_002),
            ("10.1.0.0/16".into(), 3),
            ("12.0.0.0/8".into(), 3_002),
            ("2001:db8::/32".into(), 3_002)
        ]
    );
}

#[test]
fn prefixes_out_of_order_and_again() {
    let mut rib = dumped(&[
        "10.1.0.0/16",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "2001:db8::/32",
        "9.0.0.0/8",
    ]);
    let some = ["9.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"];
    assert_eq!(of(&rib, "peer-192.0.2.1"), all(&some, 3_001));
    assert_eq!(shown(&tables(&rib)), all(&some, 3_002));
    rib.publish();
    assert_eq!(shown(&tables(&rib)), all(&some, 3_002));
}

#[test]
fn peers_are_told_apart_and_have_a_limit() {
    let mut rib = Rib::new(Limits::default());
    // One address and AS, two identifiers.
    rib.take(&header(1, 13, 1), &mrt::peer_index(&[ONE, ONE, TWO]))
        .unwrap();
    let names: Vec<&str> = rib.peers().map(|peer| peer.name()).collect();
    assert_eq!(
        names,
        ["peer-192.0.2.1", "peer-192.0.2.1_2", "peer-192.0.2.2"]
    );
    let many: Vec<(IpAddr, u32)> = (0..1_200_u32)
        .map(|at| (IpAddr::from((0x0a00_0000 + at).to_be_bytes()), at))
        .collect();
    let bad = rib
        .take(&header(2, 13, 1), &mrt::peer_index(&many))
        .unwrap_err();
    assert_eq!(bad, Bad::TooManyPeers(1_024));
    assert_eq!(rib.peers().count(), 1_024);
    assert_eq!(rib.counts().malformed, 1_200 - 1_021);
    // Their entries are left out; the others' are not.
    let some = path(&[1]);
    let entries = [(1_020, None, &some.0[..]), (1_021, None, &some.0[..])];
    let (subtype, body) = mrt::rib(0, net("10.0.0.0/8"), &entries);
    let bad = rib.take(&header(2, 13, subtype), &body).unwrap_err();
    assert_eq!(bad, Bad::NoPeer(1_021));
    rib.publish();
    assert_eq!(
        rib.peers()
            .map(|peer| peer.tables().routes.len())
            .sum::<usize>(),
        1
    );
}

#[test]
fn a_full_table_refuses_what_it_has_no_room_for_and_says_so() {
    let limits = Limits {
        routes: 2,
        ..Limits::default()
    };
    let mut rib = Rib::new(limits);
    dump(&mut rib, &["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"]);
    assert_eq!(
        of(&rib, "peer-192.0.2.1"),
        all(&["10.0.0.0/8", "11.0.0.0/8"], 3_001)
    );
    assert_eq!(shown(&tables(&rib)).len(), 2);
    let source: Arc<dyn Source> = Arc::new(rib.source());
    assert!(source.incomplete().unwrap().contains("routes"));
    let of_one = OfOwner::new(&source, "peer-192.0.2.1").unwrap();
    assert!(of_one.incomplete().unwrap().contains("routes"));
}

/// An entry that cannot be read is left out, and the others are not.
#[test]
fn a_record_that_lies_takes_nobody_along() {
    let good = path(&[3_002]);
    for (lies, why) in [
        (vec![0x40, 1, 2, 0], Bad::Short("an attribute")),
        (
            vec![0x40, 1, 2, 0, 0],
            Bad::Length {
                what: "the origin",
                len: 2,
            },
        ),
        (vec![0x40, 2, 4, 2, 9, 0, 1], Bad::Short("an AS path")),
        (
            vec![0x40, 2, 6, 9, 1, 0, 0, 0, 1],
            Bad::Value {
                what: "the kind of a segment of an AS path",
                value: 9,
            },
        ),
        (
            vec![0x40, 3, 3, 1, 2, 3],
            Bad::Length {
                what: "the next hop",
                len: 3,
            },
        ),
        (vec![0x80, 14, 2, 16, 1], Bad::Short("MP_REACH_NLRI")),
        (
            vec![0xc0, 8, 3, 1, 2, 3],
            Bad::Length {
                what: "the communities",
                len: 3,
            },
        ),
        (vec![0x80, 4], Bad::Short("an attribute")),
    ] {
        let mut rib = Rib::new(Limits::default());
        rib.take(&header(1, 13, 1), &mrt::peer_index(&[ONE, TWO]))
            .unwrap();
        let entries = [(0, None, &lies[..]), (1, None, &good.0[..])];
        let (subtype, body) = mrt::rib(0, net("10.0.0.0/8"), &entries);
        assert_eq!(rib.take(&header(1, 13, subtype), &body).unwrap_err(), why);
        rib.publish();
        assert_eq!(shown(&tables(&rib)), all(&["10.0.0.0/8"], 3_002));
        rib.misses_rows("it lies");
        assert_eq!(
            rib.source().incomplete().unwrap(),
            "degraded: routes miss rows"
        );
        assert_eq!(rib.counts().malformed, 1);
    }
}

/// One attribute may take all the room there is.
#[test]
fn attributes_of_64_kib_are_kept() {
    let communities: Vec<u32> = (0..16_000).collect();
    let big = path(&[3_001]).numbers(0xd0, 8, &communities);
    assert!(big.0.len() > 64_000);
    let mut rib = Rib::new(Limits::default());
    rib.take(&header(1, 13, 1), &mrt::peer_index(&[ONE]))
        .unwrap();
    let (subtype, body) = mrt::rib(0, net("10.0.0.0/8"), &[(0, None, &big.0)]);
    rib.take(&header(1, 13, subtype), &body).unwrap();
    rib.publish();
    let tables = tables(&rib);
    let route = tables.routes.iter().next().unwrap();
    assert_eq!(route.body.path.communities().count(), 16_000);
    assert_eq!(route.body.path.communities().last(), Some((0, 15_999)));
}

/// Files with random changes: nothing panics, no rows come of nothing, and
/// what is cut off leaves what stands before it.
#[test]
fn a_damaged_file_leaves_what_can_be_read() {
    let file = {
        let mut file = mrt::record(10, 13, 1, &mrt::peer_index(&[ONE, TWO]));
        for at in 0..50_u8 {
            let some = path(&[3_001, at.into()]);
            let prefix = net(&format!("10.{at}.0.0/16"));
            let (subtype, body) = mrt::rib(0, prefix, &[(0, None, &some.0), (1, None, &some.0)]);
            file.extend(mrt::record(10, 13, subtype, &body));
        }
        file
    };
    let read = |bytes: &[u8]| {
        let mut rib = Rib::new(Limits::default());
        let mut reader = Reader::new(bytes);
        while let Ok(Some((header, body))) = reader.next_record() {
            let _ = rib.take(&header, body);
        }
        rib.publish();
        rib.peers()
            .map(|peer| peer.tables().routes.len())
            .sum::<usize>()
    };
    assert_eq!(read(&file), 100);
    let mut before = 0;
    for cut in 0..file.len() {
        let rows = read(&file[..cut]);
        assert!(rows >= before && rows <= 100, "{cut}");
        before = rows;
    }
    let mut random = Random::new(1);
    for _ in 0..5_000 {
        let mut changed = file.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(changed.len());
            changed[at] = random.number() as u8;
        }
        assert!(read(&changed) <= 200);
    }
}

#[test]
fn changes_have_the_times_of_their_messages() {
    let mut rib = dumped(&["10.0.0.0/8", "10.1.0.0/16"]);
    let prefix = net("10.1.0.0/16");
    let (short, none) = (path(&[3_001]), Attributes::default());
    for (second, withdrawn, attributes, announced) in [
        (20, &[][..], &short, &[prefix][..]),
        (21, &[prefix][..], &none, &[][..]),
        (21, &[net("10.0.0.0/8")][..], &none, &[][..]),
    ] {
        let body = mrt::update(ONE, withdrawn, attributes, announced);
        rib.take(&header(second, 16, 4), &body).unwrap();
    }
    rib.publish();
    let times = |name: &str| {
        let reader = rib.source().reader().of(name).unwrap();
        let history = reader.history_of(254, prefix, 8);
        let newest = history.newest.iter();
        let newest: Vec<_> = newest.map(|(at, event)| (*at, event.operation)).collect();
        (newest, history.forgotten_at_millis)
    };
    // Of the peer's own path, and of the best, which went to it and back.
    let (of_peer, before) = times("peer-192.0.2.1");
    assert_eq!(before, 10_000);
    let last = (21_000, table::Operation::Deleted);
    assert_eq!((of_peer.len(), of_peer.last()), (2, Some(&last)));
    assert_eq!(of_peer[0].0, 20_000);
    let (best, before) = times("kernel");
    assert_eq!(before, 10_000);
    assert_eq!(
        best.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        [20_000, 21_000]
    );
}

#[test]
fn messages_before_a_dump_keep_their_times() {
    let mut rib = Rib::new(Limits::default());
    let prefix = net("10.0.0.0/8");
    for (second, announced) in [(5, "10.0.0.0/8"), (7, "10.0.0.0/8"), (7, "10.1.0.0/16")] {
        let body = mrt::update(ONE, &[], &path(&[3_001, second as u32]), &[net(announced)]);
        rib.take(&header(second, 16, 4), &body).unwrap();
    }
    dump(&mut rib, &["10.2.0.0/16"]);
    let reader = rib.source().reader().of("kernel").unwrap();
    let history = reader.history_of(254, prefix, 8);
    // The dump has it no more.
    let times: Vec<u64> = history.newest.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [5_000, 7_000, 10_000]);
}

#[test]
fn at_a_limit_several_paths_of_the_only_peer_are_not_all_the_best() {
    let limits = Limits {
        routes: 2,
        ..Limits::default()
    };
    let mut rib = Rib::new(limits);
    rib.take(&header(10, 13, 1), &mrt::peer_index(&[ONE]))
        .unwrap();
    let (long, short) = (path(&[3_001, 7, 8]), path(&[3_001, 8]));
    for (prefix, paths) in [
        (
            "10.0.0.0/8",
            &[(0, Some(1), &long.0[..]), (0, Some(2), &short.0[..])][..],
        ),
        ("10.1.0.0/16", &[(0, Some(1), &short.0[..])]),
    ] {
        let (subtype, body) = mrt::rib(0, net(prefix), paths);
        rib.take(&header(10, 13, subtype), &body).unwrap();
    }
    rib.publish();
    let best: Vec<IpNet> = tables(&rib)
        .routes
        .iter()
        .map(|route| route.prefix)
        .collect();
    assert_eq!(best, [net("10.0.0.0/8"), net("10.1.0.0/16")]);
    let reader = rib.source().reader().of("peer-192.0.2.1").unwrap();
    let own: Vec<IpNet> = reader
        .snapshot()
        .routes
        .iter()
        .map(|route| route.prefix)
        .collect();
    assert_eq!(own, [net("10.0.0.0/8"), net("10.0.0.0/8")]);
}

#[test]
fn of_one_peer_each_path_is_the_best_until_others_come() {
    let mut rib = Rib::new(Limits::default());
    rib.take(&header(10, 13, 1), &mrt::peer_index(&[ONE]))
        .unwrap();
    let prefixes: Vec<IpNet> = (0..5_000_u32)
        .map(|at| IpNet::new((0x0a00_0000 + (at << 8)).to_be_bytes().into(), 24).unwrap())
        .collect();
    for (at, prefix) in (0..).zip(&prefixes) {
        let attributes = path(&[3_001, 10 + at % 700]);
        let entries = [(0, None, &attributes.0[..])];
        let (subtype, body) = mrt::rib(at, *prefix, &entries);
        rib.take(&header(10, 13, subtype), &body).unwrap();
    }
    rib.publish();
    let same = |rib: &Rib| {
        let (all, reader) = (tables(rib), rib.source().reader());
        let of_peer = reader.of("peer-192.0.2.1").unwrap().snapshot();
        let routes = |tables: &Tables| -> Vec<_> {
            tables
                .routes
                .iter()
                .map(|route| route.to_shared())
                .collect()
        };
        (routes(&all), routes(&of_peer))
    };
    let (best, of_peer) = same(&rib);
    assert_eq!((best.len(), &best), (5_000, &of_peer));
    // One body, whoever has it.
    assert!(Arc::ptr_eq(&best[7].body, &of_peer[7].body));
    let via = tables(&rib)
        .routes
        .via("198.51.100.1".parse().unwrap())
        .count();
    assert_eq!(via, 5_000);
    // A better path of another peer, and one that the first takes back.
    let body = mrt::update(TWO, &[], &path(&[3_002]), &[prefixes[7]]);
    rib.take(&header(20, 16, 4), &body).unwrap();
    let body = mrt::update(ONE, &[prefixes[9]], &Attributes::default(), &[]);
    rib.take(&header(20, 16, 4), &body).unwrap();
    rib.publish();
    let (best_now, of_peer_now) = same(&rib);
    assert_eq!((best_now.len(), of_peer_now.len()), (4_999, 4_999));
    assert_eq!(of_peer_now[7], of_peer[7]);
    assert_ne!(best_now[7], of_peer[7]);
    let differ = best_now
        .iter()
        .zip(&of_peer_now)
        .filter(|(best, own)| best != own);
    assert_eq!(differ.count(), 1);
    let other = tables(&rib)
        .routes
        .of_body(table::BodyId::of_number(1))
        .count();
    assert!(other > 0);
}
