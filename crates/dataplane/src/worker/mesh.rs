//! Workers that hand packets to one another: a ring of buffers from each to
//! each, and for each a wakeup that wakes it where it rests.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

use crate::buffer::ring::{Receiver, Sender, ring};
use crate::{Batch, Pool};

/// What a worker has of the others.
#[derive(Debug)]
pub struct Mesh {
    number: usize,
    /// By number; none to itself.
    to: Vec<Option<Sender>>,
    from: Vec<Receiver>,
    wakeups: Arc<[Wakeup]>,
}

/// Wakes a worker that waits for packets.
#[derive(Debug)]
struct Wakeup {
    is_resting: AtomicBool,
    rung: OwnedFd,
}

impl Mesh {
    /// For so many workers, in the order of their numbers. Each ring holds
    /// `packets` buffers of the pool; what there is no room for is dropped
    /// and counted by who wanted to hand it over.
    pub fn of(pool: &Pool, workers: usize, packets: usize) -> io::Result<Vec<Self>> {
        let wakeup = || {
            Ok(Wakeup {
                is_resting: AtomicBool::new(false),
                rung: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            })
        };
        let wakeups: io::Result<Vec<Wakeup>> = (0..workers).map(|_| wakeup()).collect();
        let wakeups: Arc<[Wakeup]> = wakeups?.into();
        let mut all: Vec<Self> = (0..workers)
            .map(|number| Self {
                number,
                to: Vec::new(),
                from: Vec::new(),
                wakeups: Arc::clone(&wakeups),
            })
            .collect();
        for giver in 0..workers {
            for taker in 0..workers {
                let (sender, receiver) = match giver == taker {
                    true => (None, None),
                    false => {
                        let (sender, receiver) = ring(pool, packets);
                        (Some(sender), Some(receiver))
                    }
                };
                if let Some(mesh) = all.get_mut(giver) {
                    mesh.to.push(sender);
                }
                if let Some(mesh) = all.get_mut(taker) {
                    mesh.from.extend(receiver);
                }
            }
        }
        Ok(all)
    }

    /// Hands packets to a worker, from the batch's first on; those that it
    /// has no room for stay in the batch. A system call where it rests.
    pub(super) fn hand_over(&mut self, worker: usize, batch: &mut Batch) {
        let Some(Some(sender)) = self.to.get_mut(worker) else {
            return;
        };
        if sender.is_ended() {
            return;
        }
        sender.send(batch);
        // Either it sees what came when it looks before it rests, or it is
        // seen to rest here: the other fence is in `rests`.
        fence(Ordering::SeqCst);
        if let Some(wakeup) = self.wakeups.get(worker)
            && wakeup.is_resting.load(Ordering::Relaxed)
            && wakeup.is_resting.swap(false, Ordering::Relaxed)
        {
            // It fails where so much was rung already that it is awake.
            let _ = rustix::io::write(&wakeup.rung, &1_u64.to_ne_bytes());
        }
    }

    /// Rings that packets come by, to be taken in turn.
    pub(super) fn rings(&self) -> usize {
        self.from.len()
    }

    /// Takes what came by a ring, as far as it has room in the batch.
    #[inline]
    pub(super) fn take(&mut self, ring: usize, batch: &mut Batch) {
        if let Some(ring) = self.from.get_mut(ring) {
            ring.receive(batch);
        }
    }

    /// Says that it is going to rest; false where something has come.
    pub(super) fn rests(&self) -> bool {
        if let Some(wakeup) = self.wakeups.get(self.number) {
            wakeup.is_resting.store(true, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.from.iter().all(Receiver::is_empty)
    }

    /// What becomes readable when another one hands something over.
    pub(super) fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeups.get(self.number)?.rung.as_fd())
    }

    /// Says that it rests no more.
    pub(super) fn wakes(&self) {
        let Some(wakeup) = self.wakeups.get(self.number) else {
            return;
        };
        let was_rung = !wakeup.is_resting.swap(false, Ordering::Relaxed);
        if was_rung {
            // Nothing to read: it is not rung yet, and will be for nothing.
            let _ = rustix::io::read(&wakeup.rung, &mut [0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn is_rung(mesh: &Mesh) -> bool {
        let wakeup = mesh.wakeup().unwrap();
        let mut waited = [PollFd::from_borrowed_fd(wakeup, PollFlags::IN)];
        let none = rustix::event::Timespec::default();
        poll(&mut waited, Some(&none)).unwrap() > 0
    }

    #[test]
    fn who_rests_is_woken_and_who_works_is_not() {
        let pool = Pool::new(16, 100).unwrap();
        let mut all = Mesh::of(&pool, 3, 4).unwrap();
        let mut batch = Batch::new(8);
        pool.cache().fill(&mut batch, 6);
        let [first, second, third] = all.as_mut_slice() else {
            panic!("three");
        };
        first.hand_over(1, &mut batch);
        // Four have room; who is awake hears nothing.
        assert_eq!(batch.len(), 2);
        assert!(!is_rung(second));
        assert!(!second.rests());
        second.wakes();
        let mut came = Batch::new(8);
        (0..second.rings()).for_each(|ring| second.take(ring, &mut came));
        assert_eq!(came.len(), 4);
        assert!(second.rests());
        third.hand_over(1, &mut came);
        assert!(came.is_empty() && is_rung(second) && !is_rung(first));
        second.wakes();
        assert!(!is_rung(second));
        // To itself, and to nobody, nothing goes.
        first.hand_over(0, &mut batch);
        first.hand_over(9, &mut batch);
        assert_eq!(batch.len(), 2);
        all.remove(1);
        let [first, _] = all.as_mut_slice() else {
            panic!("two");
        };
        first.hand_over(1, &mut batch);
        assert_eq!(batch.len(), 2);
        drop((batch, came, all));
        assert_eq!(pool.outstanding(), 0);
    }
}
