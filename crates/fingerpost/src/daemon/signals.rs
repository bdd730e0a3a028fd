//! Signals as descriptors that can be waited for.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Signals that came and were not looked at yet.
#[derive(Debug)]
pub struct Signals {
    end: UnixStream,
    reload: UnixStream,
}

impl Signals {
    /// Catches SIGINT and SIGTERM (end) and SIGHUP (reload).
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            end: caught(&[SIGINT, SIGTERM])?,
            reload: caught(&[SIGHUP])?,
        })
    }

    /// Becomes readable when the daemon is to end.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Becomes readable when the configuration is to be read again.
    pub fn reload(&self) -> BorrowedFd<'_> {
        self.reload.as_fd()
    }

    /// Whether the daemon is to end.
    pub fn take_end(&mut self) -> bool {
        take(&mut self.end)
    }

    /// Whether the configuration is to be read again.
    pub fn take_reload(&mut self) -> bool {
        take(&mut self.reload)
    }
}

fn caught(signals: &[i32]) -> io::Result<UnixStream> {
    let (ours, handlers) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        pipe::register(*signal, handlers.try_clone()?)?;
    }
    Ok(ours)
}

/// Empties a pipe; whether there was anything in it.
fn take(pipe: &mut UnixStream) -> bool {
    let mut any = false;
    let mut octets = [0; 64];
    while pipe.read(&mut octets).is_ok_and(|read| read > 0) {
        any = true;
    }
    any
}
