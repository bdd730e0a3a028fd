//! `POST /v1/sql`: a statement in the body, its rows as the answer. It is
//! made whole before it goes out, within bounds of time, rows, memory and
//! length, on a thread of its own that lets all others go first.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use query::{Limits, Question, SqlError};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::nat;
use super::problem::Problem;
use super::query::{Parameters, format, media_type};
use super::rows::INCOMPLETE;
use super::shared::{Shared, source_of};
use super::statement::{AT_ONCE, MAX_STATEMENT};
use crate::sql::{self, About};

/// What a statement may take here.
const TIME: Duration = Duration::from_secs(10);
const ROWS: u64 = 100_000;
const MEMORY: usize = 16 << 20;
/// Octets of an answer at most.
const MAX_ANSWER: usize = 8 << 20;
/// How much nicer its thread is than those that mirror and answer.
const NICE: i32 = 10;

/// The body of a request, read before it is answered.
#[derive(Debug, Clone)]
struct Statement(Bytes);

/// Whether the client is beyond loopback.
#[derive(Debug, Clone, Copy)]
struct IsBeyond(bool);

/// Reads the statement of a request, in the time that a head may take.
pub async fn read(
    shared: &Shared,
    parts: &mut Parts,
    body: Body,
    is_beyond: bool,
) -> Result<(), Problem> {
    let patience = shared.config.header_timeout();
    let late = |_| {
        let why = format!("the statement was not whole within {patience:?}");
        Problem::new(StatusCode::REQUEST_TIMEOUT, why).closing()
    };
    let read = timeout(patience, axum::body::to_bytes(body, MAX_STATEMENT));
    let read = read.await.map_err(late)?;
    let statement = read.map_err(|error| Problem::bad_request(error.to_string()).closing())?;
    parts.extensions.insert(Statement(statement));
    parts.extensions.insert(IsBeyond(is_beyond));
    Ok(())
}

/// Says that nobody waits any more, when it is dropped.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers.
pub async fn answer(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let is_beyond = request.extensions.get::<IsBeyond>();
    if is_beyond.is_none_or(|is| is.0) && !shared.config.sql_beyond_loopback {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "statements are answered on loopback only: set `sql_beyond_loopback = true` in \
             `[http]` of the configuration",
        ));
    }
    let mut parameters = Parameters::parse(request.uri.query())?;
    let netns = parameters.take("netns")?;
    let question = Question {
        statement: statement(&request)?,
        explain: parameters.take_switch("explain")?,
        format: format(&mut parameters, &request.headers)?,
    };
    parameters.finish()?;
    let namespace = shared.namespace(netns.as_deref(), &request)?;
    let busy = || Problem::busy(format!("{AT_ONCE} statements are under way: ask again"));
    let right = Arc::clone(&shared.statements);
    let right = right.try_acquire_owned().map_err(|_| busy())?;
    let source = source_of(&request);
    let mut lease = shared.budget.lease_part(source, sql::PART);
    lease.resize(lease.octets().min(MEMORY + MAX_ANSWER));
    if lease.octets() < 2 * sql::MIN_MEMORY {
        return Err(Problem::busy(
            "other answers take all memory that they may: ask again",
        ));
    }
    let most = lease.octets() / 3;
    let limits = Limits {
        time: TIME,
        rows: ROWS,
        memory: lease.octets() - most,
    };
    let gone = Arc::new(AtomicBool::new(false));
    let waits = Waits(Arc::clone(&gone));
    let (tell, told) = oneshot::channel();
    let (names, format) = (shared.names(), question.format);
    let incomplete = namespace.incomplete();
    let translation = nat::translation_for(&shared, &request);
    let work = move || {
        let (_right, lease) = (right, lease);
        let mut out = Answer {
            octets: Vec::new(),
            most,
        };
        let is_gone = move || gone.load(Ordering::Relaxed);
        let ended = begin().and_then(|()| {
            let about = About {
                namespace: &namespace,
                names,
                translation,
                earlier: None,
            };
            let answered = query::answer(&question, &about, &limits, is_gone, &mut out);
            answered.map_err(problem)
        });
        // Nobody is told where nobody waits.
        let _ = tell.send((ended.map(|_| out.octets), lease));
    };
    let spawned = thread::Builder::new()
        .name("statement".to_owned())
        .spawn(work);
    spawned.map_err(|error| Problem::busy(format!("no thread for a statement: {error}")))?;
    let told = told.await.map_err(|_| Problem::busy("the daemon ends"))?;
    drop(waits);
    let (ended, lease) = told;
    let octets = ended?;
    drop(lease);
    let kept = shared.budget.keep(source, octets);
    let kept = kept.map_err(|_| Problem::busy("other answers take all memory: ask again"))?;
    let mut response = Response::new(Body::from(kept));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(format)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(why) = incomplete.and_then(|why| HeaderValue::try_from(why).ok()) {
        headers.insert(INCOMPLETE, why);
    }
    Ok(response)
}

/// Whoever answers strangers has no rights, and lets others go first.
fn begin() -> Result<(), Problem> {
    if let Err(error) = privileges::drop_all() {
        tracing::error!("a statement is not answered, rights remain: {error}");
        return Err(Problem::busy("the daemon cannot answer statements"));
    }
    // For the calling thread alone, whatever the name says.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("a statement may delay short answers: no priority: {error}");
    }
    Ok(())
}

fn statement(request: &Parts) -> Result<String, Problem> {
    let octets = request.extensions.get::<Statement>();
    let octets = octets
        .map(|statement| statement.0.to_vec())
        .unwrap_or_default();
    String::from_utf8(octets).map_err(|_| Problem::bad_request("the statement is no text in UTF-8"))
}

fn problem(error: SqlError) -> Problem {
    match error {
        SqlError::Statement(_) | SqlError::Refused(_) => Problem::bad_request(error.to_string()),
        SqlError::Write(error) if error.kind() == io::ErrorKind::OutOfMemory => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("{error}: narrow the statement, or ask over the control socket"),
        ),
        other => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, other.to_string()),
    }
}

/// An answer that is no longer than it may be.
struct Answer {
    octets: Vec<u8>,
    most: usize,
}

impl Write for Answer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.octets.len() + piece.len() > self.most {
            let why = format!("the answer is longer than {} KiB", self.most >> 10);
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        self.octets.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an answer looks like, for the OpenAPI document.
pub fn path(parameters: &[Value], refused: &Value) -> Value {
    let text = json!({"schema": {"type": "string"}});
    json!({"post": {
        "operationId": "sql",
        "summary": "The rows of one `select` over the tables, as `fingerpost sql` gives them; on \
                    loopback only, unless `sql_beyond_loopback` is configured",
        "parameters": parameters,
        "requestBody": {
            "required": true,
            "description": "The statement: 64 KiB at most",
            "content": {"text/plain": text}
        },
        "responses": {
            "200": {
                "description": "The rows, 100,000 and 8 MiB at most",
                "content": {
                    "application/json": {"schema": {
                        "type": "array",
                        "items": {"type": "object", "additionalProperties": true}
                    }},
                    "application/x-ndjson": text,
                    "text/csv": text
                }
            },
            "422": refused,
            "4XX": refused,
            "5XX": refused
        }
    }})
}
