//! The readers' side: groups of 64 in passes, each of which asks for the
//! lines that the next one reads; a group that the first slots answer ends
//! there.

#![allow(
    unsafe_code,
    reason = "records are read without bounds checks, and instructions chosen at the start"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use memory::prefetch_at;

use super::{BLOCK, MOST_ANSWER, TOP_BITS};
use crate::Path;
use crate::keys::{FIRST, HEAD, Head, NARROW_KEYS, WIDE, WIDE_KEYS};
use crate::node::DEEP;
use crate::store::Table;

/// Addresses that are looked up together.
const GROUP: usize = 64;
/// Addresses whose answers are put together in registers.
const TOGETHER: usize = 16;

/// Looks up all addresses.
///
/// # Safety
/// The table is an IPv6 table, within a section of its domain, and the
/// processor has the path's instructions.
#[inline]
pub unsafe fn lookup(table: Table<'_>, path: Path, addresses: &[u128], next_hops: &mut [u16]) {
    let table = Within(table);
    match path {
        Path::Portable => all(table, addresses, next_hops, Portable),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has these instructions, says the caller.
        Path::Avx2 => unsafe { x86::all_avx2(table, addresses, next_hops) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Path::Avx512 => unsafe { x86::all_avx512(table, addresses, next_hops) },
        #[cfg(not(target_arch = "x86_64"))]
        Path::Avx2 | Path::Avx512 => all(table, addresses, next_hops, Portable),
    }
}

/// An IPv6 table within a section of its domain. Made by [`lookup`] alone.
#[derive(Clone, Copy)]
struct Within<'a>(Table<'a>);

impl Within<'_> {
    /// What the slot of an address's /16 says.
    #[inline(always)]
    fn top(self, address: u128) -> u32 {
        let at = (address >> (128 - TOP_BITS)) as usize;
        // SAFETY: there are as many slots as the first bits have values.
        let top = unsafe { self.0.slots.get_unchecked(at) };
        // With the slot's value comes what it leads to.
        top.load(Ordering::Acquire)
    }

    /// Where the slot of an address's /32 lies, by what the slot of its /16
    /// said; where that is an answer, a place that says 0.
    #[inline(always)]
    fn slot_of(self, entry: u32, address: u128) -> u32 {
        let at = (address >> (128 - FIRST)) as u32 % BLOCK as u32;
        if entry > MOST_ANSWER {
            entry + 4 * at
        } else {
            0
        }
    }

    /// What the slot of a /32 says.
    ///
    /// # Safety
    /// [`Within::slot_of`] said so within this section.
    #[inline(always)]
    unsafe fn slot(self, offset: u32) -> u32 {
        // SAFETY: a slot of the first kind leads to a block of slots,
        // aligned, which stays within this section; it and the zeros at the
        // arena's start are looked at as atomics.
        let slot = unsafe { &*self.place(offset).cast::<AtomicU32>() };
        slot.load(Ordering::Acquire)
    }

    /// Where a place lies.
    #[inline(always)]
    fn place(self, offset: u32) -> *const u8 {
        self.0.place(offset)
    }
}

/// What processors have different instructions for: sixteen addresses
/// together, and the keys of a node.
trait Steps: Copy {
    /// What the slots of the addresses' /16s say, and those of it that are
    /// answers, 0 where it is none; a bit for each that is none.
    #[inline(always)]
    fn tops(
        self,
        table: Within<'_>,
        addresses: &[u128; TOGETHER],
        entries: &mut [u32; TOGETHER],
        answers: &mut [u16; TOGETHER],
    ) -> u64 {
        let mut left = 0;
        for at in 0..TOGETHER {
            let entry = table.top(addresses[at]);
            entries[at] = entry;
            answers[at] = answer(entry);
            left |= u64::from(entry > MOST_ANSWER) << at;
        }
        left
    }

    /// Adds to the answers what the slots of the addresses' /32s said, or
    /// the leaf found in the node that it leads to; a bit for each that is
    /// no answer yet.
    ///
    /// # Safety
    /// Slots said this within this section, or it is 0.
    #[inline(always)]
    unsafe fn leaves(
        self,
        table: Within<'_>,
        addresses: &[u128; TOGETHER],
        entries: &[u32; TOGETHER],
        answers: &mut [u16; TOGETHER],
    ) -> u64 {
        let mut deep = 0;
        for at in 0..TOGETHER {
            // SAFETY: an entry leads to a node, or is so small that it leads
            // to the zeros before all nodes.
            let leaf = unsafe { first_leaf(table, entries[at], addresses[at], self) };
            answers[at] |= leaf | answer(entries[at]);
            deep |= u64::from(leaf >> 15) << at;
        }
        deep
    }

    /// How many of a narrow node's keys are not above a window. Such a node
    /// lies there and stays, or zeros do; it need not be aligned.
    fn not_above(self, node: *const u8, window: u16) -> usize;
}

/// Looks up all addresses, a group at a time, and those that are too few
/// one by one.
#[inline(always)]
fn all(table: Within<'_>, addresses: &[u128], next_hops: &mut [u16], steps: impl Steps) {
    let (blocks, rest) = addresses.as_chunks::<TOGETHER>();
    let (answers, rest_answers) = next_hops.as_chunks_mut::<TOGETHER>();
    let groups = blocks.chunks(GROUP / TOGETHER);
    for (addresses, answers) in groups.zip(answers.chunks_mut(GROUP / TOGETHER)) {
        group(table, addresses, answers, steps);
    }
    for (address, answer) in rest.iter().zip(rest_answers) {
        let mut entry = table.top(*address);
        if entry > MOST_ANSWER {
            // SAFETY: the slot of the /16 said this just now.
            entry = unsafe { table.slot(table.slot_of(entry, *address)) };
        }
        *answer = entry as u16;
        if entry > MOST_ANSWER {
            // SAFETY: a slot led to this node within this section.
            *answer = unsafe {
                let leaf = first_leaf(table, entry, *address, steps);
                follow(table.place(entry), *address, leaf, steps)
            };
        }
    }
}

/// The passes over a group, each of which asks for the lines that the next
/// one reads. All of them go over all addresses, also those that have their
/// answer, for whom zeros lie where they look: how often a loop runs is then
/// foreseen.
#[inline(always)]
fn group(
    table: Within<'_>,
    addresses: &[[u128; TOGETHER]],
    answers: &mut [[u16; TOGETHER]],
    steps: impl Steps,
) {
    let mut entries = [[0; TOGETHER]; GROUP / TOGETHER];
    let mut left = 0;
    for ((addresses, entries), answers) in addresses.iter().zip(&mut entries).zip(&mut *answers) {
        left |= steps.tops(table, addresses, entries, answers);
    }
    if left == 0 {
        return;
    }
    for (addresses, entries) in addresses.iter().zip(&mut entries) {
        for (address, entry) in addresses.iter().zip(entries) {
            *entry = table.slot_of(*entry, *address);
            prefetch_at(table.place(*entry));
        }
    }
    for (_, entries) in addresses.iter().zip(&mut entries) {
        for entry in entries {
            // SAFETY: the pass before put there what `slot_of` said.
            *entry = unsafe { table.slot(*entry) };
            prefetch_at(table.place(*entry));
        }
    }
    let mut deep = 0;
    for (at, (addresses, entries)) in addresses.iter().zip(&entries).enumerate() {
        // SAFETY: the slots said this just before.
        let bits = unsafe { steps.leaves(table, addresses, entries, &mut answers[at]) };
        deep |= bits << (at * TOGETHER);
    }
    let (addresses, entries) = (addresses.as_flattened(), entries.as_flattened());
    let answers = answers.as_flattened_mut();
    let mut ahead = deep;
    while ahead != 0 {
        let at = ahead.trailing_zeros() as usize;
        ahead &= ahead - 1;
        // SAFETY: as below.
        unsafe {
            let node = table.place(*entries.get_unchecked(at));
            prefetch_at(next(node, *answers.get_unchecked(at)));
        }
    }
    while deep != 0 {
        let at = deep.trailing_zeros() as usize;
        deep &= deep - 1;
        // SAFETY: there is a bit for each address at most; a slot led to
        // this node within this section, and this is a leaf of it.
        unsafe {
            let node = table.place(*entries.get_unchecked(at));
            let answer = answers.get_unchecked_mut(at);
            *answer = follow(node, *addresses.get_unchecked(at), *answer, steps);
        }
    }
}

/// Where a leaf of a node leads.
///
/// # Safety
/// The node lies there and stays, and has such a leaf that is no answer.
#[inline(always)]
unsafe fn next(node: *const u8, leaf: u16) -> *const u8 {
    // SAFETY: a node ends with its head, and its leaf says how far behind
    // its start the next one lies (`keys`).
    unsafe {
        let head = Head(node.add(HEAD).cast::<u16>().read());
        node.add(head.distance(leaf))
    }
}

/// From a leaf of a node to the answer.
///
/// # Safety
/// The node lies there and stays, and has such a leaf.
#[inline(always)]
unsafe fn follow(node: *const u8, address: u128, leaf: u16, steps: impl Steps) -> u16 {
    let (mut node, mut leaf) = (node, leaf);
    while leaf & DEEP != 0 {
        // SAFETY: a leaf leads to a node, which stays as long.
        leaf = unsafe {
            node = next(node, leaf);
            match Head(node.add(HEAD).cast::<u16>().read()).window() {
                WIDE => wide(node, address as u64),
                which => narrow(node, (address >> (80 - 16 * which)) as u16, steps),
            }
        };
    }
    leaf
}

/// The leaf of an address in the node that the slot of its /32 leads to.
///
/// # Safety
/// The slot said so within this section, or an answer, or 0.
#[inline(always)]
unsafe fn first_leaf(table: Within<'_>, entry: u32, address: u128, steps: impl Steps) -> u16 {
    // SAFETY: a node lies there and stays, or the zeros before all nodes.
    unsafe { narrow(table.place(entry), (address >> 80) as u16, steps) }
}

/// The leaf of a window's value in a node whose window has 16 bits.
///
/// # Safety
/// Such a node lies there and stays, or zeros do.
#[inline(always)]
unsafe fn narrow(node: *const u8, window: u16, steps: impl Steps) -> u16 {
    let at = steps.not_above(node, window);
    // SAFETY: behind the keys lies a leaf more than keys.
    unsafe {
        node.add(2 * NARROW_KEYS)
            .cast::<u16>()
            .add(at)
            .read_unaligned()
    }
}

/// The leaf of a window's value in a node whose window has 64 bits.
///
/// # Safety
/// Such a node lies there and stays.
#[inline(always)]
unsafe fn wide(node: *const u8, window: u64) -> u16 {
    // SAFETY: a node begins with its keys, aligned, and behind them lies a
    // leaf more than keys.
    unsafe {
        let keys = node.cast::<[u64; WIDE_KEYS]>().read();
        let at = keys.iter().filter(|key| **key <= window).count();
        node.add(8 * WIDE_KEYS).cast::<u16>().add(at).read()
    }
}

/// What a slot says, where it is an answer; else 0.
#[inline(always)]
fn answer(entry: u32) -> u16 {
    if entry > MOST_ANSWER { 0 } else { entry as u16 }
}

#[derive(Clone, Copy)]
struct Portable;

impl Steps for Portable {
    #[inline(always)]
    fn not_above(self, node: *const u8, window: u16) -> usize {
        // SAFETY: a narrow node begins with its keys.
        let keys = unsafe { node.cast::<[u16; NARROW_KEYS]>().read_unaligned() };
        keys.iter().filter(|key| **key <= window).count()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_insert_epi16, _mm_setzero_si128, _mm256_castsi128_si256, _mm256_cmpeq_epi16,
        _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_mask_cmple_epu16_mask,
        _mm256_min_epu16, _mm256_movemask_epi8, _mm256_movepi16_mask, _mm256_or_si256,
        _mm256_set1_epi16, _mm256_storeu_si256, _mm512_cmple_epu32_mask, _mm512_loadu_si512,
        _mm512_maskz_cvtepi32_epi16, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_storeu_si512,
    };

    use super::{MOST_ANSWER, NARROW_KEYS, Steps, TOGETHER, Within, all, first_leaf};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn all_avx2(table: Within<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, Avx2);
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vl")]
    pub fn all_avx512(table: Within<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, Avx512);
    }

    /// Made where the processor has the instructions only.
    #[derive(Clone, Copy)]
    struct Avx2;

    impl Steps for Avx2 {
        #[inline(always)]
        fn not_above(self, node: *const u8, window: u16) -> usize {
            // SAFETY: the processor has AVX2 and POPCNT where this is made;
            // a node is a line.
            unsafe {
                let keys = _mm256_loadu_si256(node.cast());
                let window = _mm256_set1_epi16(window.cast_signed());
                let below = _mm256_cmpeq_epi16(_mm256_min_epu16(keys, window), keys);
                // Two bits a key, and the last lane is a leaf.
                let below = _mm256_movemask_epi8(below) & ((1 << (2 * NARROW_KEYS)) - 1);
                below.count_ones() as usize / 2
            }
        }
    }

    /// The leaves of eight addresses.
    ///
    /// # Safety
    /// As for `Steps::leaves`.
    #[inline(always)]
    unsafe fn eight(
        table: Within<'_>,
        addresses: &[u128; TOGETHER],
        entries: &[u32; TOGETHER],
        from: usize,
        steps: impl Steps,
    ) -> __m128i {
        // SAFETY: an entry leads to a node, or is so small that it leads to
        // the zeros before all nodes.
        unsafe {
            let mut eight = _mm_setzero_si128();
            macro_rules! insert {
                ($($at:literal)*) => {$(
                    let at = from + $at;
                    let leaf = first_leaf(table, entries[at], addresses[at], steps);
                    eight = _mm_insert_epi16::<$at>(eight, leaf.into());
                )*};
            }
            insert!(0 1 2 3 4 5 6 7);
            eight
        }
    }

    /// Made where the processor has the instructions only.
    #[derive(Clone, Copy)]
    struct Avx512;

    impl Steps for Avx512 {
        #[inline(always)]
        fn tops(
            self,
            table: Within<'_>,
            addresses: &[u128; TOGETHER],
            entries: &mut [u32; TOGETHER],
            answers: &mut [u16; TOGETHER],
        ) -> u64 {
            let top = |at: usize| table.top(addresses[at]).cast_signed();
            // SAFETY: the processor has AVX-512 where this is made; both
            // arrays have room for sixteen.
            unsafe {
                let said = _mm512_setr_epi32(
                    top(0),
                    top(1),
                    top(2),
                    top(3),
                    top(4),
                    top(5),
                    top(6),
                    top(7),
                    top(8),
                    top(9),
                    top(10),
                    top(11),
                    top(12),
                    top(13),
                    top(14),
                    top(15),
                );
                let most = _mm512_set1_epi32(MOST_ANSWER.cast_signed());
                let are = _mm512_cmple_epu32_mask(said, most);
                _mm512_storeu_si512(entries.as_mut_ptr().cast(), said);
                let found = _mm512_maskz_cvtepi32_epi16(are, said);
                _mm256_storeu_si256(answers.as_mut_ptr().cast(), found);
                u64::from(!are)
            }
        }

        #[inline(always)]
        unsafe fn leaves(
            self,
            table: Within<'_>,
            addresses: &[u128; TOGETHER],
            entries: &[u32; TOGETHER],
            answers: &mut [u16; TOGETHER],
        ) -> u64 {
            // SAFETY: the processor has AVX-512 where this is made; both
            // arrays have sixteen.
            unsafe {
                let found = _mm256_castsi128_si256(eight(table, addresses, entries, 0, self));
                let found =
                    _mm256_inserti128_si256::<1>(found, eight(table, addresses, entries, 8, self));
                let said = _mm512_loadu_si512(entries.as_ptr().cast());
                let most = _mm512_set1_epi32(MOST_ANSWER.cast_signed());
                let are = _mm512_cmple_epu32_mask(said, most);
                let hops = _mm512_maskz_cvtepi32_epi16(are, said);
                let before = _mm256_loadu_si256(answers.as_ptr().cast());
                let after = _mm256_or_si256(_mm256_or_si256(before, hops), found);
                _mm256_storeu_si256(answers.as_mut_ptr().cast(), after);
                u64::from(_mm256_movepi16_mask(found))
            }
        }

        #[inline(always)]
        fn not_above(self, node: *const u8, window: u16) -> usize {
            // SAFETY: the processor has AVX-512 and POPCNT where this is
            // made; a node is a line.
            unsafe {
                let keys = _mm256_loadu_si256(node.cast());
                let window = _mm256_set1_epi16(window.cast_signed());
                let is_key = (1 << NARROW_KEYS) - 1;
                _mm256_mask_cmple_epu16_mask(is_key, keys, window).count_ones() as usize
            }
        }
    }
}
