//! Why a connection is cut. Called by [`super::Master`] and who logs it.

use thiserror::Error;

use super::{LONGEST_STALL_MILLIS, MAX_MESSAGES_PER_SECOND, MOST_UNANSWERED};
use crate::agentx::wire::{Malformed, reason};
use crate::oid::Oid;

/// Why a connection was cut.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cut {
    /// It sent what cannot be read.
    #[error("it sent what cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// It answered what it was not asked.
    #[error("it answered a question that it was not asked (packet {0})")]
    UnknownAnswer(u32),
    /// It answered with another name than it was asked for, or with one
    /// out of order.
    #[error("its answer has {found} where it was asked for what is at or behind {asked}")]
    WrongName {
        /// The name in the answer.
        found: Oid,
        /// Its question's, or the one before it in the answer.
        asked: Oid,
    },
    /// It answered with too many names or with none.
    #[error("its answer has {found} names where {asked} were asked for")]
    WrongCount {
        /// Names in the answer, those that were read.
        found: usize,
        /// Names that there may be.
        asked: usize,
    },
    /// It sent a message that only a master sends.
    #[error("it sent a message of type {0}, which no subagent sends")]
    Unexpected(u8),
    /// It sends too much.
    #[error("it sent more than {MAX_MESSAGES_PER_SECOND} messages in a second")]
    Flood,
    /// It does not read what it is sent.
    #[error("it does not read what it is sent")]
    ReadsNothing,
    /// It answers some questions, and others never.
    #[error("it left more than {MOST_UNANSWERED} questions unanswered")]
    Forgets,
    /// It answers nothing.
    #[error("it answered nothing for {} s", LONGEST_STALL_MILLIS / 1_000)]
    Stalled,
}

impl Cut {
    /// `c.reason` that it is told.
    pub(super) fn reason(&self) -> u8 {
        match self {
            Self::Malformed(_) => reason::PARSE_ERROR,
            Self::UnknownAnswer(_)
            | Self::WrongName { .. }
            | Self::WrongCount { .. }
            | Self::Unexpected(_) => reason::PROTOCOL_ERROR,
            Self::Flood | Self::ReadsNothing => reason::OTHER,
            Self::Forgets | Self::Stalled => reason::TIMEOUTS,
        }
    }
}
