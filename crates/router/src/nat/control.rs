//! The control socket of a translation that runs: what it has is shown, parts
//! of it are ended, its rules are read again.
//!
//! A client has a thread, which asks the one that translates for a piece of
//! a table at a time. That one answers between two batches, one bounded piece
//! a turn, and never waits: neither millions of flows nor a client that reads
//! slowly hold a packet. (A reload reads its file there, as with SIGHUP.)
//!
//! - `request`: what is asked, as a line of JSON.
//! - `pieces`: what the translating thread is asked, and its answers.
//! - `server`: the socket and the clients' threads.
//! - `rows`: rows as JSON; `shown`: as text, at the other end.
//! - `client`: `nat show`, `nat clear`, `nat reload`.

pub mod client;
pub mod pieces;
mod request;
mod rows;
pub mod server;
pub mod shown;

/// Where the socket is when nothing is said.
const USUAL: &str = "/run/fingerpost-nat.sock";
