//! The readers' side: batches of 64 in passes, each of which asks for the
//! lines that the next one reads.

#![allow(
    unsafe_code,
    reason = "records are read without bounds checks, and instructions chosen at the start"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memory::quiescent::Section;
use memory::{alone, prefetch_at};

use super::{BLOCK, TOP_BITS};
use crate::Path;
use crate::keys::{FIRST, Head};
use crate::node::DEEP;
use crate::store::{Shared, UNIT};

/// Addresses that are looked up together.
const GROUP: usize = 64;

/// The readers' end of an IPv6 table. A clone for each worker; all see the
/// same table.
#[derive(Debug, Clone)]
pub struct Reader6 {
    shared: Arc<Shared>,
    path: Path,
}

impl Reader6 {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            path: Path::best(),
        }
    }

    /// The same reader with other instructions; `None` where the machine
    /// lacks them. For tests and measurements.
    pub fn with_path(&self, path: Path) -> Option<Self> {
        path.is_here().then(|| Self {
            shared: Arc::clone(&self.shared),
            path,
        })
    }

    /// The instructions it uses.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The next hop of the longest prefix that holds each address, or 0
    /// where none does. Addresses are numbers in host order; the shorter of
    /// the two slices counts. A section of another domain finds nothing.
    ///
    /// Each answer is that of the table at some moment of the call. Some 5
    /// ns an address in batches of 64 and more, and as much again for each
    /// 32 bits after the 64th that prefixes tell apart there; writes nothing
    /// shared, allocates nothing, waits for nothing.
    #[inline]
    pub fn lookup(&self, section: &Section<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        let n = addresses.len().min(next_hops.len());
        let (addresses, next_hops) = (&addresses[..n], &mut next_hops[..n]);
        if !section.is_of(self.shared.domain()) {
            next_hops.fill(0);
            return;
        }
        let table = Table {
            slots: self.shared.slots(),
            arena: self.shared.arena(),
        };
        match self.path {
            Path::Portable => all(table, addresses, next_hops, not_above_portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: such a path is only made where `is_here` says so.
            Path::Avx2 => unsafe { x86::all_avx2(table, addresses, next_hops) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Path::Avx512 => unsafe { x86::all_avx512(table, addresses, next_hops) },
            #[cfg(not(target_arch = "x86_64"))]
            Path::Avx2 | Path::Avx512 => all(table, addresses, next_hops, not_above_portable),
        }
    }
}

/// Where to look. Made by [`Reader6::lookup`] alone, within a section.
#[derive(Clone, Copy)]
struct Table<'a> {
    slots: &'a [AtomicU32],
    arena: *const u8,
}

impl Table<'_> {
    /// The slot of an address within its block.
    #[inline(always)]
    fn slot(&self, address: u128) -> &AtomicU32 {
        let high = alone((address >> 64) as u64);
        // SAFETY: there are as many slots as the first bits have values.
        let top = unsafe { self.slots.get_unchecked((high >> (64 - TOP_BITS)) as usize) };
        let block = self.record(top.load(Ordering::Acquire)).cast::<AtomicU32>();
        let at = (high >> (64 - FIRST)) as usize % BLOCK;
        // SAFETY: a slot of the first kind leads to a block of `BLOCK`
        // slots, aligned, which stays within this section; they are looked
        // at as atomics only.
        unsafe { &*block.add(at) }
    }

    /// A record's first byte.
    #[inline(always)]
    fn record(&self, unit: u32) -> *const u8 {
        self.arena.wrapping_add(unit as usize * UNIT)
    }
}

/// Looks up all addresses, a group at a time. `not_above` counts the keys
/// of a node that are not above a window.
#[inline(always)]
fn all(
    table: Table<'_>,
    addresses: &[u128],
    next_hops: &mut [u16],
    not_above: impl Fn(*const u8, Head, u32) -> usize + Copy,
) {
    let groups = addresses.chunks(GROUP).zip(next_hops.chunks_mut(GROUP));
    for (addresses, answers) in groups {
        let mut slots = [&table.slots[0]; GROUP];
        for (address, slot) in addresses.iter().zip(&mut slots) {
            *slot = table.slot(*address);
            prefetch_at(std::ptr::from_ref(*slot).cast());
        }
        let mut nodes = [table.arena; GROUP];
        for (slot, node) in slots[..addresses.len()].iter().zip(&mut nodes) {
            *node = table.record(slot.load(Ordering::Acquire));
            prefetch_at(*node);
        }
        let mut deep = [0; GROUP];
        let mut left = 0;
        for (at, answer) in answers.iter_mut().enumerate() {
            let (address, node) = (addresses[at], nodes[at]);
            // SAFETY: a slot led here within this section.
            *answer = unsafe { leaf(node, (address >> (128 - FIRST - 32)) as u32, not_above) };
            deep[left % GROUP] = at as u8;
            left += usize::from(*answer >> 15);
        }
        while left > 0 {
            left = follow(addresses, &mut nodes, answers, &mut deep, left, not_above);
        }
    }
}

/// One more node for each address that has no answer yet; how many still
/// have none.
#[inline(always)]
fn follow(
    addresses: &[u128],
    nodes: &mut [*const u8; GROUP],
    answers: &mut [u16],
    deep: &mut [u8; GROUP],
    count: usize,
    not_above: impl Fn(*const u8, Head, u32) -> usize + Copy,
) -> usize {
    for at in &deep[..count] {
        let at = usize::from(*at) % GROUP;
        // SAFETY: a node lies here, and its leaf said how far behind its
        // start the next one lies (`keys`).
        nodes[at] = unsafe {
            let head = Head(nodes[at].cast::<u32>().read());
            nodes[at].add(head.distance(answers[at]))
        };
        prefetch_at(nodes[at]);
    }
    let mut left = 0;
    for step in 0..count {
        let at = usize::from(deep[step]) % GROUP;
        // SAFETY: as above.
        answers[at] = unsafe {
            let head = Head(nodes[at].cast::<u32>().read());
            leaf(nodes[at], head.window(addresses[at]), not_above)
        };
        deep[left] = at as u8;
        left += usize::from(answers[at] & DEEP != 0);
    }
    left
}

/// The leaf of a window's value in a node.
///
/// # Safety
/// A node lies there and stays.
#[inline(always)]
unsafe fn leaf(
    node: *const u8,
    window: u32,
    not_above: impl Fn(*const u8, Head, u32) -> usize,
) -> u16 {
    // SAFETY: a node begins with its head, has that many keys and a leaf
    // more; units are aligned for all of them.
    unsafe {
        let head = Head(node.cast::<u32>().read());
        let leaves = node.add(head.leaves()).cast::<u16>();
        leaves.add(not_above(node, head, window)).read()
    }
}

/// How many of a node's keys are not above a window. The node lies there
/// and stays.
#[inline(always)]
fn not_above_portable(node: *const u8, head: Head, window: u32) -> usize {
    let keys = head.words().count_ones() as usize;
    // SAFETY: after its head a node has that many keys.
    let keys = unsafe { std::slice::from_raw_parts(node.add(4).cast::<u32>(), keys) };
    keys.iter().filter(|key| **key <= window).count()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32,
        _mm256_maskload_epi32, _mm256_min_epu32, _mm256_movemask_ps, _mm256_set1_epi32,
        _mm256_setr_epi32, _mm512_mask_cmple_epu32_mask, _mm512_maskz_load_epi32,
        _mm512_set1_epi32,
    };

    use super::{Head, Table, all};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn all_avx2(table: Table<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, |node, head, window| {
            not_above_avx2(node, head, window)
        });
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw")]
    pub fn all_avx512(table: Table<'_>, addresses: &[u128], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, |node, head, window| {
            not_above_avx512(node, head, window)
        });
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn not_above_avx2(node: *const u8, head: Head, window: u32) -> usize {
        let keys = head.words().count_ones() as i32;
        let window = _mm256_set1_epi32(window.cast_signed());
        let half = |first: i32| {
            let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let is_key = _mm256_cmpgt_epi32(_mm256_set1_epi32(keys - first), numbers);
            // SAFETY: after its head a node has that many keys, and others
            // than those are not loaded.
            let words = unsafe {
                let from = node.add(4).cast::<i32>().wrapping_add(first as usize);
                _mm256_maskload_epi32(from, is_key)
            };
            let below = _mm256_cmpeq_epi32(_mm256_min_epu32(words, window), words);
            let below = _mm256_castsi256_ps(_mm256_and_si256(below, is_key));
            _mm256_movemask_ps(below).count_ones() as usize
        };
        half(0) + half(8)
    }

    #[inline]
    #[target_feature(enable = "avx512f,popcnt")]
    fn not_above_avx512(node: *const u8, head: Head, window: u32) -> usize {
        let place = node.addr() % 64;
        let is_key = (head.words() << (place / 4)) as u16;
        // SAFETY: a node's keys all lie in the line that it starts in
        // (`keys`), and others than those are not loaded.
        let words = unsafe { _mm512_maskz_load_epi32(is_key, node.wrapping_sub(place).cast()) };
        let window = _mm512_set1_epi32(window.cast_signed());
        _mm512_mask_cmple_epu32_mask(is_key, words, window).count_ones() as usize
    }
}
