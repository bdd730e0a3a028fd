//! What the benches here share: measurements asked for on standard input
//! (`NAME MILLISECONDS` or `NAME READERS MILLISECONDS`), answered by a JSON
//! line each, so that `cargo xtask bench` can ask us and the peer in turn.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Answers until standard input ends. `measure` gives nanoseconds for each
/// operation, or nothing for a name it does not know.
pub fn serve(mut measure: impl FnMut(&str, usize, Duration) -> Option<f64>) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, count, millis) = match words.as_slice() {
            [name, millis] => (*name, Some(1), millis.parse().ok()),
            [name, count, millis] => (*name, count.parse().ok(), millis.parse().ok()),
            _ => ("", None, None),
        };
        let answer = count
            .zip(millis)
            .and_then(|(count, millis)| measure(name, count, Duration::from_millis(millis)));
        let mut out = io::stdout().lock();
        match answer {
            Some(ns) => writeln!(out, "{{\"ns_per_op\": {ns:.4}}}")?,
            None => writeln!(out, "{{\"error\": \"not understood\"}}")?,
        }
        out.flush()?;
    }
    Ok(())
}

/// Nanoseconds for each operation of `work`, which says how many it did, and
/// is done again and again for a time.
#[inline(always)]
pub fn ns_each(time: Duration, mut work: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    loop {
        for _ in 0..256 {
            done += work();
        }
        let took = start.elapsed();
        if took >= time {
            return took.as_nanos() as f64 / done.max(1) as f64;
        }
    }
}

/// Keeps the calling thread on a core, where the machine has it.
pub fn stay_on(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // Refused only where the core is not ours to use.
    let _ = sched_setaffinity(None, &cores);
}
