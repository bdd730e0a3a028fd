//! What is kept of subscribers and their blocks, and how it changes with the
//! settings and with time.

use std::net::Ipv4Addr;

use super::{Nat, address};
use crate::blocks::{
    BlockEvent, BlockEventKind, BlockEvents, Blocks, Class, Layout, Pool, QuotaKind, Reckoning,
    Subscriber, Subscribers,
};
use crate::clock::ticks;
use crate::ranges::Ranges;
use crate::{AddressRange, BlocksError, Config, Verdict};

/// Blocks looked at with each new flow: given back, told again.
const TENDED: usize = 4;
/// Its own blocks, and one that can be reckoned.
pub(super) const MOST_BLOCKS: usize = Blocks::MOST as usize + 1;

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
        let is_wanted =
            config.blocks.is_some() || of.quotas.are_any() || !of.inside.is_empty() || of.counted;
        if !is_wanted {
            return Ok(None);
        }
        let refused = |bytes| {
            move |error: std::io::Error| BlocksError::Memory {
                bytes,
                error: error.to_string(),
            }
        };
        let subscribers = Subscribers::new(of, seed).map_err(refused(of.most * 64))?;
        let mut pool = None;
        if let Some(blocks) = &config.blocks {
            let reckoning = Reckoning::new(config)?;
            let layout = match &reckoning {
                Some(reckoning) => reckoning.layout().clone(),
                None => Layout::new(&config.ports, blocks, 0)?,
            };
            let bytes = Config::MAX_ADDRESSES * layout.blocks() as usize * Pool::BLOCK_BYTES;
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
    pub fn enter(&mut self, inside: u32, now_millis: u64) -> Option<u32> {
        let pool = &mut self.pool;
        // What is left of one that goes can be reckoned.
        self.subscribers.enter(inside, now_millis, &mut |entry| {
            let (Some(pool), Some(block)) = (pool.as_mut(), entry.block.checked_sub(1)) else {
                return true;
            };
            // Flows of a redirect may have a port of it, and do not count.
            let is_unused = pool.get(block).is_none_or(|block| block.used == 0);
            if is_unused {
                pool.free(block);
            }
            is_unused
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
            Layout::new(&self.ports, blocks, 0)?;
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
        let fixed = |of: &crate::SubscriberConfig| (of.bits, of.most, of.counted);
        let mut is_whole = fixed(former) == fixed(next);
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
        let (inside, millis) = (u32::from_be(source), self.clock.lived_millis());
        let Some(tracked) = &mut self.tracked else {
            return Ok(None);
        };
        if !self.inside.is_empty() && !self.inside.has(inside) {
            return Ok(None);
        }
        let name = tracked.enter(inside, millis);
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
            let awaited = self.rules.awaited(entry.address);
            entry.fits_port(Class::of(of), quotas, awaited, millis)
        });
        fits.map_err(|kind| self.over_quota(name, kind))
    }

    pub(super) fn entry(&self, name: u32) -> Option<&Subscriber> {
        self.tracked.as_ref()?.subscribers.get(name)
    }

    pub(super) fn over_quota(&mut self, name: Option<u32>, kind: QuotaKind) -> Verdict {
        if let Some(name) = name {
            self.tell_now_and_then(name, BlockEventKind::Quota(kind));
        }
        Verdict::OverQuota
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

    pub(super) fn tell_now_and_then(&mut self, name: u32, kind: BlockEventKind) {
        let millis = self.clock.run_millis();
        let entry = self
            .tracked
            .as_mut()
            .and_then(|of| of.subscribers.get_mut(name));
        if entry.is_some_and(|entry| entry.tell(millis)) {
            self.tell_of(name, kind, None);
        }
    }

    pub(super) fn tell_of(&mut self, name: u32, kind: BlockEventKind, block: Option<u32>) {
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
