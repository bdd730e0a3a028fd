//! Cache lines: fetched ahead, and sixteen tags compared at once.
//!
//! For tables whose buckets are cache lines (`nat`).

#![allow(
    unsafe_code,
    reason = "prefetch and 16-byte compares are instructions without a safe name"
)]

/// Asks for the cache line of a value, to be read or written soon. Free of
/// effects but on time.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_at(std::ptr::from_ref(value).cast());
}

/// Asks for the first cache line of some bytes.
#[inline(always)]
pub fn prefetch_bytes(bytes: &[u8]) {
    prefetch_at(bytes.as_ptr());
}

/// Asks for a cache line by its address; any one is harmless.
#[inline(always)]
pub fn prefetch_at(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint. It never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The same word, of which the compiler knows nothing any more. No
/// instruction: it keeps a loop over words from being made one over vectors,
/// where that is slower (gathers, and counting bits without an instruction
/// for it).
#[inline(always)]
pub fn alone(word: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut word = word;
        // SAFETY: no instruction at all; the word stays in its register.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
        }
        word
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    word
}

/// Which of sixteen tags equal one: bit 0 for the first. Three instructions
/// on x86-64.
#[inline(always)]
pub fn matching(tags: &[u8; 16], tag: u8) -> u16 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64, and 16 bytes are read from 16 bytes;
    // the load has no alignment to keep.
    unsafe {
        use std::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
        };
        let all = _mm_loadu_si128(tags.as_ptr().cast());
        let equal = _mm_cmpeq_epi8(all, _mm_set1_epi8(tag.cast_signed()));
        _mm_movemask_epi8(equal) as u16
    }
    #[cfg(not(target_arch = "x86_64"))]
    matching_portable(tags, tag)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn matching_portable(tags: &[u8; 16], tag: u8) -> u16 {
    let bits = tags.iter().enumerate();
    bits.fold(0, |mask, (at, other)| {
        mask | (u16::from(*other == tag) << at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_two_tags_matches_as_the_loop_says() {
        // Miri takes minutes for all.
        let step = if cfg!(miri) { 251 } else { 1 };
        for pattern in (0..=u16::MAX).step_by(step) {
            let tags: [u8; 16] = std::array::from_fn(|at| ((pattern >> at) & 1) as u8 * 0xff);
            assert_eq!(matching(&tags, 0xff), pattern);
            assert_eq!(matching(&tags, 0), !pattern);
            assert_eq!(matching_portable(&tags, 0xff), pattern);
        }
    }

    #[test]
    fn a_word_alone_is_the_same() {
        assert_eq!(alone(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_prefetch_of_nowhere_is_harmless() {
        prefetch_at(std::ptr::null());
        prefetch_at(std::ptr::without_provenance(usize::MAX));
        prefetch_bytes(&[]);
        prefetch(&1);
    }
}
