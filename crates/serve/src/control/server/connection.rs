//! One client: its request, its answer.

use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use view::{AnswerError, Names, Object, arp, ifconfig};

use super::{Client, ServerState};
use crate::control::protocol::{
    self, Ask, DATA, END, ERROR, End, HELLO, Hello, MAX_REQUEST_BYTES, Request,
};
use crate::namespace_service::NamespaceService;
use crate::status::Answered;
use crate::watch;

/// Octets gathered before a frame is sent.
const FRAME_BYTES: usize = 64 << 10;

/// Why a client got no whole answer.
#[derive(Debug)]
pub enum Failure {
    /// To be told to it.
    Told(String),
    /// It is gone, or takes nothing.
    Gone(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// Answers a client's one request.
pub(super) fn serve(shared: &ServerState, client: &Client, answers: &NamespaceService) {
    let mut frames = Frames::new(shared, client);
    let asked = read_request(shared, client);
    let began = Instant::now();
    let ended = asked
        .and_then(|request| {
            let ended = || shared.stopping.load(Ordering::Relaxed) || client.is_gone();
            frames.hello(answers)?;
            let (names, answered) = (shared.names(), shared.answered());
            answer(&request.ask, answers, &names, answered, &ended, &mut frames)
        })
        .and_then(|rows| {
            frames.flush()?;
            let took_micros = began.elapsed().as_micros() as u64;
            shared.count(took_micros);
            tracing::debug!(rows, took_micros, "answered");
            let end = serde_json::to_vec(&End { rows, took_micros }).unwrap_or_default();
            Ok(frames.last(END, &end)?)
        });
    let gone = match ended {
        Ok(()) => Ok(()),
        Err(Failure::Told(message)) => {
            tracing::debug!("refused: {message}");
            frames.last(ERROR, message.as_bytes())
        }
        Err(Failure::Gone(error)) => Err(error),
    };
    if let Err(error) = gone {
        tracing::debug!("a client went before its answer's end: {error}");
    }
}

/// Reads one line, whole within the time and length it may have.
fn read_request(shared: &ServerState, client: &Client) -> Result<Request, Failure> {
    let patience = shared.patience.request;
    client
        .stream
        .set_write_timeout(Some(shared.patience.stalled))?;
    let deadline = Instant::now() + patience;
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(late(patience));
        }
        client.stream.set_read_timeout(Some(remaining))?;
        let read = match (&client.stream).read(&mut piece) {
            Ok(0) => return Err(told("the request ends before its line does")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late(patience)),
            Err(error) => return Err(error.into()),
        };
        let piece = piece.get(..read).unwrap_or_default();
        let end = piece.iter().position(|octet| *octet == b'\n');
        line.extend_from_slice(piece.get(..end.unwrap_or(read)).unwrap_or_default());
        if line.len() >= MAX_REQUEST_BYTES {
            return Err(told("the request is longer than 64 KiB"));
        }
        if end.is_some() {
            return protocol::parse_request(&line).map_err(Failure::Told);
        }
    }
}

fn told(message: &str) -> Failure {
    Failure::Told(message.to_owned())
}

fn late(patience: std::time::Duration) -> Failure {
    Failure::Told(format!("no request came within {patience:?}"))
}

/// Answers a question, as a client is answered: the `answered` are for a
/// status, `ended` breaks off what has no end.
pub fn answer(
    ask: &Ask,
    answers: &NamespaceService,
    names: &Names,
    answered: Answered,
    ended: &dyn Fn() -> bool,
    out: &mut impl Write,
) -> Result<u64, Failure> {
    let namespace = answers.namespace();
    let now = || namespace.source.now_millis();
    let answered = match ask {
        Ask::Question(question) => {
            namespace.refresh(question.object, question.output.statistics);
            let tables = namespace.tables();
            view::answer(question, &tables, names, now(), out)
        }
        Ask::Watch(question) => watch::watch(
            &namespace.source.reader(),
            question,
            names,
            &now,
            out,
            ended,
        ),
        Ask::RouteGet(question) => {
            let tables = namespace.tables();
            view::route_get(question, &tables, names, now(), out)
        }
        Ask::Arp(question) => {
            namespace.refresh(Object::Neigh, question.shows_ages());
            if question.own {
                namespace.refresh(Object::Addr, false);
            }
            let tables = namespace.tables();
            arp::answer(question, &tables, now(), out)
        }
        Ask::Ifconfig(question) => {
            namespace.refresh(Object::Link, question.shows_counters());
            namespace.refresh(Object::Addr, false);
            let tables = namespace.tables();
            ifconfig::answer(question, &tables, out).map_err(AnswerError::Write)
        }
        Ask::Status { json } => {
            let mut status = answers.status();
            status.answered = answered;
            status.write(*json, out)?;
            return Ok(1);
        }
    };
    answered.map_err(|error| match error {
        AnswerError::BadQuestion(bad) => Failure::Told(bad.to_string()),
        AnswerError::Write(error) => Failure::Gone(error),
    })
}

impl Client {
    /// Whether the other end has hung up.
    fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !matches!(poll(&mut fds, Some(&at_once)), Ok(0))
    }
}

/// Makes frames of what is written.
pub struct Frames<'a> {
    shared: &'a ServerState,
    client: &'a Client,
    gathered: Vec<u8>,
}

impl<'a> Frames<'a> {
    fn new(shared: &'a ServerState, client: &'a Client) -> Self {
        Self {
            shared,
            client,
            gathered: Vec::with_capacity(FRAME_BYTES),
        }
    }

    /// Sends a frame, marked as waiting for the client meanwhile.
    fn send(&self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let mut out = Watched(self);
        protocol::write_frame(&mut out, kind, payload)
    }

    /// Says at once that an answer comes, and whether it may lack rows.
    fn hello(&self, answers: &NamespaceService) -> io::Result<()> {
        let hello = Hello {
            incomplete: answers.namespace().incomplete(),
        };
        self.send(HELLO, &serde_json::to_vec(&hello)?)
    }

    /// Sends the last frame.
    fn last(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.send(kind, payload)
    }
}

impl Write for Frames<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.len() + bytes.len() > FRAME_BYTES {
            self.flush()?;
        }
        let taken = bytes.get(..FRAME_BYTES).unwrap_or(bytes);
        self.gathered.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.send(DATA, &self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }
}

/// The client's socket; each write that waits is to be seen from outside.
struct Watched<'a, 'b>(&'a Frames<'b>);

impl Write for Watched<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Frames { shared, client, .. } = self.0;
        client.waits_since.store(shared.millis(), Ordering::Relaxed);
        let written = (&client.stream).write(bytes);
        client.waits_since.store(0, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
