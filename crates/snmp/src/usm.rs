//! The user-based security model (RFC 3414): who asks is known by a key that
//! both have, stored here localised to one engine.
//!
//! Authentication: HMAC with MD5 and SHA-1 (RFC 3414 §6, §7), SHA-2
//! (RFC 7860). Privacy: DES (RFC 3414 §8), AES-128 (RFC 3826), AES-192 and
//! AES-256 as net-snmp and as Cisco's devices have them. Used by the agent;
//! the program makes keys and stores them.

mod crypt;
mod key;

pub use key::{AuthKey, AuthProtocol, KeyError, PrivacyKey, PrivacyProtocol, SecurityLevel};

pub(crate) use crypt::{MAX_DIGEST_BYTES, Salts, decrypt, encrypt, padding, sign, verify};

/// Seconds by which a message's time may differ from the engine's
/// (RFC 3414 §2.2.3).
pub const TIME_WINDOW_SECS: u32 = 150;

/// `snmpEngineBoots` of an engine that has come to the end of its count:
/// nothing is in its time window (RFC 3414 §2.2.2).
pub const LAST_BOOTS: u32 = i32::MAX as u32;

#[cfg(test)]
mod tests;
