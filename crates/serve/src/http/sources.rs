//! `/v1/routes/diff`, `/v1/routes/why` and `/v1/routes/flaps`: questions about
//! several sources at once. Made on the thread of long answers; a difference is streamed,
//! each piece from the newest moment of both.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use view::conditions::{FILTERS, settle_family};
use view::route_flaps::{LIMIT, MAX_LIMIT, MAX_PARTS, SECS};
use view::{
    Filter, Format, Object, Output, RouteDiff, RouteDiffQuestion, RouteFlapsQuestion,
    RouteWhyQuestion,
};
use words::values;

use super::definition::{DIFF, FLAPS, WHY};
use super::problem::Problem;
use super::query::{self, Parameters};
use super::rows::INCOMPLETE;
use super::shared::{Shared, source_of};
use super::streamed::{Pieces, Streamed};
use super::{background, compressed};
use crate::namespace::Namespace;
use crate::owners::{self, AnswerErrorOrLeft, Pair};
use crate::source::Source;

/// Answers where the routes of two sources differ.
pub async fn diff(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let namespace = namespace(&shared, &mut parameters, &request)?;
    let [first, second, strict] = [DIFF[0].name, DIFF[1].name, DIFF[2].name];
    let first = required(&mut parameters, first)?;
    let second = required(&mut parameters, second)?;
    let question = RouteDiffQuestion {
        sources: [first.into_owned(), second.into_owned()],
        strict: parameters.take_switch(strict)?,
        filter: filter(&mut parameters)?,
        output: output(&mut parameters, &request.headers)?,
    };
    parameters.finish()?;
    let pair = Pair::new(&namespace, &question.sources).map_err(Problem::bad_request)?;
    let compress = compressed::permit(&shared, &request);
    let media_type = query::media_type(question.output.format);
    let incomplete = pair.incomplete();
    let mut differences = Differences {
        diff: RouteDiff::new(question),
        first: None,
        asker: source_of(&request),
        shared: Arc::clone(&shared),
        pair,
    };
    let work = async move {
        // What is wrong with the question shows before anything is said.
        differences.first = differences.next()?;
        Ok(differences)
    };
    let differences = shared.background.run(work).await?;
    let body = compressed::body(Streamed::new(differences), &compress);
    let mut response = answered(body, media_type, incomplete);
    compressed::mark(&mut response, compress.is_some());
    background::mark(&mut response);
    Ok(response)
}

/// What each source knows of a prefix, and what packets do.
pub async fn why(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let namespace = namespace(&shared, &mut parameters, &request)?;
    let prefix = required(&mut parameters, WHY[0].name)?;
    let table = parameters.take(WHY[1].name)?.map(Cow::into_owned);
    let details = parameters.take_switch(WHY[2].name)?;
    parameters.finish()?;
    let question = RouteWhyQuestion {
        to: prefix_of(&prefix)?,
        table,
        output: Output {
            format: Format::Json,
            details,
            ..Output::default()
        },
    };
    namespace.refreshed(Object::Neigh, false).await;
    let incomplete = owners::incomplete_of_all(&namespace);
    let names = shared.names();
    let work = async move {
        let mut out = Vec::new();
        owners::route_why(&question, &namespace, &names, &mut out)?;
        Ok(out)
    };
    let told = shared.background.run(work).await?;
    let media_type = query::media_type(Format::Json);
    Ok(answered(Body::from(told), media_type, incomplete))
}

/// Which routes changed how often.
pub async fn flaps(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let namespace = namespace(&shared, &mut parameters, &request)?;
    let [source, table, within, secs, limit, sort, parts] = FLAPS.each_ref().map(|of| of.name);
    let mut text = |name| Ok::<_, Problem>(parameters.take(name)?.map(Cow::into_owned));
    let (source, table, sort) = (text(source)?, text(table)?, text(sort)?);
    let within = text(within)?.as_deref().map(prefix_of).transpose()?;
    let mut number = |name, usual, most| {
        let said = parameters.take_number(name)?.unwrap_or(u64::from(usual));
        let number = u32::try_from(said)
            .ok()
            .filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            Problem::bad_request(format!("parameter `{name}`: 1 to {most} is expected"))
        })
    };
    let (secs, limit) = (
        number(secs, SECS, u32::MAX)?,
        number(limit, LIMIT, MAX_LIMIT)?,
    );
    let parts = match parameters.take_number(parts)?.unwrap_or(0) {
        said if said <= u64::from(MAX_PARTS) => said as u32,
        _ => {
            let why = format!("parameter `{parts}`: 0 to {MAX_PARTS} is expected");
            return Err(Problem::bad_request(why));
        }
    };
    parameters.finish()?;
    let question = RouteFlapsQuestion {
        source,
        table,
        within,
        secs,
        limit,
        sort,
        parts,
        output: Output {
            format: Format::Json,
            ..Output::default()
        },
    };
    let names = shared.names();
    let times = Arc::clone(&shared);
    let work = async move {
        let mut out = Vec::new();
        let times = &times.route_times;
        match owners::route_flaps(&question, &namespace, &names, times, &mut out) {
            Ok(_) => Ok(out),
            Err(AnswerErrorOrLeft::Answer(error)) => Err(Problem::from(error)),
            Err(AnswerErrorOrLeft::Left(why)) => Err(Problem::bad_request(why)),
        }
    };
    let told = shared.background.run(work).await?;
    let media_type = query::media_type(Format::Json);
    Ok(answered(Body::from(told), media_type, None))
}

fn namespace(
    shared: &Shared,
    parameters: &mut Parameters<'_>,
    request: &Parts,
) -> Result<Namespace, Problem> {
    let netns = parameters.take("netns")?;
    shared.namespace(netns.as_deref(), request)
}

fn required<'q>(
    parameters: &mut Parameters<'q>,
    name: &'static str,
) -> Result<Cow<'q, str>, Problem> {
    parameters.take(name)?.ok_or_else(|| {
        Problem::bad_request(format!(
            "parameter `{name}` is missing: /openapi.json describes what there is"
        ))
    })
}

/// What a listing of routes may be narrowed by, but its source.
fn filter(parameters: &mut Parameters<'_>) -> Result<Filter, Problem> {
    let mut filter = Filter::default();
    parameters.take_words(FILTERS, Object::Route, &mut filter)?;
    if filter.source.is_some() {
        return Err(Problem::bad_request(
            "parameter `source`: the two sources are named by `first` and `second`",
        ));
    }
    settle_family(&mut filter);
    Ok(filter)
}

/// JSON or NDJSON: a difference has no columns.
fn output(parameters: &mut Parameters<'_>, headers: &HeaderMap) -> Result<Output, Problem> {
    let format = match parameters.take(DIFF[3].name)?.as_deref() {
        None => query::accepted(headers).filter(|format| *format != Format::Csv),
        Some("json") => Some(Format::Json),
        Some("ndjson") => Some(Format::Ndjson),
        Some(_) => None,
    };
    let format = format
        .ok_or_else(|| Problem::bad_request("parameter `format`: json or ndjson is expected"))?;
    Ok(Output {
        format,
        count: parameters.take_switch(DIFF[4].name)?,
        details: parameters.take_switch(DIFF[5].name)?,
        ..Output::default()
    })
}

fn prefix_of(text: &str) -> Result<IpNet, Problem> {
    values::prefix(text).map_err(|why| Problem::bad_request(format!("parameter `prefix`: {why}")))
}

fn answered(body: Body, media_type: &'static str, incomplete: Option<String>) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(why) = incomplete.and_then(|why| HeaderValue::from_str(&why).ok()) {
        headers.insert(INCOMPLETE, why);
    }
    response
}

/// Differences under way to a client.
struct Differences {
    diff: RouteDiff,
    /// Made already.
    first: Option<Vec<u8>>,
    asker: Source,
    shared: Arc<Shared>,
    pair: Pair,
}

impl Differences {
    fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let moment = self.pair.moment(&self.shared.route_times);
        let moment = moment.map_err(Problem::busy)?;
        let (names, now) = (self.shared.names(), self.pair.now_millis());
        let bounds = self.shared.piece(self.asker);
        Ok(self.diff.piece(bounds, moment.sides(), &names, now)?)
    }
}

impl Pieces for Differences {
    fn piece(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = match self.first.take() {
            Some(first) => Some(first),
            None => self.next()?,
        };
        // As for rows: without room for it it is one of the shortest.
        let keep = |piece| self.shared.budget.keep(self.asker, piece);
        Ok(piece.map(|piece| keep(piece).unwrap_or_else(Bytes::from)))
    }
}
