//! Prefixes as BGP writes them (RFC 4271 §4.3, RFC 7911 §3).

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::Bad;
use crate::bytes::Bytes;

/// A prefix: a length in bits and as many bytes as that takes. Bits behind
/// the length say nothing.
#[inline]
pub fn prefix(bytes: &mut Bytes<'_>, is_v6: bool) -> Result<IpNet, Bad> {
    let len = bytes.u8("a prefix")?;
    if len > if is_v6 { 128 } else { 32 } {
        return Err(Bad::Length {
            what: "a prefix",
            len: len.into(),
        });
    }
    let said = bytes.take(usize::from(len).div_ceil(8), "a prefix")?;
    net(said, len, is_v6)
}

/// A prefix of a length whose first bytes are these.
#[inline]
pub fn net(said: &[u8], len: u8, is_v6: bool) -> Result<IpNet, Bad> {
    let wrong = |_| Bad::Length {
        what: "a prefix",
        len: len.into(),
    };
    if is_v6 {
        let mut octets = [0; 16];
        said.iter()
            .zip(&mut octets)
            .for_each(|(said, to)| *to = *said);
        let net = Ipv6Net::new(Ipv6Addr::from(octets), len).map_err(wrong)?;
        return Ok(IpNet::V6(net.trunc()));
    }
    let mut octets = [0; 4];
    said.iter()
        .zip(&mut octets)
        .for_each(|(said, to)| *to = *said);
    let net = Ipv4Net::new(Ipv4Addr::from(octets), len).map_err(wrong)?;
    Ok(IpNet::V4(net.trunc()))
}

/// Prefixes behind each other, each with its path identifier where there
/// are such.
#[derive(Debug, Clone, Copy)]
pub struct Prefixes<'a> {
    bytes: Bytes<'a>,
    is_v6: bool,
    has_path_ids: bool,
}

impl<'a> Prefixes<'a> {
    /// The prefixes of a family in some bytes.
    pub fn new(bytes: &'a [u8], is_v6: bool, has_path_ids: bool) -> Self {
        Self {
            bytes: Bytes(bytes),
            is_v6,
            has_path_ids,
        }
    }

    /// None.
    pub fn none() -> Self {
        Self::new(&[], false, false)
    }

    /// Whether there is none left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn one(&mut self) -> Result<(Option<u32>, IpNet), Bad> {
        let id = match self.has_path_ids {
            true => Some(self.bytes.u32("a path identifier")?),
            false => None,
        };
        Ok((id, prefix(&mut self.bytes, self.is_v6)?))
    }
}

impl Iterator for Prefixes<'_> {
    type Item = Result<(Option<u32>, IpNet), Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let one = self.one();
        if one.is_err() {
            self.bytes = Bytes(&[]);
        }
        Some(one)
    }
}

/// Whether a family is IPv6, if it is IPv4 or IPv6 unicast: others have no
/// rows here.
pub fn unicast(afi: u16, safi: u8) -> Option<bool> {
    match (afi, safi) {
        (1, 1) => Some(false),
        (2, 1) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_to_their_end() {
        let all =
            |bytes: &[u8], is_v6, ids| -> Vec<_> { Prefixes::new(bytes, is_v6, ids).collect() };
        let net = |text: &str| -> IpNet { text.parse().unwrap() };
        assert_eq!(
            all(&[0, 9, 10, 255, 32, 1, 2, 3, 4], false, false),
            [
                Ok((None, net("0.0.0.0/0"))),
                Ok((None, net("10.128.0.0/9"))),
                Ok((None, net("1.2.3.4/32")))
            ]
        );
        assert_eq!(
            all(&[0, 0, 0, 7, 16, 0x20, 0x01], true, true),
            [Ok((Some(7), net("2001::/16")))]
        );
        let long = Bad::Length {
            what: "a prefix",
            len: 33,
        };
        assert_eq!(all(&[33, 1, 2, 3, 4, 5, 0], false, false), [Err(long)]);
        assert_eq!(all(&[9, 10], false, false), [Err(Bad::Short("a prefix"))]);
        let id = Err(Bad::Short("a path identifier"));
        assert_eq!(all(&[0, 0], false, true), [id]);
    }
}
