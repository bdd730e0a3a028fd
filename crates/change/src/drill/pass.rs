//! What a pass over all links of a run took.

use std::time::Duration;

/// Creation or deletion of all links of a run.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// From the first request to the last answer.
    pub wall: Duration,
    /// Of it, on no processor: asleep in the kernel.
    pub waiting: Duration,
    /// Of the first hundred and of the last hundred links, where there are
    /// more than two hundred.
    pub ends: Option<[Duration; 2]>,
    /// Of each request, if each was timed.
    pub each: Option<Each>,
    /// How it was asked for.
    pub way: String,
}

/// What single requests took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Each {
    /// Half took no longer.
    pub median: Duration,
    /// 99 of 100 took no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Each {
    /// From the times of all, at least one.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let at = |share: f64| {
            let last = times.len().checked_sub(1)?;
            times.get((last as f64 * share).round() as usize).copied()
        };
        Some(Self {
            median: at(0.5)?,
            p99: at(0.99)?,
            max: at(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_from_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let each = Each::of(times).unwrap();
        assert_eq!(each.max, Duration::from_millis(100));
        assert_eq!(each.p99, Duration::from_millis(99));
        assert_eq!(Each::of(Vec::new()), None);
    }
}
