//! What a mirror is fed with, as a file: to be replayed without
//! privileges, on any machine.
//!
//! - [`format`](mod@format): the bytes (`docs/recordings.md` describes them). Pure.
//! - [`Reader`]: records out of a file, whatever is in it. Pure but for
//!   the reading.
//! - [`Recorder`]: the thread that writes them, and [`Tap`], by which a
//!   mirror hands them over without ever waiting.
//! - [`history`]: a thread that writes them in segments, for the tables of
//!   any time.
//! - [`Player`]: the mirrors' machines, fed by records instead of by the
//!   kernel.
//!
//! A recording holds what the kernel tells every user of a namespace:
//! links, addresses, neighbours, routes, rules, counters; nothing secret
//! beyond that. Its files are the owner's all the same (mode 0600).
//! Called by the mirror's worker and by the program.

pub mod format;
mod gauge;
pub mod history;
mod known;
mod player;
mod queue;
mod reader;
mod recorder;
mod replayed;

pub use format::{BadRecord, Input, Listed, Outcome, Purpose, Record, Which};
pub use gauge::{Gauge, RecordingStatus};
pub use player::{Player, Progress};
#[cfg(test)]
pub(crate) use queue::TestQueue;
pub use queue::{Keeps, Tap};
pub use reader::{BadRecording, Head, Reader};
pub use recorder::{MIN_LIMIT_BYTES, Recorder};
pub use replayed::Replayed;
