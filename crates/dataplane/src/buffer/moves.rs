//! Slots into handles and handles into slots, a bulk at a time: what a
//! [`super::Cache`] does most.

#![allow(
    unsafe_code,
    reason = "a bulk is moved by words of 16 and 32 bytes, in two thirds of the time"
)]

use std::num::NonZero;
use std::ptr;

use super::Buffer;
use super::slot::{ADDRESS_BITS, OwnSlot};
use super::word::Word;

/// The slots of one pool.
#[derive(Clone, Copy)]
pub struct Range {
    /// See [`OwnSlot::origin`].
    pub origin: NonZero<usize>,
    /// What a handle says that has no packet.
    pub empty: Word,
    /// Whether the processor has AVX2; asked once, so that nothing is kept on
    /// the stack for the asking with every bulk.
    pub is_wide: bool,
}

impl Range {
    /// Whether it is one of them.
    #[inline(always)]
    pub fn has(self, slot: &OwnSlot) -> bool {
        slot.difference(self.origin) >> ADDRESS_BITS == 0
    }

    /// How many of them, from the first on, are in it.
    #[inline(always)]
    pub fn have(self, buffers: &[Buffer]) -> usize {
        let differ = |all, one: &Buffer| all | one.slot.difference(self.origin);
        if buffers.iter().fold(0, differ) >> ADDRESS_BITS == 0 {
            return buffers.len();
        }
        let ours = buffers.iter().take_while(|one| self.has(&one.slot));
        ours.count()
    }
}

/// Whether the processor has AVX2.
pub fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Makes an empty handle of each of `count` slots, in order.
///
/// # Safety
/// `count` slots are at `from`, which the caller gives away; `count` places
/// for handles are at `to`, and are none of those.
#[inline(always)]
pub unsafe fn alloc_bulk(from: *const OwnSlot, to: *mut Buffer, count: usize, pool: Range) {
    #[cfg(target_arch = "x86_64")]
    if pool.is_wide {
        // SAFETY: the caller's; `is_wide` has found AVX2.
        return unsafe { wide::alloc_bulk(from, to, count, pool) };
    }
    // SAFETY: the caller's.
    unsafe { alloc_bulk_narrow(from, to, count, pool) }
}

/// Takes the slots out of `count` handles, in order. Whether all are of the
/// pool; if not, nothing was taken (but `to` written to).
///
/// # Safety
/// `count` handles are at `from`, which the caller gives away if the answer is
/// yes; `count` places for slots are at `to`, and are none of those.
#[inline(always)]
pub unsafe fn free_bulk(from: *const Buffer, to: *mut OwnSlot, count: usize, pool: Range) -> bool {
    #[cfg(target_arch = "x86_64")]
    if pool.is_wide {
        // SAFETY: the caller's; `is_wide` has found AVX2.
        return unsafe { wide::free_bulk(from, to, count, pool) };
    }
    // SAFETY: the caller's.
    unsafe { free_bulk_narrow(from, to, count, pool) }
}

/// [`alloc_bulk`] on any processor.
///
/// # Safety
/// As for [`alloc_bulk`].
#[inline]
unsafe fn alloc_bulk_narrow(from: *const OwnSlot, to: *mut Buffer, count: usize, pool: Range) {
    for at in 0..count {
        // SAFETY: `at` < `count`; each slot is read once.
        unsafe { words::alloc_bulk(from.add(at), to.add(at), pool) };
    }
}

/// [`free_bulk`] on any processor.
///
/// # Safety
/// As for [`free_bulk`].
#[inline]
unsafe fn free_bulk_narrow(
    from: *const Buffer,
    to: *mut OwnSlot,
    count: usize,
    pool: Range,
) -> bool {
    let mut strangers = words::Strangers::new(pool);
    let even = count / 2 * 2;
    for at in (0..even).step_by(2) {
        // SAFETY: `at + 1` < `count`; each slot is read once.
        unsafe { strangers.free_two(from.add(at), to.add(at)) };
    }
    if even == count {
        return strangers.are_none();
    }
    // SAFETY: the last one, read once.
    unsafe {
        let slot = ptr::read(&raw const (*from.add(even)).slot);
        let is_ours = pool.has(&slot);
        to.add(even).write(slot);
        is_ours && strangers.are_none()
    }
}

/// In words of 16 bytes, which every x86-64 has. Slots are read by 8 bytes
/// each all the same: a wider word reaches over more than the slot, and waits
/// for the last writes to packets at the same place of a page (4,096 bytes),
/// as if they were to it.
#[cfg(target_arch = "x86_64")]
mod words {
    use std::arch::x86_64::{
        __m128i, _mm_castpd_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_load_sd, _mm_loadh_pd,
        _mm_loadl_epi64, _mm_or_si128, _mm_set1_epi64x, _mm_setzero_si128, _mm_storeu_si128,
        _mm_unpackhi_epi64, _mm_unpacklo_epi64, _mm_xor_si128,
    };

    use super::{ADDRESS_BITS, Buffer, OwnSlot, Range, Word};

    // A handle is its slot and what is said of its packet.
    const _: () = assert!(size_of::<OwnSlot>() == size_of::<u64>());
    const _: () = assert!(size_of::<Word>() == size_of::<u64>());
    const _: () = assert!(size_of::<Buffer>() == 2 * size_of::<OwnSlot>());
    const _: () = assert!(std::mem::offset_of!(Buffer, slot) == 0);

    /// # Safety
    /// As for [`super::alloc_bulk`], of one.
    #[inline(always)]
    pub unsafe fn alloc_bulk(from: *const OwnSlot, to: *mut Buffer, pool: Range) {
        // SAFETY: the caller's; a handle is a slot and a word
        // (`Buffer::new`), and so is what is stored.
        unsafe {
            let empty = _mm_cvtsi64_si128(pool.empty.0.cast_signed());
            let handle = _mm_unpacklo_epi64(_mm_loadl_epi64(from.cast()), empty);
            _mm_storeu_si128(to.cast(), handle);
        }
    }

    /// What [`Range::have`] sees, of many: where slots differ from the pool's
    /// origin.
    pub struct Strangers {
        origin: __m128i,
        differ: __m128i,
    }

    impl Strangers {
        #[inline(always)]
        pub fn new(pool: Range) -> Self {
            // SAFETY: x86-64 has the instructions.
            unsafe {
                Self {
                    origin: _mm_set1_epi64x(pool.origin.get().cast_signed() as i64),
                    differ: _mm_setzero_si128(),
                }
            }
        }

        /// # Safety
        /// As for [`super::free_bulk`], of two.
        #[inline(always)]
        pub unsafe fn free_two(&mut self, from: *const Buffer, to: *mut OwnSlot) {
            // SAFETY: the caller's; a handle begins with its slot.
            unsafe {
                let first = _mm_load_sd(from.cast());
                let slots = _mm_castpd_si128(_mm_loadh_pd(first, from.add(1).cast()));
                self.differ = _mm_or_si128(self.differ, _mm_xor_si128(slots, self.origin));
                _mm_storeu_si128(to.cast(), slots);
            }
        }

        #[inline(always)]
        pub fn are_none(&self) -> bool {
            // SAFETY: x86-64 has the instructions.
            unsafe {
                let both = _mm_or_si128(self.differ, _mm_unpackhi_epi64(self.differ, self.differ));
                _mm_cvtsi128_si64(both).cast_unsigned() >> ADDRESS_BITS == 0
            }
        }
    }
}

/// The same with AVX2, written by words of 32 bytes: a core stores one word a
/// cycle, whatever its length, so this is half the stores. From the stock two
/// slots are read at a time; out of handles each is read by itself, because
/// what is said of its packet may have been written a moment ago, and a word
/// over both would wait for that.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_castpd_si128, _mm_cvtsi128_si64, _mm_load_sd, _mm_loadh_pd,
        _mm_loadu_si128, _mm_or_si128, _mm_unpackhi_epi64, _mm256_castsi128_si256,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_or_si256,
        _mm256_permute4x64_epi64, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
        _mm256_unpacklo_epi64, _mm256_xor_si256,
    };
    use std::ptr;

    use super::{ADDRESS_BITS, Buffer, OwnSlot, Range, words};

    /// # Safety
    /// As for [`super::alloc_bulk`].
    #[target_feature(enable = "avx2")]
    pub unsafe fn alloc_bulk(from: *const OwnSlot, to: *mut Buffer, count: usize, pool: Range) {
        let empty = _mm256_set1_epi64x(pool.empty.0.cast_signed());
        let fours = count / 4 * 4;
        for at in (0..fours).step_by(4) {
            // SAFETY: `at + 3` < `count`; each slot is read once.
            unsafe {
                let low = handles(_mm_loadu_si128(from.add(at).cast()), empty);
                let high = handles(_mm_loadu_si128(from.add(at + 2).cast()), empty);
                _mm256_storeu_si256(to.add(at).cast(), low);
                _mm256_storeu_si256(to.add(at + 2).cast(), high);
            }
        }
        for at in fours..count {
            // SAFETY: `at` < `count`; each slot is read once.
            unsafe { words::alloc_bulk(from.add(at), to.add(at), pool) };
        }
    }

    /// Two empty handles: each slot and the empty word. (Shuffled as one
    /// word: two halves put together are stored one by one by the compiler.)
    #[target_feature(enable = "avx2")]
    fn handles(slots: __m128i, empty: __m256i) -> __m256i {
        let apart = _mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(slots));
        _mm256_unpacklo_epi64(apart, empty)
    }

    /// # Safety
    /// As for [`super::free_bulk`].
    #[target_feature(enable = "avx2")]
    pub unsafe fn free_bulk(
        from: *const Buffer,
        to: *mut OwnSlot,
        count: usize,
        pool: Range,
    ) -> bool {
        let origin = _mm256_set1_epi64x(pool.origin.get().cast_signed() as i64);
        let mut differ = _mm256_setzero_si256();
        let fours = count / 4 * 4;
        for at in (0..fours).step_by(4) {
            // SAFETY: `at + 3` < `count`; each slot is read once.
            unsafe {
                let low = _mm256_castsi128_si256(two(from.add(at)));
                let slots = _mm256_inserti128_si256::<1>(low, two(from.add(at + 2)));
                differ = _mm256_or_si256(differ, _mm256_xor_si256(slots, origin));
                _mm256_storeu_si256(to.add(at).cast(), slots);
            }
        }
        let mut are_ours = any(differ) >> ADDRESS_BITS == 0;
        // At most three more: of a loop the compiler would make a wide one.
        for at in [fours, fours + 1, fours + 2] {
            if at < count {
                // SAFETY: `at` < `count`; each slot is read once.
                let slot = unsafe { ptr::read(&raw const (*from.add(at)).slot) };
                are_ours &= pool.has(&slot);
                // SAFETY: as above.
                unsafe { to.add(at).write(slot) };
            }
        }
        are_ours
    }

    /// The bits that are in any of four words.
    #[target_feature(enable = "avx2")]
    fn any(words: __m256i) -> u64 {
        let two = _mm_or_si128(
            _mm256_castsi256_si128(words),
            _mm256_extracti128_si256::<1>(words),
        );
        let one = _mm_or_si128(two, _mm_unpackhi_epi64(two, two));
        _mm_cvtsi128_si64(one).cast_unsigned()
    }

    /// The slots of two handles.
    ///
    /// # Safety
    /// Two handles are at `from`.
    #[target_feature(enable = "avx2")]
    unsafe fn two(from: *const Buffer) -> __m128i {
        // SAFETY: the caller's; a handle begins with its slot.
        unsafe {
            let first = _mm_load_sd(from.cast());
            _mm_castpd_si128(_mm_loadh_pd(first, from.add(1).cast()))
        }
    }
}

/// The same in the words of every machine.
#[cfg(not(target_arch = "x86_64"))]
mod words {
    use std::ptr;

    use super::{ADDRESS_BITS, Buffer, OwnSlot, Range};

    /// # Safety
    /// As for [`super::alloc_bulk`], of one.
    #[inline(always)]
    pub unsafe fn alloc_bulk(from: *const OwnSlot, to: *mut Buffer, pool: Range) {
        // SAFETY: the caller's; the slot is read once.
        unsafe { to.write(Buffer::new(from.read(), pool.empty)) };
    }

    /// What [`Range::have`] sees, of many.
    pub struct Strangers {
        pool: Range,
        differ: usize,
    }

    impl Strangers {
        #[inline(always)]
        pub fn new(pool: Range) -> Self {
            Self { pool, differ: 0 }
        }

        /// # Safety
        /// As for [`super::free_bulk`], of two.
        #[inline(always)]
        pub unsafe fn free_two(&mut self, from: *const Buffer, to: *mut OwnSlot) {
            for at in 0..2 {
                // SAFETY: the caller's; each slot is read once.
                unsafe {
                    let slot = ptr::read(&raw const (*from.add(at)).slot);
                    self.differ |= slot.difference(self.pool.origin);
                    to.add(at).write(slot);
                }
            }
        }

        #[inline(always)]
        pub fn are_none(&self) -> bool {
            self.differ >> ADDRESS_BITS == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::super::{Batch, Buffer, Cache, Pool};
    use super::{OwnSlot, Range, alloc_bulk, alloc_bulk_narrow, free_bulk, free_bulk_narrow};

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
            assert!(!batch.free_bulk(&mut cache.stock, pool));
            assert_eq!((batch.len(), cache.stock.len()), (9, before));
            std::mem::swap(&mut batch.packets_mut()[place], &mut strange);
            cache.clear(&mut batch);
        }
    }

    /// What `free_bulk` and its narrow path say and write of some handles.
    fn taken_back(from: &[MaybeUninit<Buffer>], pool: Range) -> [(bool, Vec<usize>); 2] {
        let count = from.len();
        let handles = from.as_ptr().cast();
        [true, false].map(|is_narrow| {
            let mut to: Vec<MaybeUninit<OwnSlot>> = Vec::new();
            to.resize_with(count, MaybeUninit::uninit);
            let places = to.as_mut_ptr().cast();
            // SAFETY: `count` handles are there, and places for their slots;
            // neither are used as owners, here or there.
            let are_ours = unsafe {
                match is_narrow {
                    true => free_bulk_narrow(handles, places, count, pool),
                    false => free_bulk(handles, places, count, pool),
                }
            };
            // SAFETY: all are written to, whatever the answer.
            let slots = to.iter().map(|slot| unsafe { slot.assume_init_ref() });
            (
                are_ours,
                slots.map(|slot| slot.offset(pool.origin)).collect(),
            )
        })
    }

    #[test]
    fn all_processors_move_alike() {
        let pool = Pool::new(512, 100).unwrap();
        let (other, mut cache) = (Pool::new(8, 100).unwrap(), pool.cache());
        let first = cache.take().unwrap();
        cache.give(first);
        for count in 0..=9 {
            let from = cache.stock.as_ptr();
            let paths = [true, false].map(|is_narrow| {
                let mut to: Vec<MaybeUninit<Buffer>> = Vec::new();
                to.resize_with(count, MaybeUninit::uninit);
                let places = to.as_mut_ptr().cast();
                // SAFETY: the stock has more slots; the handles made of them
                // are never dropped.
                unsafe {
                    match is_narrow {
                        true => alloc_bulk_narrow(from, places, count, cache.pool),
                        false => alloc_bulk(from, places, count, cache.pool),
                    }
                }
                to
            });
            let offsets = cache.stock.iter().take(count);
            let offsets: Vec<usize> = offsets.map(|slot| slot.offset(cache.pool.origin)).collect();
            for to in &paths {
                // SAFETY: all are written to.
                let handles = to.iter().map(|one| unsafe { one.assume_init_ref() });
                assert!(
                    handles
                        .into_iter()
                        .all(|one| one.mark() == 0 && one.frame().is_empty())
                );
                for (are_ours, slots) in taken_back(to, cache.pool) {
                    assert_eq!((are_ours, &slots), (true, &offsets));
                }
                for (are_ours, _) in taken_back(to, other.range()) {
                    assert_eq!(are_ours, count == 0);
                }
            }
        }
    }
}
