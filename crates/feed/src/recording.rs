//! What feeds hear, recorded and replayed. The program gives a feed a
//! [`Tape`] to write to, and hands what a recording has of feeds to
//! [`Replay`]; `docs/recordings.md` describes the bytes.
//!
//! - `heard`: what is recorded, as bytes. Pure.
//! - `taping`: a feed's records, as its thread makes them; and the state of
//!   a feed, which each part of a recording begins with.
//! - `replay`: the state machines of feeds, fed by records. Pure.

mod heard;
mod replay;
mod taping;

use std::fmt::Debug;

pub use heard::{BadHeard, Declaration, Kind};
pub use replay::{Replay, ReplayLimits};
pub(crate) use taping::{State, Taping, Teller};

/// Takes the records of one feed. It never waits: what has no room is lost,
/// counted, and makes [`Tape::wanted`] another.
pub trait Tape: Debug + Send + Sync {
    /// Takes what the feed heard; times are microseconds since the UNIX
    /// epoch.
    fn heard(&self, at_micros: u64, payload: &[&[u8]]);

    /// The feed's state is told from here on; or it was told whole.
    fn state(&self, at_micros: u64, is_whole: bool);

    /// The feed has ended: why.
    fn ended(&self, at_micros: u64, why: &str);

    /// Which part of the recording is being written, and what it lacks: the
    /// state is to be told again where either is another than it was.
    fn wanted(&self) -> (u32, u64);

    /// Whether there is room for much more.
    fn has_room(&self) -> bool;
}

#[cfg(test)]
mod tests;
