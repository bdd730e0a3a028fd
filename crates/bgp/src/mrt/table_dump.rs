//! `TABLE_DUMP` (RFC 6396 §4.2): the tables of collectors until 2008 or so.

use ipnet::IpNet;

use super::Named;
use crate::Bad;
use crate::bytes::Bytes;
use crate::nlri::net;

/// Paths, each with its prefix and peer. The RFC has one in a record; the
/// first collectors put many in one.
#[derive(Debug, Clone, Copy)]
pub struct TableDump<'a> {
    bytes: Bytes<'a>,
    is_v6: bool,
}

/// A path.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// To where.
    pub prefix: IpNet,
    /// Whose.
    pub peer: Named,
    /// The attributes of a message, with AS numbers of two bytes.
    pub attributes: &'a [u8],
}

const ENTRY: &str = "an entry of a table";

impl<'a> TableDump<'a> {
    pub(super) fn read(subtype: u16, body: &'a [u8]) -> Result<Self, Bad> {
        let is_v6 = match subtype {
            1 => false,
            2 => true,
            other => {
                return Err(Bad::Value {
                    what: "the family of a table",
                    value: other.into(),
                });
            }
        };
        let mut bytes = Bytes(body);
        // Which view and which entry.
        bytes.take(4, ENTRY)?;
        Ok(Self { bytes, is_v6 })
    }

    /// Whether the last path ends four bytes behind the body: collectors of
    /// 1999 to 2003 did not count what stands before the first.
    pub(super) fn is_four_short(subtype: u16, body: &'a [u8]) -> bool {
        let Ok(mut paths) = Self::read(subtype, body) else {
            return false;
        };
        while !paths.bytes.is_empty() {
            let here = paths;
            if paths.one().is_err() {
                return here.lacks() == Some(4);
            }
        }
        false
    }

    /// How many bytes of its attributes the next path lacks.
    fn lacks(mut self) -> Option<usize> {
        let before = if self.is_v6 { 42 } else { 18 };
        self.bytes.take(before - 2, ENTRY).ok()?;
        let len = usize::from(self.bytes.u16(ENTRY).ok()?);
        len.checked_sub(self.bytes.0.len())
    }

    fn one(&mut self) -> Result<Path<'a>, Bad> {
        let (bytes, is_v6) = (&mut self.bytes, self.is_v6);
        let address = bytes.take(if is_v6 { 16 } else { 4 }, ENTRY)?;
        let prefix = net(address, bytes.u8(ENTRY)?, is_v6)?;
        // A byte that says 1, and since when.
        bytes.take(5, ENTRY)?;
        let peer = Named {
            address: bytes.address(is_v6, ENTRY)?,
            asn: bytes.u16(ENTRY)?.into(),
            id: None,
        };
        let len = bytes.u16(ENTRY)?;
        Ok(Path {
            prefix,
            peer,
            attributes: bytes.take(len.into(), ENTRY)?,
        })
    }
}

impl<'a> Iterator for TableDump<'a> {
    type Item = Result<Path<'a>, Bad>;

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
