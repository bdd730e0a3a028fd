//! Where each nanosecond goes: the time between the stages of one core,
//! batch by batch.

use super::super::clock::monotonic;
use super::super::plan::Stage;
use crate::histogram::Histogram;

/// Readings that tell what a reading costs.
const READINGS: u32 = 10_000;

/// What the stages of one core took, in nanoseconds a batch.
#[derive(Debug, Clone)]
pub struct Profile {
    last_nanos: u64,
    /// What a look at the clock costs.
    pub clock_nanos: u64,
    /// By stage.
    pub stages: [Histogram; 6],
    /// Of the buffers' stage, where the cache was refilled from the pool.
    pub refills: Histogram,
}

impl Profile {
    /// Finds out what a look at the clock costs.
    pub fn new() -> Self {
        let start = monotonic();
        let mut last = start;
        for _ in 0..READINGS {
            last = monotonic();
        }
        Self {
            last_nanos: last,
            clock_nanos: (last - start) / u64::from(READINGS),
            stages: Default::default(),
            refills: Histogram::default(),
        }
    }

    /// The time since the last lap was this stage's; `None`: nobody's.
    #[inline]
    pub fn lap(&mut self, stage: Option<Stage>) {
        let nanos = self.passed();
        if let Some(stage) = stage {
            self.stages[stage as usize].add(nanos);
        }
    }

    /// The same of the buffers' stage.
    #[inline]
    pub fn lap_buffer(&mut self, refilled: bool) {
        let nanos = self.passed();
        if refilled {
            self.refills.add(nanos);
        } else {
            self.stages[Stage::Buffer as usize].add(nanos);
        }
    }

    fn passed(&mut self) -> u64 {
        let now = monotonic();
        let passed = now.saturating_sub(self.last_nanos + self.clock_nanos);
        self.last_nanos = now;
        passed
    }

    /// Adds another core's.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.stages.iter_mut().zip(&other.stages) {
            to.merge(from);
        }
        self.refills.merge(&other.refills);
    }
}
