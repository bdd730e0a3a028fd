//! Messages of BMP (RFC 7854), written as a router does: for tests and
//! measurements of what reads them.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::mrt::{Attributes, message as of_bgp, push_prefix, update_message};

/// Flags of a peer's header.
pub mod flag {
    #![allow(missing_docs, reason = "the RFCs' own names")]
    pub const IPV6: u8 = 0x80;
    pub const POST_POLICY: u8 = 0x40;
    pub const TWO_BYTE_AS: u8 = 0x20;
    pub const OUT: u8 = 0x10;
}

/// A peer of a router.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// 0 of the global table, 1 and 2 of others, 3 the router's own table.
    pub kind: u8,
    /// [`flag`], but for the family.
    pub flags: u8,
    /// In which table it is.
    pub distinguisher: [u8; 8],
    /// Its address.
    pub address: IpAddr,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub id: Ipv4Addr,
}

impl Peer {
    /// One of the global table.
    pub fn new(address: IpAddr, asn: u32) -> Self {
        Self {
            kind: 0,
            flags: 0,
            distinguisher: [0; 8],
            address,
            asn,
            id: Ipv4Addr::new(192, 0, 2, 99),
        }
    }

    /// The router's own table.
    pub fn loc_rib(asn: u32) -> Self {
        Self {
            kind: 3,
            ..Self::new(Ipv4Addr::UNSPECIFIED.into(), asn)
        }
    }

    /// The same with flags.
    #[must_use]
    pub fn with(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    fn about(&self, kind: u8, rest: &[u8]) -> Vec<u8> {
        let family = if self.address.is_ipv6() {
            flag::IPV6
        } else {
            0
        };
        let mut body = vec![self.kind, self.flags | family];
        body.extend(self.distinguisher);
        match self.address {
            IpAddr::V4(v4) => {
                body.extend([0; 12]);
                body.extend(v4.octets());
            }
            IpAddr::V6(v6) => body.extend(v6.octets()),
        }
        body.extend(self.asn.to_be_bytes());
        body.extend(self.id.octets());
        body.extend([0, 0, 0, 7, 0, 0, 0, 9]);
        body.extend(rest);
        message(kind, &body)
    }

    /// Peer Up, of both `OPEN`s with their headers.
    pub fn up(&self, sent: &[u8], received: &[u8]) -> Vec<u8> {
        self.about(
            3,
            &[&[0; 16], &[0, 179, 0x80, 0][..], sent, received].concat(),
        )
    }

    /// The same of two that speak of IPv4 and IPv6.
    pub fn plain_up(&self) -> Vec<u8> {
        let open = open(self.asn, &[(1, &[0, 1, 0, 1]), (1, &[0, 2, 0, 1])]);
        self.up(&open, &open)
    }

    /// Peer Down, with what belongs to the reason.
    pub fn down(&self, reason: u8, rest: &[u8]) -> Vec<u8> {
        self.about(2, &[&[reason], rest].concat())
    }

    /// Route Monitoring of a message of BGP.
    pub fn says(&self, bgp: &[u8]) -> Vec<u8> {
        self.about(0, bgp)
    }

    /// The same of an `UPDATE` of IPv4.
    pub fn update(&self, gone: &[IpNet], how: &Attributes, there: &[IpNet]) -> Vec<u8> {
        self.says(&update_message(gone, how, there))
    }

    /// End-of-RIB of a family.
    pub fn end_of_rib(&self, is_v6: bool) -> Vec<u8> {
        let unreach = Attributes::default().raw(0x80, 15, &[0, 2, 1]);
        let attributes = if is_v6 {
            unreach
        } else {
            Attributes::default()
        };
        self.update(&[], &attributes, &[])
    }

    /// A Statistics Report.
    pub fn statistics(&self, all: &[(u16, &[u8])]) -> Vec<u8> {
        let count = (all.len() as u32).to_be_bytes().to_vec();
        let all = all.iter().map(|(kind, value)| tlv(*kind, value));
        self.about(
            1,
            &std::iter::once(count)
                .chain(all)
                .collect::<Vec<_>>()
                .concat(),
        )
    }

    /// A mirrored message.
    pub fn mirrors(&self, bgp: &[u8]) -> Vec<u8> {
        self.about(6, &tlv(0, bgp))
    }
}

/// A message of a type.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 6).to_be_bytes();
    [&[3][..], &len, &[kind], body].concat()
}

/// A type, a length and a value.
pub fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (value.len() as u16).to_be_bytes();
    [&kind.to_be_bytes()[..], &len, value].concat()
}

/// Initiation of a router of a name.
pub fn initiation(name: &str) -> Vec<u8> {
    let all = [tlv(1, b"a router of the lab"), tlv(2, name.as_bytes())];
    message(4, &all.concat())
}

/// Termination.
pub fn termination(reason: u16, said: &str) -> Vec<u8> {
    let all = [tlv(0, said.as_bytes()), tlv(1, &reason.to_be_bytes())];
    message(5, &all.concat())
}

/// An `OPEN` with its header, of capabilities by their codes; AS numbers of
/// four bytes are always one.
pub fn open(asn: u32, capabilities: &[(u8, &[u8])]) -> Vec<u8> {
    let of_asn = asn.to_be_bytes();
    let all = capabilities.iter().copied().chain([(65, &of_asn[..])]);
    let all: Vec<u8> = all
        .flat_map(|(code, value)| [&[code, value.len() as u8], value].concat())
        .collect();
    let old = u16::try_from(asn).unwrap_or(23_456).to_be_bytes();
    let len = all.len() as u8;
    let head = [4, old[0], old[1], 0, 90, 192, 0, 2, 1, len + 2, 2, len];
    of_bgp(1, &[&head[..], &all].concat())
}

/// Attributes that announce IPv6 prefixes (`MP_REACH_NLRI`) beside others.
pub fn reach_v6(how: Attributes, next_hop: IpAddr, prefixes: &[IpNet]) -> Attributes {
    let mut value = vec![0, 2, 1, 16];
    if let IpAddr::V6(v6) = next_hop {
        value.extend(v6.octets());
    }
    value.push(0);
    prefixes
        .iter()
        .for_each(|prefix| push_prefix(*prefix, &mut value));
    how.raw(0x80, 14, &value)
}
