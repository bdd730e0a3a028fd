//! `[snmp]` of the configuration: who may ask what, where, and who is told.
//!
//! [`SECTIONS`] says what each key is for.
//!
//! A request from outside `allowed_sources` (loopback, if it is not said)
//! and outside the `sources` of its community is answered with at most
//! `amplification` times its octets: a forged source shall not pay. A
//! message of v3 that is authentic and timely is not forged, though it may
//! be one of the last 150 s, sent once more from elsewhere: it is answered
//! with `authentic_amplification` times its octets, enough for any walk. Name
//! the pollers' prefixes in `allowed_sources` for full length; it makes
//! nobody a user.
//!
//! Read by the program; used by [`super::Service`].

mod sections;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use snmp::Oid;
use snmp::usm::SecurityLevel;
use snmp::view::{Family, View};

pub use sections::SECTIONS;

/// Addresses to listen at, communities, users and targets at most.
const MAX_OF_EACH: usize = 1_000;
/// Addresses to listen at, at most: each has a thread.
const MAX_LISTEN: usize = 16;
/// The community of an agent that nobody configured.
const USUAL_COMMUNITY: &str = "public";
/// The view that is there without being defined.
pub const ALL: &str = "all";

/// The SNMP agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Snmp {
    /// UDP addresses it listens at.
    pub listen: Vec<SocketAddr>,
    /// An AgentX master to be a subagent of.
    pub agentx: Option<Master>,
    /// The Unix socket that AgentX subagents attach to.
    pub agentx_master: Option<PathBuf>,
    /// The group that may attach, by name or number; `None`: the daemon's
    /// own user and root.
    pub agentx_master_group: Option<String>,
    /// Milliseconds that a subagent may take for an answer, where it does
    /// not say so itself.
    pub agentx_master_timeout_ms: u64,
    /// Directory of engine id, boots and users' keys.
    pub state_directory: Option<PathBuf>,
    /// `sysContact`.
    pub contact: String,
    /// `sysLocation`.
    pub location: String,
    /// `sysName`; `None`: the host's name.
    pub name: Option<String>,
    /// `sysDescr`; `None`: this program and the host's kernel.
    pub description: Option<String>,
    /// `sysObjectID`; `None`: that of FINGERPOST-MIB.
    pub object_id: Option<Name>,
    /// `sysServices`, 0 to 127: the layers that the system serves.
    pub services: u8,
    /// Bytes of an answer at most.
    pub max_message_bytes: usize,
    /// Sources, beside those of communities, that are answered at full
    /// length; the pollers of v3 belong here, or their bulk answers are
    /// short.
    pub allowed_sources: Vec<IpNet>,
    /// All others: at most so many times the octets of their request.
    pub amplification: usize,
    /// The same of requests of v3 that are authentic and timely.
    pub authentic_amplification: usize,
    /// Whether targets are told that somebody asked with a wrong community
    /// or key (`authenticationFailure`, at most one a second).
    pub authentication_failure_traps: bool,
    /// Patterns of the links of whose ups and downs targets are told; behind
    /// a `!` of those that they are not told of.
    pub link_traps: Vec<String>,
    /// Communities of v1 and v2c.
    #[serde(rename = "community")]
    pub communities: Vec<Community>,
    /// Users of v3.
    #[serde(rename = "user")]
    pub users: Vec<User>,
    /// Views by name.
    #[serde(rename = "view")]
    pub views: BTreeMap<String, Vec<Subtree>>,
    /// Who is told of what happens.
    #[serde(rename = "target")]
    pub targets: Vec<Target>,
}

impl Default for Snmp {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 1161))],
            agentx: None,
            agentx_master: None,
            agentx_master_group: None,
            agentx_master_timeout_ms: 1_000,
            state_directory: None,
            contact: String::new(),
            location: String::new(),
            name: None,
            description: None,
            object_id: None,
            services: mib::SERVICES,
            max_message_bytes: snmp::config::MAX_MESSAGE_BYTES,
            allowed_sources: loopback(),
            amplification: 2,
            authentic_amplification: 64,
            authentication_failure_traps: false,
            link_traps: Vec::new(),
            communities: vec![Community::default()],
            users: Vec::new(),
            views: BTreeMap::new(),
            targets: Vec::new(),
        }
    }
}

fn loopback() -> Vec<IpNet> {
    ["127.0.0.0/8", "::1/128"]
        .iter()
        .filter_map(|prefix| prefix.parse().ok())
        .collect()
}

/// A community.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Community {
    /// Its name.
    pub name: String,
    /// Where it is taken from; loopback unless said.
    pub sources: Vec<IpNet>,
    /// What it sees.
    pub view: String,
    /// The context it asks.
    pub context: String,
}

impl Default for Community {
    fn default() -> Self {
        Self {
            name: USUAL_COMMUNITY.to_owned(),
            sources: loopback(),
            view: ALL.to_owned(),
            context: String::new(),
        }
    }
}

/// What a user may do. His keys are in the state directory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// His name.
    pub name: String,
    /// The least protection; `None`: the most that his keys allow.
    #[serde(default)]
    pub level: Option<Level>,
    /// What he sees.
    #[serde(default = "all")]
    pub view: String,
    /// Contexts that he may ask; `None`: all of the daemon's own namespace.
    #[serde(default)]
    pub contexts: Option<Vec<String>>,
}

fn all() -> String {
    ALL.to_owned()
}

/// A level of protection, as net-snmp's tools write it (`-l`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "each is the level it names")]
#[allow(clippy::enum_variant_names, reason = "so RFC 3411 names them")]
pub enum Level {
    #[serde(rename = "noAuthNoPriv")]
    NoAuthNoPriv,
    #[serde(rename = "authNoPriv")]
    AuthNoPriv,
    #[serde(rename = "authPriv")]
    AuthPriv,
}

impl From<Level> for SecurityLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::NoAuthNoPriv => Self::NoAuthNoPriv,
            Level::AuthNoPriv => Self::AuthNoPriv,
            Level::AuthPriv => Self::AuthPriv,
        }
    }
}

/// Somebody who is told of what happens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Where.
    pub address: SocketAddr,
    /// `1`, `2c` or `3`.
    #[serde(default = "v2c")]
    pub version: Version,
    /// The community of v1 and v2c.
    #[serde(default = "usual_community")]
    pub community: String,
    /// The user of v3.
    #[serde(default)]
    pub user: Option<String>,
    /// What he is told is to be acknowledged, and told again until it is;
    /// not of v1. Of v3 the user's keys are those for his engine.
    #[serde(default)]
    pub inform: bool,
    /// Milliseconds until an inform is sent again.
    #[serde(default = "inform_timeout")]
    pub timeout_millis: u32,
    /// Times that an inform is sent again.
    #[serde(default = "inform_retries")]
    pub retries: u8,
}

fn inform_timeout() -> u32 {
    1_500
}

fn inform_retries() -> u8 {
    5
}

fn v2c() -> Version {
    Version::V2c
}

fn usual_community() -> String {
    USUAL_COMMUNITY.to_owned()
}

/// A version of SNMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "each is the version it names")]
pub enum Version {
    #[serde(rename = "1")]
    V1,
    #[serde(rename = "2c")]
    V2c,
    #[serde(rename = "3")]
    V3,
}

/// Where AgentX subagents attach to us, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentxMaster {
    /// The socket.
    pub path: PathBuf,
    /// The group that may connect.
    pub group: Option<String>,
    /// What a subagent may take for an answer.
    pub timeout: Duration,
}

/// Where an AgentX master listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Master {
    /// A socket in the file system.
    Unix(PathBuf),
    /// An address.
    Tcp(SocketAddr),
}

impl fmt::Display for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl<'de> Deserialize<'de> for Master {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let address = text.strip_prefix("tcp:").unwrap_or(&text).parse();
        address.map(Self::Tcp).map_err(|_| {
            D::Error::custom(
                "a path like /var/agentx/master or an address like tcp:127.0.0.1:705 is expected",
            )
        })
    }
}

/// The name of an object, such as `1.3.6.1.4.1.8072.3.2.10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub Oid);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let name = text.trim_start_matches('.').parse();
        name.map(Self)
            .map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
    }
}

/// A subtree in a view, or out of it: `1.3.6.1.2.1`, `!1.3.6.1.2.1.4`, with
/// `*` for a sub-identifier that may be any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtree(Family);

impl<'de> Deserialize<'de> for Subtree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (included, name) = match text.strip_prefix('!') {
            Some(name) => (false, name),
            None => (true, text.as_str()),
        };
        let numbers = name.replace('*', "0");
        let subtree: Oid = numbers.parse().map_err(D::Error::custom)?;
        let parts = name.trim_start_matches('.').split('.');
        let mut mask = vec![0xff; subtree.len().div_ceil(8)];
        for (at, _) in parts.enumerate().filter(|(_, part)| *part == "*") {
            if let Some(octet) = mask.get_mut(at / 8) {
                *octet &= !(0x80 >> (at % 8));
            }
        }
        Ok(Self(Family {
            subtree,
            mask,
            included,
        }))
    }
}

impl Snmp {
    /// Whether anything of it runs.
    pub fn is_on(&self) -> bool {
        !self.listen.is_empty()
            || self.agentx.is_some()
            || self.agentx_master.is_some()
            || !self.targets.is_empty()
    }

    /// Where AgentX subagents attach, if they may.
    pub fn agentx_master(&self) -> Option<AgentxMaster> {
        Some(AgentxMaster {
            path: self.agentx_master.clone()?,
            group: self.agentx_master_group.clone(),
            timeout: Duration::from_millis(self.agentx_master_timeout_ms),
        })
    }

    /// The view of a name.
    pub fn view(&self, name: &str) -> Option<View> {
        match self.views.get(name) {
            Some(subtrees) => {
                let families: Vec<Family> = subtrees.iter().map(|one| one.0.clone()).collect();
                Some(View::new(&families))
            }
            None => (name == ALL).then(View::all),
        }
    }

    /// What the parts say of each other: the first thing that is wrong.
    fn check(&self) -> Result<(), String> {
        self.check_lens()?;
        self.check_numbers()?;
        self.check_agentx_master()?;
        self.check_parts()
    }

    fn check_lens(&self) -> Result<(), String> {
        if self.listen.len() > MAX_LISTEN {
            return Err(format!("{MAX_LISTEN} addresses to listen at are the most"));
        }
        let lens = [
            self.communities.len(),
            self.users.len(),
            self.views.len(),
            self.targets.len(),
        ];
        if lens.iter().any(|len| *len > MAX_OF_EACH) {
            return Err(format!("{MAX_OF_EACH} of each kind are the most"));
        }
        if self
            .description
            .as_ref()
            .is_some_and(|text| text.len() > 255)
        {
            return Err("description has 255 bytes at most".to_owned());
        }
        if self.link_traps.len() > MAX_OF_EACH {
            return Err(format!("link_traps has {MAX_OF_EACH} patterns at most"));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), String> {
        if !(484..=snmp::config::MAX_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            let most = snmp::config::MAX_MESSAGE_BYTES;
            return Err(format!("max_message_bytes is between 484 and {most}"));
        }
        if !(1..=1_000_000).contains(&self.amplification) {
            return Err("amplification is between 1 and 1000000".to_owned());
        }
        if !(1..=1_000_000).contains(&self.authentic_amplification) {
            return Err("authentic_amplification is between 1 and 1000000".to_owned());
        }
        if self.services > 127 {
            return Err("services is between 0 and 127: a bit for each layer".to_owned());
        }
        Ok(())
    }

    fn check_agentx_master(&self) -> Result<(), String> {
        if self
            .agentx_master
            .as_ref()
            .is_some_and(|path| !path.is_absolute())
        {
            return Err("agentx_master is a path like /run/fingerpost/agentx".to_owned());
        }
        if self.agentx_master_group.as_deref() == Some("") {
            return Err("agentx_master_group is the name of a group".to_owned());
        }
        if !(100..=10_000).contains(&self.agentx_master_timeout_ms) {
            return Err("agentx_master_timeout_ms is between 100 and 10000".to_owned());
        }
        Ok(())
    }

    /// Views that are named, and targets.
    fn check_parts(&self) -> Result<(), String> {
        let viewed = |of: String, view: &str| match self.view(view) {
            Some(_) => Ok(()),
            None => Err(format!("{of}: there is no view `{view}` in [snmp.view]")),
        };
        for community in &self.communities {
            viewed(format!("community `{}`", community.name), &community.view)?;
        }
        for user in &self.users {
            viewed(format!("user `{}`", user.name), &user.view)?;
        }
        for target in &self.targets {
            if target.version == Version::V3 && target.user.is_none() {
                return Err(format!("target {}: version 3 wants a user", target.address));
            }
            target.check()?;
        }
        Ok(())
    }
}

impl Target {
    fn check(&self) -> Result<(), String> {
        let address = self.address;
        if self.inform && self.version == Version::V1 {
            return Err(format!(
                "target {address}: version 1 has no informs: leave `inform` out, or say another \
                 version"
            ));
        }
        if !(100..=60_000).contains(&self.timeout_millis) {
            return Err(format!(
                "target {address}: timeout_millis is between 100 and 60000"
            ));
        }
        if self.retries > 20 {
            return Err(format!("target {address}: retries is 20 at most"));
        }
        Ok(())
    }
}

/// Reads the section and holds its parts against each other.
pub fn section<'de, D: Deserializer<'de>>(from: D) -> Result<Snmp, D::Error> {
    let snmp = Snmp::deserialize(from)?;
    snmp.check().map_err(D::Error::custom)?;
    Ok(snmp)
}

#[cfg(test)]
mod tests;
