//! A stack of places (numbers of something that the caller keeps) which any
//! thread pushes to and pops from, without a lock.
//!
//! For the pool of packet buffers (`dataplane`), where a place is a whole
//! magazine of buffers: one atomic operation moves all of it.
//!
//! Below a place lies the one that its link names. A thread that is about to
//! pop may read the link of a place that others have popped meanwhile, so
//! links are atomics that outlive the stack's use; what it read is worth
//! nothing then, and the head's tag, which every pop raises, makes its
//! exchange fail. The tag is 40 bits wide: a thread would have to be stopped
//! between two instructions for exactly 2^40 pops (15 hours at 20 million
//! pops a second) to be fooled.
//!
//! What was written for a place before it was pushed is seen by who pops it:
//! a push is a Release, a pop an Acquire, and both are read-modify-writes, so
//! that pops in between break no release sequence. The models under
//! `cfg(feature = "model")` run the interleavings:
//! `cargo test --package fingerpost-memory --features model stack`.

#[cfg(feature = "model")]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(feature = "model"))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bits of the head that hold the uppermost place; above them is the tag.
const PLACE_BITS: u32 = 24;
/// No place: the stack's ground.
const GROUND: u32 = (1 << PLACE_BITS) - 1;
/// One more pop, in the head.
const ONE_POP: u64 = 1 << PLACE_BITS;

/// A stack of places below [`Stack::MOST_PLACES`].
///
/// The caller gives each operation the links: for every place an atomic,
/// always the same, that nobody else writes to. A place may be pushed only
/// while it is not in the stack.
#[derive(Debug)]
pub struct Stack {
    head: AtomicU64,
}

impl Stack {
    /// Places are smaller than this.
    pub const MOST_PLACES: u32 = GROUND;

    /// A stack with nothing in it.
    pub fn new() -> Self {
        Self {
            head: AtomicU64::new(u64::from(GROUND)),
        }
    }

    /// Puts a place on top. One atomic operation unless another thread was
    /// faster.
    pub fn push<'a>(&self, place: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link(place).store(top(head), Ordering::Relaxed);
            let new = (head & !u64::from(GROUND)) | u64::from(place & GROUND);
            // Release: what belongs to the place goes with it.
            let pushed =
                self.head
                    .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Takes the place on top; `None` when nothing is in it. One atomic
    /// operation unless another thread was faster.
    pub fn pop<'a>(&self, link: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        // Acquire: the link was stored before the push.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let place = top(head);
            if place == GROUND {
                return None;
            }
            let below = link(place).load(Ordering::Relaxed);
            let tag = (head & !u64::from(GROUND)).wrapping_add(ONE_POP);
            let new = tag | u64::from(below & GROUND);
            let popped =
                self.head
                    .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire);
            match popped {
                Ok(_) => return Some(place),
                Err(other) => head = other,
            }
        }
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

fn top(head: u64) -> u32 {
    // The low bits alone are kept.
    head as u32 & GROUND
}

#[cfg(test)]
mod tests {
    #[cfg(not(feature = "model"))]
    use super::*;

    #[cfg(not(feature = "model"))]
    #[test]
    fn the_last_place_pushed_is_the_first_popped() {
        let links: Vec<AtomicU32> = (0..3).map(AtomicU32::new).collect();
        let link = |place: u32| &links[place as usize];
        let stack = Stack::default();
        assert_eq!(stack.pop(link), None);
        stack.push(2, link);
        stack.push(0, link);
        assert_eq!(stack.pop(link), Some(0));
        stack.push(1, link);
        assert_eq!([stack.pop(link), stack.pop(link)], [Some(1), Some(2)]);
        assert_eq!(stack.pop(link), None);
    }

    #[cfg(not(feature = "model"))]
    #[test]
    fn each_place_is_with_one_thread_at_a_time() {
        use std::sync::atomic::AtomicBool;
        const PLACES: u32 = 50;
        let links: Vec<AtomicU32> = (0..PLACES).map(AtomicU32::new).collect();
        let held: Vec<AtomicBool> = (0..PLACES).map(|_| AtomicBool::new(false)).collect();
        let link = |place: u32| &links[place as usize];
        let stack = Stack::new();
        (0..PLACES).for_each(|place| stack.push(place, link));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let Some(place) = stack.pop(link) else {
                            continue;
                        };
                        assert!(!held[place as usize].swap(true, Ordering::Relaxed));
                        held[place as usize].store(false, Ordering::Relaxed);
                        stack.push(place, link);
                    }
                });
            }
        });
        let mut left: Vec<u32> = std::iter::from_fn(|| stack.pop(link)).collect();
        left.sort_unstable();
        assert_eq!(left, (0..PLACES).collect::<Vec<_>>());
    }

    /// Threads that pop, write to what they own by that, and push.
    #[cfg(feature = "model")]
    #[allow(
        unsafe_code,
        reason = "a place of loom's is written to behind a pointer"
    )]
    mod models {
        use super::super::*;
        use loom::cell::UnsafeCell;
        use loom::thread;
        use std::sync::Arc;

        struct Places {
            stack: Stack,
            links: Vec<AtomicU32>,
            owned: Vec<UnsafeCell<u32>>,
        }

        impl Places {
            fn new(count: u32) -> Arc<Self> {
                let places = Self {
                    stack: Stack::new(),
                    links: (0..count).map(AtomicU32::new).collect(),
                    owned: (0..count).map(UnsafeCell::new).collect(),
                };
                (0..count).for_each(|place| places.push(place));
                Arc::new(places)
            }

            fn push(&self, place: u32) {
                self.stack.push(place, |place| &self.links[place as usize]);
            }

            fn pop(&self) -> Option<u32> {
                let place = self.stack.pop(|place| &self.links[place as usize])?;
                self.owned[place as usize].with_mut(|owned| {
                    // SAFETY: loom fails the model if another owns it too.
                    unsafe { *owned += 100 }
                });
                Some(place)
            }
        }

        #[test]
        fn stack_of_two_places_and_two_threads() {
            loom::model(|| {
                let places = Places::new(2);
                let other = Arc::clone(&places);
                let thread = thread::spawn(move || {
                    // The order that fools a stack without a tag: both
                    // popped, the first one back.
                    let first = other.pop();
                    let second = other.pop();
                    if let Some(first) = first {
                        other.push(first);
                    }
                    second
                });
                let mine = places.pop();
                let theirs = thread.join().unwrap();
                let left = [places.pop(), places.pop(), places.pop()];
                let mut all: Vec<u32> = [mine, theirs].into_iter().chain(left).flatten().collect();
                all.sort_unstable();
                assert_eq!(all, [0, 1]);
            });
        }

        #[test]
        fn stack_hands_what_was_written_on() {
            loom::model(|| {
                let places = Places::new(1);
                let other = Arc::clone(&places);
                let thread = thread::spawn(move || {
                    if let Some(place) = other.pop() {
                        other.push(place);
                    }
                });
                if let Some(place) = places.pop() {
                    places.push(place);
                }
                thread.join().unwrap();
                assert_eq!(places.pop(), Some(0));
                assert_eq!(places.pop(), None);
            });
        }
    }
}
