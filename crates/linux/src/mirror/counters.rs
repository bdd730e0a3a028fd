//! Counters of links without the rest of the links (`RTM_GETSTATS`), of
//! all in one dump or of some singly. Called by the mirror's worker only.

use std::ops::ControlFlow;

use netlink::decode::link_stats;
use netlink::message::{Message, kind, messages};
use netlink::request::get_link_stats;
use table::{LinkCounters, LinkRanges, Links};

use super::load::MESSAGES_BETWEEN_LOOKS;
use crate::dump::{SEQUENCE, ask};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// Counters by link, in any order.
pub(super) type Counted = Vec<(u32, LinkCounters)>;

/// Questions in flight: their answers fit into any receive buffer.
const IN_FLIGHT: usize = 64;
/// A listing that links come or go under is done again so often.
const ATTEMPTS: usize = 3;

/// The counters of all links: some 2 µs a link. What the kernel may have
/// passed over, because links came or went, is not in it. `meanwhile` is
/// called now and then, so that events do not pile up.
pub(super) fn read_all(
    namespace: &Namespace,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Counted, Error> {
    let mut counted = Counted::new();
    for _ in 0..ATTEMPTS {
        counted.clear();
        if !dump(&Socket::open(namespace)?, &mut counted, meanwhile)? {
            break;
        }
    }
    Ok(counted)
}

/// One listing; whether links came or went meanwhile.
fn dump(
    socket: &Socket,
    counted: &mut Counted,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<bool, Error> {
    let mut request = Vec::with_capacity(32);
    get_link_stats(None, SEQUENCE, &mut request);
    let mut outcome = Ok(());
    let ended = ask(socket, &request, &mut |message: &Message<'_>| {
        counted.extend(link_stats(message.payload));
        if counted.len().is_multiple_of(MESSAGES_BETWEEN_LOOKS) {
            outcome = meanwhile();
        }
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    outcome?;
    Ok(ended?.interrupted)
}

/// The counters of these links: some 4 µs each. One that is gone has none.
pub(super) fn read_some(namespace: &Namespace, links: &[u32]) -> Result<Counted, Error> {
    let mut counted = Counted::with_capacity(links.len());
    if links.is_empty() {
        return Ok(counted);
    }
    let socket = Socket::open(namespace)?;
    let mut requests = Vec::new();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    for some in links.chunks(IN_FLIGHT) {
        requests.clear();
        for (sequence, link) in (1..).zip(some) {
            get_link_stats(Some(*link), sequence, &mut requests);
        }
        socket.send(&requests)?;
        // Each is answered once: by counters, or by an error.
        let mut answered = 0;
        while answered < some.len() {
            let Received::Bytes(len) = socket.receive(&mut buffer, "counters of links")? else {
                return Ok(counted);
            };
            for message in messages(&buffer[..len]) {
                let message = message?;
                answered += usize::from(matches!(message.kind, kind::NEWSTATS | kind::ERROR));
                if message.kind == kind::NEWSTATS {
                    counted.extend(link_stats(message.payload));
                }
            }
        }
    }
    Ok(counted)
}

/// The links in some ranges, each once; `None`: there are so many, or so few
/// in all, that all are read as fast.
pub(super) fn in_ranges(links: &Links, ranges: &LinkRanges) -> Option<Vec<u32>> {
    if links.len() <= IN_FLIGHT {
        return None;
    }
    let most = (links.len() / 4).max(IN_FLIGHT);
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
