//! Walks the netlink attributes that rows keep as they came.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an attribute, without the flags for nesting and byte order
/// (`NLA_TYPE_MASK`).
const KIND: u16 = 0x3fff;

/// The attributes (`struct nlattr`) of a run of bytes: kind and payload.
/// Ends quietly at the first one that does not fit: what is kept in a row
/// was checked when it was decoded.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & KIND;
        let payload = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

/// The payload of the first attribute of a kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(of, _)| *of == kind)
        .map(|(_, payload)| payload)
}

/// An unsigned number of one, two, four or eight octets in the machine's
/// byte order.
pub(crate) fn number(payload: &[u8]) -> Option<u64> {
    match *payload {
        [a] => Some(a.into()),
        [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
        [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
        _ => Some(u64::from_ne_bytes(payload.try_into().ok()?)),
    }
}

/// The same in network byte order.
pub(crate) fn network_number(payload: &[u8]) -> Option<u64> {
    (payload.len() <= 8).then(|| {
        payload
            .iter()
            .fold(0, |n, octet| n << 8 | u64::from(*octet))
    })
}

/// An address of four or sixteen octets.
pub(crate) fn address(payload: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(payload)
        .map(|octets| Ipv4Addr::from(octets).into())
        .or_else(|_| <[u8; 16]>::try_from(payload).map(|octets| Ipv6Addr::from(octets).into()))
        .ok()
}

/// Text up to its zero octet.
pub(crate) fn text(payload: &[u8]) -> &str {
    let end = payload.iter().position(|octet| *octet == 0);
    std::str::from_utf8(&payload[..end.unwrap_or(payload.len())]).unwrap_or_default()
}
