//! BGP's messages, and files of them (MRT, RFC 6396), to rows of routes.
//!
//! - [`bytes`], [`Bad`]: what is read, and why it cannot be.
//! - [`message`]: a BGP message; [`attributes`], [`as_path`], [`nlri`],
//!   [`update`], [`open`], [`notification`]: what is in it (RFC 4271, 4760,
//!   5492, 6793, 7911).
//! - [`announce`]: paths as a message tells them.
//! - [`paths`]: what a message says of paths, and how rows take it.
//! - [`mrt`]: the records of a file.
//! - [`Rib`]: paths by peer into tables, the best of each prefix beside
//!   them: a [`Source`](table::Source) to ask.
//!
//! Bytes in, rows out: no socket, thread or clock, and time is an argument.
//! Everything that is read may lie.

pub mod announce;
pub mod as_path;
pub mod attributes;
mod bad;
mod body;
pub mod bytes;
pub mod message;
pub mod mrt;
pub mod nlri;
pub mod notification;
pub mod open;
pub mod paths;
mod rib;
pub mod update;

pub use bad::Bad;
pub use rib::{Counts, Peer, Rib, RibSource};
