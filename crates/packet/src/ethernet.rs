//! Ethernet II frames, with any number of 802.1Q tags that fits.

use crate::Malformed;
use crate::field::{at_least, be16, get, part, part_mut, put};

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of an 802.1Q tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an 802.1ad (service) tag.
pub const SERVICE_VLAN: u16 = 0x88a8;

/// Bytes of a header without tags.
pub const HEADER_LEN: usize = 14;
/// Bytes of a tag.
pub const TAG_LEN: usize = 4;
/// Tags that are looked behind; a third one reads as the type.
pub const MAX_TAGS: usize = 2;

/// A frame without preamble and check sequence.
#[derive(Debug, Clone, Copy)]
pub struct Ethernet<B> {
    bytes: B,
    tags: u8,
}

impl<B: AsRef<[u8]>> Ethernet<B> {
    /// A view of a frame. Refuses a frame shorter than its header and tags.
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        at_least("Ethernet", bytes.as_ref(), HEADER_LEN)?;
        let mut tags = 0;
        while tags < MAX_TAGS
            && matches!(
                be16(bytes.as_ref(), 12 + tags * TAG_LEN),
                VLAN | SERVICE_VLAN
            )
        {
            tags += 1;
            at_least("802.1Q", bytes.as_ref(), HEADER_LEN + tags * TAG_LEN)?;
        }
        let tags = tags as u8;
        Ok(Self { bytes, tags })
    }

    /// Destination address.
    pub fn destination(&self) -> [u8; 6] {
        get(self.bytes.as_ref(), 0)
    }

    /// Source address.
    pub fn source(&self) -> [u8; 6] {
        get(self.bytes.as_ref(), 6)
    }

    /// How many tags stand before the type, at most [`MAX_TAGS`].
    pub fn tags(&self) -> usize {
        usize::from(self.tags)
    }

    /// The VLAN of a tag, 0 the outermost (IEEE 802.1Q: 12 bits).
    pub fn vlan(&self, tag: usize) -> Option<u16> {
        (tag < self.tags()).then(|| be16(self.bytes.as_ref(), HEADER_LEN + tag * TAG_LEN) & 0x0fff)
    }

    /// The type behind all tags.
    pub fn ethertype(&self) -> u16 {
        be16(self.bytes.as_ref(), self.header_len() - 2)
    }

    /// Bytes of header and tags.
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.tags() * TAG_LEN
    }

    /// What the frame carries, padding included.
    pub fn payload(&self) -> &[u8] {
        let at = self.header_len();
        part(self.bytes.as_ref(), at..)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ethernet<B> {
    /// Sets the destination address.
    pub fn set_destination(&mut self, address: [u8; 6]) {
        put(self.bytes.as_mut(), 0, address);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: [u8; 6]) {
        put(self.bytes.as_mut(), 6, address);
    }

    /// What the frame carries, to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let at = self.header_len();
        part_mut(self.bytes.as_mut(), at..)
    }
}
