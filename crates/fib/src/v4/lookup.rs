//! The readers' side: batches of 64 in two passes, the first of which asks
//! for the records' lines, so that their delays overlap.

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
    /// Each answer is that of the table at some moment of the call. Some 2
    /// to 4 ns an address in batches of 64 and more; writes nothing shared,
    /// allocates nothing, waits for nothing.
    #[inline]
    pub fn lookup(&self, section: &Section<'_>, addresses: &[u32], next_hops: &mut [u16]) {
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
            Path::Portable => all(table, addresses, next_hops, deep_portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: such a path is only made where `is_here` says so.
            Path::Avx2 => unsafe { x86::all_avx2(table, addresses, next_hops) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Path::Avx512 => unsafe { x86::all_avx512(table, addresses, next_hops) },
            #[cfg(not(target_arch = "x86_64"))]
            Path::Avx2 | Path::Avx512 => all(table, addresses, next_hops, deep_portable),
        }
    }
}

/// Where to look. Made by [`Reader4::lookup`] alone, within a section.
#[derive(Clone, Copy)]
struct Table<'a> {
    slots: &'a [AtomicU32],
    arena: *const u8,
}

impl Table<'_> {
    /// The record of an address, in units.
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
    fn record(self, unit: u32) -> *const u8 {
        self.arena.wrapping_add(unit as usize * UNIT)
    }
}

/// Looks up all addresses, a group at a time. `deep_of` tells which leaves
/// of a full group have their highest bit set.
#[inline(always)]
fn all(
    table: Table<'_>,
    addresses: &[u32],
    next_hops: &mut [u16],
    deep_of: impl Fn(&[u16; GROUP]) -> u64,
) {
    let (groups, rest) = addresses.as_chunks::<GROUP>();
    let (answers, rest_answers) = next_hops.as_chunks_mut::<GROUP>();
    for (addresses, answers) in groups.iter().zip(answers) {
        let mut records = [0; GROUP];
        first_pass(table, addresses, &mut records);
        second_pass(table, addresses, &records, answers);
        let deep = deep_of(answers);
        third_pass(table, addresses, &records, answers, deep);
    }
    if !rest.is_empty() {
        let mut records = [0; GROUP];
        first_pass(table, rest, &mut records);
        second_pass(table, rest, &records, rest_answers);
        let deep = deep_portable(rest_answers);
        third_pass(table, rest, &records, rest_answers, deep);
    }
}

/// Finds the records and asks for their lines.
#[inline(always)]
fn first_pass(table: Table<'_>, addresses: &[u32], records: &mut [u32; GROUP]) {
    for (address, record) in addresses.iter().zip(records) {
        *record = table.slot(*address);
        prefetch_at(table.record(*record));
    }
}

/// Finds the leaves.
#[inline(always)]
fn second_pass(table: Table<'_>, addresses: &[u32], records: &[u32; GROUP], leaves: &mut [u16]) {
    for ((address, record), leaf) in addresses.iter().zip(records).zip(leaves) {
        let record = table.record(*record);
        // SAFETY: a slot led here within this section, so a record of 64
        // places lies here and stays (`Store`). It has a leaf for each bit
        // and one more (`node`); both are aligned, since records are.
        *leaf = unsafe {
            let bits = alone(record.cast::<u64>().read());
            let after = (bits >> ((address >> 8) & 63)).count_ones() as usize;
            record.add(LEAVES_64).cast::<u16>().add(after).read()
        };
    }
}

/// Follows the leaves that are no answers yet.
#[inline(always)]
fn third_pass(
    table: Table<'_>,
    addresses: &[u32],
    records: &[u32; GROUP],
    leaves: &mut [u16],
    deep: u64,
) {
    let mut deep = deep;
    while deep != 0 {
        let at = deep.trailing_zeros() as usize;
        deep &= deep - 1;
        // SAFETY: `deep` has bits below the number of leaves only, which is
        // at most the group and the number of addresses.
        let (address, record, leaf) = unsafe {
            (
                *addresses.get_unchecked(at),
                *records.get_unchecked(at),
                leaves.get_unchecked_mut(at),
            )
        };
        let record = table.record(record);
        // SAFETY: a leaf of this record said that so far behind its start
        // lies a record of 256 places (`node`), which stays as it does.
        *leaf = unsafe { deep_leaf(record.add(usize::from(*leaf & !DEEP) * UNIT), address) };
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

/// A bit for each leaf with its highest bit set.
#[inline(always)]
fn deep_portable(leaves: &(impl AsRef<[u16]> + ?Sized)) -> u64 {
    let leaves = leaves.as_ref().iter().enumerate();
    leaves.fold(0, |deep, (at, leaf)| deep | u64::from(leaf >> 15) << at)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_packs_epi16, _mm256_permute4x64_epi64,
        _mm512_loadu_si512, _mm512_movepi16_mask,
    };

    use super::{GROUP, Table, all};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn all_avx2(table: Table<'_>, addresses: &[u32], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, |leaves| deep_avx2(leaves));
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw")]
    pub fn all_avx512(table: Table<'_>, addresses: &[u32], next_hops: &mut [u16]) {
        all(table, addresses, next_hops, |leaves| deep_avx512(leaves));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn deep_avx2(leaves: &[u16; GROUP]) -> u64 {
        let half = |at: usize| {
            // SAFETY: 32 leaves from `at` on, 0 or 32, lie in the 64; loads
            // have no alignment to keep.
            let (low, high) = unsafe {
                let from = leaves.as_ptr().add(at);
                (
                    _mm256_loadu_si256(from.cast()),
                    _mm256_loadu_si256(from.add(16).cast()),
                )
            };
            // Saturation keeps signs; the permutation undoes the lanes.
            let signs = _mm256_packs_epi16(low, high);
            let signs = _mm256_permute4x64_epi64::<0b11_01_10_00>(signs);
            u64::from(_mm256_movemask_epi8(signs).cast_unsigned())
        };
        half(0) | half(32) << 32
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn deep_avx512(leaves: &[u16; GROUP]) -> u64 {
        let half = |at: usize| {
            // SAFETY: 32 leaves from `at` on, 0 or 32, lie in the 64.
            let leaves = unsafe { _mm512_loadu_si512(leaves.as_ptr().add(at).cast()) };
            u64::from(_mm512_movepi16_mask(leaves))
        };
        half(0) | half(32) << 32
    }
}
