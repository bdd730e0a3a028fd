use std::net::Ipv4Addr;

use packet::build::Ip;
use packet::{Ipv4, protocol};

use super::*;
use crate::testing::buffer;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

fn checked(bytes: &[u8]) -> (Checked<u32>, usize) {
    let mut frame = buffer(bytes);
    (check_v4(&mut frame, false), frame.packet_len())
}

fn refused(bytes: &[u8]) -> Option<Reason> {
    match checked(bytes).0 {
        Checked::Dropped(reason) => Some(reason),
        _ => None,
    }
}

fn to(source: [u8; 4], destination: [u8; 4]) -> Checked<u32> {
    let packet = Ip::new(source.into(), destination.into()).udp(1, 2, b"x");
    checked(&packet).0
}

#[test]
fn a_sound_packet_goes_on_without_its_padding() {
    let mut packet = Ip::new(HERE, THERE).udp(1, 2, b"x");
    let len = packet.len();
    packet.resize(46, 0);
    assert_eq!(checked(&packet), (Checked::To(THERE.to_bits()), len));
}

#[test]
fn each_check_of_the_header_refuses() {
    let sound = Ip::new(HERE, THERE).udp(1, 2, b"x");
    let with = |at: usize, value: u8| {
        let mut packet = sound.clone();
        packet[at] = value;
        packet
    };
    assert_eq!(refused(&sound[..19]), Some(Reason::Ipv4Length));
    assert_eq!(refused(&sound[..28]), Some(Reason::Ipv4Length));
    assert_eq!(refused(&with(3, 19)), Some(Reason::Ipv4Length));
    assert_eq!(refused(&with(0, 0x44)), Some(Reason::Ipv4Length));
    assert_eq!(refused(&with(0, 0x4f)), Some(Reason::Ipv4Length));
    assert_eq!(refused(&with(0, 0x65)), Some(Reason::Ipv4Version));
    for at in [1, 5, 8, 9, 10, 13, 18] {
        let changed = with(at, sound[at] ^ 0x10);
        assert_eq!(refused(&changed), Some(Reason::Ipv4Checksum), "{at}");
    }
}

#[test]
fn martians_are_told_apart() {
    let source = Checked::Dropped(Reason::Ipv4MartianSource);
    let destination = Checked::Dropped(Reason::Ipv4MartianDestination);
    for odd in [
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [127, 0, 0, 1],
        [224, 1, 1, 1],
        [240, 0, 0, 1],
        [255; 4],
    ] {
        assert_eq!(to(odd, [192, 0, 2, 9]), source, "{odd:?}");
    }
    for odd in [[0, 0, 0, 0], [0, 9, 9, 9], [127, 1, 2, 3], [240, 0, 0, 1]] {
        assert_eq!(to([10, 0, 0, 1], odd), destination, "{odd:?}");
    }
    for many in [[224, 0, 0, 5], [239, 1, 1, 1], [255; 4]] {
        assert_eq!(to([10, 0, 0, 1], many), Checked::Host);
        assert_eq!(to([0, 0, 0, 0], many), Checked::Host);
        assert_eq!(to([127, 0, 0, 1], many), source);
    }
}

#[test]
fn options_are_walked_over() {
    let with = |options: &[u8]| {
        let packet = Ip::new(HERE, THERE).packet(protocol::UDP, options, b"payload!");
        checked(&packet).0
    };
    let on = Checked::To(THERE.to_bits());
    assert_eq!(with(&[7, 7, 4, 0, 0, 0, 0, 0]), on);
    assert_eq!(with(&[1, 1, 1, 0]), on);
    assert_eq!(with(&[148, 4, 0, 0]), Checked::Host);
    let route = Checked::Dropped(Reason::Ipv4SourceRoute);
    assert_eq!(with(&[131, 7, 4, 1, 2, 3, 4, 0]), route);
    let broken = Checked::Dropped(Reason::Ipv4Options);
    for options in [[7, 1, 0, 0], [7, 0, 0, 0], [7, 9, 0, 0], [1, 1, 1, 7]] {
        assert_eq!(with(&options), broken, "{options:?}");
    }
}

#[test]
fn a_hop_less_keeps_the_checksum_right() {
    for ttl in 1..=255 {
        for identification in [0, 0x1234, 0xffff] {
            let mut ip = Ip::new(HERE, THERE);
            (ip.ttl, ip.identification) = (ttl, identification);
            let mut packet = ip.udp(1, 2, b"x");
            take_hop(&mut packet, false);
            assert!(Ipv4::new(packet.as_slice()).unwrap().checksum_is_right());
            assert_eq!(hops(&packet, false), ttl - 1);
        }
    }
    take_hop(&mut [0; 9], false);
    take_hop(&mut [0; 3], true);
    let mut packet = [9; 40];
    take_hop(&mut packet, true);
    assert_eq!(hops(&packet, true), 8);
}

fn v6(source: &str, destination: &str, payload: usize, behind: usize) -> Checked<u128> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, payload as u8, protocol::UDP, 64];
    for address in [source, destination] {
        bytes.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    bytes.resize(bytes.len() + behind, 0);
    let mut frame = buffer(&bytes);
    let checked = check_v6(&mut frame, false);
    if let Checked::To(_) = checked {
        assert_eq!(frame.packet_len(), 40 + payload);
    }
    checked
}

#[test]
fn ipv6_is_checked_as_well() {
    let (a, b) = ("2001:db8::1", "2001:db8:1::2");
    let there = b.parse::<std::net::Ipv6Addr>().unwrap().to_bits();
    assert_eq!(v6(a, b, 8, 8), Checked::To(there));
    assert_eq!(v6(a, b, 8, 20), Checked::To(there));
    assert_eq!(v6(a, b, 8, 7), Checked::Dropped(Reason::Ipv6Length));
    for odd in ["::", "::1", "ff02::1"] {
        let dropped = Checked::Dropped(Reason::Ipv6MartianSource);
        assert_eq!(v6(odd, b, 8, 8), dropped, "{odd}");
    }
    for odd in ["::", "::1"] {
        let dropped = Checked::Dropped(Reason::Ipv6MartianDestination);
        assert_eq!(v6(a, odd, 8, 8), dropped, "{odd}");
    }
    for host in ["ff02::1", "fe80::2"] {
        assert_eq!(v6(a, host, 8, 8), Checked::Host);
    }
    assert_eq!(v6("::", "ff02::16", 8, 8), Checked::Host);
    let dropped = check_v6(&mut buffer(&[0x60; 39]), false);
    assert_eq!(dropped, Checked::Dropped(Reason::Ipv6Length));
    let dropped = check_v6(&mut buffer(&[0x50; 60]), false);
    assert_eq!(dropped, Checked::Dropped(Reason::Ipv6Version));
}
