//! The section `[router]` of the configuration: what the command line of
//! `fingerpost router` does not say, and where `up` asks it. Read by the
//! program.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::Later;
use super::obstacles::Kind;

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
}

impl Default for Configured {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            accept: Vec::new(),
            obstacle: Later::Kernel,
            control: USUAL_CONTROL.into(),
            group: None,
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

/// Whether all of these can be passed by.
pub(super) fn check_accepted(kinds: &[Kind]) -> Result<(), String> {
    match kinds.iter().find(|kind| !kind.is_acceptable()) {
        Some(kind) => Err(format!("{}: this cannot be passed by", kind.name())),
        None => Ok(()),
    }
}
