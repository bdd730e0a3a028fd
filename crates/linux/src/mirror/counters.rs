//! Counters of links without the rest of the links (`RTM_GETSTATS`), of
//! all in one dump or of some singly. Called by the mirror's worker only.

use std::io;
use std::time::Instant;

use netlink::decode::link_stats;
use netlink::message::{Message, flag, kind, messages};
use netlink::request::get_link_stats;
use table::{Counted, LinkRanges, Links};

use crate::dump::{SEQUENCE, end_of};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Counters by link, in any order.
pub(super) type CountedLinks = Vec<(u32, Counted)>;

/// So many are asked for singly without a look at how many there are.
const FEW: usize = 64;
/// A listing that links come or go under is done again so often.
const ATTEMPTS: usize = 3;

/// The counters of all links: some 2 µs a link. What the kernel may have
/// passed over, because links came or went, is not in it. `meanwhile` is
/// called now and then, so that events do not pile up.
pub(super) fn read_all(
    namespace: &Namespace,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<CountedLinks, Error> {
    let mut counted = CountedLinks::new();
    for _ in 0..ATTEMPTS {
        counted.clear();
        if !dump(&Socket::open(namespace)?, &mut counted, meanwhile)? {
            break;
        }
    }
    Ok(counted)
}

/// One listing; whether links came or went meanwhile.
///
/// The kernel writes a part of it in the call that asks for it (`send`, or
/// the `recv` of the part before) and may have waited for its lock of links
/// first (RTNL): the end of that call is when it read them.
fn dump(
    socket: &Socket,
    counted: &mut CountedLinks,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<bool, Error> {
    let mut request = Vec::with_capacity(32);
    get_link_stats(None, SEQUENCE, &mut request);
    socket.send(&request)?;
    let mut written = Instant::now();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let mut interrupted = false;
    loop {
        let len = receive(socket, &mut buffer)?;
        let next = Instant::now();
        for message in messages(&buffer[..len]) {
            let message = message?;
            interrupted |= message.flags & flag::DUMP_INTR != 0;
            if matches!(message.kind, kind::DONE | kind::ERROR) {
                return end_of(&message).map(|()| interrupted);
            }
            counted.extend(of(&message, written));
        }
        written = next;
        meanwhile()?;
    }
}

fn of(message: &Message<'_>, at: Instant) -> Option<(u32, Counted)> {
    let (link, counters) = link_stats(message.payload)?;
    let at = Some(at);
    Some((link, Counted { counters, at }))
}

fn receive(socket: &Socket, buffer: &mut [u8]) -> Result<usize, Error> {
    match socket.receive(buffer, "counters of links")? {
        Received::Bytes(len) => Ok(len),
        Received::Nothing | Received::Overrun => Err(Error::System {
            what: "receive counters of links",
            source: io::Error::other("the receive buffer overflowed"),
        }),
    }
}

/// The counters of these links: some 4 µs each. One that is gone has none.
/// Each is asked for by a call of its own, whose end is when it was read.
pub(super) fn read_some(namespace: &Namespace, links: &[u32]) -> Result<CountedLinks, Error> {
    let mut counted = CountedLinks::with_capacity(links.len());
    if links.is_empty() {
        return Ok(counted);
    }
    let socket = Socket::open(namespace)?;
    let mut request = Vec::with_capacity(32);
    let mut buffer = vec![0; DATAGRAM_BYTES];
    for link in links {
        request.clear();
        get_link_stats(Some(*link), SEQUENCE, &mut request);
        socket.send(&request)?;
        let at = Instant::now();
        // It is answered once: by counters, or by an error.
        let len = receive(&socket, &mut buffer)?;
        for message in messages(&buffer[..len]) {
            let message = message?;
            if message.kind == kind::NEWSTATS {
                counted.extend(of(&message, at));
            }
        }
    }
    Ok(counted)
}

/// The links in some ranges, each once; `None`: there are so many, or so few
/// in all, that all are read as fast.
pub(super) fn in_ranges(links: &Links, ranges: &LinkRanges) -> Option<Vec<u32>> {
    if links.len() <= FEW {
        return None;
    }
    let most = (links.len() / 4).max(FEW);
    let mut found = Vec::new();
    for range in ranges.iter() {
        let inside = links.from(*range.start()).map(|link| link.index);
        found.extend(inside.take_while(|link| link <= range.end()).take(most + 1));
        if found.len() > most {
            return None;
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}
