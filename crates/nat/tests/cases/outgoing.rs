//! Outgoing: masquerading, unregistered only, carrier-grade, UDP, same
//! ports, clearing, stress, the port range.

use std::net::Ipv4Addr;

use fingerpost_nat::Verdict;
use lab::Random;
use packet::build::Ip;
use packet::checksum::Sum;
use packet::{Ipv4, protocol};

use crate::trial::{CARRIER, EXT, End, MASQ, PRIVATE, PRIVATES, PUBLIC, Trial};

const PORT: u16 = 0x1234;
const REMOTE: (Ipv4Addr, u16) = (EXT, 0x5678);

#[test]
fn every_source_leaves_as_the_alias() {
    let mut trial = Trial::new();
    for source in [PRIVATES.as_slice(), &[CARRIER, PUBLIC]].concat() {
        trial.raw_out(source, EXT, MASQ);
    }
}

#[test]
fn unregistered_only() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.unregistered_only = true);
    for source in PRIVATES {
        trial.raw_out(source, EXT, MASQ);
    }
    trial.raw_out(CARRIER, EXT, CARRIER);
    trial.raw_out(PUBLIC, EXT, PUBLIC);
    trial.mode(|mode| mode.unregistered_only = false);
    trial.raw_out(PRIVATE, EXT, MASQ);
    // A flow not seen before follows the new mode.
    trial.raw_out(CARRIER, PUBLIC, MASQ);
}

#[test]
fn carrier_grade_addresses() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.carrier_grade = true);
    for source in [PRIVATES.as_slice(), &[CARRIER]].concat() {
        trial.raw_out(source, EXT, MASQ);
    }
    trial.raw_out(PUBLIC, EXT, PUBLIC);
}

#[test]
fn udp_gets_another_port_and_each_host_its_own() {
    let mut trial = Trial::new();
    let first = trial.out(PRIVATES[0], REMOTE, MASQ);
    assert_ne!(first, PORT);
    trial.udp_in(REMOTE, (MASQ, first), (PRIVATES[0], PORT));
    let second = trial.out(PRIVATES[1], REMOTE, MASQ);
    assert_ne!(second, first);
    trial.udp_in(REMOTE, (MASQ, second), (PRIVATES[1], PORT));
    trial.udp_in(REMOTE, (MASQ, first), (PRIVATES[0], PORT));
    assert_eq!(trial.out(PRIVATES[0], REMOTE, MASQ), first, "and stays");
}

#[test]
fn the_same_port_for_the_first_who_wants_it() {
    let mut trial = Trial::new();
    trial.same_ports(true);
    assert_eq!(trial.out(PRIVATES[0], REMOTE, MASQ), PORT);
    trial.udp_in(REMOTE, (MASQ, PORT), (PRIVATES[0], PORT));
    let second = trial.out(PRIVATES[1], REMOTE, MASQ);
    assert_ne!(second, PORT);
    trial.udp_in(REMOTE, (MASQ, second), (PRIVATES[1], PORT));
    trial.udp_in(REMOTE, (MASQ, PORT), (PRIVATES[0], PORT));
}

#[test]
fn a_new_address_clears_the_table() {
    let mut trial = Trial::new();
    trial.same_ports(true);
    trial.mode(|mode| {
        mode.reset_on_address_change = true;
        mode.deny_incoming = true;
    });
    assert_eq!(trial.out(PRIVATES[0], REMOTE, MASQ), PORT);
    trial.udp_in(REMOTE, (MASQ, PORT), (PRIVATES[0], PORT));
    trial.change_there_and_back();
    trial.udp_in_fails(REMOTE, (MASQ, PORT));
    assert_eq!(trial.out(PRIVATES[1], REMOTE, MASQ), PORT);
    trial.udp_in(REMOTE, (MASQ, PORT), (PRIVATES[1], PORT));
}

#[test]
fn stress() {
    let mut trial = Trial::new();
    let mut random = Random::new(1_200);
    for _ in 0..25 {
        let mut flows = Vec::new();
        for number in 0..1_200_u32 {
            let net = [0x0a00_0000, 0xac10_0000, 0xc0a8_0000, 0x6440_0000][number as usize % 4];
            let inside = (
                Ipv4Addr::from(net + random.below(1 << 16) as u32),
                1_000 + random.below(59_000) as u16,
            );
            let remote = (EXT, 1_000 + random.below(59_000) as u16);
            let port = trial.udp_out(inside, remote, MASQ);
            flows.push((inside, remote, port));
        }
        random.shuffle(&mut flows);
        for (inside, remote, port) in flows {
            trial.udp_in(remote, (MASQ, port), inside);
        }
    }
}

#[test]
fn ports_of_a_range_only() {
    let mut trial = Trial::new();
    assert!(trial.out(PRIVATES[0], (EXT, 1), MASQ) >= 0x8000);
    trial.nat.set_ports(2_000..=3_000).unwrap();
    for number in 2..100 {
        let port = trial.out(PRIVATES[0], (EXT, number), MASQ);
        assert!((2_000..=3_000).contains(&port));
    }
    trial.nat.set_ports(4_000..=4_001).unwrap();
    let one = trial.out(PRIVATES[0], (EXT, 500), MASQ);
    let two = trial.out(PRIVATES[1], (EXT, 500), MASQ);
    assert_eq!(one.min(two)..=one.max(two), 4_000..=4_001);
    let (verdict, ..) = trial.try_out((PRIVATES[2], PORT), (EXT, 500));
    assert!(!verdict.goes_on(), "{verdict:?}");
    trial.nat.set_ports(fingerpost_nat::Config::PORTS).unwrap();
    assert!(trial.out(PRIVATES[2], (EXT, 500), MASQ) >= 0x8000);
}

/// UDP-Lite has UDP's ports, and a checksum that may cover the headers alone.
#[test]
fn two_hosts_speak_udp_lite_with_one_remote() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let datagram = |from: End, to: End, data: &[u8]| {
        // What of it is summed: the header.
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, data);
        bytes[9] = protocol::UDP_LITE;
        bytes[24..28].copy_from_slice(&[0, 8, 0, 0]);
        let (pseudo, total) = ([from.0, to.0].map(|end| end.octets()).concat(), bytes.len());
        let length = ((total - 20) as u16).to_be_bytes();
        let pseudo = [&pseudo, &[0, protocol::UDP_LITE][..], &length].concat();
        let sum = Sum::of(&pseudo).and(Sum::of(&bytes[20..28])).checksum();
        bytes[26..28].copy_from_slice(&sum.to_ne_bytes());
        let mut ip = Ipv4::new(&mut bytes[..]).unwrap();
        ip.fill_checksum();
        bytes
    };
    let remote = (EXT, 5_004);
    let mut ports = Vec::new();
    for host in PRIVATES {
        let mut bytes = datagram((host, 4_000), remote, b"data");
        assert_eq!(trial.nat.translate_out(&mut bytes, 0), Verdict::Translated);
        let port = u16::from_be_bytes([bytes[20], bytes[21]]);
        assert_eq!(bytes, datagram((MASQ, port), remote, b"data"));
        ports.push((host, port));
    }
    for (host, port) in ports {
        let mut bytes = datagram(remote, (MASQ, port), b"answer");
        assert_eq!(trial.nat.translate_in(&mut bytes, 0), Verdict::Translated);
        assert_eq!(bytes, datagram(remote, (host, 4_000), b"answer"));
    }
    let mut stranger = datagram((EXT, 5_005), (MASQ, 4_000), b"data");
    assert_eq!(trial.nat.translate_in(&mut stranger, 0), Verdict::NoMapping);
}

/// Of protocols whose ports are not translated the host that has sent last has
/// a remote's answers, as libalias's own tests have it.
#[test]
fn the_last_who_sends_sctp_or_esp_has_the_answers() {
    for of in [132, 50] {
        let mut trial = Trial::new();
        trial.mode(|mode| mode.deny_incoming = true);
        let send = |trial: &mut Trial, host: Ipv4Addr| {
            let mut bytes = Ip::new(host, EXT).packet(of, &[], b"some bytes");
            trial.nat.translate_out(&mut bytes, 0)
        };
        for host in [PRIVATES[0], PRIVATES[1], PRIVATES[0]] {
            assert_eq!(send(&mut trial, host), Verdict::Translated);
            let mut answer = Ip::new(EXT, MASQ).packet(of, &[], b"some bytes");
            assert_eq!(trial.nat.translate_in(&mut answer, 0), Verdict::Translated);
            assert_eq!(answer[16..20], host.octets());
        }
    }
}
