//! A request's UDP packet, and the answer's in its place. For the engine.

use std::net::Ipv4Addr;

use packet::checksum::Sum;
use packet::{Ipv4, Udp, protocol};

/// Bytes of the headers of IPv4, without options, and of UDP.
pub const HEADERS_LEN: usize = 28;
/// The hops that an answer may take.
const TTL: u8 = 64;

/// Who asked what.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub client: (Ipv4Addr, u16),
    pub server: (Ipv4Addr, u16),
}

/// A whole, sound datagram's ends and data.
pub fn read(bytes: &[u8]) -> Option<(Asked, &[u8])> {
    let ip = Ipv4::new(bytes).ok()?;
    let payload = bytes.get(ip.header_len()..ip.total_len())?;
    let udp = Udp::new(payload).ok()?;
    let len = udp.length();
    if ip.is_fragment() || len != payload.len() {
        return None;
    }
    // 0: the sender has not made one (RFC 768).
    if udp.checksum() != 0 && !udp.checksum_is_right(ip.pseudo_header()) {
        return None;
    }
    let asked = Asked {
        client: (ip.source(), udp.source_port()),
        server: (ip.destination(), udp.destination_port()),
    };
    Some((asked, payload.get(8..)?))
}

/// Writes a datagram; its length, `None`: there is no room.
pub fn write(
    room: &mut [u8],
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    data: &[u8],
) -> Option<usize> {
    let len = HEADERS_LEN + data.len();
    let total = u16::try_from(len).ok()?.to_be_bytes();
    let bytes = room.get_mut(..len)?;
    let (head, udp) = bytes.split_at_mut(20);
    head.copy_from_slice(&[
        0x45,
        0,
        total[0],
        total[1],
        0,
        0,
        0x40,
        0,
        TTL,
        protocol::UDP,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    for (place, byte) in head.iter_mut().skip(12).zip(from.0.octets()) {
        *place = byte;
    }
    for (place, byte) in head.iter_mut().skip(16).zip(to.0.octets()) {
        *place = byte;
    }
    let checksum = Sum::of(head).checksum().to_ne_bytes();
    for (place, byte) in head.iter_mut().skip(10).zip(checksum) {
        *place = byte;
    }
    let udp_len = (len - 20) as u16;
    let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()];
    let fields = [ports[0], ports[1], udp_len.to_be_bytes(), [0, 0]];
    for (place, byte) in udp.iter_mut().zip(fields.as_flattened()) {
        *place = *byte;
    }
    udp.get_mut(8..)?.copy_from_slice(data);
    let pseudo = Sum::pseudo_ipv4(from.0.octets(), to.0.octets(), protocol::UDP, udp_len);
    Udp::new(udp).ok()?.fill_checksum(pseudo);
    Some(len)
}
