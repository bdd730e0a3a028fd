//! One question to a translation over its control socket, and its answer.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::net::UnixStream;
use tokio::time::timeout;
use translation::answer::{Line, MAX_LINE_BYTES};
use translation::client::nobody_at;
use translation::request::Request;

use super::super::problem::Problem;
use crate::source::Source;

/// Questions at a time: of all, and of one source. The translation has eight
/// places for a group, and metrics have one of them.
const MOST: usize = 6;
const OF_A_SOURCE: usize = 2;
/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// What a question may cost.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// All of it, from connecting on.
    pub patience: Duration,
    /// Of rows.
    pub bytes: usize,
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answered {
    /// Rows, a line of JSON each.
    pub rows: Vec<u8>,
    /// Where the walk goes on.
    pub next: Option<String>,
}

/// Why there is none.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody is there, or nobody for us.
    Nobody(String),
    /// It did not come in time.
    Late(Duration),
    /// It is no answer.
    Nonsense,
    /// It is longer than such an answer can be.
    TooLong,
    /// It ended before its end.
    CutOff,
    /// It was refused.
    Refused(String),
}

impl Trouble {
    /// In words.
    pub fn in_words(&self) -> String {
        match self {
            Self::Nobody(why) => why.clone(),
            Self::Late(patience) => format!(
                "the translation did not answer within {} ms",
                patience.as_millis()
            ),
            Self::Nonsense => "who answers at the control socket is no translation".to_owned(),
            Self::TooLong => "the translation's answer is longer than it can be".to_owned(),
            Self::CutOff => "the translation ended while it answered".to_owned(),
            Self::Refused(why) => format!("the translation: {why}"),
        }
    }

    /// As a client is told.
    pub fn problem(&self) -> Problem {
        let status = match self {
            Self::Nobody(_) | Self::CutOff => return Problem::busy(self.in_words()),
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Nonsense | Self::TooLong => StatusCode::BAD_GATEWAY,
            // `after`, of another life.
            Self::Refused(why) if why.contains("another life") => StatusCode::GONE,
            Self::Refused(_) => return Problem::busy(self.in_words()),
        };
        Problem::new(status, self.in_words())
    }
}

/// Asks.
pub async fn ask(path: &Path, request: &Request, bounds: Bounds) -> Result<Answered, Trouble> {
    let late = |_| Trouble::Late(bounds.patience);
    let asked = timeout(bounds.patience, converse(path, request, bounds.bytes));
    asked.await.map_err(late)?
}

async fn converse(path: &Path, request: &Request, bytes: usize) -> Result<Answered, Trouble> {
    let nobody = |error: io::Error| Trouble::Nobody(format!("{}: {error}", nobody_at(path)));
    let stream = UnixStream::connect(path).await.map_err(nobody)?;
    // One that refuses has closed its end already, and said why.
    let sent = send(&stream, &request.line()).await;
    let mut lines = Lines::of(&stream);
    let mut answered = Answered::default();
    loop {
        let line = lines.next().await?.ok_or(match &sent {
            Ok(()) => Trouble::CutOff,
            Err(error) => nobody(error.kind().into()),
        })?;
        match Line::read(line) {
            Some(Line::Row(_)) => answered.rows.extend_from_slice(line),
            Some(Line::End(next)) => {
                answered.next = next;
                return Ok(answered);
            }
            Some(Line::Refused(why)) => return Err(Trouble::Refused(why)),
            None => return Err(Trouble::Nonsense),
        }
        if answered.rows.len() > bytes {
            return Err(Trouble::TooLong);
        }
    }
}

async fn send(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Lines that come over a connection.
struct Lines<'a> {
    stream: &'a UnixStream,
    /// What has come, from the next line on.
    held: Vec<u8>,
    /// Where that line begins, and how far an end was looked for.
    at: usize,
    searched: usize,
}

impl<'a> Lines<'a> {
    fn of(stream: &'a UnixStream) -> Self {
        Self {
            stream,
            held: Vec::with_capacity(READ_BYTES),
            at: 0,
            searched: 0,
        }
    }

    /// The next line with its end; `None`: there are no more.
    async fn next(&mut self) -> Result<Option<&[u8]>, Trouble> {
        loop {
            let unseen = self.held.get(self.searched..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let (from, to) = (self.at, self.searched + end + 1);
                (self.at, self.searched) = (to, to);
                return Ok(self.held.get(from..to));
            }
            self.held.drain(..self.at);
            (self.at, self.searched) = (0, self.held.len());
            if self.held.len() > MAX_LINE_BYTES {
                return Err(Trouble::Nonsense);
            }
            match self.read().await {
                Ok(0) if self.held.is_empty() => return Ok(None),
                Ok(0) => return Err(Trouble::Nonsense),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            let mut bytes = [0; READ_BYTES];
            match self.stream.try_read(&mut bytes) {
                Ok(read) => {
                    self.held
                        .extend_from_slice(bytes.get(..read).unwrap_or_default());
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Who asks at the moment.
#[derive(Debug, Default)]
pub struct Places(Arc<Mutex<HashMap<Source, usize>>>);

impl Places {
    /// A place for a question of a source.
    pub fn take(&self, source: Source) -> Result<Place, Problem> {
        let mut asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = asking.values().sum();
        let own = asking.entry(source).or_default();
        if *own >= OF_A_SOURCE || all >= MOST {
            let refused = match *own {
                0 => "others ask the translation already: ask again",
                _ => "your other questions to the translation are under way: wait for them",
            };
            asking.retain(|_, count| *count > 0);
            return Err(Problem::busy(refused));
        }
        *own += 1;
        Ok(Place {
            asking: Arc::clone(&self.0),
            source,
        })
    }
}

/// A place, given back when it goes.
#[derive(Debug)]
pub struct Place {
    asking: Arc<Mutex<HashMap<Source, usize>>>,
    source: Source,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = asking.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                asking.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;
    use translation::request::{Filter, Table};

    /// What becomes of a question to somebody who says this, and stays.
    fn asked(said: Vec<u8>, stays: bool) -> Result<Answered, Trouble> {
        asked_within(said, stays, Duration::from_secs(60))
    }

    fn asked_within(said: Vec<u8>, stays: bool, patience: Duration) -> Result<Answered, Trouble> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let peer = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut question = [0; 4_096];
            let _ = client.read(&mut question).unwrap();
            let _ = client.write_all(&said);
            while stays && client.read(&mut question).is_ok_and(|read| read > 0) {}
        });
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let bounds = Bounds {
            patience,
            bytes: 1_000,
        };
        let request = Request::rows(Table::Flows, Filter::default());
        let answered = runtime.block_on(ask(&path, &request, bounds));
        peer.join().unwrap();
        answered
    }

    #[test]
    fn a_process_that_stalls_lies_or_goes_is_told_apart() {
        let whole = b"{\"a\":1}\n{\"end\":true,\"next\":\"x\"}\n";
        let answered = asked(whole.to_vec(), true).unwrap();
        assert_eq!(answered.rows, b"{\"a\":1}\n");
        assert_eq!(answered.next.as_deref(), Some("x"));
        let status = |said: &[u8], stays| {
            let trouble = asked(said.to_vec(), stays).unwrap_err();
            trouble.problem().status.as_u16()
        };
        let stalls = b"{\"a\":1}\n".to_vec();
        let late = asked_within(stalls, true, Duration::from_millis(200)).unwrap_err();
        assert_eq!(late.problem().status.as_u16(), 504, "it stalls");
        assert_eq!(status(b"{\"a\":1}\n{\"b\"", false), 502, "half a line");
        assert_eq!(status(b"{\"a\":1}\n", false), 503, "it went");
        assert_eq!(status(b"220 mail.example ESMTP\r\n", true), 502);
        assert_eq!(status(b"{\"error\":\"busy\"}\n", true), 503);
        assert_eq!(status(&b"{\"a\":1}\n".repeat(200), true), 502, "too long");
        assert_eq!(status(&[b' '; MAX_LINE_BYTES + 9], true), 502, "no line");
        let gone = b"{\"error\":\"`after` is of another life of it\"}\n";
        assert_eq!(status(gone, false), 410);
    }

    #[test]
    fn a_source_has_its_share_of_the_questions() {
        let places = Places::default();
        let user = Source::User;
        let mut taken = vec![places.take(user(1)).unwrap(), places.take(user(1)).unwrap()];
        assert!(places.take(user(1)).is_err(), "at its limit");
        taken.push(places.take(user(2)).unwrap());
        taken.extend((3..6).map(|number| places.take(user(number)).unwrap()));
        assert!(places.take(user(7)).is_err(), "at that of all");
        taken.remove(0);
        assert!(places.take(user(1)).is_ok(), "and back");
        drop(taken);
        assert!(places.0.lock().unwrap().is_empty());
    }
}
