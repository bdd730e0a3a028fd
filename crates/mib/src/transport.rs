//! TCP-MIB (RFC 4022) and UDP-MIB (RFC 4113): counters, sampled with the
//! links, and sockets, sampled while somebody asks for them.
//!
//! A socket that takes both families is of type `unknown` with an empty
//! address, as the RFCs ask; one of IPv4 inside IPv6 is of IPv4. Which
//! process has a socket takes other processes' secrets to know: the process
//! columns say 0, none known.

mod tcp;
mod udp;

use snmp::oid::Name;
use table::{Endpoint, Reach};

use crate::index;

pub(crate) use tcp::{ConnectionTable, ListenerTable, scalars as tcp_scalars};
pub(crate) use udp::{EndpointTable, scalars as udp_scalars};

/// Appends type, length, address and port.
fn put_end(name: &mut Name, end: &Endpoint) {
    match end.reach {
        Reach::Any => name.extend([index::UNKNOWN, 0]),
        Reach::V4 | Reach::V6 => index::put_inet(name, end.address),
        Reach::Zoned => index::put_zoned(name, end.address, end.zone),
    }
    index::put(name, end.port.into());
}
