//! How fast links are, and whether they send and receive at once: one dump of the family `ethtool`, as rtnetlink does
//! not tell it. Called by the mirror's worker only.

use netlink::generic::{ETHTOOL, dump_link_speeds, family_id, get_family, link_duplex, link_speed};
use netlink::message::{Message, kind};
use rustix::io::Errno;
use tracing::debug;

use super::sampling::{Meanwhile, ask_meanwhile};
use crate::dump::SEQUENCE;
use crate::error::{Error, refusal};
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// What is known of links.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Mb/s by link.
    pub(super) speeds: Vec<(u32, u32)>,
    /// 0 half, 1 full, by link.
    pub(super) duplex: Vec<(u32, u8)>,
}

/// Speeds by link, of the links whose speed the kernel knows; none
/// on a kernel without the family (before Linux 5.6). Two questions, one
/// answer of some 120 bytes and 2 µs a link. `meanwhile` is called now and
/// then, so that events do not pile up.
pub(super) fn read(namespace: &Namespace, meanwhile: &mut Meanwhile<'_>) -> Result<Known, Error> {
    let socket = Socket::open_generic(namespace)?;
    let mut known = Known::default();
    let Some(family) = ethtool(&socket)? else {
        return Ok(known);
    };
    let mut request = Vec::with_capacity(64);
    dump_link_speeds(family, SEQUENCE, &mut request);
    let asked = ask_meanwhile(
        &socket,
        &request,
        &mut |message| {
            // What cannot be read has no speed; the others have theirs.
            let (speed, duplex) = (link_speed(message.payload), link_duplex(message.payload));
            known.speeds.extend(speed.ok().flatten());
            known.duplex.extend(duplex.ok().flatten());
        },
        meanwhile,
    );
    match asked {
        Ok(()) => {}
        // A device that is just being taken away ends the kernel's list:
        // what came before it is true.
        Err(refused @ Error::Refused { .. }) => debug!("not all speeds are known: {refused}"),
        Err(error) => return Err(error),
    }
    Ok(known)
}

/// The number of the family; `None`: this kernel does not have it.
fn ethtool(socket: &Socket) -> Result<Option<u16>, Error> {
    let mut request = Vec::with_capacity(64);
    if get_family(ETHTOOL, SEQUENCE, &mut request).is_err() {
        return Ok(None);
    }
    socket.send(&request)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "the number of a family")? else {
        return Ok(None);
    };
    match netlink::message::messages(&buffer[..len]).next() {
        Some(answer) => number(&answer?),
        None => Ok(None),
    }
}

fn number(answer: &Message<'_>) -> Result<Option<u16>, Error> {
    if answer.kind != kind::ERROR {
        return Ok(Some(family_id(answer.payload)?));
    }
    match refusal(answer)? {
        Some(refused) if refused.source.raw_os_error() != Some(Errno::NOENT.raw_os_error()) => {
            Err(Error::Refused {
                what: "name the number of a family",
                source: refused.source,
                message: refused.message,
            })
        }
        _ => Ok(None),
    }
}
