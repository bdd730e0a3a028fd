//! Connections: accepted while there are places, read by hyper within
//! limits, answered by the router.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;
use http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::access_policy::ALWAYS;
use super::clients::{Admission, Client};
use super::guarded::{Guarded, MAX_HEAD_BYTES, MAX_HEADERS};
use super::listening::Listening;
use super::problem::Problem;
use super::shared::Shared;
use super::shared_stream::SharedStream;
use crate::complaint::Complaint;

/// How long a client that was refused may go on sending before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes of it that are thrown away.
const MAX_LINGER_BYTES: usize = 1 << 20;
/// Clients beyond all places that are told so, at a time.
const MAX_TURNED_AWAY: usize = 64;
/// Octets that a socket takes beyond what its client has room for: without
/// it, some megabytes of an answer were made for each client that stalls.
const MAX_NOT_SENT: u32 = 64 << 10;
/// How long clients are accepted before those who are there are served: when
/// hundreds come at once, these wait no longer than that, and whoever comes
/// behind the hundreds does not wait until each of them was served.
const ACCEPTING: Duration = Duration::from_micros(250);
/// For TLS to be agreed on.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Whence a client came, and by which address.
#[derive(Debug, Clone)]
struct Came {
    from: SocketAddr,
    at: Arc<Listening>,
}

/// Accepts clients until the address is closed.
pub async fn accept(
    listener: TcpListener,
    at: Arc<Listening>,
    shared: Arc<Shared>,
    router: Router,
) {
    first_of(accept_all(&listener, &at, &shared, &router), at.closed()).await;
}

async fn accept_all(
    listener: &TcpListener,
    at: &Arc<Listening>,
    shared: &Arc<Shared>,
    router: &Router,
) {
    let turned_away = Arc::new(Semaphore::new(MAX_TURNED_AWAY));
    let mut turn_ends = Instant::now();
    let mut complaint = Complaint::default();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => match shared.admit(&stream, from) {
                Some(place) => {
                    let came = Came {
                        from,
                        at: Arc::clone(at),
                    };
                    let connection =
                        connection(Arc::clone(shared), router.clone(), stream, came, place);
                    let at = Arc::clone(at);
                    tokio::spawn(async move { first_of(connection, at.closed()).await });
                }
                None => {
                    shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                    if let Ok(right) = Arc::clone(&turned_away).try_acquire_owned() {
                        tokio::spawn(turn_away(stream, shared.config.clients, right));
                    }
                }
            },
            Err(error) => {
                // Out of descriptors, most likely: it does not pass at once.
                if complaint.is_due() {
                    tracing::warn!("an HTTP client cannot be accepted: {error}");
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        if Instant::now() >= turn_ends {
            tokio::task::yield_now().await;
            turn_ends = Instant::now() + ACCEPTING;
        }
    }
}

async fn turn_away(mut stream: TcpStream, clients: usize, _right: OwnedSemaphorePermit) {
    let problem = Problem::busy(format!(
        "{clients} clients are connected already, and all are being answered: ask again, or \
         raise `clients` in `[http]` of the configuration"
    ));
    say(&mut stream, &problem).await;
    linger(&mut stream).await;
}

/// One client, until it goes, stalls or gives its place to another.
async fn connection(
    shared: Arc<Shared>,
    router: Router,
    stream: TcpStream,
    came: Came,
    place: Admission,
) {
    let place = Arc::new(place);
    let wanted = Arc::clone(&place);
    // Answers are written whole: nothing is gained by waiting.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_NOT_SENT);
    let stream = SharedStream::new(stream);
    let watched = stream.clone();
    let serving = async {
        match shared.tls() {
            None => talk(&shared, router, stream, &came, &place).await,
            Some(tls) => match timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await {
                Ok(Ok(stream)) => talk(&shared, router, stream, &came, &place).await,
                Ok(Err(error)) => tracing::debug!("no TLS with {}: {error}", came.from),
                Err(_) => tracing::debug!("no TLS with {} in time", came.from),
            },
        }
    };
    let ends = first_of(wanted.is_wanted(), leaves(watched, wanted.client()));
    first_of(serving, ends).await;
}

/// Waits until a client is gone for whom something is made.
async fn leaves(stream: SharedStream, client: &Client) {
    stream.closed().await;
    client.leaves().await;
}

/// Waits for the first of two.
async fn first_of(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() || other.as_mut().poll(cx).is_ready() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

async fn talk<S>(
    shared: &Arc<Shared>,
    router: Router,
    stream: S,
    came: &Came,
    place: &Arc<Admission>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let patience = shared.config.write_timeout();
    let guarded = Guarded::new(stream, Arc::clone(place), patience);
    let service = service_fn(|request: Request<Incoming>| -> Answering {
        Box::pin(answer(
            Arc::clone(shared),
            router.clone(),
            request,
            came.clone(),
            Arc::clone(place),
        ))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.config.header_timeout())
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .half_close(true)
        .serve_connection(TokioIo::new(guarded), service);
    let ended = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut stream = connection.into_parts().io.into_inner();
    let client = place.client();
    match ended {
        Err(error) if error.is_timeout() && client.heard() => {
            let problem = Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the head of a request was not whole within {} s",
                    shared.config.header_timeout_secs
                ),
            );
            say(&mut stream, &problem).await;
            linger(&mut stream).await;
        }
        Err(error) => {
            tracing::debug!("{}: {error}", came.from);
            if client.is_refused() {
                linger(&mut stream).await;
            }
        }
        Ok(()) if client.is_refused() => linger(&mut stream).await,
        Ok(()) => shut_down(&mut stream).await,
    }
}

/// Answers a request.
async fn answer(
    shared: Arc<Shared>,
    mut router: Router,
    request: Request<Incoming>,
    came: Came,
    place: Arc<Admission>,
) -> Result<Response, Infallible> {
    place.answers(true);
    let (parts, body) = request.into_parts();
    let access_policy = shared.access_policy();
    // Looked at after the access policy was taken: a access policy that is newer than the
    // closing of this address lets nobody in who came by it.
    let allowed = match came.at.is_closed() {
        true => Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "nothing is answered at this address any more",
        )
        .closing()),
        false => shared.rates.take(place.client().source(), Instant::now()),
    };
    let allowed = allowed.and_then(|()| access_policy.check(&parts));
    let mut response = match allowed {
        Ok(()) => {
            // Not read: there is none.
            drop(body);
            let answered = router.call(Request::from_parts(parts, Body::empty()));
            let answer = answered.await.unwrap_or_else(|never| match never {});
            shared.background.take_over(answer)
        }
        Err(problem) => {
            if problem.closes {
                place.client().refuse();
            }
            problem.into_response()
        }
    };
    for (name, value) in ALWAYS {
        response.headers_mut().insert(name, value);
    }
    shared.counts.answered(response.status());
    Ok(response.map(|body| {
        Body::new(Handed {
            body,
            _place: Answered(place),
        })
    }))
}

/// A body; when it was handed over, its client is idle.
struct Handed {
    body: Body,
    _place: Answered,
}

struct Answered(Arc<Admission>);

impl Drop for Answered {
    fn drop(&mut self) {
        self.0.answers(false);
    }
}

impl http_body::Body for Handed {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Says a problem, as far as the client takes it at once.
async fn say<S: AsyncWrite + Unpin>(stream: &mut S, problem: &Problem) {
    let raw = problem.raw();
    let write = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, &raw));
    // Whoever takes nothing is told nothing.
    let _ = timeout(LINGER, write).await;
}

async fn shut_down<S: AsyncWrite + Unpin>(stream: &mut S) {
    let shutdown = poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx));
    let _ = timeout(LINGER, shutdown).await;
}

/// Throws away what a refused client still sends, for a while: closing on
/// it would reset the connection, and take the refusal back.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    shut_down(stream).await;
    let mut left = MAX_LINGER_BYTES;
    let mut thrown = [0; 4096];
    let _ = timeout(LINGER, async {
        while left > 0 {
            let mut into = ReadBuf::new(&mut thrown);
            let read: io::Result<()> =
                poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut into)).await;
            match (read, into.filled().len()) {
                (Err(_), _) | (Ok(()), 0) => return,
                (Ok(()), read) => left = left.saturating_sub(read),
            }
        }
    })
    .await;
}
