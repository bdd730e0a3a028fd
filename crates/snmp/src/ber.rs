//! The Basic Encoding Rules as SNMP has them (RFC 3417 §8): definite
//! lengths, low tags, primitive strings.
//!
//! Reading borrows, writing goes into a buffer of the caller; neither
//! allocates. What is written is minimal (DER), what is read need not be.
//! For this crate, and for tests and tools that speak SNMP.

mod read;
mod write;

pub use read::{Malformed, Reader};
pub use write::{Full, Mark, Writer};

/// Tags of BER elements (RFC 1155 §3, RFC 3416 §3).
pub mod tag {
    /// `INTEGER`.
    pub const INTEGER: u8 = 0x02;
    /// `OCTET STRING`.
    pub const OCTET_STRING: u8 = 0x04;
    /// `NULL`.
    pub const NULL: u8 = 0x05;
    /// `OBJECT IDENTIFIER`.
    pub const OBJECT_IDENTIFIER: u8 = 0x06;
    /// `SEQUENCE`.
    pub const SEQUENCE: u8 = 0x30;
    /// `IpAddress`.
    pub const IP_ADDRESS: u8 = 0x40;
    /// `Counter32`.
    pub const COUNTER32: u8 = 0x41;
    /// `Gauge32`, `Unsigned32`.
    pub const GAUGE32: u8 = 0x42;
    /// `TimeTicks`.
    pub const TIME_TICKS: u8 = 0x43;
    /// `Opaque`.
    pub const OPAQUE: u8 = 0x44;
    /// `Counter64`.
    pub const COUNTER64: u8 = 0x46;
    /// `noSuchObject`.
    pub const NO_SUCH_OBJECT: u8 = 0x80;
    /// `noSuchInstance`.
    pub const NO_SUCH_INSTANCE: u8 = 0x81;
    /// `endOfMibView`.
    pub const END_OF_MIB_VIEW: u8 = 0x82;
}

#[cfg(test)]
mod tests;
