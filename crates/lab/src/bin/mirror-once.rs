//! Mirrors the namespace it runs in once, and tells how long the first
//! listing took and what the tables weigh. `cargo xtask bench routes` runs
//! it. Output: `READY_MS ROUTES BYTES_OF_ROUTES RESIDENT_BYTES`.

use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use linux::{Mirror, Namespace, Options, Phase};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE_BYTES: u64 = 4_096;

fn main() -> Result<()> {
    let before = resident_bytes();
    let start = Instant::now();
    let mirror = Mirror::start(Namespace::current()?, Options::default())?;
    let phase = mirror.wait_ready(PATIENCE);
    let ready_ms = start.elapsed().as_secs_f64() * 1_000.0;
    if phase != Phase::Live {
        bail!("the mirror is not ready but {phase:?}");
    }
    let tables = mirror.reader().snapshot();
    writeln!(
        io::stdout().lock(),
        "{ready_ms} {} {} {}",
        tables.routes.len(),
        tables.routes.heap_bytes(),
        resident_bytes() - before
    )?;
    Ok(())
}

/// Second field of `/proc/self/statm`.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1);
    pages
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * PAGE_BYTES
}
