//! The control socket of a translation that runs: what it has is shown, parts
//! of it are ended, its rules are read again.
//!
//! A client has a thread, which asks the one that translates for a piece of
//! a table at a time. That one answers between two batches, one bounded piece
//! a turn, and never waits: neither millions of flows nor a client that reads
//! slowly hold a packet. (A reload reads its file there, as with SIGHUP.)
//!
//! - `translation`, a room of its own: what is asked, and how.
//! - `pieces`: what the translating thread is asked, and its answers.
//! - `server`: the socket and the clients' threads.
//! - `answers`: answers made of pieces.
//! - `rows`: rows as JSON; `shown`: as text, at the other end.
//! - `client`: `nat show`, `nat clear`, `nat reload`.

pub mod answers;
pub mod client;
pub mod pieces;
mod rows;
pub mod server;
pub mod shown;
