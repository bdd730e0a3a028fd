//! Where the IP packet begins in a captured frame, by the capture's link
//! type.

/// The link types that are known (numbers of the tcpdump.org registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: four bytes of address family.
    Null,
    /// Ethernet, with up to two 802.1Q or 802.1ad tags.
    Ethernet,
    /// IP without a header in front.
    Raw,
    /// OpenBSD loopback: like [`LinkType::Null`].
    Loop,
    /// Linux "cooked" capture.
    LinuxSll,
    /// IPv4 without a header in front.
    Ipv4,
    /// IPv6 without a header in front.
    Ipv6,
    /// Linux "cooked" capture, version 2.
    LinuxSll2,
}

const KNOWN: [(LinkType, u32); 8] = [
    (LinkType::Null, 0),
    (LinkType::Ethernet, 1),
    (LinkType::Raw, 101),
    (LinkType::Loop, 108),
    (LinkType::LinuxSll, 113),
    (LinkType::Ipv4, 228),
    (LinkType::Ipv6, 229),
    (LinkType::LinuxSll2, 276),
];

/// Bytes of an Ethernet header, and of a tag in it.
const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
/// Ethernet's types of a tag: 802.1Q, 802.1ad.
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xA8]];

impl LinkType {
    /// The link type of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        let known = KNOWN.iter().find(|(_, known)| *known == number);
        known.map(|(link, _)| *link)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        let known = KNOWN.iter().find(|(link, _)| *link == self);
        known.map_or(0, |(_, number)| *number)
    }

    /// How many bytes stand before the IP packet; a frame too short for
    /// them is all header.
    pub fn header_len(self, frame: &[u8]) -> usize {
        let len = match self {
            Self::Raw | Self::Ipv4 | Self::Ipv6 => 0,
            Self::Null | Self::Loop => 4,
            Self::LinuxSll => 16,
            Self::LinuxSll2 => 20,
            Self::Ethernet => ethernet_len(frame),
        };
        len.min(frame.len())
    }
}

fn ethernet_len(frame: &[u8]) -> usize {
    let mut len = ETHERNET_BYTES;
    for _ in 0..2 {
        let kind = frame.get(len - 2..len).unwrap_or_default();
        if !TAGS.iter().any(|tag| tag == kind) {
            break;
        }
        len += TAG_BYTES;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for (link, number) in KNOWN {
            assert_eq!(LinkType::from_number(number), Some(link));
            assert_eq!(link.number(), number);
        }
        assert_eq!(LinkType::from_number(147), None);
    }

    #[test]
    fn tags_belong_to_the_header_and_short_frames_are_all_header() {
        let mut frame = [0; 40];
        assert_eq!(LinkType::Ethernet.header_len(&frame), 14);
        frame[12..14].copy_from_slice(&[0x88, 0xA8]);
        frame[16..18].copy_from_slice(&[0x81, 0x00]);
        assert_eq!(LinkType::Ethernet.header_len(&frame), 22);
        assert_eq!(LinkType::Ethernet.header_len(&frame[..15]), 15);
        assert_eq!(LinkType::Ethernet.header_len(&[]), 0);
        assert_eq!(LinkType::LinuxSll2.header_len(&frame), 20);
        assert_eq!(LinkType::Raw.header_len(&frame), 0);
    }
}
