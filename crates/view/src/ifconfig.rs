//! Interfaces as FreeBSD's and Linux net-tools' `ifconfig` list them.
//!
//! Pure: [`Interface`]s in, bytes out. O(n log n) in links and addresses,
//! for the order; a block costs no more than its text.
//!
//! The net-tools layout is the installed tool's byte for byte, but for
//! these, each on purpose:
//! - An address that shares its label with an earlier one (no label, most
//!   often) is hidden by net-tools; here each is a further `inet` line of
//!   its block.
//! - IPv6 addresses come in the kernel's order; net-tools has them in the
//!   order of a hash table.
//! - `device interrupt … memory …` of old hardware is not shown: netlink
//!   does not tell it.

mod bsd;
mod net_tools;
mod order;
mod question;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use table::row::link::flag;
use table::{Address, Link, LinkCounters};

pub use question::{IfconfigQuestion, Which, answer, answer_rows};

/// An interface with all that is listed of it.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// The link.
    pub link: &'a Link,
    /// Its counters, if they were asked for.
    pub counters: Option<&'a LinkCounters>,
    /// Its addresses of both families, in the kernel's order.
    pub addresses: &'a [Address],
}

/// Who is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// FreeBSD's `ifconfig`.
    Bsd,
    /// Linux net-tools' `ifconfig`.
    Linux,
    /// Linux net-tools' `ifconfig -s`: a line an interface.
    LinuxShort,
    /// FreeBSD's `ifconfig -l`: the names, in one line.
    BsdNames,
}

/// Which interfaces are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection<'a> {
    /// All.
    #[default]
    All,
    /// Those that are up.
    Up,
    /// Those that are down.
    Down,
    /// The one of this name or alternative name; in the net-tools styles
    /// also an alias (`v0:1`).
    Named(&'a str),
}

impl Selection<'_> {
    fn takes(self, link: &Link) -> bool {
        match self {
            Selection::All => true,
            Selection::Up => link.flags & flag::UP != 0,
            Selection::Down => link.flags & flag::UP == 0,
            Selection::Named(name) => is_named(link, name),
        }
    }
}

fn is_named(link: &Link, name: &str) -> bool {
    *link.name == *name || link.alt_names.iter().any(|alt| **alt == *name)
}

/// Writes the interfaces that are selected; returns how many blocks (lines,
/// names) that were. The BSD styles keep the order given, the net-tools
/// styles have their own.
pub fn list(
    interfaces: &[Interface<'_>],
    selection: Selection<'_>,
    style: Style,
    out: impl Write,
) -> io::Result<u64> {
    match style {
        Style::Bsd => bsd::list(interfaces, selection, out),
        Style::BsdNames => bsd::names(interfaces, selection, out),
        Style::Linux => net_tools::list(interfaces, selection, net_tools::Layout::Blocks, out),
        Style::LinuxShort => net_tools::list(interfaces, selection, net_tools::Layout::Lines, out),
    }
}

#[cfg(test)]
mod tests;
