//! The flows that someone outside made, oldest first: through a shared
//! mapping that lets everybody in, to a redirect or the target, or to whom
//! they were sent where unsolicited packets pass.
//!
//! For the engine, which ends these before it refuses an inside host's new
//! flow. A name in the line is a hint: its flow may have ended since, and
//! the place be another's. So no flow has to find its name here when it ends.

use std::io;

use memory::Reserved;

/// One in so many places is a stranger's at most.
const SHARE: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct Strangers {
    /// A ring, grown as far as it was ever needed.
    names: Reserved<u32>,
    head: usize,
    len: usize,
    /// Flows that are strangers', exactly.
    count: usize,
    /// Their share.
    most: usize,
}

impl Strangers {
    /// Their share of so many flows.
    pub fn of(max_flows: usize) -> io::Result<Self> {
        Self::new((max_flows / SHARE).max(1))
    }

    fn new(most: usize) -> io::Result<Self> {
        Ok(Self {
            // As many names again may be of flows that ended by themselves.
            names: Reserved::new(2 * most)?,
            head: 0,
            len: 0,
            count: 0,
            most,
        })
    }

    /// Whether they have their share.
    pub fn are_many(&self) -> bool {
        self.count >= self.most
    }

    /// Flows that are strangers'.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A flow is one of them.
    pub fn came(&mut self) {
        self.count += 1;
    }

    /// A flow is none of them any more.
    pub fn went(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    pub fn memory_bytes(&self) -> usize {
        self.names.memory_bytes()
    }

    /// Whether no further name fits.
    pub fn is_full(&self) -> bool {
        self.len >= self.names.max()
    }

    /// A name behind all others. Whether it fitted.
    pub fn push(&mut self, name: u32) -> bool {
        if self.is_full() {
            return false;
        }
        let at = (self.head + self.len) % self.names.max();
        let has_place = match self.names.get_mut(at) {
            Some(place) => {
                *place = name;
                true
            }
            None => self.names.push(name),
        };
        self.len += usize::from(has_place);
        has_place
    }

    /// All names, the first one first.
    pub fn names(&self) -> impl Iterator<Item = u32> {
        let places = (self.head..self.head + self.len).map(|at| at % self.names.max());
        places.filter_map(|at| self.names.get(at).copied())
    }

    /// The first name.
    pub fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let name = self.names.get(self.head).copied();
        self.head = (self.head + 1) % self.names.max();
        self.len -= 1;
        name
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn it_is_a_queue_with_an_end() {
        let mut random = crate::key::Random::new(5);
        for most in [1, 2, 7, 100] {
            let mut strangers = Strangers::new(most).unwrap();
            let most = strangers.names.max();
            let mut queue = VecDeque::new();
            for step in 0..10_000 {
                if random.below(2) == 0 {
                    let fits = queue.len() < most;
                    assert_eq!(strangers.is_full(), !fits);
                    assert_eq!(strangers.push(step), fits);
                    if fits {
                        queue.push_back(step);
                    }
                } else {
                    assert_eq!(strangers.pop(), queue.pop_front());
                }
            }
        }
    }
}
