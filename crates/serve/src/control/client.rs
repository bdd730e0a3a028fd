//! The asking side of the control socket.

use std::io::{self, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::paths;
use super::protocol::{self, Ask, BUSY, DATA, END, ERROR, End, HELLO, Hello, Request, VERSION};

/// How long the daemon may be silent in the middle of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to begin one.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// Why there is no whole answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The daemon says no, in its words.
    #[error("{0}")]
    Refused(String),
    /// The daemon has no place for another client, in its words.
    #[error("{0}")]
    Busy(String),
    /// The daemon did not begin to answer.
    #[error(
        "the daemon did not begin to answer within a second: it is stopped or overloaded; `--direct` asks the kernel"
    )]
    Silent,
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

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How the answer ended.
    pub end: End,
    /// Why it may lack rows, if it may.
    pub incomplete: Option<String>,
}

/// Asks, and writes the answer to `out` as it comes. Each frame is flushed
/// when it watches.
pub fn ask(stream: &UnixStream, ask: Ask, out: &mut impl Write) -> Result<Outcome, AskError> {
    begin(stream, ask)?.finish(out)
}

/// An answer that has begun: nothing of it was written yet.
#[derive(Debug)]
pub struct Begun<'a> {
    from: BufReader<&'a UnixStream>,
    live: bool,
    /// Why it may lack rows, if it may.
    pub incomplete: Option<String>,
}

/// Asks, and waits until the daemon begins to answer: a second, for one
/// that is stopped or overloaded would hold everybody up.
pub fn begin(stream: &UnixStream, ask: Ask) -> Result<Begun<'_>, AskError> {
    let live = ask.is_live();
    let request = Request { v: VERSION, ask };
    send(stream, &request).map_err(silent)?;
    let mut from = BufReader::new(stream);
    let mut payload = Vec::new();
    let kind = protocol::read_frame(&mut from, &mut payload).map_err(silent)?;
    if kind != HELLO {
        return Err(no_answer(kind, &payload));
    }
    let hello: Hello =
        serde_json::from_slice(&payload).map_err(|error| AskError::Connection(error.into()))?;
    stream
        .set_read_timeout((!live).then_some(PATIENCE))
        .map_err(AskError::Connection)?;
    Ok(Begun {
        from,
        live,
        incomplete: hello.incomplete,
    })
}

impl Begun<'_> {
    /// Writes the answer to `out` as it comes.
    pub fn finish(mut self, out: &mut impl Write) -> Result<Outcome, AskError> {
        let mut payload = Vec::new();
        loop {
            match protocol::read_frame(&mut self.from, &mut payload)
                .map_err(AskError::Connection)?
            {
                DATA => {
                    out.write_all(&payload).map_err(AskError::Output)?;
                    if self.live {
                        out.flush().map_err(AskError::Output)?;
                    }
                }
                END => {
                    let end = serde_json::from_slice(&payload);
                    return Ok(Outcome {
                        end: end.map_err(|error| AskError::Connection(error.into()))?,
                        incomplete: self.incomplete,
                    });
                }
                kind => return Err(no_answer(kind, &payload)),
            }
        }
    }
}

/// What a frame that is no part of an answer means.
fn no_answer(kind: u8, payload: &[u8]) -> AskError {
    let message = || String::from_utf8_lossy(payload).into_owned();
    match kind {
        ERROR => AskError::Refused(message()),
        BUSY => AskError::Busy(message()),
        _ => AskError::Connection(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of the type {kind} where none is expected"),
        )),
    }
}

/// What an error before the answer began means.
fn silent(error: io::Error) -> AskError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Silent,
        _ => AskError::Connection(error),
    }
}

/// Whether a daemon is to be believed: it runs as root, as whoever asks, or
/// as the owner of the system's directory of sockets, which only root makes.
pub fn is_trusted(stream: &UnixStream, directory: &Path) -> io::Result<bool> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw();
    let owner = match directory == Path::new(paths::SYSTEM_DIRECTORY) {
        true => Some(std::fs::metadata(directory)?.uid()),
        false => None,
    };
    let own = rustix::process::geteuid().as_raw();
    Ok(believes(own, peer, owner))
}

fn believes(own: u32, peer: u32, directory_owner: Option<u32>) -> bool {
    peer == 0 || peer == own || directory_owner == Some(peer)
}

fn send(mut stream: &UnixStream, request: &Request) -> io::Result<()> {
    stream.set_write_timeout(Some(FIRST_PATIENCE))?;
    stream.set_read_timeout(Some(FIRST_PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    match stream.write_all(&line) {
        // A daemon that is full says so and hangs up without reading.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_daemon_that_is_stopped_is_given_up_after_a_second() {
        let (asking, _stopped) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let ended = ask(&asking, Ask::Status { json: true }, &mut io::sink());
        assert!(matches!(ended, Err(AskError::Silent)), "{ended:?}");
        let took = begun.elapsed();
        assert!(FIRST_PATIENCE <= took && took < PATIENCE / 2, "{took:?}");
    }

    #[test]
    fn no_stranger_is_believed() {
        let (root, user, service, stranger) = (0, 1000, 990, 1001);
        assert!(believes(root, root, None));
        assert!(believes(user, user, None));
        assert!(believes(user, root, None));
        assert!(believes(root, service, Some(service)));
        assert!(!believes(root, user, None));
        assert!(!believes(user, stranger, Some(root)));
        assert!(!believes(root, stranger, Some(service)));
    }

    #[test]
    fn an_own_daemon_is_believed() {
        let (asking, _daemon) = UnixStream::pair().unwrap();
        assert!(is_trusted(&asking, Path::new("/tmp")).unwrap());
    }
}
