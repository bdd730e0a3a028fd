//! Quiescent-state reclamation: what a writer took out of a shared structure
//! may be reused once every reader has passed between two batches.
//!
//! For structures that one writer changes while workers read them in batches
//! (`fib`, the neighbours of `dataplane`). A reader proves with a
//! [`Section`] that it is reading; the writer asks for a [`Grace`] after it
//! has unlinked something and reuses that when the grace is over. Nobody
//! waits for anybody: a writer whose grace is not over yet keeps what it
//! unlinked a while longer.
//!
//! # Why it is right
//!
//! A domain has an epoch that only grows, and each reader a slot that says
//! `OFFLINE` or the epoch it has last seen between two batches.
//!
//! The writer unlinks something, then raises the epoch to *E* by a
//! read-modify-write with Release ([`Domain::begin`]). The grace is over when
//! every slot, loaded with Acquire, says `OFFLINE` or at least *E*
//! ([`Domain::is_over`]).
//!
//! 1. *Reads before are finished.* Every store to a slot is a Release, the
//!    one that comes online too, because the writer may see that one instead
//!    of the `OFFLINE` before it. The writer's Acquire load that sees a value
//!    comes after all that the reader read before it stored that.
//! 2. *Reads after see the unlinking.* A reader that stores *e* ≥ *E* has
//!    loaded *e* from the epoch with Acquire. That reads from the writer's
//!    Release or from a later read-modify-write, which continues its release
//!    sequence; so the unlinking happened before all that the reader does
//!    next, and by coherence it cannot load the unlinked pointer any more.
//!    Staying online thus takes a load and a store, and no fence.
//! 3. *Coming online is the one place where a load must not overtake a
//!    store.* The reader stores its slot and then loads pointers, the writer
//!    unlinks and then loads slots. A sequentially consistent fence stands
//!    between the two on both sides; so either the writer sees the reader
//!    online, or the reader sees the pointer unlinked.
//!
//! The models under `cfg(feature = "model")` run all interleavings of it:
//! `cargo test --package fingerpost-memory --features model quiescent`.

use std::sync::Arc;

#[cfg(feature = "model")]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(feature = "model"))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A slot whose reader reads nothing.
const OFFLINE: u64 = 0;

/// A value on cache lines of its own: two, because processors fetch pairs.
#[derive(Debug)]
#[repr(align(128))]
struct CachePadded<T>(T);

/// A reader's place in a domain. Written by the reader alone.
#[derive(Debug)]
struct Slot {
    seen: AtomicU64,
    is_taken: AtomicBool,
}

/// Readers and the epoch they look at. One domain serves any number of
/// structures and writers.
#[derive(Debug)]
pub struct Domain {
    epoch: CachePadded<AtomicU64>,
    slots: Box<[CachePadded<Slot>]>,
}

/// A domain that has as many readers as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {max_readers} readers of this domain are registered: make it for more of them")]
pub struct Full {
    /// Most readers of the domain.
    pub max_readers: usize,
}

/// A point in time: what was unlinked before it is free to be reused once
/// the grace [is over](Domain::is_over). A later grace is greater, and over
/// no sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grace(u64);

impl Domain {
    /// A domain for at most `max_readers` readers at a time. 128 bytes for
    /// each.
    pub fn new(max_readers: usize) -> Arc<Self> {
        let slot = |_| {
            CachePadded(Slot {
                seen: AtomicU64::new(OFFLINE),
                is_taken: AtomicBool::new(false),
            })
        };
        Arc::new(Self {
            epoch: CachePadded(AtomicU64::new(OFFLINE + 1)),
            slots: (0..max_readers).map(slot).collect(),
        })
    }

    /// Most readers at a time.
    pub fn max_readers(&self) -> usize {
        self.slots.len()
    }

    /// A place for a reader, free again when the reader is dropped. Fails
    /// when all places are taken. O(readers).
    pub fn register(self: &Arc<Self>) -> Result<Reader, Full> {
        let free = self.slots.iter().position(|slot| {
            // Acquire: what the former owner of the place did comes before.
            !slot.0.is_taken.swap(true, Ordering::Acquire)
        });
        let Some(at) = free else {
            return Err(Full {
                max_readers: self.max_readers(),
            });
        };
        Ok(Reader {
            domain: Arc::clone(self),
            at,
        })
    }

    /// For a writer: what it has unlinked before this call is free to be
    /// reused when the grace is over. Any number of writers; some 10 ns.
    pub fn begin(&self) -> Grace {
        // Release: whoever sees the new epoch sees what was unlinked (2.).
        let before = self.epoch.0.fetch_add(1, Ordering::AcqRel);
        // Against readers that come online (3.).
        fence(Ordering::SeqCst);
        Grace(before + 1)
    }

    /// Whether every reader has been between two batches since the grace
    /// began. Never waits; O(readers). Once true, it stays true.
    pub fn is_over(&self, grace: Grace) -> bool {
        self.slots.iter().all(|slot| {
            // Acquire: the reader's last reads come before our reuse (1.).
            let seen = slot.0.seen.load(Ordering::Acquire);
            seen == OFFLINE || seen >= grace.0
        })
    }
}

/// A registered reader, usually one for each worker; offline unless one of
/// its sections or an [`Online`] is open.
#[derive(Debug)]
pub struct Reader {
    domain: Arc<Domain>,
    at: usize,
}

impl Reader {
    /// Opens a section and comes online for it alone. One fence, some 8 ns:
    /// for those who read now and then. Who reads batch after batch stays
    /// [`Reader::online`].
    #[inline]
    pub fn enter(&mut self) -> Section<'_> {
        come_online(&self.domain, self.at);
        Section {
            domain: &self.domain,
            at: self.at,
            after: After::Offline,
        }
    }

    /// Comes online until the result is dropped: sections cost a load then.
    /// While online, a reader that does nothing holds up every grace: drop
    /// it before a wait.
    pub fn online(&mut self) -> Online<'_> {
        let epoch = come_online(&self.domain, self.at);
        Online {
            domain: &self.domain,
            at: self.at,
            epoch,
        }
    }

    /// The domain it is registered with.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A section or an `Online` that was forgotten, not dropped, has left
        // the slot online; nothing can be borrowed from it any more.
        go_offline(&self.domain, self.at);
        self.domain.slots[self.at]
            .0
            .is_taken
            .store(false, Ordering::Release);
    }
}

/// A reader that stays online from one batch to the next.
#[derive(Debug)]
pub struct Online<'a> {
    domain: &'a Domain,
    at: usize,
    /// What the slot says.
    epoch: u64,
}

impl Online<'_> {
    /// Opens a section. Its end is the quiescent state: one load of a line
    /// that changes only with a grace, and a store to the reader's own line
    /// when it did.
    #[inline(always)]
    pub fn enter(&mut self) -> Section<'_> {
        Section {
            domain: self.domain,
            at: self.at,
            after: After::Online(&mut self.epoch),
        }
    }

    /// Says that nothing is being read, without a section: for a batch that
    /// turned out empty.
    #[inline(always)]
    pub fn pass(&mut self) {
        pass(self.domain, self.at, &mut self.epoch);
    }
}

impl Drop for Online<'_> {
    fn drop(&mut self) {
        go_offline(self.domain, self.at);
    }
}

/// The proof that its holder is reading: what it finds in structures of this
/// domain stays until the section is dropped. Borrow what is found from the
/// section, and it cannot be kept longer.
#[derive(Debug)]
pub struct Section<'a> {
    domain: &'a Domain,
    at: usize,
    after: After<'a>,
}

/// What a reader is when its section is dropped.
#[derive(Debug)]
enum After<'a> {
    Offline,
    /// Still online, having seen this epoch.
    Online(&'a mut u64),
}

impl Section<'_> {
    /// Whether this section protects what is in structures of a domain. A
    /// structure asks this once for each batch before it reads: a section of
    /// another domain protects nothing.
    #[inline(always)]
    pub fn is_of(&self, domain: &Domain) -> bool {
        std::ptr::eq(self.domain, domain)
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        match &mut self.after {
            After::Offline => go_offline(self.domain, self.at),
            After::Online(epoch) => pass(self.domain, self.at, epoch),
        }
    }
}

#[inline(always)]
fn come_online(domain: &Domain, at: usize) -> u64 {
    // Acquire: as for `pass`, this may be the epoch that a grace began.
    let epoch = domain.epoch.0.load(Ordering::Acquire);
    // Release: a writer may see this value and not the `OFFLINE` before it,
    // and the batch read before that is finished all the same (1.).
    domain.slots[at].0.seen.store(epoch, Ordering::Release);
    // Nothing is read before the slot is seen (3.).
    fence(Ordering::SeqCst);
    epoch
}

#[inline(always)]
fn pass(domain: &Domain, at: usize, seen: &mut u64) {
    // Acquire: what was unlinked before this epoch is not read again (2.).
    let epoch = domain.epoch.0.load(Ordering::Acquire);
    if epoch != *seen {
        *seen = epoch;
        // Release: the reads of the batch come before (1.).
        domain.slots[at].0.seen.store(epoch, Ordering::Release);
    }
}

#[inline(always)]
fn go_offline(domain: &Domain, at: usize) {
    // Release: the reads of the batch come before (1.).
    domain.slots[at].0.seen.store(OFFLINE, Ordering::Release);
}

#[cfg(test)]
mod tests;
