//! Long answers, made on a thread of their own.
//!
//! Who asks for a few rows must not wait for those who ask for all, or who
//! watch. A thread that makes both can only take turns, and with five
//! hundred long answers under way a turn is long. So the thread that
//! talks with clients makes what is short, and this one, at a lower
//! priority, the rest: pieces of whole tables, pages of many rows, rows
//! that are counted or passed over, compression, events. Where there is
//! one core for both, the system's scheduler lets the other one go first.
//!
//! A piece is made when there is a place for it, and there is one place an
//! answer: a client that takes nothing has one piece here and one in its
//! connection, and no work is done for it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::problem::Problem;

/// How much nicer the thread is than those that mirror and answer: with a
/// core to share it gets a tenth while they want all of it.
const NICE: i32 = 10;

/// Whose body is made here.
#[derive(Debug, Clone)]
struct IsLong;

/// Marks an answer as one whose body is made by [`Background`].
pub fn mark(response: &mut Response) {
    response.extensions_mut().insert(IsLong);
}

/// The thread of long answers, as the others see it.
#[derive(Debug)]
pub struct Background {
    handle: Handle,
}

impl Background {
    /// What a runtime does.
    pub fn new(runtime: &Runtime) -> Self {
        Self {
            handle: runtime.handle().clone(),
        }
    }

    /// Does work there; ends it when nobody waits for it any more.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let mut working = Ended(self.handle.spawn(work));
        let done = poll_fn(|cx| Pin::new(&mut working.0).poll(cx)).await;
        done.unwrap_or_else(|_| Err(Problem::busy("the daemon ends")))
    }

    /// An answer whose body is made there, if it is marked.
    pub fn take_over(&self, response: Response) -> Response {
        if response.extensions().get::<IsLong>().is_none() {
            return response;
        }
        response.map(|body| {
            let left = body.size_hint();
            let (to, pieces) = mpsc::channel(1);
            Body::new(TakenOver {
                pieces,
                left,
                _making: Ended(self.handle.spawn(make(body, to))),
            })
        })
    }
}

/// Serves until it is told to stop. Answers under way are cut then.
pub fn serve(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    if let Err(error) = privileges::drop_all() {
        tracing::error!("no long answers over HTTP, rights remain: {error}");
        return;
    }
    // For the calling thread alone, whatever the name says.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!("long answers over HTTP may delay short ones: no priority: {error}");
    }
    // Ends when the sender is dropped.
    let _ = runtime.block_on(stopped);
}

/// A task that ends when it is dropped.
struct Ended<T>(JoinHandle<T>);

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A piece of a body, what it broke with, or its end. An end is said: a
/// thread that ended would look like one.
type Piece = Option<Result<Bytes, axum::Error>>;

/// Makes a body, each piece when there is a place for it.
async fn make(mut body: Body, to: mpsc::Sender<Piece>) {
    while let Ok(place) = to.reserve().await {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    place.send(Some(Ok(piece)));
                }
            }
            Some(Err(error)) => {
                place.send(Some(Err(error)));
                return;
            }
            None => {
                place.send(None);
                return;
            }
        }
    }
}

/// A body that is made elsewhere.
struct TakenOver {
    pieces: mpsc::Receiver<Piece>,
    left: SizeHint,
    _making: Ended<()>,
}

impl HttpBody for TakenOver {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let piece = match ready!(self.pieces.poll_recv(cx)) {
            Some(Some(piece)) => piece,
            Some(None) => return Poll::Ready(None),
            None => Err(axum::Error::new(io::Error::other("the daemon ends"))),
        };
        if let (Ok(piece), Some(left)) = (&piece, self.left.exact()) {
            self.left = SizeHint::with_exact(left.saturating_sub(piece.len() as u64));
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A body of pieces of one octet that counts what is made, and says when
    /// it is gone.
    struct Counted {
        left: usize,
        made: Arc<AtomicUsize>,
    }

    const GONE: usize = usize::MAX;

    impl Drop for Counted {
        fn drop(&mut self) {
            self.made.store(GONE, Ordering::Relaxed);
        }
    }

    impl HttpBody for Counted {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            self.left -= 1;
            self.made.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.left as u64)
        }
    }

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    /// A body of so many pieces, made by `long`, and what was made of it.
    fn taken_over(long: &Background, pieces: usize) -> (Body, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let mut response = Response::new(Body::new(Counted {
            left: pieces,
            made: Arc::clone(&made),
        }));
        mark(&mut response);
        (long.take_over(response).into_body(), made)
    }

    async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap()))
    }

    /// Everything that can be done meanwhile is done.
    async fn others_are_served() {
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_piece_is_made_when_there_is_a_place_for_it() {
        let runtime = runtime();
        let long = Background::new(&runtime);
        runtime.block_on(async {
            let (mut body, made) = taken_over(&long, 3);
            assert_eq!(body.size_hint().exact(), Some(3));
            for taken in 0..3 {
                others_are_served().await;
                assert_eq!(made.load(Ordering::Relaxed), taken + 1);
                assert_eq!(next(&mut body).await.unwrap().unwrap(), "x");
                assert_eq!(body.size_hint().exact(), Some(2 - taken as u64));
            }
            assert!(next(&mut body).await.is_none());
        });
    }

    #[test]
    fn what_a_client_left_is_dropped_and_work_for_others_goes_on() {
        let runtime = runtime();
        let long = Background::new(&runtime);
        runtime.block_on(async {
            // Nobody ever looks at these.
            let never: Vec<_> = (0..500).map(|_| taken_over(&long, 9)).collect();
            let (mut body, _) = taken_over(&long, 9);
            for _ in 0..9 {
                next(&mut body).await.unwrap().unwrap();
            }
            assert!(next(&mut body).await.is_none());
            assert!(long.run(async { Ok(7) }).await.is_ok_and(|n| n == 7));
            for (body, made) in never {
                assert_eq!(made.load(Ordering::Relaxed), 1);
                drop(body);
                others_are_served().await;
                assert_eq!(made.load(Ordering::Relaxed), GONE);
            }
        });
    }

    #[test]
    fn an_answer_that_the_daemon_cuts_does_not_look_whole() {
        let there = runtime();
        let long = Background::new(&there);
        let (mut body, _) = taken_over(&long, 9);
        drop(there);
        runtime().block_on(async {
            assert!(next(&mut body).await.unwrap().is_err());
            assert!(long.run(async { Ok(()) }).await.is_err());
        });
    }
}
