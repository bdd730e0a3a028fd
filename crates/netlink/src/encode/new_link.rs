//! A link that does not exist yet to `RTM_NEWLINK` (`linux/if_link.h`).
//!
//! [`new_link`] is for who makes links; [`kind_of_words`] for command lines
//! and files, where a kind and its options come in `ip`'s own words.

mod kinds;
mod said;
mod words;

use super::Request;
use super::link::KINDS;
use super::link_parts::{LinkEnd, LinkKind, end_header, put_end, put_kind, put_numbers};
use crate::kernel::ifla;
use crate::malformed::TooLong;

pub use kinds::KINDS as LINK_KINDS;
pub use said::{named_value, words_of_kind};
pub use words::{KindError, kind_of_words};

/// A link to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// What it shares with a `veth`'s peer.
    pub end: LinkEnd,
    /// `IFLA_MASTER`: index of the bridge, bond or VRF it becomes a member
    /// of.
    pub master: Option<u32>,
    /// `IFLA_LINK`: index of the link below; of a VLAN or macvlan the
    /// parent.
    pub lower: Option<u32>,
    /// `IFLA_IFALIAS`.
    pub alias: Option<Box<str>>,
    /// What it is.
    pub kind: LinkKind,
}

/// Appends `RTM_NEWLINK` that makes a link. `request` wants `New` and the
/// flags `CREATE | EXCL`. O(bytes), no allocation but the buffer's.
pub fn new_link(out: &mut Vec<u8>, request: &Request, link: &NewLink) -> Result<(), TooLong> {
    let mut build = request.start(out, KINDS, &end_header(&link.end));
    put_end(&mut build, &link.end);
    let numbers = [(ifla::LINK, link.lower), (ifla::MASTER, link.master)];
    put_numbers(&mut build, &numbers);
    if let Some(alias) = &link.alias {
        build.put(ifla::IFALIAS, &table::text::octets(alias));
    }
    put_kind(&mut build, &link.kind);
    build.end()
}
