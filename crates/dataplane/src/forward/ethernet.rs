//! The node that takes Ethernet headers off: for us, which VLAN, which
//! protocol.

use packet::ethernet::{ARP, HEADER_LEN, IPV4, IPV6, SERVICE_VLAN, TAG_LEN, VLAN};

use super::Reason;
use super::ports::Ports;
use crate::Buffer;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// An IPv4 packet, for us alone.
    Ipv4,
    /// An IPv6 packet, for us alone.
    Ipv6,
    /// The kernel's business: ARP, or sent to a group or to all stations.
    Host,
    /// Nothing that goes on.
    Dropped(Reason),
}

/// A frame, as its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// The port that it belongs to: another than the one it came by if it
    /// has a tag.
    pub port: u16,
    /// What it carries.
    pub carried: Carried,
}

/// Reads a frame's header and takes it off; what is the host's keeps it off
/// as well, for the host has no Ethernet here.
#[inline(always)]
pub fn input(frame: &mut Buffer, port: u16, own: [u8; 6], ports: &Ports) -> Arrived {
    let dropped = |reason| Arrived {
        port,
        carried: Carried::Dropped(reason),
    };
    let Some(header) = frame.frame().first_chunk::<HEADER_LEN>() else {
        return dropped(Reason::FrameShort);
    };
    let [a, b, c, d, e, f, .., high, low] = *header;
    let is_group = a & 1 != 0;
    let is_ours = [a, b, c, d, e, f] == own;
    let mut protocol = u16::from_be_bytes([high, low]);
    let mut of = port;
    let mut len = HEADER_LEN;
    if protocol == VLAN || protocol == SERVICE_VLAN {
        let Some([tag_high, tag_low, high, low]) = frame.frame().get(len..len + TAG_LEN) else {
            return dropped(Reason::FrameShort);
        };
        let vlan = u16::from_be_bytes([*tag_high, *tag_low]) & 0x0fff;
        // Priority tags belong to the port itself (802.1Q §6.9.1).
        let tagged = match vlan {
            0 => Some(port),
            _ => ports.of_vlan(port, vlan).filter(|_| protocol == VLAN),
        };
        let Some(tagged) = tagged else {
            return dropped(Reason::NoVlan);
        };
        of = tagged;
        protocol = u16::from_be_bytes([*high, *low]);
        len += TAG_LEN;
    }
    if !is_ours && !is_group {
        return dropped(Reason::OtherStation);
    }
    let packet_len = frame.frame_len() - len;
    let is_pulled = frame.pull_to_packet(len, packet_len);
    debug_assert!(is_pulled, "a header that was read");
    let carried = match (protocol, is_group) {
        (IPV4, false) => Carried::Ipv4,
        (IPV6, false) => Carried::Ipv6,
        (IPV4, true) if !is_group_v4(frame.packet()) => Carried::Dropped(Reason::Ipv4LinkBroadcast),
        (IPV6, true) if !is_group_v6(frame.packet()) => Carried::Dropped(Reason::Ipv6LinkBroadcast),
        (IPV4 | IPV6 | ARP, _) => Carried::Host,
        _ => Carried::Dropped(Reason::UnknownProtocol),
    };
    Arrived { port: of, carried }
}

/// Whether an IPv4 packet goes to a group or to all: only such may come in
/// a frame for many (RFC 1122 §3.3.6). Directed broadcasts too, which only
/// the kernel can tell; a last byte of 255 stands for them.
fn is_group_v4(packet: &[u8]) -> bool {
    packet
        .get(16..20)
        .is_some_and(|to| (224..240).contains(&to[0]) || to[3] == 255)
}

/// The same for IPv6 (RFC 4291 §2.7).
fn is_group_v6(packet: &[u8]) -> bool {
    packet.get(24) == Some(&0xff)
}

#[cfg(test)]
mod tests {
    use super::super::ports::PortSettings;
    use super::*;
    use crate::testing::buffer;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn ports() -> Ports {
        let port = |link, vlan| PortSettings {
            link,
            ethernet: Some(OWN),
            vlan,
            mtu: 1_500,
            view: 0,
            is_host: false,
            is_outside: false,
            ipv4: None,
            ipv6: None,
        };
        Ports::new(vec![port(10, None), port(11, Some((0, 7)))])
    }

    fn arrive(to: [u8; 6], behind: &[u8]) -> (Arrived, Vec<u8>) {
        let mut frame = buffer(&[&to[..], &[2, 0, 0, 0, 0, 9], behind].concat());
        let arrived = input(&mut frame, 0, OWN, &ports());
        (arrived, frame.frame().to_vec())
    }

    fn to_v4(address: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet[16..].copy_from_slice(&address);
        packet
    }

    #[test]
    fn frames_are_told_apart() {
        let unicast = to_v4([192, 0, 2, 1]);
        let (arrived, packet) = arrive(OWN, &[&[8, 0], &unicast[..]].concat());
        assert_eq!((arrived.carried, packet), (Carried::Ipv4, unicast.clone()));
        let (arrived, _) = arrive(OWN, &[0x86, 0xdd, 0x60]);
        assert_eq!(arrived.carried, Carried::Ipv6);
        let (arrived, _) = arrive([0xff; 6], &[8, 6, 0]);
        assert_eq!(arrived.carried, Carried::Host);
        let dropped = |to, behind: &[u8]| match arrive(to, behind).0.carried {
            Carried::Dropped(reason) => Some(reason),
            _ => None,
        };
        let other = [2, 0, 0, 0, 0, 3];
        assert_eq!(dropped(other, &[8, 0, 1]), Some(Reason::OtherStation));
        assert_eq!(dropped(OWN, &[9, 0, 1]), Some(Reason::UnknownProtocol));
        assert_eq!(dropped(OWN, &[8]), Some(Reason::FrameShort));
        let all = [&[8, 0], &unicast[..]].concat();
        assert_eq!(dropped([0xff; 6], &all), Some(Reason::Ipv4LinkBroadcast));
        for group in [[224, 0, 0, 5], [255; 4], [192, 0, 2, 255]] {
            let all = [&[8, 0], &to_v4(group)[..]].concat();
            assert_eq!(dropped([0xff; 6], &all), None);
        }
        assert_eq!(
            dropped([0x33; 6], &[0x86, 0xdd, 0x60]),
            Some(Reason::Ipv6LinkBroadcast)
        );
    }

    #[test]
    fn a_tag_says_the_port() {
        let tagged = |tag: [u8; 2]| arrive(OWN, &[0x81, 0, tag[0], tag[1], 8, 0, 0x45]);
        let (arrived, packet) = tagged([0xe0, 7]);
        assert_eq!((arrived.port, arrived.carried), (1, Carried::Ipv4));
        assert_eq!(packet, [0x45]);
        assert_eq!(tagged([0xe0, 0]).0.port, 0);
        let (arrived, _) = tagged([0, 8]);
        assert_eq!(arrived.carried, Carried::Dropped(Reason::NoVlan));
        let (arrived, _) = arrive(OWN, &[0x81, 0, 0, 7, 8]);
        assert_eq!(arrived.carried, Carried::Dropped(Reason::FrameShort));
        let (arrived, _) = arrive(OWN, &[0x88, 0xa8, 0, 7, 8, 0]);
        assert_eq!(arrived.carried, Carried::Dropped(Reason::NoVlan));
    }
}
