//! Which block a new flow's port comes from.

use arrayvec::ArrayVec;

use super::Nat;
use super::counts::mapped_of;
use super::create::Wish;
use super::port::{Chosen, Contest, Free};
use super::tracked::MOST_BLOCKS;
use crate::Verdict;
use crate::blocks::{BlockEventKind, QuotaKind, step_over};
use crate::clock::ticks;
use crate::flow::Ends;
use crate::ports::MOST_TRIES;

/// Ports looked at for one whose flow gives it up.
const LOOKS: usize = 64;

/// Why there is no further block.
enum Lack {
    Quota,
    Pool,
}

impl Nat {
    /// The alias address (memory order) of a subscriber that is to have
    /// ports: an open one, with a block free if it has none.
    pub(super) fn address_for(&mut self, name: u32) -> Result<u32, Verdict> {
        let address = self.settled(name);
        if address.is_none() {
            self.tell_now_and_then(name, BlockEventKind::Exhausted);
            self.statistics.addresses_exhausted += 1;
            let tracked = self.tracked.as_mut();
            if let Some(counts) = tracked.and_then(|of| of.subscribers.counts_mut(name)) {
                counts.addresses_exhausted += 1;
            }
        }
        address.ok_or(Verdict::PortsExhausted)
    }

    /// The same; nothing is told of it where there is none.
    pub(super) fn settled(&mut self, name: u32) -> Option<u32> {
        let now = self.clock.now();
        // The same one again, wherever that has room.
        let usual = self.entry(name).map(|entry| entry.address.to_be());
        let usual = usual.and_then(|address| self.usual_for(address));
        let tracked = self.tracked.as_mut()?;
        let pool = tracked.pool.as_mut()?;
        let entry = tracked.subscribers.get_mut(name)?;
        if let Some(home) = entry.home.checked_sub(1) {
            let home = pool.homes().get(home as usize)?;
            if home.is_open && (entry.block != 0 || home.free_blocks > 0) {
                return Some(home.address);
            }
        }
        let home = match &pool.reckoning {
            None => {
                let usual = pool.home_of(usual?, &mut self.random);
                let has_room = usual.filter(|home| pool.has_room(*home));
                has_room.or_else(|| pool.any_home(&mut self.random))?
            }
            // The address that its ports are of has left the pool.
            Some(_) if entry.block != 0 => return None,
            Some(reckoning) => {
                let (slot, alias) = reckoning.place(entry.address)?;
                let home = pool.home_of(super::word(alias), &mut self.random)?;
                let block = home * pool.layout().blocks() + slot;
                pool.own(block, name, now);
                // Behind all others, which there are none of yet.
                entry.block = block + 1;
                home
            }
        };
        let is_other = std::mem::replace(&mut entry.home, home + 1) != home + 1;
        if let Some(counts) = tracked.subscribers.counts_mut(name).filter(|_| is_other) {
            counts.addresses_made += 1;
        }
        Some(pool.homes().get(home as usize)?.address)
    }

    /// Alias addresses (memory order) that a subscriber may have a port of,
    /// where any will do: those of its blocks, and one more.
    pub(super) fn addresses_for(&mut self, name: u32, most: usize) -> ArrayVec<u32, 8> {
        let mut found = ArrayVec::new();
        let Some((tracked, random)) = self.tracked.as_mut().map(|of| (of, &mut self.random)) else {
            return found;
        };
        let (Some(pool), Some(entry)) = (&mut tracked.pool, tracked.subscribers.get(name)) else {
            return found;
        };
        let mut note = |address| {
            if found.len() + 1 < most.min(found.capacity()) && !found.contains(&address) {
                found.push(address);
            }
        };
        let mut at = entry.block;
        while let Some(block) = at.checked_sub(1) {
            if pool.is_open(block) {
                note(pool.address_of(block));
            }
            at = pool.get(block).map_or(0, |block| block.next);
        }
        if pool.reckoning.is_none()
            && let Some(home) = pool.any_home(random)
            && let Some(home) = pool.homes().get(home as usize)
            && !found.contains(&home.address)
        {
            found.push(home.address);
        }
        found
    }

    /// Whose blocks the port of a flow must come from; `None`: of no block.
    pub(super) fn holder_of(&self, ends: &Ends, name: Option<u32>) -> Result<Option<u32>, Verdict> {
        let Some(tracked) = self.tracked.as_ref().filter(|of| of.pool.is_some()) else {
            return Ok(None);
        };
        if !self.is_own(ends.alias) {
            return Ok(None);
        }
        let name = name.or_else(|| tracked.subscribers.find(u32::from_be(ends.inside)));
        // Somebody who is no subscriber has no port of ours.
        name.map(Some).ok_or(Verdict::Denied)
    }

    /// A free port of a subscriber's blocks, of another one if need be.
    pub(super) fn pick_in_blocks(
        &mut self,
        contest: &Contest,
        name: u32,
        wish: Wish,
    ) -> Result<Chosen, Verdict> {
        let alias = contest.ends().alias;
        let blocks = self.blocks_at(name, alias);
        if wish == Wish::Same
            && let Some(block) = self.block_at(alias, contest.ends().inside_port)
            && blocks.contains(&block)
            && let Some(free) = self.is_rested(contest, contest.ends().inside_port)
        {
            return Ok(contest.chosen(free, block + 1));
        }
        let mut tries = MOST_TRIES;
        if self.is_over(blocks.first().copied())
            && let Ok(block) = self.take_block(name, alias)
            && let Some(free) = self.pick_of(contest, block, &mut tries)
        {
            return Ok(contest.chosen(free, block + 1));
        }
        for block in &blocks {
            if let Some(free) = self.pick_of(contest, *block, &mut tries) {
                return Ok(contest.chosen(free, block + 1));
            }
        }
        let lack = match self.take_block(name, alias) {
            Ok(block) => {
                let mut tries = MOST_TRIES;
                let free = self.pick_of(contest, block, &mut tries);
                return free
                    .map(|free| contest.chosen(free, block + 1))
                    .ok_or(Verdict::PortsExhausted);
            }
            Err(lack) => lack,
        };
        if let Some(free) = self.give_in_blocks(contest, &blocks)
            && let Some(block) = self.block_at(alias, free.0)
        {
            return Ok(contest.chosen(free, block + 1));
        }
        match lack {
            Lack::Quota => Err(self.over_quota(Some(name), QuotaKind::Blocks)),
            Lack::Pool => {
                self.tell_now_and_then(name, BlockEventKind::Exhausted);
                Err(Verdict::PortsExhausted)
            }
        }
    }

    /// A subscriber's blocks at an alias address, the newest first.
    fn blocks_at(&self, name: u32, alias: u32) -> ArrayVec<u32, MOST_BLOCKS> {
        let mut blocks = ArrayVec::new();
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let (Some(pool), Some(entry)) = (pool, self.entry(name)) else {
            return blocks;
        };
        let mut at = entry.block;
        while let Some(block) = at.checked_sub(1)
            && !blocks.is_full()
        {
            if pool.address_of(block) == alias {
                blocks.push(block);
            }
            at = pool.get(block).map_or(0, |block| block.next);
        }
        blocks
    }

    /// One of a subscriber's blocks at an alias address; a further one if it
    /// has none, or `more`.
    pub(super) fn any_block(&mut self, name: u32, alias: u32, more: bool) -> Option<u32> {
        let blocks = self.blocks_at(name, alias);
        if blocks.is_empty() || more {
            // Those that this makes are used up before another one is taken.
            let fresh = blocks.first().copied().filter(|block| {
                let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
                let block = pool.and_then(|pool| pool.get(*block));
                block.is_some_and(|block| block.used == 0)
            });
            if let Some(block) = fresh.or_else(|| self.take_block(name, alias).ok()) {
                return Some(block);
            }
        }
        let at = self.random.below(blocks.len().max(1) as u32);
        blocks.get(at as usize).copied()
    }

    /// The block of an alias port, both in memory order.
    pub(super) fn block_at(&self, alias: u32, port: u16) -> Option<u32> {
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        pool.at(alias, u16::from_be(port))
    }

    /// Whether the newest block has been that for long enough.
    fn is_over(&self, block: Option<u32>) -> bool {
        let active = self
            .config
            .blocks
            .as_ref()
            .map_or(0, |blocks| blocks.active_secs);
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let since = block.and_then(|block| Some(pool?.get(block)?.since));
        let ticks = ticks(active);
        active > 0 && since.is_some_and(|since| self.clock.now().saturating_sub(since) >= ticks)
    }

    /// One more block for a subscriber at an alias address.
    fn take_block(&mut self, name: u32, alias: u32) -> Result<u32, Lack> {
        let now = self.clock.now();
        let random = &mut self.random;
        let (Some(tracked), Some(blocks)) = (&mut self.tracked, &self.config.blocks) else {
            return Err(Lack::Pool);
        };
        let (Some(pool), Some(entry)) = (&mut tracked.pool, tracked.subscribers.get_mut(name))
        else {
            return Err(Lack::Pool);
        };
        let has_none = pool.layout().blocks() == pool.layout().fixed();
        if entry.blocks >= blocks.most || has_none {
            return Err(Lack::Quota);
        }
        let home = pool.home_of(alias, random).ok_or(Lack::Pool)?;
        let block = pool.take(home, name, now).ok_or(Lack::Pool)?;
        let next = std::mem::replace(&mut entry.block, block + 1);
        entry.blocks += 1;
        if let Some(place) = pool.get_mut(block) {
            place.next = next;
        }
        if blocks.interim_secs > 0 {
            pool.tell_again(block);
        }
        self.tell_of(name, BlockEventKind::Taken, Some(block));
        Ok(block)
    }

    /// A free port of a block: the first from a random one on that nobody
    /// has given back a moment ago, else any.
    fn pick_of(&mut self, contest: &Contest, block: u32, tries: &mut u32) -> Option<Free> {
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        let size = pool.size_of(block);
        if contest.is_for_any_remote()
            && let Some(mapped) = mapped_of(contest.ends().protocol)
            && pool.get(block)?.mapped.get(mapped).copied().unwrap_or(0) >= size as u16
        {
            return None;
        }
        // In steps that meet each port once: where they were taken in a row,
        // the free ones lie behind long runs of others.
        let mut place = self.random.below(size);
        let step = step_over(size, 1 + self.random.below(size));
        let mut held = None;
        for _ in 0..size.min(*tries) {
            *tries -= 1;
            place = (place + step) % size;
            let pool = self.tracked.as_ref()?.pool.as_ref()?;
            let port = pool.port(block, place).to_be();
            if let Some(free) = self.is_free(contest, port) {
                if !self.is_held(contest, port) {
                    return Some(free);
                }
                held = held.or(Some(free));
            }
        }
        held
    }

    /// The port of one of its blocks that another flow gives up.
    fn give_in_blocks(&mut self, contest: &Contest, blocks: &[u32]) -> Option<Free> {
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        let sizes = blocks.iter().map(|block| pool.size_of(*block));
        let all: u32 = sizes.clone().sum();
        let start = self.random.below(all);
        let mut ports: ArrayVec<u16, LOOKS> = ArrayVec::new();
        for step in 0..all.min(LOOKS as u32) {
            let mut place = (start + step) % all;
            for (block, size) in blocks.iter().zip(sizes.clone()) {
                if place < size {
                    ports.push(pool.port(*block, place).to_be());
                    break;
                }
                place -= size;
            }
        }
        self.give_one_of(contest, &ports)
    }
}
