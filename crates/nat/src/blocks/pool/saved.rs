//! A pool's part of a saved state: homes in their order, whose each block is,
//! and the orders in which blocks are given, rest and are told again.

use std::io;

use super::lines::{Kind, Line};
use super::{Block, Home, KEPT, Pool, RESTING};
use crate::key::Random;
use crate::saved::{Chunks, Fields, Record, tag};

impl Pool {
    /// Writes homes, orders and lines. Whose each block is, its owners say:
    /// [`Pool::save_block`].
    pub fn save(&self, out: &mut Chunks<'_>) -> io::Result<()> {
        for home in &self.homes {
            out.record(tag::HOME, &home.address.to_ne_bytes())?;
        }
        for home in &self.homes {
            out.names(tag::FREE_BLOCK, self.line(&home.free, Kind::Free))?;
        }
        out.names(tag::RESTING, self.line(&self.resting, Kind::Free))?;
        out.names(tag::TOLD, self.line(&self.told, Kind::Told))?;
        out.names(tag::AVAILABLE, self.available.iter().copied())?;
        for address in &self.unopened {
            out.record(tag::UNOPENED, &address.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Writes whose a block is.
    pub fn save_block(
        &self,
        block: u32,
        record: Record,
        out: &mut Chunks<'_>,
    ) -> io::Result<Record> {
        let Some(place) = self.get(block) else {
            return Ok(record);
        };
        let record = record.again().u32(block).u32(place.owner);
        let record = record.u32(place.since).u32(place.idle).u32(place.told);
        out.record(tag::BLOCK, record.bytes())?;
        Ok(record)
    }

    fn line(&self, line: &Line, kind: Kind) -> impl Iterator<Item = u32> {
        std::iter::successors(line.first(), move |block| {
            line.behind(&self.blocks, kind, *block)
        })
    }

    /// A home with its blocks, nobody's yet and in no line.
    pub fn restore_home(&mut self, address: u32) {
        if self.by_address.contains_key(&address) {
            return;
        }
        for _ in 0..self.layout.blocks() {
            if !self.blocks.push(Block::default()) {
                return;
            }
        }
        let home = Home {
            address,
            is_open: false,
            free: Line::default(),
            free_blocks: 0,
            most_free: 0,
            at: None,
        };
        self.by_address.insert(address, self.homes.len() as u32);
        self.homes.push(home);
    }

    /// A block and its owner, one up, as [`Pool::save_block`] wrote them; it
    /// is nobody's until [`Pool::restore_owner`] says so.
    pub fn restore_block(fields: &mut Fields<'_>) -> (u32, u32, Block) {
        let (block, owner) = (fields.u32(), fields.u32());
        let place = Block {
            since: fields.u32(),
            idle: fields.u32(),
            told: fields.u32(),
            ..Block::default()
        };
        (block, owner, place)
    }

    /// A subscriber has a block; `next` is its next one, one up. Whether it
    /// can be.
    pub fn restore_owner(&mut self, block: u32, owner: u32, next: u32, mut place: Block) -> bool {
        let is_free = self.get(block).is_some_and(|block| block.owner == 0);
        if is_free && let Some(known) = self.blocks.get_mut(block as usize) {
            (place.owner, place.next) = (owner + 1, next);
            *known = place;
            self.taken += 1;
        }
        is_free
    }

    /// Whether a block that can be reckoned is this subscriber's.
    pub fn is_reckoned(&self, block: u32, subscriber: u32) -> bool {
        let place = self.reckoning.as_ref().and_then(|of| of.place(subscriber));
        place.is_some_and(|(slot, alias)| {
            let address = u32::from_ne_bytes(alias.octets());
            (self.place_of(block).1, self.address_of(block)) == (slot, address)
        })
    }

    /// A block of a subscriber that has none at its place yet: as if it had
    /// been used up to now. `None`: it is another's, or cannot be given.
    pub fn claim(
        &mut self,
        (address, port): (u32, u16),
        owner: u32,
        now: u32,
        random: &mut Random,
    ) -> Option<u32> {
        let home = self.home_of(address, random)?;
        let block = self.at(address, port)?;
        let is_given = self.get(block).is_some_and(|block| block.owner == 0);
        let is_ours = self.get(block).is_some_and(|block| block.marks & KEPT == 0);
        if !is_given || !is_ours || !self.has_room(home) {
            return None;
        }
        self.leave_free(home, block);
        self.own(block, owner, now);
        Some(block)
    }

    /// Once all homes, blocks and uses are there: puts each block into its
    /// lines, in the orders that were saved as far as they fit.
    pub fn restore_lines(&mut self, orders: &Orders, now: u32) {
        let all = 0..self.blocks.len() as u32;
        for block in all.clone() {
            let is_given = self.may_be_given(block);
            if let Some(place) = self.blocks.get_mut(block as usize) {
                place.marks = if is_given { 0 } else { KEPT };
            }
            let (home, _) = self.place_of(block);
            if let Some(home) = self.homes.get_mut(home as usize) {
                home.most_free += u32::from(is_given);
            }
        }
        let mut is_placed = vec![false; self.blocks.len()];
        for block in orders.free.iter().copied().chain(all.clone()) {
            let is_free = self
                .get(block)
                .is_some_and(|place| place.owner == 0 && place.marks & KEPT == 0);
            if let Some(is_placed) = is_placed.get_mut(block as usize)
                && is_free
                && !*is_placed
            {
                *is_placed = true;
                self.put_free(self.place_of(block).0, block);
            }
        }
        for block in orders.resting.iter().copied() {
            self.restore_rest(block, None);
        }
        for block in all {
            // What it was used for did not come along.
            self.restore_rest(block, Some(now));
        }
        for block in orders.told.iter().copied() {
            if self.get(block).is_some_and(|place| place.owner != 0) {
                self.tell_again(block);
            }
        }
    }

    fn may_be_given(&self, block: u32) -> bool {
        let (_, number) = self.place_of(block);
        let (part, parts) = self.part;
        number % parts == part && self.layout.may_be_given(number)
    }

    /// A block that somebody has and nobody uses rests.
    fn restore_rest(&mut self, block: u32, idle: Option<u32>) {
        let is_fixed = self.is_fixed(block);
        let Some(place) = self.blocks.get_mut(block as usize) else {
            return;
        };
        if place.owner == 0 || place.used > 0 || place.marks & RESTING != 0 || is_fixed {
            return;
        }
        place.idle = idle.unwrap_or(place.idle);
        place.marks |= RESTING;
        self.resting.push(&mut self.blocks, Kind::Free, block);
    }

    /// The addresses in the order they had, where they are the same; behind
    /// [`Pool::set_addresses`].
    pub fn restore_addresses(&mut self, orders: &Orders) {
        if sorted(&self.unopened) == sorted(&orders.unopened) {
            self.unopened.clone_from(&orders.unopened);
        }
        if sorted(&self.available) == sorted(&orders.available) {
            self.available.clone_from(&orders.available);
            for (at, home) in orders.available.iter().enumerate() {
                if let Some(home) = self.homes.get_mut(*home as usize) {
                    home.at = Some(at as u32);
                }
            }
        }
    }
}

/// Orders of blocks and addresses.
#[derive(Debug, Default)]
pub struct Orders {
    /// Free blocks, each home's first one first.
    pub free: Vec<u32>,
    /// Those that rest.
    pub resting: Vec<u32>,
    /// Those that are told again.
    pub told: Vec<u32>,
    /// Homes with free blocks.
    pub available: Vec<u32>,
    /// Addresses without a home, memory order.
    pub unopened: Vec<u32>,
}

fn sorted(numbers: &[u32]) -> Vec<u32> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted
}
