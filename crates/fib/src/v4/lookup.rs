//! The readers' side. A table that lies in the caches near the core is read
//! in one pass, where the processor overlaps what it waits for by itself; a
//! larger one in two for each 64 addresses, the first of which asks for the
//! records' lines.

#![allow(
    unsafe_code,
    reason = "records are read without bounds checks, and instructions chosen at the start"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memory::quiescent::Section;
use memory::{alone, prefetch_at};

use super::REST_BITS;
use crate::Path;
use crate::node::{AFTER_256, DEEP, LEAVES_64, LEAVES_256};
use crate::store::{Shared, UNIT};

/// Addresses that are looked up together.
const GROUP: usize = 64;
/// Addresses whose leaves are put together in registers.
const BLOCK: usize = 16;

/// The readers' end of an IPv4 table. A clone for each worker; all see the
/// same table.
#[derive(Debug, Clone)]
pub struct Reader4 {
    shared: Arc<Shared>,
    path: Path,
}

impl Reader4 {
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
    /// Each answer is that of the table at some moment of the call. Some 1
    /// to 4 ns an address in batches of 64 and more; writes nothing shared,
    /// allocates nothing, waits for nothing.
    #[inline]
    pub fn lookup(&self, section: &Section<'_>, addresses: &[u32], next_hops: &mut [u16]) {
        self.lookup_as(self.shared.is_large(), section, addresses, next_hops);
    }

    /// The same, with lines asked for ahead or not.
    #[inline]
    pub(super) fn lookup_as(
        &self,
        is_large: bool,
        section: &Section<'_>,
        addresses: &[u32],
        next_hops: &mut [u16],
    ) {
        let n = addresses.len().min(next_hops.len());
        let (addresses, next_hops) = (&addresses[..n], &mut next_hops[..n]);
        if !section.is_of(self.shared.domain()) {
            next_hops.fill(0);
            return;
        }
        let table = Table {
            slots: self.shared.slots(),
            arena: self.shared.arena(),
            is_large,
        };
        match self.path {
            Path::Portable => all(table, addresses, next_hops, Portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: such a path is only made where `is_here` says so.
            Path::Avx2 | Path::Avx512 => unsafe { x86::all_avx2(table, addresses, next_hops) },
            #[cfg(not(target_arch = "x86_64"))]
            Path::Avx2 | Path::Avx512 => all(table, addresses, next_hops, Portable),
        }
    }
}

/// Where to look. Made by [`Reader4::lookup`] alone, within a section.
#[derive(Clone, Copy)]
struct Table<'a> {
    slots: &'a [AtomicU32],
    arena: *const u8,
    /// Whether it is more than lies near a core.
    is_large: bool,
}

impl Table<'_> {
    /// The record of an address, in bytes from the arena's start.
    #[inline(always)]
    fn slot(self, address: u32) -> u32 {
        // SAFETY: there are as many slots as the address has values in its
        // first bits (`Store::new` was asked for `SLOTS`).
        let slot = unsafe { self.slots.get_unchecked((address >> REST_BITS) as usize) };
        // With the slot's value comes what the record says.
        slot.load(Ordering::Acquire)
    }

    /// A record's first byte.
    #[inline(always)]
    fn record(self, offset: u32) -> *const u8 {
        self.arena.wrapping_add(offset as usize)
    }
}
/// How the leaves of a block are put together.
trait Pack: Copy {
    /// The leaves of a block, whose records lie in `records` if `AHEAD`, and
    /// are found by the slots if not; a bit for each that is no answer yet.
    fn leaves<const AHEAD: bool>(
        self,
        table: Table<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
        leaves: &mut [u16; BLOCK],
    ) -> u64;
}

/// Looks up all addresses.
#[inline(always)]
fn all(table: Table<'_>, addresses: &[u32], next_hops: &mut [u16], pack: impl Pack) {
    let groups = addresses.chunks(GROUP).zip(next_hops.chunks_mut(GROUP));
    for (addresses, answers) in groups {
        let deep = if table.is_large {
            let mut records = [0; GROUP];
            for (address, record) in addresses.iter().zip(&mut records) {
                *record = table.slot(*address);
                prefetch_at(table.record(*record));
            }
            leaves::<true>(table, addresses, &records, answers, pack)
        } else {
            leaves::<false>(table, addresses, &[0; GROUP], answers, pack)
        };
        follow(table, addresses, answers, deep);
    }
}

/// The leaves of a group; a bit for each that is no answer yet.
#[inline(always)]
fn leaves<const AHEAD: bool>(
    table: Table<'_>,
    addresses: &[u32],
    records: &[u32; GROUP],
    leaves: &mut [u16],
    pack: impl Pack,
) -> u64 {
    let mut deep = 0;
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    let (leaves, rest_leaves) = leaves.as_chunks_mut::<BLOCK>();
    let (records, _) = records.as_chunks::<BLOCK>();
    let mut first = 0;
    for ((addresses, records), leaves) in blocks.iter().zip(records).zip(leaves) {
        deep |= pack.leaves::<AHEAD>(table, addresses, records, leaves) << first;
        first += BLOCK;
    }
    for (address, answer) in rest.iter().zip(rest_leaves) {
        *answer = leaf(table.record(table.slot(*address)), *address);
        deep |= u64::from(*answer >> 15) << first;
        first += 1;
    }
    deep
}

/// The leaf of one of a block.
#[inline(always)]
fn leaf_at<const AHEAD: bool>(
    table: Table<'_>,
    addresses: &[u32; BLOCK],
    records: &[u32; BLOCK],
    at: usize,
) -> u16 {
    let record = if AHEAD {
        records[at]
    } else {
        table.slot(addresses[at])
    };
    leaf(table.record(record), addresses[at])
}

/// The leaf of an address in its record of 64 places.
#[inline(always)]
fn leaf(record: *const u8, address: u32) -> u16 {
    // SAFETY: a slot led here within this section, so a record of 64
    // places lies here and stays (`Store`). It has a leaf for each bit
    // and one more (`node`); both are aligned, since records are.
    unsafe {
        let bits = record.cast::<u64>().read();
        let after = alone((bits >> ((address >> 8) & 63)).count_ones().into()) as usize;
        record.add(LEAVES_64).cast::<u16>().add(after).read()
    }
}

/// Follows the leaves that are no answers yet.
#[inline(always)]
fn follow(table: Table<'_>, addresses: &[u32], answers: &mut [u16], deep: u64) {
    let mut deep = deep;
    while deep != 0 {
        let at = deep.trailing_zeros() as usize;
        deep &= deep - 1;
        // SAFETY: `deep` has bits below the number of leaves only, which is
        // at most the number of addresses.
        let (address, answer) =
            unsafe { (*addresses.get_unchecked(at), answers.get_unchecked_mut(at)) };
        // The slot may lead elsewhere by now: what its record says then is
        // as good.
        let record = table.record(table.slot(address));
        *answer = leaf(record, address);
        if *answer & DEEP != 0 {
            let behind = usize::from(*answer & !DEEP) * UNIT;
            // SAFETY: a leaf of this record said that so far behind its
            // start lies a record of 256 places (`node`), which stays as it
            // does.
            *answer = unsafe { deep_leaf(record.add(behind), address) };
        }
    }
}

/// The leaf of an address's last 8 bits.
///
/// # Safety
/// A record of 256 places lies there and stays.
#[inline(always)]
unsafe fn deep_leaf(record: *const u8, address: u32) -> u16 {
    let word = (address >> 6 & 3) as usize;
    // SAFETY: a record of 256 places has four words, four counts, and as
    // many leaves as bits and one more; units are aligned for all of them.
    unsafe {
        let bits = record.cast::<u64>().add(word).read();
        let after = record.add(AFTER_256 + word).read();
        let after = usize::from(after) + (bits >> (address & 63)).count_ones() as usize;
        record.add(LEAVES_256).cast::<u16>().add(after).read()
    }
}

#[derive(Clone, Copy)]
struct Portable;

impl Pack for Portable {
    #[inline(always)]
    fn leaves<const AHEAD: bool>(
        self,
        table: Table<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
        leaves: &mut [u16; BLOCK],
    ) -> u64 {
        let mut deep = 0;
        for (at, leaf) in leaves.iter_mut().enumerate() {
            *leaf = leaf_at::<AHEAD>(table, addresses, records, at);
            deep |= u64::from(*leaf >> 15) << at;
        }
        deep
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_insert_epi16, _mm_movemask_epi8, _mm_packs_epi16, _mm_setzero_si128,
        _mm_storeu_si128,
    };

    use super::{BLOCK, Pack, Table, all, leaf_at};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn all_avx2(table: Table<'_>, addresses: &[u32], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, Sse2);
    }

    /// Leaves go from memory into their place of a register, and from there
    /// to the answers: a load of sixteen that were stored one by one would
    /// wait until all the stores are done.
    #[derive(Clone, Copy)]
    struct Sse2;

    impl Pack for Sse2 {
        #[inline(always)]
        fn leaves<const AHEAD: bool>(
            self,
            table: Table<'_>,
            addresses: &[u32; BLOCK],
            records: &[u32; BLOCK],
            leaves: &mut [u16; BLOCK],
        ) -> u64 {
            let low = eight::<AHEAD, 0>(table, addresses, records);
            let high = eight::<AHEAD, 8>(table, addresses, records);
            // SAFETY: these instructions are those of every processor of
            // this kind; the leaves have room for sixteen.
            let signs = unsafe {
                _mm_storeu_si128(leaves.as_mut_ptr().cast(), low);
                _mm_storeu_si128(leaves.as_mut_ptr().add(8).cast(), high);
                // Saturation keeps signs.
                _mm_movemask_epi8(_mm_packs_epi16(low, high))
            };
            u64::from(signs.cast_unsigned())
        }
    }

    /// The leaves of eight addresses of a block.
    #[inline(always)]
    fn eight<const AHEAD: bool, const FROM: usize>(
        table: Table<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
    ) -> __m128i {
        macro_rules! inserted {
            ($($at:literal)*) => {{
                // SAFETY: instructions of every processor of this kind.
                let eight = unsafe { _mm_setzero_si128() };
                $(
                    let leaf = leaf_at::<AHEAD>(table, addresses, records, FROM + $at);
                    // SAFETY: as above.
                    let eight = unsafe { _mm_insert_epi16::<$at>(eight, leaf.into()) };
                )*
                eight
            }};
        }
        inserted!(0 1 2 3 4 5 6 7)
    }
}
