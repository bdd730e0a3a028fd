//! Instances by handle. Called by the C functions, for each of their calls.
//!
//! What C holds as a `struct libalias *` is no address: it names a slot of
//! a fixed array and the slot's generation, and it is compared, never
//! followed. So a NULL, stale, forged or stray pointer is refused, whatever
//! it is. An instance is locked while a call works on it; the lock and the
//! check of the handle are one atomic exchange, a few nanoseconds where no
//! other thread is at the same instance.

use std::cell::UnsafeCell;
use std::hint;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Most instances at a time.
const MAX_INSTANCES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 16;
/// The lowest bits of a handle. No address of memory that a C program
/// allocates ends like this, so none is taken for a handle.
const TAG: usize = 0b1010;
const TAG_BITS: u32 = 4;

/// A slot's word: its generation, whether an instance lives in it, and
/// whether a call is at work on it.
const BUSY: usize = 0b01;
const LIVE: usize = 0b10;
const STATE_BITS: u32 = 2;
/// Generations there are; beyond, a slot is used no more.
const MAX_GENERATION: usize = usize::MAX >> (INDEX_BITS + TAG_BITS);

/// Turns of waiting for another thread before the processor is given away.
const SPINS: u32 = 128;

/// What C holds in place of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(usize);

impl Handle {
    /// Takes what C gave.
    pub fn from_address(address: usize) -> Self {
        Self(address)
    }

    /// What C gets.
    pub fn address(self) -> usize {
        self.0
    }

    fn new(index: usize, generation: usize) -> Self {
        Self((generation << INDEX_BITS | index) << TAG_BITS | TAG)
    }

    /// Slot and generation, of what looks like a handle.
    #[inline]
    fn parts(self) -> Option<(usize, usize)> {
        let name = self.0 >> TAG_BITS;
        let is_tagged = self.0 & ((1 << TAG_BITS) - 1) == TAG;
        is_tagged.then_some((name & (MAX_INSTANCES - 1), name >> INDEX_BITS))
    }
}

/// Room for one value. As long as a cache line, so that two threads with
/// an instance each write to different ones.
#[repr(align(64))]
struct Slot<T> {
    word: AtomicUsize,
    value: UnsafeCell<Option<Box<T>>>,
}

impl<T> Slot<T> {
    const fn empty() -> Self {
        Self {
            word: AtomicUsize::new(0),
            value: UnsafeCell::new(None),
        }
    }
}

// SAFETY: `value` is touched only by the thread that has set `BUSY` (or
// that took the slot from the free list while it was not live), and `word`
// hands it on with acquire and release. The value itself moves between
// threads, so it must be `Send`.
#[allow(unsafe_code, reason = "a lock and a check of the handle in one word")]
unsafe impl<T: Send> Sync for Slot<T> {}

/// The slots, all of them there from the start: zeroed memory, which costs
/// nothing until it is touched.
pub struct Registry<T: 'static> {
    slots: [Slot<T>; MAX_INSTANCES],
    free: Mutex<Free>,
}

struct Free {
    /// Slots that were used before.
    slots: Vec<usize>,
    /// The first slot that never was.
    next: usize,
}

impl<T: Send> Registry<T> {
    /// No instance. For a `static`: it is some megabytes long.
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot::empty() }; MAX_INSTANCES],
            free: Mutex::new(Free {
                slots: Vec::new(),
                next: 0,
            }),
        }
    }

    /// Takes an instance in; `None` when there are [`MAX_INSTANCES`].
    pub fn insert(&'static self, value: Box<T>) -> Option<Handle> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = free.slots.pop().unwrap_or(free.next);
        let slot = self.slots.get(index)?;
        free.next = free.next.max(index.saturating_add(1));
        drop(free);
        let last = slot.word.load(Ordering::Acquire) >> STATE_BITS;
        let generation = last.wrapping_add(1);
        // SAFETY: the slot is not live, so no other call gets past the
        // exchange in `lock`; and it has left the free list, so no other
        // `insert` has it.
        #[allow(unsafe_code, reason = "the slot is ours alone")]
        unsafe {
            *slot.value.get() = Some(value);
        }
        slot.word
            .store(generation << STATE_BITS | LIVE, Ordering::Release);
        Some(Handle::new(index, generation))
    }

    /// The instance of a handle, for this thread alone until the guard is
    /// dropped; `None` for anything but a handle of a living instance.
    /// Waits while another thread is at work on the same one.
    #[inline]
    pub fn lock(&'static self, handle: Handle) -> Option<Guard<T>> {
        let slot = self.acquire(handle)?;
        // SAFETY: this thread has set `BUSY`; nobody else touches the value.
        #[allow(unsafe_code, reason = "the slot is locked by this thread")]
        let value = unsafe { (*slot.value.get()).as_deref_mut() };
        Some(Guard {
            value: NonNull::from(value?),
            word: &slot.word,
        })
    }

    /// Takes an instance out; its handle is stale from now on.
    pub fn remove(&'static self, handle: Handle) -> Option<Box<T>> {
        let (index, generation) = handle.parts()?;
        let slot = self.acquire(handle)?;
        // SAFETY: this thread has set `BUSY`; nobody else touches the value.
        #[allow(unsafe_code, reason = "the slot is locked by this thread")]
        let value = unsafe { (*slot.value.get()).take() };
        slot.word.store(generation << STATE_BITS, Ordering::Release);
        if generation < MAX_GENERATION {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.slots.push(index);
        }
        value
    }

    /// Does something to each instance that there is, one after the other.
    /// Waits while another thread is at work on one. O(the most there were).
    pub fn for_each(&'static self, change: impl Fn(&mut T)) {
        let used = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next;
        for (index, slot) in self.slots.iter().take(used).enumerate() {
            let word = slot.word.load(Ordering::Acquire);
            let handle = Handle::new(index, word >> STATE_BITS);
            if word & LIVE != 0
                && let Some(mut value) = self.lock(handle)
            {
                change(&mut value);
            }
        }
    }

    /// The slot of a handle, made busy by this thread.
    #[inline]
    fn acquire(&'static self, handle: Handle) -> Option<&'static Slot<T>> {
        let (index, generation) = handle.parts()?;
        let slot = self.slots.get(index)?;
        let idle = generation << STATE_BITS | LIVE;
        let mut spins = 0;
        loop {
            let exchanged =
                slot.word
                    .compare_exchange(idle, idle | BUSY, Ordering::Acquire, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(slot),
                Err(word) if word == idle | BUSY => wait(&mut spins),
                Err(_) => return None,
            }
        }
    }
}

#[cold]
fn wait(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < SPINS {
        hint::spin_loop();
    } else {
        thread::yield_now();
    }
}

/// An instance that a call works on.
pub struct Guard<T: 'static> {
    value: NonNull<T>,
    word: &'static AtomicUsize,
}

impl<T> Deref for Guard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives in its slot, which is busy on behalf of
        // this guard: it is neither removed nor touched by another.
        #[allow(unsafe_code, reason = "the slot is locked by this guard")]
        unsafe {
            self.value.as_ref()
        }
    }
}

impl<T> DerefMut for Guard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; and the guard is borrowed exclusively.
        #[allow(unsafe_code, reason = "the slot is locked by this guard")]
        unsafe {
            self.value.as_mut()
        }
    }
}

impl<T> Drop for Guard<T> {
    #[inline]
    fn drop(&mut self) {
        // Only the holder changes a busy word, so this is what it was.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word & !BUSY, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static REGISTRY: Registry<u64> = Registry::new();

    #[test]
    fn a_stale_or_forged_handle_is_refused() {
        let first = REGISTRY.insert(Box::new(1)).unwrap();
        assert_eq!(REGISTRY.lock(first).map(|guard| *guard), Some(1));
        assert_eq!(REGISTRY.remove(first).as_deref(), Some(&1));
        assert!(REGISTRY.lock(first).is_none());
        assert!(REGISTRY.remove(first).is_none());
        let second = REGISTRY.insert(Box::new(2)).unwrap();
        assert_ne!(first, second);
        assert!(REGISTRY.lock(first).is_none());
        let value = Box::new(7_u64);
        let stray = (&raw const *value) as usize;
        let near = second.address();
        for address in [
            0,
            1,
            stray,
            near + 1,
            near ^ 1 << 10,
            near ^ 1 << 30,
            usize::MAX,
        ] {
            assert!(REGISTRY.lock(Handle::from_address(address)).is_none());
        }
        assert_eq!(REGISTRY.remove(second).as_deref(), Some(&2));
    }

    #[test]
    fn threads_take_turns_at_an_instance_and_none_is_lost() {
        const TURNS: u64 = 5_000;
        let handle = REGISTRY.insert(Box::new(0)).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        let mut guard = REGISTRY.lock(handle).unwrap();
                        *guard += 1;
                    }
                });
            }
        });
        assert_eq!(REGISTRY.remove(handle).as_deref(), Some(&(4 * TURNS)));
    }

    #[test]
    fn instances_come_and_go_in_many_threads() {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let value = thread << 32 | turn;
                        let handle = REGISTRY.insert(Box::new(value)).unwrap();
                        assert_eq!(REGISTRY.lock(handle).map(|guard| *guard), Some(value));
                        assert_eq!(REGISTRY.remove(handle).as_deref(), Some(&value));
                    }
                });
            }
        });
    }
}
