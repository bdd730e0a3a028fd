//! The asking side of the control socket.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::protocol::{self, Ask, DATA, END, ERROR, End, Request, VERSION};

/// How long the daemon may be silent in the middle of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no whole answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The daemon says no, in its words.
    #[error("{0}")]
    Refused(String),
    /// The daemon went away, or sent what is no answer.
    #[error(
        "the daemon did not answer ({0}); `fingerpost status` asks how it is, `--direct` asks the kernel"
    )]
    Connection(io::Error),
    /// The answer cannot be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Connects to the daemon at a socket; `None` when none listens there.
pub fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Asks, and writes the answer to `out` as it comes. Each frame is flushed
/// when `live`.
pub fn ask(stream: &UnixStream, ask: Ask, out: &mut impl Write) -> Result<End, AskError> {
    let live = matches!(ask, Ask::Watch(_));
    let request = Request { v: VERSION, ask };
    send(stream, &request, live).map_err(AskError::Connection)?;
    let mut from = BufReader::new(stream);
    let mut payload = Vec::new();
    loop {
        match protocol::read_frame(&mut from, &mut payload).map_err(AskError::Connection)? {
            DATA => {
                out.write_all(&payload).map_err(AskError::Output)?;
                if live {
                    out.flush().map_err(AskError::Output)?;
                }
            }
            END => {
                return serde_json::from_slice(&payload)
                    .map_err(|error| AskError::Connection(error.into()));
            }
            ERROR => {
                return Err(AskError::Refused(
                    String::from_utf8_lossy(&payload).into_owned(),
                ));
            }
            kind => {
                return Err(AskError::Connection(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a frame of the unknown type {kind}"),
                )));
            }
        }
    }
}

fn send(mut stream: &UnixStream, request: &Request, live: bool) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout((!live).then_some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    match stream.write_all(&line) {
        // A daemon that is full says so and hangs up without reading.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
