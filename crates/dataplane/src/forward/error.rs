//! ICMP errors of the router's own (RFC 792, RFC 1812 §4.3, RFC 4443).

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::checksum::Sum;
use packet::{Icmp, Ipv4, Ipv6, icmp, ipv4, ipv6, protocol};

/// What is said to the sender of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Time to live or hop limit exceeded in transit.
    HopsExceeded,
    /// No route to the destination.
    NoRoute,
    /// The destination's neighbour does not answer, or its route says so.
    HostUnreachable,
    /// A route prohibits it.
    Prohibited,
    /// Longer than this MTU, and not to be cut by routers.
    TooBig(u16),
    /// A link-local source beyond its link (IPv6).
    BeyondScope,
}

impl Message {
    /// Type, code and second word (RFC 792, RFC 1812 §5.2.7.1, RFC 1191).
    fn v4(self) -> (u8, u8, u32) {
        match self {
            Self::HopsExceeded => (icmp::TIME_EXCEEDED, 0, 0),
            Self::NoRoute | Self::BeyondScope => (icmp::UNREACHABLE, 0, 0),
            Self::HostUnreachable => (icmp::UNREACHABLE, 1, 0),
            Self::Prohibited => (icmp::UNREACHABLE, 13, 0),
            Self::TooBig(mtu) => (icmp::UNREACHABLE, 4, u32::from(mtu)),
        }
    }

    /// Type, code and second word (RFC 4443 §3).
    fn v6(self) -> (u8, u8, u32) {
        match self {
            Self::HopsExceeded => (3, 0, 0),
            Self::NoRoute => (1, 0, 0),
            Self::HostUnreachable => (1, 3, 0),
            Self::Prohibited => (1, 1, 0),
            Self::BeyondScope => (1, 2, 0),
            Self::TooBig(mtu) => (2, 0, u32::from(mtu)),
        }
    }
}

/// Bytes of an error at most: 576 (RFC 1812 §4.3.2.3), 1,280 (RFC 4443
/// §2.4 (c)).
const MAX_V4_BYTES: usize = 576;
const MAX_V6_BYTES: usize = 1_280;
/// Hops of an error.
const TTL: u8 = 64;
/// Precedence 6, "internetwork control" (RFC 1812 §4.3.2.5).
const TOS: u8 = 0xc0;

/// Whether an error may be sent about an IPv4 packet (RFC 1812 §4.3.2.7).
pub fn is_due_v4(packet: &[u8]) -> bool {
    let Ok(ip) = Ipv4::parse_truncated(packet) else {
        return false;
    };
    let is_error = || {
        let kind = ip.payload().first();
        kind.is_none_or(|&kind| icmp::kind(kind) == icmp::Kind::Error)
    };
    ip.fragment_offset_bytes() == 0
        && is_single_v4(ip.source())
        && !ip.destination().is_multicast()
        && !ip.destination().is_broadcast()
        && !(ip.protocol() == protocol::ICMP && is_error())
}

/// Whether an error may be sent about an IPv6 packet (RFC 4443 §2.4 (e));
/// "packet too big" may be sent about one to a group.
pub fn is_due_v6(packet: &[u8], message: Message) -> bool {
    let Ok(ip) = Ipv6::parse_truncated(packet) else {
        return false;
    };
    let source = ip.source();
    let is_error = || match ip.upper() {
        Ok(upper) if upper.protocol == protocol::ICMPV6 => {
            let kind = upper.payload.first();
            kind.is_none_or(|&kind| kind < icmp::V6_FIRST_INFORMATIONAL)
        }
        Ok(_) => false,
        Err(_) => true,
    };
    !source.is_unspecified()
        && !source.is_multicast()
        && !source.is_loopback()
        && (!ip.destination().is_multicast() || matches!(message, Message::TooBig(_)))
        && !is_error()
}

/// Whether an address is one host's (RFC 1812 §4.3.2.7).
fn is_single_v4(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

/// Writes an error about an IPv4 packet; gives its length, 0 where the
/// packet or the room does not do.
pub fn write_v4(room: &mut [u8], message: Message, about: &[u8], from: Ipv4Addr) -> usize {
    let Ok(ip) = Ipv4::parse_truncated(about) else {
        return 0;
    };
    let head = ipv4::HEADER_LEN + icmp::HEADER_LEN;
    let quoted = about.len().min(ip.total_len()).min(MAX_V4_BYTES - head);
    let len = head + quoted;
    let Some(bytes) = room.get_mut(..len) else {
        return 0;
    };
    bytes[..head].fill(0);
    bytes[head..].copy_from_slice(&about[..quoted]);
    bytes[0] = 0x45;
    bytes[1] = TOS;
    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&[TTL, protocol::ICMP]);
    bytes[12..16].copy_from_slice(&from.octets());
    bytes[16..20].copy_from_slice(&ip.source().octets());
    let (kind, code, word) = message.v4();
    bytes[20..22].copy_from_slice(&[kind, code]);
    bytes[24..28].copy_from_slice(&word.to_be_bytes());
    if let Ok(mut message) = Icmp::new(&mut bytes[ipv4::HEADER_LEN..]) {
        message.fill_checksum(Sum::default());
    }
    if let Ok(mut header) = Ipv4::new(&mut *bytes) {
        header.fill_checksum();
    }
    len
}

/// Writes an error about an IPv6 packet; gives its length, 0 where the
/// packet or the room does not do.
pub fn write_v6(room: &mut [u8], message: Message, about: &[u8], from: Ipv6Addr) -> usize {
    let Ok(ip) = Ipv6::parse_truncated(about) else {
        return 0;
    };
    let head = ipv6::HEADER_LEN + icmp::HEADER_LEN;
    let quoted = about.len().min(ip.total_len()).min(MAX_V6_BYTES - head);
    let len = head + quoted;
    let Some(bytes) = room.get_mut(..len) else {
        return 0;
    };
    bytes[..head].fill(0);
    bytes[head..].copy_from_slice(&about[..quoted]);
    bytes[0] = 0x60;
    let payload = (len - ipv6::HEADER_LEN) as u16;
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    bytes[6..8].copy_from_slice(&[protocol::ICMPV6, TTL]);
    bytes[8..24].copy_from_slice(&from.octets());
    bytes[24..40].copy_from_slice(&ip.source().octets());
    let (kind, code, word) = message.v6();
    bytes[40..42].copy_from_slice(&[kind, code]);
    bytes[44..48].copy_from_slice(&word.to_be_bytes());
    let pseudo = Sum::pseudo_ipv6(
        from.octets(),
        ip.source().octets(),
        protocol::ICMPV6,
        u32::from(payload),
    );
    if let Ok(mut message) = Icmp::new(&mut bytes[ipv6::HEADER_LEN..]) {
        message.fill_checksum(pseudo);
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::build::Ip;

    const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn an_error_quotes_and_adds_up() {
        let about = Ip::new(THERE, Ipv4Addr::new(198, 51, 100, 7)).udp(1, 2, &[7; 900]);
        let mut room = [0; 2_000];
        let len = write_v4(&mut room, Message::TooBig(1_400), &about, HERE);
        assert_eq!(len, MAX_V4_BYTES);
        let ip = Ipv4::new(&room[..len]).unwrap();
        assert!(ip.checksum_is_right());
        assert_eq!((ip.source(), ip.destination()), (HERE, THERE));
        let message = Icmp::new(ip.payload()).unwrap();
        assert!(message.checksum_is_right(Sum::default()));
        assert_eq!((message.icmp_type(), message.code()), (3, 4));
        assert_eq!(message.sequence(), 1_400);
        assert_eq!(message.payload(), &about[..MAX_V4_BYTES - 28]);
        assert_eq!(write_v4(&mut room[..30], Message::NoRoute, &about, HERE), 0);
    }

    #[test]
    fn no_errors_about_errors_groups_or_later_fragments() {
        let mut ip = Ip::new(THERE, Ipv4Addr::new(198, 51, 100, 7));
        assert!(is_due_v4(&ip.udp(1, 2, b"x")));
        assert!(is_due_v4(&ip.icmp(icmp::ECHO, 0, [0; 4], b"x")));
        assert!(!is_due_v4(&ip.icmp(icmp::UNREACHABLE, 0, [0; 4], b"x")));
        assert!(!is_due_v4(&ip.packet(protocol::ICMP, &[], &[])));
        ip.flags_and_offset = 9;
        assert!(!is_due_v4(&ip.udp(1, 2, b"x")));
        ip.flags_and_offset = 0;
        ip.source = Ipv4Addr::LOCALHOST;
        assert!(!is_due_v4(&ip.udp(1, 2, b"x")));
        ip.source = THERE;
        ip.destination = Ipv4Addr::new(224, 0, 0, 5);
        assert!(!is_due_v4(&ip.udp(1, 2, b"x")));
        assert!(!is_due_v4(&[]));
    }

    fn v6(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next_header, 64];
        let source: Ipv6Addr = "2001:db8::2".parse().unwrap();
        let destination: Ipv6Addr = "2001:db8:1::9".parse().unwrap();
        bytes.extend(source.octets());
        bytes.extend(destination.octets());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn an_error_of_ipv6_adds_up_too() {
        let about = v6(protocol::UDP, &[0; 30]);
        assert!(is_due_v6(&about, Message::HopsExceeded));
        let from = "2001:db8::1".parse().unwrap();
        let mut room = [0; 2_000];
        let len = write_v6(&mut room, Message::HopsExceeded, &about, from);
        assert_eq!(len, 48 + 70);
        let ip = Ipv6::new(&room[..len]).unwrap();
        let message = Icmp::new(ip.payload()).unwrap();
        let pseudo = ip.pseudo_header(protocol::ICMPV6, 78);
        assert!(message.checksum_is_right(pseudo));
        assert!(!is_due_v6(&room[..len], Message::HopsExceeded));
        assert!(is_due_v6(
            &v6(protocol::ICMPV6, &[128, 0]),
            Message::NoRoute
        ));
        assert!(!is_due_v6(&v6(protocol::ICMPV6, &[1, 0]), Message::NoRoute));
    }
}
