//! Files of BGP tables and messages: MRT (RFC 6396, RFC 8050).
//!
//! - [`Reader`]: records out of a stream.
//! - [`Record`]: what a record says, for [`Rib`](crate::Rib) to take in.
//!
//! Read are `TABLE_DUMP`, `TABLE_DUMP_V2` and `BGP4MP`, and of what came
//! before them `BGP` and `BGP4PLUS` (RFC 6396, appendix B); records of
//! other types are passed over.

mod message;
mod reader;
mod table_dump;
mod table_dump_v2;

use std::net::IpAddr;

pub use message::{Message, StateChange};
pub use reader::{BadFile, Header, Reader};
pub use table_dump::{Path, TableDump};
pub use table_dump_v2::{Entries, Entry, PeerIndex, Rib};

use crate::Bad;

/// A peer as a file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Named {
    /// Its address.
    pub address: IpAddr,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier, where the file says it.
    pub id: Option<u32>,
}

/// What a record says.
#[derive(Debug, Clone)]
pub enum Record<'a> {
    /// Which peers the numbers in the records behind it mean.
    Peers(PeerIndex<'a>),
    /// All paths to a prefix.
    Rib(Rib<'a>),
    /// Paths, each with its prefix and peer.
    TableDump(TableDump<'a>),
    /// A message of a peer.
    Message(Message<'a>),
    /// A session came up or went down.
    StateChange(StateChange),
    /// Nothing of routes that have rows here.
    Other,
}

/// Types of records (IANA, "MRT").
mod kind {
    pub const BGP: u16 = 5;
    pub const BGP4PLUS: u16 = 9;
    pub const BGP4PLUS_01: u16 = 10;
    pub const TABLE_DUMP: u16 = 12;
    pub const TABLE_DUMP_V2: u16 = 13;
    pub const BGP4MP: u16 = 16;
    pub const BGP4MP_ET: u16 = 17;
    /// All that are read.
    pub const ALL: [u16; 7] = [
        BGP,
        BGP4PLUS,
        BGP4PLUS_01,
        TABLE_DUMP,
        TABLE_DUMP_V2,
        BGP4MP,
        BGP4MP_ET,
    ];
}

impl<'a> Record<'a> {
    /// Reads the body of a record.
    pub fn read(header: &Header, body: &'a [u8]) -> Result<Self, Bad> {
        match header.kind {
            kind::TABLE_DUMP => TableDump::read(header.subtype, body).map(Self::TableDump),
            kind::TABLE_DUMP_V2 => table_dump_v2::read(header.subtype, body),
            kind::BGP4MP | kind::BGP4MP_ET => message::read(header.subtype, body),
            kind::BGP => message::read_old(header.subtype, body, false),
            kind::BGP4PLUS | kind::BGP4PLUS_01 => message::read_old(header.subtype, body, true),
            _ => Ok(Self::Other),
        }
    }
}
