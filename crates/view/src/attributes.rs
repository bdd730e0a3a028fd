//! Numbers in the values of attributes that rows keep as they
//! came. The attributes are walked by `netlink::attribute`.

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
