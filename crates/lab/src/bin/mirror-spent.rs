//! Mirrors the namespace it runs in, and tells for each line on standard
//! input what the mirror has done and spent. `cargo xtask bench events` runs
//! it. Output: `EVENTS GENERATIONS CPU_NS BYTES_ALLOCATED`.

use std::alloc::System;
use std::fs;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cap::Cap;
use linux::{Mirror, Namespace, Options, Phase};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let mirror = Mirror::start(Namespace::current()?, Options::default())?;
    let phase = mirror.wait_ready(PATIENCE);
    if phase != Phase::Live {
        bail!("the mirror is not ready but {phase:?}");
    }
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        let allocated = ALLOCATOR.total_allocated();
        let cpu_ns = cpu_ns_of_mirror()?;
        let generations = mirror.reader().snapshot().generation.0;
        let events = mirror.status().events;
        writeln!(out, "{events} {generations} {cpu_ns} {allocated}")?;
        out.flush()?;
    }
    Ok(())
}

/// Processor time of the mirror's thread, user and system.
fn cpu_ns_of_mirror() -> Result<u64> {
    for task in fs::read_dir("/proc/self/task")?.flatten() {
        let name = fs::read_to_string(task.path().join("comm"))?;
        if name.trim() == "mirror" {
            let text = fs::read_to_string(task.path().join("schedstat"))?;
            let first = text.split_whitespace().next();
            return first
                .context("an empty schedstat")?
                .parse()
                .map_err(Into::into);
        }
    }
    bail!("there is no thread of a mirror")
}
