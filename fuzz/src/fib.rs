//! Changes of forwarding tables, sensible or not, against a plain map asked
//! longest first.

use std::collections::BTreeMap;

use fingerpost_fib::{Change, Change4, Change6, Config, Error, fib};
use memory::quiescent::Domain;

/// Few enough that the limit is met.
const MAX_ROUTES: usize = 12;
const CONFIG: Config = Config {
    max_routes: MAX_ROUTES,
    max_bytes: 4 << 20,
};

/// Changes that are made of one input: each is checked against all before it,
/// and an input of thousands would take seconds.
const MAX_CHANGES: usize = 40;

/// Changes of an IPv4 table, seven bytes each: length, next hop, address.
pub fn fib4_changes(bytes: &[u8]) {
    let domain = Domain::new(1);
    let (mut writer, reader) = fib(CONFIG, &domain).expect("4 MiB of address space");
    let mut registered = domain.register().expect("the only reader");
    let mut oracle = BTreeMap::new();
    let mut addresses = vec![0, u32::MAX];
    for bytes in bytes.chunks_exact(7).take(MAX_CHANGES) {
        let change = Change4 {
            prefix: u32::from_be_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]),
            len: bytes[0],
            next_hop: next_hop([bytes[1], bytes[2]]),
        };
        let (prefix, len) = (change.prefix.into(), change.len);
        note(&mut oracle, 32, prefix, len, change.next_hop, || {
            writer.apply(&[change])
        });
        let last = change.prefix | u32::MAX.checked_shr(change.len.into()).unwrap_or(0);
        addresses.extend([change.prefix, change.prefix.wrapping_sub(1)]);
        addresses.extend([last, last.wrapping_add(1)]);
        let mut answers = vec![0xffff; addresses.len()];
        reader.lookup(&registered.enter(), &addresses, &mut answers);
        for (address, answer) in addresses.iter().zip(answers) {
            assert_eq!(
                answer,
                longest(&oracle, 32, (*address).into()),
                "{address:#x}"
            );
        }
    }
    assert_eq!(writer.stats().routes, oracle.len());
}

/// Changes of an IPv6 table, nineteen bytes each.
pub fn fib6_changes(bytes: &[u8]) {
    let domain = Domain::new(1);
    let (mut writer, reader) = fib(CONFIG, &domain).expect("4 MiB of address space");
    let mut registered = domain.register().expect("the only reader");
    let mut oracle = BTreeMap::new();
    let mut addresses = vec![0, u128::MAX];
    for bytes in bytes.chunks_exact(19).take(MAX_CHANGES) {
        let prefix: [u8; 16] = bytes[3..].try_into().expect("16 of 19 bytes");
        let change = Change6 {
            prefix: u128::from_be_bytes(prefix),
            len: bytes[0],
            next_hop: next_hop([bytes[1], bytes[2]]),
        };
        let Change { prefix, len, .. } = change;
        note(&mut oracle, 128, prefix, len, change.next_hop, || {
            writer.apply(&[change])
        });
        let last = prefix | u128::MAX.checked_shr(len.into()).unwrap_or(0);
        addresses.extend([prefix, prefix.wrapping_sub(1), last, last.wrapping_add(1)]);
        let mut answers = vec![0xffff; addresses.len()];
        reader.lookup(&registered.enter(), &addresses, &mut answers);
        for (address, answer) in addresses.iter().zip(answers) {
            assert_eq!(answer, longest(&oracle, 128, *address), "{address:#x}");
        }
    }
    assert_eq!(writer.stats().routes, oracle.len());
}

/// All ones withdraw.
fn next_hop(bytes: [u8; 2]) -> Option<u16> {
    Some(u16::from_be_bytes(bytes)).filter(|next_hop| *next_hop != u16::MAX)
}

/// A change here and there; both take it or both refuse it.
fn note(
    oracle: &mut BTreeMap<(u8, u128), u16>,
    width: u8,
    prefix: u128,
    len: u8,
    next_hop: Option<u16>,
    apply: impl FnOnce() -> Result<(), Error>,
) {
    let is_sound = len <= width
        && masked(prefix, width, len) == prefix
        && next_hop.is_none_or(|next_hop| (1..=0x7fff).contains(&next_hop));
    let is_known = oracle.contains_key(&(len, prefix));
    let is_full = is_sound && next_hop.is_some() && !is_known && oracle.len() == MAX_ROUTES;
    assert_eq!(apply().is_ok(), is_sound && !is_full);
    if is_sound && !is_full {
        match next_hop {
            Some(next_hop) => oracle.insert((len, prefix), next_hop),
            None => oracle.remove(&(len, prefix)),
        };
    }
}

fn longest(oracle: &BTreeMap<(u8, u128), u16>, width: u8, address: u128) -> u16 {
    let mut longest_first = oracle.iter().rev();
    let found = longest_first.find(|((len, prefix), _)| masked(address, width, *len) == *prefix);
    found.map_or(0, |(_, next_hop)| *next_hop)
}

fn masked(address: u128, width: u8, len: u8) -> u128 {
    let hosts = u32::from(width - len.min(width));
    let kept = u128::MAX.checked_shl(hosts).unwrap_or(0);
    address & kept
}
