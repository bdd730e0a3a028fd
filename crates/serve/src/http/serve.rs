//! Connections: accepted while there are places, read by hyper within
//! limits, answered by the router.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
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
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::access_policy::ALWAYS;
use super::clients::{Admission, Client};
use super::guarded::{Guarded, MAX_HEAD_BYTES, MAX_HEADERS};
use super::listening::Listening;
use super::parting::{linger, refuse, shut_down};
use super::problem::Problem;
use super::shared::{ANSWERING_BYTES, Shared};
use super::shared_stream::SharedStream;
use super::sql;
use super::statement;
use crate::complaint::Complaint;

/// Clients beyond all places that are told so, at a time.
const MAX_TURNED_AWAY: usize = 64;
/// Octets that a socket takes beyond what its client has room for: without
/// it, some megabytes of an answer were made for each client that stalls.
const MAX_NOT_SENT: u32 = 16 << 10;
/// How long a client that asked something may rest before what hyper holds
/// for it is given back: one that asks in a row is not slowed down.
const REST: Duration = Duration::from_millis(100);
/// Octets that TLS holds for a client that does not take them: a record.
const MAX_ENCRYPTED: usize = 16 << 10;
/// How often it is looked whether a client that has closed its side is there.
const LOOKS: Duration = Duration::from_millis(200);
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
    let accepting = pin!(accept_all(&listener, &at, &shared, &router));
    first_of(accepting, pin!(at.closed())).await;
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
                // Whoever asks and goes, in a burst, costs no work.
                Ok(None) => {}
                Ok(Some(place)) => {
                    let came = Came {
                        from,
                        at: Arc::clone(at),
                    };
                    let (shared, router) = (Arc::clone(shared), router.clone());
                    tokio::spawn(connection(shared, router, stream, came, place));
                }
                Err(problem) => {
                    shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                    if let Ok(right) = Arc::clone(&turned_away).try_acquire_owned() {
                        tokio::spawn(turn_away(stream, problem, right));
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

async fn turn_away(mut stream: TcpStream, problem: Problem, _right: OwnedSemaphorePermit) {
    refuse(&mut stream, &problem).await;
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
    let ends = (came.from, stream.local_addr().ok());
    let stream = SharedStream::new(stream);
    let watched = stream.clone();
    let at = Arc::clone(&came.at);
    let looks = Arc::clone(&shared);
    // In boxes: a task that held all of it would be as large as all of it
    // together, some parts twice, for a client that asks nothing as well.
    let serving: Pin<Box<dyn Future<Output = ()> + Send>> = match shared.tls() {
        None => Box::pin(talk(shared, router, stream, came, place)),
        Some(tls) => Box::pin(encrypted(tls, shared, router, stream, came, place)),
    };
    let (wanted_back, closed) = (pin!(wanted.is_wanted()), pin!(at.closed()));
    let gone = pin!(leaves(looks, watched, wanted.client(), ends));
    let ends = first_of(first_of(wanted_back, closed), gone);
    first_of(serving, ends).await;
}

/// Agrees on TLS, and talks.
async fn encrypted(
    tls: Arc<ServerConfig>,
    shared: Arc<Shared>,
    router: Router,
    stream: SharedStream,
    came: Came,
    place: Arc<Admission>,
) {
    let accepted =
        TlsAcceptor::from(tls).accept_with(stream, |tls| tls.set_buffer_limit(Some(MAX_ENCRYPTED)));
    match Box::pin(timeout(HANDSHAKE, accepted)).await {
        Ok(Ok(stream)) => talk(shared, router, stream, came, place).await,
        Ok(Err(error)) => tracing::debug!("no TLS with {}: {error}", came.from),
        Err(_) => tracing::debug!("no TLS with {} in time", came.from),
    }
}

/// Waits until a client is gone for whom something is made. `ends` are those
/// of its connection, its own first.
async fn leaves(
    shared: Arc<Shared>,
    stream: SharedStream,
    client: &Client,
    ends: (SocketAddr, Option<SocketAddr>),
) {
    stream.closed().await;
    // In a box: few leave at a time.
    let is_nobodys = Box::pin(is_nobodys(shared, ends));
    first_of(Box::pin(client.leaves()), is_nobodys).await;
}

/// Waits until the kernel says that nobody has the other end any more, which
/// it does of clients of this host: a program that has ended takes no answer,
/// where one that sends no more may.
async fn is_nobodys(shared: Arc<Shared>, (from, to): (SocketAddr, Option<SocketAddr>)) {
    while !shared.is_nobodys(from, to) {
        sleep(LOOKS).await;
    }
}

/// Waits for the first of two, which are pinned where they are: what is
/// handed to an async function takes its place twice.
fn first_of(
    mut one: impl Future<Output = ()> + Unpin,
    mut other: impl Future<Output = ()> + Unpin,
) -> impl Future<Output = ()> + Unpin {
    poll_fn(move |cx| {
        let is_over = Pin::new(&mut one).poll(cx).is_ready();
        match is_over || Pin::new(&mut other).poll(cx).is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
}

type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Talks with a client until it goes. Between requests it rests: nothing is
/// held for it but the connection itself.
async fn talk<S>(shared: Arc<Shared>, router: Router, stream: S, came: Came, place: Arc<Admission>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = Guarded::new(stream, Arc::clone(&place), shared.config.write_timeout());
    loop {
        match timeout(shared.config.header_timeout(), stream.first()).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Box::pin(shut_down(&mut stream)).await,
            Ok(Err(error)) => return tracing::debug!("{}: {error}", came.from),
            Err(_) => return tracing::debug!("{}: nothing was asked", came.from),
        }
        place.client().hears();
        let lease = match shared.lease(place.client().source(), ANSWERING_BYTES) {
            Ok(lease) => lease,
            Err(problem) => {
                shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                return Box::pin(refuse(&mut stream, &problem)).await;
            }
        };
        let talking = Box::pin(talk_awake(&shared, &router, stream, &came, &place));
        let Some(rests) = talking.await else { return };
        drop(lease);
        stream = rests;
    }
}

/// Answers what a client asks until it rests, and gives back the stream; or
/// to its end.
async fn talk_awake<S>(
    shared: &Arc<Shared>,
    router: &Router,
    stream: Guarded<S>,
    came: &Came,
    place: &Arc<Admission>,
) -> Option<Guarded<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
        .serve_connection(TokioIo::new(stream), service);
    let mut resting = None;
    let mut rests = false;
    let ended = poll_fn(|cx| {
        let polled = connection.poll_without_shutdown(cx);
        if polled.is_ready() || !place.client().rests() {
            resting = None;
            return polled;
        }
        let rest = resting.get_or_insert_with(|| Box::pin(sleep(REST)));
        ready!(rest.as_mut().poll(cx));
        rests = true;
        // It is at rest, so this ends at once, and nothing is said.
        Pin::new(&mut connection).graceful_shutdown();
        connection.poll_without_shutdown(cx)
    })
    .await;
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    if rests && ended.is_ok() {
        // An empty one would keep the buffer it was cut from.
        if !parts.read_buf.is_empty() {
            stream.put_back(parts.read_buf);
        }
        return Some(stream);
    }
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
            refuse(&mut stream, &problem).await;
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
    None
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
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(place.client().source());
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
    let allowed = allowed.map(|let_in| {
        parts.extensions.insert(let_in);
    });
    let allowed = match allowed {
        Ok(()) if parts.uri.path() == statement::PATH => {
            let is_beyond = !came.from.ip().to_canonical().is_loopback();
            sql::read(&shared, &mut parts, Body::new(body), is_beyond).await
        }
        // Not read: there is none.
        allowed => allowed,
    };
    let mut response = match allowed {
        Ok(()) => {
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
