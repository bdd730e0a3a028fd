//! A request to rtnetlink and its answer, on a socket of its own. For what a
//! device is set up with: a program at XDP that lasts, an address of a TAP.

use std::io;

use netlink::message::{kind, messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// Bytes that an answer may have: a link with all that the kernel tells of it.
const ANSWER: usize = 1 << 16;

/// Asks in the calling thread's namespace, with a request that wants to be
/// acknowledged: the payload of the last message before that, or nothing. What
/// the kernel refuses is its error.
pub(crate) fn asked(request: &[u8]) -> io::Result<Vec<u8>> {
    let (family, of) = (AddressFamily::NETLINK, SocketType::RAW);
    // NETLINK_ROUTE is protocol 0.
    let socket = socket_with(family, of, SocketFlags::CLOEXEC, None)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, request, SendFlags::empty(), &kernel)?;
    let mut told = Vec::new();
    let mut bytes = vec![0_u8; ANSWER];
    loop {
        let (len, _) = recv(&socket, bytes.as_mut_slice(), RecvFlags::empty())?;
        for message in messages(bytes.get(..len).unwrap_or_default()) {
            let message = message.map_err(io::Error::other)?;
            if message.kind != kind::ERROR {
                told = message.payload.to_vec();
                continue;
            }
            let number = message.payload.first_chunk();
            return match number.map(|number| i32::from_ne_bytes(*number)) {
                Some(0) => Ok(told),
                Some(number) => Err(io::Error::from_raw_os_error(number.wrapping_neg())),
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
    }
}
