//! Slots into handles and handles into slots, a bulk at a time: what a
//! [`super::Cache`] does most.

#![allow(
    unsafe_code,
    reason = "a bulk is moved by words of 16 bytes, in two thirds of the time"
)]

use std::ptr::{self, NonNull};

use super::Buffer;
use super::slot::OwnSlot;

/// The slots of one pool.
#[derive(Clone, Copy)]
pub struct Range {
    /// See [`OwnSlot::origin`].
    pub origin: NonNull<u8>,
    /// Bytes from the first slot to the end of the last.
    pub bytes: usize,
}

impl Range {
    /// Whether it is one of them.
    #[inline(always)]
    pub fn has(self, slot: &OwnSlot) -> bool {
        slot.offset(self.origin) < self.bytes
    }

    /// How many of them, from the first on, are in it.
    #[inline(always)]
    pub fn have(self, buffers: &[Buffer]) -> usize {
        let signs = buffers
            .iter()
            .fold(0, |signs, one| signs | self.sign(&one.slot));
        if signs.cast_signed() >= 0 {
            return buffers.len();
        }
        let ours = buffers.iter().take_while(|one| self.has(&one.slot));
        ours.count()
    }

    /// The highest bit says whether it is none of them: by the sign of a
    /// difference, which says what is less also for a slot of another pool,
    /// because addresses have 48 bits, and a slot's size is above them. (A
    /// comparison of unsigned words costs 3 times as much: vectors of x86-64
    /// have none.)
    #[inline(always)]
    fn sign(self, slot: &OwnSlot) -> usize {
        let offset = slot.offset(self.origin);
        offset | self.bytes.wrapping_sub(1).wrapping_sub(offset)
    }
}

/// Makes an empty handle of each of `count` slots, in order.
///
/// # Safety
/// `count` slots are at `from`, which the caller gives away; `count` places
/// for handles are at `to`, and are none of those.
#[inline(always)]
pub unsafe fn adopt(from: *const OwnSlot, to: *mut Buffer, count: usize) {
    for at in 0..count {
        // SAFETY: `at` < `count`; each slot is read once.
        unsafe { words::adopt(from.add(at), to.add(at)) };
    }
}

/// Takes the slots out of `count` handles, in order. Whether all are of the
/// pool; if not, nothing was taken (but `to` written to).
///
/// # Safety
/// `count` handles are at `from`, which the caller gives away if the answer is
/// yes; `count` places for slots are at `to`, and are none of those.
#[inline(always)]
pub unsafe fn surrender(from: *const Buffer, to: *mut OwnSlot, count: usize, pool: Range) -> bool {
    let mut signs = words::Signs::new(pool);
    let even = count / 2 * 2;
    for at in (0..even).step_by(2) {
        // SAFETY: `at + 1` < `count`; each slot is read once.
        unsafe { signs.surrender_two(from.add(at), to.add(at)) };
    }
    if even == count {
        return signs.are_ours();
    }
    // SAFETY: the last one, read once.
    unsafe {
        let slot = ptr::read(&raw const (*from.add(even)).slot);
        let is_ours = pool.has(&slot);
        to.add(even).write(slot);
        is_ours && signs.are_ours()
    }
}

/// In words of 16 bytes, which every x86-64 has. Slots are read by 8 bytes
/// each all the same: a wider word reaches over more than the slot, and waits
/// for the last writes to packets at the same place of a page (4,096 bytes),
/// as if they were to it.
#[cfg(target_arch = "x86_64")]
mod words {
    use std::arch::x86_64::{
        __m128i, _mm_castpd_si128, _mm_castsi128_pd, _mm_load_sd, _mm_loadh_pd, _mm_loadl_epi64,
        _mm_movemask_pd, _mm_or_si128, _mm_set1_epi64x, _mm_setzero_si128, _mm_storeu_si128,
        _mm_sub_epi64,
    };

    use super::{Buffer, OwnSlot, Range};

    // A handle is its slot, and as much again that is 0 when it is empty.
    const _: () = assert!(size_of::<OwnSlot>() == size_of::<u64>());
    const _: () = assert!(size_of::<Buffer>() == 2 * size_of::<OwnSlot>());
    const _: () = assert!(std::mem::offset_of!(Buffer, slot) == 0);

    /// # Safety
    /// As for [`super::adopt`], of one.
    #[inline(always)]
    pub unsafe fn adopt(from: *const OwnSlot, to: *mut Buffer) {
        // SAFETY: the caller's; an empty handle is a slot and zeros
        // (`Buffer::new`), and so is the word.
        unsafe { _mm_storeu_si128(to.cast(), _mm_loadl_epi64(from.cast())) };
    }

    /// What [`Range::sign`] says, of many.
    pub struct Signs {
        origin: __m128i,
        last: __m128i,
        signs: __m128i,
    }

    impl Signs {
        #[inline(always)]
        pub fn new(pool: Range) -> Self {
            let word = |number: usize| number.cast_signed() as i64;
            // SAFETY: x86-64 has the instructions.
            unsafe {
                Self {
                    origin: _mm_set1_epi64x(word(pool.origin.addr().get())),
                    last: _mm_set1_epi64x(word(pool.bytes.wrapping_sub(1))),
                    signs: _mm_setzero_si128(),
                }
            }
        }

        /// # Safety
        /// As for [`super::surrender`], of two.
        #[inline(always)]
        pub unsafe fn surrender_two(&mut self, from: *const Buffer, to: *mut OwnSlot) {
            // SAFETY: the caller's; a handle begins with its slot.
            unsafe {
                let first = _mm_load_sd(from.cast());
                let slots = _mm_castpd_si128(_mm_loadh_pd(first, from.add(1).cast()));
                let offset = _mm_sub_epi64(slots, self.origin);
                let sign = _mm_or_si128(offset, _mm_sub_epi64(self.last, offset));
                self.signs = _mm_or_si128(self.signs, sign);
                _mm_storeu_si128(to.cast(), slots);
            }
        }

        #[inline(always)]
        pub fn are_ours(&self) -> bool {
            // SAFETY: x86-64 has the instruction.
            unsafe { _mm_movemask_pd(_mm_castsi128_pd(self.signs)) == 0 }
        }
    }
}

/// The same in the words of every machine.
#[cfg(not(target_arch = "x86_64"))]
mod words {
    use std::ptr;

    use super::{Buffer, OwnSlot, Range};

    /// # Safety
    /// As for [`super::adopt`], of one.
    #[inline(always)]
    pub unsafe fn adopt(from: *const OwnSlot, to: *mut Buffer) {
        // SAFETY: the caller's; the slot is read once.
        unsafe { to.write(Buffer::new(from.read())) };
    }

    /// What [`Range::sign`] says, of many.
    pub struct Signs {
        pool: Range,
        signs: usize,
    }

    impl Signs {
        #[inline(always)]
        pub fn new(pool: Range) -> Self {
            Self { pool, signs: 0 }
        }

        /// # Safety
        /// As for [`super::surrender`], of two.
        #[inline(always)]
        pub unsafe fn surrender_two(&mut self, from: *const Buffer, to: *mut OwnSlot) {
            for at in 0..2 {
                // SAFETY: the caller's; each slot is read once.
                unsafe {
                    let slot = ptr::read(&raw const (*from.add(at)).slot);
                    self.signs |= self.pool.sign(&slot);
                    to.add(at).write(slot);
                }
            }
        }

        #[inline(always)]
        pub fn are_ours(&self) -> bool {
            self.signs.cast_signed() >= 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Buffer, Cache, Pool};

    fn addresses(batch: &Batch) -> Vec<usize> {
        let buffers = batch.packets().iter();
        let address = |buffer: &Buffer| buffer.as_ref().as_ptr().addr();
        buffers.map(address).collect()
    }

    #[test]
    fn bulks_of_all_lengths_come_back_as_they_went() {
        let pool = Pool::new(512, 100).unwrap();
        let mut cache = pool.cache();
        for count in 0..=9 {
            round(&mut cache, count);
        }
    }

    fn round(cache: &mut Cache, count: usize) {
        let mut batch = Batch::new(9);
        assert_eq!(cache.fill(&mut batch, count), count);
        for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
            assert_eq!((buffer.frame().len(), buffer.mark()), (0, 0));
            buffer.set_len(place + 1);
            buffer.set_mark(7);
            buffer.packet_mut().fill(place as u8);
        }
        for (place, buffer) in batch.packets().iter().enumerate() {
            assert_eq!(buffer.packet(), vec![place as u8; place + 1]);
        }
        let before = addresses(&batch);
        cache.clear(&mut batch);
        // The last in are the first out, in the same order.
        cache.fill(&mut batch, count);
        assert_eq!(addresses(&batch), before);
        cache.clear(&mut batch);
    }

    #[test]
    fn one_of_another_pool_is_seen_at_each_place() {
        let pool = Pool::new(512, 100).unwrap();
        let mut cache = pool.cache();
        let mut strange = Pool::new(8, 100).unwrap().cache().take().unwrap();
        for place in 0..9 {
            let mut batch = Batch::new(9);
            cache.fill(&mut batch, 9);
            std::mem::swap(&mut batch.packets_mut()[place], &mut strange);
            let (pool, before) = (cache.pool, cache.stock.len());
            assert!(!batch.surrender(&mut cache.stock, pool));
            assert_eq!((batch.len(), cache.stock.len()), (9, before));
            std::mem::swap(&mut batch.packets_mut()[place], &mut strange);
            cache.clear(&mut batch);
        }
    }
}
