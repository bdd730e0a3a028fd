//! Connections to a feed's door that have fed nothing yet.
//!
//! One zebra is a feed. It may come again before we see that its last
//! connection is dead, so the newest wins; but not by connecting alone:
//! anybody on the host can do that. A connection becomes the feed when its
//! first whole frame is there.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use crate::fpm::{BadFrame, Frames};

/// Kept at a door at most; one more takes the place of the oldest.
pub(super) const MOST: usize = 4;
/// Bytes that one may say before its first frame is whole.
const MAX_PENDING: usize = 65_535;

/// A connection and what was read of it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) frames: Frames,
}

/// What reading a candidate gave.
#[derive(Debug)]
pub(super) enum Spoke {
    /// Nothing whole yet.
    Waits,
    /// Its first frame is there.
    Feeds,
    /// It is gone, or says what is no frame: why.
    Ended(String),
}

impl Connection {
    /// Reads once; 0 at the end of the stream, `None` if nothing is there.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = read(&mut self.stream, buffer)?;
        Ok(read.map(|bytes| {
            self.frames.push(bytes);
            bytes.len()
        }))
    }

    /// Reads what a candidate says.
    pub(super) fn listen(&mut self, buffer: &mut [u8]) -> Spoke {
        let most = buffer.len().min(MAX_PENDING);
        match self.read(buffer.get_mut(..most).unwrap_or_default()) {
            Ok(Some(0)) => Spoke::Ended("it closed without a word".to_owned()),
            Ok(None) => Spoke::Waits,
            Ok(Some(_)) => match self.frames.has_frame() {
                Ok(true) => Spoke::Feeds,
                Ok(false) => Spoke::Waits,
                Err(error) => Spoke::Ended(BadFrame::to_string(&error)),
            },
            Err(error) => Spoke::Ended(error.to_string()),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Reads once; nothing at the end of the stream, `None` if nothing is there.
pub(super) fn read<'a>(
    stream: &mut TcpStream,
    buffer: &'a mut [u8],
) -> io::Result<Option<&'a [u8]>> {
    match stream.read(buffer) {
        Ok(read) => Ok(buffer.get(..read)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error of a socket says only that there is nothing now.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
