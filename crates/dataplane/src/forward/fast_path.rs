//! The way of nearly all packets, in as few steps as there are: what is
//! usual is said by one comparison of everything at once, when a packet
//! comes and when it goes. What is not usual goes through the nodes one by
//! one, which say what it is.

use packet::ethernet::{HEADER_LEN, IPV4, IPV6};
use packet::{ipv4, ipv6};

use super::ip;
use super::vector::Destination;
use crate::Buffer;
use crate::neighbour::Adjacency;

/// An Ethernet header, and an IPv4 header without options.
const V4_LEN: usize = HEADER_LEN + ipv4::HEADER_LEN;
/// An Ethernet header and an IPv6 header.
const V6_LEN: usize = HEADER_LEN + ipv6::HEADER_LEN;

/// A station's address, to be compared with the first bytes of frames;
/// never equal to those of one that is for many.
#[inline(always)]
pub fn station(own: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = own;
    match a & 1 {
        0 => u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
        _ => u64::MAX,
    }
}

/// Takes the Ethernet header and what the link padded off an IPv4 packet of
/// the usual kind: for this station, without a tag, without options, of a
/// right length and checksum, from one host to another. `None`, with nothing
/// done, for any other.
#[inline(always)]
pub fn input_v4(frame: &mut Buffer, station: u64) -> Option<u32> {
    let len = frame.frame_len();
    let header = frame.frame().first_chunk::<V4_LEN>()?;
    let word = |at| word(header, at);
    let to_station = u64::from(word(0)) | u64::from(word(4) & 0xffff) << 32;
    let [first, second] = IPV4.to_be_bytes();
    let kind = u32::from_le_bytes([first, second, 0x45, 0]);
    let is_kind = word(12) & 0x00ff_ffff == kind;
    let total_len = usize::from(u16::from_be_bytes([header[16], header[17]]));
    let is_len = total_len.wrapping_sub(ipv4::HEADER_LEN) <= len - V4_LEN;
    // See `ip::is_sum_right`.
    let sum = u64::from(word(14)) + u64::from(word(18)) + u64::from(word(22));
    let sum = sum + u64::from(word(26)) + u64::from(word(30));
    let is_sum = sum.is_multiple_of(0xffff);
    let (from, to) = (word(26).swap_bytes(), word(30).swap_bytes());
    let is_usual = (to_station == station)
        & is_kind
        & is_len
        & is_sum
        & ip::is_of_a_host(from)
        & ip::is_of_a_host(to);
    (is_usual && frame.pull_to_packet(HEADER_LEN, total_len)).then_some(to)
}

/// Four bytes, the first one lowest.
#[inline(always)]
fn word(header: &[u8; V4_LEN], at: usize) -> u32 {
    let word = header.get(at..at + 4).and_then(|word| word.try_into().ok());
    debug_assert!(word.is_some());
    u32::from_le_bytes(word.unwrap_or_default())
}

/// Takes a hop off a packet and puts the Ethernet header of a way in front
/// that is one (`Adjacency::is_plain`). False, with nothing done, for one
/// that is too long, has no hops left, must not leave its link, or has no
/// room in front.
#[inline(always)]
pub fn output<A: Destination>(frame: &mut Buffer, way: Adjacency) -> bool {
    let is_short = frame.frame_len() <= usize::from(way.mtu());
    match A::IS_V6 {
        false => {
            frame.link_in_front::<HEADER_LEN, V4_LEN>(|header| write_v4(header, way, is_short))
        }
        true => frame.link_in_front::<HEADER_LEN, V6_LEN>(|header| write_v6(header, way, is_short)),
    }
}

#[inline(always)]
fn write_v4(header: &mut [u8; V4_LEN], way: Adjacency, is_short: bool) -> bool {
    // Hops, protocol, checksum.
    let [hops, protocol, low, high] = word(header, 22).to_le_bytes();
    if !((hops > 1) & is_short) {
        return false;
    }
    // As `ip::take_hop` does, the bytes read the other way round (RFC 1071
    // §2B): what was 256 there is 1 here.
    let sum = u32::from(u16::from_le_bytes([low, high])) + 1;
    let sum = sum + u32::from(sum >= 0xffff);
    let [low, high] = (sum as u16).to_le_bytes();
    header[22..26].copy_from_slice(&[hops - 1, protocol, low, high]);
    header[..12].copy_from_slice(&way.addresses());
    header[12..14].copy_from_slice(&IPV4.to_be_bytes());
    true
}

#[inline(always)]
fn write_v6(header: &mut [u8; V6_LEN], way: Adjacency, is_short: bool) -> bool {
    let hops = header[21];
    let is_within = ip::is_from_link_local(&header[HEADER_LEN..]);
    if !((hops > 1) & is_short & !is_within) {
        return false;
    }
    header[21] = hops - 1;
    header[..12].copy_from_slice(&way.addresses());
    header[12..14].copy_from_slice(&IPV6.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::super::ethernet::{Carried, input};
    use super::super::ports::{PortSettings, Ports};
    use super::*;
    use crate::neighbour::Kind;
    use crate::testing::buffer;
    use ::packet::build::Ip;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn ports() -> Ports {
        Ports::new(vec![PortSettings {
            link: 1,
            ethernet: Some(OWN),
            vlan: None,
            mtu: 1_500,
            view: 0,
            is_host: false,
            is_outside: false,
            ipv4: None,
            ipv6: None,
        }])
    }

    fn frame(padding: usize) -> Vec<u8> {
        let packet = Ip::new([10, 0, 0, 1].into(), [192, 0, 2, 7].into()).udp(1, 2, &[5; 9]);
        [
            &OWN[..],
            &[2, 9, 9, 9, 9, 9, 8, 0],
            &packet,
            &vec![0; padding],
        ]
        .concat()
    }

    /// What the nodes make of a frame: where it goes, and what is left.
    fn by_nodes(frame: &mut Buffer, bytes: &[u8]) -> Option<(u32, Vec<u8>)> {
        assert!(frame.set_frame(bytes, 0));
        let arrived = input(frame, 0, OWN, &ports());
        if arrived.carried != Carried::Ipv4 {
            return None;
        }
        match ip::check_v4(frame, false) {
            ip::Checked::To(to) => Some((to, frame.frame().to_vec())),
            _ => None,
        }
    }

    #[test]
    fn what_is_usual_is_what_the_nodes_let_through() {
        let (mut random, mut room) = (lab::Random::new(9), buffer(&[]));
        let mut usual = 0;
        for _ in 0..20_000 {
            let mut bytes = frame(random.below(12));
            // Mostly one byte of the headers is another one.
            if random.below(8) > 0 {
                let at = random.below(V4_LEN);
                bytes[at] ^= 1 << random.below(8);
            }
            if random.below(2) == 0 {
                bytes[24..26].fill(0);
                let sum = !packet::checksum::Sum::of(&bytes[HEADER_LEN..V4_LEN]).folded();
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            bytes.truncate(bytes.len() - random.below(4) * random.below(10));
            let nodes = by_nodes(&mut room, &bytes);
            assert!(room.set_frame(&bytes, 14.min(bytes.len())));
            match input_v4(&mut room, station(OWN)) {
                Some(to) => {
                    usual += 1;
                    assert_eq!(Some((to, room.frame().to_vec())), nodes);
                }
                None => {
                    assert_eq!(room.frame(), bytes);
                    // Options are left to the nodes, and nothing else.
                    assert!(nodes.is_none_or(|(_, packet)| packet[0] != 0x45));
                }
            }
        }
        assert!(usual > 1_000, "{usual}");
        assert_eq!(station([3, 0, 0, 0, 0, 1]), u64::MAX);
    }

    #[test]
    fn a_hop_less_is_the_same_for_every_checksum() {
        let way = Adjacency::of_port(Kind::Rewrite, 1, 1_500).with_addresses([2; 6], [4; 6]);
        let mut room = buffer(&[]);
        for sum in 0..=u16::MAX {
            let mut bytes = frame(0);
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            let mut expected = bytes[HEADER_LEN..].to_vec();
            ip::take_hop(&mut expected, false);
            assert!(room.set_frame(&bytes, HEADER_LEN));
            assert!(room.pull_head(HEADER_LEN));
            assert!(output::<u32>(&mut room, way));
            assert_eq!(room.link(), [&[2; 6][..], &[4; 6], &[8, 0]].concat());
            assert_eq!(room.packet(), expected);
        }
    }

    #[test]
    fn what_may_not_go_is_left_as_it_is() {
        let way = Adjacency::of_port(Kind::Rewrite, 1, 37).with_addresses([2; 6], [4; 6]);
        // `front` bytes are free before the packet.
        let refused = |bytes: &[u8], front: usize, way| {
            let (mut frame, packet) = (buffer(&[]), &bytes[HEADER_LEN..]);
            let room = frame.push_head(frame.headroom() - front).unwrap();
            room[..packet.len()].copy_from_slice(packet);
            frame.set_len(packet.len());
            let is_refused = !output::<u32>(&mut frame, way) && frame.headroom() == front;
            is_refused && frame.frame() == packet
        };
        let wide = Adjacency::of_port(Kind::Rewrite, 1, 38);
        assert_eq!(frame(1).len() - HEADER_LEN, 38);
        assert!(refused(&frame(1), HEADER_LEN, way));
        assert!(!refused(&frame(1), HEADER_LEN, wide));
        assert!(refused(&frame(1), HEADER_LEN - 1, wide));
        assert!(refused(&frame(0)[..30], HEADER_LEN, wide));
        for hops in [0, 1] {
            let mut last = frame(0);
            last[22] = hops;
            assert!(refused(&last, HEADER_LEN, wide));
        }
    }
}
