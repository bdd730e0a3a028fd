//! The header of messages about a peer: who it is, and which of the
//! router's tables the message is about (RFC 7854 §4.2, RFC 8671 §4,
//! RFC 9069 §4).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use bgp::Bad;
use bgp::as_path::AsSize;
use bgp::bytes::Bytes;

/// Bytes of an address, of whichever family.
const ADDRESS: usize = 16;
const HEADER: &str = "the header of a peer";

/// Types of peers.
mod kind {
    pub const GLOBAL: u8 = 0;
    pub const LOCAL: u8 = 2;
    pub const LOC_RIB: u8 = 3;
}

/// Flags of all types but the last.
mod flag {
    pub const IPV6: u8 = 0x80;
    pub const POST_POLICY: u8 = 0x40;
    pub const TWO_BYTE_AS: u8 = 0x20;
    pub const OUT: u8 = 0x10;
}

/// Tells a peer from all others of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerKey {
    kind: u8,
    distinguisher: [u8; 8],
    /// `None`: the router itself, whose own table it is.
    address: Option<IpAddr>,
}

/// Which of the tables that a router has of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rib {
    /// What the peer told.
    In,
    /// The same after the router's policy.
    InPost,
    /// What the router is about to tell the peer.
    Out,
    /// The same after its policy.
    OutPost,
    /// What it has chosen of all.
    Loc,
}

/// What a header says.
#[derive(Debug, Clone, Copy)]
pub struct PeerHeader {
    /// Who.
    pub key: PeerKey,
    /// Which table.
    pub rib: Rib,
    /// How AS numbers in AS paths are written.
    pub as_size: AsSize,
    /// The peer's AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub bgp_id: Ipv4Addr,
}

impl PeerHeader {
    /// Appends what [`PeerHeader::take`] reads, of AS paths of four bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let is_v6 = matches!(self.key.address, Some(IpAddr::V6(_)));
        let v6 = if is_v6 { flag::IPV6 } else { 0 };
        out.extend([self.key.kind, v6 | self.rib.flags()]);
        out.extend(self.key.distinguisher);
        match self.key.address {
            None => out.extend([0; ADDRESS]),
            Some(IpAddr::V4(address)) => {
                out.extend([0; ADDRESS - 4]);
                out.extend(address.octets());
            }
            Some(IpAddr::V6(address)) => out.extend(address.octets()),
        }
        out.extend(self.asn.to_be_bytes());
        out.extend(self.bgp_id.octets());
        // When it was told is passed over.
        out.extend([0; 8]);
    }

    /// Takes a header from the front of a message; `None`: it is of a type
    /// that is not known, and so is the rest.
    pub fn take(bytes: &mut Bytes<'_>) -> Result<Option<Self>, Bad> {
        let (kind, flags) = (bytes.u8(HEADER)?, bytes.u8(HEADER)?);
        let distinguisher = bytes.take(8, HEADER)?.try_into().unwrap_or_default();
        // Zero of a peer of the global table (RFC 7854 §4.2), whatever it is.
        let distinguisher = match kind {
            kind::GLOBAL => [0; 8],
            _ => distinguisher,
        };
        let mut address = Bytes(bytes.take(ADDRESS, HEADER)?);
        let (asn, bgp_id) = (bytes.u32(HEADER)?, bytes.u32(HEADER)?.into());
        // When it was told, seconds and microseconds: by the router's clock.
        bytes.take(8, HEADER)?;
        if kind > kind::LOC_RIB {
            return Ok(None);
        }
        let is_loc = kind == kind::LOC_RIB;
        let is_v6 = flags & flag::IPV6 != 0;
        if !is_v6 {
            address.take(ADDRESS - 4, HEADER)?;
        }
        let address = match is_loc {
            true => None,
            false => Some(address.address(is_v6, HEADER)?),
        };
        Ok(Some(Self {
            key: PeerKey {
                kind,
                distinguisher,
                address,
            },
            rib: Rib::of(flags, is_loc),
            as_size: match !is_loc && flags & flag::TWO_BYTE_AS != 0 {
                true => AsSize::Two,
                false => AsSize::Four,
            },
            asn,
            bgp_id,
        }))
    }
}

impl Rib {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// All, by their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::In, Self::InPost, Self::Out, Self::OutPost, Self::Loc];

    fn of(flags: u8, is_loc: bool) -> Self {
        match (flags & flag::OUT != 0, flags & flag::POST_POLICY != 0) {
            _ if is_loc => Self::Loc,
            (false, false) => Self::In,
            (false, true) => Self::InPost,
            (true, false) => Self::Out,
            (true, true) => Self::OutPost,
        }
    }

    fn flags(self) -> u8 {
        match self {
            Self::In | Self::Loc => 0,
            Self::InPost => flag::POST_POLICY,
            Self::Out => flag::OUT,
            Self::OutPost => flag::OUT | flag::POST_POLICY,
        }
    }

    /// What it is called.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::In => "adj-rib-in",
            Self::InPost => "adj-rib-in post-policy",
            Self::Out => "adj-rib-out",
            Self::OutPost => "adj-rib-out post-policy",
            Self::Loc => "loc-rib",
        }
    }

    /// What a source's name has behind the peer.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::In | Self::Loc => "",
            Self::InPost => "_post",
            Self::Out => "_out",
            Self::OutPost => "_out-post",
        }
    }
}

impl PeerKey {
    /// Whether it is the router itself, whose own table it is.
    pub fn is_loc_rib(&self) -> bool {
        self.kind == kind::LOC_RIB
    }

    /// The peer's address; empty for the router's own table.
    pub fn address(&self) -> String {
        self.address
            .map(|address| address.to_string())
            .unwrap_or_default()
    }

    /// In which of the router's tables it is; empty: in the global one.
    /// A route distinguisher (RFC 4364 §4.2), or a number of the router's.
    /// No two have the same text: an AS of four bytes that two would do for
    /// is written with both halves (`0.65000:7`, RFC 5396).
    pub fn distinguisher(&self) -> String {
        let [a, b, c, d, e, f, g, h] = self.distinguisher;
        let number = u64::from_be_bytes(self.distinguisher);
        match (u16::from_be_bytes([a, b]), self.kind) {
            (_, kind::GLOBAL) => String::new(),
            (_, kind::LOC_RIB) if number == 0 => String::new(),
            (_, kind::LOCAL) => number.to_string(),
            (0, _) => format!(
                "{}:{}",
                u16::from_be_bytes([c, d]),
                u32::from_be_bytes([e, f, g, h])
            ),
            (1, _) => format!("{c}.{d}.{e}.{f}:{}", u16::from_be_bytes([g, h])),
            (2, _) => {
                let (high, low) = (u16::from_be_bytes([c, d]), u16::from_be_bytes([e, f]));
                let number = u16::from_be_bytes([g, h]);
                match high {
                    0 => format!("0.{low}:{number}"),
                    _ => format!("{}:{number}", u32::from_be_bytes([c, d, e, f])),
                }
            }
            _ => format!("0x{number:016x}"),
        }
    }

    /// What names of sources have of it: `192.0.2.1`, `2001:db8::1`,
    /// `192.0.2.1_65000:7` in a table of that distinguisher, `loc-rib`.
    pub fn in_names(&self) -> String {
        let mut name = match self.address {
            None => "loc-rib".to_owned(),
            Some(address) => address.to_string(),
        };
        let distinguisher = self.distinguisher();
        if !distinguisher.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(name, "_{distinguisher}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, flags: u8, distinguisher: [u8; 8], address: [u8; 16]) -> Vec<u8> {
        let mut bytes = vec![kind, flags];
        bytes.extend(distinguisher);
        bytes.extend(address);
        bytes.extend([0, 1, 0x11, 0x70, 192, 0, 2, 9]);
        bytes.extend([0; 8]);
        bytes
    }

    fn read(bytes: &[u8]) -> PeerHeader {
        let mut bytes = Bytes(bytes);
        let header = PeerHeader::take(&mut bytes).unwrap().unwrap();
        assert!(bytes.is_empty());
        header
    }

    const V4: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];
    const V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    #[test]
    fn flags_say_which_table_is_meant() {
        for (flags, rib, size) in [
            (0, Rib::In, AsSize::Four),
            (0x40, Rib::InPost, AsSize::Four),
            (0x20, Rib::In, AsSize::Two),
            (0x10, Rib::Out, AsSize::Four),
            (0x50, Rib::OutPost, AsSize::Four),
        ] {
            let told = read(&header(0, flags, [0; 8], V4));
            assert_eq!((told.rib, told.as_size), (rib, size));
            assert_eq!((told.asn, told.bgp_id), (70_000, [192, 0, 2, 9].into()));
            assert_eq!(told.key.in_names(), "192.0.2.1");
            let mut again = Vec::new();
            told.put(&mut again);
            let again = read(&again);
            assert_eq!((again.key, again.rib), (told.key, told.rib));
            assert_eq!((again.asn, again.bgp_id), (told.asn, told.bgp_id));
            assert_eq!(again.as_size, AsSize::Four);
        }
        let own = read(&header(3, 0x80, [0; 8], [0; 16]));
        assert_eq!((own.rib, own.as_size), (Rib::Loc, AsSize::Four));
        assert_eq!(own.key.in_names(), "loc-rib");
        let unknown = header(4, 0, [0; 8], V4);
        assert!(PeerHeader::take(&mut Bytes(&unknown)).unwrap().is_none());
        assert!(PeerHeader::take(&mut Bytes(&unknown[..41])).is_err());
    }

    #[test]
    fn a_peer_has_a_name_in_each_table() {
        for (kind, distinguisher, address, name) in [
            (0, [0; 8], V6, "2001:db8::1"),
            (0, [7; 8], V6, "2001:db8::1"),
            (1, [0, 0, 0xfd, 0xe8, 0, 0, 0, 7], V6, "2001:db8::1_65000:7"),
            (1, [0, 1, 192, 0, 2, 9, 0, 7], V6, "2001:db8::1_192.0.2.9:7"),
            (1, [0, 2, 0, 1, 0x11, 0x70, 0, 7], V6, "2001:db8::1_70000:7"),
            (
                1,
                [9, 2, 0, 1, 0x11, 0x70, 0, 7],
                V6,
                "2001:db8::1_0x0902000111700007",
            ),
            // As that of an AS of two bytes, and another.
            (
                1,
                [0, 2, 0, 0, 0xfd, 0xe8, 0, 7],
                V6,
                "2001:db8::1_0.65000:7",
            ),
            // Neither is the global table.
            (1, [0; 8], V6, "2001:db8::1_0:0"),
            (2, [0; 8], V6, "2001:db8::1_0"),
            (2, [0, 0, 0, 0, 0, 0, 0, 7], V6, "2001:db8::1_7"),
            (3, [0, 0, 0, 1, 0, 0, 0, 2], V6, "loc-rib_1:2"),
        ] {
            let told = read(&header(kind, 0x80, distinguisher, address));
            assert_eq!(told.key.in_names(), name);
        }
        // What reads the same is the same.
        let one = read(&header(0, 0, [0; 8], V4));
        assert_eq!(read(&header(0, 0, [7; 8], V4)).key, one.key);
    }
}
