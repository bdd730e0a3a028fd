//! Incoming: redirects in four shapes, overlaps, any alias, of an address,
//! a pool of servers, one-shot.

use std::net::Ipv4Addr;

use fingerpost_nat::rules::{Handle, Redirect, RuleError, Server};
use fingerpost_nat::{Packet, Verdict};
use packet::build::Ip;
use packet::protocol::UDP;

use crate::trial::{EXT, End, MASQ, PRIVATE, PRIVATES, PUBLIC, Trial};

const OPEN: End = (MASQ, 0xabcd);
const INSIDE: End = (PRIVATE, 0x1234);
const REMOTE: End = (EXT, 0x5678);

fn strict() -> Trial {
    let mut trial = Trial::new();
    trial.mode(|mode| {
        mode.reset_on_address_change = true;
        mode.deny_incoming = true;
    });
    trial
}

fn to_inside(address: Option<Ipv4Addr>, port: Option<u16>) -> Redirect {
    Redirect::port(UDP, INSIDE.0, INSIDE.1, OPEN.1)
        .at(MASQ)
        .from(address, port)
}

fn add(trial: &mut Trial, redirect: Redirect) -> Handle {
    trial.nat.rules_mut().insert(redirect).unwrap()
}

fn end(trial: &mut Trial, handle: Handle) {
    trial.change_there_and_back();
    trial.nat.rules_mut().remove(handle).unwrap();
    trial.udp_in_fails(REMOTE, OPEN);
    assert_eq!(trial.nat.rules_mut().remove(handle), Err(RuleError::Stale));
}

#[test]
fn four_shapes_of_a_redirected_port() {
    let mut trial = strict();
    trial.udp_in_fails(REMOTE, OPEN);
    let (other, other_port) = ((PUBLIC, REMOTE.1), (EXT, 0x6789));
    for (address, port) in [(true, true), (true, false), (false, true), (false, false)] {
        let redirect = to_inside(address.then_some(EXT), port.then_some(REMOTE.1));
        let handle = add(&mut trial, redirect);
        for _ in 0..2 {
            trial.udp_in(REMOTE, OPEN, INSIDE);
        }
        for (remote, reaches) in [(other, !address), (other_port, !port)] {
            if reaches {
                trial.udp_in(remote, OPEN, INSIDE);
            } else {
                trial.udp_in_fails(remote, OPEN);
            }
        }
        end(&mut trial, handle);
    }
}

#[test]
fn overlapping_redirects() {
    let mut trial = strict();
    let to = |host: usize, address, port| {
        let redirect = Redirect::port(UDP, PRIVATES[host], INSIDE.1, OPEN.1).at(MASQ);
        redirect.from(address, port)
    };
    let reach = |trial: &mut Trial, host: usize| {
        trial.nat.forget_flows();
        trial.udp_in(REMOTE, OPEN, (PRIVATES[host], INSIDE.1));
    };
    let any = add(&mut trial, to(0, None, None));
    let later = add(&mut trial, to(1, None, None));
    reach(&mut trial, 1);
    let port = add(&mut trial, to(2, None, Some(REMOTE.1)));
    reach(&mut trial, 2);
    let address = add(&mut trial, to(0, Some(EXT), None));
    reach(&mut trial, 0);
    let exact = add(&mut trial, to(1, Some(EXT), Some(REMOTE.1)));
    add(&mut trial, to(2, None, None));
    reach(&mut trial, 1);
    for (gone, host) in [(exact, 0), (address, 2)] {
        trial.nat.rules_mut().remove(gone).unwrap();
        reach(&mut trial, host);
    }
    trial.nat.rules_mut().remove(port).unwrap();
    reach(&mut trial, 2);
    trial.nat.rules_mut().remove(later).unwrap();
    trial.nat.rules_mut().remove(any).unwrap();
    reach(&mut trial, 2);
}

#[test]
fn any_alias_follows_the_current_one() {
    let mut trial = strict();
    let redirect = Redirect::port(UDP, INSIDE.0, INSIDE.1, OPEN.1);
    add(&mut trial, redirect);
    trial.udp_in(REMOTE, OPEN, INSIDE);
    trial.nat.set_addresses(&[PUBLIC]).unwrap();
    trial.udp_in_fails(REMOTE, OPEN);
    trial.udp_in(REMOTE, (PUBLIC, OPEN.1), INSIDE);
}

#[test]
fn what_leaves_from_a_redirect_leaves_by_its_port() {
    let mut trial = strict();
    add(&mut trial, to_inside(None, None));
    assert_eq!(trial.udp_out(INSIDE, REMOTE, MASQ), OPEN.1);
    trial.udp_in(REMOTE, OPEN, INSIDE);
    let other = trial.udp_out((PRIVATES[1], OPEN.1), REMOTE, MASQ);
    assert_ne!(other, OPEN.1, "nobody else gets the port");
}

#[test]
fn a_redirected_address() {
    let mut trial = Trial::new();
    let first = trial
        .nat
        .rules_mut()
        .insert(Redirect::address(PRIVATES[0], PUBLIC));
    let first = first.unwrap();
    trial.raw_in(EXT, PUBLIC, Some(PRIVATES[0]));
    let second = Redirect::address(PRIVATES[1], PUBLIC);
    let second = trial.nat.rules_mut().insert(second).unwrap();
    // The flow stays, a new one goes to the later.
    trial.raw_in(EXT, PUBLIC, Some(PRIVATES[0]));
    let other = Ipv4Addr::new(18, 52, 86, 121);
    trial.raw_in(other, PUBLIC, Some(PRIVATES[1]));
    let third = Ipv4Addr::new(18, 52, 86, 122);
    trial.raw_out(PRIVATES[0], third, PUBLIC);
    trial.raw_out(PRIVATES[1], Ipv4Addr::new(18, 52, 86, 123), PUBLIC);
    trial.raw_out(PRIVATES[2], third, MASQ);
    trial.mode(|mode| mode.deny_incoming = true);
    trial.raw_in(Ipv4Addr::new(18, 52, 86, 124), PUBLIC, None);
    for handle in [first, second] {
        trial.nat.rules_mut().remove(handle).unwrap();
    }
    trial.nat.forget_flows();
    trial.raw_out(PRIVATES[0], third, MASQ);
}

#[test]
fn servers_take_turns() {
    let mut trial = strict();
    let handle = add(&mut trial, to_inside(None, None));
    for address in PRIVATES {
        let server = Server { address, port: 80 };
        trial.nat.rules_mut().add_server(handle, server).unwrap();
    }
    for turn in 0..6 {
        let remote = (EXT, 0x5678 + turn as u16);
        // The latest first, as in libalias.
        let server = (PRIVATES[2 - turn % 3], 80);
        trial.udp_in(remote, OPEN, server);
        assert_eq!(trial.udp_out(server, remote, MASQ), OPEN.1);
        trial.udp_in(remote, OPEN, server);
    }
}

#[test]
fn one_shot() {
    let mut trial = strict();
    for (address, port) in [(None, None), (Some(EXT), None), (None, Some(REMOTE.1))] {
        let handle = add(&mut trial, to_inside(address, port));
        let refused = trial.nat.rules_mut().make_dynamic(handle, 60_000);
        assert_eq!(refused, Err(RuleError::NotExact));
        trial.nat.rules_mut().remove(handle).unwrap();
    }
    let handle = add(&mut trial, to_inside(Some(EXT), Some(REMOTE.1)));
    trial.nat.rules_mut().make_dynamic(handle, 60_000).unwrap();
    for _ in 0..2 {
        trial.udp_in(REMOTE, OPEN, INSIDE);
    }
    trial.change_there_and_back();
    trial.udp_in_fails(REMOTE, OPEN);
}

#[test]
fn servers_behind_an_address_take_turns() {
    let mut trial = Trial::new();
    let [one, other, _] = PRIVATES;
    let handle = add(&mut trial, Redirect::address(one, PUBLIC));
    for address in [other, one] {
        let server = Server { address, port: 0 };
        trial.nat.rules_mut().add_server(handle, server).unwrap();
    }
    for (client, server) in [(1_000, one), (1_001, other), (1_002, one)] {
        trial.udp_in((EXT, client), (PUBLIC, 80), (server, 80));
    }
    // A flow that is there stays with its server.
    trial.udp_in((EXT, 1_001), (PUBLIC, 80), (other, 80));
}

/// The first packet of two that come together uses a one-shot redirect up;
/// the second has the first's flow.
#[test]
fn two_packets_by_a_redirect_that_is_used_once() {
    for others in [0, 5] {
        let mut trial = Trial::new();
        trial.mode(|mode| mode.deny_incoming = true);
        for other in 0..others {
            let redirect = Redirect::port(UDP, PRIVATE, 80, 9_000 + other);
            trial.nat.rules_mut().insert(redirect).unwrap();
        }
        let (from, to, host) = ((EXT, 4_000), (MASQ, 8_000), (PRIVATE, 5_000));
        let redirect = Redirect::port(UDP, host.0, host.1, to.1);
        let redirect = redirect.at(to.0).from(Some(from.0), Some(from.1));
        let handle = trial.nat.rules_mut().insert(redirect).unwrap();
        let rules = trial.nat.rules_mut();
        rules.make_dynamic(handle, 60_000).unwrap();
        let mut packets: Vec<Vec<u8>> = [from, from, (EXT, 4_001)]
            .iter()
            .map(|from| Ip::new(from.0, to.0).udp(from.1, to.1, b"data"))
            .collect();
        let mut batch: Vec<Packet<'_>> =
            packets.iter_mut().map(|bytes| Packet::new(bytes)).collect();
        trial.nat.translate_in_batch(&mut batch, trial.now);
        let verdicts: Vec<Verdict> = batch.iter().map(|packet| packet.verdict).collect();
        let expected = [Verdict::Translated, Verdict::Translated, Verdict::NoMapping];
        assert_eq!(verdicts, expected);
        assert_eq!(trial.nat.rules().len(), usize::from(others));
    }
}
