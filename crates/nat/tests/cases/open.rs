//! Unsolicited inbound packets, where they pass and where they are refused:
//! who answers, from where; what must not leave, and what must not come in.

use std::net::Ipv4Addr;

use fingerpost_nat::{Config, Mode, Nat, Verdict};
use packet::build::{Ip, Segment};
use packet::{Ipv4, icmp, tcp};

use crate::trial::{EXT, End, MASQ, PRIVATE, PUBLIC, Trial};

const SERVICE: u16 = 80;
const REMOTE: End = (EXT, 5_000);

/// The router itself, a registered host behind it, and a private one that is
/// reached by its own address, in every mode that lets them be reached: each
/// answers as it was asked, whatever port it may have had otherwise.
#[test]
fn who_was_asked_answers() {
    for (unregistered, same) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut trial = Trial::new();
        trial.mode(|mode| mode.unregistered_only = unregistered);
        trial.same_ports(same);
        for asked in [(MASQ, SERVICE), (PUBLIC, SERVICE), (PRIVATE, SERVICE)] {
            trial.udp_in(REMOTE, asked, asked);
            let answer = trial.try_out(asked, REMOTE);
            assert_eq!(answer, (Verdict::Translated, asked, REMOTE));
            // What the host begins by itself is translated as ever.
            let other = trial.try_out(asked, (EXT, 53));
            let keeps = unregistered && asked.0 != PRIVATE || asked.0 == MASQ && same;
            assert_eq!(other.1 == asked, keeps, "{asked:?}: {other:?}");
        }
        assert_eq!(trial.nat.statistics().flows, 6);
    }
}

/// A ping and a connection to the router.
#[test]
fn the_router_answers_pings_and_connections() {
    let mut trial = Trial::new();
    let mut echo = Ip::new(EXT, MASQ).icmp(icmp::ECHO, 0, [0, 7, 0, 1], b"");
    assert_eq!(trial.nat.translate_in(&mut echo, 0), Verdict::Translated);
    let mut reply = Ip::new(MASQ, EXT).icmp(icmp::ECHO_REPLY, 0, [0, 7, 0, 1], b"");
    let before = reply.clone();
    assert_eq!(trial.nat.translate_out(&mut reply, 0), Verdict::Translated);
    assert_eq!(reply, before);
    let segment = |from: End, to: End, flags| {
        Ip::new(from.0, to.0).tcp(&Segment {
            source_port: from.1,
            destination_port: to.1,
            flags,
            ..Segment::default()
        })
    };
    let mut syn = segment(REMOTE, (MASQ, SERVICE), tcp::SYN);
    assert_eq!(trial.nat.translate_in(&mut syn, 0), Verdict::Translated);
    // Nobody inside gets the port towards this remote while that lasts.
    trial.same_ports(true);
    let mut other = segment((PRIVATE, SERVICE), REMOTE, tcp::SYN);
    assert_eq!(trial.nat.translate_out(&mut other, 0), Verdict::Translated);
    assert_ne!(u16::from_be_bytes([other[20], other[21]]), SERVICE);
    let mut answer = segment((MASQ, SERVICE), REMOTE, tcp::SYN | tcp::ACK);
    let before = answer.clone();
    assert_eq!(trial.nat.translate_out(&mut answer, 0), Verdict::Translated);
    assert_eq!(answer, before);
}

/// A conversation by another alias port is not taken over from outside.
#[test]
fn what_is_answered_stays() {
    let mut trial = Trial::new();
    let own = (MASQ, 4_000);
    let (_, alias, _) = trial.try_out(own, REMOTE);
    assert_ne!(alias, own);
    trial.udp_in(REMOTE, alias, own);
    let mut bytes = Ip::new(REMOTE.0, own.0).udp(REMOTE.1, own.1, b"unasked");
    assert_eq!(trial.nat.translate_in(&mut bytes, 0), Verdict::Passed);
    assert_eq!(trial.try_out(own, REMOTE).1, alias);
}

/// Where unsolicited packets are refused nothing is made; where they pass, a
/// full table lets them pass.
#[test]
fn it_opens_nothing_where_the_door_is_shut() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    trial.udp_in_fails(REMOTE, (MASQ, SERVICE));
    assert_eq!(trial.nat.statistics().flows, 0);
    assert_ne!(trial.try_out((MASQ, SERVICE), REMOTE).1, (MASQ, SERVICE));

    let mut config = Config::new(&[MASQ]);
    config.mode = Mode::default();
    config.limits.initial_flows = 0;
    config.limits.max_flows = 4;
    let mut nat = Nat::new(config).unwrap();
    for port in 1..=4 {
        let mut bytes = Ip::new(PRIVATE, EXT).udp(port, 9, b"");
        assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    }
    let mut bytes = Ip::new(EXT, MASQ).udp(5_000, 80, b"");
    assert_eq!(nat.translate_in(&mut bytes, 0), Verdict::Passed);
}

fn error(from: Ipv4Addr, to: Ipv4Addr, kind: u8, about: &[u8]) -> Vec<u8> {
    Ip::new(from, to).icmp(kind, 1, [0; 4], about)
}

/// RFC 5508 REQ-3 and REQ-5, and redirects.
#[test]
fn errors_that_are_dropped() {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let port = trial.udp_out((PRIVATE, 1), REMOTE, MASQ);
    let sent = Ip::new(MASQ, EXT).udp(port, REMOTE.1, b"data");
    let router = Ipv4Addr::new(203, 0, 113, 1);
    let good = error(router, MASQ, icmp::UNREACHABLE, &sent);
    assert_eq!(
        trial.nat.translate_in(&mut good.clone(), 0),
        Verdict::Translated
    );
    let mut redirect = error(router, MASQ, icmp::REDIRECT, &sent);
    assert_eq!(trial.nat.translate_in(&mut redirect, 0), Verdict::Denied);
    // A wrong checksum around, and of the header inside.
    let mut around = good.clone();
    around[50] ^= 1;
    assert_eq!(trial.nat.translate_in(&mut around, 0), Verdict::Malformed);
    let mut quoted = sent.clone();
    quoted[8] ^= 1;
    let mut inside = error(router, MASQ, icmp::UNREACHABLE, &quoted);
    assert_eq!(trial.nat.translate_in(&mut inside, 0), Verdict::Malformed);
    // About a packet that nobody had translated.
    let strange = Ip::new(EXT, PRIVATE).udp(9, 9, b"data");
    let mut leaving = error(PRIVATE, EXT, icmp::UNREACHABLE, &strange);
    assert_eq!(trial.nat.translate_out(&mut leaving, 0), Verdict::NoMapping);
}

/// A later fragment that goes out before its first one leaves with the alias.
#[test]
fn a_fragment_hides_its_source_before_its_first() {
    let mut config = Config::new(&[MASQ]);
    config.limits.fragments.held_bytes = 0;
    let mut nat = Nat::new(config).unwrap();
    let mut bytes = Ip::new(PRIVATE, EXT).udp(1, 2, &[7; 64]);
    bytes[6..8].copy_from_slice(&3_u16.to_be_bytes());
    Ipv4::new(&mut bytes[..]).unwrap().fill_checksum();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    let ip = Ipv4::new(&bytes[..]).unwrap();
    assert_eq!((ip.source(), ip.checksum_is_right()), (MASQ, true));
}
