//! Digests and encryption of messages, in place.

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::{
    Block, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit,
};
use des::Des;
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::key::{AuthKey, AuthProtocol, PrivacyKey, PrivacyProtocol};

/// Bytes of `msgPrivacyParameters`, for DES and AES alike.
pub(crate) const SALT_BYTES: usize = 8;
/// Bytes of the longest digest in a message.
pub(crate) const MAX_DIGEST_BYTES: usize = 48;
/// Bytes of DES's blocks.
const DES_BLOCK_BYTES: usize = 8;

/// Salts that do not come again, as far as a seed does not.
#[derive(Debug)]
pub(crate) struct Salts(u64);

impl Salts {
    /// Begins at `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next salt: boots and a 32-bit number for DES (RFC 3414
    /// §8.1.1.1), a 64-bit number for AES (RFC 3826 §3.1.2.1).
    pub(crate) fn next(&mut self, protocol: PrivacyProtocol, boots: u32) -> [u8; SALT_BYTES] {
        self.0 = self.0.wrapping_add(1);
        let salt = match protocol {
            PrivacyProtocol::Des => u64::from(boots) << 32 | self.0 & 0xffff_ffff,
            _ => self.0,
        };
        salt.to_be_bytes()
    }
}

/// Puts the digest of a message into it at `at`, where it has zeros, of the
/// protocol's length. O(message).
pub(crate) fn sign(key: &AuthKey, message: &mut [u8], at: usize) {
    let mut digest = [0; 64];
    let len = key.protocol.digest_len();
    let parts = [&*message];
    match key.protocol {
        AuthProtocol::Md5 => digest_of::<Hmac<Md5>>(key, &parts, &mut digest),
        AuthProtocol::Sha1 => digest_of::<Hmac<Sha1>>(key, &parts, &mut digest),
        AuthProtocol::Sha224 => digest_of::<Hmac<Sha224>>(key, &parts, &mut digest),
        AuthProtocol::Sha256 => digest_of::<Hmac<Sha256>>(key, &parts, &mut digest),
        AuthProtocol::Sha384 => digest_of::<Hmac<Sha384>>(key, &parts, &mut digest),
        AuthProtocol::Sha512 => digest_of::<Hmac<Sha512>>(key, &parts, &mut digest),
    }
    if let Some(place) = message.get_mut(at..at + len) {
        place.copy_from_slice(&digest[..len]);
    }
}

/// Whether the digest that a message has at `at` is right. O(message), in a
/// time that does not depend on where it is wrong.
pub(crate) fn verify(key: &AuthKey, message: &[u8], at: usize) -> bool {
    const ZEROS: [u8; MAX_DIGEST_BYTES] = [0; MAX_DIGEST_BYTES];
    let len = key.protocol.digest_len();
    let Some((head, rest)) = message.split_at_checked(at) else {
        return false;
    };
    let Some((digest, tail)) = rest.split_at_checked(len) else {
        return false;
    };
    let parts = [head, &ZEROS[..len], tail];
    match key.protocol {
        AuthProtocol::Md5 => is_digest::<Hmac<Md5>>(key, &parts, digest),
        AuthProtocol::Sha1 => is_digest::<Hmac<Sha1>>(key, &parts, digest),
        AuthProtocol::Sha224 => is_digest::<Hmac<Sha224>>(key, &parts, digest),
        AuthProtocol::Sha256 => is_digest::<Hmac<Sha256>>(key, &parts, digest),
        AuthProtocol::Sha384 => is_digest::<Hmac<Sha384>>(key, &parts, digest),
        AuthProtocol::Sha512 => is_digest::<Hmac<Sha512>>(key, &parts, digest),
    }
}

/// The HMAC over some parts; a key of any length will do.
fn hmac<M: Mac + KeyInit>(key: &AuthKey, parts: &[&[u8]]) -> Option<M> {
    let mut mac = <M as KeyInit>::new_from_slice(key.bytes()).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(mac)
}

fn digest_of<M: Mac + KeyInit>(key: &AuthKey, parts: &[&[u8]], digest: &mut [u8; 64]) {
    if let Some(mac) = hmac::<M>(key, parts) {
        let bytes = mac.finalize().into_bytes();
        digest[..bytes.len()].copy_from_slice(&bytes);
    }
}

fn is_digest<M: Mac + KeyInit>(key: &AuthKey, parts: &[&[u8]], digest: &[u8]) -> bool {
    hmac::<M>(key, parts).is_some_and(|mac| mac.verify_truncated_left(digest).is_ok())
}

/// Bytes that a plain text of `len` bytes is filled up by before it is
/// encrypted.
pub(crate) fn padding(protocol: PrivacyProtocol, len: usize) -> usize {
    match protocol {
        PrivacyProtocol::Des => len.next_multiple_of(DES_BLOCK_BYTES) - len,
        _ => 0,
    }
}

/// What the encryption of one message begins with.
struct Start<'a> {
    key: &'a [u8],
    iv: [u8; 16],
}

impl<'a> Start<'a> {
    fn new(key: &'a PrivacyKey, salt: [u8; SALT_BYTES], boots: u32, time_secs: u32) -> Self {
        let mut iv = [0; 16];
        let key = key.bytes();
        iv[..4].copy_from_slice(&boots.to_be_bytes());
        iv[4..8].copy_from_slice(&time_secs.to_be_bytes());
        iv[8..].copy_from_slice(&salt);
        Self { key, iv }
    }

    /// DES's key, and its start: the second half of the user's key and the
    /// salt together (RFC 3414 §8.1.1.1).
    fn des(&self) -> (&[u8], [u8; DES_BLOCK_BYTES]) {
        let (key, pre_iv) = self.key.split_at(self.key.len() / 2);
        let mut iv = [0; DES_BLOCK_BYTES];
        for ((byte, salt), pre) in iv.iter_mut().zip(&self.iv[8..]).zip(pre_iv) {
            *byte = salt ^ pre;
        }
        (key, iv)
    }
}

/// Encrypts in place; the text is filled up by [`padding`] already.
pub(crate) fn encrypt(
    key: &PrivacyKey,
    salt: [u8; SALT_BYTES],
    boots: u32,
    time_secs: u32,
    text: &mut [u8],
) {
    let start = Start::new(key, salt, boots, time_secs);
    match key.protocol {
        PrivacyProtocol::Des => {
            let (key, iv) = start.des();
            if let Ok(mut cipher) = cbc::Encryptor::<Des>::new_from_slices(key, &iv) {
                let (blocks, _) = Block::<Des>::slice_as_chunks_mut(text);
                cipher.encrypt_blocks(blocks);
            }
        }
        PrivacyProtocol::Aes128 => aes_encrypt::<Aes128>(&start, text),
        PrivacyProtocol::Aes192 | PrivacyProtocol::Aes192Cisco => {
            aes_encrypt::<Aes192>(&start, text);
        }
        PrivacyProtocol::Aes256 | PrivacyProtocol::Aes256Cisco => {
            aes_encrypt::<Aes256>(&start, text);
        }
    }
}

/// Decrypts in place. `false` if the salt or the text is not of a length
/// that the protocol makes.
pub(crate) fn decrypt(
    key: &PrivacyKey,
    salt: &[u8],
    boots: u32,
    time_secs: u32,
    text: &mut [u8],
) -> bool {
    let Ok(salt) = salt.try_into() else {
        return false;
    };
    let start = Start::new(key, salt, boots, time_secs);
    match key.protocol {
        PrivacyProtocol::Des => {
            let (key, iv) = start.des();
            let (blocks, rest) = Block::<Des>::slice_as_chunks_mut(text);
            let cipher = cbc::Decryptor::<Des>::new_from_slices(key, &iv);
            let Some(mut cipher) = cipher.ok().filter(|_| rest.is_empty()) else {
                return false;
            };
            cipher.decrypt_blocks(blocks);
        }
        PrivacyProtocol::Aes128 => aes_decrypt::<Aes128>(&start, text),
        PrivacyProtocol::Aes192 | PrivacyProtocol::Aes192Cisco => {
            aes_decrypt::<Aes192>(&start, text);
        }
        PrivacyProtocol::Aes256 | PrivacyProtocol::Aes256Cisco => {
            aes_decrypt::<Aes256>(&start, text);
        }
    }
    true
}

fn aes_encrypt<C: BlockCipherEncrypt + KeyInit>(start: &Start<'_>, text: &mut [u8]) {
    if let Ok(cipher) = cfb_mode::Encryptor::<C>::new_from_slices(start.key, &start.iv) {
        cipher.encrypt(text);
    }
}

fn aes_decrypt<C: BlockCipherEncrypt + KeyInit>(start: &Start<'_>, text: &mut [u8]) {
    if let Ok(cipher) = cfb_mode::Decryptor::<C>::new_from_slices(start.key, &start.iv) {
        cipher.decrypt(text);
    }
}
