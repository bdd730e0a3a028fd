//! `/v1/links` and its like: the rows of a table.
//!
//! With `limit` an answer is a page: gathered first, so that its `Link`
//! header can say where the next one begins. Without, it is streamed. Each
//! piece of some 32 KiB is made when the client has taken the one before,
//! from the newest snapshot, after the key of the last row
//! ([`view::Walk`]): no generation is held for a client, however slow, and
//! one that stalls holds the piece it does not take and nothing else. A
//! piece is made in less than a millisecond, and others are served between
//! two.
//!
//! A short answer is made at once. What is longer than [`Bounds::SMALL`] is
//! begun again by the thread of long answers ([`super::long`]).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LINK, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use table::{KERNEL, Owner, Reader, Source, Tables};
use view::conditions::{FILTERS, GET, Packet, settle_family};
use view::{Bounds, Filter, Object, Question, Walk};
use words::values;

use super::compressed::Permit;
use super::definition::Table;
use super::problem::Problem;
use super::query::{self, Parameters};
use super::shared::{Shared, source_of};
use super::streamed::{Pieces, Streamed};
use super::{background, compressed, cursor};
use crate::namespace::Namespace;
use crate::source::Source as Asker;
use crate::status;

/// Rows of a page at most.
pub const MAX_LIMIT: u64 = 10_000;
/// Rows that are passed over at most.
pub const MAX_SKIP: u64 = 100_000_000;
/// Which generation an answer is of, to watch changes from.
pub const GENERATION: HeaderName = HeaderName::from_static("fingerpost-generation");

/// When the counters in an answer were read, milliseconds since 1970: what
/// makes a rate of two answers.
pub const COUNTERS_AT: HeaderName = HeaderName::from_static("fingerpost-counters-at");

/// Why an answer may lack rows: only where it may.
pub const INCOMPLETE: HeaderName = HeaderName::from_static("fingerpost-incomplete");

/// A question for rows, as it was asked.
struct Asked {
    question: Question,
    /// With the rows of the owner that is asked for.
    namespace: Namespace,
    /// Where all owners' rows are.
    whole: Arc<dyn Source>,
    limit: Option<u64>,
    skip: u64,
    after: Option<view::Position>,
    uri: Uri,
    /// Who asks.
    asker: Asker,
    /// To be compressed, if it is worth it.
    compress: Permit,
}

impl Asked {
    fn read(shared: &Shared, table: &Table, request: &Parts) -> Result<Self, Problem> {
        let mut parameters = Parameters::parse(request.uri.query())?;
        let netns = parameters.take("netns")?;
        let namespace = shared.namespace(netns.as_deref(), request)?;
        let mut filter = Filter::default();
        parameters.take_words(FILTERS, table.object, &mut filter)?;
        if let Some(text) = parameters.take("filter")? {
            view::conditions::read(table.object, &text, &mut filter)
                .map_err(|why| Problem::bad_request(format!("parameter `filter`: {why}")))?;
        }
        settle_family(&mut filter);
        let whole = Arc::clone(&namespace.source);
        let namespace = of_source(&namespace, filter.source.as_deref())?;
        let mut output = query::output(&mut parameters, &request.headers)?;
        output.netns = netns.map(|netns| netns.into_owned());
        let question = Question {
            object: table.object,
            filter,
            output,
        };
        let limit = parameters.take_number("limit")?;
        if limit.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
            return Err(Problem::bad_request(format!(
                "parameter `limit`: 1 to {MAX_LIMIT} is expected; without it all rows are streamed"
            )));
        }
        let skip = parameters.take_number("skip")?.unwrap_or(0);
        if skip > MAX_SKIP {
            return Err(Problem::bad_request(format!(
                "parameter `skip`: {MAX_SKIP} at most"
            )));
        }
        let netns = question.output.netns.as_deref();
        let after = parameters.take("after")?;
        let after = after
            .map(|after| {
                let told_by = cursor::ToldBy::new(&shared.start, namespace.feeder);
                cursor::read(&after, &question, netns, &told_by)
            })
            .transpose()?;
        parameters.finish()?;
        if question.output.count && (limit.is_some() || after.is_some() || skip > 0) {
            return Err(Problem::bad_request(
                "parameter `count`: all rows are counted; leave out `limit`, `skip` and `after`",
            ));
        }
        Ok(Self {
            question,
            namespace,
            whole,
            limit,
            skip,
            after,
            uri: request.uri.clone(),
            asker: source_of(request),
            compress: compressed::permit(shared, request),
        })
    }

    /// The rows from the place on that was asked for.
    fn walk(&self) -> Walk {
        Walk::new(self.question.clone(), self.after.clone(), self.limit)
    }

    /// The whole answer, if it is short.
    fn at_once(
        &mut self,
        shared: &Shared,
        tables: &Tables,
    ) -> Result<Option<(Bytes, Walk)>, Problem> {
        let now = self.namespace.source.now_millis();
        if self.skip > 0 {
            let mut walk = self.skipping();
            walk.bounded_piece(Bounds::SMALL, tables, &shared.names(), now)?;
            if !walk.is_over() {
                return Ok(None);
            }
            self.go_on_after(&walk);
        }
        let mut walk = self.walk();
        let piece = walk.bounded_piece(Bounds::SMALL, tables, &shared.names(), now)?;
        let whole = piece.filter(|_| walk.is_over());
        Ok(whole.map(|piece| (piece.into(), walk)))
    }

    /// Passes over the rows that are to be left out, a piece at a time, so
    /// that others are answered between two. O(log n) where all rows of
    /// tables of routes are asked for, else O(rows passed over).
    async fn pass_over(&mut self, shared: &Shared) -> Result<(), Problem> {
        if self.skip == 0 {
            return Ok(());
        }
        if let Some(why) = self.namespace.left() {
            return Err(Problem::busy(format!(
                "the source {why}, and its rows with it"
            )));
        }
        // No filter leaves more rows than there are: no walk finds any.
        let rows = status::rows(&self.namespace.tables(), self.question.object);
        if self.skip >= rows as u64 {
            self.limit = Some(0);
            return Ok(());
        }
        let mut walk = self.skipping();
        while !walk.is_over() {
            let tables = self.namespace.tables();
            walk.piece(&tables, &shared.names(), self.namespace.source.now_millis())?;
            drop(tables);
            tokio::task::yield_now().await;
        }
        self.go_on_after(&walk);
        Ok(())
    }

    /// A walk over the rows to be left out, which only counts them.
    fn skipping(&self) -> Walk {
        let mut counting = self.question.clone();
        counting.output.count = true;
        Walk::new(counting, self.after.clone(), Some(self.skip))
    }

    /// Nothing is to be left out any more.
    fn go_on_after(&mut self, skipped: &Walk) {
        self.skip = 0;
        match skipped.rest() {
            Some(position) => self.after = Some(position.clone()),
            // Fewer rows than were to be passed over: none is left.
            None => self.limit = Some(0),
        }
    }
}

/// Answers a question for the rows of a table.
pub async fn answer(
    shared: &Arc<Shared>,
    table: &'static Table,
    request: Parts,
) -> Result<Response, Problem> {
    let mut asked = Asked::read(shared, table, &request)?;
    let statistics = asked.question.output.statistics;
    asked.namespace.refreshed(table.object, statistics).await;
    asked.namespace.refreshed_timers(&asked.question).await;
    let tables = asked.namespace.tables();
    let mut head = Head::new(shared, &asked, &tables);
    if let Some(etag) = &head.etag
        && is_known(&request.headers, etag)
    {
        return Ok(head.finish(StatusCode::NOT_MODIFIED, Body::empty()));
    }
    let Some((rows, walk)) = asked.at_once(shared, &tables)? else {
        drop(tables);
        let work = long_answer(Arc::clone(shared), asked, head);
        return shared.background.run(work).await;
    };
    if asked.limit.is_some_and(|limit| limit > 0) {
        head.link(&walk, &asked, &shared.start);
    }
    let body = compressed::body(Page::from(rows), &asked.compress);
    let mut response = head.finish(StatusCode::OK, body);
    compressed::mark(&mut response, asked.compress.is_some());
    Ok(response)
}

/// Answers by pieces: a page with its `Link`, or a stream of all rows.
async fn long_answer(
    shared: Arc<Shared>,
    mut asked: Asked,
    mut head: Head,
) -> Result<Response, Problem> {
    asked.pass_over(&shared).await?;
    let source = &asked.namespace.source;
    let mut walk = asked.walk();
    let first = {
        let tables = source.reader().snapshot();
        let bounds = shared.piece(asked.asker);
        walk.bounded_piece(bounds, &tables, &shared.names(), source.now_millis())?
    };
    let compress = asked.compress.clone();
    let rows = Rows {
        walk,
        first: first.map(fitted),
        shared: Arc::clone(&shared),
        asker: asked.asker,
        source: Arc::downgrade(&asked.whole),
        owner: asked.question.filter.source.clone(),
        feeder: asked.namespace.feeder,
    };
    let body = if asked.limit.is_some() {
        let (page, walk) = rows.gather().await?;
        if asked.limit != Some(0) {
            head.link(&walk, &asked, &shared.start);
        }
        compressed::body(page, &compress)
    } else if rows.walk.is_over() {
        compressed::body(
            Page::from(Bytes::from(rows.first.unwrap_or_default())),
            &compress,
        )
    } else {
        compressed::body(Streamed::new(rows), &compress)
    };
    let mut response = head.finish(StatusCode::OK, body);
    compressed::mark(&mut response, compress.is_some());
    background::mark(&mut response);
    Ok(response)
}

/// Whether the client has this already (RFC 9110 §13.1.2, weakly).
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter();
    tags.filter_map(|tags| tags.to_str().ok())
        .flat_map(|tags| tags.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag.trim_start_matches("W/"))
}

/// The head of an answer.
struct Head {
    /// None where the answer changes without a generation: with counters.
    etag: Option<String>,
    headers: HeaderMap,
}

impl Head {
    fn new(shared: &Shared, asked: &Asked, tables: &Tables) -> Self {
        let generation = tables.generation.0;
        let output = &asked.question.output;
        // Weak: the same answer compressed is the same answer.
        let inode = asked.namespace.inode;
        let etag = format!("W/\"{}-{inode}-{generation}\"", shared.start);
        let mut headers = HeaderMap::new();
        let media_type = HeaderValue::from_static(query::media_type(output.format));
        headers.insert(CONTENT_TYPE, media_type);
        headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
        let id = format!("{}-{generation}", shared.start);
        insert(&mut headers, GENERATION, &id);
        if let Some(why) = asked.namespace.incomplete() {
            insert(&mut headers, INCOMPLETE, &why);
        }
        let fields = output.fields.iter().map(String::as_str);
        // Whose names come from other tables than the rows changes with both.
        let is_fed = asked.question.filter.source.is_some();
        let samples = output.statistics
            || view::shows_timers(&asked.question)
            || view::are_sampled(asked.question.object, fields);
        if samples
            && asked.question.object == Object::Link
            && let Some(taken) = tables.link_counters.taken_at_millis
        {
            insert(&mut headers, COUNTERS_AT, &taken.to_string());
        }
        let cache = if samples { "no-store" } else { "no-cache" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        Self {
            etag: (!samples && !is_fed).then_some(etag),
            headers,
        }
    }

    /// Says where the next page begins, if there is one (RFC 8288).
    fn link(&mut self, walk: &Walk, asked: &Asked, start: &str) {
        let Some(position) = walk.rest() else { return };
        let netns = asked.question.output.netns.as_deref();
        let told_by = cursor::ToldBy::new(start, asked.namespace.feeder);
        let after = cursor::write(position, &asked.question, netns, &told_by);
        let query = asked.uri.query().unwrap_or_default();
        let mut next = String::new();
        for part in query
            .split('&')
            .filter(|part| !part.starts_with("after=") && !part.starts_with("skip="))
        {
            next.push_str(part);
            next.push('&');
        }
        let link = format!("<{}?{next}after={after}>; rel=\"next\"", asked.uri.path());
        insert(&mut self.headers, LINK, &link);
    }

    fn finish(mut self, status: StatusCode, body: Body) -> Response {
        if let Some(etag) = &self.etag {
            insert(&mut self.headers, ETAG, etag);
        }
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = self.headers;
        response
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Rows under way to a client.
struct Rows {
    walk: Walk,
    /// Made already.
    first: Option<Vec<u8>>,
    shared: Arc<Shared>,
    /// Who asked for them.
    asker: Asker,
    /// Not held: a namespace that goes ends the answer.
    source: Weak<dyn Source>,
    /// Whose rows, but the kernel's.
    owner: Option<String>,
    /// Which of those that had this name.
    feeder: Option<u64>,
}

impl Rows {
    /// Who has the name of the feeder now.
    fn feeder_now(&self, reader: &Reader) -> Option<u64> {
        let tables = reader.snapshot();
        tables.owner(self.owner.as_deref()?).map(Owner::id)
    }

    /// All that is left, which is a page. Where too much memory waits for
    /// other clients, the page is shorter.
    async fn gather(mut self) -> Result<(Page, Walk), Problem> {
        let mut pieces = VecDeque::new();
        while let Some(piece) = self.raw_piece()? {
            if !piece.is_empty() {
                match self.shared.budget.keep(self.asker, piece) {
                    Ok(piece) => pieces.push_back(piece),
                    // The last, and as short as any: a page makes headway.
                    Err(piece) => {
                        pieces.push_back(piece.into());
                        if !self.walk.is_over() {
                            pieces.push_back(self.walk.stop().into());
                        }
                        break;
                    }
                }
            }
            if self.walk.is_over() {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok((Page { pieces }, self.walk))
    }
}

impl Pieces for Rows {
    fn piece(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = self.raw_piece()?;
        // Without room for it it is one of the shortest, which every
        // connection counts as from the start.
        let keep = |piece| self.shared.budget.keep(self.asker, piece);
        Ok(piece.map(|piece| keep(piece).unwrap_or_else(Bytes::from)))
    }
}

impl Rows {
    fn raw_piece(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(source) = self.source.upgrade() else {
            return Err(Problem::busy("the namespace is mirrored no more"));
        };
        let left = || Problem::busy("the source whose rows were told has left");
        let reader = source.reader();
        if self.feeder.is_some() && self.feeder != self.feeder_now(&reader) {
            return Err(left());
        }
        let owner = self.owner.as_deref().unwrap_or(KERNEL);
        let reader = reader.of(owner).ok_or_else(left)?;
        let tables = reader.snapshot();
        let (bounds, names, now) = (
            self.shared.piece(self.asker),
            self.shared.names(),
            source.now_millis(),
        );
        let piece = self.walk.bounded_piece(bounds, &tables, &names, now)?;
        Ok(piece.map(fitted))
    }
}

/// Without room behind it: a piece may wait for its client for long.
fn fitted(mut piece: Vec<u8>) -> Vec<u8> {
    piece.shrink_to_fit();
    piece
}

/// Rows that are gathered.
struct Page {
    pieces: VecDeque<Bytes>,
}

impl From<Bytes> for Page {
    fn from(rows: Bytes) -> Self {
        Self {
            pieces: [rows].into(),
        }
    }
}

impl http_body::Body for Page {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let piece = self.pieces.pop_front();
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let octets = self.pieces.iter().map(|piece| piece.len() as u64);
        SizeHint::with_exact(octets.sum())
    }
}

/// A namespace with the rows of the source that is asked for.
fn of_source(namespace: &Namespace, source: Option<&str>) -> Result<Namespace, Problem> {
    let found = namespace.of(source);
    found.map_err(|why| Problem::bad_request(format!("parameter `source`: {why}")))
}

/// Answers which route a packet would take.
pub async fn route_get(shared: &Arc<Shared>, request: &Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let netns = parameters.take("netns")?;
    let whole = shared.namespace(netns.as_deref(), request)?;
    let address = parameters.take("address")?.ok_or_else(|| {
        Problem::bad_request("parameter `address` is missing: /v1/routes/get?address=192.0.2.1")
    })?;
    let address = values::address(&address)
        .map_err(|why| Problem::bad_request(format!("parameter `address`: {why}")))?;
    let mut packet = Packet::default();
    parameters.take_words(GET, Object::Route, &mut packet)?;
    let mut output = query::output(&mut parameters, &request.headers)?;
    output.netns = netns.map(|netns| netns.into_owned());
    parameters.finish()?;
    let mut question = packet.question(address);
    question.output = output;
    let namespace = of_source(&whole, question.source.as_deref())?;
    let tables = namespace.tables();
    let asked = Asked {
        question: Question {
            object: Object::Route,
            filter: Filter {
                source: question.source.clone(),
                ..Filter::default()
            },
            output: question.output.clone(),
        },
        whole: whole.source,
        namespace,
        limit: None,
        skip: 0,
        after: None,
        uri: request.uri.clone(),
        asker: source_of(request),
        compress: None,
    };
    let head = Head::new(shared, &asked, &tables);
    if let Some(etag) = &head.etag
        && is_known(&request.headers, etag)
    {
        return Ok(head.finish(StatusCode::NOT_MODIFIED, Body::empty()));
    }
    let mut out = Vec::new();
    let now = asked.namespace.source.now_millis();
    view::route_get(&question, &tables, &shared.names(), now, &mut out)?;
    Ok(head.finish(StatusCode::OK, Body::from(out)))
}
