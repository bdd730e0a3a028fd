//! Links in a namespace that is ours to measure in: made packed or one by
//! one, and deleted by the groups they were made in. Called by `ifaceseq`
//! and the failover drill; links that shall stay are made by `link add`.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::Namespace;
use netlink::TooLong;
use netlink::decode::{Operation, decode};
use netlink::encode::{self, LinkEnd, LinkKind, NewLink, Request};
use netlink::message::flag;
use netlink::request::Dump;
use rustix::time::{ClockId, clock_gettime};

/// What a VLAN and its like stand on: `parent0`, `parent1`…
const PARENT: &str = "parent";
/// VLANs on a parent (IEEE 802.1Q: 1 to 4,094).
const VLANS: u32 = 4_094;

/// A fresh namespace, or what to do instead.
pub fn fresh() -> Result<Namespace> {
    Namespace::fresh().context(
        "a namespace to measure in could not be made; run as root, or under `unshare -rn` with --here",
    )
}

/// How links are made.
pub struct Making {
    kind: String,
    /// Links are made in groups of their own, by which they are deleted:
    /// the first hundred, those between and the last hundred. Nobody else
    /// uses them.
    first_group: u32,
}

/// Time on the clock, and of it without a processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// On the clock.
    pub wall: Duration,
    /// Of it, this thread was asleep or waiting for a processor.
    pub waiting: Duration,
}

impl Cost {
    /// What `work` costs.
    pub fn of<T>(work: impl FnOnce() -> Result<T>) -> Result<(Self, T)> {
        let (wall, cpu) = (Instant::now(), thread_time());
        let done = work()?;
        let wall = wall.elapsed();
        let waiting = wall.saturating_sub(thread_time().saturating_sub(cpu));
        Ok((Self { wall, waiting }, done))
    }
}
