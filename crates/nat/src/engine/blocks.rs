//! Subscribers in the engine: what a new flow may have, which block its port
//! comes from, and what is counted when it ends.
//!
//! What counts is marked where it is kept, so that it is given back by the
//! same mark whatever changed meanwhile: a flow by [`flag::COUNTED`] and, for
//! its own port, by its `permit`; a shared mapping by its `mark`.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use packet::protocol;

use super::create::Wish;
use super::port::{Chosen, Contest, Free};
use super::{Nat, address};
use crate::blocks::{
    BlockEvent, BlockEventKind, BlockEvents, Blocks, Class, Pool, QuotaKind, Reckoning, Subscriber,
    Subscribers, step_over,
};
use crate::clock::ticks;
use crate::flow::{Ends, Flow, flag};
use crate::mapping::{Mapping, mark};
use crate::ports::MOST_TRIES;
use crate::ranges::Ranges;
use crate::{AddressRange, BlocksError, Config, State, Verdict};

/// The mark of a port that counts, and is of no block.
pub(super) const NO_BLOCK: u32 = u32::MAX;
/// Blocks looked at with each new flow: given back, told again.
const TENDED: usize = 4;
/// Ports looked at for one whose flow gives it up.
const LOOKS: usize = 64;
/// Its own blocks, and one that can be reckoned.
const MOST_BLOCKS: usize = Blocks::MOST as usize + 1;

/// Why there is no further block.
enum Lack {
    Quota,
    Pool,
}

/// What is kept of subscribers, where there are any.
#[derive(Debug)]
pub(super) struct Tracked {
    pub subscribers: Subscribers,
    /// Where blocks are on.
    pub pool: Option<Pool>,
    pub events: BlockEvents,
}

impl Tracked {
    /// By the settings; `None`: nobody counts.
    pub fn new(config: &Config, seed: u64) -> Result<Option<Box<Self>>, BlocksError> {
        let of = &config.subscribers;
        of.check()?;
        let is_wanted = config.blocks.is_some() || of.quotas.are_any() || !of.inside.is_empty();
        if !is_wanted {
            return Ok(None);
        }
        let refused = |bytes| {
            move |error: std::io::Error| BlocksError::Memory {
                bytes,
                error: error.to_string(),
            }
        };
        let subscribers =
            Subscribers::new(of.most, of.bits, seed).map_err(refused(of.most * 64))?;
        let mut pool = None;
        if let Some(blocks) = &config.blocks {
            let reckoning = Reckoning::new(config)?;
            let layout = match &reckoning {
                Some(reckoning) => reckoning.layout().clone(),
                None => crate::blocks::Layout::new(&config.ports, blocks, 0)?,
            };
            let bytes = Config::MAX_ADDRESSES * layout.blocks() as usize * 44;
            pool = Some(Pool::new(layout, reckoning).map_err(refused(bytes))?);
        }
        Ok(Some(Box::new(Self {
            subscribers,
            pool,
            events: BlockEvents::new(config.limits.block_events),
        })))
    }

    pub fn memory_bytes(&self) -> usize {
        let pool = self.pool.as_ref().map_or(0, Pool::memory_bytes);
        self.subscribers.memory_bytes() + pool
    }

    /// The alias address (memory order) of an inside one, if it has one.
    pub fn address_of(&self, inside: u32) -> Option<u32> {
        let pool = self.pool.as_ref()?;
        let name = self.subscribers.find(u32::from_be(inside))?;
        let home = self.subscribers.get(name)?.home.checked_sub(1)?;
        let home = pool.homes().get(home as usize)?;
        home.is_open.then_some(home.address)
    }

    /// Enters a subscriber by an inside address in host order.
    fn enter(&mut self, inside: u32) -> Option<u32> {
        let pool = &mut self.pool;
        // What is left of one that goes can be reckoned.
        self.subscribers.enter(inside, &mut |entry| {
            if let (Some(pool), Some(block)) = (pool.as_mut(), entry.block.checked_sub(1)) {
                pool.free(block);
            }
        })
    }

    /// Takes a block out of its owner's list.
    fn leave(&mut self, name: u32, block: u32) {
        let Some(pool) = &mut self.pool else {
            return;
        };
        let next = pool.get(block).map_or(0, |block| block.next);
        let Some(entry) = self.subscribers.get_mut(name) else {
            return;
        };
        entry.blocks = entry.blocks.saturating_sub(1);
        if entry.block == block + 1 {
            entry.block = next;
            return;
        }
        let mut at = entry.block;
        for _ in 0..MOST_BLOCKS {
            let Some(place) = at.checked_sub(1).and_then(|at| pool.get_mut(at)) else {
                return;
            };
            if place.next == block + 1 {
                place.next = next;
                return;
            }
            at = place.next;
        }
    }
}

impl Config {
    /// Whether its subscribers and blocks can be. O(addresses).
    pub fn check_blocks(&self) -> Result<(), BlocksError> {
        self.subscribers.check()?;
        if let Some(blocks) = &self.blocks
            && Reckoning::new(self)?.is_none()
        {
            crate::blocks::Layout::new(&self.ports, blocks, 0)?;
        }
        Ok(())
    }
}

impl Nat {
    /// Takes over what settings say of subscribers, blocks and exempt
    /// destinations, as far as that can change: quotas, who is a subscriber,
    /// how many blocks one may have and how long they rest. Flows stay.
    /// Returns whether it was all; else the rest is for another engine.
    pub fn set_subscribers(&mut self, config: &Config) -> bool {
        self.exempt = Ranges::new(&config.exempt);
        self.config.exempt.clone_from(&config.exempt);
        let (former, next) = (&self.config.subscribers, &config.subscribers);
        let is_tracked = self.tracked.is_some();
        let mut is_whole = (former.bits, former.most) == (next.bits, next.most);
        is_whole &= is_tracked || !next.quotas.are_any() && next.inside.is_empty();
        match (&self.config.blocks, &config.blocks) {
            (None, None) => {}
            (Some(former), Some(next)) => is_whole &= is_alike(former, next),
            _ => is_whole = false,
        }
        if is_tracked {
            self.config.subscribers.quotas = next.quotas;
        }
        let is_reckoned = |of: &Option<Blocks>| {
            of.as_ref()
                .is_some_and(|blocks| blocks.deterministic.is_some())
        };
        if is_reckoned(&self.config.blocks) {
            is_whole &= self.config.subscribers.inside == next.inside;
        } else if is_tracked {
            self.config.subscribers.inside.clone_from(&next.inside);
            self.inside = Ranges::new(&next.inside);
        }
        if let (Some(blocks), Some(next)) = (&mut self.config.blocks, &config.blocks) {
            blocks.most = next.most;
            blocks.active_secs = next.active_secs;
            blocks.hold_down_secs = next.hold_down_secs;
            blocks.interim_secs = next.interim_secs;
        }
        is_whole
    }

    /// The subscriber that a new flow of a source (memory order) counts for;
    /// `None`: there is no such thing, or it is none.
    pub(super) fn new_subscriber(&mut self, source: u32) -> Result<Option<u32>, Verdict> {
        if self.tracked.is_none() {
            return Ok(None);
        }
        self.tend_blocks(TENDED);
        let inside = u32::from_be(source);
        let Some(tracked) = &mut self.tracked else {
            return Ok(None);
        };
        if !self.inside.is_empty() && !self.inside.has(inside) {
            return Ok(None);
        }
        let name = tracked.enter(inside);
        name.map(Some).ok_or(Verdict::TableFull)
    }

    /// Whether a subscriber may have one more session.
    pub(super) fn admit_session(&mut self, name: Option<u32>, of: u8) -> Result<(), Verdict> {
        let entry = name.and_then(|name| self.entry(name));
        let quotas = &self.config.subscribers.quotas;
        let fits = entry.map_or(Ok(()), |entry| entry.fits_session(Class::of(of), quotas));
        fits.map_err(|kind| self.over_quota(name, kind))
    }

    /// Whether a subscriber may have one more mapping.
    pub(super) fn admit_port(&mut self, name: Option<u32>, of: u8) -> Result<(), Verdict> {
        let entry = name.and_then(|name| self.entry(name));
        let (quotas, millis) = (&self.config.subscribers.quotas, self.clock.run_millis());
        let fits = entry.map_or(Ok(()), |entry| {
            entry.fits_port(Class::of(of), quotas, millis)
        });
        fits.map_err(|kind| self.over_quota(name, kind))
    }

    fn entry(&self, name: u32) -> Option<&Subscriber> {
        self.tracked.as_ref()?.subscribers.get(name)
    }

    fn over_quota(&mut self, name: Option<u32>, kind: QuotaKind) -> Verdict {
        if let Some(name) = name {
            self.tell_now_and_then(name, BlockEventKind::Quota(kind));
        }
        Verdict::OverQuota
    }

    /// The alias address (memory order) of a subscriber that is to have
    /// ports: an open one, with a block free if it has none.
    pub(super) fn address_for(&mut self, name: u32) -> Result<u32, Verdict> {
        let address = self.settled(name);
        if address.is_none() {
            self.tell_now_and_then(name, BlockEventKind::Exhausted);
        }
        address.ok_or(Verdict::PortsExhausted)
    }

    fn settled(&mut self, name: u32) -> Option<u32> {
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
        entry.home = home + 1;
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

    /// The block of an alias port, both in memory order.
    fn block_at(&self, alias: u32, port: u16) -> Option<u32> {
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

    /// A port counts from now on, of a subscriber that is known by its inside
    /// address (memory order). `shared`: a shared mapping has it.
    pub(super) fn count_port(&mut self, ends: &Ends, mark: u32, shared: bool) {
        let millis = self.clock.run_millis();
        let rate = self.config.subscribers.quotas.new_mappings;
        let Some(tracked) = self.tracked.as_mut().filter(|_| mark != 0) else {
            return;
        };
        let class = Class::of(ends.protocol);
        let name = tracked.subscribers.find(u32::from_be(ends.inside));
        if let Some(entry) = name.and_then(|name| tracked.subscribers.get_mut(name)) {
            if let Some(count) = entry.ports.get_mut(class as usize) {
                *count += 1;
            }
            entry.pace(class, &rate, millis);
        }
        if let Some((block, pool)) = block_of(mark).zip(tracked.pool.as_mut()) {
            pool.hold(block, mapped_of(ends.protocol).filter(|_| shared));
        }
    }

    /// A port that counted is given back.
    pub(super) fn give_port(&mut self, ends: &Ends, mark: u32, shared: bool) {
        let now = self.clock.now();
        let Some(tracked) = self.tracked.as_mut().filter(|_| mark != 0) else {
            return;
        };
        let class = Class::of(ends.protocol);
        let name = tracked.subscribers.find(u32::from_be(ends.inside));
        if let Some(entry) = name.and_then(|name| tracked.subscribers.get_mut(name))
            && let Some(count) = entry.ports.get_mut(class as usize)
        {
            *count = count.saturating_sub(1);
        }
        if let Some((block, pool)) = block_of(mark).zip(tracked.pool.as_mut()) {
            pool.release(block, mapped_of(ends.protocol).filter(|_| shared), now);
        }
    }

    /// The mark of a shared mapping's port, as it was counted.
    pub(super) fn mark_of(&self, mapping: &Mapping) -> u32 {
        if !mapping.has(mark::COUNTED) {
            return 0;
        }
        let block = match mapping.has(mark::IN_BLOCK) {
            true => self.block_at(mapping.alias, mapping.alias_port),
            false => None,
        };
        block.map_or(NO_BLOCK, |block| block + 1)
    }

    /// What of it a mapping keeps.
    pub(super) fn marks_of(port: u32) -> u8 {
        match port {
            0 => 0,
            NO_BLOCK => mark::COUNTED,
            _ => mark::COUNTED | mark::IN_BLOCK,
        }
    }

    /// The mark for the alias port of a flow that a redirect or the target
    /// made: it is in use where it lies in a block of the very subscriber.
    pub(super) fn mark_of_redirected(&self, ends: &Ends) -> u32 {
        let Some(tracked) = &self.tracked else {
            return 0;
        };
        let block = self.block_at(ends.alias, ends.alias_port);
        let owner = block.and_then(|block| tracked.pool.as_ref()?.get(block)?.owner.checked_sub(1));
        let name = owner.and_then(|_| tracked.subscribers.find(u32::from_be(ends.inside)));
        match (block, owner == name && owner.is_some()) {
            (Some(block), true) => block + 1,
            _ => 0,
        }
    }

    /// A flow counts as a session from now on, if its inside is a
    /// subscriber.
    pub(super) fn count_session(&mut self, flow: &mut Flow) {
        let Some(tracked) = &mut self.tracked else {
            return;
        };
        let inside = u32::from_be(flow.inside());
        if !self.inside.is_empty() && !self.inside.has(inside) {
            return;
        }
        let Some(name) = tracked.enter(inside) else {
            return;
        };
        if let Some(entry) = tracked.subscribers.get_mut(name) {
            let class = Class::of(flow.protocol) as usize;
            if let Some(count) = entry.sessions.get_mut(class) {
                *count += 1;
            }
            if is_half_open(flow.class)
                && let Some(count) = entry.half_open.get_mut(class)
            {
                *count += 1;
            }
            flow.flags |= flag::COUNTED;
        }
    }

    /// A flow that ended is no session any more.
    pub(super) fn end_session(&mut self, flow: &Flow) {
        if !flow.has(flag::COUNTED) {
            return;
        }
        let Some(entry) = self.entry_of(flow.inside()) else {
            return;
        };
        let class = Class::of(flow.protocol) as usize;
        if let Some(count) = entry.sessions.get_mut(class) {
            *count = count.saturating_sub(1);
        }
        if is_half_open(flow.class)
            && let Some(count) = entry.half_open.get_mut(class)
        {
            *count = count.saturating_sub(1);
        }
    }

    fn entry_of(&mut self, inside: u32) -> Option<&mut Subscriber> {
        let tracked = self.tracked.as_mut()?;
        let name = tracked.subscribers.find(u32::from_be(inside))?;
        tracked.subscribers.get_mut(name)
    }

    /// A flow's class was another one before this packet.
    #[inline(always)]
    pub(super) fn note_class(&mut self, name: u32, before: u8) {
        if self.tracked.is_some() {
            self.count_half_open(name, before);
        }
    }

    #[inline(never)]
    fn count_half_open(&mut self, name: u32, before: u8) {
        let Some(flow) = self.table.get(name).copied() else {
            return;
        };
        let (was, is) = (is_half_open(before), is_half_open(flow.class));
        if was == is || !flow.has(flag::COUNTED) {
            return;
        }
        let class = Class::of(flow.protocol) as usize;
        let entry = self.entry_of(flow.inside());
        if let Some(count) = entry.and_then(|entry| entry.half_open.get_mut(class)) {
            *count = if is {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        }
    }

    /// Gives back the blocks that have rested, and tells again of those that
    /// are held: a few at a time.
    pub(super) fn tend_blocks(&mut self, looks: usize) {
        let Some(blocks) = &self.config.blocks else {
            return;
        };
        let (rests, interim) = (ticks(blocks.hold_down_secs), ticks(blocks.interim_secs));
        let now = self.clock.now();
        for _ in 0..looks {
            let Some(tracked) = &mut self.tracked else {
                return;
            };
            let rested = tracked
                .pool
                .as_mut()
                .and_then(|pool| pool.next_rested(now, rests));
            let Some(block) = rested else {
                break;
            };
            self.give_block_back(block);
        }
        for _ in 0..looks {
            let pool = self.tracked.as_mut().and_then(|of| of.pool.as_mut());
            let due = pool.and_then(|pool| pool.next_to_tell(now, interim));
            let Some(block) = due.filter(|_| interim > 0) else {
                return;
            };
            let owner = self.owner_of(block);
            if let Some(name) = owner {
                self.tell_of(name, BlockEventKind::Held, Some(block));
            }
        }
    }

    fn owner_of(&self, block: u32) -> Option<u32> {
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        pool.get(block)?.owner.checked_sub(1)
    }

    fn give_block_back(&mut self, block: u32) {
        let Some(name) = self.owner_of(block) else {
            return;
        };
        self.tell_of(name, BlockEventKind::GivenBack, Some(block));
        if let Some(tracked) = &mut self.tracked {
            tracked.leave(name, block);
            if let Some(pool) = &mut tracked.pool {
                pool.free(block);
            }
        }
    }

    fn tell_now_and_then(&mut self, name: u32, kind: BlockEventKind) {
        let millis = self.clock.run_millis();
        let entry = self
            .tracked
            .as_mut()
            .and_then(|of| of.subscribers.get_mut(name));
        if entry.is_some_and(|entry| entry.tell(millis)) {
            self.tell_of(name, kind, None);
        }
    }

    fn tell_of(&mut self, name: u32, kind: BlockEventKind, block: Option<u32>) {
        let at_millis = self.clock.said_millis();
        let bits = self.config.subscribers.bits;
        let Some(tracked) = &mut self.tracked else {
            return;
        };
        let Some(entry) = tracked.subscribers.get(name) else {
            return;
        };
        let pool = tracked.pool.as_ref();
        let home = block.map(|block| pool.map_or(0, |pool| pool.address_of(block)));
        let home = home.or_else(|| {
            let home = entry.home.checked_sub(1)?;
            Some(pool?.homes().get(home as usize)?.address)
        });
        let ports = block.and_then(|block| {
            let pool = pool?;
            pool.layout().row(pool.place_of(block).1)
        });
        tracked.events.push(BlockEvent {
            kind,
            at_millis,
            subscriber: AddressRange::of_prefix(Ipv4Addr::from_bits(entry.address), bits),
            alias: home.map_or(Ipv4Addr::UNSPECIFIED, address),
            ports: ports.unwrap_or((0, 0)),
        });
    }
}

/// Whether blocks have the same ports.
fn is_alike(former: &Blocks, next: &Blocks) -> bool {
    former.size == next.size
        && former.reserved == next.reserved
        && former.deterministic == next.deterministic
}

/// Whether a flow in a state waits for its first answer.
fn is_half_open(class: u8) -> bool {
    matches!(State::of(class), State::TcpOpening | State::UdpUnreplied)
}

fn block_of(mark: u32) -> Option<u32> {
    mark.checked_sub(1).filter(|_| mark != NO_BLOCK)
}

/// Which count of shared mappings a protocol has.
fn mapped_of(of: u8) -> Option<usize> {
    match of {
        protocol::TCP => Some(0),
        protocol::UDP => Some(1),
        _ => None,
    }
}
