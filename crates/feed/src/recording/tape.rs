//! Who takes what a feed hears: for the program, which joins feeds and the
//! file that is written.

use std::fmt::Debug;

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
