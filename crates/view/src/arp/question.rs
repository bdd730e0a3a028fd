//! What may be asked of the ARP table, as an arp(8) asks it.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::{Style, Timers};

/// What is to be listed. Plain data: it goes to the daemon as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArpQuestion {
    /// How entries are written.
    pub style: Style,
    /// With the addresses of the namespace's own links.
    pub own: bool,
    /// Only on the link of this name.
    pub device: Option<String>,
    /// Only this host.
    pub host: Option<Host>,
    /// Only this type of hardware, `ARPHRD_…`.
    pub hardware: Option<u16>,
    /// To say how many entries there were (net-tools styles).
    pub verbose: bool,
    /// The namespace's: whoever asks may read them, the daemon need not.
    pub timers: Timers,
}

/// A host, as the user named it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// In the user's words.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
}

impl ArpQuestion {
    /// Whether it is to look like net-tools.
    pub fn is_linux(&self) -> bool {
        matches!(self.style, Style::LinuxTable | Style::LinuxLines)
    }

    /// Whether how long entries stay is shown.
    pub fn shows_ages(&self) -> bool {
        !self.is_linux()
    }

    /// Whether a listing that found so many entries did what was asked.
    pub fn is_done(&self, found: u64) -> bool {
        // net-tools calls a host without an entry a success.
        found > 0 || self.host.is_none() || self.is_linux()
    }
}
