//! Rows to changes (`RTM_NEW…`, `RTM_DEL…`), appended to a buffer, so that
//! many go out in one send.
//!
//! A row read from the kernel and sent again makes the same row. What only
//! the kernel may tell (offload flags, the scope of a next-hop object,
//! whether a rule's link exists, a route's error) is left out, since the
//! kernel refuses or misunderstands it in a request. A deletion carries the
//! whole row where the kernel compares it, and only the key elsewhere.

mod address;
mod bridge;
mod encap;
mod link;
mod link_parts;
mod metrics;
mod neighbour;
mod new_link;
mod nexthop;
mod request;
mod route;
mod rule;

use crate::decode::Item;
use crate::malformed::TooLong;

pub use address::address;
pub use bridge::{AtPort, Vlans, bridge_port, bridge_vlans, multicast_group};
pub use link::{LinkSettings, alternative_names, delete_link, delete_link_group, link, set_link};
pub use link_parts::{LinkEnd, LinkKind, LinkNetns};
pub use neighbour::{fdb, neighbour};
pub use new_link::{
    KindError, LINK_KINDS, NewLink, kind_of_words, named_value, new_link, words_of_kind,
};
pub use nexthop::nexthop;
pub use request::Request;
pub use route::{acknowledgement, route};
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
