//! A connection's octets, guarded: a write that the client does not take
//! ends the connection in bounded time, and what hyper answers to a head it
//! cannot read gets words.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::clients::Admission;
use super::problem::Problem;

/// Bytes of a request's head at most.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// Octets of a request that are read by whoever waits for it: most requests
/// are no longer.
const FIRST_BYTES: usize = 256;
/// Bytes of a refusal without words at most: a status and three headers.
const MAX_WORDLESS_BYTES: usize = 512;
/// Headers of a request at most.
pub const MAX_HEADERS: usize = 64;

/// A stream under guard.
pub struct Guarded<S> {
    stream: S,
    place: Arc<Admission>,
    patience: Duration,
    /// Runs while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
    /// What is written instead of a refusal without words, and how far.
    instead: Vec<u8>,
    /// What was read before hyper was there to read it.
    first: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guarded<S> {
    /// Under guard from now on.
    pub fn new(stream: S, place: Arc<Admission>, patience: Duration) -> Self {
        Self {
            stream,
            place,
            patience,
            deadline: None,
            instead: Vec::new(),
            first: Bytes::new(),
        }
    }

    /// Waits for the first octets of a request, which are read as the next
    /// ones then; whether some came before the client closed its side. While
    /// it waits no buffer is held.
    pub async fn first(&mut self) -> io::Result<bool> {
        if !self.first.is_empty() {
            return Ok(true);
        }
        let mut octets = [0; FIRST_BYTES];
        let mut into = ReadBuf::new(&mut octets);
        poll_fn(|cx| Pin::new(&mut self.stream).poll_read(cx, &mut into)).await?;
        self.first = Bytes::copy_from_slice(into.filled());
        Ok(!self.first.is_empty())
    }

    /// These octets, which were read and not used, are read next.
    pub fn put_back(&mut self, octets: Bytes) {
        self.first = octets;
    }

    fn write(&mut self, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, octets);
        self.wrote(cx, written)
    }

    /// What a write came to: it is done, or waits until the deadline.
    fn wrote<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            return self.wait(cx);
        }
        self.place.client().takes();
        self.went_on(written)
    }

    /// Nothing waits any more.
    fn went_on<T>(&mut self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.deadline.take().is_some() {
            self.place.waits(false);
        }
        done
    }

    /// The deadline of what waits.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let deadline = self.deadline.get_or_insert_with(|| {
            self.place.waits(true);
            Box::pin(sleep(self.patience))
        });
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn write_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let instead = std::mem::take(&mut self.instead);
            let written = self.write(cx, &instead);
            self.instead = instead;
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.drain(..written.min(self.instead.len()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let octets = this.first.len().min(into.remaining());
            into.put_slice(&this.first.split_to(octets));
            this.place.client().hears();
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, into))?;
        if into.filled().len() > before {
            this.place.client().hears();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.write_instead(cx))?;
        match wordless(octets) {
            Some(problem) => {
                this.instead = problem.raw();
                this.place.client().refuse();
                // What does not go out now goes with the flush.
                match this.write_instead(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    _ => Poll::Ready(Ok(octets.len())),
                }
            }
            None => this.write(cx, octets),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // hyper refuses with one part.
        if let [octets] = parts {
            return self.poll_write(cx, octets);
        }
        let this = self.get_mut();
        ready!(this.write_instead(cx))?;
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.wrote(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.write_instead(cx))?;
        match Pin::new(&mut this.stream).poll_flush(cx) {
            Poll::Pending => this.wait(cx),
            done => this.went_on(done),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.write_instead(cx))?;
        match Pin::new(&mut this.stream).poll_shutdown(cx) {
            Poll::Pending => this.wait(cx),
            done => done,
        }
    }
}

/// What hyper refuses a head with: a status and nothing else. No handler
/// of ours does.
fn wordless(octets: &[u8]) -> Option<Problem> {
    if octets.len() > MAX_WORDLESS_BYTES || !octets.starts_with(b"HTTP/1.") {
        return None;
    }
    let text = std::str::from_utf8(octets).ok()?;
    let rest = text
        .strip_prefix("HTTP/1.1 ")
        .or(text.strip_prefix("HTTP/1.0 "))?;
    let is_empty = rest.ends_with("\r\n\r\n") && rest.contains("content-length: 0\r\n");
    if !rest.starts_with('4') || !is_empty {
        return None;
    }
    let status = rest.get(..3)?.parse().ok()?;
    let detail = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => format!(
            "the head of the request has more than {MAX_HEADERS} headers or {MAX_HEAD_BYTES} \
             octets: send fewer"
        ),
        StatusCode::URI_TOO_LONG => "the request line is too long: ask for less".to_owned(),
        _ => "the head of the request cannot be read: HTTP/1.1 is spoken here".to_owned(),
    };
    Some(Problem::new(status, detail).closing())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_without_words_gets_some() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(wordless(bare).map(|p| p.status.as_u16()), Some(431));
        assert!(wordless(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_none());
        assert!(wordless(&Problem::bad_request("x").raw()).is_none());
        assert!(wordless(b"").is_none());
        assert!(wordless(b"HTTP/1.1 4").is_none());
    }
}
