//! NAT-PMP (RFC 6886), version 0 of the same port.

use std::net::Ipv4Addr;

use fingerpost_nat::{Config, Nat};

use super::trial::*;

fn request(opcode: u8, port: u16, external: u16, lifetime: u32) -> Vec<u8> {
    let mut bytes = vec![0, opcode, 0, 0];
    bytes.extend(port.to_be_bytes());
    bytes.extend(external.to_be_bytes());
    bytes.extend(lifetime.to_be_bytes());
    bytes
}

/// Result, inside port, outside port, lifetime.
fn mapped(nat: &mut Nat, request: &[u8], now: u64) -> (u16, u16, u16, u32) {
    let answer = ask(nat, CLIENT, request, now).unwrap();
    assert_eq!((answer.len(), answer[0]), (16, 0));
    assert_eq!(answer[1], request[1] | 0x80);
    let half = |at: usize| u16::from_be_bytes([answer[at], answer[at + 1]]);
    let lifetime = u32::from_be_bytes(answer[12..].try_into().unwrap());
    (half(2), half(8), half(10), lifetime)
}

#[test]
fn a_host_hears_which_address_it_has() {
    let aliases = [ALIAS, Ipv4Addr::new(192, 0, 2, 2)];
    let mut config = Config::new(&aliases);
    config.pcp.addresses = vec![SERVER];
    let mut nat = Nat::new(config).unwrap();
    let mut seen = [false; 2];
    for host in 1..40 {
        let client = Ipv4Addr::new(10, 0, 1, host);
        let answer = ask(&mut nat, client, &[0, 0], 9_000).unwrap();
        assert_eq!(answer[..8], [0, 0x80, 0, 0, 0, 0, 0, 0]);
        // It is the one that its packets leave with.
        let (_, source) = send(&mut nat, UDP, (client, 5), (STRANGER, 80), 9_000);
        assert_eq!(answer[8..], source.0.octets());
        seen[usize::from(source.0 == aliases[1])] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn a_port_is_mapped_prolonged_and_given_back() {
    let mut nat = Nat::new(config()).unwrap();
    for (opcode, protocol) in [(1, UDP), (2, TCP)] {
        let wanted = request(opcode, 4_000, 40_000, 7_200);
        assert_eq!(mapped(&mut nat, &wanted, 0), (0, 4_000, 40_000, 7_200));
        let reached = come(&mut nat, protocol, (STRANGER, 1), (ALIAS, 40_000), 0);
        assert_eq!(reached, Some((CLIENT, 4_000)));
        // Something else suggested: it is what it was.
        let again = request(opcode, 4_000, 40_001, 7_200);
        assert_eq!(mapped(&mut nat, &again, 1).2, 40_000);
        let gone = request(opcode, 4_000, 0, 0);
        assert_eq!(mapped(&mut nat, &gone, 0), (0, 4_000, 0, 0));
        let reached = come(&mut nat, protocol, (STRANGER, 2), (ALIAS, 40_000), 0);
        assert_eq!(reached, None);
        for port in [1, 2, 3] {
            mapped(&mut nat, &request(opcode, port, 0, 60), 0);
        }
        assert_eq!(leases(&nat).len(), 3);
        assert_eq!(mapped(&mut nat, &request(opcode, 0, 0, 0), 0), (0, 0, 0, 0));
        assert_eq!(leases(&nat), []);
    }
}

#[test]
fn what_pcp_has_asked_for_is_not_natpmps() {
    let mut nat = Nat::new(config()).unwrap();
    map(4_000).ask(&mut nat, 0);
    assert_eq!(
        mapped(&mut nat, &request(1, 4_000, 0, 60), 0),
        (2, 4_000, 0, 0)
    );
    assert_eq!(
        mapped(&mut nat, &request(1, 4_000, 0, 0), 0),
        (2, 4_000, 0, 0)
    );
    assert_eq!(mapped(&mut nat, &request(1, 0, 0, 0), 0), (0, 0, 0, 0));
    assert_eq!(leases(&nat).len(), 1);
    // All ports of a host are nobody's to ask for.
    assert_eq!(mapped(&mut nat, &request(1, 0, 0, 60), 0).0, 2);
}

#[test]
fn an_unknown_opcode_is_refused() {
    let mut nat = Nat::new(config()).unwrap();
    let answer = ask(&mut nat, CLIENT, &[0, 5, 0, 0], 0).unwrap();
    assert_eq!(answer, [0, 0x85, 0, 5, 0, 0, 0, 0]);
}

#[test]
fn who_has_what_it_may_have_gets_no_more() {
    let mut config = config();
    config.pcp.most_ports = 2;
    let mut nat = Nat::new(config).unwrap();
    for port in [1, 2] {
        assert_eq!(mapped(&mut nat, &request(1, port, 0, 60), 0).0, 0);
    }
    assert_eq!(mapped(&mut nat, &request(1, 3, 0, 60), 0), (4, 3, 0, 0));
}
