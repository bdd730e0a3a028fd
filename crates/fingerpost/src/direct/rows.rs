//! Rows straight from the kernel, for arp and ifconfig.

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::{Context, Result, anyhow};
use linux::socket::Socket;
use linux::{Namespace, dump};
use netlink::message::Message;
use netlink::request::Dump;
use netlink::{Malformed, decode};
use table::{AF_INET, AF_INET6, Address, Link, LinkCounters};

/// How often a listing that changed under our eyes is begun again.
const ATTEMPTS: usize = 4;

/// A way to the kernel's tables of one namespace: one socket, one dump at
/// a time.
pub struct Rows {
    socket: Socket,
}

/// Links by index.
pub struct Links(Vec<(Link, Option<LinkCounters>)>);

impl Rows {
    /// Opens the way.
    pub fn new(namespace: &Namespace) -> Result<Self> {
        Ok(Self {
            socket: Socket::open(namespace)?,
        })
    }

    /// All links, ordered by index.
    pub fn links(&self, counters: bool) -> Result<Links> {
        let mut links = self.gather(&Dump::Links { counters }, |payload| {
            let counters = counters.then(|| decode::link_counters(payload)).flatten();
            Ok(Some((decode::link(payload)?, counters)))
        })?;
        links.sort_unstable_by_key(|(link, _)| link.index);
        Ok(Links(links))
    }

    /// The addresses of a family (0: of both), by link; those of a link in
    /// the kernel's order.
    pub fn addresses(&self, family: u8) -> Result<Vec<Address>> {
        let request = Dump::Addresses { family, link: None };
        let mut addresses = self.gather(&request, |payload| {
            // A dump of all families may have more than those two.
            match payload.first() {
                Some(&(AF_INET | AF_INET6)) => decode::address(payload, 0).map(Some),
                _ => Ok(None),
            }
        })?;
        addresses.sort_by_key(|address| address.link);
        Ok(addresses)
    }

    /// Hands over the payload of each message of a dump, as it comes; ends
    /// at the first error.
    pub fn each(&self, request: &Dump, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let mut failed = None;
        let end = dump::dump_on(
            &self.socket,
            request,
            &mut |message: &Message<'_>| match each(message.payload) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        match failed {
            Some(error) => Err(error),
            None => Ok(end.interrupted),
        }
    }

    fn gather<T>(
        &self,
        request: &Dump,
        decode: impl Fn(&[u8]) -> Result<Option<T>, Malformed>,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        for _ in 0..ATTEMPTS {
            rows.clear();
            let interrupted = self.each(request, |payload| {
                rows.extend(decode(payload)?);
                Ok(())
            })?;
            if !interrupted {
                return Ok(rows);
            }
        }
        // On a host that never rests, most of the truth is better than
        // none. Nobody to tell when standard error is closed.
        let _ = writeln!(
            io::stderr(),
            "fingerpost: links or addresses changed {ATTEMPTS} times while they were listed: \
             rows may be missing or twice"
        );
        Ok(rows)
    }
}

impl Links {
    /// The link of an index. O(log n).
    pub fn get(&self, index: u32) -> Option<&Link> {
        let at = self
            .0
            .binary_search_by_key(&index, |(link, _)| link.index)
            .ok()?;
        self.0.get(at).map(|(link, _)| link)
    }

    /// The link of a name or alternative name. O(n).
    pub fn by_name(&self, name: &str) -> Option<&Link> {
        self.iter()
            .map(|(link, _)| link)
            .find(|link| *link.name == *name || link.alt_names.iter().any(|alt| **alt == *name))
    }

    /// The same; an error that says what to do if there is none.
    pub fn named(&self, name: &str) -> Result<&Link> {
        self.by_name(name).ok_or_else(|| no_link(name))
    }

    /// All, in the order of indexes.
    pub fn iter(&self) -> impl Iterator<Item = &(Link, Option<LinkCounters>)> {
        self.0.iter()
    }
}

/// What is to be said of a link that is not there.
pub fn no_link(name: &str) -> anyhow::Error {
    anyhow!("no link is named `{name}`; `fingerpost link` lists them")
}

/// What is to be said when a listing fails.
pub fn listing<T>(result: Result<T>) -> Result<T> {
    result.context("listing the kernel's neighbours")
}
