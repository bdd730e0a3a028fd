//! The writer's end, one for both families: limits, counts, the order of
//! things. How routes become records is the layout's
//! ([`crate::compiled`]).

use std::sync::Arc;

use memory::quiescent::Domain;

use crate::address::Address;
use crate::compiled::{Compiled, Noted};
use crate::order::ordered;
use crate::route::{Change, Config, Error, Route, Stats, check};
use crate::store::{Shared, Store};

/// Changes that are made before their records are made anew, once each.
const SLICE: usize = 4_096;
/// Changes ahead for which memory is asked.
const AHEAD: usize = 8;

/// The one that changes a table.
#[derive(Debug)]
pub struct Writer<A: Address> {
    store: Store,
    compiled: A::Compiled,
    config: Config,
    routes: usize,
}

impl<A: Address> Writer<A> {
    pub(crate) fn new(config: Config, domain: &Arc<Domain>) -> Result<Self, Error> {
        let bytes = config.max_bytes;
        let (slots, reserved) = (A::Compiled::SLOTS, A::Compiled::RESERVED_UNITS);
        let store = Store::new(slots, bytes, reserved, domain);
        Ok(Self {
            store: store.map_err(|source| Error::Memory { bytes, source })?,
            compiled: A::Compiled::new(),
            config,
            routes: 0,
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.store.shared()
    }

    /// Makes changes, in order. Readers see each address's old answer or
    /// its new one, all new ones when the call returns; nobody waits.
    ///
    /// IPv4: up to 1 µs for a route longer than /18 in a slice of many, 2
    /// alone; a route of length *n* up to /18 costs as much for each of the
    /// 2^(18 − *n*) slots beneath it that has routes of its own and whose
    /// answer it changes. A slot with thousands of host routes is made anew
    /// whole: some 5 ns for each of them.
    ///
    /// IPv6: some 1 µs for a route longer than /32, and 10 ns for each other
    /// such route of its /32; a shorter one costs as much for each /32
    /// beneath it with routes of its own. The first route of a /16 that is
    /// longer than that takes 300 KiB of the writer's memory and 256 KiB of
    /// the table's.
    pub fn apply(&mut self, changes: &[Change<A>]) -> Result<(), Error> {
        for (at, change) in changes.iter().enumerate() {
            check(at, change)?;
        }
        // Without a change, what waits for space is tried again.
        let mut flushed = match changes.is_empty() {
            true => self.flush(),
            false => Ok(()),
        };
        for (number, slice) in changes.chunks(SLICE).enumerate() {
            let noted = self.note_all(slice);
            // What finds no space waits for the next flush.
            flushed = self.flush();
            if let Err(at) = noted {
                return Err(self.full(number * SLICE + at));
            }
        }
        flushed
    }

    /// Has the table hold these routes and no others; of several for one
    /// prefix the last counts. Records whose routes are the same stay as
    /// they are, the others change one after the other while readers go on.
    ///
    /// IPv4: some 60 ns a route, and half of that when they come in order.
    pub fn build(&mut self, routes: impl Iterator<Item = Route<A>>) -> Result<(), Error> {
        let mut given: Vec<Route<A>> = Vec::with_capacity(routes.size_hint().0);
        for (at, route) in routes.enumerate() {
            check(at, &route.into())?;
            given.push(route);
        }
        let sorted = ordered(given);
        if sorted.len() > self.config.max_routes {
            return Err(self.full(self.config.max_routes));
        }
        self.compiled.replace(&mut self.store, &sorted);
        self.routes = sorted.len();
        self.flush()
    }

    /// Takes back the space that readers have passed, without a change. The
    /// next change does so as well.
    pub fn reclaim(&mut self) {
        self.store.begin_grace();
        self.store.reclaim();
    }

    /// What it holds. O(1).
    pub fn stats(&self) -> Stats {
        let (lookup_bytes, spread_bytes, retired_bytes) = self.store.bytes();
        Stats {
            routes: self.routes,
            lookup_bytes,
            spread_bytes,
            retired_bytes,
        }
    }

    /// Notes changes; which one was too many.
    fn note_all(&mut self, changes: &[Change<A>]) -> Result<(), usize> {
        for (at, change) in changes.iter().enumerate() {
            if let Some(ahead) = changes.get(at + AHEAD) {
                self.compiled.ask_first(ahead);
            }
            if let Some(ahead) = changes.get(at + AHEAD / 2) {
                self.compiled.ask_second(ahead);
            }
            let may_grow = self.routes < self.config.max_routes;
            let noted = self.compiled.note(&mut self.store, change, may_grow);
            if noted == Noted::Refused {
                return Err(at);
            }
            self.routes = noted.count(self.routes);
        }
        Ok(())
    }

    /// Makes anew what was noted.
    fn flush(&mut self) -> Result<(), Error> {
        let waiting = self.compiled.flush(&mut self.store);
        self.store.tell_whether_larger(A::Compiled::LARGE);
        match waiting {
            0 => Ok(()),
            waiting => Err(Error::NoSpace {
                waiting,
                max_bytes: self.config.max_bytes,
            }),
        }
    }

    fn full(&self, at: usize) -> Error {
        Error::Full {
            at,
            max_routes: self.config.max_routes,
        }
    }
}
