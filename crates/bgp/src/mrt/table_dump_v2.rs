//! `TABLE_DUMP_V2` (RFC 6396 §4.3, RFC 8050 §4): the tables of today.

use ipnet::IpNet;

use super::{Named, Record};
use crate::Bad;
use crate::bytes::Bytes;
use crate::nlri;
use crate::nlri::unicast;

/// Which peers the numbers in the records behind it mean.
#[derive(Debug, Clone, Copy)]
pub struct PeerIndex<'a> {
    left: u16,
    bytes: Bytes<'a>,
}

/// All paths to a prefix.
#[derive(Debug, Clone, Copy)]
pub struct Rib<'a> {
    /// The prefix.
    pub prefix: IpNet,
    /// The paths.
    pub entries: Entries<'a>,
}

/// The paths to a prefix.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    left: u16,
    bytes: Bytes<'a>,
    has_path_ids: bool,
}

/// A path.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Whose, by its number.
    pub peer: u16,
    /// Of which of several paths.
    pub path_id: Option<u32>,
    /// The attributes of a message, with AS numbers of four bytes.
    pub attributes: &'a [u8],
}

const INDEX: &str = "the table of peers";
const RIB: &str = "an entry of a table";

/// A peer's address is IPv6; its AS number has four bytes (RFC 6396 §4.3.1).
const PEER_V6: u8 = 1;
const PEER_AS4: u8 = 2;

pub(super) fn read(subtype: u16, body: &[u8]) -> Result<Record<'_>, Bad> {
    let mut bytes = Bytes(body);
    match subtype {
        1 => PeerIndex::read(bytes).map(Record::Peers),
        // Multicast (3, 5, 9, 11) has no rows here.
        2 => rib(&mut bytes, false, false),
        4 => rib(&mut bytes, true, false),
        8 => rib(&mut bytes, false, true),
        10 => rib(&mut bytes, true, true),
        6 => generic(&mut bytes),
        _ => Ok(Record::Other),
    }
}

fn rib<'a>(bytes: &mut Bytes<'a>, is_v6: bool, has_path_ids: bool) -> Result<Record<'a>, Bad> {
    bytes.u32(RIB)?;
    paths(bytes, is_v6, has_path_ids)
}

fn paths<'a>(bytes: &mut Bytes<'a>, is_v6: bool, has_path_ids: bool) -> Result<Record<'a>, Bad> {
    let prefix = nlri::prefix(bytes, is_v6)?;
    let entries = Entries {
        left: bytes.u16(RIB)?,
        bytes: *bytes,
        has_path_ids,
    };
    Ok(Record::Rib(Rib { prefix, entries }))
}

/// `RIB_GENERIC` (RFC 6396 §4.3.3): with a family, of which two have rows.
fn generic<'a>(bytes: &mut Bytes<'a>) -> Result<Record<'a>, Bad> {
    bytes.u32(RIB)?;
    let (afi, safi) = (bytes.u16(RIB)?, bytes.u8(RIB)?);
    match unicast(afi, safi) {
        Some(is_v6) => paths(bytes, is_v6, false),
        None => Ok(Record::Other),
    }
}

impl<'a> PeerIndex<'a> {
    fn read(mut bytes: Bytes<'a>) -> Result<Self, Bad> {
        bytes.u32(INDEX)?;
        let name = bytes.u16(INDEX)?;
        bytes.take(name.into(), INDEX)?;
        Ok(Self {
            left: bytes.u16(INDEX)?,
            bytes,
        })
    }

    fn one(&mut self) -> Result<Named, Bad> {
        let bytes = &mut self.bytes;
        let kind = bytes.u8(INDEX)?;
        let id = bytes.u32(INDEX)?;
        let address = bytes.address(kind & PEER_V6 != 0, INDEX)?;
        let asn = match kind & PEER_AS4 {
            0 => bytes.u16(INDEX)?.into(),
            _ => bytes.u32(INDEX)?,
        };
        Ok(Named {
            address,
            asn,
            id: Some(id),
        })
    }
}

impl Iterator for PeerIndex<'_> {
    type Item = Result<Named, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let one = self.one();
        if one.is_err() {
            self.left = 0;
        }
        Some(one)
    }
}

impl<'a> Entries<'a> {
    #[inline]
    fn one(&mut self) -> Result<Entry<'a>, Bad> {
        let bytes = &mut self.bytes;
        let peer = bytes.u16(RIB)?;
        // Since when.
        bytes.u32(RIB)?;
        let path_id = match self.has_path_ids {
            true => Some(bytes.u32(RIB)?),
            false => None,
        };
        let len = bytes.u16(RIB)?;
        Ok(Entry {
            peer,
            path_id,
            attributes: bytes.take(len.into(), RIB)?,
        })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Bad>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Some(left) = self.left.checked_sub(1) else {
            let behind = !std::mem::replace(&mut self.bytes, Bytes(&[])).is_empty();
            return behind.then_some(Err(Bad::Long(RIB)));
        };
        self.left = left;
        let one = self.one();
        if one.is_err() {
            (self.left, self.bytes) = (0, Bytes(&[]));
        }
        Some(one)
    }
}
