//! What goes to a client of the control socket, in frames: sent while the
//! client takes it, kept for it where it does not.
//!
//! A client that takes nothing must not hold a snapshot of the tables, for
//! all that changes meanwhile would stay in memory. So an answer that comes
//! row after row is made in pieces, and goes on from the newest tables once
//! the client takes again ([`Outbox::offer`], [`Outbox::deliver`]); any
//! other is made whole, and what is not taken of it is kept here, within
//! the bounds of [`Patience`](super::Patience). For `connection` alone.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::{Client, ServerState};
use crate::budget::Lease;
use crate::control::protocol::{self, DATA};
use crate::source::Source;

/// Bytes gathered before a frame is sent.
pub(super) const FRAME_BYTES: usize = 64 << 10;
/// A client that takes nothing for so long stalls: the tables are let go.
const BRIEF: Duration = Duration::from_millis(100);

/// Which bound lets no more be kept.
#[derive(Debug, Clone, Copy)]
enum Full {
    OfClient,
    OfAll,
}

/// The frames of one client.
pub(super) struct Outbox<'a> {
    shared: &'a ServerState,
    client: &'a Client,
    /// What is not in a frame yet.
    gathered: Vec<u8>,
    /// Frames, and how much of them was sent.
    frames: Vec<u8>,
    sent: usize,
    /// What is kept counts in the memory of all who are answered.
    lease: Option<Lease>,
    /// The client took nothing when it was last asked.
    stalls: bool,
    /// More would have to be kept than may be.
    full: Option<Full>,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(shared: &'a ServerState, client: &'a Client) -> Self {
        Self {
            shared,
            client,
            gathered: Vec::new(),
            frames: Vec::new(),
            sent: 0,
            lease: Self::lease_of(shared, client),
            stalls: false,
            full: None,
        }
    }

    fn lease_of(shared: &ServerState, client: &Client) -> Option<Lease> {
        shared.kept.lease(Source::User(client.uid), 0)
    }

    /// For what is made for the client before it comes here.
    pub(super) fn lease(&self) -> Option<Lease> {
        Self::lease_of(self.shared, self.client)
    }

    /// Why the answer could not be kept, if that is why it ended.
    pub(super) fn refusal(&self) -> Option<String> {
        let (bytes, whose) = match self.full? {
            Full::OfClient => (
                self.shared.patience.kept_of_client,
                "of one client's answer",
            ),
            Full::OfAll => (self.shared.kept.most(), "of answers"),
        };
        Some(format!(
            "the answer was not taken, and no more than {} MiB {whose} are kept: \
             take it faster, or ask with `--direct`",
            bytes >> 20
        ))
    }

    /// Adds a frame behind all that was written.
    pub(super) fn frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.close_frame()?;
        protocol::push_frame(&mut self.frames, kind, payload)
    }

    /// Takes a piece of the answer, and sends it as far as the client takes
    /// it; whether it has taken all.
    pub(super) fn offer(&mut self, piece: &[u8]) -> io::Result<bool> {
        self.frame(DATA, piece)?;
        self.send_within(BRIEF)
    }

    /// Whether the client took nothing when it was last asked.
    pub(super) fn stalls(&self) -> bool {
        self.stalls
    }

    /// Sends all that waits; waits for the client as long as it may take.
    pub(super) fn deliver(&mut self) -> io::Result<()> {
        self.close_frame()?;
        match self.send_within(self.shared.patience.stalled)? {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn close_frame(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            protocol::push_frame(&mut self.frames, DATA, &self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }

    /// Sends until nothing waits, or the client took nothing for so long.
    fn send_within(&mut self, patience: Duration) -> io::Result<bool> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let waits_since = &self.client.waits_since;
        self.stalls = false;
        while let Some(rest) = self.frames.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match send(&self.client.stream, rest, flags) {
                Ok(sent) => {
                    self.sent += sent;
                    waits_since.store(0, Ordering::Relaxed);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if waits_since.load(Ordering::Relaxed) == 0 {
                        waits_since.store(self.shared.millis(), Ordering::Relaxed);
                    }
                    if !self.is_writable_within(patience)? {
                        self.stalls = true;
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.frames.clear();
        self.frames.shrink_to(2 * FRAME_BYTES);
        self.sent = 0;
        self.uncount();
        Ok(true)
    }

    fn is_writable_within(&self, patience: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.client.stream, PollFlags::OUT)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends what the client takes at once or shortly; the rest is kept, if
    /// it may be.
    fn send_or_keep(&mut self) -> io::Result<()> {
        self.close_frame()?;
        // One who stalls is not waited for at each frame anew.
        let patience = if self.stalls { Duration::ZERO } else { BRIEF };
        if self.send_within(patience)? {
            return Ok(());
        }
        self.full = self.count().err();
        if self.full.is_none() {
            return Ok(());
        }
        // Only the refusal goes out behind what is on its way.
        Err(io::ErrorKind::OutOfMemory.into())
    }

    /// Counts what is kept, if it may be.
    fn count(&mut self) -> Result<(), Full> {
        let patience = &self.shared.patience;
        let kept = self.frames.len();
        if kept > patience.kept_of_client {
            return Err(Full::OfClient);
        }
        let lease = self.lease.as_mut();
        match lease.is_some_and(|lease| lease.resize(kept)) {
            true => Ok(()),
            false => Err(Full::OfAll),
        }
    }

    /// The client has taken all that was kept.
    fn uncount(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.resize(0);
        }
    }
}

impl Write for Outbox<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.len() + bytes.len() > FRAME_BYTES {
            self.flush()?;
        }
        let taken = bytes.get(..FRAME_BYTES).unwrap_or(bytes);
        self.gathered.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_or_keep()
    }
}
