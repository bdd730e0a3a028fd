//! Time as this thread saw it: the wall's, and what other processes took.

use std::fs;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps the calling thread on a core. On a machine with fewer cores it
/// runs anywhere.
pub fn stay_on(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // Refused only where the core is not ours to use.
    let _ = sched_setaffinity(None, &cores);
}

/// Nanoseconds that this thread was ready to run and another ran instead,
/// since it started (second field of `/proc/thread-self/schedstat`).
pub fn taken_away_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let field = text.split_whitespace().nth(1);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Nanoseconds for each of `count`, and the result.
pub fn ns_each<T>(count: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    let ns = start.elapsed().as_nanos() as f64;
    (result, ns / count.max(1) as f64)
}
