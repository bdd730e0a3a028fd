//! The section `[router]` of the configuration: what the command line of
//! `fingerpost router` does not say, and where `up` asks it. Read by the
//! program.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::obstacles::Kind;
use super::{Later, Without};

/// Where the control socket is when nothing is said.
pub const USUAL_CONTROL: &str = "/run/fingerpost-router.sock";

/// What is configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Configured {
    /// The links that packets are forwarded between; none: the command line
    /// says which.
    pub on: Vec<String>,
    /// Obstacles that do not matter.
    pub accept: Vec<Kind>,
    /// What happens when another appears later.
    pub obstacle: Later,
    /// The control socket.
    pub control: PathBuf,
    /// The group that may ask, beside root.
    pub group: Option<String>,
    /// The rules by which IPv4 is translated; none: it is not.
    pub nat: Option<PathBuf>,
    /// The links outside of the translation.
    pub outside: Vec<String>,
    /// What becomes of what is to be translated while nobody does.
    pub without: Without,
    /// The translation's own control socket.
    pub nat_control: Option<PathBuf>,
    /// The group that may ask there, beside root.
    pub nat_control_group: Option<String>,
    /// What outlives a restart of the translation.
    pub nat_state: Option<PathBuf>,
}

impl Default for Configured {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            accept: Vec::new(),
            obstacle: Later::Kernel,
            control: USUAL_CONTROL.into(),
            group: None,
            nat: None,
            outside: Vec::new(),
            without: Without::Closed,
            nat_control: None,
            nat_control_group: None,
            nat_state: None,
        }
    }
}

/// Reads the section; what makes no sense is refused.
pub fn section<'de, D: Deserializer<'de>>(from: D) -> Result<Configured, D::Error> {
    let configured = Configured::deserialize(from)?;
    let wrong = |key: &str, why: String| D::Error::custom(format!("{key}: {why}"));
    if !configured.on.is_empty() {
        check_links(&configured.on).map_err(|why| wrong("on", why))?;
    }
    check_accepted(&configured.accept).map_err(|why| wrong("accept", why))?;
    if !configured.control.is_absolute() {
        return Err(wrong("control", "an absolute path is expected".to_owned()));
    }
    for (key, path) in [
        ("nat", &configured.nat),
        ("nat_control", &configured.nat_control),
        ("nat_state", &configured.nat_state),
    ] {
        if path.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(wrong(key, "an absolute path is expected".to_owned()));
        }
    }
    match (&configured.nat, configured.outside.is_empty()) {
        (Some(_), true) => {
            let why = "the links outside of the translation are expected as `outside`";
            return Err(wrong("nat", why.to_owned()));
        }
        (None, false) => {
            let why = "without a translation there is no outside: its rules are expected as `nat`";
            return Err(wrong("outside", why.to_owned()));
        }
        _ if !configured.on.is_empty() => {
            check_outside(&configured.outside, &configured.on)
                .map_err(|why| wrong("outside", why))?;
        }
        _ => {}
    }
    if configured.group.as_deref() == Some("") {
        let why = "the name of a group is expected, as in /etc/group";
        return Err(wrong("group", why.to_owned()));
    }
    Ok(configured)
}

/// Whether packets can be forwarded between these.
pub(super) fn check_links(names: &[String]) -> Result<(), String> {
    if names.len() < 2 {
        return Err("packets go from one link to another: name two at least".to_owned());
    }
    let most = dataplane::xdp::MAX_PORTS as usize;
    if names.len() > most {
        return Err(format!(
            "{} links; there may be {most} at most",
            names.len()
        ));
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(format!("{name} is named twice"));
        }
        if name.is_empty() {
            return Err("the name of a link is expected".to_owned());
        }
    }
    Ok(())
}

/// Whether these can be outside of a translation.
pub(super) fn check_outside(outside: &[String], on: &[String]) -> Result<(), String> {
    if let Some(stranger) = outside.iter().find(|link| !on.contains(link)) {
        return Err(format!(
            "{stranger} is none of the links that packets are forwarded between"
        ));
    }
    if !outside.is_empty() && on.iter().all(|link| outside.contains(link)) {
        return Err("all links are outside: nothing would be translated".to_owned());
    }
    Ok(())
}

/// Whether all of these can be passed by.
pub(super) fn check_accepted(kinds: &[Kind]) -> Result<(), String> {
    match kinds.iter().find(|kind| !kind.is_acceptable()) {
        Some(kind) => Err(format!("{}: this cannot be passed by", kind.name())),
        None => Ok(()),
    }
}
