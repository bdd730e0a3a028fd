//! IPv4 packets cut into fragments (RFC 791 §3.2, RFC 1812 §5.2.6).

use packet::{Ipv4, ipv4};

/// Calls `each` with the fragments of a packet, in order, as headers and
/// payload: those that fit an MTU. False, with nothing done, where the
/// packet must not be cut, or the MTU leaves no room for eight bytes.
pub fn fragments(packet: &[u8], mtu: usize, mut each: impl FnMut(&[u8], &[u8])) -> bool {
    let Ok(ip) = Ipv4::new(packet) else {
        return false;
    };
    let flags = ip.flags_and_offset();
    let later_options = copied_options(ip.options());
    let later_len = ipv4::HEADER_LEN + later_options.len();
    // Whole units of eight bytes, the last one excepted.
    let room = |header: usize| mtu.saturating_sub(header) & !7;
    if flags & ipv4::DONT_FRAGMENT != 0 || room(ip.header_len()) == 0 || room(later_len) == 0 {
        return false;
    }
    let header = &packet[..ip.header_len()];
    let mut later = header[..ipv4::HEADER_LEN].to_vec();
    later.extend_from_slice(&later_options);
    later[0] = 0x40 | (later.len() / 4) as u8;
    let mut rest = ip.payload();
    let mut offset = ip.fragment_offset_bytes();
    let mut head = header.to_vec();
    while !rest.is_empty() {
        let (payload, behind) = rest.split_at(room(head.len()).min(rest.len()));
        let is_last = behind.is_empty() && !ip.more_fragments();
        let more = if is_last { 0 } else { ipv4::MORE_FRAGMENTS };
        let word = (flags & 0x8000) | more | (offset / 8) as u16;
        head[6..8].copy_from_slice(&word.to_be_bytes());
        let total = (head.len() + payload.len()) as u16;
        head[2..4].copy_from_slice(&total.to_be_bytes());
        set_checksum(&mut head);
        each(&head, payload);
        offset += payload.len();
        rest = behind;
        head.clone_from(&later);
    }
    true
}

fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = packet::checksum::Sum::of(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_ne_bytes());
}

/// The options that go into every fragment: those with the "copied" bit
/// (RFC 791 §3.1), padded to words.
fn copied_options(mut options: &[u8]) -> Vec<u8> {
    let mut copied = Vec::new();
    while let Some(&kind) = options.first() {
        let len = match (kind, options.get(1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(&len)) if len >= 2 => usize::from(len),
            _ => break,
        };
        let Some((option, rest)) = options.split_at_checked(len) else {
            break;
        };
        if kind & 0x80 != 0 {
            copied.extend_from_slice(option);
        }
        options = rest;
    }
    copied.resize(copied.len().next_multiple_of(4), 0);
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::build::Ip;
    use packet::protocol;

    fn cut(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        fragments(packet, mtu, |head, payload| {
            all.push([head, payload].concat());
        })
        .then_some(all)
    }

    /// Puts fragments together again, checking each.
    fn joined(fragments: &[Vec<u8>], mtu: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        for (at, bytes) in fragments.iter().enumerate() {
            assert!(bytes.len() <= mtu);
            let ip = Ipv4::new(bytes.as_slice()).unwrap();
            assert!(ip.checksum_is_right());
            assert_eq!(ip.total_len(), bytes.len());
            assert_eq!(ip.fragment_offset_bytes(), whole.len());
            assert_eq!(ip.more_fragments(), at + 1 < fragments.len());
            whole.extend(ip.payload());
        }
        whole
    }

    #[test]
    fn fragments_join_to_the_packet() {
        let ip = Ip::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let payload: Vec<u8> = (0..4_000_u16).map(|at| at as u8).collect();
        // Strict source route is copied, record route is not.
        let options = [0x89, 7, 4, 1, 2, 3, 4, 7, 3, 4, 0, 0];
        for options in [&[][..], &options] {
            let packet = ip.packet(protocol::UDP, options, &payload);
            for mtu in [68, 576, 1_499, 1_500, 4_000] {
                let all = cut(&packet, mtu).unwrap();
                assert_eq!(joined(&all, mtu), payload);
                assert_eq!(all[0][0] & 0xf, 5 + (options.len() / 4) as u8);
                assert_eq!(all[1][0] & 0xf, if options.is_empty() { 5 } else { 7 });
            }
        }
    }

    #[test]
    fn a_fragment_is_cut_again_and_what_must_not_be_is_not() {
        let mut ip = Ip::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        ip.flags_and_offset = ipv4::MORE_FRAGMENTS | 10;
        let packet = ip.packet(protocol::UDP, &[], &[7; 800]);
        let all = cut(&packet, 420).unwrap();
        let words: Vec<u16> = all
            .iter()
            .map(|bytes| Ipv4::new(bytes.as_slice()).unwrap().flags_and_offset())
            .collect();
        assert_eq!(words, [0x2000 | 10, 0x2000 | 60]);
        assert_eq!(cut(&packet, 27), None);
        ip.flags_and_offset = ipv4::DONT_FRAGMENT;
        assert_eq!(cut(&ip.packet(17, &[], &[7; 800]), 420), None);
        assert_eq!(cut(&[], 420), None);
    }
}
