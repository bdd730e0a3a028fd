//! An adjacency: all that a packet needs to leave, in twenty bytes; and the
//! cache line it is read from.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What becomes of packets that take a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// There is no such next hop: as without a route.
    #[default]
    None,
    /// They get an Ethernet header and leave by a port.
    Rewrite,
    /// They leave by a port without a header (a TUN device).
    Direct,
    /// Its neighbour is not resolved: they wait, and a request is left.
    Unresolved,
    /// Each destination is a neighbour of its own on the port's link.
    OnLink,
    /// They are for this host, or the kernel's to forward.
    Host,
    /// Dropped without a word (`RTN_BLACKHOLE`).
    Blackhole,
    /// Refused: host unreachable (`RTN_UNREACHABLE`).
    Unreachable,
    /// Refused: administratively prohibited (`RTN_PROHIBIT`).
    Prohibit,
    /// The flow decides which of several next hops they take.
    Group,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::None,
        Self::Rewrite,
        Self::Direct,
        Self::Unresolved,
        Self::OnLink,
        Self::Host,
        Self::Blackhole,
        Self::Unreachable,
        Self::Prohibit,
        Self::Group,
    ];
}

/// Words of an adjacency.
const WORDS: usize = 5;

/// Set in the flags where the kernel would like to hear that the neighbour
/// is used (`NUD_STALE`).
const STALE: u8 = 1;

/// What is read of a next hop or neighbour: kind, Ethernet addresses, port,
/// MTU, VLAN. The EtherType is the packet's own: IPv4 may leave by an IPv6
/// next hop (RFC 8950).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Adjacency {
    words: [u32; WORDS],
}

impl Adjacency {
    /// One that needs neither port nor header.
    pub fn of_kind(kind: Kind) -> Self {
        let mut words = [0; WORDS];
        words[4] = u32::from_ne_bytes([kind as u8, 0, 0, 0]);
        Self { words }
    }

    /// One of a port. `mtu` is that of IP packets, in bytes.
    pub fn of_port(kind: Kind, port: u16, mtu: u16) -> Self {
        let mut new = Self::of_kind(kind);
        new.words[3] = two(port, mtu);
        new
    }

    /// A group of next hops, by its number.
    pub fn of_group(group: u16) -> Self {
        Self::of_kind(Kind::Group).with_vlan(group)
    }

    /// The same with an Ethernet header of these addresses.
    #[must_use]
    pub fn with_addresses(mut self, destination: [u8; 6], source: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = destination;
        let [g, h, i, j, k, l] = source;
        self.words[0] = u32::from_ne_bytes([a, b, c, d]);
        self.words[1] = u32::from_ne_bytes([e, f, g, h]);
        self.words[2] = u32::from_ne_bytes([i, j, k, l]);
        self
    }

    /// The same with an 802.1Q tag; 0: untagged.
    #[must_use]
    pub fn with_vlan(mut self, vlan: u16) -> Self {
        let [kind, flags, _, _] = self.words[4].to_ne_bytes();
        let [low, high] = vlan.to_ne_bytes();
        self.words[4] = u32::from_ne_bytes([kind, flags, low, high]);
        self
    }

    /// The same, and the kernel wants to hear that it is used.
    #[must_use]
    pub fn stale(mut self) -> Self {
        let [kind, flags, low, high] = self.words[4].to_ne_bytes();
        self.words[4] = u32::from_ne_bytes([kind, flags | STALE, low, high]);
        self
    }

    /// What becomes of its packets.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        let [kind, ..] = self.words[4].to_ne_bytes();
        Kind::ALL
            .get(usize::from(kind))
            .copied()
            .unwrap_or_default()
    }

    /// Whether packets get an Ethernet header without a tag, and nobody
    /// wants to hear of it: the usual case, in one comparison.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.words[4] == u32::from_ne_bytes([Kind::Rewrite as u8, 0, 0, 0])
    }

    /// The port by which packets leave.
    #[inline(always)]
    pub fn port(&self) -> u16 {
        let [low, high, _, _] = self.words[3].to_ne_bytes();
        u16::from_ne_bytes([low, high])
    }

    /// The longest IP packet that the port takes, bytes.
    #[inline(always)]
    pub fn mtu(&self) -> u16 {
        let [_, _, low, high] = self.words[3].to_ne_bytes();
        u16::from_ne_bytes([low, high])
    }

    /// Destination and source address of the Ethernet header, as they stand
    /// in it.
    #[inline(always)]
    pub fn addresses(&self) -> [u8; 12] {
        let [a, b, c, ..] = self.words;
        let whole =
            u128::from(a.to_le()) | u128::from(b.to_le()) << 32 | u128::from(c.to_le()) << 64;
        let bytes = whole.to_le_bytes();
        std::array::from_fn(|at| bytes[at])
    }

    /// The VLAN of the 802.1Q tag; 0: none.
    #[inline(always)]
    pub fn vlan(&self) -> u16 {
        let [_, _, low, high] = self.words[4].to_ne_bytes();
        u16::from_ne_bytes([low, high])
    }

    /// The number of its group of next hops.
    #[inline(always)]
    pub fn group(&self) -> u16 {
        self.vlan()
    }

    /// Whether the kernel wants to hear that it is used.
    #[inline(always)]
    pub fn is_stale(&self) -> bool {
        let [_, flags, _, _] = self.words[4].to_ne_bytes();
        flags & STALE != 0
    }
}

fn two(low: u16, high: u16) -> u32 {
    let ([a, b], [c, d]) = (low.to_ne_bytes(), high.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

/// Whose adjacency it is: a port and an IP address, IPv4 as
/// `::ffff:a.b.c.d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Key {
    /// The port whose link the neighbour is on.
    pub port: u16,
    /// The neighbour's address.
    pub address: u128,
}

impl Key {
    /// An IPv4 neighbour, its address in host order.
    #[inline(always)]
    pub fn v4(port: u16, address: u32) -> Self {
        let address = 0xffff_0000_0000 | u128::from(address);
        Self { port, address }
    }

    /// An IPv6 neighbour.
    #[inline(always)]
    pub fn v6(port: u16, address: u128) -> Self {
        Self { port, address }
    }

    /// A neighbour of either family.
    pub fn new(port: u16, address: std::net::IpAddr) -> Self {
        match address {
            std::net::IpAddr::V4(address) => Self::v4(port, address.to_bits()),
            std::net::IpAddr::V6(address) => Self::v6(port, address.to_bits()),
        }
    }

    /// The address as it was.
    pub fn ip(&self) -> std::net::IpAddr {
        let v6 = std::net::Ipv6Addr::from_bits(self.address);
        v6.to_ipv4_mapped().map_or(v6.into(), Into::into)
    }
}

/// One cache line: whose it is, and two adjacencies of which one is valid.
///
/// The writer fills the other one and then turns `which`. Readers that had
/// loaded `which` before go on with the old one, so the writer touches that
/// again only after a grace (see [`super::Writer`]): a reader never sees a
/// half of one and a half of the other, and never tries twice.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Line {
    which: AtomicU32,
    port: AtomicU32,
    address: [AtomicU64; 2],
    halves: [[AtomicU32; WORDS]; 2],
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    #[inline(always)]
    pub(super) fn read(&self) -> Adjacency {
        // Acquire: the half was filled before `which` was turned to it.
        let which = self.which.load(Ordering::Acquire) as usize;
        let half = &self.halves[which & 1];
        let word = |at: usize| half[at].load(Ordering::Relaxed);
        Adjacency {
            words: [word(0), word(1), word(2), word(3), word(4)],
        }
    }

    /// The writer's: the other half becomes the valid one.
    pub(super) fn turn(&self, to: Adjacency) {
        let other = (self.which.load(Ordering::Relaxed) & 1) ^ 1;
        for (word, value) in self.halves[other as usize].iter().zip(to.words) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: whoever sees it turned sees the half.
        self.which.store(other, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn key(&self) -> Key {
        let word = |at: usize| u128::from(self.address[at].load(Ordering::Relaxed));
        Key {
            port: self.port.load(Ordering::Relaxed) as u16,
            address: word(0) << 64 | word(1),
        }
    }

    /// The writer's, while no reader can find the line.
    pub(super) fn set_key(&self, key: Key) {
        let high = (key.address >> 64) as u64;
        self.address[0].store(high, Ordering::Relaxed);
        self.address[1].store(key.address as u64, Ordering::Relaxed);
        self.port.store(u32::from(key.port), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let (to, from) = ([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]);
        let adjacency = Adjacency::of_port(Kind::Rewrite, 513, 9_000)
            .with_addresses(to, from)
            .with_vlan(4_000)
            .stale();
        let line = Line::default();
        assert_eq!(line.read().kind(), Kind::None);
        line.turn(adjacency);
        let read = line.read();
        assert_eq!(read, adjacency);
        assert_eq!((read.kind(), read.is_stale()), (Kind::Rewrite, true));
        assert_eq!((read.port(), read.mtu(), read.vlan()), (513, 9_000, 4_000));
        assert_eq!(read.addresses()[..6], to);
        assert_eq!(read.addresses()[6..], from);
    }

    #[test]
    fn a_key_keeps_its_family() {
        for text in ["10.1.2.3", "2001:db8::1", "fe80::2"] {
            let address = text.parse().unwrap();
            let key = Key::new(7, address);
            assert_eq!((key.port, key.ip()), (7, address));
            let line = Line::default();
            line.set_key(key);
            assert_eq!(line.key(), key);
        }
    }
}
