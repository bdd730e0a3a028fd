//! Keys from passphrases (RFC 3414 §2.6, §A.2), localised and, for the long
//! AES keys, extended. None is ever shown by `Debug`; all are wiped when
//! dropped.

use std::fmt;
use std::str::FromStr;

use hmac::digest::Digest;
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

/// Shortest passphrase (RFC 3414 §11.2).
const LEAST_PASSPHRASE_BYTES: usize = 8;
/// Bytes that a passphrase is repeated to before it is hashed.
const STRETCHED_BYTES: usize = 1 << 20;

/// What a message is protected by, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityLevel {
    /// Nothing.
    NoAuthNoPriv,
    /// A digest with a key.
    AuthNoPriv,
    /// A digest, and encryption.
    AuthPriv,
}

/// How a message is authenticated; written as net-snmp's tools write it
/// (`-a SHA-256`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthProtocol {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-96.
    Sha1,
    /// HMAC-128-SHA-224.
    Sha224,
    /// HMAC-192-SHA-256.
    Sha256,
    /// HMAC-256-SHA-384.
    Sha384,
    /// HMAC-384-SHA-512.
    Sha512,
}

/// How a message is encrypted; written as net-snmp's tools write it
/// (`-x AES-256-C`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivacyProtocol {
    /// DES in CBC mode.
    Des,
    /// AES-128 in CFB mode.
    Aes128,
    /// AES-192; a short key is extended by hashing it
    /// (draft-blumenthal-aes-usm-04 §3.1.2.1).
    Aes192,
    /// AES-256, extended alike.
    Aes256,
    /// AES-192; a short key is extended by taking it for a passphrase
    /// (draft-reeder-snmpv3-usm-3desede §2.1), as Cisco's devices do.
    Aes192Cisco,
    /// AES-256, extended alike.
    Aes256Cisco,
}

/// Why a key cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The passphrase is too short.
    #[error("a passphrase has 8 characters or more (RFC 3414 §11.2)")]
    ShortPassphrase,
    /// A stored key is not of the protocol's length.
    #[error("a key of {protocol} has {expected} bytes, not {found}: store it again")]
    Length {
        /// The protocol.
        protocol: &'static str,
        /// Bytes of its key.
        expected: usize,
        /// Bytes there were.
        found: usize,
    },
    /// No protocol has this name.
    #[error("no protocol is named `{name}`: it is one of {known}")]
    Protocol {
        /// What it was called.
        name: String,
        /// The names there are.
        known: &'static str,
    },
}

impl AuthProtocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA",
            Self::Sha224 => "SHA-224",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        }
    }

    /// Bytes of a localised key.
    pub fn key_len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Bytes of the digest in a message (RFC 3414 §6.3.1, RFC 7860 §4.2.1).
    pub fn digest_len(self) -> usize {
        match self {
            Self::Md5 | Self::Sha1 => 12,
            Self::Sha224 => 16,
            Self::Sha256 => 24,
            Self::Sha384 => 32,
            Self::Sha512 => 48,
        }
    }

    pub(super) fn hash(self, parts: &[&[u8]]) -> Secret {
        match self {
            Self::Md5 => hash::<Md5>(parts),
            Self::Sha1 => hash::<Sha1>(parts),
            Self::Sha224 => hash::<Sha224>(parts),
            Self::Sha256 => hash::<Sha256>(parts),
            Self::Sha384 => hash::<Sha384>(parts),
            Self::Sha512 => hash::<Sha512>(parts),
        }
    }

    fn stretch(self, passphrase: &[u8]) -> Secret {
        match self {
            Self::Md5 => stretch::<Md5>(passphrase),
            Self::Sha1 => stretch::<Sha1>(passphrase),
            Self::Sha224 => stretch::<Sha224>(passphrase),
            Self::Sha256 => stretch::<Sha256>(passphrase),
            Self::Sha384 => stretch::<Sha384>(passphrase),
            Self::Sha512 => stretch::<Sha512>(passphrase),
        }
    }

    /// The localised key of a passphrase, of any length of passphrase.
    fn localised(self, passphrase: &[u8], engine_id: &[u8]) -> Secret {
        let key = self.stretch(passphrase);
        self.hash(&[&key.0, engine_id, &key.0])
    }
}

impl PrivacyProtocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Des => "DES",
            Self::Aes128 => "AES",
            Self::Aes192 => "AES-192",
            Self::Aes256 => "AES-256",
            Self::Aes192Cisco => "AES-192-C",
            Self::Aes256Cisco => "AES-256-C",
        }
    }

    /// Bytes of a localised key; of DES's, eight are no key but whiten the
    /// salt.
    pub fn key_len(self) -> usize {
        match self {
            Self::Des | Self::Aes128 => 16,
            Self::Aes192 | Self::Aes192Cisco => 24,
            Self::Aes256 | Self::Aes256Cisco => 32,
        }
    }

    /// A key that is too short made longer, by the protocol's way.
    fn extend(self, auth: AuthProtocol, key: &mut Zeroizing<Vec<u8>>, engine_id: &[u8]) {
        while key.len() < self.key_len() {
            let more = match self {
                Self::Aes192Cisco | Self::Aes256Cisco => auth.localised(key, engine_id),
                _ => auth.hash(&[key]),
            };
            key.extend_from_slice(&more.0);
        }
        key.truncate(self.key_len());
    }
}

/// The names of protocols without dashes and case, as net-snmp takes them.
fn plain(name: &str) -> String {
    let name = name.chars().filter(|letter| *letter != '-');
    name.collect::<String>().to_ascii_uppercase()
}

impl FromStr for AuthProtocol {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        Ok(match plain(name).as_str() {
            "MD5" => Self::Md5,
            "SHA" | "SHA1" => Self::Sha1,
            "SHA224" => Self::Sha224,
            "SHA256" => Self::Sha256,
            "SHA384" => Self::Sha384,
            "SHA512" => Self::Sha512,
            _ => {
                return Err(KeyError::Protocol {
                    name: name.into(),
                    known: "MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512",
                });
            }
        })
    }
}

impl FromStr for PrivacyProtocol {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        Ok(match plain(name).as_str() {
            "DES" => Self::Des,
            "AES" | "AES128" => Self::Aes128,
            "AES192" => Self::Aes192,
            "AES256" => Self::Aes256,
            "AES192C" => Self::Aes192Cisco,
            "AES256C" => Self::Aes256Cisco,
            _ => {
                return Err(KeyError::Protocol {
                    name: name.into(),
                    known: "DES, AES, AES-192, AES-256, AES-192-C, AES-256-C",
                });
            }
        })
    }
}

/// Bytes that are wiped when dropped and not shown.
#[derive(Clone)]
pub(super) struct Secret(pub(super) Zeroizing<Vec<u8>>);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} secret bytes", self.0.len())
    }
}

/// A user's key for authentication, localised.
#[derive(Clone, Debug)]
pub struct AuthKey {
    pub(super) protocol: AuthProtocol,
    pub(super) key: Secret,
}

impl AuthKey {
    /// The key of a passphrase, localised to an engine. Hashes a megabyte.
    pub fn from_passphrase(
        protocol: AuthProtocol,
        passphrase: &[u8],
        engine_id: &[u8],
    ) -> Result<Self, KeyError> {
        let key = long_enough(passphrase).map(|_| protocol.localised(passphrase, engine_id))?;
        Ok(Self { protocol, key })
    }

    /// A localised key as [`AuthKey::bytes`] gave it.
    pub fn from_localised(protocol: AuthProtocol, key: &[u8]) -> Result<Self, KeyError> {
        let key = stored(key, protocol.key_len(), protocol.name())?;
        Ok(Self { protocol, key })
    }

    /// Its protocol.
    pub fn protocol(&self) -> AuthProtocol {
        self.protocol
    }

    /// The localised key, to be stored where only the agent reads it.
    pub fn bytes(&self) -> &[u8] {
        &self.key.0
    }
}

/// A user's key for privacy, localised.
#[derive(Clone, Debug)]
pub struct PrivacyKey {
    pub(super) protocol: PrivacyProtocol,
    pub(super) key: Secret,
}

impl PrivacyKey {
    /// The key of a passphrase, localised to an engine with the hash of the
    /// user's `auth` protocol. Hashes a megabyte, or two.
    pub fn from_passphrase(
        protocol: PrivacyProtocol,
        auth: AuthProtocol,
        passphrase: &[u8],
        engine_id: &[u8],
    ) -> Result<Self, KeyError> {
        let mut key = long_enough(passphrase).map(|_| auth.localised(passphrase, engine_id))?;
        protocol.extend(auth, &mut key.0, engine_id);
        Ok(Self { protocol, key })
    }

    /// A localised key as [`PrivacyKey::bytes`] gave it.
    pub fn from_localised(protocol: PrivacyProtocol, key: &[u8]) -> Result<Self, KeyError> {
        let key = stored(key, protocol.key_len(), protocol.name())?;
        Ok(Self { protocol, key })
    }

    /// Its protocol.
    pub fn protocol(&self) -> PrivacyProtocol {
        self.protocol
    }

    /// The localised key, to be stored where only the agent reads it.
    pub fn bytes(&self) -> &[u8] {
        &self.key.0
    }
}

fn long_enough(passphrase: &[u8]) -> Result<(), KeyError> {
    if passphrase.len() < LEAST_PASSPHRASE_BYTES {
        return Err(KeyError::ShortPassphrase);
    }
    Ok(())
}

fn stored(key: &[u8], expected: usize, protocol: &'static str) -> Result<Secret, KeyError> {
    if key.len() != expected {
        let found = key.len();
        return Err(KeyError::Length {
            protocol,
            expected,
            found,
        });
    }
    Ok(Secret(Zeroizing::new(key.to_vec())))
}

fn hash<D: Digest>(parts: &[&[u8]]) -> Secret {
    let mut digest = D::new();
    for part in parts {
        digest.update(part);
    }
    secret(digest)
}

/// The hash of a megabyte of the passphrase, repeated (RFC 3414 §A.2).
fn stretch<D: Digest>(passphrase: &[u8]) -> Secret {
    let mut digest = D::new();
    let mut left = STRETCHED_BYTES;
    while left > 0 && !passphrase.is_empty() {
        let part = passphrase.len().min(left);
        digest.update(&passphrase[..part]);
        left -= part;
    }
    secret(digest)
}

fn secret<D: Digest>(digest: D) -> Secret {
    // Room for what a key is extended by: no copy is left behind unwiped.
    let mut bytes = Zeroizing::new(Vec::with_capacity(64));
    bytes.extend_from_slice(&digest.finalize());
    Secret(bytes)
}
