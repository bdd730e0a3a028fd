//! All links of a namespace at one moment.

use std::collections::HashMap;
use std::ops::ControlFlow;

use netlink::decode;
use netlink::message::{kind, messages};
use netlink::request::{Dump, get_link, get_link_by_name};
use table::Link;

use crate::dump::dump_on;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// So often a listing is begun again that changes interrupted.
const TRIES: usize = 20;

/// The links of a namespace.
#[derive(Debug, Default)]
pub struct Listing {
    links: Vec<Link>,
    by_index: HashMap<u32, usize>,
}

impl Listing {
    /// Reads them from the kernel: a few microseconds a link. Begins again
    /// when links come or go meanwhile.
    pub fn read(namespace: &Namespace) -> Result<Self, Error> {
        Self::read_dump(namespace, &Dump::Links { counters: false })
    }

    /// The same of a part of them.
    pub(super) fn read_dump(namespace: &Namespace, request: &Dump) -> Result<Self, Error> {
        let socket = Socket::open(namespace)?;
        let gathered = gather(&socket, request, &Vec::new, &mut Vec::push);
        Ok(Self::of(gathered?))
    }

    fn of(links: Vec<Link>) -> Self {
        let by_index = links.iter().enumerate();
        Self {
            by_index: by_index.map(|(at, link)| (link.index, at)).collect(),
            links,
        }
    }

    /// In the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.iter()
    }

    /// The same, no longer a listing.
    pub fn into_links(self) -> Vec<Link> {
        self.links
    }

    /// The link of an index. O(1).
    pub fn get(&self, index: u32) -> Option<&Link> {
        self.by_index.get(&index).and_then(|at| self.links.get(*at))
    }

    /// The link of a name, its own or an alternative one. O(links).
    pub fn named(&self, name: &str) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| *link.name == *name || link.alt_names.iter().any(|other| **other == *name))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is none, not even a loopback.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

/// Gathers from each link as it comes. Begins again, with a `new` value,
/// when links come or go meanwhile.
pub(super) fn gather<T>(
    socket: &Socket,
    request: &Dump,
    new: &dyn Fn() -> T,
    each: &mut dyn FnMut(&mut T, Link),
) -> Result<T, Error> {
    for _ in 0..TRIES {
        let mut gathered = new();
        let mut malformed = None;
        let end = dump_on(socket, request, &mut |message| {
            match decode::link(message.payload) {
                Ok(link) => each(&mut gathered, link),
                Err(error) => malformed = Some(error),
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = malformed {
            return Err(error.into());
        }
        if !end.interrupted {
            return Ok(gathered);
        }
    }
    Err(Error::Restless { what: "links" })
}

/// Streams links through `each` until it says `false`; tells whether it
/// never did. A listing that changes interrupted is taken as it is. After a
/// break the socket is of no more use.
pub(super) fn each_of(
    socket: &Socket,
    request: &Dump,
    each: &mut dyn FnMut(Link) -> bool,
) -> Result<bool, Error> {
    let mut malformed = None;
    let end = dump_on(socket, request, &mut |message| {
        let go_on = match decode::link(message.payload) {
            Ok(link) => each(link),
            Err(error) => {
                malformed = Some(error);
                true
            }
        };
        if go_on {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    match malformed {
        Some(error) => Err(error.into()),
        None => Ok(!end.broken_off),
    }
}

/// The link of an index, asked for by itself; `None` when there is none.
pub(super) fn one(socket: &Socket, index: u32) -> Result<Option<Link>, Error> {
    let mut question = Vec::new();
    get_link(index, 0, &mut question);
    answer(socket, &question)
}

/// The link of a name, asked for by itself; `None` when there is none.
pub fn named(socket: &Socket, name: &str) -> Result<Option<Link>, Error> {
    let mut question = Vec::new();
    match get_link_by_name(name, 0, &mut question) {
        Ok(()) => answer(socket, &question),
        Err(_) => Ok(None),
    }
}

fn answer(socket: &Socket, question: &[u8]) -> Result<Option<Link>, Error> {
    socket.send(question)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "a question")? else {
        return Ok(None);
    };
    match messages(&buffer[..len]).next().transpose()? {
        Some(answer) if answer.kind == kind::NEWLINK => Ok(Some(decode::link(answer.payload)?)),
        _ => Ok(None),
    }
}
