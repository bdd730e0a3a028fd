//! The bytes of a packet: typed views of headers, building, checksums and
//! their incremental update.
//!
//! For everything that reads or writes packets (`nat`, `dataplane`,
//! `libalias`, the lab). Nothing here allocates, but for [`build`].
//!
//! A view is made from any bytes. Making it checks that the header is there
//! and that its own length fields are sound; a field read afterwards cannot
//! fail, and a view never reads beyond the bytes it was given: what is not
//! there reads as zero, what does not fit is not written.

pub mod build;
pub mod checksum;
pub mod ethernet;
mod field;
pub mod gre;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod mss;
pub mod tcp;
pub mod udp;
pub mod unfinished;

pub use ethernet::Ethernet;
pub use gre::Gre;
pub use icmp::Icmp;
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use tcp::Tcp;
pub use udp::Udp;

/// Protocol numbers (IANA), as they stand in an IPv4 header.
pub mod protocol {
    /// Internet Control Message Protocol (RFC 792).
    pub const ICMP: u8 = 1;
    /// Transmission Control Protocol (RFC 9293).
    pub const TCP: u8 = 6;
    /// User Datagram Protocol (RFC 768).
    pub const UDP: u8 = 17;
    /// UDP-Lite (RFC 3828): UDP's header, with the bytes that the checksum
    /// covers in the place of the length.
    pub const UDP_LITE: u8 = 136;
    /// Generic Routing Encapsulation (RFC 2784).
    pub const GRE: u8 = 47;
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
}

/// Why bytes are not the header they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the header takes.
    #[error("{header}: {have} bytes where at least {need} are needed")]
    Truncated {
        /// The header.
        header: &'static str,
        /// Bytes that it takes.
        need: usize,
        /// Bytes that there are.
        have: usize,
    },
    /// Another version than the header's.
    #[error("{header}: version {version}")]
    Version {
        /// The header.
        header: &'static str,
        /// What stands in the version field.
        version: u8,
    },
    /// A length field that contradicts the header or the bytes.
    #[error("{header}: its length field says {length}")]
    Length {
        /// The header.
        header: &'static str,
        /// What stands in the field, in bytes.
        length: usize,
    },
}
