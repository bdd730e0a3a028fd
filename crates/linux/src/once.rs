//! Single questions to the kernel, for whoever keeps no mirror: a table with
//! an error of the caller's own, the links, the route to an address.

use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};

use netlink::decode::{self, Decoded, Item};
use netlink::message::{Message, kind, messages};
use netlink::request::{
    Dump, RouteQuery, get_link, get_link_by_name, get_neighbour, get_netns_id, get_nexthop_bucket,
    get_route,
};
use table::row::nexthop_bucket::NexthopBucket;
use table::{Change, Link, Links, Route, Writer};

use crate::dump::{DumpEnd, dump};
use crate::error::Error;
use crate::mirror::now_millis;
use crate::namespace::Namespace;
use crate::socket::{DATAGRAM_BYTES, Received, Socket};

/// A table of a namespace through `each`, until a row fails.
pub fn rows<E: From<Error>>(
    namespace: &Namespace,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>) -> Result<(), E>,
) -> Result<DumpEnd, E> {
    let mut failed = None;
    let dumped = dump(namespace, request, &mut |message| match each(message) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(dumped?),
    }
}

/// The links of a namespace, without counters.
pub fn links(namespace: &Namespace) -> Result<Links, Error> {
    let mut writer = Writer::default();
    let request = Dump::Links { counters: false };
    rows(namespace, &request, &mut |message| -> Result<(), Error> {
        writer.apply(Change::PutLink(decode::link(message.payload)?))?;
        Ok(())
    })?;
    Ok(writer.tables().links.clone())
}

/// The link with an index, if there is one.
pub fn link(index: u32, namespace: &Namespace) -> Result<Option<Link>, Error> {
    let mut request = Vec::new();
    get_link(index, 1, &mut request);
    asked_link(&request, namespace)
}

/// The link with a name or alternative name, if there is one. Of a name that
/// is too long for a link there is none.
pub fn link_named(name: &str, namespace: &Namespace) -> Result<Option<Link>, Error> {
    let mut request = Vec::new();
    if name.is_empty() || get_link_by_name(name, 1, &mut request).is_err() {
        return Ok(None);
    }
    asked_link(&request, namespace)
}

fn asked_link(request: &[u8], namespace: &Namespace) -> Result<Option<Link>, Error> {
    let socket = Socket::open(namespace)?;
    socket.send(request)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "a link")? else {
        return Err(Error::system("the kernel's answer")(
            io::ErrorKind::UnexpectedEof.into(),
        ));
    };
    for message in messages(buffer.get(..len).unwrap_or_default()) {
        if let Decoded::Announcement(announced) = decode::decode(&message?, now_millis())?
            && let Item::Link(link) = announced.item
        {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

/// The route that the kernel takes to an address. Where it has none,
/// [`Error::Refused`] carries its error number.
pub fn route(to: IpAddr, query: &RouteQuery, namespace: &Namespace) -> Result<Route, Error> {
    const WHAT: &str = "find a route";
    let socket = Socket::open(namespace)?;
    let mut request = Vec::new();
    get_route(to, query, 1, &mut request);
    socket.send(&request)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "a route")? else {
        return Err(Error::system("the kernel's answer")(
            io::ErrorKind::UnexpectedEof.into(),
        ));
    };
    for message in messages(buffer.get(..len).unwrap_or_default()) {
        match decode::decode(&message?, now_millis())? {
            Decoded::Announcement(announced) => {
                if let Item::Route(route) = announced.item {
                    return Ok(route);
                }
            }
            Decoded::Error { errno, message, .. } => {
                return Err(Error::Refused {
                    what: WHAT,
                    source: io::Error::from_raw_os_error(errno),
                    message,
                });
            }
            _ => {}
        }
    }
    Err(Error::system("the kernel's answer is no route")(
        io::ErrorKind::InvalidData.into(),
    ))
}

/// The message that tells of a neighbour on a link, or of a proxy entry.
/// Where there is none, [`Error::Refused`] has the kernel's words.
pub fn neighbour(
    namespace: &Namespace,
    address: IpAddr,
    link: u32,
    proxy: bool,
) -> Result<Vec<u8>, Error> {
    let mut request = Vec::new();
    get_neighbour(address, link, proxy, 1, &mut request);
    one(namespace, &request, kind::NEWNEIGH, "find a neighbour")
}

/// The payload of the one message of a kind that answers a request.
fn one(
    namespace: &Namespace,
    request: &[u8],
    kind: u16,
    what: &'static str,
) -> Result<Vec<u8>, Error> {
    let socket = Socket::open(namespace)?;
    socket.send(request)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, what)? else {
        return Err(Error::system(what)(io::ErrorKind::UnexpectedEof.into()));
    };
    for message in messages(buffer.get(..len).unwrap_or_default()) {
        let message = message?;
        if message.kind == kind {
            return Ok(message.payload.to_vec());
        }
        if let Decoded::Error { errno, message, .. } = decode::decode(&message, 0)? {
            return Err(Error::Refused {
                what,
                source: io::Error::from_raw_os_error(errno),
                message,
            });
        }
    }
    Err(Error::system(what)(io::ErrorKind::InvalidData.into()))
}

/// A bucket of a resilient group of next hops.
pub fn nexthop_bucket(
    namespace: &Namespace,
    group: u32,
    index: u16,
) -> Result<NexthopBucket, Error> {
    let mut request = Vec::new();
    get_nexthop_bucket(group, index, 1, &mut request);
    let payload = one(namespace, &request, kind::NEWNEXTHOPBUCKET, "find a bucket")?;
    Ok(decode::nexthop_bucket(&payload)?)
}

/// The number that a namespace has in another, if it has one.
pub fn netns_id(other: &Namespace, namespace: &Namespace) -> Result<Option<i32>, Error> {
    number_of(&Socket::open(namespace)?, other)
}

/// The number of a namespace in that of a socket.
pub(crate) fn number_of(socket: &Socket, namespace: &Namespace) -> Result<Option<i32>, Error> {
    let mut question = Vec::new();
    get_netns_id(namespace.as_fd().as_raw_fd(), 0, &mut question);
    socket.send(&question)?;
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let Received::Bytes(len) = socket.receive(&mut buffer, "a question")? else {
        return Ok(None);
    };
    match messages(&buffer[..len]).next().transpose()? {
        Some(answer) if answer.kind == kind::NEWNSID => Ok(decode::netns_id(answer.payload)?),
        _ => Ok(None),
    }
}
