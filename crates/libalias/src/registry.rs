//! Instances by handle. Called by the C functions, for each of their calls.
//!
//! What C holds as a `struct libalias *` is no address: it names a slot of
//! a fixed array and the slot's generation, and it is compared, never
//! followed. So a NULL, stale, forged or stray pointer is refused, whatever
//! it is. An instance is locked while a call works on it; the lock and the
//! check of the handle are one atomic exchange.
//!
//! An exchange waits for all that the call before has still under way, a
//! flow's line on its way from memory above all, which costs far more than
//! itself. So an instance that one thread keeps using becomes that thread's
//! own: it says by a plain store that it is inside, then looks whether it
//! still owns the instance. Another thread that wants the instance takes the
//! ownership away first, makes every thread of the process pass a memory
//! barrier (membarrier(2)), and only then looks whether the owner is inside:
//! one of the two sees the other. Without membarrier(2) nobody owns anything.

use std::cell::{Cell, UnsafeCell};
use std::hint;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use rustix::thread::{MembarrierCommand, membarrier};

/// Most instances at a time.
const MAX_INSTANCES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 16;
/// The lowest bits of a handle. No address of memory that a C program
/// allocates ends like this, so none is taken for a handle.
const TAG: usize = 0b1010;
const TAG_BITS: u32 = 4;

/// A slot's word: its generation, whether an instance lives in it, whether
/// it is one thread's own, and whether a call of another is at work on it.
const BUSY: usize = 0b001;
const LIVE: usize = 0b010;
const OWNED: usize = 0b100;
const STATE_BITS: u32 = 3;
/// Generations there are; beyond, a slot is used no more.
const MAX_GENERATION: usize = usize::MAX >> (INDEX_BITS + TAG_BITS);

/// Calls of one thread in a row that make an instance its own. Each time it
/// is taken away it is twice as many, up to [`MOST_IN_A_ROW`].
const IN_A_ROW: usize = 64;
const MOST_IN_A_ROW: usize = 1 << 20;

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
    /// Whose own it is, by [`me`]; 0: nobody's.
    owner: AtomicUsize,
    /// Whether the owner is at work on it; written by the owner.
    inside: AtomicUsize,
    /// Who locked it last, how often in a row, and how often it takes to own
    /// it. For the one who has set `BUSY`.
    last: AtomicUsize,
    row: AtomicUsize,
    needed: AtomicUsize,
    value: UnsafeCell<Option<Box<T>>>,
}

impl<T> Slot<T> {
    const fn empty() -> Self {
        Self {
            word: AtomicUsize::new(0),
            owner: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            row: AtomicUsize::new(0),
            needed: AtomicUsize::new(IN_A_ROW),
            value: UnsafeCell::new(None),
        }
    }
}

// SAFETY: `value` is touched only by the thread that has set `BUSY`, by the
// owner between its stores to `inside` (a `BUSY` thread waits for the end of
// that), or by the one that took the slot from the free list while it was not
// live; `word` and `inside` hand it on with acquire and release. The value itself moves between
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
        for (field, value) in [(&slot.last, 0), (&slot.row, 0), (&slot.needed, IN_A_ROW)] {
            field.store(value, Ordering::Relaxed);
        }
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
        let (slot, owned) = match self.enter(handle) {
            Some(slot) => (slot, true),
            None => (self.acquire(handle)?, false),
        };
        // SAFETY: this thread has set `BUSY`, or owns the slot and said that
        // it is inside; nobody else touches the value.
        #[allow(unsafe_code, reason = "the slot is locked by this thread")]
        let value = unsafe { (*slot.value.get()).as_deref_mut() };
        let value = value.map(NonNull::from);
        let lock = Lock {
            word: &slot.word,
            inside: &slot.inside,
            owner: &slot.owner,
            row: &slot.row,
            last: &slot.last,
            needed: &slot.needed,
            owned,
        };
        Some(Guard {
            value: value?,
            lock,
        })
    }

    /// The slot of a handle that is this thread's own; it is inside then.
    #[inline]
    fn enter(&'static self, handle: Handle) -> Option<&'static Slot<T>> {
        let (index, generation) = handle.parts()?;
        let slot = self.slots.get(index)?;
        if slot.owner.load(Ordering::Relaxed) != me() {
            return None;
        }
        // It may be inside already: a signal's handler, called in the midst.
        // That one waits in `acquire`, as it would without owners.
        if slot.inside.load(Ordering::Relaxed) != 0 {
            return None;
        }
        slot.inside.store(1, Ordering::Relaxed);
        // The processor may look first and store then: against that, `revoke`
        // has its barrier. The compiler may not.
        compiler_fence(Ordering::SeqCst);
        if slot.word.load(Ordering::Acquire) == generation << STATE_BITS | LIVE | OWNED {
            return Some(slot);
        }
        slot.inside.store(0, Ordering::Release);
        None
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
                Err(word) if word == idle | OWNED => {
                    if slot.revoke(idle)? {
                        return Some(slot);
                    }
                }
                Err(_) => return None,
            }
        }
    }
}

impl<T> Slot<T> {
    /// Takes the slot from its owner and makes it busy. Whether it did; if
    /// not, another was first. `None`: there is no barrier to be had.
    #[cold]
    fn revoke(&self, idle: usize) -> Option<bool> {
        let (owned, busy) = (idle | OWNED, idle | BUSY);
        let exchanged =
            self.word
                .compare_exchange(owned, busy, Ordering::Acquire, Ordering::Relaxed);
        if exchanged.is_err() {
            return Some(false);
        }
        if !barrier() {
            self.word.store(owned, Ordering::Release);
            return None;
        }
        // From here on the owner sees that it is none, or is seen inside.
        let mut spins = 0;
        while self.inside.load(Ordering::Acquire) != 0 {
            wait(&mut spins);
        }
        self.owner.store(0, Ordering::Relaxed);
        self.row.store(0, Ordering::Relaxed);
        let needed = self.needed.load(Ordering::Relaxed);
        let needed = needed.saturating_mul(2).min(MOST_IN_A_ROW);
        self.needed.store(needed, Ordering::Relaxed);
        Some(true)
    }
}

/// This thread: a number that no other one ever has, not 0.
#[inline]
fn me() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        static ME: Cell<usize> = const { Cell::new(0) };
    }
    ME.with(|me| {
        if me.get() == 0 {
            me.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        me.get()
    })
}

/// Whether this process may use [`barrier`]; asked once.
fn has_barrier() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
}

/// Makes every thread of the process pass a full memory barrier. A few
/// microseconds.
fn barrier() -> bool {
    has_barrier() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
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
    lock: Lock,
}

/// What of a slot ends a call: its fields of the same names.
struct Lock {
    word: &'static AtomicUsize,
    inside: &'static AtomicUsize,
    owner: &'static AtomicUsize,
    row: &'static AtomicUsize,
    last: &'static AtomicUsize,
    needed: &'static AtomicUsize,
    /// Whether this thread is in as the owner, and did not set `BUSY`.
    owned: bool,
}

impl Lock {
    /// The end of a call that had set `BUSY`: the instance is free, or this
    /// thread's own.
    fn release(&self) {
        // Only the holder changes a busy word, so this is what it was.
        let idle = self.word.load(Ordering::Relaxed) & !BUSY;
        let me = me();
        let row = match self.last.load(Ordering::Relaxed) {
            last if last == me => self.row.load(Ordering::Relaxed).saturating_add(1),
            _ => 0,
        };
        self.last.store(me, Ordering::Relaxed);
        self.row.store(row, Ordering::Relaxed);
        let own = row >= self.needed.load(Ordering::Relaxed) && has_barrier();
        if own {
            self.owner.store(me, Ordering::Relaxed);
        }
        let word = if own { idle | OWNED } else { idle };
        self.word.store(word, Ordering::Release);
    }
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
        if self.lock.owned {
            self.lock.inside.store(0, Ordering::Release);
        } else {
            self.lock.release();
        }
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
    fn an_owner_gives_way_and_comes_again() {
        const TURNS: u64 = 20_000;
        let handle = REGISTRY.insert(Box::new(0)).unwrap();
        let turn = || *REGISTRY.lock(handle).unwrap() += 1;
        // This thread owns it soon; then others come, all at once, while it
        // goes on.
        (0..TURNS).for_each(|_| turn());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        thread::yield_now();
                        (0..TURNS / 20).for_each(|_| turn());
                    }
                });
            }
            (0..TURNS).for_each(|_| turn());
        });
        // And an owner's handle is stale at once when another frees it.
        (0..MOST_IN_A_ROW.min(1 << 14)).for_each(|_| turn());
        let freed = thread::scope(|scope| scope.spawn(|| REGISTRY.remove(handle)).join());
        assert_eq!(freed.unwrap().as_deref(), Some(&(5 * TURNS + (1 << 14))));
        assert!(REGISTRY.lock(handle).is_none());
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
