//! Where a replay ends. For the files of this folder.

/// The end of a replay, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Since the UNIX epoch.
    At(u64),
    /// After the recording's first record.
    After(u64),
}
