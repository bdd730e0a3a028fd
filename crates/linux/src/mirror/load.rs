//! Lists tables of the kernel into a model.

use std::ops::ControlFlow;
use std::path::Path;

use netlink::decode::{
    Decoded, Ipv6Statistics, Item, decode, ipv6_statistics, link_counters, neighbour_ages, route,
};
use netlink::message::{Message, kind};
use netlink::request::Dump;
use table::{AF_INET, AF_INET6, LinkCounters, NeighbourKey, NeighbourSample, TableFull};

use super::difference::Whole;
use super::model::Model;
use super::now_millis;
use crate::dump::dump_on;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::Socket;

/// `RTNL_FAMILY_IPMR`, `RTNL_FAMILY_IP6MR`, `AF_MPLS`, and the file that
/// shows that the kernel has them. (A kernel without lists everything.)
const OTHER_FAMILIES: [(u8, &str); 3] = [
    (28, "/proc/sys/net/mpls/platform_labels"),
    (128, "/proc/thread-self/net/ip_mr_vif"),
    (129, "/proc/thread-self/net/ip6_mr_vif"),
];

/// A listing that the kernel calls interrupted is done again so often.
const ATTEMPTS: usize = 3;

/// Which tables a listing is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Links,
    Addresses,
    Neighbours,
    Fdb,
}

/// What a listing was like.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The tables that were read whole.
    pub whole: Whole,
    /// Whether all that were asked for were.
    pub complete: bool,
    /// Listings that the kernel called interrupted.
    pub interrupted: u64,
}

/// What a listing tells that is no part of its rows.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub ages: Vec<(NeighbourKey, NeighbourSample)>,
    pub counters: Vec<(u32, LinkCounters)>,
    /// What IPv6 counted by link.
    pub ipv6: Vec<(u32, Ipv6Statistics)>,
}

/// Lists tables into `model`; `meanwhile` is called now and then, so that
/// events do not pile up.
pub(crate) struct Load<'a> {
    pub namespace: &'a Namespace,
    pub model: &'a mut Model,
    pub samples: Option<&'a mut Samples>,
    pub meanwhile: &'a mut dyn FnMut() -> Result<(), Error>,
    /// The first row that was refused.
    pub full: Option<TableFull>,
}

/// Messages between two looks at the events: some 20 µs of work.
pub(crate) const MESSAGES_BETWEEN_LOOKS: usize = 128;

impl Load<'_> {
    pub(crate) fn run(&mut self, which: Which) -> Result<Loaded, Error> {
        let mut loaded = Loaded {
            whole: Whole::NONE,
            complete: true,
            interrupted: 0,
        };
        let asked = |table| which == table || which == Which::All;
        if asked(Which::Links) {
            let counters = self.samples.is_some() && which == Which::Links;
            loaded.whole.links = self.list(&mut loaded, &Dump::Links { counters })?;
        }
        if asked(Which::Addresses) {
            loaded.whole.addresses = self.list(&mut loaded, &ADDRESSES)?;
        }
        if asked(Which::Neighbours) {
            loaded.whole.neighbours = self.list(&mut loaded, &neighbours(false))?
                & self.list(&mut loaded, &neighbours(true))?;
        }
        if asked(Which::Fdb) {
            loaded.whole.fdb = self.list(&mut loaded, &FDB)?;
        }
        if which == Which::All {
            self.routing(&mut loaded)?;
        }
        Ok(loaded)
    }

    fn routing(&mut self, loaded: &mut Loaded) -> Result<(), Error> {
        loaded.whole.nexthops = self.list(loaded, &Dump::Nexthops)?;
        loaded.whole.rules = self.list(loaded, &Dump::Rules { family: AF_INET })?
            & self.list(loaded, &Dump::Rules { family: AF_INET6 })?;
        loaded.whole.v4_routes = self.list(loaded, &routes(AF_INET))?;
        loaded.whole.v6_routes = self.list(loaded, &routes(AF_INET6))?;
        for (family, sign) in OTHER_FAMILIES {
            if self.namespace.run(|| Path::new(sign).exists())? {
                self.list(loaded, &routes(family))?;
            }
        }
        Ok(())
    }

    /// Lists one table; true when it was read whole.
    fn list(&mut self, loaded: &mut Loaded, request: &Dump) -> Result<bool, Error> {
        for _ in 0..ATTEMPTS {
            match self.list_once(request) {
                Ok(false) => return Ok(true),
                Ok(true) => loaded.interrupted += 1,
                Err(error) if is_unsupported(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        loaded.complete = false;
        Ok(false)
    }

    /// True when the kernel called it interrupted.
    fn list_once(&mut self, request: &Dump) -> Result<bool, Error> {
        let socket = Socket::open(self.namespace)?;
        let now = now_millis();
        let mut outcome: Result<(), Error> = Ok(());
        let mut seen = 0usize;
        let end = dump_on(&socket, request, &mut |message| {
            seen += 1;
            outcome = self.message(message, now);
            if outcome.is_ok() && seen.is_multiple_of(MESSAGES_BETWEEN_LOOKS) {
                outcome = (self.meanwhile)();
            }
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        outcome?;
        Ok(end.interrupted)
    }

    fn message(&mut self, message: &Message<'_>, now_millis: u64) -> Result<(), Error> {
        if is_route(message) {
            let row = route(message.payload, now_millis)?;
            self.put(|model| model.dumped_route(row));
            return Ok(());
        }
        let Decoded::Announcement(announcement) = decode(message, now_millis)? else {
            return Ok(());
        };
        if let Some(samples) = self.samples.as_deref_mut() {
            samples.take(&announcement.item, message.payload);
        }
        self.put(|model| model.dumped(announcement.item));
        Ok(())
    }

    fn put(&mut self, put: impl FnOnce(&mut Model) -> Result<(), TableFull>) {
        if let Err(full) = put(self.model) {
            // What was there stays; the first refusal says enough.
            self.full.get_or_insert(full);
        }
    }
}

const ADDRESSES: Dump = Dump::Addresses {
    family: 0,
    link: None,
};

const FDB: Dump = Dump::Fdb {
    link: None,
    master: None,
};

fn neighbours(proxy: bool) -> Dump {
    Dump::Neighbours {
        family: 0,
        link: None,
        master: None,
        proxy,
    }
}

/// Routes come by the million: they are decoded without the detour over
/// the row of any kind, which costs as much again.
fn is_route(message: &Message<'_>) -> bool {
    let family = message.payload.first();
    message.kind == kind::NEWROUTE && matches!(family, Some(&(AF_INET | AF_INET6)))
}

fn routes(family: u8) -> Dump {
    Dump::Routes {
        family,
        table: None,
        link: None,
        protocol: None,
        kind: None,
    }
}

/// A kernel without the feature has none of its rows.
fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Refused { source, .. }
        if source.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()))
}

impl Samples {
    fn take(&mut self, item: &Item, payload: &[u8]) {
        match item {
            Item::Neighbour(row) => {
                if let Some(ages) = neighbour_ages(payload) {
                    self.ages.push((row.key(), NeighbourSample { ages }));
                }
            }
            Item::Link(row) => {
                if let Some(counters) = link_counters(payload) {
                    self.counters.push((row.index, counters));
                }
                if let Some(statistics) = ipv6_statistics(payload) {
                    self.ipv6.push((row.index, statistics));
                }
            }
            _ => {}
        }
    }
}
