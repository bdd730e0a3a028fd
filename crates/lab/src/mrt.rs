//! Files of BGP tables and messages (MRT, RFC 6396), written: for tests and
//! measurements of what reads them.

use std::net::IpAddr;

use ipnet::IpNet;
use memory::Random;

/// Path attributes as a message has them.
#[derive(Debug, Clone, Default)]
pub struct Attributes(pub Vec<u8>);

impl Attributes {
    /// An attribute, as it may be written.
    #[must_use]
    pub fn raw(mut self, flags: u8, number: u8, value: &[u8]) -> Self {
        const EXTENDED_LENGTH: u8 = 0x10;
        match u8::try_from(value.len()) {
            Ok(len) if flags & EXTENDED_LENGTH == 0 => {
                self.0.extend_from_slice(&[flags, number, len]);
            }
            _ => {
                self.0.extend_from_slice(&[flags | EXTENDED_LENGTH, number]);
                self.0
                    .extend_from_slice(&(value.len() as u16).to_be_bytes());
            }
        }
        self.0.extend_from_slice(value);
        self
    }

    /// `ORIGIN`.
    #[must_use]
    pub fn origin(self, origin: u8) -> Self {
        self.raw(0x40, 1, &[origin])
    }

    /// `AS_PATH` with numbers of four bytes.
    #[must_use]
    pub fn as_path(self, segments: &[(u8, Vec<u32>)]) -> Self {
        let mut path = Vec::new();
        for (kind, numbers) in segments {
            path.extend_from_slice(&[*kind, numbers.len() as u8]);
            path.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        }
        self.raw(0x40, 2, &path)
    }

    /// `NEXT_HOP`, or what a table has of `MP_REACH_NLRI`.
    #[must_use]
    pub fn next_hop(self, next_hop: IpAddr) -> Self {
        match next_hop {
            IpAddr::V4(v4) => self.raw(0x40, 3, &v4.octets()),
            IpAddr::V6(v6) => self.raw(0x80, 14, &[&[16], &v6.octets()[..]].concat()),
        }
    }

    /// An attribute of numbers of four bytes.
    #[must_use]
    pub fn numbers(self, flags: u8, number: u8, values: &[u32]) -> Self {
        let values: Vec<u8> = values.iter().flat_map(|of| of.to_be_bytes()).collect();
        self.raw(flags, number, &values)
    }
}

/// A record.
pub fn record(seconds: u32, kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(body.len() + 12);
    record.extend_from_slice(&seconds.to_be_bytes());
    record.extend_from_slice(&kind.to_be_bytes());
    record.extend_from_slice(&subtype.to_be_bytes());
    record.extend_from_slice(&(body.len() as u32).to_be_bytes());
    record.extend_from_slice(body);
    record
}

/// The body of a `PEER_INDEX_TABLE`: addresses, ASes; the identifier is
/// the number.
pub fn peer_index(peers: &[(IpAddr, u32)]) -> Vec<u8> {
    let mut body = vec![192, 0, 2, 1, 0, 3];
    body.extend_from_slice(b"lab");
    body.extend_from_slice(&(peers.len() as u16).to_be_bytes());
    for (number, (address, asn)) in (1_u32..).zip(peers) {
        body.push(2 | u8::from(address.is_ipv6()));
        body.extend_from_slice(&number.to_be_bytes());
        push_address(*address, &mut body);
        body.extend_from_slice(&asn.to_be_bytes());
    }
    body
}

/// An entry of a table: the peer's number, the identifier of the path, the
/// attributes.
pub type Entry<'a> = (u16, Option<u32>, &'a [u8]);

/// The subtype and the body of a `RIB_…_UNICAST`, with path identifiers if
/// the first entry has one.
pub fn rib(sequence: u32, prefix: IpNet, entries: &[Entry<'_>]) -> (u16, Vec<u8>) {
    let mut body = sequence.to_be_bytes().to_vec();
    push_prefix(prefix, &mut body);
    body.extend_from_slice(&(entries.len() as u16).to_be_bytes());
    for (peer, path_id, attributes) in entries {
        body.extend_from_slice(&peer.to_be_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend(path_id.iter().flat_map(|id| id.to_be_bytes()));
        body.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
        body.extend_from_slice(attributes);
    }
    let family = if prefix.addr().is_ipv4() { 2 } else { 4 };
    let has_ids = entries.first().is_some_and(|(_, id, _)| id.is_some());
    (family + if has_ids { 6 } else { 0 }, body)
}

/// The body of a `BGP4MP_MESSAGE_AS4` with an `UPDATE` of IPv4.
pub fn update(
    peer: (IpAddr, u32),
    withdrawn: &[IpNet],
    attributes: &Attributes,
    announced: &[IpNet],
) -> Vec<u8> {
    let mut body = head(peer);
    body.extend(update_message(withdrawn, attributes, announced));
    body
}

/// An `UPDATE` of IPv4, with its header.
pub fn update_message(
    withdrawn: &[IpNet],
    attributes: &Attributes,
    announced: &[IpNet],
) -> Vec<u8> {
    let prefixes = |all: &[IpNet]| {
        let mut to = Vec::new();
        all.iter().for_each(|prefix| push_prefix(*prefix, &mut to));
        to
    };
    let withdrawn = prefixes(withdrawn);
    let mut update = (withdrawn.len() as u16).to_be_bytes().to_vec();
    update.extend(withdrawn);
    update.extend_from_slice(&(attributes.0.len() as u16).to_be_bytes());
    update.extend_from_slice(&attributes.0);
    update.extend(prefixes(announced));
    message(2, &update)
}

/// A message of BGP: of a type, with its header.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u16 + 19).to_be_bytes();
    [&[255; 16][..], &len, &[kind], body].concat()
}

/// The body of a `BGP4MP_STATE_CHANGE_AS4`.
pub fn state_change(peer: (IpAddr, u32), old: u16, new: u16) -> Vec<u8> {
    let mut body = head(peer);
    body.extend([old, new].iter().flat_map(|state| state.to_be_bytes()));
    body
}

fn head((address, asn): (IpAddr, u32)) -> Vec<u8> {
    let mut head = [asn.to_be_bytes(), 64_999_u32.to_be_bytes()].concat();
    head.extend_from_slice(&[0, 0, 0, 1 + u8::from(address.is_ipv6())]);
    push_address(address, &mut head);
    push_address(address, &mut head);
    head
}

fn push_address(address: IpAddr, to: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => to.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => to.extend_from_slice(&v6.octets()),
    }
}

/// Appends a prefix as messages have it.
pub fn push_prefix(prefix: IpNet, to: &mut Vec<u8>) {
    let bytes = usize::from(prefix.prefix_len()).div_ceil(8);
    to.push(prefix.prefix_len());
    let mut address = Vec::new();
    push_address(prefix.addr(), &mut address);
    to.extend_from_slice(&address[..bytes]);
}

/// A table of the Internet's size and shape, as a collector would dump it:
/// each peer has each prefix, and as a full feed has it, six prefixes share
/// a set of attributes, in runs and apart.
#[derive(Debug, Clone, Copy)]
pub struct FullFeeds {
    /// How many prefixes there are.
    pub prefixes: u32,
    /// How many peers have them all.
    pub peers: u16,
}

impl FullFeeds {
    /// The peers.
    pub fn named(&self) -> Vec<(IpAddr, u32)> {
        let of = |at| {
            (
                IpAddr::from([192, 0, 2, at as u8 + 1]),
                3_000 + u32::from(at),
            )
        };
        (0..self.peers).map(of).collect()
    }

    /// Writes the dump, a record at a time.
    pub fn write<E>(&self, mut to: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        to(&record(1_000_000, 13, 1, &peer_index(&self.named())))?;
        let mut random = Random::new(7);
        let sets = self.prefixes / 6 + 1;
        let mut set = 0;
        for number in 0..self.prefixes {
            // An origin has some prefixes behind each other, and some
            // elsewhere.
            if random.below(3) == 0 {
                set = random.below(sets as usize) as u32;
            }
            let address = (0x0100_0000 + (number << 7)).to_be_bytes();
            let len = if number % 2 == 0 { 24 } else { 25 };
            let address = match len {
                24 => [address[0], address[1], address[2], 0],
                _ => address,
            };
            let prefix = ipnet::Ipv4Net::new_assert(address.into(), len).trunc();
            let all: Vec<Vec<u8>> = (0..self.peers)
                .map(|peer| set_of_attributes(peer, set))
                .collect();
            let entries: Vec<Entry<'_>> = (0..)
                .zip(&all)
                .map(|(at, of)| (at, None, &of[..]))
                .collect();
            let (subtype, body) = rib(number, prefix.into(), &entries);
            to(&record(1_000_000, 13, subtype, &body))?;
        }
        Ok(())
    }
}

/// One of the sets of attributes of a peer: a path of three to six ASes and
/// up to eight communities.
pub fn set_of_attributes(peer: u16, set: u32) -> Vec<u8> {
    let mixed = |salt: u32| {
        let mut of = Random::new(u64::from(set) << 24 | u64::from(salt));
        of.number()
    };
    let mut path = vec![3_000 + u32::from(peer)];
    let by_peer = mixed(1 + u32::from(peer));
    for hop in 0..1 + by_peer % 4 {
        path.push(174 + (by_peer >> (8 * hop) & 0x3f) as u32 * 97);
    }
    path.push(20_000 + mixed(0) as u32 % 75_000);
    let communities = by_peer >> 40 & 7;
    let communities: Vec<u32> = (0..communities as u32)
        .map(|at| (3_000 + u32::from(peer)) << 16 | (mixed(100 + at) as u32 & 0xff))
        .collect();
    let mut all = Attributes::default()
        .origin(0)
        .as_path(&[(2, path)])
        .next_hop(IpAddr::from([192, 0, 2, peer as u8 + 1]));
    if !communities.is_empty() {
        all = all.numbers(0xc0, 8, &communities);
    }
    all.0
}
