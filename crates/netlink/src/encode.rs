//! Rows to changes (`RTM_NEW…`, `RTM_DEL…`), appended to a buffer, so that
//! many go out in one send.
//!
//! A row read from the kernel and sent again makes the same row. What only
//! the kernel may tell (offload flags, the scope of a next-hop object,
//! whether a rule's link exists, a route's error) is left out, since the
//! kernel refuses or misunderstands it in a request. A deletion carries the
//! whole row where the kernel compares it, and only the key elsewhere.

mod address;
mod link;
mod neighbour;
mod new_link;
mod nexthop;
mod route;
mod rule;

use crate::build::Build;
use crate::decode::{Item, Operation};
use crate::malformed::TooLong;
use crate::message::flag;

pub use address::address;
pub use link::{LinkSettings, delete_link, delete_link_group, link, set_link};
pub use neighbour::{fdb, neighbour};
pub use new_link::{
    KindError, LINK_KINDS, LinkEnd, LinkKind, LinkNetns, NewLink, kind_of_words, new_link,
};
pub use nexthop::nexthop;
pub use route::route;
pub use rule::{rule, unplaced_rule};

/// Appends the message of a row of any table. Of a route of a family that
/// is not changed here (MPLS, multicast forwarding) nothing is appended.
pub fn row(out: &mut Vec<u8>, request: &Request, row: &Item) -> Result<(), TooLong> {
    match row {
        Item::Link(row) => link(out, request, row),
        Item::Address(row) => address(out, request, row),
        Item::Neighbour(row) => neighbour(out, request, row),
        Item::Fdb(row) => fdb(out, request, row),
        Item::Route(row) => route(out, request, row),
        Item::Nexthop(row) => nexthop(out, request, row),
        Item::Rule(row) => rule(out, request, row),
        Item::OtherRoute(_) => Ok(()),
    }
}

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
    fn start<'a>(
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
    fn remaining_secs(&self, until_millis: u64) -> u32 {
        let secs = until_millis.saturating_sub(self.now_millis) / 1000;
        u32::try_from(secs).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }
}
