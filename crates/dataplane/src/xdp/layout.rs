//! What the program and this process share: flags of a link, keys and values
//! of maps, reasons. `forward.c` has the same; a test compares them.

use std::net::IpAddr;

use super::Translation;

/// Ports that there may be, and reasons.
pub const MAX_PORTS: u32 = 64;
/// `REASONS` of the program.
pub const REASONS: u32 = 32;
/// Next hops in use that are told from one another between two looks.
pub const MAX_HOPS: u32 = 16_384;

/// Bytes of the key and of the value of `links`, of the key of `hops`.
pub const LINK_BYTES: usize = 16;
/// See above.
pub const HOP_BYTES: usize = 24;
/// `struct settings`.
pub const SETTINGS_BYTES: usize = 32;
/// A count of packets and one of bytes.
pub const COUNT_BYTES: usize = 16;

const AF_INET: u32 = 2;

/// What is done at a link that is a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortSettings {
    /// Whether IPv4 that comes in is forwarded here; else it is the kernel's.
    pub receives_v4: bool,
    /// The same of IPv6.
    pub receives_v6: bool,
    /// Whether IPv4 from other ports is sent there from here.
    pub sends_v4: bool,
    /// The same of IPv6.
    pub sends_v6: bool,
    /// Whether frames in several buffers are, too.
    pub sends_long: bool,
    /// A source has to be behind the link that it comes by (`rp_filter` 1).
    pub is_strict: bool,
    /// Checksums may be unfinished: who sends leaves them to a device that is
    /// none.
    pub is_soft: bool,
    /// What leaves there from other ports is translated.
    pub is_outside: bool,
    /// The link's own address.
    pub mac: [u8; 6],
}

impl PortSettings {
    /// `struct link` of the program.
    pub(super) fn bytes(&self, slot: u32) -> [u8; LINK_BYTES] {
        let flags = [
            self.receives_v4,
            self.receives_v6,
            self.sends_v4,
            self.sends_v6,
            self.sends_long,
            self.is_strict,
            self.is_soft,
            self.is_outside,
        ];
        let mut bits = 0_u32;
        for (place, flag) in flags.into_iter().enumerate() {
            bits |= u32::from(flag) << place;
        }
        let mut bytes = [0; LINK_BYTES];
        let (numbers, rest) = bytes.split_at_mut(8);
        let (first, second) = numbers.split_at_mut(4);
        first.copy_from_slice(&bits.to_ne_bytes());
        second.copy_from_slice(&slot.to_ne_bytes());
        for (place, byte) in rest.iter_mut().zip(self.mac) {
            *place = byte;
        }
        bytes
    }
}

/// `struct settings` of the program.
pub(super) fn settings(
    until: u64,
    most: [u32; 2],
    translation: Option<&Translation>,
    is_whole: bool,
) -> [u8; SETTINGS_BYTES] {
    let mut flags = 0;
    let mut engine = [0; 2];
    let mut ports = [0; 2];
    if let Some(translation) = translation {
        flags = 1 | u32::from(translation.is_closed) << 1 | u32::from(!is_whole) << 2;
        engine = translation.engine;
        ports = [*translation.ports.start(), *translation.ports.end()];
    }
    let words = [most[0], most[1], flags, engine[0], engine[1]];
    let bytes = until.to_ne_bytes().into_iter();
    let bytes = bytes.chain(words.into_iter().flat_map(u32::to_ne_bytes));
    let bytes = bytes.chain(ports.into_iter().flat_map(u16::to_ne_bytes));
    filled(bytes)
}

/// As many of these bytes as there is room for.
pub(super) fn filled<const N: usize>(bytes: impl Iterator<Item = u8>) -> [u8; N] {
    let mut filled = [0; N];
    for (place, byte) in filled.iter_mut().zip(bytes) {
        *place = byte;
    }
    filled
}

/// A next hop that packets went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsedHop {
    /// The link that it is on.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
}

impl UsedHop {
    /// `struct hop` of the program.
    pub(super) fn from_bytes(bytes: &[u8; HOP_BYTES]) -> Option<Self> {
        let (link, rest) = bytes.split_first_chunk::<4>()?;
        let (family, address) = rest.split_first_chunk::<4>()?;
        let address: [u8; 16] = address.try_into().ok()?;
        let address = match u32::from_ne_bytes(*family) {
            AF_INET => IpAddr::from(*address.first_chunk::<4>()?),
            _ => IpAddr::from(address),
        };
        Some(Self {
            link: u32::from_ne_bytes(*link),
            address,
        })
    }
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// As users know it.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Where it went.
    pub fate: Fate,
}

/// Where a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Out by another port.
    Forwarded,
    /// Up, to the kernel or to the engine that translates.
    Up,
    /// Nowhere.
    Dropped,
}

const fn reason(name: &'static str, meaning: &'static str) -> Reason {
    became(Fate::Up, name, meaning)
}

const fn became(fate: Fate, name: &'static str, meaning: &'static str) -> Reason {
    Reason {
        name,
        meaning,
        fate,
    }
}

/// All, by their number in the program. The first is that of packets that
/// were forwarded.
pub const ALL: [Reason; 30] = [
    became(Fate::Forwarded, "forwarded", "left by another port"),
    reason("not-ip", "neither IPv4 nor IPv6: ARP, MPLS, LLDP"),
    reason("vlan", "with a VLAN tag"),
    reason(
        "other-station",
        "not to the port's own address: broadcast, multicast, others",
    ),
    reason(
        "special-address",
        "an address that is not for forwarding: multicast, loopback, link-local",
    ),
    reason("malformed", "a wrong length, version or header checksum"),
    reason("options", "IPv4 options or IPv6 extension headers"),
    reason("fragment", "a fragment"),
    reason("ttl", "TTL or hop limit at its end"),
    reason("icmp", "ICMP that is no echo"),
    reason("protocol", "a transport protocol that is not known here"),
    reason(
        "unfinished",
        "a checksum that the sender left to its device, or one that cannot be told from it",
    ),
    reason(
        "source",
        "the way back is another, or the source is our own address",
    ),
    reason("host", "for this host, or without a route"),
    reason("rejected", "by a route: blackhole, unreachable or prohibit"),
    reason("disabled", "forwarding is off on the link"),
    reason("encapsulated", "the route puts it into a tunnel"),
    reason("no-neighbour", "the next hop's address is not known yet"),
    reason("too-big", "longer than the way takes"),
    reason("other-link", "leaves by a link that is no port here"),
    reason("same-link", "leaves where it came in"),
    reason(
        "cannot-send",
        "the port that it leaves by takes no frames from here now",
    ),
    reason("paused", "the port is the kernel's for now"),
    reason(
        "unwatched",
        "nobody has looked after the kernel's settings for a while",
    ),
    reason("failed", "the kernel's lookup failed"),
    reason(
        "translated",
        "of a flow that is known, left by another port",
    ),
    reason("engine", "handed to the engine that translates"),
    became(
        Fate::Dropped,
        "closed",
        "dropped: it was to be translated, and nobody does at the moment",
    ),
    became(
        Fate::Dropped,
        "too-long",
        "dropped: in several buffers, which the engine does not take",
    ),
    became(
        Fate::Dropped,
        "bad-source",
        "dropped: to be translated, and the way back to its source is another or none",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = include_str!("forward.c");

    /// The names in an enumeration of the program, in order of their numbers.
    fn enumerated(begins: &str, ends: &str) -> Vec<(String, u64)> {
        let (_, after) = SOURCE.split_once(begins).unwrap();
        let (list, _) = after.split_once(ends).unwrap();
        let entries = list.lines().filter_map(|line| line.split_once(" = "));
        entries
            .map(|(name, value)| {
                let value = value.split(',').next().unwrap();
                let number = value.strip_prefix("1 << ").map_or_else(
                    || value.parse().unwrap(),
                    |bit| 1 << bit.parse::<u32>().unwrap(),
                );
                (name.trim().to_owned(), number)
            })
            .collect()
    }

    #[test]
    fn reasons_are_those_of_the_program() {
        let theirs = enumerated("enum reason {", "};");
        assert_eq!(theirs.len(), ALL.len());
        for (at, ((name, number), reason)) in theirs.iter().zip(ALL).enumerate() {
            assert_eq!(*number, at as u64);
            assert_eq!(name.to_lowercase().replace('_', "-"), reason.name);
        }
        assert!(ALL.len() <= REASONS as usize);
        assert!(SOURCE.contains(&format!("#define REASONS {REASONS}\n")));
    }

    #[test]
    fn flags_are_those_of_the_program() {
        let names = [
            "RECEIVE4",
            "RECEIVE6",
            "SEND4",
            "SEND6",
            "SEND_LONG",
            "STRICT",
            "SOFT",
            "OUTSIDE",
        ];
        let theirs = enumerated("// Of a link: what is done there.\nenum {", "};");
        for (at, ((name, bit), ours)) in theirs.iter().zip(names).enumerate() {
            assert_eq!((name.as_str(), *bit), (ours, 1 << at));
        }
        let all = PortSettings {
            is_soft: true,
            mac: [1, 2, 3, 4, 5, 6],
            ..PortSettings::default()
        };
        let bytes = all.bytes(7);
        assert_eq!(bytes[..4], 64_u32.to_ne_bytes());
        assert_eq!(bytes[4..8], 7_u32.to_ne_bytes());
        assert_eq!(bytes[8..], [1, 2, 3, 4, 5, 6, 0, 0]);
    }

    #[test]
    fn a_used_hop_is_read_in_both_families() {
        let mut bytes = [0; HOP_BYTES];
        bytes[..4].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[4..8].copy_from_slice(&2_u32.to_ne_bytes());
        bytes[8..12].copy_from_slice(&[192, 0, 2, 1]);
        let hop = UsedHop::from_bytes(&bytes).unwrap();
        assert_eq!((hop.link, hop.address), (3, "192.0.2.1".parse().unwrap()));
        bytes[4..8].copy_from_slice(&10_u32.to_ne_bytes());
        let hop = UsedHop::from_bytes(&bytes).unwrap();
        assert_eq!(hop.address, "c000:201::".parse::<IpAddr>().unwrap());
    }
}
