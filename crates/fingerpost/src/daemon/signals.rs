//! Signals as descriptors that can be waited for, and the wait for them and
//! for clients: of the daemon and of a replay that answers.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

    /// Waits for a signal, for a client of one of `listeners`, or until
    /// `patience` is over. Gives the listeners that have clients, by their
    /// places.
    pub fn wait<'a>(
        &'a self,
        listeners: impl Iterator<Item = &'a UnixListener>,
        patience: Duration,
    ) -> io::Result<Vec<usize>> {
        let mut fds: Vec<PollFd<'_>> = [self.end.as_fd(), self.reload.as_fd()]
            .into_iter()
            .chain(listeners.map(AsFd::as_fd))
            .map(|fd: BorrowedFd<'_>| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let listeners = fds.iter().skip(2).enumerate();
        let called = listeners.filter(|(_, fd)| !fd.revents().is_empty());
        Ok(called.map(|(at, _)| at).collect())
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
