//! A feed's door, and who is let in.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::Door;
use super::candidate::is_passing;
use crate::now::Now;

/// A peer that says nothing is asked after so long whether it is there;
/// then twice more, so often.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(10))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);
/// Clients accepted between two looks at who feeds.
const ACCEPTED: usize = 16;
/// How long nothing is done once nobody could be accepted.
const REFUSED: Duration = Duration::from_millis(20);
/// Between two warnings of clients that were turned away.
const WARNED: Duration = Duration::from_secs(60);

/// A door.
#[derive(Debug)]
pub(super) struct Entrance {
    name: String,
    door: Door,
    warned: Option<Duration>,
}

/// Who has come to a door.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// Those that were let in.
    pub(super) admitted: Vec<(TcpStream, SocketAddr)>,
    /// How many were not.
    pub(super) refused: usize,
}

impl Entrance {
    /// The door of the feed of a name.
    pub(super) fn new(name: &str, door: Door) -> Self {
        Self {
            name: name.to_owned(),
            door,
            warned: None,
        }
    }

    /// Accepts who has come.
    pub(super) fn accept(&mut self, now: Now) -> Came {
        let mut came = Came::default();
        for _ in 0..ACCEPTED {
            match self.door.listener.accept() {
                Ok((stream, peer)) => match self.admit(&stream, peer) {
                    Ok(()) => came.admitted.push((stream, peer)),
                    Err(why) => {
                        came.refused += 1;
                        self.turned_away(peer, &why, now);
                    }
                },
                Err(error) if is_passing(&error) => break,
                // It went before anybody looked.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    came.refused += 1;
                }
                Err(error) => {
                    self.warn(now, &format!("cannot accept: {error}"));
                    // It waits on, and so would we, at full speed.
                    std::thread::sleep(REFUSED);
                    break;
                }
            }
        }
        came
    }

    fn admit(&self, stream: &TcpStream, peer: SocketAddr) -> Result<(), String> {
        if !self.door.lets_in(peer.ip()) {
            return Err("it is not among those that may feed it".to_owned());
        }
        prepare(stream).map_err(|error| error.to_string())
    }

    /// Says that somebody was turned away.
    pub(super) fn turned_away(&mut self, peer: SocketAddr, why: &str, now: Now) {
        self.warn(now, &format!("{peer} was turned away: {why}"));
    }

    /// Says what strangers did, but not as often as they do it.
    fn warn(&mut self, now: Now, what: &str) {
        let is_due = |at: Duration| now.monotonic.saturating_sub(at) >= WARNED;
        if self.warned.is_none_or(is_due) {
            self.warned = Some(now.monotonic);
            tracing::warn!("feed {}: {what} (said once a minute)", self.name);
        }
    }
}

impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.door.listener.as_fd()
    }
}

/// A host that vanishes without a word is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    SockRef::from(stream).set_tcp_keepalive(&KEEPALIVE)
}
