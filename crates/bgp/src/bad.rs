//! Why bytes are no message.

use thiserror::Error;

/// Why bytes cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Bad {
    /// There are fewer bytes than it says or needs.
    #[error("{0} is cut off")]
    Short(&'static str),
    /// There are bytes behind what it says.
    #[error("{0} has bytes behind its end")]
    Long(&'static str),
    /// A length that nothing of its kind has.
    #[error("{what} is {len} long, which cannot be")]
    Length {
        /// What is so long.
        what: &'static str,
        /// How long it says to be.
        len: usize,
    },
    /// A value that is not one of those there are.
    #[error("{what} is {value}, which is not known")]
    Value {
        /// What it is the value of.
        what: &'static str,
        /// The value.
        value: u32,
    },
    /// A peer that the table of peers does not have.
    #[error("there is no peer {0} in the table of peers")]
    NoPeer(u16),
    /// More peers than there may be.
    #[error("there are more than {0} peers")]
    TooManyPeers(usize),
}
