//! An address for a device that nobody reaches by it. Called when a
//! [`super::Tap`] goes up.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use table::Address;
use table::row::route::scope;

use crate::rtnetlink::asked;

/// Of loopback's prefix: no packet of a link may have it, so that it is in
/// nobody's way; and its scope keeps it from being chosen as a source.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 70, 80, 1);

/// Gives the link the address, in the calling thread's namespace.
pub fn add(link: u32) -> io::Result<()> {
    let row = Address {
        scope: scope::HOST,
        ..Address::new(link, IpAddr::V4(ADDRESS), 32)
    };
    let request = Request {
        flags: flag::CREATE | flag::REPLACE | flag::ACK,
        ..Request::plain(Operation::New, 1)
    };
    let mut message = Vec::new();
    encode::address(&mut message, &request, &row).map_err(io::Error::other)?;
    asked(&message).map(drop)
}
