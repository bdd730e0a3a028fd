//! Links that come and go in another namespace: when a namespace goes, the
//! kernel holds its lock of links (RTNL) until all of them have. Beside it a
//! look at how long others wait for that lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use linux::Namespace;
use netlink::request::Dump;

use crate::Netns;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two namespaces.
const REST: Duration = Duration::from_secs(1);

/// Somebody who holds the lock now and then.
#[derive(Debug)]
pub struct Disturbance {
    links: usize,
}

impl Disturbance {
    /// By so many links; 0: not at all.
    pub fn of(links: usize) -> Self {
        Self { links }
    }

    /// Does it until it is to stop; the longest that a listing of the links
    /// of a namespace that has none took.
    pub fn run(&self, stop: &AtomicBool) -> Result<Duration> {
        let quiet = Netns::new("look")?;
        let namespace = Namespace::open(quiet.name())?;
        let longest = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let begun = Instant::now();
                    let request = Dump::Links { counters: false };
                    // Whether there is an answer does not matter here.
                    let _ = linux::dump(&namespace, &request, &mut |_| {
                        std::ops::ControlFlow::Continue(())
                    });
                    longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                    thread::sleep(PAUSE);
                }
            });
            let done = self.disturb(stop);
            // The other ends by itself when all is to stop.
            done
        })?;
        Ok(Duration::from_millis(longest.into_inner()))
    }

    fn disturb(&self, stop: &AtomicBool) -> Result<()> {
        let lines = (0..self.links).map(|link| format!("link add n{link} type ifb\n"));
        let lines: String = lines.collect();
        while !stop.load(Ordering::Acquire) {
            if self.links > 0 {
                let other = Netns::new("disturbing")?;
                other.ip_batch(&lines)?;
                drop(other);
            }
            thread::sleep(REST);
        }
        Ok(())
    }
}
