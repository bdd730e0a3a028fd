//! Workers that hand packets to one another: a ring of buffers from each to
//! each, and for each a wakeup that wakes it where it rests.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use memory::Wakeup;
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
    bells: Arc<[Bell]>,
}

/// Wakes a worker that waits for packets.
#[derive(Debug)]
struct Bell {
    wakeup: Wakeup,
    rung: OwnedFd,
}

impl Mesh {
    /// For so many workers, in the order of their numbers. Each ring holds
    /// `packets` buffers of the pool; what there is no room for is dropped
    /// and counted by who wanted to hand it over.
    pub fn of(pool: &Pool, workers: usize, packets: usize) -> io::Result<Vec<Self>> {
        let bell = || {
            Ok(Bell {
                wakeup: Wakeup::new(),
                rung: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            })
        };
        let bells: io::Result<Vec<Bell>> = (0..workers).map(|_| bell()).collect();
        let bells: Arc<[Bell]> = bells?.into();
        let mut all: Vec<Self> = (0..workers)
            .map(|number| Self {
                number,
                to: Vec::new(),
                from: Vec::new(),
                bells: Arc::clone(&bells),
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
        if let Some(bell) = self.bells.get(worker)
            && bell.wakeup.must_wake()
        {
            // It fails where so much was rung already that it is awake.
            let _ = rustix::io::write(&bell.rung, &1_u64.to_ne_bytes());
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
        let has_nothing = || self.from.iter().all(Receiver::is_empty);
        match self.bells.get(self.number) {
            Some(bell) => bell.wakeup.rests(has_nothing),
            None => has_nothing(),
        }
    }

    /// What becomes readable when another one hands something over.
    pub(super) fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bells.get(self.number)?.rung.as_fd())
    }

    /// Says that it rests no more. What has become readable is read, whoever
    /// it was meant for: each rest would end at once from here on.
    pub(super) fn wakes(&self, is_rung: bool) {
        let Some(bell) = self.bells.get(self.number) else {
            return;
        };
        bell.wakeup.wakes();
        if is_rung {
            // Nobody else reads it, so there is something.
            let _ = rustix::io::read(&bell.rung, &mut [0; 8]);
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
        second.wakes(is_rung(second));
        let mut came = Batch::new(8);
        (0..second.rings()).for_each(|ring| second.take(ring, &mut came));
        assert_eq!(came.len(), 4);
        assert!(second.rests());
        third.hand_over(1, &mut came);
        assert!(came.is_empty() && is_rung(second) && !is_rung(first));
        second.wakes(is_rung(second));
        assert!(!is_rung(second));
        (0..second.rings()).for_each(|ring| second.take(ring, &mut came));
        assert_eq!(came.len(), 4);
        // Rung when it was about to work anyway: its next rest ends once for
        // nothing, and no more.
        assert!(second.rests());
        let bell = &second.bells[1];
        assert!(bell.wakeup.must_wake());
        second.wakes(is_rung(second));
        rustix::io::write(&bell.rung, &1_u64.to_ne_bytes()).unwrap();
        assert!(second.rests() && is_rung(second));
        second.wakes(is_rung(second));
        assert!(second.rests() && !is_rung(second));
        second.wakes(is_rung(second));
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
