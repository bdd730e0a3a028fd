//! What a request must be, and what each wrong one is told.

use std::net::Ipv4Addr;

use fingerpost_nat::{Config, Nat, PcpConfig, Verdict};
use packet::build::Ip;
use packet::{Ipv4, Udp};

use super::trial::*;

/// The codes of RFC 6887 §7.4.
mod code {
    pub const UNSUPP_VERSION: u8 = 1;
    pub const NOT_AUTHORIZED: u8 = 2;
    pub const MALFORMED_REQUEST: u8 = 3;
    pub const UNSUPP_OPCODE: u8 = 4;
    pub const UNSUPP_OPTION: u8 = 5;
    pub const MALFORMED_OPTION: u8 = 6;
    pub const UNSUPP_PROTOCOL: u8 = 9;
    pub const CANNOT_PROVIDE_EXTERNAL: u8 = 11;
    pub const ADDRESS_MISMATCH: u8 = 12;
    pub const EXCESSIVE_REMOTE_PEERS: u8 = 13;
}

const SHORT_SECS: u32 = 30;
const LONG_SECS: u32 = 1_800;

fn refused(nat: &mut Nat, data: &[u8], code: u8) -> Answer {
    let answer = Answer(ask(nat, CLIENT, data, 0).unwrap());
    assert_eq!(answer.code(), code, "{data:02x?}");
    // The request comes back behind the header (RFC 6887 §8.2).
    let behind = data.get(24..data.len().min(1_100)).unwrap_or_default();
    assert_eq!(answer.0[24..24 + behind.len()], *behind);
    assert_eq!(leases(nat), []);
    answer
}

#[test]
fn each_wrong_request_has_its_answer() {
    let mut nat = Nat::new(config()).unwrap();
    let nat = &mut nat;
    let good = map(4_000).bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let version = refused(nat, &with(0, 3), code::UNSUPP_VERSION);
    assert_eq!(version.lifetime(), LONG_SECS);
    refused(nat, &with(0, 1), code::UNSUPP_VERSION);
    refused(nat, &[9, 1], code::UNSUPP_VERSION);
    refused(nat, &with(1, 3), code::UNSUPP_OPCODE);
    refused(nat, &with(1, 127), code::UNSUPP_OPCODE);
    refused(nat, &good[..20], code::MALFORMED_REQUEST);
    refused(nat, &good[..24], code::MALFORMED_REQUEST);
    refused(nat, &good[..56], code::MALFORMED_REQUEST);
    refused(nat, &good[..59], code::MALFORMED_REQUEST);
    refused(nat, &[2, 1], code::MALFORMED_REQUEST);
    let mut long = good.clone();
    long.resize(1_104, 0);
    refused(nat, &long, code::MALFORMED_REQUEST);
    refused(nat, &with(23, 9), code::ADDRESS_MISMATCH);
    refused(nat, &with(8, 1), code::ADDRESS_MISMATCH);
    for protocol in [1, 47, 132, 255] {
        refused(nat, &with(36, protocol), code::UNSUPP_PROTOCOL);
    }
    // A port of all protocols; all ports of all protocols.
    refused(nat, &with(36, 0), code::MALFORMED_REQUEST);
    let mut whole = map(0).bytes();
    whole[36] = 0;
    refused(nat, &whole, code::UNSUPP_PROTOCOL);
    refused(nat, &map(0).bytes(), code::NOT_AUTHORIZED);
    let mut peer = map(4_000);
    peer.remote = Some((STRANGER, 0));
    refused(nat, &peer.bytes(), code::MALFORMED_REQUEST);
    peer.remote = Some((Ipv4Addr::UNSPECIFIED, 5));
    refused(nat, &peer.bytes(), code::MALFORMED_REQUEST);
}

#[test]
fn each_wrong_option_has_its_answer() {
    let mut nat = Nat::new(config()).unwrap();
    let with = |option: Vec<u8>| Ask {
        options: option,
        ..map(4_000)
    };
    let third = OTHER.to_ipv6_mapped().octets();
    let twice = [option(2, &[]), option(2, &[])].concat();
    let many: Vec<u8> = (0..33)
        .flat_map(|host| filter(Ipv4Addr::new(198, 51, 100, host), 128, 0))
        .collect();
    let mut truncated = filter(STRANGER, 128, 0);
    truncated[3] = 24;
    for (options, wanted) in [
        (option(1, &third), code::UNSUPP_OPTION),
        (option(99, &[]), code::UNSUPP_OPTION),
        (twice, code::MALFORMED_OPTION),
        (option(2, &[1]), code::MALFORMED_OPTION),
        (option(3, &[0; 19]), code::MALFORMED_OPTION),
        (filter(STRANGER, 95, 0), code::MALFORMED_OPTION),
        (filter(STRANGER, 129, 0), code::MALFORMED_OPTION),
        (truncated, code::MALFORMED_OPTION),
        (port_set(0, 4_000, 0), code::MALFORMED_OPTION),
        (option(130, &[0, 1, 0, 0]), code::MALFORMED_OPTION),
        (many, code::EXCESSIVE_REMOTE_PEERS),
    ] {
        refused(&mut nat, &with(options).bytes(), wanted);
    }
    // RFC 6887 §12.1, §13.3.
    for (option, wanted) in [
        (option(2, &[]), code::MALFORMED_REQUEST),
        (filter(STRANGER, 128, 0), code::MALFORMED_OPTION),
    ] {
        let mut peer = with(option);
        peer.remote = Some((STRANGER, 80));
        refused(&mut nat, &peer.bytes(), wanted);
    }
    let mut exactly = with(option(2, &[]));
    exactly.external_port = 80;
    let answer = refused(&mut nat, &exactly.bytes(), code::CANNOT_PROVIDE_EXTERNAL);
    assert_eq!(answer.lifetime(), SHORT_SECS);
    // What may be left alone is.
    let answer = with(option(200, &[1, 2, 3])).ask(&mut nat, 0);
    assert_eq!((answer.code(), answer.0.len()), (0, 60));
}

#[test]
fn silence_is_the_answer_to_what_is_no_request() {
    let mut nat = Nat::new(config()).unwrap();
    let mut answer = map(4_000).bytes();
    answer[1] |= 0x80;
    for data in [&answer[..], &[2], &[], &[0], &[0, 0x81], &[0, 1, 0]] {
        assert_eq!(ask(&mut nat, CLIENT, data, 0), None, "{data:?}");
    }
    // A wrong checksum, a fragment, a source that is no host's.
    let mut bytes = Ip::new(CLIENT, SERVER).udp(5_350, 5_351, &map(1).bytes());
    bytes[40] ^= 1;
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Malformed);
    for source in [[0, 0, 0, 0], [224, 0, 0, 1], [127, 0, 0, 1], [255; 4]] {
        let data = map(1).bytes();
        let mut bytes = Ip::new(source.into(), SERVER).udp(5_350, 5_351, &data);
        assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Denied);
    }
    assert_eq!(leases(&nat), []);
}

#[test]
fn nobody_outside_is_answered_and_nobody_where_it_is_off() {
    let mut nat = Nat::new(config()).unwrap();
    for to in [SERVER, ALIAS] {
        let data = map(4_000).bytes();
        let mut bytes = Ip::new(STRANGER, to).udp(5_350, 5_351, &data);
        assert_eq!(nat.translate_in(&mut bytes, 0), Verdict::NoMapping);
    }
    // To the outside address it is a packet as any other, and stays inside.
    let mut bytes = Ip::new(CLIENT, ALIAS).udp(5_350, 5_351, &map(4_000).bytes());
    assert!(!nat.translate_out(&mut bytes, 0).goes_on());
    let mut off = config();
    off.pcp = PcpConfig::default();
    let mut nat = Nat::new(off).unwrap();
    let mut bytes = Ip::new(CLIENT, SERVER).udp(5_350, 5_351, &map(4_000).bytes());
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::Translated);
    assert_eq!(leases(&nat), []);
}

#[test]
fn an_answer_needs_its_room() {
    let mut nat = Nat::new(config()).unwrap();
    let mut bytes = Ip::new(CLIENT, SERVER).udp(5_350, 5_351, &[0, 0]);
    let before = bytes.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::HelperRefused);
    assert_eq!(bytes, before);
}

#[test]
fn the_epoch_counts_the_seconds_since_the_start() {
    let mut nat = Nat::new(config()).unwrap();
    let announce = header(0, 0, CLIENT);
    for (now, epoch) in [(5_000, 0), (5_999, 0), (6_000, 1), (3_605_000, 3_600)] {
        let answer = Answer(ask(&mut nat, CLIENT, &announce, now).unwrap());
        assert_eq!((answer.code(), answer.epoch()), (0, epoch));
        assert_eq!((answer.0.len(), answer.lifetime()), (24, 0));
    }
    // A clock that steps back takes nothing away.
    let answer = Answer(ask(&mut nat, CLIENT, &announce, 1_000).unwrap());
    assert_eq!(answer.epoch(), 3_600);
}

fn announcements(nat: &mut Nat, millis: std::ops::Range<u64>) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut room = [0; 128];
    for now in millis.step_by(50) {
        while let Some(len) = nat.next_announcement(&mut room, now) {
            let ip = Ipv4::new(&room[..len]).unwrap();
            assert!(ip.checksum_is_right());
            let ends = (ip.source(), ip.destination());
            assert_eq!(ends, (SERVER, Ipv4Addr::new(224, 0, 0, 1)));
            let udp = Udp::new(ip.payload()).unwrap();
            assert_eq!((udp.source_port(), udp.destination_port()), (5_351, 5_350));
            all.push((now, udp.payload().to_vec()));
        }
    }
    all
}

#[test]
fn a_start_is_announced_ten_times_by_both_protocols() {
    let mut nat = Nat::new(config()).unwrap();
    let all = announcements(&mut nat, 10_000..400_000);
    assert_eq!(all.len(), 20);
    for (at, pair) in all.chunks(2).enumerate() {
        // At once, then each pause twice the one before.
        let due = 10_000 + 250 * ((1 << at) - 1);
        assert!((due..due + 100).contains(&pair[0].0), "{at}: {}", pair[0].0);
        assert_eq!(pair[0].0, pair[1].0);
        assert_eq!(pair[0].1[..4], [2, 0x80, 0, 0]);
        assert_eq!(pair[0].1.len(), 24);
        assert_eq!(pair[1].1[..4], [0, 0x80, 0, 0]);
        assert_eq!(pair[1].1[8..], ALIAS.octets());
    }
    // Other addresses outside: clients are to ask again.
    map(4_000).ask(&mut nat, 400_000);
    nat.set_addresses(&[Ipv4Addr::new(192, 0, 2, 2)]).unwrap();
    assert_eq!(leases(&nat), []);
    let epoch = header(0, 0, CLIENT);
    let answer = Answer(ask(&mut nat, CLIENT, &epoch, 402_000).unwrap());
    assert_eq!(answer.epoch(), 2);
    assert_eq!(announcements(&mut nat, 402_000..402_700).len(), 4);
}

#[test]
fn nobody_announces_what_is_off_or_has_many_addresses() {
    let mut off = config();
    off.pcp = PcpConfig::default();
    let mut nat = Nat::new(off).unwrap();
    assert_eq!(announcements(&mut nat, 0..1_000).len(), 0);
    let mut many = Config::new(&[ALIAS, Ipv4Addr::new(192, 0, 2, 2)]);
    many.pcp.addresses = vec![SERVER];
    let mut nat = Nat::new(many).unwrap();
    let all = announcements(&mut nat, 0..400_000);
    // Each host has an address of its own: NAT-PMP has no word for that.
    assert_eq!(all.len(), 10);
    assert!(all.iter().all(|(_, data)| data[0] == 2));
}
