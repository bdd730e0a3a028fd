//! `/v1/changes`: what changes, as server-sent events.
//!
//! Each event of the tables is rendered once for all who watch; a stream
//! copies the lines that its question is about. A stream looks ten times a
//! second, each at its own moment, and takes at most its share of what all
//! may take: a storm of changes makes streams fall behind, and not others
//! wait. One that fell behind further than is kept is told so, and takes a
//! snapshot.

mod feed;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http_body::Frame;
use table::KERNEL;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};
use view::conditions::{FILTERS, settle_family};
use view::{Filter, Object, Question, Watch};

use super::background;
use super::definition::TABLES;
use super::problem::Problem;
use super::query::Parameters;
use super::shared::{Shared, source_of};
use crate::source::Source;
use feed::{Feed, Taken};

/// Between two looks of a stream.
const LOOK: Duration = Duration::from_millis(100);
/// Without an event: something is sent, so that both ends know of each
/// other.
const SILENCE: Duration = Duration::from_secs(15);
/// Octets that all streams take in a look together, about.
const ALL_BYTES: usize = 4 << 20;
/// Octets that a stream takes in a look at least, and at most.
const BYTES: (usize, usize) = (4 << 10, 1 << 20);
/// Milliseconds after which a browser connects again.
const RETRY_MILLIS: u32 = 1_000;

/// Whose rows are watched: a namespace by its inode, and a feeder in it.
type Whose = (u64, Option<String>);

/// All streams, and what they share.
#[derive(Debug)]
pub struct Streams {
    rights: Arc<Semaphore>,
    most: usize,
    running: Arc<AtomicUsize>,
    /// There as long as somebody watches.
    feeds: Mutex<HashMap<Whose, Weak<Mutex<Feed>>>>,
}

impl Streams {
    /// As many at a time.
    pub fn new(most: usize) -> Self {
        Self {
            rights: Arc::new(Semaphore::new(most)),
            most,
            running: Arc::default(),
            feeds: Mutex::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    fn right(&self) -> Result<Right, Problem> {
        let permit = Arc::clone(&self.rights).try_acquire_owned();
        let permit = permit.map_err(|_| {
            Problem::busy(format!(
                "{} event streams are open already: close one, or raise `event_streams` in \
                 `[http]` of the configuration",
                self.most
            ))
        })?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Right {
            _permit: permit,
            running: Arc::clone(&self.running),
        })
    }

    fn feed(&self, whose: Whose, make: impl FnOnce() -> Feed) -> Arc<Mutex<Feed>> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        if let Some(feed) = feeds.get(&whose).and_then(Weak::upgrade) {
            return feed;
        }
        let feed = Arc::new(Mutex::new(make()));
        feeds.insert(whose, Arc::downgrade(&feed));
        feed
    }
}

/// The right to a stream.
#[derive(Debug)]
struct Right {
    _permit: OwnedSemaphorePermit,
    running: Arc<AtomicUsize>,
}

impl Drop for Right {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Opens a stream.
pub async fn open(shared: &Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let of = Arc::clone(shared);
    // The feed is rendered under its lock.
    let opened = shared.background.run(async move { answer(&of, &request) });
    let mut response = opened.await?;
    background::mark(&mut response);
    Ok(response)
}

fn answer(shared: &Arc<Shared>, request: &Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let netns = parameters.take("netns")?;
    let namespace = shared.namespace(netns.as_deref(), request)?;
    let questions = questions(&mut parameters)?;
    // Of one table only is a source asked for.
    let source = questions.first().and_then(|one| one.filter.source.clone());
    let source = source.filter(|source| source != KERNEL);
    namespace
        .of(source.as_deref())
        .map_err(|why| Problem::bad_request(format!("parameter `source`: {why}")))?;
    let from = parameters.take("from")?;
    parameters.finish()?;
    let last = request.headers.get("last-event-id");
    let last = match (last, &from) {
        (Some(last), _) => Some(last.to_str().unwrap_or_default()),
        (None, from) => from.as_deref(),
    };
    let right = shared.streams.right()?;
    let lease = shared.lease(Source::Watchers, 0)?;
    let feed = shared.streams.feed((namespace.inode, source.clone()), || {
        Feed::new(namespace.source.reader(), source, shared.names(), lease)
    });
    let mut position = Position::after(last, &shared.start)?;
    let wanted = {
        let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
        feed.catch_up();
        match position {
            Position::Now => position = Position::At(feed.latest()),
            Position::At(seen) => feed.reach_back(seen),
            Position::Lost => {}
        }
        feed.watches(&questions)?
    };
    let stream = Stream {
        position,
        feed,
        questions,
        wanted,
        shared: Arc::clone(shared),
        asker: source_of(request),
        next: Box::pin(sleep_until(Instant::now())),
        began: false,
        spoke: Instant::now(),
        _right: right,
    };
    let mut response = Response::new(Body::new(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What is watched: a question for each table.
fn questions(parameters: &mut Parameters<'_>) -> Result<Vec<Question>, Problem> {
    let names = parameters.take_all("object");
    let names: Vec<&str> = names
        .iter()
        .flat_map(|some| some.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let mut objects = Vec::new();
    for name in &names {
        objects.push(object(name)?);
    }
    if objects.is_empty() {
        objects.extend(TABLES.iter().map(|table| table.object));
    }
    let mut filter = Filter::default();
    if let [object] = objects[..] {
        parameters.take_words(FILTERS, object, &mut filter)?;
        settle_family(&mut filter);
    } else {
        // A question for routes or rules is for IPv4 ones of the main table
        // unless it says otherwise; here all are meant.
        filter.table = Some("all".to_owned());
        filter.state = vec!["all".to_owned()];
    }
    objects.sort_unstable_by_key(|object| *object as u8);
    objects.dedup();
    let of = |object: Object| {
        let mut filter = filter.clone();
        if objects.len() > 1 && !matches!(object, Object::Neigh) {
            filter.state.clear();
        }
        Question {
            object,
            filter,
            output: view::Output::default(),
        }
    };
    let mut questions: Vec<Question> = objects.iter().map(|object| of(*object)).collect();
    if objects.len() > 1 && objects.contains(&Object::Rule) {
        // Without a family a question for rules is for those of IPv4.
        let mut v6 = of(Object::Rule);
        v6.filter.family = Some(6);
        questions.push(v6);
    }
    Ok(questions)
}

fn object(name: &str) -> Result<Object, Problem> {
    let named = |path: &str| path.strip_prefix("/v1/") == Some(name);
    let found = TABLES.iter().find(|table| named(table.path));
    found.map(|table| table.object).ok_or_else(|| {
        Problem::bad_request(
            "parameter `object`: links, addresses, neighbours, routes, nexthops, rules or fdb \
             is expected",
        )
    })
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy)]
enum Position {
    /// Wherever the tables are.
    Now,
    /// Behind a generation.
    At(u64),
    /// Nowhere: what it saw last is of another start.
    Lost,
}

impl Position {
    fn after(last: Option<&str>, start: &str) -> Result<Self, Problem> {
        let Some(last) = last else {
            return Ok(Self::Now);
        };
        let parts = last.split_once('-');
        let read = parts.and_then(|(of, generation)| Some((of, generation.parse().ok()?)));
        match read {
            Some((of, generation)) if of == start => Ok(Self::At(generation)),
            Some(_) => Ok(Self::Lost),
            None => Err(Problem::bad_request(
                "parameter `from` or Last-Event-ID: the id of an event is expected, or what the \
                 Fingerpost-Generation header of an answer says",
            )),
        }
    }
}

/// A stream of events.
struct Stream {
    position: Position,
    feed: Arc<Mutex<Feed>>,
    questions: Vec<Question>,
    wanted: Vec<Watch>,
    shared: Arc<Shared>,
    asker: Source,
    next: Pin<Box<Sleep>>,
    began: bool,
    spoke: Instant,
    _right: Right,
}

impl Stream {
    /// What is to be said now. What is more than every connection counts as
    /// counts in the budget; where it does not fit there (a generation is
    /// told whole), the stream falls behind.
    fn said(&mut self) -> Bytes {
        let said = self.look();
        if said.capacity() <= 2 * BYTES.0 {
            return said.into();
        }
        self.shared
            .budget
            .keep(self.asker, said)
            .unwrap_or_else(|_| {
                self.position = Position::Lost;
                self.look().into()
            })
    }

    /// Octets that it takes in a look, about.
    fn room(&self) -> usize {
        let (least, most) = BYTES;
        let share = ALL_BYTES / self.shared.streams.count().max(1);
        // A vector that grows has up to twice its room.
        let room = self.shared.budget.room(self.asker) / 4;
        share.min(room).clamp(least, most)
    }

    fn look(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let room = self.room();
        let start = &self.shared.start;
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        feed.catch_up();
        if !self.began {
            self.began = true;
            let at = match self.position {
                Position::At(at) => at,
                Position::Now | Position::Lost => feed.latest(),
            };
            let hello = format!(
                "retry: {RETRY_MILLIS}\nid: {start}-{at}\nevent: start\n\
                 data: {{\"generation\":\"{start}-{at}\"}}\n\n"
            );
            out.extend_from_slice(hello.as_bytes());
        }
        let seen = match self.position {
            Position::At(seen) => feed.take(
                seen,
                &self.questions,
                &mut self.wanted,
                start,
                room,
                &mut out,
            ),
            Position::Now | Position::Lost => Taken::FellBehind,
        };
        match seen {
            Taken::UpTo(seen) => self.position = Position::At(seen),
            Taken::FellBehind => {
                let at = feed.latest();
                self.position = Position::At(at);
                let behind = format!(
                    "id: {start}-{at}\nevent: fell_behind\ndata: {{\"generation\":\
                     \"{start}-{at}\",\"do\":\"ask for the rows again, then go on from here\"}}\n\n"
                );
                out.extend_from_slice(behind.as_bytes());
            }
        }
        if out.is_empty() && self.spoke.elapsed() >= SILENCE {
            // An id without an event: who connects again goes on from here.
            if let Position::At(at) = self.position {
                out.extend_from_slice(format!("id: {start}-{at}\n\n").as_bytes());
            }
        }
        out
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            ready!(self.next.as_mut().poll(cx));
            let said = self.said();
            let next = Instant::now() + LOOK;
            self.next.as_mut().reset(next);
            if !said.is_empty() {
                self.spoke = Instant::now();
                return Poll::Ready(Some(Ok(Frame::data(said))));
            }
        }
    }
}
