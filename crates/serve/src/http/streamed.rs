//! An answer made while it is taken: each piece when the client has taken
//! the one before, and others are served between two.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Frame;

use super::problem::Problem;

/// How long an answer may be under way.
const MAX_ANSWER: Duration = Duration::from_secs(600);

/// Makes an answer.
pub trait Pieces {
    /// The next piece, in less than a millisecond; an empty one: none yet,
    /// ask again; `None`: there are no more. An error cuts the answer.
    fn piece(&mut self) -> Result<Option<Bytes>, Problem>;
}

/// A body out of pieces.
#[derive(Debug)]
pub struct Streamed<P> {
    pieces: P,
    until: Instant,
    /// Others were served since the last piece.
    may_go_on: bool,
}

impl<P> Streamed<P> {
    /// Under way from now on.
    pub fn new(pieces: P) -> Self {
        Self {
            pieces,
            until: Instant::now() + MAX_ANSWER,
            may_go_on: true,
        }
    }
}

impl<P: Pieces + Unpin> http_body::Body for Streamed<P> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let cut = |why: String| Poll::Ready(Some(Err(axum::Error::new(io::Error::other(why)))));
        if !self.may_go_on {
            self.may_go_on = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if Instant::now() > self.until {
            return cut(format!("an answer may take {} s", MAX_ANSWER.as_secs()));
        }
        match self.pieces.piece() {
            Ok(Some(piece)) if piece.is_empty() => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(Some(piece)) => {
                self.may_go_on = false;
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Ok(None) => Poll::Ready(None),
            Err(problem) => cut(problem.detail),
        }
    }
}
