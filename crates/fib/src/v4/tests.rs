//! What only the IPv4 layout can get wrong.

use memory::quiescent::Domain;

use super::*;
use crate::tests::{lookup, table};
use crate::{Change4, Config, Error, fib};

#[test]
fn a_slot_full_of_host_routes_is_exact_and_gives_its_space_back() {
    let (domain, mut writer, reader) = table();
    let hosts: Vec<u32> = (0x0a00_0000..0x0a00_4000).collect();
    let change = |address: &u32, next_hop| Change4 {
        prefix: *address,
        len: 32,
        next_hop,
    };
    let next_hop = |address: u32| 1 + (address.wrapping_mul(0x9e37_79b9) >> 18) as u16;
    let added: Vec<Change4> = hosts
        .iter()
        .map(|address| change(address, Some(next_hop(*address))))
        .collect();
    let before = writer.stats().lookup_bytes;
    writer.apply(&added).unwrap();
    let expected: Vec<u16> = hosts.iter().map(|address| next_hop(*address)).collect();
    assert_eq!(lookup(&domain, &reader, &hosts), expected);
    let withdrawn: Vec<Change4> = hosts.iter().map(|address| change(address, None)).collect();
    writer.apply(&withdrawn).unwrap();
    writer.reclaim();
    assert_eq!(lookup(&domain, &reader, &hosts), vec![0; hosts.len()]);
    assert_eq!(writer.stats().retired_bytes, 0);
    assert_eq!(writer.stats().lookup_bytes, before);
}

#[test]
fn without_space_answers_stay_and_come_when_there_is_some() {
    let domain = Domain::new(2);
    let config = Config {
        max_bytes: 2 << 20,
        ..Config::default()
    };
    let (mut writer, reader) = fib(config, &domain).unwrap();
    // Half of 2 MiB is slots; 33 slots of host routes take more than 1 MiB.
    let host = |address, next_hop| Change4 {
        prefix: address,
        len: 32,
        next_hop,
    };
    let all: Vec<Change4> = (0..33 << REST_BITS)
        .map(|address| host(address, Some(1 + (address & 1) as u16)))
        .collect();
    let error = writer.apply(&all).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    // A slot's routes withdrawn at a time, from the last.
    let mut rest = all.as_slice();
    let last = loop {
        let (before, slot) = rest.split_at(rest.len() - (1 << REST_BITS));
        let withdrawn: Vec<Change4> = slot.iter().map(|route| host(route.prefix, None)).collect();
        rest = before;
        if writer.apply(&withdrawn).is_ok() {
            break before.len() as u32;
        }
    };
    let addresses: Vec<u32> = (0..last).collect();
    let expected: Vec<u16> = addresses.iter().map(|at| 1 + (at & 1) as u16).collect();
    assert_eq!(lookup(&domain, &reader, &addresses), expected);
}
