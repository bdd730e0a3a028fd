//! BGP's messages, and files of them (MRT, RFC 6396), to rows of routes.
//!
//! - [`bytes`], [`Bad`]: what is read, and why it cannot be.
//! - [`attributes`], [`as_path`], [`nlri`], [`update`]: a BGP message
//!   (RFC 4271, 4760, 6793, 7911).
//! - [`mrt`]: the records of a file.
//! - [`Rib`]: paths by peer into tables, the best of each prefix beside
//!   them: a [`Source`](table::Source) to ask.
//!
//! Bytes in, rows out: no socket, thread or clock, and time is an argument.
//! Everything that is read may lie.

pub mod as_path;
pub mod attributes;
mod bad;
pub mod bytes;
pub mod mrt;
pub mod nlri;
mod rib;
pub mod update;

pub use bad::Bad;
pub use rib::{Counts, Peer, Rib, RibSource};
