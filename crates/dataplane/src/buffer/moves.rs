//! Slots into handles and handles into slots, a bulk at a time, in words as
//! wide as the machine has: what a [`super::Cache`] does most.

#![allow(
    unsafe_code,
    reason = "a bulk is moved by wide words, in half the time"
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

/// How bulks are moved, chosen once.
#[derive(Clone, Copy)]
pub struct Moves {
    has_avx512: bool,
}

impl Moves {
    /// The best of this machine. O(1).
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_avx512 =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
        #[cfg(not(target_arch = "x86_64"))]
        let has_avx512 = false;
        Self { has_avx512 }
    }

    /// Those of every machine.
    #[cfg(test)]
    pub fn portable() -> Self {
        Self { has_avx512: false }
    }

    /// Makes an empty handle of each of `count` slots, in order.
    ///
    /// # Safety
    /// `count` slots are at `from`, which the caller gives away; `count`
    /// places for handles are at `to`, and are none of those.
    #[inline(always)]
    pub unsafe fn adopt(self, from: *const OwnSlot, to: *mut Buffer, count: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx512 {
            // SAFETY: the machine has the instructions; the rest is the
            // caller's.
            return unsafe { avx512::adopt(from, to, count) };
        }
        // SAFETY: the caller's.
        unsafe { adopt(from, to, count) }
    }

    /// Takes the slots out of `count` handles, in order. Whether all are of
    /// the pool; if not, nothing was taken (but `to` written to).
    ///
    /// # Safety
    /// `count` handles are at `from`, which the caller gives away if the
    /// answer is yes; `count` places for slots are at `to`, and are none of
    /// those.
    #[inline(always)]
    pub unsafe fn surrender(
        self,
        from: *const Buffer,
        to: *mut OwnSlot,
        count: usize,
        pool: Range,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx512 {
            // SAFETY: the machine has the instructions; the rest is the
            // caller's.
            return unsafe { avx512::surrender(from, to, count, pool) };
        }
        // SAFETY: the caller's.
        unsafe { surrender(from, to, count, pool) }
    }
}

/// # Safety
/// As for [`Moves::adopt`].
#[inline(always)]
unsafe fn adopt(from: *const OwnSlot, to: *mut Buffer, count: usize) {
    for at in 0..count {
        // SAFETY: `at` < `count`; each slot is read once.
        unsafe { to.add(at).write(Buffer::new(from.add(at).read())) };
    }
}

/// # Safety
/// As for [`Moves::surrender`].
#[inline(always)]
unsafe fn surrender(from: *const Buffer, to: *mut OwnSlot, count: usize, pool: Range) -> bool {
    let mut signs = 0;
    for at in 0..count {
        // SAFETY: `at` < `count`; each slot is read once.
        unsafe {
            let slot = ptr::read(&raw const (*from.add(at)).slot);
            signs |= pool.sign(&slot);
            to.add(at).write(slot);
        }
    }
    signs.cast_signed() >= 0
}

/// The same in words of 64 bytes.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, _mm_castpd_si128, _mm_load_sd, _mm_loadh_pd, _mm256_set_m128i,
        _mm512_castsi256_si512, _mm512_inserti64x4, _mm512_loadu_si512,
        _mm512_maskz_permutexvar_epi64, _mm512_movepi64_mask, _mm512_or_si512, _mm512_set1_epi64,
        _mm512_setr_epi64, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_sub_epi64,
    };

    use super::{Buffer, OwnSlot, Range};

    /// Slots in a word, and handles in half of two.
    const WORD: usize = 8;
    const HALF: usize = WORD / 2;

    // A handle is its slot, and as much again that is 0 when it is empty.
    const _: () = assert!(size_of::<OwnSlot>() == size_of::<u64>());
    const _: () = assert!(size_of::<Buffer>() == 2 * size_of::<OwnSlot>());
    const _: () = assert!(std::mem::offset_of!(Buffer, slot) == 0);

    /// # Safety
    /// As for [`super::Moves::adopt`].
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn adopt(from: *const OwnSlot, to: *mut Buffer, count: usize) {
        /// Every other place, the others are 0.
        const SLOTS: u8 = 0b0101_0101;
        let low = _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0);
        let high = _mm512_setr_epi64(4, 0, 5, 0, 6, 0, 7, 0);
        let whole = count - count % WORD;
        for at in (0..whole).step_by(WORD) {
            // SAFETY: `at + WORD` <= `count`, for both; an empty handle is
            // a slot and zeros (`Buffer::new`).
            unsafe {
                let slots = _mm512_loadu_si512(from.add(at).cast());
                let first = _mm512_maskz_permutexvar_epi64(SLOTS, low, slots);
                let second = _mm512_maskz_permutexvar_epi64(SLOTS, high, slots);
                _mm512_storeu_si512(to.add(at).cast(), first);
                _mm512_storeu_si512(to.add(at + HALF).cast(), second);
            }
        }
        // SAFETY: the rest of what the caller gives.
        unsafe { super::adopt(from.add(whole), to.add(whole), count - whole) };
    }

    /// The slots of two handles. By themselves, not by a word over both: one
    /// that reaches over more would wait for the last writes to packets at the
    /// same place of a page (4,096 bytes), as if they were to these handles.
    ///
    /// # Safety
    /// Two handles are at `from`.
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn pair(from: *const Buffer) -> __m128i {
        // SAFETY: the caller's; a handle begins with its slot.
        unsafe {
            let first = _mm_load_sd(from.cast());
            _mm_castpd_si128(_mm_loadh_pd(first, from.add(1).cast()))
        }
    }

    /// # Safety
    /// As for [`super::Moves::surrender`].
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn surrender(
        from: *const Buffer,
        to: *mut OwnSlot,
        count: usize,
        pool: Range,
    ) -> bool {
        let origin = _mm512_set1_epi64(pool.origin.addr().get().cast_signed() as i64);
        let last = _mm512_set1_epi64(pool.bytes.wrapping_sub(1).cast_signed() as i64);
        let mut signs = _mm512_setzero_si512();
        let whole = count - count % WORD;
        for at in (0..whole).step_by(WORD) {
            // SAFETY: `at + WORD` <= `count`, for both; each slot is read
            // once.
            unsafe {
                let handles = from.add(at);
                let low = _mm256_set_m128i(pair(handles.add(2)), pair(handles));
                let high = _mm256_set_m128i(pair(handles.add(6)), pair(handles.add(4)));
                let slots = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
                let offset = _mm512_sub_epi64(slots, origin);
                let sign = _mm512_or_si512(offset, _mm512_sub_epi64(last, offset));
                signs = _mm512_or_si512(signs, sign);
                _mm512_storeu_si512(to.add(at).cast(), slots);
            }
        }
        // SAFETY: the rest of what the caller gives.
        let rest = unsafe { super::surrender(from.add(whole), to.add(whole), count - whole, pool) };
        rest && _mm512_movepi64_mask(signs) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Cache, Pool};
    use super::*;

    /// Buffers through both ways of moving, all lengths to three words.
    #[test]
    fn wide_words_move_what_narrow_ones_do() {
        let pool = Pool::new(512, 100).unwrap();
        let other = Pool::new(64, 100).unwrap().cache().take().unwrap();
        let mut cache = pool.cache();
        for moves in [Moves::best(), Moves::portable()] {
            cache.moves = moves;
            for count in 0..=24 {
                round(&mut cache, count);
            }
        }
        // One of another pool among them, at each place.
        let mut strange = Some(other);
        for moves in [Moves::best(), Moves::portable()] {
            cache.moves = moves;
            for place in 0..24 {
                let mut batch = Batch::new(24);
                cache.fill(&mut batch, 24);
                cache.give(std::mem::replace(
                    &mut batch.packets_mut()[place],
                    strange.take().unwrap(),
                ));
                let (pool, before) = (cache.pool, cache.stock.len());
                assert!(!batch.surrender(&mut cache.stock, pool, moves));
                assert_eq!((batch.len(), cache.stock.len()), (24, before));
                let last = cache.take().unwrap();
                strange = Some(std::mem::replace(&mut batch.packets_mut()[place], last));
                cache.clear(&mut batch);
            }
        }
    }

    fn round(cache: &mut Cache, count: usize) {
        let mut batch = Batch::new(24);
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
        let addresses = |batch: &Batch| -> Vec<usize> {
            let buffers = batch.packets().iter();
            buffers
                .map(|buffer| buffer.as_ref().as_ptr().addr())
                .collect()
        };
        let before = addresses(&batch);
        cache.clear(&mut batch);
        // The last in are the first out, in the same order.
        cache.fill(&mut batch, count);
        assert_eq!(addresses(&batch), before);
        cache.clear(&mut batch);
    }
}
