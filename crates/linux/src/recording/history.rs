//! A history: what changed the tables, in segments that each begin with a
//! listing of everything, so that the tables of a time are had by replaying
//! one of them until then.
//!
//! - `shelf`: the segments in a directory, by their names.
//! - `keeper`: the thread that writes them.
//! - `packing`: those that are complete, in less room.
//!
//! A segment is a file of a recording (`docs/recordings.md`). Between two of
//! one run, and between two records, nothing is missing unless a record says
//! so; that nothing came since is said once a second.

mod gauge;
mod keeper;
mod packing;
mod shelf;

pub use gauge::{HistoryGauge, HistoryStatus};
pub use keeper::{Keeper, MIN_HISTORY_BYTES, Settings, check};
pub use shelf::{Segment, is_kept_now, segments};
