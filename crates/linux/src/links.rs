//! Links by the thousand: made, changed and deleted at a flat cost each.
//!
//! - [`add`]: new links with their addresses, packed.
//! - [`Deletion`]: which links go, what the kernel takes along with them,
//!   and the way that waits for its grace periods once, not for each.
//! - [`set`]: settings of many links, packed.
//! - [`Listing`]: all links of a namespace at one moment.
//! - [`journal`]: what makes a creation, deletion or change go on, or be
//!   taken back, after the process that did it was killed.
//! - [`recreate`]: deleted links as they were, from a journal's rows.
//!
//! For the program and for tests. Everything here waits for the kernel and
//! may be stopped between packs by [`How::stop`].

mod add;
mod along;
mod delete;
pub mod journal;
mod listing;
mod recreate;
mod set;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use netlink::encode::LINK_KINDS;
use rustix::io::Errno;

use crate::bulk::{self, PACK_REQUESTS, Sent};
use crate::error::Refusal;

pub use add::{Added, New, add};
pub use along::Along;
pub use delete::{Agreed, Deleted, Deletion, Terms, Way, is_same};
pub use listing::{Listing, named};
pub use recreate::{LOST, Recreated, kind_again, recreate, rows};
pub use set::{Change, Changed, is_as, set};

/// How requests go out.
#[derive(Debug, Clone, Copy)]
pub struct How<'a> {
    /// Requests in a send, at most; 1 waits for each by itself.
    pub pack: usize,
    /// Set from elsewhere (Ctrl-C): nothing more is begun.
    pub stop: Option<&'a AtomicBool>,
    /// Bytes of receive buffer to ask for. Packs are made to fit it; with
    /// less than one answer's, answers are lost and asked for again.
    pub receive_buffer: usize,
}

impl Default for How<'_> {
    fn default() -> Self {
        Self {
            pack: PACK_REQUESTS,
            stop: None,
            receive_buffer: 4 << 20,
        }
    }
}

impl<'a> How<'a> {
    fn options(&self, echo: bool) -> bulk::Options<'a> {
        bulk::Options {
            pack: self.pack,
            echo,
            stop: self.stop,
            receive_buffer: self.receive_buffer,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop
            .is_some_and(|stop| stop.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// What is heard while links are made, changed or deleted.
#[derive(Debug)]
pub enum Told {
    /// One is as wanted.
    Done {
        /// Its place in what was asked for.
        place: usize,
        /// `ifi_index`.
        index: u32,
    },
    /// Something of one failed.
    Failed(Failure),
    /// A pack is through; its places are those of requests, not of links.
    Sent(Sent),
}

/// What failed of a link.
#[derive(Debug)]
pub struct Failure {
    /// The link's place in what was asked for.
    pub place: usize,
    /// Its name.
    pub name: Box<str>,
    /// What was tried: `make it`, `give it 10.0.0.1/30`.
    pub tried: String,
    /// Why not.
    pub refusal: Refusal,
}

/// What many requests took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// System calls that sent requests.
    pub sends: u64,
    /// Time in them, to the acknowledgement.
    pub took: Duration,
    /// As much of it the kernel waited: for grace periods, or for others.
    pub waited: Duration,
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.sends += other.sends;
        self.took += other.took;
        self.waited += other.waited;
    }

    fn count(&mut self, sent: &Sent) {
        self.sends += 1;
        self.took += sent.took;
        self.waited += sent.waited;
    }
}

/// A group number that is nobody's by chance: random, above those that
/// people and `/etc/iproute2/group` use. Links that carry one together were
/// made, or are about to be deleted, together.
pub fn random_group() -> u32 {
    // The standard library seeds each of its hashers from the system.
    let random = RandomState::new().build_hasher().finish() as u32;
    (random & 0x7fff_ffff) | 1 << 24
}

/// What to do about a refusal to make a link of a kind, where something
/// can be done.
pub fn advice(kind: &str, refusal: &Refusal) -> Option<String> {
    let errno = refusal.source.raw_os_error();
    let is = |wanted: Errno| errno == Some(wanted.raw_os_error());
    if is(Errno::PERM) || is(Errno::ACCESS) {
        return Some("links are made, changed and deleted by root (CAP_NET_ADMIN)".into());
    }
    let unknown = is(Errno::OPNOTSUPP)
        && refusal
            .message
            .as_ref()
            .is_none_or(|message| message.contains("device type"));
    if unknown {
        let module = LINK_KINDS
            .iter()
            .find(|known| known.name == kind)
            .map_or(kind, |known| known.module);
        return Some(format!(
            "this kernel has no links of kind {kind}: it needs the module `{module}` (modprobe {module}, or a kernel that has it)"
        ));
    }
    None
}
