//! Version 3 users and their keys, as stored beside the engine's id that
//! the keys are bound to. No passphrase is kept: only keys localised to
//! this engine, in a file that its owner alone may read.
//!
//! Called by the daemon and by `fingerpost snmp user`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use snmp::usm::{AuthKey, AuthProtocol, PrivacyKey, PrivacyProtocol};

use super::hex::digits;
use super::state;

/// The users' file in the state directory.
const USERS: &str = "snmp-users.toml";
/// Users at most.
const MAX_USERS: usize = 1_000;
/// The protocol of a user who is not authenticated.
const NONE: &str = "none";
/// Bytes of a user's name (RFC 3411 §5, SnmpAdminString of 1 to 32).
const MAX_NAME_BYTES: usize = 32;

/// All users of an engine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// The engine that the keys are for, hexadecimal.
    #[serde(with = "super::hex")]
    engine_id: Vec<u8>,
    #[serde(default, rename = "user")]
    users: Vec<Stored>,
}

/// A user as stored.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    name: String,
    /// The engine that the keys are for; empty: this one.
    #[serde(
        default,
        rename = "receiver_engine_id",
        with = "super::hex",
        skip_serializing_if = "Vec::is_empty"
    )]
    of_engine: Vec<u8>,
    /// [`NONE`], or a protocol.
    auth: String,
    #[serde(default, with = "super::hex", skip_serializing_if = "Vec::is_empty")]
    auth_key: Vec<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    privacy: Option<String>,
    #[serde(default, with = "super::hex", skip_serializing_if = "Vec::is_empty")]
    privacy_key: Vec<u8>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored")
            .field("name", &self.name)
            .field("auth", &self.auth)
            .field("privacy", &self.privacy)
            .finish_non_exhaustive()
    }
}

/// A user with his keys.
#[derive(Debug, Clone)]
pub struct User {
    /// His name.
    pub name: String,
    /// The engine that the keys are for; empty: this one.
    pub of_engine: Vec<u8>,
    /// For authentication, if he has it.
    pub auth: Option<AuthKey>,
    /// For privacy, if he has it.
    pub privacy: Option<PrivacyKey>,
}

/// Passphrases of a new user.
pub struct Passphrases {
    /// For authentication.
    pub auth: String,
    /// For privacy.
    pub privacy: Option<String>,
}

fn path(directory: &Path) -> PathBuf {
    directory.join(USERS)
}

impl Users {
    /// Reads the users of an engine. Those of another engine are refused:
    /// their keys fit no more.
    pub fn load(directory: &Path, engine_id: &[u8]) -> Result<Self> {
        let path = path(directory);
        let Some(text) = state::read(&path)? else {
            return Ok(Self {
                engine_id: engine_id.to_vec(),
                users: Vec::new(),
            });
        };
        let users: Self = toml::from_str(&text)
            // What it complains of would be quoted, and may be a key.
            .map_err(|error| anyhow::anyhow!("{}", error.message()))
            .with_context(|| format!("{} cannot be read", path.display()))?;
        if users.engine_id != engine_id {
            bail!(
                "{} has keys of another engine id; remove it and add the users again",
                path.display()
            );
        }
        Ok(users)
    }

    fn store(&self, directory: &Path) -> Result<()> {
        let text = format!(
            "# Users of fingerpost's SNMP agent: made by `fingerpost snmp user add`. The keys\n\
             # are secret.\n{}",
            toml::to_string(self)?
        );
        state::replace(&path(directory), &text)
    }

    /// Their names and protocols, for people.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.users.iter().map(|user| {
            let privacy = user.privacy.as_deref().unwrap_or("-");
            let line = format!("{}  {}  {privacy}", user.name, user.auth);
            match &user.of_engine[..] {
                [] => line,
                engine => format!("{line}  at 0x{}", digits(engine)),
            }
        })
    }

    /// The users with their keys.
    pub fn keys(&self) -> Result<Vec<User>> {
        self.users.iter().map(Stored::keys).collect()
    }
}

impl Stored {
    fn keys(&self) -> Result<User> {
        let read = || -> Result<User> {
            let auth = match self.auth.as_str() {
                NONE => None,
                protocol => Some(AuthKey::from_localised(protocol.parse()?, &self.auth_key)?),
            };
            let privacy = match &self.privacy {
                Some(protocol) => Some(PrivacyKey::from_localised(
                    protocol.parse()?,
                    &self.privacy_key,
                )?),
                None => None,
            };
            Ok(User {
                name: self.name.clone(),
                of_engine: self.of_engine.clone(),
                auth,
                privacy,
            })
        };
        read().with_context(|| format!("SNMP user `{}`", self.name))
    }
}

/// Stores a user who has no keys, in the place of an older one of his name;
/// true if there was one.
pub fn add_without_keys(directory: &Path, name: &str) -> Result<bool> {
    check_name(name)?;
    let engine = state::engine(directory)?;
    let stored = Stored {
        name: name.to_owned(),
        of_engine: Vec::new(),
        auth: NONE.to_owned(),
        auth_key: Vec::new(),
        privacy: None,
        privacy_key: Vec::new(),
    };
    put(directory, &engine, stored)
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        bail!("a user's name has 1 to {MAX_NAME_BYTES} octets");
    }
    Ok(())
}

/// Makes a user's keys and stores them, in the place of older ones of his
/// name and engine; true if there were some. They are for this engine, or for
/// the one of a receiver of informs.
pub fn add(
    directory: &Path,
    name: &str,
    auth: AuthProtocol,
    privacy: Option<PrivacyProtocol>,
    of_engine: Option<&[u8]>,
    passphrases: &Passphrases,
) -> Result<bool> {
    check_name(name)?;
    let engine = state::engine(directory)?;
    let id = of_engine.unwrap_or(&engine.engine_id);
    let auth_key = AuthKey::from_passphrase(auth, passphrases.auth.as_bytes(), id)
        .context("for authentication")?;
    let mut stored = Stored {
        name: name.to_owned(),
        of_engine: of_engine.unwrap_or_default().to_vec(),
        auth: auth.name().to_owned(),
        auth_key: auth_key.bytes().to_vec(),
        privacy: None,
        privacy_key: Vec::new(),
    };
    if let Some(protocol) = privacy {
        let passphrase = passphrases.privacy.as_ref().unwrap_or(&passphrases.auth);
        let key = PrivacyKey::from_passphrase(protocol, auth, passphrase.as_bytes(), id)
            .context("for privacy")?;
        stored.privacy = Some(protocol.name().to_owned());
        stored.privacy_key = key.bytes().to_vec();
    }
    put(directory, &engine, stored)
}

fn put(directory: &Path, engine: &state::Engine, stored: Stored) -> Result<bool> {
    let _lock = state::lock(directory)?;
    let mut users = Users::load(directory, &engine.engine_id)?;
    let before = users.users.len();
    let is_other =
        |user: &Stored| (&user.name, &user.of_engine) != (&stored.name, &stored.of_engine);
    users.users.retain(is_other);
    let replaced = users.users.len() < before;
    if users.users.len() >= MAX_USERS {
        bail!("there are {MAX_USERS} users already; remove one first");
    }
    users.users.push(stored);
    users.store(directory)?;
    Ok(replaced)
}

/// Removes a user, and his keys for all engines; false if there was none.
pub fn remove(directory: &Path, name: &str) -> Result<bool> {
    let engine = state::engine(directory)?;
    let _lock = state::lock(directory)?;
    let mut users = Users::load(directory, &engine.engine_id)?;
    let before = users.users.len();
    users.users.retain(|user| user.name != name);
    if users.users.len() == before {
        return Ok(false);
    }
    users.store(directory)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrases() -> Passphrases {
        Passphrases {
            auth: "maplesyrup".to_owned(),
            privacy: Some("pancakes and butter".to_owned()),
        }
    }

    #[test]
    fn keys_are_stored_and_passphrases_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path();
        let (sha, aes) = (AuthProtocol::Sha256, Some(PrivacyProtocol::Aes128));
        assert!(!add(state, "anna", sha, aes, None, &passphrases()).unwrap());
        assert!(!add(state, "bert", sha, None, None, &passphrases()).unwrap());
        assert!(add(state, "anna", AuthProtocol::Md5, None, None, &passphrases()).unwrap());
        let text = std::fs::read_to_string(path(state)).unwrap();
        assert!(!text.contains("maplesyrup") && !text.contains("pancakes"));
        let engine = state::engine(state).unwrap();
        let users = Users::load(state, &engine.engine_id).unwrap();
        let lines: Vec<String> = users.lines().collect();
        assert_eq!(lines, ["bert  SHA-256  -", "anna  MD5  -"]);
        assert_eq!(users.keys().unwrap().len(), 2);
        let shown = format!("{users:?}");
        assert!(!shown.contains("key"), "{shown}");
        // Those for a receiver's engine are others, and stand beside.
        let there = Some(&[7; 12][..]);
        assert!(!add(state, "anna", sha, aes, there, &passphrases()).unwrap());
        assert!(add(state, "anna", sha, aes, there, &passphrases()).unwrap());
        let users = Users::load(state, &engine.engine_id).unwrap();
        let line = users.lines().last().unwrap();
        assert_eq!(
            line,
            format!("anna  SHA-256  AES  at 0x{}", "07".repeat(12))
        );
        assert!(add_without_keys(state, "anna").unwrap());
        let users = Users::load(state, &engine.engine_id).unwrap();
        assert!(users.keys().unwrap().iter().any(|user| user.auth.is_none()));
        assert!(remove(state, "anna").unwrap() && !remove(state, "anna").unwrap());
        assert!(Users::load(state, &[0; 12]).is_err());
    }

    #[test]
    fn names_and_passphrases_are_checked() {
        let directory = tempfile::tempdir().unwrap();
        let short = Passphrases {
            auth: "short".to_owned(),
            privacy: None,
        };
        let sha = AuthProtocol::Sha1;
        assert!(add(directory.path(), "anna", sha, None, None, &short).is_err());
        assert!(add(directory.path(), "", sha, None, None, &passphrases()).is_err());
        let long = "x".repeat(33);
        assert!(add(directory.path(), &long, sha, None, None, &passphrases()).is_err());
    }
}
