//! A second opinion: packets built by `etherparse` are read here, packets
//! built here are read by it, and any bytes at all are read without a panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use fingerpost_packet::build::{Ip, Segment};
use fingerpost_packet::checksum::Sum;
use fingerpost_packet::{Ethernet, Gre, Icmp, Ipv4, Ipv6, Tcp, Udp, ipv4, protocol, tcp};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn its_udp_in_vlans_is_read(mac: [u8; 6], vlan in 0_u16..4096, source: [u8; 4], destination: [u8; 4], ports: [u16; 2], data in vec(any::<u8>(), 0..200)) {
        let builder = PacketBuilder::ethernet2(mac, [9; 6])
            .single_vlan(etherparse::VlanId::try_new(vlan).unwrap())
            .ipv4(source, destination, 9)
            .udp(ports[0], ports[1]);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &data).unwrap();
        let frame = Ethernet::new(bytes.as_slice()).unwrap();
        prop_assert_eq!((frame.source(), frame.destination()), (mac, [9; 6]));
        prop_assert_eq!((frame.tags(), frame.vlan(0), frame.vlan(1)), (1, Some(vlan), None));
        prop_assert_eq!(frame.ethertype(), fingerpost_packet::ethernet::IPV4);
        let ip = Ipv4::new(frame.payload()).unwrap();
        prop_assert_eq!(ip.source().octets(), source);
        prop_assert_eq!(ip.destination().octets(), destination);
        prop_assert_eq!((ip.ttl(), ip.protocol()), (9, protocol::UDP));
        prop_assert!(ip.checksum_is_right() && !ip.is_fragment());
        let udp = Udp::new(ip.payload()).unwrap();
        prop_assert_eq!([udp.source_port(), udp.destination_port()], ports);
        prop_assert_eq!(udp.payload(), data.as_slice());
        prop_assert!(udp.checksum_is_right(ip.pseudo_header()));
    }

    #[test]
    fn its_tcp_with_options_is_read(ports: [u16; 2], numbers: [u32; 2], window: u16, scale: u8, mss: u16, data in vec(any::<u8>(), 0..100)) {
        let options = [
            TcpOptionElement::MaximumSegmentSize(mss),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(scale),
            TcpOptionElement::SelectiveAcknowledgement((1, 2), [Some((3, 4)), None, None]),
        ];
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64)
            .tcp(ports[0], ports[1], numbers[0], window)
            .ack(numbers[1])
            .options(&options)
            .unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &data).unwrap();
        let ip = Ipv4::new(bytes.as_slice()).unwrap();
        let segment = Tcp::new(ip.payload()).unwrap();
        prop_assert_eq!([segment.source_port(), segment.destination_port()], ports);
        prop_assert_eq!([segment.sequence(), segment.acknowledgement()], numbers);
        prop_assert_eq!((segment.window(), segment.flags()), (window, tcp::ACK));
        prop_assert_eq!(segment.payload(), data.as_slice());
        prop_assert!(segment.checksum_is_right(ip.pseudo_header()));
        let kinds: Vec<u8> = segment.options().map(|option| option.kind).collect();
        prop_assert_eq!(kinds, vec![tcp::OPTION_MSS, tcp::OPTION_WINDOW_SCALE, tcp::OPTION_SACK]);
        for option in segment.options() {
            let there = &ip.payload()[option.at..option.at + option.data.len()];
            prop_assert_eq!(there, option.data);
        }
    }

    #[test]
    fn its_icmp_and_icmpv6_are_read(id: u16, sequence: u16, data in vec(any::<u8>(), 0..100), six: [u8; 16]) {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).icmpv4_echo_request(id, sequence);
        builder.write(&mut bytes, &data).unwrap();
        let ip = Ipv4::new(bytes.as_slice()).unwrap();
        let message = Icmp::new(ip.payload()).unwrap();
        prop_assert!(message.checksum_is_right(Sum::default()));
        prop_assert_eq!((message.identifier(), message.sequence()), (id, sequence));
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv6(six, [7; 16], 3).icmpv6_echo_reply(id, sequence);
        builder.write(&mut bytes, &data).unwrap();
        let ip = Ipv6::new(bytes.as_slice()).unwrap();
        prop_assert_eq!((ip.source(), ip.hop_limit()), (Ipv6Addr::from(six), 3));
        let upper = ip.upper().unwrap();
        prop_assert_eq!(upper.protocol, protocol::ICMPV6);
        let message = Icmp::new(upper.payload).unwrap();
        let pseudo = ip.pseudo_header(upper.protocol, upper.payload.len() as u32);
        prop_assert!(message.checksum_is_right(pseudo));
        prop_assert_eq!(message.payload(), data.as_slice());
    }

    #[test]
    fn what_is_built_here_is_sound_there(source: [u8; 4], destination: [u8; 4], ports: [u16; 2], options in vec(Just(1_u8), 0..40), data in vec(any::<u8>(), 0..300), changed: [u8; 4]) {
        let ip = Ip::new(source.into(), destination.into());
        let segment = Segment { source_port: ports[0], destination_port: ports[1], flags: tcp::SYN, options: &options, data: &data, ..Segment::default() };
        for mut bytes in [ip.udp(ports[0], ports[1], &data), ip.tcp(&segment)] {
            sound(&bytes);
            // An address changed in place: the header follows at once, the
            // upper layer by the delta that is returned.
            let mut packet = Ipv4::new(bytes.as_mut_slice()).unwrap();
            let delta = packet.set_source(Ipv4Addr::from(changed));
            let is_udp = packet.protocol() == protocol::UDP;
            if is_udp {
                let mut udp = Udp::new(packet.payload_mut()).unwrap();
                udp.set_checksum(delta.apply_udp(udp.checksum()));
            } else {
                let mut tcp = Tcp::new(packet.payload_mut()).unwrap();
                tcp.set_checksum(delta.apply(tcp.checksum()));
            }
            sound(&bytes);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in vec(any::<u8>(), 0..120), first in proptest::option::of(any::<[u8; 4]>())) {
        if let Some(first) = first {
            for (place, byte) in bytes.iter_mut().zip([0x40 | first[0] & 0x0f, first[1], 0, first[3] & 0x7f]) {
                *place = byte;
            }
        }
        read_all(&mut bytes);
    }

    #[test]
    fn a_sound_packet_cut_anywhere_is_refused_or_read(data in vec(any::<u8>(), 0..60), at: usize, byte: u8, cut: usize) {
        let ip = Ip::new(Ipv4Addr::new(1, 2, 3, 4), Ipv4Addr::new(5, 6, 7, 8));
        let mut bytes = ip.packet(protocol::GRE, &[1; 8], &data);
        let len = bytes.len();
        bytes[at % len] = byte;
        bytes.truncate(cut % (len + 1));
        read_all(&mut bytes);
    }
}

/// By the other crate, to the last checksum.
fn sound(bytes: &[u8]) {
    let packet = SlicedPacket::from_ip(bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = packet.net else {
        panic!("no IPv4");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    match packet.transport {
        Some(TransportSlice::Udp(udp)) => {
            let (source, destination) = (header.source, header.destination);
            let right = udp
                .to_header()
                .calc_checksum_ipv4_raw(source, destination, udp.payload());
            assert_eq!(udp.checksum(), right.unwrap());
        }
        Some(TransportSlice::Tcp(tcp)) => {
            let right = tcp.calc_checksum_ipv4(header.source, header.destination);
            assert_eq!(tcp.checksum(), right.unwrap());
        }
        other => panic!("{other:?}"),
    }
}

/// Every view, every field, every change, on any bytes.
fn read_all(bytes: &mut [u8]) {
    if let Ok(mut frame) = Ethernet::new(&mut *bytes) {
        let _ = (frame.ethertype(), frame.vlan(0), frame.payload().len());
        frame.set_source(frame.destination());
        frame.payload_mut().fill(0);
        frame.set_destination([0; 6]);
    }
    if let Ok(mut ip) = Ipv4::parse_truncated(&mut *bytes) {
        let _ = (
            ip.options().len(),
            ip.payload().len(),
            ip.checksum_is_right(),
        );
        assert!(ip.header_len() >= ipv4::HEADER_LEN && ip.header_len() <= 60);
        let _ = ip.pseudo_header();
        ip.set_destination(ip.source());
        ip.set_total_len(ip.identification());
        ip.fill_checksum();
        let _ = (ip.payload_mut().len(), ip.checksum_is_right());
    }
    if let Ok(ip) = Ipv6::parse_truncated(&*bytes) {
        let _ = (
            ip.upper().map(|upper| upper.payload.len()),
            ip.payload().len(),
        );
        let _ = (ip.flow_label(), ip.traffic_class(), ip.destination());
    }
    if let Ok(mut segment) = Tcp::new(&mut *bytes) {
        assert!(segment.options().count() <= 40);
        let _ = (
            segment.payload().len(),
            segment.window(),
            segment.checksum(),
        );
        segment.option_bytes_mut().fill(1);
        segment.payload_mut().fill(2);
        segment.fill_checksum(Sum::default());
    }
    if let Ok(mut datagram) = Udp::new(&mut *bytes) {
        let _ = (datagram.payload().len(), datagram.length());
        datagram.fill_checksum(Sum::default());
        assert_ne!(datagram.checksum(), 0);
    }
    if let Ok(mut message) = Icmp::new(&mut *bytes) {
        let _ = (message.icmp_type(), message.code(), message.payload().len());
        message.set_identifier(message.sequence());
        message.fill_checksum(Sum::default());
        assert!(message.checksum_is_right(Sum::default()));
    }
    if let Ok(mut gre) = Gre::new(&mut *bytes) {
        let _ = (gre.key(), gre.payload().len(), gre.protocol_type());
        let call = gre.call_id();
        assert_eq!(gre.set_call_id(5), call.is_some());
        assert_eq!(gre.call_id(), call.map(|_| 5));
    }
}

/// RFC 2637 §4.1, with sequence and acknowledgement numbers.
#[test]
fn enhanced_gre() {
    let bytes = [
        0x30, 0x81, 0x88, 0x0b, 0, 3, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 9, 1, 2, 3,
    ];
    let gre = Gre::new(&bytes[..]).unwrap();
    assert!(gre.is_pptp());
    assert_eq!((gre.call_id(), gre.header_len()), (Some(0x1234), 16));
    assert_eq!(gre.payload(), [1, 2, 3]);
    assert_eq!(gre.key(), None);
    let keyed = [0x20, 0, 0x08, 0, 0, 0, 0, 7];
    let gre = Gre::new(&keyed[..]).unwrap();
    assert_eq!((gre.key(), gre.call_id()), (Some(7), None));
}

/// Extension headers: hop-by-hop options, then a fragment header.
#[test]
fn extension_headers_are_walked_over() {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 20, 0, 64];
    bytes.extend([0; 32]);
    bytes.extend([44, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend([17, 0, 0, 9, 0, 0, 0, 5]);
    bytes.extend([1, 2, 3, 4]);
    let ip = Ipv6::new(bytes.as_slice()).unwrap();
    let upper = ip.upper().unwrap();
    assert_eq!((upper.protocol, upper.fragment_offset_bytes), (17, 8));
    assert!(upper.more_fragments);
    assert_eq!(upper.payload, [1, 2, 3, 4]);
    // A chain without end.
    let mut bytes = vec![0x60, 0, 0, 0, 1, 0, 60, 64];
    bytes.extend([0; 32]);
    for _ in 0..32 {
        bytes.extend([60, 0, 1, 4, 0, 0, 0, 0]);
    }
    assert!(Ipv6::new(bytes.as_slice()).unwrap().upper().is_err());
}
