//! Each pool's number, and the pool of a number. A handle has the number and
//! no pointer: an address and a number fit one word, and only what is rare
//! asks for more than the bytes.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::pool::Shared;

/// Most pools of a process at a time.
pub const MOST_POOLS: usize = 1_024;

/// By number; the first is nobody's.
static POOLS: [AtomicPtr<Shared>; MOST_POOLS + 1] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_POOLS + 1];

/// A number that no other pool has until [`free`]; `None` where all are had.
/// Nobody may ask for its pool before [`set`].
pub fn take() -> Option<u16> {
    let reserved = NonNull::dangling().as_ptr();
    let numbers = POOLS.iter().enumerate().skip(1);
    let mut free = numbers.filter(|(_, pool)| {
        let taken = pool.compare_exchange(
            ptr::null_mut(),
            reserved,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        taken.is_ok()
    });
    free.next().map(|(number, _)| number as u16)
}

/// Says which pool has a number.
pub fn set(number: u16, pool: NonNull<Shared>) {
    if let Some(place) = POOLS.get(usize::from(number)) {
        place.store(pool.as_ptr(), Ordering::Release);
    }
}

/// Nobody has it any more.
pub fn free(number: u16) {
    if let Some(place) = POOLS.get(usize::from(number)) {
        place.store(ptr::null_mut(), Ordering::Release);
    }
}

/// The pool of a number.
#[inline]
pub fn pool(number: u16) -> Option<NonNull<Shared>> {
    NonNull::new(POOLS.get(usize::from(number))?.load(Ordering::Acquire))
}
