//! The table of subscribers: a cache line each, found by address.

use std::io;

use memory::Reserved;
use packet::protocol;

use super::config::{Quotas, Rate, SubscriberConfig};
use super::counted::{Counted, SubscriberCounts};
use super::event::QuotaKind;
use crate::index::Index;
use crate::key::{Hasher, Key};
use crate::saved::{Fields, Record, free_order};
use crate::work::Work;

/// The unit of time of rates: so many in a millisecond. 32 bits of them are
/// eighteen hours.
const UNITS: u64 = 64;
/// Places looked at for each new subscriber, for one that is none any more.
const CLEANED: usize = 2;
/// The same with the table full.
const CLEANED_WHEN_FULL: usize = 64;

/// Which counters of a subscriber a protocol has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Tcp,
    Udp,
    Other,
}

impl Class {
    pub fn of(protocol: u8) -> Self {
        match protocol {
            protocol::TCP => Self::Tcp,
            protocol::UDP => Self::Udp,
            _ => Self::Other,
        }
    }
}

/// A subscriber or a free place.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Subscriber {
    /// Its address, host order, without the bits behind the prefix.
    pub address: u32,
    /// Its newest block, one up; 0: none. For a free place the next one.
    pub block: u32,
    /// Its alias address's home, one up; 0: none yet.
    pub home: u32,
    /// Mappings by class.
    pub ports: [u32; 3],
    /// Flows by class.
    pub sessions: [u32; 3],
    /// Flows without an answer: TCP, UDP.
    pub half_open: [u32; 2],
    /// When the next mapping would come at an even pace: all, and by class.
    paced: [u32; 4],
    /// In which 64 s something was told of it last.
    told: u16,
    pub blocks: u8,
    is_live: bool,
}

const _: () = assert!(size_of::<Subscriber>() == 64);

impl Subscriber {
    /// Whether it has nothing any more.
    fn is_idle(&self) -> bool {
        self.ports == [0; 3] && self.sessions == [0; 3] && self.blocks == 0
    }

    pub fn sum(counts: &[u32]) -> u32 {
        counts.iter().sum()
    }

    /// Whether one more session fits; else which quota says no.
    pub fn fits_session(&self, class: Class, quotas: &Quotas) -> Result<(), QuotaKind> {
        let [all, own] = both(&self.sessions, class);
        if all >= quotas.sessions.all || own >= of(&quotas.sessions.of, class) {
            return Err(QuotaKind::Sessions);
        }
        if class == Class::Other {
            return Ok(());
        }
        let [all, own] = both(&self.half_open, class);
        if all >= quotas.half_open.all || own >= of(&quotas.half_open.of, class) {
            return Err(QuotaKind::HalfOpen);
        }
        Ok(())
    }

    /// Whether one more mapping fits beside some that are awaited; else which
    /// quota says no.
    pub fn fits_port(
        &self,
        class: Class,
        quotas: &Quotas,
        awaited: [u32; 3],
        millis: u64,
    ) -> Result<(), QuotaKind> {
        let [all, own] = both(&self.ports_with(awaited), class);
        if all >= quotas.ports.all || own >= of(&quotas.ports.of, class) {
            return Err(QuotaKind::Ports);
        }
        let rate = &quotas.new_mappings;
        for at in [0, 1 + class as usize] {
            if self.ahead(at, rate, millis) > allowance(rate, at) {
                return Err(QuotaKind::NewMappings);
            }
        }
        Ok(())
    }

    /// Its mappings, with those that are awaited.
    fn ports_with(&self, awaited: [u32; 3]) -> [u32; 3] {
        let mut ports = self.ports;
        for (count, more) in ports.iter_mut().zip(awaited) {
            *count += more;
        }
        ports
    }

    /// How many mappings more its quotas of ports let it have.
    pub fn ports_left(&self, class: Class, quotas: &Quotas, awaited: [u32; 3]) -> u32 {
        let [all, own] = both(&self.ports_with(awaited), class);
        let left = quotas.ports.all.saturating_sub(all);
        left.min(of(&quotas.ports.of, class).saturating_sub(own))
    }

    /// A mapping came: it counts against the rates.
    pub fn pace(&mut self, class: Class, rate: &Rate, millis: u64) {
        for at in [0, 1 + class as usize] {
            let per_sec = rate.of.get(at).copied().unwrap_or(0);
            if per_sec == 0 {
                continue;
            }
            let now = (millis * UNITS) as u32;
            let next = now.wrapping_add(self.ahead(at, rate, millis));
            if let Some(paced) = self.paced.get_mut(at) {
                *paced = next.wrapping_add(interval(per_sec));
            }
        }
    }

    /// How far ahead of the even pace it is, in units of time.
    fn ahead(&self, at: usize, rate: &Rate, millis: u64) -> u32 {
        let paced = self.paced.get(at).copied().unwrap_or(0);
        let ahead = paced.wrapping_sub((millis * UNITS) as u32);
        // Further than it can be: it is from long ago.
        let most = allowance(rate, at).saturating_add(interval(1));
        if ahead <= most { ahead } else { 0 }
    }

    /// Whether something may be told of it; it is then told.
    pub fn tell(&mut self, millis: u64) -> bool {
        // 0 is never.
        let period = (millis >> 16) as u16 | 1 << 15;
        std::mem::replace(&mut self.told, period) != period
    }
}

/// Units of time between two at an even pace, at least.
fn interval(per_sec: u32) -> u32 {
    (1_000 * UNITS as u32).div_ceil(per_sec.max(1))
}

/// How far ahead of the even pace one may be when another comes.
fn allowance(rate: &Rate, at: usize) -> u32 {
    let per_sec = rate.of.get(at).copied().unwrap_or(0);
    if per_sec == 0 {
        return u32::MAX;
    }
    let burst = if rate.burst == 0 { per_sec } else { rate.burst };
    (burst - 1).saturating_mul(interval(per_sec))
}

fn both(counts: &[u32], class: Class) -> [u32; 2] {
    [Subscriber::sum(counts), of(counts, class)]
}

fn of(counts: &[u32], class: Class) -> u32 {
    counts.get(class as usize).copied().unwrap_or(0)
}

/// All subscribers of an engine.
#[derive(Debug)]
pub struct Subscribers {
    entries: Reserved<Subscriber>,
    index: Index,
    hasher: Hasher,
    /// Bits of an address that tell a subscriber.
    mask: u32,
    /// The first free place, one up; 0: none.
    free: u32,
    live: usize,
    /// How many were entered, and how many could not be.
    entered: (u64, u64),
    /// Where it is looked next for one that is none any more.
    hand: usize,
    /// What is counted for each, where that is asked for.
    pub counted: Option<Counted>,
}

impl Subscribers {
    pub fn new(of: &SubscriberConfig, seed: u64) -> io::Result<Self> {
        let most = of.most;
        let counted = of.counted.then(|| Counted::new(most));
        Ok(Self {
            entries: Reserved::new(most)?,
            index: Index::new(0, most)?,
            hasher: Hasher::new(seed),
            counted: counted.transpose()?,
            mask: u32::MAX.checked_shl(32 - u32::from(of.bits)).unwrap_or(0),
            free: 0,
            live: 0,
            entered: (0, 0),
            hand: 0,
        })
    }

    pub fn len(&self) -> usize {
        self.live
    }

    /// How many were entered so far, and how many found no room.
    pub fn entered(&self) -> (u64, u64) {
        self.entered
    }

    pub fn places(&self) -> usize {
        self.entries.len()
    }

    pub fn memory_bytes(&self) -> usize {
        let counted = self.counted.as_ref().map_or(0, Counted::memory_bytes);
        self.entries.memory_bytes() + self.index.memory_bytes() + counted
    }

    /// What was counted for a subscriber, where that is asked for.
    pub fn counts(&self, name: u32) -> Option<&SubscriberCounts> {
        self.counted.as_ref()?.get(name)
    }

    pub fn counts_mut(&mut self, name: u32) -> Option<&mut SubscriberCounts> {
        self.counted.as_mut()?.get_mut(name)
    }

    /// A place has a subscriber from now on: its counts begin.
    fn begin_counts(&mut self, name: u32, millis: u64) {
        if let Some(counted) = &mut self.counted {
            counted.begin(name, millis);
        }
    }

    /// What a subscriber is known by: an inside address (host order) without
    /// the bits behind the prefix.
    pub fn address_of(&self, inside: u32) -> u32 {
        inside & self.mask
    }

    pub fn get(&self, name: u32) -> Option<&Subscriber> {
        let entry = self.entries.get(name as usize)?;
        entry.is_live.then_some(entry)
    }

    pub fn get_mut(&mut self, name: u32) -> Option<&mut Subscriber> {
        let entry = self.entries.get_mut(name as usize)?;
        entry.is_live.then_some(entry)
    }

    fn hash(&self, address: u32) -> u64 {
        self.hasher.hash(Key::new(address, 0, [0; 2], 0))
    }

    /// The subscriber of an inside address (host order).
    pub fn find(&self, inside: u32) -> Option<u32> {
        let address = inside & self.mask;
        self.index.find(self.hash(address), |name| {
            self.get(name).is_some_and(|entry| entry.address == address)
        })
    }

    /// Asks for the line that [`Subscribers::find`] looks into.
    pub fn prefetch(&self, inside: u32) {
        self.index.prefetch(self.hash(inside & self.mask));
    }

    /// The same; it is entered if it is none yet. `None`: there is no room.
    /// Others that have nothing any more may go.
    pub fn enter(
        &mut self,
        inside: u32,
        now_millis: u64,
        gone: &mut dyn FnMut(&Subscriber) -> bool,
    ) -> Option<u32> {
        if let Some(name) = self.find(inside) {
            return Some(name);
        }
        let entered = self.enter_new(inside, gone);
        match entered {
            Some(name) => {
                self.entered.0 += 1;
                self.begin_counts(name, now_millis);
            }
            None => self.entered.1 += 1,
        }
        entered
    }

    fn enter_new(&mut self, inside: u32, gone: &mut dyn FnMut(&Subscriber) -> bool) -> Option<u32> {
        let is_full = self.live >= self.entries.max();
        self.clean(if is_full { CLEANED_WHEN_FULL } else { CLEANED }, gone);
        let entry = Subscriber {
            address: inside & self.mask,
            is_live: true,
            ..Subscriber::default()
        };
        let name = match self.free.checked_sub(1) {
            None => {
                let name = self.entries.len() as u32;
                self.entries.push(entry).then_some(name)?
            }
            Some(name) => {
                let place = self.entries.get_mut(name as usize)?;
                self.free = place.block;
                *place = entry;
                name
            }
        };
        if !self.enter_name(name) {
            self.free_place(name);
            return None;
        }
        self.live += 1;
        Some(name)
    }

    /// Enters a place into the index; whether that took it.
    fn enter_name(&mut self, name: u32) -> bool {
        let (hasher, entries) = (self.hasher, &self.entries);
        let address_of = |name: u32| entries.get(name as usize).map_or(0, |entry| entry.address);
        let hash_of = |name: u32| hasher.hash(Key::new(address_of(name), 0, [0; 2], 0));
        let line_of = |name: u32| entries.prefetch(name as usize);
        let mut work = Work::default();
        let hash = hash_of(name);
        self.index.insert(hash, name, (hash_of, line_of), &mut work)
    }

    fn free_place(&mut self, name: u32) {
        let block = self.free;
        if let Some(place) = self.entries.get_mut(name as usize) {
            *place = Subscriber {
                block,
                ..Subscriber::default()
            };
            self.free = name + 1;
        }
    }

    /// Looks at the next places: who has nothing any more is none. `gone` is
    /// told of each, and says whether it is so; it still has a block that can
    /// be reckoned, if any.
    pub fn clean(&mut self, places: usize, gone: &mut dyn FnMut(&Subscriber) -> bool) {
        for _ in 0..places.min(self.entries.len()) {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let name = self.hand as u32;
            self.hand += 1;
            let Some(entry) = self.get(name).copied().filter(Subscriber::is_idle) else {
                continue;
            };
            if !gone(&entry) {
                continue;
            }
            self.index
                .remove(self.hash(entry.address), name, &mut Work::default());
            self.free_place(name);
            self.live -= 1;
        }
    }
}

impl Subscriber {
    /// It as a saved state keeps it, without what its flows and blocks say.
    pub fn saved(&self, name: u32, out: Record) -> Record {
        let out = out.u32(name).u32(self.address).u32(self.home);
        let out = self.paced.iter().fold(out, |out, paced| out.u32(*paced));
        out.u16(self.told)
    }

    /// What [`Subscriber::saved`] wrote behind the name.
    pub fn restored(fields: &mut Fields<'_>) -> Self {
        Self {
            address: fields.u32(),
            home: fields.u32(),
            paced: [(); 4].map(|()| fields.u32()),
            told: fields.u16(),
            is_live: true,
            ..Self::default()
        }
    }
}

impl Subscribers {
    /// Where it is looked next for one that is none any more.
    pub fn hand(&self) -> usize {
        self.hand
    }

    /// Free places, the one that is taken next first.
    pub fn free_places(&self) -> impl Iterator<Item = u32> {
        let after = |one_up: u32| one_up.checked_sub(1);
        std::iter::successors(after(self.free), move |name| {
            after(self.entries.get(*name as usize)?.block)
        })
    }

    /// Makes so many free places, in a table that has none yet; not more
    /// than there may be.
    pub fn restore_places(&mut self, places: usize, hand: usize) {
        for _ in 0..places {
            if !self.entries.push(Subscriber::default()) {
                break;
            }
        }
        self.hand = hand;
    }

    /// Enters a subscriber at its place. Whether it could be.
    pub fn restore(&mut self, name: u32, entry: Subscriber) -> bool {
        let is_free = self
            .entries
            .get(name as usize)
            .is_some_and(|entry| !entry.is_live);
        let is_whole = entry.address & self.mask == entry.address;
        if !is_free || !is_whole || self.find(entry.address).is_some() {
            return false;
        }
        if let Some(place) = self.entries.get_mut(name as usize) {
            *place = entry;
        }
        if self.enter_name(name) {
            self.live += 1;
            self.begin_counts(name, 0);
            return true;
        }
        if let Some(place) = self.entries.get_mut(name as usize) {
            *place = Subscriber::default();
        }
        false
    }

    /// Says in which order the free places are taken again.
    pub fn restore_free(&mut self, order: &[u32]) {
        let order = free_order(self.entries.len(), order, |name| self.get(name).is_some());
        self.free = 0;
        for name in order.into_iter().rev() {
            let block = std::mem::replace(&mut self.free, name + 1);
            if let Some(place) = self.entries.get_mut(name as usize) {
                place.block = block;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pace_is_above_what_is_said_nor_far_below() {
        for per_sec in [1, 7, 100, 1_000, 9_999, 33_000, Rate::MOST] {
            let rate = Rate {
                of: [per_sec, 0, 0, 0],
                burst: 0,
            };
            let quotas = Quotas {
                new_mappings: rate,
                ..Quotas::default()
            };
            let mut entry = Subscriber::default();
            let (from, secs) = (70_000_000, 20);
            let mut came = 0;
            for millis in from..from + secs * 1_000 {
                while entry.fits_port(Class::Udp, &quotas, [0; 3], millis).is_ok() {
                    entry.pace(Class::Udp, &rate, millis);
                    came += 1;
                }
            }
            let said = u64::from(per_sec) * secs;
            assert!(
                came <= said + u64::from(per_sec),
                "{per_sec}: {came} of {said}"
            );
            assert!(came > said / 2, "{per_sec}: {came} of {said}");
        }
    }

    #[test]
    fn a_burst_is_as_much_as_an_hour_brings() {
        let with = |burst| {
            let mut config = super::super::SubscriberConfig::default();
            config.quotas.new_mappings = Rate {
                of: [0, 2, 0, 0],
                burst,
            };
            config.check()
        };
        let most = 2 * Rate::MOST_BURST_SECS;
        assert_eq!(with(most), Ok(()));
        let burst = most + 2;
        let refused = super::super::BlocksError::Burst { burst, per_sec: 2 };
        assert_eq!(with(burst), Err(refused));
    }
}
