//! A hash index of cache lines that grows in place.
//!
//! For the tables of this crate. It keeps names (24 bits) under hashes; what
//! a name's key is, only the table knows, and says it by a closure.
//!
//! A bucket is a line of 64 bytes: 15 tags of a byte, 15 names of three
//! bytes, and a link to an overflow line. Growth is linear hashing: once the
//! load passes [`LOAD`] names a bucket, each insert splits one bucket into
//! two; nothing else moves, and there is never a second table.

use memory::{Reserved, matching};

use crate::work::Work;

/// Names in a bucket.
const SLOTS: usize = 15;
/// Where the names begin.
const NAMES_AT: usize = 16;
/// Where the link stands: after 15 names.
const LINK_AT: usize = NAMES_AT + 3 * SLOTS;
/// Names a bucket from which on inserts split.
pub const LOAD: usize = 9;
/// Lines behind a bucket before an insert is refused. With a hash whose
/// seed nobody knows, three are not seen.
pub const MAX_CHAIN: usize = 8;

/// A line. All zeros is an empty one: tag 0 is no tag, link 0 no link.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Line {
    const EMPTY: Self = Self([0; 64]);

    #[inline(always)]
    fn matching(&self, tag: u8) -> u16 {
        let tags = self.0.first_chunk::<16>();
        // The sixteenth byte belongs to no slot and is never a tag.
        tags.map_or(0, |tags| matching(tags, tag)) & 0x7fff
    }

    #[inline(always)]
    fn name(&self, slot: usize) -> u32 {
        self.three(NAMES_AT + 3 * slot)
    }

    #[inline(always)]
    fn link(&self) -> u32 {
        self.three(LINK_AT)
    }

    /// Three bytes: four are loaded, the last is masked off. The line is
    /// seen from one byte before, so that the last load stays in it.
    #[inline(always)]
    fn three(&self, at: usize) -> u32 {
        let word = self
            .0
            .get(at - 1..at + 3)
            .and_then(|b| b.first_chunk::<4>());
        word.map_or(0, |word| u32::from_le_bytes(*word) >> 8)
    }

    #[inline(always)]
    fn set_three(&mut self, at: usize, value: u32) {
        let [a, b, c, _] = value.to_le_bytes();
        if let Some(place) = self.0.get_mut(at..at + 3) {
            place.copy_from_slice(&[a, b, c]);
        }
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, tag: u8, name: u32) {
        if let Some(place) = self.0.get_mut(slot) {
            *place = tag;
        }
        self.set_three(NAMES_AT + 3 * slot, name);
    }

    fn tag(&self, slot: usize) -> u8 {
        self.0.get(slot).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn free_slot(&self) -> Option<usize> {
        let free = self.matching(0);
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    fn used(&self) -> u16 {
        !self.matching(0) & 0x7fff
    }
}

/// The index. See the module.
#[derive(Debug)]
pub struct Index {
    buckets: Reserved<Line>,
    /// Overflow lines; the first is never used, for link 0 is none.
    overflow: Reserved<Line>,
    /// Free overflow lines, linked; 0: none.
    free: u32,
    /// The lower power of two of the number of buckets, less one.
    mask: usize,
    names: usize,
}

/// What the first look into a bucket found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Nothing, for sure.
    Nothing,
    /// The first name with the tag.
    Name(u32),
    /// Nothing in the bucket, but there is a link.
    Link,
}

impl Index {
    /// An empty index for at most `max` names, with buckets for `initial`: a
    /// power of two of them. Between two powers a bucket that is not split
    /// has twice the names of one that is, and one in seven of a million
    /// names lay in a line behind.
    pub fn new(initial: usize, max: usize) -> std::io::Result<Self> {
        let wanted = |names: usize| names.div_ceil(LOAD).max(1);
        let first = wanted(initial).next_power_of_two();
        let most = wanted(max).max(first);
        let mut buckets = Reserved::new(most)?;
        let mut overflow = Reserved::new(most / 4 + 64)?;
        buckets.prepare(first);
        overflow.push(Line::EMPTY);
        for _ in 0..first {
            buckets.push(Line::EMPTY);
        }
        let mask = mask(buckets.len());
        Ok(Self {
            buckets,
            overflow,
            free: 0,
            mask,
            names: 0,
        })
    }

    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.overflow.memory_bytes()
    }

    /// Makes memory ready ahead of growth; whether there was need.
    pub fn prepare_ahead(&mut self) -> bool {
        self.buckets.prepare_ahead() || self.overflow.prepare_ahead()
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        let wide = hash as usize & (self.mask << 1 | 1);
        let narrow = hash as usize & self.mask;
        // Left as a branch on purpose: with a select, calls of one packet
        // were a tenth slower.
        if wide < self.buckets.len() {
            wide
        } else {
            narrow
        }
    }

    /// Asks for the line of a hash's bucket.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(self.place(hash));
    }

    /// The first look into a bucket: one line.
    #[inline(always)]
    pub fn first(&self, hash: u64) -> First {
        let Some(line) = self.buckets.get(self.place(hash)) else {
            return First::Nothing;
        };
        let found = line.matching(tag(hash));
        if found != 0 {
            First::Name(line.name(found.trailing_zeros() as usize))
        } else if line.link() != 0 {
            First::Link
        } else {
            First::Nothing
        }
    }

    /// Asks for the line behind a hash's bucket.
    #[inline(always)]
    pub fn prefetch_behind(&self, hash: u64) {
        if let Some(line) = self.buckets.get(self.place(hash)) {
            self.overflow.prefetch(line.link() as usize);
        }
    }

    /// The first name with the tag in the line behind a hash's bucket.
    pub fn behind(&self, hash: u64) -> Option<u32> {
        let link = self.buckets.get(self.place(hash))?.link();
        let line = self.overflow.get(link as usize)?;
        let found = line.matching(tag(hash));
        (found != 0).then(|| line.name(found.trailing_zeros() as usize))
    }

    /// The name under a hash that is the right one.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        let mut line = self.buckets.get(self.place(hash))?;
        for _ in 0..=MAX_CHAIN {
            let mut found = line.matching(tag);
            while found != 0 {
                let name = line.name(found.trailing_zeros() as usize);
                if is_it(name) {
                    return Some(name);
                }
                found &= found - 1;
            }
            match line.link() {
                0 => return None,
                link => line = self.overflow.get(link as usize)?,
            }
        }
        None
    }

    /// Enters a name that is not in yet. `hash_of` says the hash of a name,
    /// for the one bucket that may be split, and `line_of` asks for what that
    /// is read from, for the one that is split next. Refuses (`false`) when
    /// the chain or the memory for overflow is at its end.
    #[inline]
    pub fn insert(
        &mut self,
        hash: u64,
        name: u32,
        (hash_of, line_of): (impl Fn(u32) -> u64, impl Fn(u32)),
        work: &mut Work,
    ) -> bool {
        let place = self.place(hash);
        let line = self.buckets.get_mut(place);
        let slot = line.and_then(|line| Some((line.free_slot()?, line)));
        if let Some((slot, line)) = slot {
            work.line();
            line.set(slot, tag(hash), name);
        } else if !self.insert_at(place, tag(hash), name, work) {
            return false;
        }
        self.names += 1;
        if self.names > self.buckets.len() * LOAD {
            self.split(hash_of, work);
            self.prefetch_split(line_of);
        }
        true
    }

    #[inline(never)]
    fn insert_at(&mut self, place: usize, tag: u8, name: u32, work: &mut Work) -> bool {
        let mut at = None;
        for _ in 0..=MAX_CHAIN {
            work.line();
            let Some(line) = self.line(place, at) else {
                return false;
            };
            if let Some(slot) = line.free_slot() {
                line.set(slot, tag, name);
                return true;
            }
            at = match line.link() {
                0 => match self.chain(place, at) {
                    Some(link) => Some(link),
                    None => return false,
                },
                link => Some(link),
            };
        }
        false
    }

    /// The bucket's own line, or one behind it.
    fn line(&mut self, place: usize, overflow: Option<u32>) -> Option<&mut Line> {
        match overflow {
            None => self.buckets.get_mut(place),
            Some(at) => self.overflow.get_mut(at as usize),
        }
    }

    /// Links a new overflow line behind a line and says which.
    fn chain(&mut self, place: usize, behind: Option<u32>) -> Option<u32> {
        let link = match self.free {
            0 => {
                let link = self.overflow.len() as u32;
                self.overflow.push(Line::EMPTY).then_some(link)?
            }
            link => {
                let line = self.overflow.get_mut(link as usize)?;
                self.free = line.link();
                *line = Line::EMPTY;
                link
            }
        };
        self.line(place, behind)?.set_three(LINK_AT, link);
        Some(link)
    }

    fn release(&mut self, link: u32) {
        let free = self.free;
        if let Some(line) = self.overflow.get_mut(link as usize) {
            *line = Line::EMPTY;
            line.set_three(LINK_AT, free);
            self.free = link;
        }
    }

    /// Takes a name out. Returns whether it was in.
    pub fn remove(&mut self, hash: u64, name: u32, work: &mut Work) -> bool {
        let (place, tag) = (self.place(hash), tag(hash));
        let (mut before, mut at) = (None, None);
        for _ in 0..=MAX_CHAIN {
            work.line();
            let Some(line) = self.line(place, at) else {
                return false;
            };
            let mut found = line.matching(tag);
            while found != 0 {
                let slot = found.trailing_zeros() as usize;
                if line.name(slot) == name {
                    line.set(slot, 0, 0);
                    self.names -= 1;
                    self.tidy(place, before, at);
                    return true;
                }
                found &= found - 1;
            }
            match line.link() {
                0 => return false,
                link => (before, at) = (at, Some(link)),
            }
        }
        false
    }

    /// Keeps a chain short after a removal: a hole in the bucket's own line
    /// is filled from the first line behind it, and one that is empty goes.
    fn tidy(&mut self, place: usize, before: Option<u32>, at: Option<u32>) {
        let Some(line) = self.line(place, at) else {
            return;
        };
        let (emptied, behind) = match at {
            Some(link) => (link, before),
            None => match line.link() {
                0 => return,
                link => (link, None),
            },
        };
        if at.is_none() {
            self.pull(place, emptied);
        }
        let Some(line) = self.overflow.get(emptied as usize) else {
            return;
        };
        if line.used() == 0 {
            let next = line.link();
            if let Some(line) = self.line(place, behind) {
                line.set_three(LINK_AT, next);
            }
            self.release(emptied);
        }
    }

    /// Moves one name from an overflow line into its bucket's own.
    fn pull(&mut self, place: usize, from: u32) {
        let Some(line) = self.overflow.get_mut(from as usize) else {
            return;
        };
        let used = line.used();
        if used == 0 {
            return;
        }
        let slot = used.trailing_zeros() as usize;
        let (tag, name) = (line.tag(slot), line.name(slot));
        line.set(slot, 0, 0);
        if let Some(own) = self.buckets.get_mut(place)
            && let Some(hole) = own.free_slot()
        {
            own.set(hole, tag, name);
        }
    }

    /// Splits the next bucket in turn into itself and a new last one.
    #[inline(never)]
    fn split(&mut self, hash_of: impl Fn(u32) -> u64, work: &mut Work) {
        let old = self.buckets.len() - 1 - self.mask;
        if !self.buckets.push(Line::EMPTY) {
            return;
        }
        let new = self.buckets.len() - 1;
        let bit = self.mask + 1;
        // The chain is taken off and distributed anew over both.
        let Some(own) = self.buckets.get_mut(old) else {
            return;
        };
        let mut line = std::mem::replace(own, Line::EMPTY);
        let mut filled = [0; 2];
        for _ in 0..=MAX_CHAIN {
            work.line();
            let mut used = line.used();
            while used != 0 {
                let slot = used.trailing_zeros() as usize;
                let (tag, name) = (line.tag(slot), line.name(slot));
                let goes = usize::from(hash_of(name) as usize & bit != 0);
                work.moved();
                let place = old + (new - old) * goes;
                if let Some(filled) = filled.get_mut(goes)
                    && let Some(line) = self.buckets.get_mut(place)
                    && *filled < SLOTS
                {
                    // Not looked for: tags that were stored just now would
                    // be waited for.
                    line.set(*filled, tag, name);
                    *filled += 1;
                } else {
                    // There is room: the lines came from this chain, and what
                    // is distributed over two buckets needs at most one line more.
                    let _ = self.insert_at(place, tag, name, work);
                }
                used &= used - 1;
            }
            match line.link() {
                0 => break,
                link => {
                    let Some(next) = self.overflow.get(link as usize) else {
                        break;
                    };
                    line = *next;
                    self.release(link);
                }
            }
        }
        self.mask = mask(self.buckets.len());
    }

    /// Asks for what the next split will look at: the names of its bucket
    /// and their lines, and the bucket and line after that.
    #[inline(never)]
    fn prefetch_split(&self, line_of: impl Fn(u32)) {
        let next = self.buckets.len() - 1 - self.mask;
        self.buckets.prefetch(next + 1);
        self.buckets.prefetch(self.buckets.len());
        let Some(line) = self.buckets.get(next) else {
            return;
        };
        self.overflow.prefetch(line.link() as usize);
        let mut used = line.used();
        while used != 0 {
            line_of(line.name(used.trailing_zeros() as usize));
            used &= used - 1;
        }
    }

    /// Names entered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.names
    }
}

/// The lower power of two, less one.
fn mask(buckets: usize) -> usize {
    (1 << buckets.max(1).ilog2()) - 1
}

/// The tag of a hash: its top byte, never 0.
#[inline(always)]
fn tag(hash: u64) -> u8 {
    let top = (hash >> 56) as u8;
    top + u8::from(top == 0)
}

#[cfg(test)]
mod tests;
