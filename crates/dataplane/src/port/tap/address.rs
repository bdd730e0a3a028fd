//! An address for a device that nobody reaches by it. Called when a
//! [`super::Tap`] goes up.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};
use table::Address;
use table::row::route::scope;

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
    // No protocol named: 0, which is rtnetlink's.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // The kernel has done it and has put its answer there before this
    // returns.
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 256];
    let (len, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    refused(answer.get(..len).unwrap_or_default())
}

/// What an acknowledgement says: behind the header of 16 bytes an error's
/// number, negative, or 0.
fn refused(answer: &[u8]) -> io::Result<()> {
    let number = answer.get(16..).and_then(|rest| rest.first_chunk());
    match number.map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.wrapping_neg())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
