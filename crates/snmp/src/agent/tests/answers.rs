//! Get, GetNext, Set and what is no request, in v1 and v2c.

use super::*;
use crate::message::V2C;

const DESCR: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 1, 0];
const OBJECT_ID: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 2, 0];
const NOWHERE: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 1, 7];
const COUNTER64: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 10, 1, 3, 50];
const LAST: &[u32] = &[1, 3, 6, 1, 2, 1, 2];

#[test]
fn get_in_the_order_asked() {
    let mut bench = Bench::new();
    let response = bench.ask(V2C, &Ask::of(PduKind::Get, &[OBJECT_ID, NOWHERE, DESCR]));
    assert_eq!((response.status, response.index), (0, 0));
    assert_eq!(response.names(), [OBJECT_ID, NOWHERE, DESCR]);
    let expected = [
        Owned::Name(vec![1, 3, 6, 1, 4, 1, 8072]),
        Owned::Nothing(tag::NO_SUCH_INSTANCE),
        Owned::Bytes(tag::OCTET_STRING, b"a router with a full table".into()),
    ];
    let found = response.bindings.iter().map(|(_, value)| value.clone());
    assert_eq!(found.collect::<Vec<_>>(), expected);
    // More names than one batch has, some twice.
    let many: Vec<&[u32]> = [DESCR, OBJECT_ID].into_iter().cycle().take(35).collect();
    assert_eq!(bench.ask(V2C, &Ask::of(PduKind::Get, &many)).names(), many);
    assert_eq!(bench.agent.counters().snmp.in_get_requests, 2);
    assert_eq!(bench.agent.counters().snmp.in_total_req_vars, 38);
}

#[test]
fn nothing_asked_nothing_answered() {
    let mut bench = Bench::new();
    for kind in [
        PduKind::Get,
        PduKind::GetNext,
        PduKind::GetBulk,
        PduKind::Set,
    ] {
        let response = bench.ask(V2C, &Ask::of(kind, &[]));
        assert_eq!(
            (response.status, response.bindings.len()),
            (0, 0),
            "{kind:?}"
        );
    }
}

#[test]
fn v1_says_no_such_name() {
    let mut bench = Bench::new();
    for (kind, second) in [
        (PduKind::Get, NOWHERE),
        (PduKind::Get, COUNTER64),
        (PduKind::GetNext, LAST),
    ] {
        let response = bench.ask(V1, &Ask::of(kind, &[DESCR, second, OBJECT_ID]));
        let status = ErrorStatus::NoSuchName as i32;
        assert_eq!((response.status, response.index), (status, 2));
        assert_eq!(response.names(), [DESCR, second, OBJECT_ID]);
        let untouched = |(_, value): &(_, Owned)| *value == Owned::Nothing(tag::NULL);
        assert!(response.bindings.iter().all(untouched));
    }
    assert_eq!(bench.agent.counters().snmp.out_no_such_names, 3);
}

#[test]
fn v1_passes_over_counter64() {
    let mut bench = Bench::new();
    // The last row of the column before.
    let before: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 10, 1, 2, 2_000];
    let response = bench.ask(V1, &Ask::of(PduKind::GetNext, &[before]));
    assert_eq!(response.names(), [&[1, 3, 6, 1, 2, 1, 1, 10, 1, 4, 50][..]]);
}

#[test]
fn get_next_to_the_end() {
    let mut bench = Bench::new();
    let objects = fixture::objects();
    let mut name = vec![0, 0];
    for expected in objects.0.keys() {
        let response = bench.ask(V2C, &Ask::of(PduKind::GetNext, &[&name]));
        assert_eq!(response.names(), [&expected[..]]);
        name.clone_from(expected);
    }
    let response = bench.ask(V2C, &Ask::of(PduKind::GetNext, &[&name]));
    let end = (name, Owned::Nothing(tag::END_OF_MIB_VIEW));
    assert_eq!(response.bindings, [end]);
}

#[test]
fn nothing_can_be_written() {
    let mut bench = Bench::new();
    let response = bench.ask(V2C, &Ask::of(PduKind::Set, &[DESCR, OBJECT_ID]));
    let status = ErrorStatus::NotWritable as i32;
    assert_eq!((response.status, response.index), (status, 1));
    let response = bench.ask(V1, &Ask::of(PduKind::Set, &[DESCR]));
    assert_eq!(response.status, ErrorStatus::NoSuchName as i32);
    // A stranger's view has no such object.
    let datagram = Ask::of(PduKind::Set, &[DESCR]).datagram(V2C, b"public");
    let answer = bench.send(&datagram, STRANGER).expect("an answer");
    let Ok(Message::Community(mut message)) = Message::read(&answer) else {
        panic!("no message");
    };
    let response = Response::read(&mut message.pdu);
    assert_eq!(response.status, ErrorStatus::NoAccess as i32);
    assert_eq!(bench.agent.counters().snmp.in_bad_community_uses, 3);
    assert_eq!(bench.agent.counters().snmp.in_set_requests, 3);
}

#[test]
fn what_is_dropped_and_where_it_is_counted() {
    let mut bench = Bench::new();
    let get = Ask::of(PduKind::Get, &[DESCR]);
    let mut sent = 0;
    let mut dropped = |datagram: &[u8], reason| {
        sent += 1;
        assert_eq!(bench.send(datagram, ALLOWED), Err(reason));
        *bench.agent.counters()
    };
    let counters = dropped(&get.datagram(2, b"public"), Reason::Version(2));
    assert_eq!(counters.snmp.in_bad_versions, 1);
    let counters = dropped(&get.datagram(V2C, b"Public"), Reason::Community);
    assert_eq!(counters.snmp.in_bad_community_names, 1);
    for kind in [
        PduKind::Response,
        PduKind::Trap,
        PduKind::Inform,
        PduKind::Report,
    ] {
        let datagram = Ask::of(kind, &[DESCR]).datagram(V2C, b"public");
        dropped(&datagram, Reason::Handler(kind));
    }
    let bulk = Ask::bulk(0, 1, &[DESCR]).datagram(V1, b"public");
    let tag = PduKind::GetBulk.tag();
    let counters = dropped(&bulk, Reason::Malformed(Malformed::Value(tag)));
    assert_eq!(counters.mpd.unknown_pdu_handlers, 4);
    assert_eq!(counters.snmp.in_asn_parse_errs, 1);
    let mut behind = get.datagram(V2C, b"public");
    behind.push(0);
    let counters = dropped(&behind, Reason::Malformed(Malformed::Trailing));
    assert_eq!(counters.snmp.in_asn_parse_errs, 2);
    assert_eq!((counters.snmp.in_pkts, counters.snmp.out_pkts), (sent, 0));
}

#[test]
fn too_big_as_each_version_says_it() {
    let mut bench = Bench::new();
    let long: &[u32] = &[11; 128][..];
    let name = [&DESCR[..7], &long[..121]].concat();
    let three = [&name[..], &name, &name];
    let response = bench.ask(V2C, &Ask::of(PduKind::Get, &three));
    let status = ErrorStatus::TooBig as i32;
    assert_eq!((response.status, response.index), (status, 0));
    assert!(response.bindings.is_empty());
    let response = bench.ask(V1, &Ask::of(PduKind::Get, &three));
    assert_eq!((response.status, response.index), (status, 0));
    assert_eq!(response.names(), three);
    assert_eq!(bench.agent.counters().snmp.out_too_bigs, 2);
}

#[test]
fn a_stranger_gets_little() {
    let mut config = fixture::config();
    config.amplification = 1;
    let mut bench = Bench::over(fixture::objects(), config);
    let table: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 10];
    let bulk = Ask::bulk(0, i32::MAX, &[table]).datagram(V2C, b"public");
    // Not a single binding is as short as the name asked for.
    let answer = bench.send(&bulk, STRANGER).expect("tooBig");
    assert!(answer.len() <= bulk.len());
    assert_eq!(bench.agent.counters().snmp.out_too_bigs, 1);
    bench.agent.config.amplification = 0;
    assert_eq!(bench.send(&bulk, STRANGER), Err(Reason::TooBig));
    assert_eq!(bench.agent.counters().snmp.silent_drops, 1);
    bench.agent.config.amplification = 10;
    let answer = bench.send(&bulk, STRANGER).expect("some bindings");
    assert!((bulk.len() * 9..=bulk.len() * 10).contains(&answer.len()));
    let answer = bench.send(&bulk, ALLOWED).expect("more bindings");
    assert!((1_300..=1_400).contains(&answer.len()));
    // The same source by its other name.
    let mapped = "::ffff:127.0.0.1".parse().expect("an address");
    assert_eq!(bench.send(&bulk, mapped), Ok(answer));
}

#[test]
fn names_as_long_as_can_be() {
    let mut bench = Bench::new();
    let longest = [&[1, 3][..], &[u32::MAX; 126]].concat();
    for kind in [PduKind::Get, PduKind::GetNext] {
        let response = bench.ask(V2C, &Ask::of(kind, &[&longest]));
        assert_eq!(response.names(), [&longest[..]]);
    }
    let longer = [&longest[..], &[1]].concat();
    let datagram = Ask::of(PduKind::GetNext, &[&longer]).datagram(V2C, b"public");
    let name = Reason::Malformed(Malformed::Name);
    assert_eq!(bench.send(&datagram, ALLOWED), Err(name));
}

#[test]
fn what_is_told_by_name_only_is_for_communities_with_a_context() {
    let mut bench = Bench::new();
    let datagram = Ask::of(PduKind::Get, &[DESCR]).datagram(V2C, b"public");
    bench.send(&datagram, ALLOWED).expect("an answer");
    bench.by_name = true;
    let refused = bench.send(&datagram, ALLOWED);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(bench.agent.counters().unknown_contexts, 1);
}
