//! What feeds hear, recorded and replayed. The program gives a feed a
//! [`Tape`] to write to, and hands what a recording has of feeds to
//! [`Replay`]; `docs/recordings.md` describes the bytes.
//!
//! - `heard`: what is recorded, as bytes. Pure.
//! - `tape`: who takes them.
//! - `taping`: a feed's records, as its thread makes them; and the state of
//!   a feed, which each part of a recording begins with.
//! - `replay`: the state machines of feeds, fed by records. Pure.

mod heard;
mod replay;
mod tape;
mod taping;

pub use heard::{BadHeard, Declaration, Kind};
pub use replay::{Replay, ReplayLimits};
pub use tape::Tape;
pub(crate) use taping::{State, Taping, Teller};

#[cfg(test)]
mod tests;
