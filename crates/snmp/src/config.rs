//! Who may ask what: communities with source prefixes (RFC 3584 §5), users
//! with keys, least levels and views (RFC 3414, RFC 3415), and how much is
//! answered to whom. Made by the program from its configuration, read by the
//! agent.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::message::LEAST_MAX_SIZE;
use crate::usm::{AuthKey, LAST_BOOTS, PrivacyKey, SecurityLevel};
use crate::view::View;

/// The longest message: what a UDP datagram over IPv4 holds.
pub const MAX_MESSAGE_BYTES: usize = 65_507;

/// All that an agent is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// `snmpEngineID` (RFC 3411 §5), 5 to 32 bytes, neither all zeros nor
    /// all ones; the keys of `users` are localised to it.
    pub engine_id: Vec<u8>,
    /// `snmpEngineBoots`: one more than at the last start, 1 to 2^31-1.
    pub engine_boots: u32,
    /// What salts of encrypted messages begin with: random, other for each
    /// agent and each start.
    pub salt_seed: u64,
    /// Communities of v1 and v2c; the first that fits is taken.
    pub communities: Vec<Community>,
    /// Users of v3, each name once.
    pub users: Vec<User>,
    /// Users of other engines, as which their receivers of informs are told.
    pub remote_users: Vec<RemoteUser>,
    /// Bytes of the longest answer, 484 to 65,507; what does not fit into
    /// the path's MTU travels in fragments.
    pub max_message_bytes: usize,
    /// Sources that are answered at full length, besides those that a
    /// community names.
    pub allowed_sources: Vec<IpNet>,
    /// To all others an answer is at most this many times as long as the
    /// request, whatever the version, reports of v3 included: a forged
    /// source shall not pay. A discovery of v3 needs 2.
    pub amplification: usize,
    /// The same for messages of v3 that are authentic and timely: who forges
    /// their source must have one of the last 150 s, and pays for it with
    /// the path that he needs to see it.
    pub authentic_amplification: usize,
}

/// What is known of a request, for the length of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nothing.
    None,
    /// It is authentic and timely.
    Authentic,
    /// Its community names its source.
    Listed,
}

/// A community of v1 and v2c. Its name, all that protects it, is not shown
/// by `Debug`.
#[derive(Clone)]
pub struct Community {
    /// Its name, which goes over the wire in clear.
    pub name: Vec<u8>,
    /// Sources that it is taken from, which are then answered at full
    /// length; none: from anywhere, at limited length.
    pub sources: Vec<IpNet>,
    /// What it sees.
    pub view: View,
    /// The context that it asks.
    pub context: Vec<u8>,
}

impl fmt::Debug for Community {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Community");
        shown.field("sources", &self.sources);
        shown.field("view", &self.view);
        shown.field("context", &self.context);
        shown.finish_non_exhaustive()
    }
}

/// A user of v3.
#[derive(Clone, Debug)]
pub struct User {
    /// `msgUserName`, 1 to 32 bytes.
    pub name: Vec<u8>,
    /// The key for digests.
    pub auth: Option<AuthKey>,
    /// The key for encryption, only beside one for digests.
    pub privacy: Option<PrivacyKey>,
    /// Less is refused with `authorizationError`.
    pub minimum_level: SecurityLevel,
    /// What the user sees.
    pub view: View,
    /// Contexts that the user may ask; `None` is all but those that are
    /// only told by name ([`crate::Contexts::is_by_name_only`]).
    pub contexts: Option<Vec<Vec<u8>>>,
}

impl User {
    /// The best protection that the user's keys allow.
    pub fn best_level(&self) -> SecurityLevel {
        match (&self.auth, &self.privacy) {
            (Some(_), Some(_)) => SecurityLevel::AuthPriv,
            (Some(_), None) => SecurityLevel::AuthNoPriv,
            (None, _) => SecurityLevel::NoAuthNoPriv,
        }
    }

    /// Whether the user may ask a context.
    pub(crate) fn reaches(&self, context: &[u8]) -> bool {
        let contexts = self.contexts.as_deref();
        contexts.is_none_or(|contexts| contexts.iter().any(|name| name == context))
    }
}

/// A user of v3 at another engine.
#[derive(Clone, Debug)]
pub struct RemoteUser {
    /// `snmpEngineID` of that engine; the keys are localised to it.
    pub engine_id: Vec<u8>,
    /// The user and his keys; what he may see there is not our matter.
    pub user: User,
}

/// What is wrong with a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The engine's identifier.
    #[error("an engine ID has 5 to 32 bytes, not all of them 00 or ff; this has {0}")]
    EngineId(usize),
    /// The number of its starts.
    #[error("engine boots {0} are not from 1 to 2147483647")]
    EngineBoots(u32),
    /// The length of messages.
    #[error("messages of {0} bytes: choose from 484 to 65507")]
    MaxMessageBytes(usize),
    /// A user's name.
    #[error("user `{0}`: a name has 1 to 32 bytes and is there once")]
    UserName(String),
    /// A user's keys.
    #[error("user `{0}` has a key for privacy and none for authentication: add one")]
    PrivacyAlone(String),
    /// A user that could never ask.
    #[error("user `{0}` is asked for a level that its keys do not allow: lower it or add keys")]
    Level(String),
}

impl Config {
    /// Checks what an agent relies on.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let len = self.engine_id.len();
        let uniform = |byte| self.engine_id.iter().all(|other| *other == byte);
        if !(5..=32).contains(&len) || uniform(0) || uniform(0xff) {
            return Err(ConfigError::EngineId(len));
        }
        if !(1..=LAST_BOOTS).contains(&self.engine_boots) {
            return Err(ConfigError::EngineBoots(self.engine_boots));
        }
        if !(LEAST_MAX_SIZE..=MAX_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            return Err(ConfigError::MaxMessageBytes(self.max_message_bytes));
        }
        self.users.iter().try_for_each(|user| self.check_user(user))
    }

    fn check_user(&self, user: &User) -> Result<(), ConfigError> {
        let name = || String::from_utf8_lossy(&user.name).into_owned();
        let same = self.users.iter().filter(|other| other.name == user.name);
        if !(1..=32).contains(&user.name.len()) || same.count() != 1 {
            return Err(ConfigError::UserName(name()));
        }
        if user.privacy.is_some() && user.auth.is_none() {
            return Err(ConfigError::PrivacyAlone(name()));
        }
        if user.minimum_level > user.best_level() {
            return Err(ConfigError::Level(name()));
        }
        Ok(())
    }

    /// The community of a request, and whether its source is one that it
    /// names.
    pub(crate) fn community(&self, name: &[u8], from: IpAddr) -> Option<(&Community, bool)> {
        let mut named = self.communities.iter().filter(|other| other.name == name);
        named.find_map(|community| {
            let listed = is_in(&community.sources, from);
            (listed || community.sources.is_empty()).then_some((community, listed))
        })
    }

    /// The user of a name. The configuration is sorted by name.
    pub(crate) fn user(&self, name: &[u8]) -> Option<&User> {
        let at = self.users.binary_search_by(|user| user.name[..].cmp(name));
        self.users.get(at.ok()?)
    }

    /// The user of a name at another engine.
    pub(crate) fn remote_user(&self, engine_id: &[u8], name: &[u8]) -> Option<&RemoteUser> {
        let mut users = self.remote_users.iter();
        users.find(|one| one.engine_id == engine_id && one.user.name == name)
    }

    /// How long an answer to a request may be.
    pub(crate) fn budget(&self, request_len: usize, from: IpAddr, trust: Trust) -> usize {
        if is_in(&self.allowed_sources, from) {
            return self.max_message_bytes;
        }
        let factor = match trust {
            Trust::None => self.amplification,
            Trust::Authentic => self.authentic_amplification,
            Trust::Listed => return self.max_message_bytes,
        };
        request_len
            .saturating_mul(factor)
            .min(self.max_message_bytes)
    }
}

fn is_in(prefixes: &[IpNet], address: IpAddr) -> bool {
    prefixes.iter().any(|prefix| prefix.contains(&address))
}
