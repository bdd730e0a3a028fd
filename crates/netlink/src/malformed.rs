//! What can be wrong with bytes that should be netlink messages.

use thiserror::Error;

/// Bytes that are not what the kernel's headers say. Whoever gets this
/// skips the message (or the rest of the buffer, when its length cannot be
/// trusted) and counts it; nothing was changed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// A `struct nlmsghdr` whose length cannot be right: the rest of the
    /// buffer cannot be read.
    #[error(
        "netlink message at byte {offset} of the buffer claims {claimed} bytes, {left} are left: \
         receive again with a larger buffer"
    )]
    MessageLength {
        /// Where the message starts in the buffer.
        offset: usize,
        /// `nlmsg_len`; 0 when there is no room for the header itself.
        claimed: u32,
        /// Bytes from there to the end of the buffer.
        left: usize,
    },
    /// A payload without room for the structure it starts with.
    #[error("{message}: {left} bytes, its header alone has {wanted}")]
    Header {
        /// Which message.
        message: &'static str,
        /// Bytes of the structure.
        wanted: usize,
        /// Bytes of the payload.
        left: usize,
    },
    /// An attribute that claims more than there is.
    #[error("{message}: attribute {kind} at byte {offset} claims {claimed} bytes, {left} are left")]
    AttributeLength {
        /// Which message.
        message: &'static str,
        /// `nla_type` without its flags.
        kind: u16,
        /// Where the attribute starts, counted from the payload's start.
        offset: usize,
        /// `nla_len`.
        claimed: usize,
        /// Bytes from there to the end.
        left: usize,
    },
    /// An attribute whose value has an impossible size.
    #[error("{message}: attribute {kind} at byte {offset} has a value of {size} bytes")]
    AttributeSize {
        /// Which message.
        message: &'static str,
        /// `nla_type` without its flags.
        kind: u16,
        /// Where the attribute starts, counted from the payload's start.
        offset: usize,
        /// Bytes of the value.
        size: usize,
    },
    /// A field of the header with an impossible value.
    #[error("{message}: {field} is {value}")]
    Field {
        /// Which message.
        message: &'static str,
        /// Which field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Something without which there is no row.
    #[error("{message}: no {attribute}")]
    Missing {
        /// Which message.
        message: &'static str,
        /// Which attribute.
        attribute: &'static str,
    },
}

/// A row that does not fit into a message: an attribute's length is 16
/// bits. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "attribute {kind} would have {bytes} bytes, 65535 at most: send fewer next hops or a shorter text"
)]
pub struct TooLong {
    /// `nla_type`.
    pub kind: u16,
    /// Bytes it would have.
    pub bytes: usize,
}
