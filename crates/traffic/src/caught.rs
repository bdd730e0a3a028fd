//! Signals that end a command with its report.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set when it is time to end.
pub fn caught() -> Result<Arc<AtomicBool>> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end)).context("catching signals")?;
    }
    Ok(end)
}
