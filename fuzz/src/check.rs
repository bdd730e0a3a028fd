//! What is done with the bytes of a target: they are decoded, and a row that
//! comes out is written and decoded again.

use fingerpost_netlink::TooLong;
use fingerpost_netlink::decode::{self, Decoded, Item, Operation};
use fingerpost_netlink::encode::{self, Request};
use fingerpost_netlink::message::messages as walk;

/// A moment of no meaning, far from both ends of time.
const NOW_MILLIS: u64 = 1_700_000_000_000;

/// A received buffer: the walk ends, each message is decoded or refused.
pub fn messages(bytes: &[u8]) {
    let mut seen = 0;
    for message in walk(bytes) {
        seen += 1;
        if let Ok(message) = message {
            // Decoded or refused: both are right, a panic is not.
            let _ = decode::decode(&message, NOW_MILLIS);
        }
    }
    // Each message takes at least its header; the last may be an error.
    assert!(seen <= bytes.len() / 16 + 1, "the walk went in circles");
}

/// Payload of a link's message.
pub fn link(bytes: &[u8]) {
    let _ = decode::link_counters(bytes);
    let _ = decode::link_index(bytes);
    let _ = decode::unannounced(bytes);
    let _ = decode::bridge_port_timers(bytes);
    let _ = decode::bridge_port(bytes);
    if let Ok(row) = decode::link(bytes) {
        let again = written(|out, request| encode::link(out, request, &row));
        assert!(again.is_none_or(|again| again == Item::Link(row)));
    }
}

/// Payload of an address's message.
pub fn address(bytes: &[u8]) {
    if let Ok(row) = decode::address(bytes, NOW_MILLIS) {
        let again = written(|out, request| encode::address(out, request, &row));
        assert!(again.is_none_or(|again| again == Item::Address(row)));
    }
}

/// Payload of a neighbour's message.
pub fn neighbour(bytes: &[u8]) {
    let _ = decode::neighbour_ages(bytes);
    if let Ok(row) = decode::neighbour(bytes) {
        let again = written(|out, request| encode::neighbour(out, request, &row));
        assert!(again.is_none_or(|again| again == Item::Neighbour(row)));
    }
}

/// Payload of a forwarding entry's message.
pub fn fdb(bytes: &[u8]) {
    if let Ok(mut row) = decode::fdb(bytes) {
        let again = written(|out, request| encode::fdb(out, request, &row));
        if let Some(Item::Fdb(mut again)) = again {
            // Written where it was not read: `SELF` of a bridge's own.
            row.flags |= 2;
            again.flags |= 2;
            assert_eq!(again, row);
        }
    }
}

/// Payload of a route's message, of any family. What only the kernel tells
/// is not written, so that only the place, metrics and tunnels must come
/// again.
pub fn route(bytes: &[u8]) {
    let _ = decode::other_route(bytes);
    let _ = decode::multicast_route(bytes);
    let _ = decode::announced_prefix(bytes);
    let _ = decode::bridge_groups(bytes);
    if let Ok(row) = decode::route(bytes, NOW_MILLIS) {
        let again = written(|out, request| encode::route(out, request, &row));
        if let Some(Item::Route(again)) = again {
            assert_eq!(again.with_body(()), row.with_body(()));
            assert_eq!(again.body.metrics, row.body.metrics);
            let (hops, again) = (row.body.next_hops, again.body.next_hops);
            for (hop, again) in hops.as_slice().iter().zip(again.as_slice()) {
                assert_eq!(again.encap, hop.encap);
            }
        }
    }
}

/// Payload of a next-hop object's message.
pub fn nexthop(bytes: &[u8]) {
    let _ = decode::nexthop_bucket(bytes);
    if let Ok(row) = decode::nexthop(bytes) {
        let again = written(|out, request| encode::nexthop(out, request, &row));
        if let Some(Item::Nexthop(again)) = again {
            assert_eq!((again.id, again.link), (row.id, row.link));
            assert_eq!((again.encap, again.rest), (row.encap, row.rest));
        }
    }
}

/// Payload of a rule's message.
pub fn rule(bytes: &[u8]) {
    if let Ok(row) = decode::rule(bytes) {
        let again = written(|out, request| encode::rule(out, request, &row));
        if let Some(Item::Rule(again)) = again {
            let place = (again.priority, again.table, again.source);
            assert_eq!(place, (row.priority, row.table, row.source));
            assert_eq!(again.rare, row.rare);
        }
    }
}

/// What a row is read as after it was written; `None` if it did not fit or
/// is not of a family that has rows.
fn written(write: impl FnOnce(&mut Vec<u8>, &Request) -> Result<(), TooLong>) -> Option<Item> {
    let request = Request {
        operation: Operation::New,
        flags: 0,
        sequence: 1,
        now_millis: NOW_MILLIS,
    };
    let mut bytes = Vec::new();
    write(&mut bytes, &request).ok()?;
    let mut walk = walk(&bytes);
    let message = walk.next()?.expect("a sound message");
    assert!(walk.next().is_none());
    match decode::decode(&message, NOW_MILLIS).expect("what was written can be read") {
        Decoded::Announcement(announcement) => Some(announcement.item),
        _ => None,
    }
}
