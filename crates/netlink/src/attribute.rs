//! Netlink attributes (`struct nlattr`, `linux/netlink.h`; RFC 3549
//! section 2.3.2 calls them TLVs).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::RawAttributes;

use crate::malformed::Malformed;

/// Bytes of `struct nlattr`.
pub(crate) const HEADER: usize = 4;

/// `NLA_F_NESTED`: attributes inside.
pub const NESTED: u16 = 1 << 15;

/// `NLA_TYPE_MASK`: without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
const TYPE_MASK: u16 = !(3 << 14);

/// The attributes in some bytes (a row's `rest`, `kind_data`, `metrics`,
/// an `encap`), in order: number without its flags, and value. O(1) an
/// attribute, no allocation. After an error it ends.
pub fn attributes(bytes: &[u8]) -> Attributes<'_> {
    Attributes::new(bytes, "attributes", 0)
}

/// The value of the first attribute of a kind in some bytes; `None` where
/// there is none before the end or the first malformed one.
/// O(attributes), no allocation.
pub fn value(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .map_while(Result::ok)
        .find_map(|(of, value)| (of == kind).then_some(value))
}

/// Iterator made by [`attributes`].
#[derive(Debug, Clone, Default)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    message: &'static str,
    /// Of `bytes`, from the payload's start.
    offset: usize,
}

/// An attribute and where it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute<'a> {
    /// `nla_type` without its flags.
    pub(crate) kind: u16,
    pub(crate) value: &'a [u8],
    /// Header and value, without padding.
    raw: &'a [u8],
    message: &'static str,
    offset: usize,
}

impl<'a> Attributes<'a> {
    /// Walks `bytes`, which start `offset` bytes into the payload of
    /// `message`.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], message: &'static str, offset: usize) -> Self {
        Self {
            bytes,
            message,
            offset,
        }
    }

    /// The next attribute; `None` at the end.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<Attribute<'a>>, Malformed> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let Some([l0, l1, k0, k1]) = self.bytes.first_chunk::<HEADER>() else {
            return Err(self.cut_off(0, 0));
        };
        let len = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let kind = u16::from_ne_bytes([*k0, *k1]) & TYPE_MASK;
        let (Some(raw), Some(value)) = (self.bytes.get(..len), self.bytes.get(HEADER..len)) else {
            return Err(self.cut_off(kind, len));
        };
        let attribute = Attribute {
            kind,
            value,
            raw,
            message: self.message,
            offset: self.offset,
        };
        let whole = len.next_multiple_of(4);
        self.bytes = self.bytes.get(whole..).unwrap_or_default();
        self.offset += whole;
        Ok(Some(attribute))
    }

    #[cold]
    fn cut_off(&mut self, kind: u16, claimed: usize) -> Malformed {
        let left = self.bytes.len();
        self.bytes = &[];
        Malformed::AttributeLength {
            message: self.message,
            kind,
            offset: self.offset,
            claimed,
            left,
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step().transpose()?;
        Some(step.map(|attribute| (attribute.kind, attribute.value)))
    }
}

impl<'a> Attribute<'a> {
    /// The value has an impossible size.
    #[cold]
    pub(crate) fn bad_size(&self) -> Malformed {
        Malformed::AttributeSize {
            message: self.message,
            kind: self.kind,
            offset: self.offset,
            size: self.value.len(),
        }
    }

    /// The first `N` bytes of the value.
    #[inline]
    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], Malformed> {
        match self.value.first_chunk::<N>() {
            Some(array) => Ok(*array),
            None => Err(self.bad_size()),
        }
    }

    /// The value, if it has just so many bytes.
    pub(crate) fn exact<const N: usize>(&self) -> Option<[u8; N]> {
        self.value.try_into().ok()
    }

    pub(crate) fn u8(&self) -> Result<u8, Malformed> {
        Ok(u8::from_ne_bytes(self.array()?))
    }

    pub(crate) fn u16(&self) -> Result<u16, Malformed> {
        Ok(u16::from_ne_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u32(&self) -> Result<u32, Malformed> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    pub(crate) fn i32(&self) -> Result<i32, Malformed> {
        Ok(i32::from_ne_bytes(self.array()?))
    }

    /// An address, its family told by its size.
    #[inline]
    pub(crate) fn address(&self) -> Result<IpAddr, Malformed> {
        address(self.value).ok_or_else(|| self.bad_size())
    }

    /// Puts an address where it is wanted: not through a `Result`, which is
    /// written in pieces and read whole, and so waited for.
    #[inline]
    pub(crate) fn put_address(&self, place: &mut Option<IpAddr>) -> Result<(), Malformed> {
        *place = address(self.value);
        match place {
            Some(_) => Ok(()),
            None => Err(self.bad_size()),
        }
    }

    /// A string, up to its NUL if it has one. What is not UTF-8 (a link's
    /// name may be any bytes) is kept as [`table::text`] says.
    pub(crate) fn text(&self) -> Box<str> {
        let end = self.value.iter().position(|byte| *byte == 0);
        let text = self.value.get(..end.unwrap_or(self.value.len()));
        table::text::of_octets(text.unwrap_or_default())
    }

    /// A string that [`crate::build::Build::put_text`] writes again as it
    /// is; `None` of any other.
    pub(crate) fn exact_text(&self) -> Option<Box<str>> {
        let text = self.value.strip_suffix(&[0]).unwrap_or(self.value);
        let text = std::str::from_utf8(text).ok()?;
        (!text.contains('\0')).then(|| text.into())
    }

    /// Where the value starts, counted from the payload's start.
    pub(crate) fn value_offset(&self) -> usize {
        self.offset + HEADER
    }

    /// The attributes inside.
    pub(crate) fn nested(&self) -> Attributes<'a> {
        Attributes::new(self.value, self.message, self.value_offset())
    }
}

/// An address in network byte order, as attributes have it: IPv4 of four
/// bytes, IPv6 of sixteen; `None` of any other length. O(1).
#[inline]
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    let octets = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(octets)))
}

/// Collects attributes to be kept as they came, padded anew with zeros so
/// that equal attributes are equal bytes. Allocates at the first.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<u8>);

impl Kept {
    #[cold]
    pub(crate) fn keep(&mut self, attribute: &Attribute<'_>) {
        self.0.extend_from_slice(attribute.raw);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    #[inline]
    pub(crate) fn into_attributes(self) -> RawAttributes {
        RawAttributes::new(&self.0)
    }
}

impl<'a> Attributes<'a> {
    /// Hands every attribute to `take`; keeps those that it does not take
    /// (`None`), because they are not known or their value is not what it
    /// should be.
    pub(crate) fn sort(
        mut self,
        mut take: impl FnMut(&Attribute<'a>) -> Option<()>,
    ) -> Result<RawAttributes, Malformed> {
        let mut kept = Kept::default();
        while let Some(attribute) = self.step()? {
            if take(&attribute).is_none() {
                kept.keep(&attribute);
            }
        }
        Ok(kept.into_attributes())
    }

    /// Hands every attribute to `take`; `None` if one is not taken or
    /// cannot be read.
    pub(crate) fn all(mut self, mut take: impl FnMut(&Attribute<'a>) -> Option<()>) -> Option<()> {
        while let Some(attribute) = self.step().ok()? {
            take(&attribute)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_nested_and_unpadded_ends_and_stops_after_an_error() {
        let good = [5u8, 0, 1, 0x80, 9, 0, 0, 0, 6, 0, 2, 0, 7, 8];
        let walked: Vec<_> = attributes(&good).collect::<Result<_, _>>().unwrap();
        assert_eq!(walked, [(1, &[9u8][..]), (2, &[7, 8][..])]);
        for bad in [&[1u8, 0, 0][..], &[3, 0, 1, 0], &[9, 0, 1, 0, 0, 0, 0, 0]] {
            let mut walk = attributes(bad);
            assert!(walk.next().unwrap().is_err());
            assert!(walk.next().is_none());
        }
    }

    #[test]
    fn the_first_of_a_kind_is_found_unless_behind_a_malformed_one() {
        let mut bytes = vec![5u8, 0, 1, 0, 9, 0, 0, 0, 5, 0, 2, 0x80, 8, 0, 0, 0];
        bytes.extend([5, 0, 2, 0, 7, 0, 0, 0, 99, 0, 3, 0]);
        assert_eq!(value(&bytes, 1), Some(&[9][..]));
        assert_eq!(value(&bytes, 2), Some(&[8][..]));
        assert_eq!(value(&bytes, 3), None);
        assert_eq!(value(&[], 1), None);
    }

    #[test]
    fn an_address_has_four_or_sixteen_bytes() {
        assert_eq!(address(&[192, 0, 2, 1]), "192.0.2.1".parse().ok());
        let mut loopback = [0; 16];
        loopback[15] = 1;
        assert_eq!(address(&loopback), "::1".parse().ok());
        assert_eq!(address(&[1, 2, 3]), None);
        assert_eq!(address(&[]), None);
    }

    #[test]
    fn kept_attributes_are_padded_with_zeros() {
        let bytes = [5u8, 0, 1, 0, 9, 0xff, 0xff, 0xff];
        let attribute = attributes(&bytes).step().unwrap().unwrap();
        let mut kept = Kept::default();
        kept.keep(&attribute);
        assert_eq!(kept.into_attributes().bytes(), [5, 0, 1, 0, 9, 0, 0, 0]);
    }
}
