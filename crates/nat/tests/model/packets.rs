//! The model's tuples as packets, and packets read by another crate.

use super::*;

/// A packet of a tuple, with a payload, and a UDP checksum or none.
pub(super) fn build(tuple: &Tuple, random: &mut Random) -> Vec<u8> {
    let ip = Ip::new(tuple.source.0, tuple.destination.0);
    let data: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
    match tuple.protocol {
        protocol::TCP => ip.tcp(&Segment {
            source_port: tuple.source.1,
            destination_port: tuple.destination.1,
            sequence: random.next() as u32,
            acknowledgement: random.next() as u32,
            flags: packet::tcp::ACK,
            window: random.next() as u16,
            data: &data,
            ..Segment::default()
        }),
        protocol::UDP => {
            let mut bytes = ip.udp(tuple.source.1, tuple.destination.1, &data);
            if random.chance(10) {
                bytes[26..28].fill(0);
            }
            bytes
        }
        protocol::ICMP => {
            let id = tuple.source.1 | tuple.destination.1;
            let [a, b] = id.to_be_bytes();
            let icmp_type = if tuple.source.1 != 0 { 8 } else { 0 };
            ip.icmp(icmp_type, 0, [a, b, 0, 1], &data)
        }
        other => ip.packet(other, &[], &data),
    }
}

/// What a packet's tuple is, its payload, and whether its UDP checksum is
/// absent; all checksums are right by `etherparse`.
pub(super) fn read(bytes: &[u8], direction: Direction) -> (Tuple, Vec<u8>, bool) {
    let packet = SlicedPacket::from_ip(bytes).expect("a sound packet");
    let Some(NetSlice::Ipv4(ip)) = &packet.net else {
        panic!("no IPv4");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    let (source, destination) = (header.source, header.destination);
    let mut absent = false;
    let (source_port, destination_port, payload) = match &packet.transport {
        Some(TransportSlice::Udp(udp)) => {
            let right = udp
                .to_header()
                .calc_checksum_ipv4_raw(source, destination, udp.payload());
            absent = udp.checksum() == 0;
            assert!(absent || udp.checksum() == right.unwrap(), "a UDP checksum");
            (
                udp.source_port(),
                udp.destination_port(),
                udp.payload().to_vec(),
            )
        }
        Some(TransportSlice::Tcp(tcp)) => {
            let right = tcp.calc_checksum_ipv4(source, destination).unwrap();
            assert_eq!(tcp.checksum(), right, "a TCP checksum");
            (
                tcp.source_port(),
                tcp.destination_port(),
                tcp.payload().to_vec(),
            )
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            let right = icmp.icmp_type().calc_checksum(icmp.payload());
            assert_eq!(icmp.checksum(), right, "an ICMP checksum");
            let id = u16::from_be_bytes([icmp.bytes5to8()[0], icmp.bytes5to8()[1]]);
            let ports = match direction {
                Direction::Out => (id, 0),
                Direction::In => (0, id),
            };
            (ports.0, ports.1, icmp.payload().to_vec())
        }
        _ => (0, 0, ip.payload().payload.to_vec()),
    };
    let tuple = Tuple {
        protocol: if ip.header().protocol() == IpNumber::ICMP {
            protocol::ICMP
        } else {
            ip.header().protocol().0
        },
        source: (source.into(), source_port),
        destination: (destination.into(), destination_port),
    };
    (tuple, payload, absent)
}
