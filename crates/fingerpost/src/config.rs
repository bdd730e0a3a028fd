//! The daemon's configuration: a TOML file, all of it optional.
//!
//! `settings` says what each key is for; the manual page and the packaged
//! file are made of it.

pub mod feed;
pub mod manual;
pub mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux::recording::MIN_LIMIT_BYTES;
use linux::recording::history::MIN_HISTORY_BYTES;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use table::Limits;
use thiserror::Error;
use tracing_subscriber::filter::Targets;
use words::document;

use router::live::Configured;
use serve::control::server::Patience;
use serve::http::config::Http;
use serve::snmp::config::{Community, Snmp};

pub use feed::Feed;
use settings::LIMITS;

/// Where the configuration is unless said otherwise: the first that is
/// there. The package has it in a directory, which its daemon may read and
/// not everybody.
const USUAL_PATHS: [&str; 2] = ["/etc/fingerpost/fingerpost.toml", "/etc/fingerpost.toml"];

/// A configuration file longer than this is none.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What may be configured.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Namespaces by name, path or process id; none: the own.
    #[serde(deserialize_with = "namespaces")]
    pub netns: Vec<String>,
    /// All named namespaces, as they come and go, and the current one.
    pub all_netns: bool,
    /// What is logged, as in `RUST_LOG`.
    #[serde(deserialize_with = "log_filter")]
    pub log: Option<String>,
    /// The control sockets.
    pub control: Control,
    /// Answers on their way.
    pub answers: Answers,
    /// The mirrors.
    pub mirror: Mirror,
    /// The recording.
    pub record: Record,
    /// The history.
    pub history: History,
    /// Rows of each table at most.
    pub limits: RowLimits,
    /// Routing daemons that tell their routes, by the names that their rows
    /// are asked for by.
    #[serde(deserialize_with = "feed::section")]
    pub feed: BTreeMap<String, Feed>,
    /// The SNMP agent.
    #[serde(deserialize_with = "serve::snmp::config::section")]
    pub snmp: Snmp,
    /// HTTP.
    #[serde(deserialize_with = "serve::http::config::section")]
    pub http: Http,
    /// The translation that is asked.
    pub nat: Nat,
    /// What is called by the names of `ip` and `bridge`.
    pub ip: Ip,
    /// Forwarding at XDP: `fingerpost router`, and where `up` asks it.
    #[serde(deserialize_with = "router::live::section")]
    pub router: Configured,
}

/// The translation that is asked, over HTTP, for metrics and in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nat {
    /// Its control socket.
    #[serde(deserialize_with = "absolute_path")]
    pub control: Option<PathBuf>,
}

impl Default for Nat {
    fn default() -> Self {
        Self {
            control: Some(translation::USUAL.into()),
        }
    }
}

/// What is called by the names of `ip` and `bridge`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ip {
    /// The program that takes what `ip` has and is not built here; without:
    /// it is refused.
    #[serde(deserialize_with = "absolute_path")]
    pub fallback: Option<PathBuf>,
    /// The same for `bridge`.
    #[serde(deserialize_with = "absolute_path")]
    pub bridge_fallback: Option<PathBuf>,
}

/// The control sockets.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Control {
    /// Directory of the sockets; `None`: `/run/fingerpost`, or
    /// `$XDG_RUNTIME_DIR/fingerpost` where that may not be written.
    #[serde(deserialize_with = "absolute_path")]
    pub directory: Option<PathBuf>,
    /// Who may ask about other namespaces than the daemon's own, beside
    /// root; `None`: nobody.
    pub group: Option<Group>,
}

/// A group of this host, by name or number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Group(pub String);

impl TryFrom<String> for Group {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.is_empty() || name.contains([':', '\n']) {
            true => Err("the name of a group is expected, as in /etc/group"),
            false => Ok(Self(name)),
        }
    }
}

/// Answers on their way to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// Bytes that are kept for clients that do not take them, of all at the
    /// control socket and over HTTP together.
    #[serde(deserialize_with = "kept_bytes")]
    pub kept_bytes: usize,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            kept_bytes: Patience::default().kept,
        }
    }
}

/// The mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mirror {
    /// Bytes of the kernel's queue of events for each mirror.
    #[serde(deserialize_with = "buffer_bytes")]
    pub receive_buffer_bytes: u32,
    /// Seconds between two scans for drift.
    #[serde(deserialize_with = "interval_secs")]
    pub scan_interval_secs: u64,
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            receive_buffer_bytes: 32 << 20,
            scan_interval_secs: 600,
        }
    }
}

/// The recording of what the mirrors are fed with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Record {
    /// Where it is written; `None`: nowhere.
    #[serde(deserialize_with = "absolute_path")]
    pub file: Option<PathBuf>,
    /// Octets that it takes at most, with the part before it.
    #[serde(deserialize_with = "record_bytes")]
    pub limit_bytes: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            file: None,
            limit_bytes: 1 << 30,
        }
    }
}

/// The history of what the mirrors mirror, for `--at`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Where it is kept; `None`: nowhere.
    #[serde(deserialize_with = "absolute_path")]
    pub directory: Option<PathBuf>,
    /// Bytes that it takes at most.
    #[serde(deserialize_with = "history_bytes")]
    pub limit_bytes: u64,
    /// How long it is kept, seconds.
    #[serde(deserialize_with = "keep_secs")]
    pub keep_secs: u64,
    /// Seconds between two times that counters of links are kept; 0: they
    /// are not.
    #[serde(deserialize_with = "counters_secs")]
    pub counters_secs: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            directory: None,
            limit_bytes: 1 << 30,
            keep_secs: 604_800,
            counters_secs: 60,
        }
    }
}

/// Rows of each table at most; `None`: as many as [`Limits`] says.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "each names its table")]
pub struct RowLimits {
    #[serde(deserialize_with = "rows")]
    pub links: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub addresses: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub neighbours: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub routes: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub nexthops: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub rules: Option<usize>,
    #[serde(deserialize_with = "rows")]
    pub fdb: Option<usize>,
}

impl RowLimits {
    /// As the tables want them.
    pub fn limits(self) -> Limits {
        let usual = Limits::default();
        Limits {
            links: self.links.unwrap_or(usual.links),
            addresses: self.addresses.unwrap_or(usual.addresses),
            neighbours: self.neighbours.unwrap_or(usual.neighbours),
            routes: self.routes.unwrap_or(usual.routes),
            nexthops: self.nexthops.unwrap_or(usual.nexthops),
            rules: self.rules.unwrap_or(usual.rules),
            fdb: self.fdb.unwrap_or(usual.fdb),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum BadConfig {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file says something wrong.
    #[error("{}:{line}: {}{message}", path.display(), key_prefix(key))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Line of it, from 1.
        line: usize,
        /// Which key, with those around it; empty when it is not TOML.
        key: String,
        /// What is wrong.
        message: String,
    },
}

impl BadConfig {
    /// Whether there is one that this user may not read.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Unreadable { error, .. }
            if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

fn key_prefix(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("`{key}`: ")
    }
}

/// Reads the configuration. Without a path: the usual file, or all
/// defaults if there is none.
pub fn load(path: Option<&Path>) -> Result<Config, BadConfig> {
    let read_from = path.unwrap_or(usual_path());
    let text = match read(read_from) {
        Ok(text) => text,
        Err(BadConfig::Unreadable { error, .. })
            if path.is_none() && error.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(Config::default());
        }
        Err(error) => return Err(error),
    };
    parse(read_from, &text)
}

/// The same of the usual file, for who only asks: not everybody may read it.
pub fn load_to_ask() -> Result<Config, BadConfig> {
    match load(None) {
        Err(error) if error.is_forbidden() => Ok(Config::default()),
        loaded => loaded,
    }
}

/// What others may read of a configuration that they should not: by name,
/// with what to do.
pub fn exposed(path: Option<&Path>, config: &Config) -> Vec<String> {
    let path = path.unwrap_or(usual_path());
    let is_usual = |community: &Community| *community == Community::default();
    let has_communities = !config.snmp.communities.iter().all(is_usual);
    let secret = has_communities.then_some(("[[snmp.community]]", path));
    let key = config.http.key_file.as_deref();
    secret
        .into_iter()
        .chain(key.map(|key| ("http.key_file", key)))
        .filter(|(_, file)| fs::metadata(file).is_ok_and(|there| there.mode() & 0o007 != 0))
        .map(|(what, file)| {
            let file = file.display();
            format!("{what}: everybody may read {file}, which holds a secret; `chmod o= {file}`")
        })
        .collect()
}

/// Where the configuration is unless said otherwise.
pub fn usual_path() -> &'static Path {
    let mut paths = USUAL_PATHS.iter().map(Path::new);
    let first = paths.clone().find(|path| path.exists());
    first.or(paths.next()).unwrap_or(Path::new(""))
}

fn read(path: &Path) -> Result<String, BadConfig> {
    let unreadable = |error| BadConfig::Unreadable {
        path: path.to_owned(),
        error,
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(
            "a regular file of at most 1 MiB is expected",
        )));
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// Reads a configuration out of its text; `path` is for messages.
pub fn parse(path: &Path, text: &str) -> Result<Config, BadConfig> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        BadConfig::Wrong {
            path: path.to_owned(),
            line: document::line_at(text, at),
            key: document::key_at(text, at),
            message: error.message().to_owned(),
        }
    })
}

fn namespaces<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    if names.iter().any(String::is_empty) {
        return Err(D::Error::custom(
            "a namespace is a name, a path or a process id, not an empty text",
        ));
    }
    Ok(names)
}

fn log_filter<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let filter = String::deserialize(from)?;
    check_log_filter(&filter).map_err(D::Error::custom)?;
    Ok(Some(filter))
}

/// Whether this says what is to be logged.
pub fn check_log_filter(filter: &str) -> Result<Targets, String> {
    let expected = "error, warn, info, debug, trace or a RUST_LOG filter is expected";
    // `Targets` would take a span's name for a part of a module's.
    if filter.contains(['[', '{']) {
        return Err(format!("{expected}: without spans and fields"));
    }
    let filter: Result<Targets, _> = filter.parse();
    filter.map_err(|error| format!("{expected}: {error}"))
}

fn absolute_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    if !path.is_absolute() {
        return Err(D::Error::custom("an absolute path is expected"));
    }
    Ok(Some(path))
}

fn buffer_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let bytes = u32::deserialize(from)?;
    if !(4096..=1 << 30).contains(&bytes) {
        return Err(D::Error::custom(format!(
            "{bytes} is not between 4096 and 1073741824"
        )));
    }
    Ok(bytes)
}

fn kept_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let bytes = usize::deserialize(from)?;
    if !(1 << 20..=1 << 40).contains(&bytes) {
        return Err(D::Error::custom(format!(
            "{bytes} is less than 1048576, a mebibyte, or more than there is"
        )));
    }
    Ok(bytes)
}

fn record_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    check_record_limit(u64::deserialize(from)?).map_err(D::Error::custom)
}

/// Whether a recording may be limited so.
pub fn check_record_limit(bytes: u64) -> Result<u64, String> {
    if bytes < MIN_LIMIT_BYTES {
        return Err(format!(
            "{bytes} bytes are too few for a recording: {MIN_LIMIT_BYTES} at least, and twice a \
             listing of all tables"
        ));
    }
    Ok(bytes)
}

fn history_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let bytes = u64::deserialize(from)?;
    if bytes < MIN_HISTORY_BYTES {
        return Err(D::Error::custom(format!(
            "{bytes} bytes are too few for a history: {MIN_HISTORY_BYTES} at least, and some listings \
             of all tables"
        )));
    }
    Ok(bytes)
}

fn keep_secs<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let secs = u64::deserialize(from)?;
    if !(60..=315_360_000).contains(&secs) {
        return Err(D::Error::custom(format!(
            "{secs} is not between 60 and 315360000, ten years"
        )));
    }
    Ok(secs)
}

fn counters_secs<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let secs = u64::deserialize(from)?;
    if secs > 86_400 {
        return Err(D::Error::custom(format!(
            "{secs} is more than 86400, a day; 0: counters are not kept"
        )));
    }
    Ok(secs)
}

fn interval_secs<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let secs = u64::deserialize(from)?;
    if !(1..=604_800).contains(&secs) {
        return Err(D::Error::custom(format!(
            "{secs} is not between 1 and 604800, a week"
        )));
    }
    Ok(secs)
}

fn rows<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let rows = usize::deserialize(from)?;
    if rows == 0 {
        return Err(D::Error::custom("a table without rows mirrors nothing"));
    }
    Ok(Some(rows))
}

#[cfg(test)]
mod tests;
