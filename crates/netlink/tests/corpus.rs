//! The corpus of the fuzz targets, real kernel messages, replayed through
//! what the targets do: as they are, cut at every length, and with every
//! byte and every length field changed.

#![allow(clippy::expect_used, reason = "a test fails by it")]

#[path = "../../../fuzz/src/check.rs"]
mod check;

/// Values a byte is changed to: the ends of its range, and neighbours of
/// what it was.
fn mutations(byte: u8) -> [u8; 6] {
    [0, 1, 0x7f, 0xff, byte.wrapping_add(1), byte.wrapping_sub(1)]
}

/// Values a length field (16 bits at an even place) is changed to.
const LENGTHS: &[u16] = &[0, 3, 4, 5, 7, 0x7fff, 0xffff];

fn replay(target: &str, check: fn(&[u8])) {
    for bytes in lab::corpus::files(target, 5).expect("the corpus") {
        check(&bytes);
        for len in 0..bytes.len() {
            check(&bytes[..len]);
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for byte in mutations(bytes[at]) {
                changed[at] = byte;
                check(&changed);
            }
            changed[at] = bytes[at];
        }
        for at in (0..bytes.len().saturating_sub(1)).step_by(2) {
            for len in LENGTHS {
                changed[at..at + 2].copy_from_slice(&len.to_ne_bytes());
                check(&changed);
            }
            changed[at..at + 2].copy_from_slice(&bytes[at..at + 2]);
        }
    }
}

#[test]
fn messages() {
    replay("messages", check::messages);
}

#[test]
fn link() {
    replay("link", check::link);
}

#[test]
fn address() {
    replay("address", check::address);
}

#[test]
fn neighbour() {
    replay("neighbour", check::neighbour);
}

#[test]
fn fdb() {
    replay("fdb", check::fdb);
}

#[test]
fn route() {
    replay("route", check::route);
}

#[test]
fn nexthop() {
    replay("nexthop", check::nexthop);
}

#[test]
fn rule() {
    replay("rule", check::rule);
}
