//! The readers' side. A table that lies in the caches near the core is read
//! in one pass, where the processor overlaps what it waits for by itself; a
//! larger one in two for each 64 addresses, the first of which asks for the
//! records' lines.

#![allow(
    unsafe_code,
    reason = "records are read without bounds checks, and instructions chosen at the start"
)]

use std::sync::atomic::Ordering;

use memory::{alone, prefetch_at};

use super::REST_BITS;
use crate::Path;
use crate::node::{AFTER_256, DEEP, LEAVES_64, LEAVES_256};
use crate::store::{Table, UNIT};

/// Addresses that are looked up together.
const GROUP: usize = 64;
/// Addresses whose leaves are put together in registers.
const BLOCK: usize = 16;

/// Looks up all addresses.
///
/// # Safety
/// The table is an IPv4 table, within a section of its domain, and the
/// processor has the path's instructions.
#[inline]
pub unsafe fn lookup(table: Table<'_>, path: Path, addresses: &[u32], next_hops: &mut [u16]) {
    let table = Within(table);
    match path {
        Path::Portable => all(table, addresses, next_hops, Portable),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has these instructions, says the caller.
        Path::Avx2 | Path::Avx512 => unsafe { x86::all_avx2(table, addresses, next_hops) },
        #[cfg(not(target_arch = "x86_64"))]
        Path::Avx2 | Path::Avx512 => all(table, addresses, next_hops, Portable),
    }
}

/// An IPv4 table within a section of its domain. Made by [`lookup`] alone.
#[derive(Clone, Copy)]
struct Within<'a>(Table<'a>);

impl Within<'_> {
    /// The record of an address, in bytes from the arena's start.
    #[inline(always)]
    fn slot(self, address: u32) -> u32 {
        // SAFETY: there are as many slots as the address has values in its
        // first bits (`Compiled::SLOTS`).
        let slot = unsafe { self.0.slots.get_unchecked((address >> REST_BITS) as usize) };
        // With the slot's value comes what the record says.
        slot.load(Ordering::Acquire)
    }

    /// A record's first byte.
    #[inline(always)]
    fn record(self, offset: u32) -> *const u8 {
        self.0.place(offset)
    }
}

/// How the leaves of a block are put together.
trait Pack: Copy {
    /// The leaves of a block, whose records lie in `records` if `AHEAD`, and
    /// are found by the slots if not; a bit for each that is no answer yet.
    ///
    /// # Safety
    /// If `AHEAD`, the slots of the addresses led to `records` within this
    /// section.
    unsafe fn leaves<const AHEAD: bool>(
        self,
        table: Within<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
        leaves: &mut [u16; BLOCK],
    ) -> u64;
}

/// Looks up all addresses.
#[inline(always)]
fn all(table: Within<'_>, addresses: &[u32], next_hops: &mut [u16], pack: impl Pack) {
    match table.0.is_large {
        true => each_group::<true>(table, addresses, next_hops, pack),
        false => each_group::<false>(table, addresses, next_hops, pack),
    }
}

/// All groups, with lines asked for ahead or not: a loop for each, since the
/// compiler makes better ones of two than of one that asks each time.
#[inline(always)]
fn each_group<const AHEAD: bool>(
    table: Within<'_>,
    addresses: &[u32],
    next_hops: &mut [u16],
    pack: impl Pack,
) {
    let groups = addresses.chunks(GROUP).zip(next_hops.chunks_mut(GROUP));
    for (addresses, answers) in groups {
        let deep = if AHEAD {
            let mut records = [0; GROUP];
            for (address, record) in addresses.iter().zip(&mut records) {
                *record = table.slot(*address);
                prefetch_at(table.record(*record));
            }
            // SAFETY: the slots led to these records just now.
            unsafe { leaves::<true>(table, addresses, &records, answers, pack) }
        } else {
            // SAFETY: no records are handed over.
            unsafe { leaves::<false>(table, addresses, &[0; GROUP], answers, pack) }
        };
        follow(table, addresses, answers, deep);
    }
}

/// The leaves of a group; a bit for each that is no answer yet.
///
/// # Safety
/// As for [`Pack::leaves`].
#[inline(always)]
unsafe fn leaves<const AHEAD: bool>(
    table: Within<'_>,
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
        // SAFETY: the same holds for each block of the group.
        deep |= unsafe { pack.leaves::<AHEAD>(table, addresses, records, leaves) } << first;
        first += BLOCK;
    }
    for (address, answer) in rest.iter().zip(rest_leaves) {
        // SAFETY: the address's slot led to this record just now.
        *answer = unsafe { leaf(table.record(table.slot(*address)), *address) };
        deep |= u64::from(*answer >> 15) << first;
        first += 1;
    }
    deep
}

/// The leaf of one of a block.
///
/// # Safety
/// As for [`Pack::leaves`].
#[inline(always)]
unsafe fn leaf_at<const AHEAD: bool>(
    table: Within<'_>,
    addresses: &[u32; BLOCK],
    records: &[u32; BLOCK],
    at: usize,
) -> u16 {
    let record = if AHEAD {
        records[at]
    } else {
        table.slot(addresses[at])
    };
    // SAFETY: the address's slot led to this record.
    unsafe { leaf(table.record(record), addresses[at]) }
}

/// The leaf of an address in its record of 64 places.
///
/// # Safety
/// The address's slot led here within this section.
#[inline(always)]
unsafe fn leaf(record: *const u8, address: u32) -> u16 {
    // SAFETY: a record of 64 places lies where a slot leads, and stays
    // (`Store`). It has a leaf for each bit and one more (`node`); both are
    // aligned, since records are.
    unsafe {
        let bits = record.cast::<u64>().read();
        let after = alone((bits >> ((address >> 8) & 63)).count_ones().into()) as usize;
        record.add(LEAVES_64).cast::<u16>().add(after).read()
    }
}

/// Follows the leaves that are no answers yet.
#[inline(always)]
fn follow(table: Within<'_>, addresses: &[u32], answers: &mut [u16], deep: u64) {
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
        // SAFETY: the slot led to this record just now.
        *answer = unsafe { leaf(record, address) };
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
    unsafe fn leaves<const AHEAD: bool>(
        self,
        table: Within<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
        leaves: &mut [u16; BLOCK],
    ) -> u64 {
        let mut deep = 0;
        for (at, leaf) in leaves.iter_mut().enumerate() {
            // SAFETY: as the caller says.
            *leaf = unsafe { leaf_at::<AHEAD>(table, addresses, records, at) };
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

    use super::{BLOCK, Pack, Within, all, leaf_at};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn all_avx2(table: Within<'_>, addresses: &[u32], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, Sse2);
    }

    /// Leaves go from memory into their place of a register, and from there
    /// to the answers: a load of sixteen that were stored one by one would
    /// wait until all the stores are done.
    #[derive(Clone, Copy)]
    struct Sse2;

    impl Pack for Sse2 {
        #[inline(always)]
        unsafe fn leaves<const AHEAD: bool>(
            self,
            table: Within<'_>,
            addresses: &[u32; BLOCK],
            records: &[u32; BLOCK],
            leaves: &mut [u16; BLOCK],
        ) -> u64 {
            // SAFETY: the records are the addresses', says the caller; these
            // instructions are those of every processor of this kind; the
            // leaves have room for sixteen.
            let signs = unsafe {
                let low = eight::<AHEAD, 0>(table, addresses, records);
                let high = eight::<AHEAD, 8>(table, addresses, records);
                _mm_storeu_si128(leaves.as_mut_ptr().cast(), low);
                _mm_storeu_si128(leaves.as_mut_ptr().add(8).cast(), high);
                // Saturation keeps signs.
                _mm_movemask_epi8(_mm_packs_epi16(low, high))
            };
            u64::from(signs.cast_unsigned())
        }
    }

    /// The leaves of eight addresses of a block.
    ///
    /// # Safety
    /// As for [`Pack::leaves`].
    #[inline(always)]
    unsafe fn eight<const AHEAD: bool, const FROM: usize>(
        table: Within<'_>,
        addresses: &[u32; BLOCK],
        records: &[u32; BLOCK],
    ) -> __m128i {
        macro_rules! inserted {
            ($($at:literal)*) => {{
                // SAFETY: instructions of every processor of this kind.
                let eight = unsafe { _mm_setzero_si128() };
                $(
                    // SAFETY: as the caller says, and as above.
                    let eight = unsafe {
                        let leaf = leaf_at::<AHEAD>(table, addresses, records, FROM + $at);
                        _mm_insert_epi16::<$at>(eight, leaf.into())
                    };
                )*
                eight
            }};
        }
        inserted!(0 1 2 3 4 5 6 7)
    }
}
