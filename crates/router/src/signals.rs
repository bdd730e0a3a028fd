//! Signals as something that can be waited for beside packets. For the
//! threads that forward or translate until they are told to end.

use std::io::Read;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};
use signal_hook::low_level::pipe;

/// Becomes readable when one of some signals comes; reading never waits.
pub fn caught(signals: &[i32]) -> Result<UnixStream> {
    let (ours, handlers) = UnixStream::pair().context("making a pipe for signals")?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        let handler = handlers.try_clone()?;
        pipe::register(*signal, handler).context("catching signals")?;
    }
    Ok(ours)
}

/// Whether a signal has come since this was asked last.
pub fn has_come(signal: &mut UnixStream) -> bool {
    signal.read(&mut [0; 64]).is_ok_and(|read| read > 0)
}
