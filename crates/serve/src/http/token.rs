//! The token that requests must have, where one is configured. Never
//! printed, never logged.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A shorter token can be guessed.
const MIN_CHARACTERS: usize = 16;
/// A longer file holds something else.
const MAX_FILE_BYTES: u64 = 4096;

/// A bearer token (RFC 6750), kept as its digest.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// Reads it out of a file that nobody but its owner may read.
    pub fn load(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = fs::File::open(path).with_context(|| format!("http.token_file: {shown}"))?;
        let metadata = file.metadata()?;
        ensure!(metadata.is_file(), "http.token_file: {shown} is no file");
        ensure!(
            metadata.mode() & 0o077 == 0,
            "http.token_file: others than its owner may read {shown}; `chmod 600 {shown}`"
        );
        let mut text = String::new();
        file.take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .with_context(|| format!("http.token_file: {shown}"))?;
        let token = text.trim();
        if token.len() < MIN_CHARACTERS || !token.bytes().all(|octet| octet.is_ascii_graphic()) {
            bail!(
                "http.token_file: {shown} is to hold one token of at least {MIN_CHARACTERS} \
                 letters, digits and signs; `openssl rand -hex 32` makes one"
            );
        }
        Ok(Self::of(token.as_bytes()))
    }

    fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Whether this is it, in a time that does not tell how far it is
    /// right.
    pub fn is(&self, offered: &[u8]) -> bool {
        self.0.ct_eq(&Self::of(offered).0).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_private_file_with_one_long_token_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let refusal = Token::load(&path).unwrap_err().to_string();
        assert!(refusal.contains("chmod 600"), "{refusal}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let token = Token::load(&path).unwrap();
        assert!(token.is(b"0123456789abcdef"));
        assert!(!token.is(b"0123456789abcdeF") && !token.is(b""));
        assert!(!format!("{token:?}").contains("0123"));
        fs::write(&path, "short").unwrap();
        assert!(Token::load(&path).is_err());
        fs::write(&path, "two words in a file of one").unwrap();
        assert!(Token::load(&path).is_err());
    }
}
