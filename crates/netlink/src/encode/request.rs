//! What is asked of the kernel with a row, and how its message begins. For
//! whoever sends rows; the start is for the encoders beside it.

use crate::build::Build;
use crate::decode::Operation;
use crate::message::flag;

/// What is to be done with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Make it, or delete it.
    pub operation: Operation,
    /// `NLM_F_…` beside `REQUEST`: [`crate::message::flag`]. To add:
    /// `CREATE | EXCL`; to replace: `CREATE | REPLACE`; `ACK` to be told
    /// when it is done, not only when it fails.
    pub flags: u16,
    /// `nlmsg_seq`: the answer repeats it.
    pub sequence: u32,
    /// When it is sent, milliseconds since the UNIX epoch: the end of a
    /// lifetime is sent as what remains of it.
    pub now_millis: u64,
}

impl Request {
    /// With no flag, for what has no lifetime: what is there is changed or
    /// deleted, nothing is made.
    pub fn plain(operation: Operation, sequence: u32) -> Self {
        Self {
            operation,
            flags: 0,
            sequence,
            now_millis: 0,
        }
    }

    pub(super) fn start<'a>(
        &self,
        out: &'a mut Vec<u8>,
        [new, delete]: [u16; 2],
        structure: &[u8],
    ) -> Build<'a> {
        let kind = match self.operation {
            Operation::New => new,
            Operation::Delete => delete,
        };
        let flags = self.flags | flag::REQUEST;
        Build::start(out, kind, flags, self.sequence, structure)
    }

    /// Whole seconds until a time; never the kernel's "without end".
    pub(super) fn remaining_secs(&self, until_millis: u64) -> u32 {
        let secs = until_millis.saturating_sub(self.now_millis) / 1000;
        u32::try_from(secs).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }
}
