//! RFC 7857's updates that no other test shows by itself.

use std::net::Ipv4Addr;

use fingerpost_nat::{Behaviour, Config, Dependence, Nat, Verdict};
use packet::build::{Ip, Segment};
use packet::tcp::{ACK, RST, SYN};
use packet::{Ipv4, Tcp, Udp};

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const STRANGER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

fn nat(change: impl FnOnce(&mut Config)) -> Nat {
    let mut config = Config::new(&[ALIAS]);
    (config.tcp, config.udp) = (Behaviour::FULL_CONE, Behaviour::FULL_CONE);
    config.seed = 5;
    change(&mut config);
    Nat::new(config).unwrap()
}

fn udp_out(nat: &mut Nat, now: u64) -> u16 {
    let mut bytes = Ip::new(HOST, REMOTE).udp(4_000, 9_000, b"data");
    assert_eq!(nat.translate_out(&mut bytes, now), Verdict::Translated);
    let ip = Ipv4::new(&bytes[..]).unwrap();
    Udp::new(ip.payload()).unwrap().source_port()
}

fn udp_in(nat: &mut Nat, from: (Ipv4Addr, u16), port: u16, now: u64) -> Verdict {
    let mut bytes = Ip::new(from.0, ALIAS).udp(from.1, port, b"data");
    nat.translate_in(&mut bytes, now)
}

fn tcp(
    nat: &mut Nat,
    ends: [(Ipv4Addr, u16); 2],
    numbers: [u32; 2],
    flags: u8,
    now: u64,
) -> (Verdict, u16) {
    let [from, to] = ends;
    let mut bytes = Ip::new(from.0, to.0).tcp(&Segment {
        source_port: from.1,
        destination_port: to.1,
        sequence: numbers[0],
        acknowledgement: numbers[1],
        flags,
        window: 60_000,
        ..Segment::default()
    });
    let verdict = match to.0 == ALIAS {
        true => nat.translate_in(&mut bytes, now),
        false => nat.translate_out(&mut bytes, now),
    };
    let ip = Ipv4::new(&bytes[..]).unwrap();
    (verdict, Tcp::new(ip.payload()).unwrap().source_port())
}

/// §5 and §6: what UDP has opened lets no TCP in, and is not TCP's port.
#[test]
fn a_mapping_is_of_one_protocol() {
    let mut nat = nat(|_| {});
    let port = udp_out(&mut nat, 0);
    assert_eq!(
        udp_in(&mut nat, (STRANGER, 1), port, 0),
        Verdict::Translated
    );
    let ends = [(STRANGER, 1), (ALIAS, port)];
    assert_eq!(tcp(&mut nat, ends, [1, 0], SYN, 0).0, Verdict::NoMapping);
    let ends = [(HOST, 4_000), (REMOTE, 9_000)];
    let (verdict, own) = tcp(&mut nat, ends, [1, 0], SYN, 0);
    assert_eq!(verdict, Verdict::Translated);
    let ends = [(STRANGER, 2), (ALIAS, own)];
    assert_eq!(tcp(&mut nat, ends, [1, 0], SYN, 0).0, Verdict::Translated);
    nat.forget_flows();
    assert_eq!(udp_in(&mut nat, (STRANGER, 1), port, 0), Verdict::NoMapping);
}

/// §7: packets that the filter keeps out keep no mapping alive.
#[test]
fn what_is_filtered_refreshes_nothing() {
    let mut nat = nat(|config| config.udp.filtering = Dependence::Address);
    let port = udp_out(&mut nat, 0);
    assert_eq!(
        udp_in(&mut nat, (REMOTE, 9_000), port, 0),
        Verdict::Translated
    );
    // Answered, it lives five minutes.
    for now in (30..300).step_by(30) {
        let verdict = udp_in(&mut nat, (STRANGER, 1), port, now * 1_000);
        assert_eq!(verdict, Verdict::Denied, "{now}");
    }
    let late = udp_in(&mut nat, (REMOTE, 9_000), port, 302_000);
    assert_eq!(late, Verdict::NoMapping);
}

/// §7.1: a host that refuses strangers does not keep its port open by that,
/// where what comes in does not either.
#[test]
fn refusing_strangers_keeps_no_mapping_alive() {
    let mut nat = nat(|config| {
        config.inbound_refresh = false;
        config.timeouts.tcp_established_secs = 600;
    });
    let out = [(HOST, 4_000), (REMOTE, 80)];
    let (_, port) = tcp(&mut nat, out, [100, 0], SYN, 0);
    let back = [(REMOTE, 80), (ALIAS, port)];
    tcp(&mut nat, back, [500, 101], SYN | ACK, 0);
    tcp(&mut nat, out, [101, 501], ACK, 0);
    let mut last = Verdict::Translated;
    let mut open_until = 0;
    for now in (60..3_000).step_by(60) {
        let stranger = (STRANGER, 1_000 + now as u16);
        let at = now * 1_000;
        last = tcp(&mut nat, [stranger, (ALIAS, port)], [1, 0], SYN, at).0;
        if last == Verdict::Translated {
            open_until = now;
            tcp(&mut nat, [(HOST, 4_000), stranger], [0, 2], RST | ACK, at);
        }
    }
    assert_eq!(last, Verdict::NoMapping);
    // The conversation's ten minutes, and what a reset leaves.
    assert!(open_until <= 600 + 240, "{open_until}");
}
