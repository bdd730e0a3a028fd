//! Subscribers, blocks and alias addresses, listed; and flows that are ended
//! by what they are. In pieces, as [`Nat::flows`].

use std::net::{IpAddr, Ipv4Addr};

use super::{Nat, address, word};
use crate::blocks::{Subscriber, SubscriberCounts};
use crate::clock::millis;
use crate::view::{BlockView, PoolView, SubscriberView};
use crate::{AddressRange, Cursor, FlowView, Why};

impl Nat {
    /// Hands some subscribers to `sink`: looks at `budget` places from `from`
    /// on, and returns where to go on, `None` at the end. O(`budget`).
    pub fn subscribers(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&SubscriberView),
    ) -> Option<Cursor> {
        let tracked = self.tracked.as_ref()?;
        let places = tracked.subscribers.places();
        for name in piece(from, budget, places) {
            if let Some(entry) = tracked.subscribers.get(name) {
                sink(&self.subscriber_view(name, entry));
            }
        }
        next(from, budget, places)
    }

    /// Hands some blocks that somebody has to `sink`, those that can be
    /// reckoned included; as [`Nat::subscribers`].
    pub fn blocks(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&BlockView),
    ) -> Option<Cursor> {
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        for block in piece(from, budget, pool.places()) {
            if let Some(view) = self.block_view(block) {
                sink(&view);
            }
        }
        next(from, budget, pool.places())
    }

    /// Hands some alias addresses to `sink`, with their blocks where there
    /// are such; as [`Nat::subscribers`].
    pub fn pools(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&PoolView),
    ) -> Option<Cursor> {
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let Some(pool) = pool else {
            for at in piece(from, budget, self.pool.len()) {
                if let Some(own) = self.pool.get(at as usize) {
                    sink(&PoolView::without_blocks(address(*own).into()));
                }
            }
            return next(from, budget, self.pool.len());
        };
        let (homes, unopened) = (pool.homes(), pool.unopened());
        let places = homes.len() + unopened.len();
        for at in piece(from, budget, places) {
            let at = at as usize;
            let view = match homes.get(at) {
                Some(home) => PoolView {
                    alias: address(home.address).into(),
                    is_open: home.is_open,
                    blocks: home.most_free,
                    free_blocks: home.free_blocks,
                },
                None => {
                    let own = at.checked_sub(homes.len()).and_then(|at| unopened.get(at));
                    let own = own.copied().unwrap_or(0);
                    PoolView::without_blocks(address(own).into())
                }
            };
            sink(&view);
        }
        next(from, budget, places)
    }

    /// The block of an alias port (host order), if somebody has it. O(1).
    pub fn block_of(&self, alias: IpAddr, port: u16) -> Option<BlockView> {
        let IpAddr::V4(alias) = alias else {
            return None;
        };
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        self.block_view(pool.at(word(alias), port)?)
    }

    fn block_view(&self, block: u32) -> Option<BlockView> {
        let tracked = self.tracked.as_ref()?;
        let pool = tracked.pool.as_ref()?;
        let place = pool.get(block)?;
        let owner = tracked.subscribers.get(place.owner.checked_sub(1)?)?;
        let now = self.clock.now();
        let is_idle = place.used == 0;
        Some(BlockView {
            subscriber: self.range_of(owner),
            alias: address(pool.address_of(block)).into(),
            ports: pool.layout().row(pool.place_of(block).1),
            is_deterministic: pool.is_fixed(block),
            used: place.used,
            held_millis: millis(now.saturating_sub(place.since)),
            idle_millis: is_idle.then(|| millis(now.saturating_sub(place.idle))),
        })
    }

    fn subscriber_view(&self, place: u32, entry: &Subscriber) -> SubscriberView {
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let home = entry.home.checked_sub(1);
        let home = home.and_then(|home| pool?.homes().get(home as usize));
        SubscriberView {
            place,
            subscriber: self.range_of(entry),
            alias: home.map(|home| address(home.address).into()),
            ports: entry.ports,
            sessions: entry.sessions,
            half_open: entry.half_open,
            blocks: entry.blocks,
            counted: self.counts_of(place),
        }
    }

    /// The subscriber of an inside address, if it is one. O(1).
    pub fn subscriber_at(&self, inside: Ipv4Addr) -> Option<SubscriberView> {
        let subscribers = &self.tracked.as_ref()?.subscribers;
        let place = subscribers.find(inside.to_bits())?;
        Some(self.subscriber_view(place, subscribers.get(place)?))
    }

    fn counts_of(&self, place: u32) -> Option<SubscriberCounts> {
        self.tracked.as_ref()?.subscribers.counts(place).copied()
    }

    fn range_of(&self, entry: &Subscriber) -> AddressRange {
        let first = Ipv4Addr::from_bits(entry.address);
        AddressRange::of_prefix(first, self.config.subscribers.bits)
    }

    /// Ends the flows that `fits` says yes to: looks at `budget` places from
    /// `from` on. Returns where to go on, and how many it ended. O(`budget`).
    pub fn end_flows(
        &mut self,
        from: Cursor,
        budget: usize,
        fits: &mut dyn FnMut(&FlowView) -> bool,
    ) -> (Option<Cursor>, usize) {
        self.catch_up_calls();
        let places = self.table.places();
        let mut ended = 0;
        for name in piece(from, budget, places) {
            let flow = self.table.get(name).filter(|flow| self.alive(flow));
            if flow.is_some_and(|flow| fits(&self.view(flow))) {
                ended += usize::from(self.end(name, Why::Removed));
            }
        }
        (next(from, budget, places), ended)
    }
}

/// Places that are looked at.
fn piece(Cursor(from): Cursor, budget: usize, places: usize) -> std::ops::Range<u32> {
    let to = (from as usize).saturating_add(budget.max(1)).min(places);
    from..to as u32
}

/// Where to go on.
fn next(Cursor(from): Cursor, budget: usize, places: usize) -> Option<Cursor> {
    let to = (from as usize).saturating_add(budget.max(1));
    (to < places).then_some(Cursor(to as u32))
}
