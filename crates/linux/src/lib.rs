//! The mirror of the kernel's network tables, and bulk changes to them.
//!
//! - [`Namespace`]: which network namespace.
//! - [`mod@dump`]: a table straight from the kernel, row by row.
//! - [`once`]: single questions: a table, the links, the route to an address.
//! - [`on_the_way`]: what the kernel does to packets beside routing them.
//! - [`mirror`]: a live copy of all tables, kept by events.
//! - [`bulk`]: many changes in few system calls.
//! - [`step`]: one change after the other, none after one that failed.
//! - [`links`]: links made, changed and deleted by the thousand.
//! - [`recording`]: what a mirror is fed with, as a file, and its replay.
//! - [`tun`]: TUN and TAP devices, which are not made by messages.
//!
//! The state machine of the mirror ([`mirror::model`]) is pure; sockets
//! and threads are in [`socket`], [`mod@dump`] and [`mirror::Mirror`].
//! Called by the program and by tests; nothing below calls it.

pub mod bulk;
pub mod dump;
pub mod error;
mod host;
pub mod links;
pub mod mirror;
pub mod namespace;
pub mod on_the_way;
pub mod once;
pub mod recording;
pub mod socket;
pub mod step;
pub mod tun;

pub use dump::{DumpEnd, dump};
pub use error::Error;
pub use mirror::{Mirror, Options, Phase, Status};
pub use namespace::Namespace;
