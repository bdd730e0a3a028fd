//! Messages to rows.
//!
//! [`decode`] takes any message; the functions beside it take the payload
//! of one kind, for who knows what is coming (a dump) and wants no detour.
//! Rows are what their docs in `table::row` say. What changes without an
//! announcement (counters, ages, a bridge's timers) is no part of them;
//! [`link_counters`], [`unannounced`] and [`neighbour_ages`] read it.

mod address;
mod announced_prefix;
mod encap;
mod fdb;
mod ip_statistics;
mod link;
mod metrics;
mod multicast_group;
mod multicast_route;
mod neighbour;
mod neighbour_table;
mod netconf;
mod nexthop;
mod nexthop_bucket;
mod other_route;
mod port_vlans;
mod reply;
mod route;
mod rule;
mod settings;
mod unannounced;

use table::{AF_INET, AF_INET6};
use table::{Address, FdbEntry, Link, Neighbour, Nexthop, OtherRoute, Route, Rule};

use crate::kernel::{AF_BRIDGE, AF_UNSPEC};
use crate::malformed::Malformed;
use crate::message::{Message, kind};

pub use address::address;
pub use announced_prefix::{AnnouncedPrefix, announced_prefix};
pub use fdb::fdb;
pub use ip_statistics::{Ipv6Layout, Ipv6Statistics};
pub(crate) use link::{LINKDOWN_SETTINGS, V4_FORWARDS, V6_DISABLED, V6_IGNORES};
pub use link::{
    ipv6_statistics, link, link_configuration, link_counters, link_event, link_index, link_stats,
};
pub use multicast_group::bridge_groups;
pub use multicast_route::{MulticastRoute, multicast_route};
pub use neighbour::{neighbour, neighbour_ages};
pub use neighbour_table::{neighbour_table, neighbour_times};
pub use netconf::{Netconf, NetconfSetting, netconf};
pub use nexthop::{nexthop, nexthop_unbalanced};
pub use nexthop_bucket::nexthop_bucket;
pub use other_route::other_route;
pub use port_vlans::{PortVlans, VlanRange, port_vlans};
pub use reply::netns_id;
pub use route::route;
pub use rule::rule;
pub use settings::{Settings, settings};
pub use unannounced::{bridge_port, bridge_port_timers, unannounced};

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once and never stored; a box would cost an allocation a row"
)]
pub enum Decoded {
    /// A row is there, or is gone.
    Announcement(Announcement),
    /// `RTM_NEWLINK` or `RTM_DELLINK` of `AF_BRIDGE`: a bridge tells that
    /// the port's settings or state changed (or that the link is no port
    /// of it any more). Not the link: it comes and goes by messages of its
    /// own. Its `slave_data` may be out of date; asking for the link again
    /// ([`crate::request::get_link`]) tells.
    BridgePort {
        /// `ifi_index` of the port.
        link: u32,
    },
    /// Settings of a link or of all links.
    Settings(Settings),
    /// `RTM_NEWNEIGHTBL` of a link: a dump has the link first that came last.
    Came {
        /// Its index.
        link: u32,
    },
    /// `NLMSG_DONE`: the dump ends.
    Done {
        /// 0, or why the dump failed, as a positive `errno`.
        errno: i32,
        /// The kernel's extended message, if it had one.
        message: Option<String>,
    },
    /// `NLMSG_ERROR`: the answer to one request.
    Error {
        /// A positive `errno`; 0: it was done (an acknowledgement).
        errno: i32,
        /// The kernel's extended message: why.
        message: Option<String>,
        /// Which byte of the request it was about (`NLMSGERR_ATTR_OFFS`).
        offset: Option<u32>,
        /// The request's sequence number.
        sequence: u32,
    },
    /// `NLMSG_NOOP`.
    Noop,
    /// A message, or an address family of one, that has no row: its kind.
    Unknown(u16),
}

/// A row that is there, or is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// Which of both.
    pub operation: Operation,
    /// `nlmsg_flags` of the message: [`crate::message::flag`]. In an event
    /// those of the change that caused it (`REPLACE`, `APPEND`, …).
    pub flags: u16,
    /// Whether somebody's request caused it (`nlmsg_pid`), where the message
    /// says so, as those of routes do.
    pub is_requested: bool,
    /// The row. Of a deletion: as it was.
    pub item: Item,
}

/// Whether a row is there or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `RTM_NEW…`: there, new or changed.
    New,
    /// `RTM_DEL…`: gone.
    Delete,
}

/// A row of any table.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is the row it names")]
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once and never stored; a box would cost an allocation a link"
)]
pub enum Item {
    Link(Link),
    Address(Address),
    Neighbour(Neighbour),
    Fdb(FdbEntry),
    Route(Route),
    OtherRoute(OtherRoute),
    Nexthop(Nexthop),
    Rule(Rule),
}

/// What a message says. `now_millis` (since the UNIX epoch) is when it was
/// received: remaining lifetimes are told as the time they end. O(bytes);
/// allocates what the row holds, for a route with at most one next hop and
/// no attribute that has to be kept raw: nothing.
pub fn decode(message: &Message<'_>, now_millis: u64) -> Result<Decoded, Malformed> {
    let payload = message.payload;
    let family = payload.first().copied().unwrap_or(AF_UNSPEC);
    let (operation, item) = match (message.kind, family) {
        (kind::NOOP, _) => return Ok(Decoded::Noop),
        (kind::DONE, _) => return reply::done(message),
        (kind::ERROR, _) => return reply::error(message),
        (kind::NEWLINK | kind::DELLINK, AF_BRIDGE) => {
            return Ok(Decoded::BridgePort {
                link: link::index(payload)?,
            });
        }
        (kind::NEWLINK | kind::DELLINK, AF_UNSPEC) => (
            operation(message, kind::DELLINK),
            Item::Link(link(payload)?),
        ),
        (kind::NEWNEIGHTBL, _) => {
            let came = neighbour_table(payload)?.map(|link| Decoded::Came { link });
            return Ok(came.unwrap_or(Decoded::Unknown(kind::NEWNEIGHTBL)));
        }
        (kind::NEWNETCONF, AF_INET | AF_INET6) => {
            let settings = settings(payload)?.map(Decoded::Settings);
            return Ok(settings.unwrap_or(Decoded::Unknown(kind::NEWNETCONF)));
        }
        (kind::NEWADDR | kind::DELADDR, AF_INET | AF_INET6) => (
            operation(message, kind::DELADDR),
            Item::Address(address(payload, now_millis)?),
        ),
        (kind::NEWNEIGH | kind::DELNEIGH, AF_INET | AF_INET6) => (
            operation(message, kind::DELNEIGH),
            Item::Neighbour(neighbour(payload)?),
        ),
        (kind::NEWNEIGH | kind::DELNEIGH, AF_BRIDGE) => {
            (operation(message, kind::DELNEIGH), Item::Fdb(fdb(payload)?))
        }
        (kind::NEWROUTE | kind::DELROUTE, AF_INET | AF_INET6) => (
            operation(message, kind::DELROUTE),
            Item::Route(route(payload, now_millis)?),
        ),
        (kind::NEWROUTE | kind::DELROUTE, _) => (
            operation(message, kind::DELROUTE),
            Item::OtherRoute(other_route(payload)?),
        ),
        (kind::NEWNEXTHOP | kind::DELNEXTHOP, _) => (
            operation(message, kind::DELNEXTHOP),
            Item::Nexthop(nexthop(payload)?),
        ),
        (kind::NEWRULE | kind::DELRULE, AF_INET | AF_INET6) => (
            operation(message, kind::DELRULE),
            Item::Rule(rule(payload)?),
        ),
        (other, _) => return Ok(Decoded::Unknown(other)),
    };
    Ok(Decoded::Announcement(Announcement {
        operation,
        flags: message.flags,
        is_requested: message.port != 0,
        item,
    }))
}

fn operation(message: &Message<'_>, delete: u16) -> Operation {
    if message.kind == delete {
        Operation::Delete
    } else {
        Operation::New
    }
}

/// The structure a payload starts with, and its attributes.
#[inline]
pub(crate) fn split<'a, const N: usize>(
    payload: &'a [u8],
    message: &'static str,
) -> Result<(&'a [u8; N], crate::attribute::Attributes<'a>), Malformed> {
    let Some((header, rest)) = payload.split_first_chunk::<N>() else {
        return Err(Malformed::Header {
            message,
            wanted: N,
            left: payload.len(),
        });
    };
    Ok((header, crate::attribute::Attributes::new(rest, message, N)))
}

/// A header's `__s32` or `int` link index as the rows keep it.
fn link_of(bytes: [u8; 4], message: &'static str, field: &'static str) -> Result<u32, Malformed> {
    let index = i32::from_ne_bytes(bytes);
    u32::try_from(index).map_err(|_| Malformed::Field {
        message,
        field,
        value: index.into(),
    })
}

/// A lifetime of seconds as the time it ends.
fn ends_at(remaining_secs: u32, now_millis: u64) -> Option<u64> {
    (remaining_secs != crate::kernel::ifa::INFINITY)
        .then(|| now_millis.saturating_add(u64::from(remaining_secs) * 1000))
}
