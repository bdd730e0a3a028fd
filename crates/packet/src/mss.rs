//! The largest segment that TCP's ends tell each other (RFC 9293 §3.7.1),
//! lowered on the way for a link that takes less. For who forwards.

use crate::checksum::{Delta, Sum};
use crate::tcp::{OPTION_MSS, SYN};
use crate::{Ipv4, Tcp, protocol};

/// Bytes of IPv6's header (RFC 8200 §3).
const IPV6_LEN: usize = 40;
/// What it takes more than IPv4's.
const IPV6_MORE: u16 = 20;

/// Lowers the maximum segment size that a packet with a SYN announces to
/// `most` bytes, for IPv6 to 20 less. Everything else stays: other packets,
/// a size that is small enough, a SYN without one (then it is 536 or 1,220),
/// fragments, and TCP behind IPv6's extension headers. The checksum is kept
/// as right, or as wrong, as it was. Whether the packet was changed. O(1).
pub fn clamp(packet: &mut [u8], most: u16) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => {
            let Ok(ip) = Ipv4::new(&*packet) else {
                return false;
            };
            let (from, to) = (ip.header_len(), ip.total_len());
            let is_tcp = ip.protocol() == protocol::TCP && !ip.is_fragment();
            is_tcp && packet.get_mut(from..to).is_some_and(|tcp| lower(tcp, most))
        }
        Some(6) if packet.get(6) == Some(&protocol::TCP) => {
            let most = most.saturating_sub(IPV6_MORE);
            let tcp = packet.get_mut(IPV6_LEN..);
            tcp.is_some_and(|tcp| lower(tcp, most))
        }
        _ => false,
    }
}

fn lower(segment: &mut [u8], most: u16) -> bool {
    let Ok(tcp) = Tcp::new(&*segment) else {
        return false;
    };
    if tcp.flags() & SYN == 0 {
        return false;
    }
    let len = tcp.header_len();
    let place = tcp.options().find_map(|option| {
        let size = option.data.first_chunk::<2>()?;
        let is_larger = option.kind == OPTION_MSS && u16::from_be_bytes(*size) > most;
        is_larger.then_some(option.at)
    });
    let Some(place) = place else {
        return false;
    };
    let Some(header) = segment.get_mut(..len) else {
        return false;
    };
    let before = Sum::of(header).folded();
    if let Some(size) = header.get_mut(place..place + 2) {
        size.copy_from_slice(&most.to_be_bytes());
    }
    let after = Sum::of(header).folded();
    if let Ok(mut tcp) = Tcp::new(header) {
        tcp.set_checksum(Delta::of16(before, after).apply(tcp.checksum()));
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by it"
    )]

    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::build::{Ip, Segment};
    use crate::tcp::ACK;

    fn syn(options: &[u8], flags: u8) -> Vec<u8> {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
        Ip::new(from, to).tcp(&Segment {
            source_port: 4_000,
            destination_port: 80,
            flags,
            options,
            ..Segment::default()
        })
    }

    fn over_ipv6(segment: &[u8]) -> Vec<u8> {
        let [high, low] = (segment.len() as u16).to_be_bytes();
        let mut bytes = vec![0x60, 0, 0, 0, high, low, protocol::TCP, 64];
        let ends = [Ipv6Addr::LOCALHOST.octets(), Ipv6Addr::UNSPECIFIED.octets()];
        bytes.extend(ends.as_flattened());
        bytes.extend(segment);
        let pseudo = Sum::pseudo_ipv6(ends[0], ends[1], protocol::TCP, segment.len() as u32);
        if let Ok(mut tcp) = Tcp::new(&mut bytes[IPV6_LEN..]) {
            tcp.set_checksum(0);
        }
        let sum = pseudo.and(Sum::of(&bytes[IPV6_LEN..])).checksum();
        if let Ok(mut tcp) = Tcp::new(&mut bytes[IPV6_LEN..]) {
            tcp.set_checksum(sum);
        }
        bytes
    }

    fn is_sound(packet: &[u8]) -> bool {
        if packet[0] >> 4 == 4 {
            let ip = Ipv4::new(packet).unwrap();
            return ip.pseudo_header().and(Sum::of(ip.payload())).checksum() == 0;
        }
        let (mut from, mut to) = ([0; 16], [0; 16]);
        from.copy_from_slice(&packet[8..24]);
        to.copy_from_slice(&packet[24..40]);
        let segment = &packet[IPV6_LEN..];
        let pseudo = Sum::pseudo_ipv6(from, to, protocol::TCP, segment.len() as u32);
        pseudo.and(Sum::of(segment)).checksum() == 0
    }

    #[test]
    fn the_size_of_both_families_is_lowered_wherever_it_stands() {
        for before in [&[][..], &[1], &[1, 1], &[4, 2, 1]] {
            for flags in [SYN, SYN | ACK] {
                let mut options = [before, &[2, 4, 0x05, 0xb4]].concat();
                options.resize(8, 1);
                let mut packet = syn(&options, flags);
                let mut six = over_ipv6(&packet[20..]);
                let at = 40 + before.len() + 2;
                assert!(is_sound(&packet) && is_sound(&six));
                assert!(clamp(&mut packet, 1_400) && clamp(&mut six, 1_400));
                assert!(is_sound(&packet) && is_sound(&six));
                assert_eq!(packet[at..at + 2], 1_400_u16.to_be_bytes());
                assert_eq!(six[at + 20..at + 22], 1_380_u16.to_be_bytes());
                // It is small enough now.
                assert!(!clamp(&mut packet, 1_400) && !clamp(&mut six, 1_400));
            }
        }
    }

    #[test]
    fn everything_else_stays() {
        let size = [2, 4, 0x05, 0xb4];
        let mut fragment = syn(&size, SYN);
        fragment[6] = 0x20;
        let mut udp = syn(&size, SYN);
        udp[9] = protocol::UDP;
        let small = syn(&[2, 4, 0x05, 0x00], SYN);
        for mut packet in [
            syn(&size, ACK),
            syn(&[], SYN),
            syn(&[2, 3, 0x05, 0xb4], SYN),
            syn(&[2, 9, 0x05, 0xb4], SYN),
            fragment,
            udp,
            small,
        ] {
            let before = packet.clone();
            assert!(!clamp(&mut packet, 1_400));
            assert_eq!(packet, before);
        }
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for version in [0x45, 0x60] {
                if let Some(first) = bytes.first_mut() {
                    *first = version;
                }
                let len = bytes.len();
                clamp(&mut bytes, 1_400);
                prop_assert_eq!(bytes.len(), len);
            }
        }
    }
}
