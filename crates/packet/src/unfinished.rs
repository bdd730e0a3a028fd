//! Checksums that a sender left to its device: the field of TCP or UDP holds
//! the sum of the pseudo header alone (`CHECKSUM_PARTIAL` in Linux). For who
//! takes packets where no device has been yet, as a program at XDP does.

use crate::{Ipv4, Tcp, Udp, protocol};

/// Writes the whole checksum of the TCP or UDP in an IPv4 packet; bytes
/// behind the packet stay out of it. False, with nothing changed, where that
/// cannot be: another protocol, a fragment (the sum is over all of them), a
/// length that says something else than the bytes, or a field that holds
/// something else: what is wrong or none stays so. O(bytes).
#[must_use]
pub fn finish(packet: &mut [u8]) -> bool {
    let Ok(mut ip) = Ipv4::new(packet) else {
        return false;
    };
    if ip.is_fragment() {
        return false;
    }
    let pseudo_header = ip.pseudo_header();
    match ip.protocol() {
        protocol::TCP => {
            let Ok(mut tcp) = Tcp::new(ip.payload_mut()) else {
                return false;
            };
            if tcp.checksum() != pseudo_header.folded() {
                return false;
            }
            tcp.fill_checksum(pseudo_header);
        }
        protocol::UDP => {
            let len = ip.payload().len();
            let Ok(mut udp) = Udp::new(ip.payload_mut()) else {
                return false;
            };
            if udp.length() != len || udp.checksum() != pseudo_header.folded() {
                return false;
            }
            udp.fill_checksum(pseudo_header);
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::build::{Ip, Segment};
    use crate::checksum::Sum;
    use crate::{icmp, ipv4, tcp, udp};

    /// A packet as it should be, of TCP or UDP, with IP options or without.
    fn whole(is_tcp: bool, ip: Ip, options: &[u8], ports: [u16; 2], data: &[u8]) -> Vec<u8> {
        let segment = Segment {
            source_port: ports[0],
            destination_port: ports[1],
            flags: tcp::SYN,
            options: &options[..options.len() / 2],
            data,
            ..Segment::default()
        };
        let plain = match is_tcp {
            true => ip.tcp(&segment),
            false => ip.udp(ports[0], ports[1], data),
        };
        ip.packet(plain[9], options, &plain[ipv4::HEADER_LEN..])
    }

    /// Where the checksum of what it carries stands.
    fn field(packet: &[u8]) -> usize {
        let at = if packet[9] == protocol::TCP { 16 } else { 6 };
        usize::from(packet[0] & 15) * 4 + at
    }

    /// The packet as a stack hands it to a device: the pseudo header's sum.
    fn unfinished(whole: &[u8]) -> Vec<u8> {
        let mut packet = whole.to_vec();
        let sum = Ipv4::new(whole).unwrap().pseudo_header().folded();
        packet[field(whole)..][..2].copy_from_slice(&sum.to_ne_bytes());
        packet
    }

    fn ip(source: [u8; 4], destination: [u8; 4]) -> Ip {
        Ip::new(Ipv4Addr::from(source), Ipv4Addr::from(destination))
    }

    proptest! {
        #[test]
        fn an_unfinished_one_becomes_whole(
            is_tcp: bool,
            ends: [[u8; 4]; 2],
            ports: [u16; 2],
            options in vec(any::<u8>(), 0..40),
            data in vec(any::<u8>(), 0..3_000),
            behind in vec(any::<u8>(), 0..40),
        ) {
            let right = whole(is_tcp, ip(ends[0], ends[1]), &options, ports, &data);
            let mut packet = unfinished(&right);
            prop_assert_ne!(&packet, &right);
            packet.extend(&behind);
            prop_assert!(finish(&mut packet));
            let (packet, rest) = packet.split_at(right.len());
            prop_assert_eq!(packet, &right);
            prop_assert_eq!(rest, &behind);
        }

        /// A wrong one must not become right here, and none none.
        #[test]
        fn what_is_not_unfinished_is_left_alone(
            is_tcp: bool,
            sum: [u8; 2],
            data in vec(any::<u8>(), 0..100),
        ) {
            let right = whole(is_tcp, ip([10, 0, 0, 1], [10, 0, 0, 2]), &[], [1, 2], &data);
            for sum in [sum, [0; 2]] {
                let mut packet = right.clone();
                packet[field(&right)..][..2].copy_from_slice(&sum);
                if packet != unfinished(&right) {
                    let before = packet.clone();
                    prop_assert!(!finish(&mut packet));
                    prop_assert_eq!(packet, before);
                }
            }
        }

        #[test]
        fn lengths_that_lie_are_refused(
            is_tcp: bool,
            cut in 1_usize..60,
            udp_length: u16,
            data in vec(any::<u8>(), 0..100),
        ) {
            let right = whole(is_tcp, ip([10, 0, 0, 1], [10, 0, 0, 2]), &[], [1, 2], &data);
            let packet = unfinished(&right);
            let refused = |mut packet: Vec<u8>| {
                let before = packet.clone();
                !finish(&mut packet) && packet == before
            };
            let cut = cut.min(packet.len());
            prop_assert!(refused(packet[..packet.len() - cut].to_vec()));
            if is_tcp {
                // Its header would end behind the packet.
                let mut packet = packet;
                packet.truncate(ipv4::HEADER_LEN + tcp::HEADER_LEN);
                packet[2..4].copy_from_slice(&40_u16.to_be_bytes());
                packet[ipv4::HEADER_LEN + 12] = 0xf0;
                prop_assert!(refused(packet));
            } else if usize::from(udp_length) != udp::HEADER_LEN + data.len() {
                let mut packet = packet;
                packet[24..26].copy_from_slice(&udp_length.to_be_bytes());
                prop_assert!(refused(packet));
            }
        }

        #[test]
        fn no_bytes_make_it_stumble(mut bytes in vec(any::<u8>(), 0..80), is_four: bool) {
            if let (true, Some(first)) = (is_four, bytes.first_mut()) {
                *first = 0x45;
            }
            let before = bytes.clone();
            let is_finished = finish(&mut bytes);
            prop_assert!(is_finished || bytes == before);
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_its_other_zero() {
        // The data is the checksum of the same packet with two bytes of 0,
        // so that the sum comes out as 0.
        let ends = ip([10, 0, 0, 1], [10, 0, 0, 2]);
        let zeros = ends.udp(1, 2, &[0; 2]);
        let right = ends.udp(1, 2, &zeros[26..28]);
        let mut packet = unfinished(&right);
        assert!(finish(&mut packet));
        assert_eq!(packet[26..28], [0xff; 2]);
        let pseudo_header = Ipv4::new(&*packet).unwrap().pseudo_header();
        assert_eq!(pseudo_header.and(Sum::of(&packet[20..])).checksum(), 0);
    }

    #[test]
    fn other_protocols_and_fragments_are_left_alone() {
        let mut ends = ip([10, 0, 0, 1], [10, 0, 0, 2]);
        let echo = ends.icmp(icmp::ECHO, 0, [0; 4], b"hello");
        let plain = unfinished(&ends.udp(1, 2, b"hello, there"));
        let of_udp = |ip: &Ip| ip.packet(protocol::UDP, &[], &plain[20..]);
        ends.flags_and_offset = ipv4::MORE_FRAGMENTS;
        let first = of_udp(&ends);
        ends.flags_and_offset = 1;
        let last = of_udp(&ends);
        for packet in [echo, first, last] {
            let mut after = packet.clone();
            assert!(!finish(&mut after));
            assert_eq!(after, packet);
        }
        ends.flags_and_offset = ipv4::DONT_FRAGMENT;
        assert!(finish(&mut of_udp(&ends)));
    }
}
