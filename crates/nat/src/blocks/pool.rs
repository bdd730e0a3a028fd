//! The blocks of all alias addresses: free, taken, resting.
//!
//! An address is opened with its first subscriber: only then its blocks take
//! memory. One that left the pool is closed: its blocks stay with those who
//! have them, and are given to nobody any more.

mod lines;
mod saved;

use std::io;

use hashbrown::HashMap;
use memory::Reserved;

use super::layout::{At, Layout};
use super::reckoning::Reckoning;
use crate::Config;
use crate::key::Random;

use lines::{Kind, Line, Link};
pub use saved::Orders;

/// It stands in the line of those that rest.
const RESTING: u8 = 1;
/// It stands in the line of those that are told again.
const TOLD: u8 = 2;
/// It is in no home's line of free ones and has no owner: nobody may get it.
const KEPT: u8 = 4;
/// Closed addresses looked at for the room of a new one.
const CLOSED_LOOKS: usize = 8;

/// A block of ports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    /// The subscriber, one up; 0: it is free.
    pub owner: u32,
    /// The owner's next block, one up; 0: none.
    pub next: u32,
    pub links: [Link; 2],
    /// Mappings and flows that have a port of it.
    pub used: u32,
    /// When it was taken, ticks.
    pub since: u32,
    /// When its last flow ended.
    pub idle: u32,
    /// When it was told last.
    pub told: u32,
    /// Shared mappings of TCP and of UDP.
    pub mapped: [u16; 2],
    marks: u8,
}

/// An alias address and its blocks.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// Memory order.
    pub address: u32,
    pub is_open: bool,
    free: Line,
    pub free_blocks: u32,
    /// Blocks that may be free.
    pub most_free: u32,
    /// Where it stands among those with free blocks.
    at: Option<u32>,
}

/// See the module.
#[derive(Debug)]
pub struct Pool {
    layout: Layout,
    pub reckoning: Option<Reckoning>,
    blocks: Reserved<Block>,
    homes: Vec<Home>,
    by_address: HashMap<u32, u32>,
    /// Open homes with free blocks.
    available: Vec<u32>,
    /// Addresses that have no home yet, memory order.
    unopened: Vec<u32>,
    closed: Vec<u32>,
    resting: Line,
    told: Line,
    taken: usize,
    /// Which blocks of an address are this engine's: number and parts.
    part: (u32, u32),
}

impl Pool {
    /// Memory of a block.
    pub const BLOCK_BYTES: usize = size_of::<Block>();

    pub fn new(layout: Layout, reckoning: Option<Reckoning>) -> io::Result<Self> {
        let most = Config::MAX_ADDRESSES as u64 * u64::from(layout.blocks());
        Ok(Self {
            blocks: Reserved::new(most.min(u64::from(u32::MAX) - 1) as usize)?,
            layout,
            reckoning,
            homes: Vec::new(),
            by_address: HashMap::new(),
            available: Vec::new(),
            unopened: Vec::new(),
            closed: Vec::new(),
            resting: Line::default(),
            told: Line::default(),
            taken: 0,
            part: (0, 1),
        })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Only the blocks of a part: before any is taken.
    pub fn set_part(&mut self, number: u16, parts: u16) {
        self.part = (number.into(), u32::from(parts).max(1));
    }

    /// Blocks that somebody has.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Homes so far, closed ones included.
    pub fn homes(&self) -> &[Home] {
        &self.homes
    }

    /// Addresses of which no block was ever taken.
    pub fn unopened(&self) -> &[u32] {
        &self.unopened
    }

    pub fn memory_bytes(&self) -> usize {
        self.blocks.memory_bytes()
            + self.homes.capacity() * size_of::<Home>()
            + self.by_address.allocation_size()
    }

    pub fn get(&self, block: u32) -> Option<&Block> {
        self.blocks.get(block as usize)
    }

    pub fn get_mut(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(block as usize)
    }

    /// Blocks that have a place, those of nobody included.
    pub fn places(&self) -> usize {
        self.blocks.len()
    }

    /// The home of a block and its number there.
    pub fn place_of(&self, block: u32) -> (u32, u32) {
        (block / self.layout.blocks(), block % self.layout.blocks())
    }

    /// The alias address (memory order) of a block.
    pub fn address_of(&self, block: u32) -> u32 {
        let (home, _) = self.place_of(block);
        self.homes.get(home as usize).map_or(0, |home| home.address)
    }

    /// Whether a block's address is of the pool still.
    pub fn is_open(&self, block: u32) -> bool {
        let home = self.homes.get(self.place_of(block).0 as usize);
        home.is_some_and(|home| home.is_open)
    }

    /// Ports of a block.
    pub fn size_of(&self, block: u32) -> u32 {
        self.layout.size(self.place_of(block).1)
    }

    /// A port of a block, host order.
    pub fn port(&self, block: u32, place: u32) -> u16 {
        let (_, block) = self.place_of(block);
        self.layout.port(At { block, place })
    }

    /// The block of an alias port (address in memory, port in host order).
    pub fn at(&self, address: u32, port: u16) -> Option<u32> {
        let home = *self.by_address.get(&address)?;
        let at = self.layout.at(port)?;
        Some(home * self.layout.blocks() + at.block)
    }

    /// Whether a block's ports can be reckoned: nobody is told of it.
    pub fn is_fixed(&self, block: u32) -> bool {
        self.place_of(block).1 < self.layout.fixed()
    }

    /// The alias addresses, memory order. Those that are not among them any
    /// more are closed, known ones open again. O(addresses).
    pub fn set_addresses(&mut self, addresses: &[u32]) {
        self.homes.reserve(addresses.len());
        self.by_address.reserve(addresses.len());
        self.available.reserve(addresses.len());
        self.closed.reserve(self.homes.len());
        for home in &mut self.homes {
            home.is_open = false;
        }
        self.unopened.clear();
        for address in addresses {
            match self.by_address.get(address) {
                Some(home) => {
                    if let Some(home) = self.homes.get_mut(*home as usize) {
                        home.is_open = true;
                    }
                }
                None => self.unopened.push(*address),
            }
        }
        self.available.clear();
        self.closed.clear();
        for (at, home) in self.homes.iter_mut().enumerate() {
            home.at = None;
            if !home.is_open {
                self.closed.push(at as u32);
            } else if home.free_blocks > 0 {
                home.at = Some(self.available.len() as u32);
                self.available.push(at as u32);
            }
        }
    }

    /// Whether a home has a free block to give.
    pub fn has_room(&self, home: u32) -> bool {
        let home = self.homes.get(home as usize);
        home.is_some_and(|home| home.is_open && home.free_blocks > 0)
    }

    /// A home with free blocks: of two at random the one with more free
    /// blocks, so that they fill alike. O(1).
    pub fn any_home(&mut self, random: &mut Random) -> Option<u32> {
        let open = self.available.len() as u32;
        let all = open + self.unopened.len() as u32;
        let mut draw = || random.below(all);
        let (one, other) = (draw(), draw());
        for drawn in [one, other] {
            if drawn >= open && all > 0 {
                let address = self.unopened.swap_remove((drawn - open) as usize);
                return self.open(address, random);
            }
        }
        let home = |drawn: u32| {
            let home = *self.available.get(drawn as usize)?;
            Some((self.homes.get(home as usize)?.free_blocks, home))
        };
        home(one).max(home(other)).map(|(_, home)| home)
    }

    /// The home of an address that is of the pool: O(addresses) for the
    /// first who asks for it.
    pub fn home_of(&mut self, address: u32, random: &mut Random) -> Option<u32> {
        if let Some(home) = self.by_address.get(&address) {
            return Some(*home);
        }
        let at = self.unopened.iter().position(|known| *known == address)?;
        self.unopened.swap_remove(at);
        self.open(address, random)
    }

    fn open(&mut self, address: u32, random: &mut Random) -> Option<u32> {
        let home = Home {
            address,
            is_open: true,
            free: Line::default(),
            free_blocks: 0,
            most_free: 0,
            at: None,
        };
        let at = match self.room_of_closed() {
            Some(at) => {
                let place = self.homes.get_mut(at as usize)?;
                self.by_address.remove(&place.address);
                *place = home;
                at
            }
            None => {
                let at = self.homes.len() as u32;
                for _ in 0..self.layout.blocks() {
                    if !self.blocks.push(Block::default()) {
                        return None;
                    }
                }
                self.homes.push(home);
                at
            }
        };
        self.by_address.insert(address, at);
        self.free_all(at, random);
        Some(at)
    }

    /// A closed home whose blocks are all free.
    fn room_of_closed(&mut self) -> Option<u32> {
        let looks = self.closed.iter().rev().take(CLOSED_LOOKS);
        let fits = |home: &&u32| {
            let home = self.homes.get(**home as usize);
            home.is_some_and(|home| home.free_blocks == home.most_free)
        };
        // A fixed block of somebody is in no line, and would be lost.
        let found = *looks.clone().find(fits)?;
        let base = found * self.layout.blocks();
        let mut fixed = base..base + self.layout.fixed();
        if fixed.any(|block| self.get(block).is_some_and(|block| block.owner != 0)) {
            return None;
        }
        self.closed.retain(|closed| *closed != found);
        Some(found)
    }

    /// Enters all blocks of a new home as free, in an order that differs
    /// from home to home: from a random one on in steps of a random length
    /// that meets each once.
    fn free_all(&mut self, home: u32, random: &mut Random) {
        let count = self.layout.blocks() - self.layout.fixed();
        let base = home * self.layout.blocks();
        let (number, parts) = self.part;
        for fixed in 0..self.layout.fixed() {
            self.reset(base + fixed, KEPT);
        }
        if count == 0 {
            return;
        }
        let step = step_over(count, 1 + random.below(count));
        let mut at = random.below(count);
        for _ in 0..count {
            let block = self.layout.fixed() + at;
            let is_ours = block % parts == number && self.layout.may_be_given(block);
            self.reset(base + block, if is_ours { 0 } else { KEPT });
            if is_ours {
                self.put_free(home, base + block);
                if let Some(home) = self.homes.get_mut(home as usize) {
                    home.most_free += 1;
                }
            }
            at = (at + step) % count;
        }
    }

    fn reset(&mut self, block: u32, marks: u8) {
        if let Some(place) = self.blocks.get_mut(block as usize) {
            *place = Block {
                marks,
                ..Block::default()
            };
        }
    }

    fn put_free(&mut self, home: u32, block: u32) {
        let Some(place) = self.homes.get_mut(home as usize) else {
            return;
        };
        place.free.push(&mut self.blocks, Kind::Free, block);
        place.free_blocks += 1;
        if place.is_open && place.at.is_none() {
            place.at = Some(self.available.len() as u32);
            self.available.push(home);
        }
    }

    /// A free block of a home for a subscriber; `None`: there is none.
    pub fn take(&mut self, home: u32, owner: u32, now: u32) -> Option<u32> {
        let place = self.homes.get(home as usize).filter(|home| home.is_open)?;
        let block = place.free.first()?;
        self.leave_free(home, block);
        self.own(block, owner, now);
        Some(block)
    }

    /// A block is free no more.
    fn leave_free(&mut self, home: u32, block: u32) {
        let Some(place) = self.homes.get_mut(home as usize) else {
            return;
        };
        place.free.remove(&mut self.blocks, Kind::Free, block);
        place.free_blocks -= 1;
        if place.free_blocks == 0
            && let Some(at) = place.at.take()
        {
            self.available.swap_remove(at as usize);
            if let Some(moved) = self.available.get(at as usize)
                && let Some(moved) = self.homes.get_mut(*moved as usize)
            {
                moved.at = Some(at);
            }
        }
    }

    /// A subscriber has a block from now on; nobody uses it yet.
    pub fn own(&mut self, block: u32, owner: u32, now: u32) {
        self.taken += 1;
        if let Some(place) = self.blocks.get_mut(block as usize) {
            *place = Block {
                owner: owner + 1,
                since: now,
                told: now,
                marks: place.marks & KEPT,
                ..Block::default()
            };
        }
        self.rest(block, now);
    }

    /// Nobody has a block any more, which nobody uses.
    pub fn free(&mut self, block: u32) {
        self.taken = self.taken.saturating_sub(1);
        self.wake(block);
        let (home, _) = self.place_of(block);
        let Some(place) = self.blocks.get_mut(block as usize) else {
            return;
        };
        (place.owner, place.next) = (0, 0);
        let marks = place.marks;
        place.marks &= KEPT;
        if marks & TOLD != 0 {
            self.told.remove(&mut self.blocks, Kind::Told, block);
        }
        if marks & KEPT == 0 {
            self.put_free(home, block);
        }
    }

    /// A block has one use more.
    pub fn hold(&mut self, block: u32, mapped: Option<usize>) {
        if let Some(place) = self.blocks.get_mut(block as usize) {
            place.used += 1;
            if let Some(count) = mapped.and_then(|at| place.mapped.get_mut(at)) {
                *count += 1;
            }
        }
        self.wake(block);
    }

    /// A block has one use less.
    pub fn release(&mut self, block: u32, mapped: Option<usize>, now: u32) {
        let Some(place) = self.blocks.get_mut(block as usize) else {
            return;
        };
        place.used = place.used.saturating_sub(1);
        if let Some(count) = mapped.and_then(|at| place.mapped.get_mut(at)) {
            *count = count.saturating_sub(1);
        }
        if place.used == 0 {
            self.rest(block, now);
        }
    }

    /// A block has no use any more, from now on.
    fn rest(&mut self, block: u32, now: u32) {
        let is_fixed = self.is_fixed(block);
        let Some(place) = self.blocks.get_mut(block as usize) else {
            return;
        };
        place.idle = now;
        if !is_fixed && place.marks & RESTING == 0 {
            place.marks |= RESTING;
            self.resting.push(&mut self.blocks, Kind::Free, block);
        }
    }

    fn wake(&mut self, block: u32) {
        let Some(place) = self.blocks.get_mut(block as usize) else {
            return;
        };
        if place.marks & RESTING != 0 {
            place.marks &= !RESTING;
            self.resting.remove(&mut self.blocks, Kind::Free, block);
        }
    }

    /// A block that has rested for so many ticks: it is its owner's still,
    /// and to be freed.
    pub fn next_rested(&self, now: u32, ticks: u32) -> Option<u32> {
        let first = self.resting.first()?;
        let idle = self.get(first)?.idle;
        (now.saturating_sub(idle) >= ticks).then_some(first)
    }

    /// A block is to be told again from time to time.
    pub fn tell_again(&mut self, block: u32) {
        if let Some(place) = self.blocks.get_mut(block as usize)
            && place.marks & TOLD == 0
        {
            place.marks |= TOLD;
            self.told.push(&mut self.blocks, Kind::Told, block);
        }
    }

    /// The next block to be told again, every so many ticks.
    pub fn next_to_tell(&mut self, now: u32, ticks: u32) -> Option<u32> {
        let first = self.told.first()?;
        let place = self.blocks.get_mut(first as usize)?;
        if now.saturating_sub(place.told) < ticks {
            return None;
        }
        place.told = now;
        self.told.remove(&mut self.blocks, Kind::Told, first);
        self.told.push(&mut self.blocks, Kind::Told, first);
        Some(first)
    }
}

/// The length of steps that meet each of some places once: the first from a
/// given one on. O(log places) for each that does not do, of which there are
/// few.
pub fn step_over(places: u32, mut step: u32) -> u32 {
    while common_divisor(step, places) != 1 {
        step = step % places + 1;
    }
    step
}

fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
