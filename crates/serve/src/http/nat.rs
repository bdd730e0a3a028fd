//! `/v1/nat/…`: what a translation has, which runs in a process of its own.
//!
//! Each request asks its control socket (`translation`), within bounds of
//! time, rows and memory: one that is not there, stalls or says nonsense is
//! told so, and costs nobody else anything. Rows say who talks to whom, so
//! they are told where a token is asked, and else to root and the daemon's
//! own user alone. A page ends at a place in the translation's table: what
//! stays there is told once, whatever comes and goes.
//!
//! - `asking`: one question and its answer.
//! - `definition`: what can be asked, and what rows have.
//! - `metrics`: what Prometheus is told.
//! - `translation`: where it is asked, and by how many.

mod asking;
pub mod definition;
pub mod metrics;
pub mod translation;

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ::translation::request::{Filter, Request, Table, prefix, protocol};
use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK};
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri};
use serde_json::Value;
use view::Format;

use self::asking::{Answered, Bounds, Trouble};
use self::definition::NatTable;
use super::access_policy::LetIn;
use super::problem::Problem;
use super::query::{self as parameters, Parameters};
use super::shared::{Shared, source_of};
use crate::source::Source;
use crate::sql;

/// Rows of a page where nothing is said, and at most.
const LIMIT: u64 = 1_000;
/// See [`LIMIT`].
pub const MAX_LIMIT: u64 = 10_000;
/// Bytes that a row may have, and an answer beside its rows.
const ROW_BYTES: usize = 512;
const OTHER_BYTES: usize = 4 << 10;
/// How long an answer may take: a count goes through the whole table.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers with a page of a table, or how many rows it has, or its top ones.
pub async fn rows(
    shared: Arc<Shared>,
    table: &'static NatTable,
    request: Parts,
) -> Result<Response, Problem> {
    let source = admitted(&request)?;
    let mut parameters = Parameters::parse(request.uri.query())?;
    let filter = filter(&mut parameters, table.table)?;
    let limit = number(&mut parameters, "limit")?;
    let top = number(&mut parameters, "top")?;
    let count = parameters.take_switch("count")?;
    let after = parameters.take("after")?.map(Cow::into_owned);
    let format = format(&mut parameters, &request)?;
    parameters.finish()?;
    if top.is_some() && matches!(table.table, Table::Pools | Table::Helpers) {
        return Err(Problem::bad_request(
            "parameter `top`: these rows have no inside address to count by",
        ));
    }
    if limit.is_some() && (count || top.is_some()) {
        return Err(Problem::bad_request(
            "parameter `limit`: `count` and `top` give no pages",
        ));
    }
    if usize::from(count) + usize::from(top.is_some()) + usize::from(after.is_some()) > 1 {
        return Err(Problem::bad_request(
            "parameters `count`, `top` and `after`: one of them is expected",
        ));
    }
    let rows = top.or(limit).unwrap_or(LIMIT);
    let show = Request::Show {
        table: table.table,
        filter,
        count,
        limit: Some(rows as usize),
        top: top.map(|top| top as usize),
        after,
    };
    let answered = ask(&shared, source, show, rows as usize).await?;
    if count {
        let row: Option<Value> = serde_json::from_slice(&answered.rows).ok();
        let count = row.as_ref().and_then(|row| row["count"].as_u64());
        let count = count.ok_or_else(|| Trouble::Nonsense.problem())?;
        return Ok(response(format!("{count}\n").into_bytes(), Format::Json));
    }
    let next = answered.next.clone();
    let mut response = page(&shared, source, answered, format)?;
    if let Some(next) = next.and_then(|next| link(&request.uri, &next)) {
        response.headers_mut().insert(LINK, next);
    }
    Ok(response)
}

/// Answers whose an alias port is.
pub async fn who(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let source = admitted(&request)?;
    let mut parameters = Parameters::parse(request.uri.query())?;
    let missing = |name| Problem::bad_request(format!("parameter `{name}` is missing"));
    let alias = parameters.take("alias")?.ok_or_else(|| missing("alias"))?;
    let alias: Ipv4Addr = alias.parse().map_err(|_| {
        Problem::bad_request(format!("parameter `alias`: no IPv4 address: `{alias}`"))
    })?;
    let port = parameters.take_number("port")?;
    let port = port.ok_or_else(|| missing("port"))?;
    let port = u16::try_from(port)
        .map_err(|_| Problem::bad_request(format!("parameter `port`: no port: `{port}`")))?;
    let format = format(&mut parameters, &request)?;
    parameters.finish()?;
    let answered = ask(&shared, source, Request::Who { alias, port }, 16).await?;
    page(&shared, source, answered, format)
}

/// Answers what was counted, and how much there is.
pub async fn statistics(shared: Arc<Shared>, request: Parts) -> Result<Response, Problem> {
    let source = admitted(&request)?;
    Parameters::parse(request.uri.query())?.finish()?;
    let answered = ask(&shared, source, Request::Statistics, 16).await?;
    Ok(response(answered.rows, Format::Json))
}

/// Whether a translation can be asked here, and whether this asker is told
/// what it has.
pub fn is_told(shared: &Shared, request: &Parts) -> Option<bool> {
    let is_there = shared.nat.path().is_some_and(|path| path.exists());
    is_there.then(|| admitted(request).is_ok())
}

/// Where a statement of SQL asks it; else why not.
pub fn translation_for(shared: &Shared, request: &Parts) -> query::Translation {
    let is_told = admitted(request).is_ok();
    sql::translation(shared.nat.path(), is_told)
}

/// Who asks, if it may be told.
fn admitted(request: &Parts) -> Result<Source, Problem> {
    let source = source_of(request);
    match source.is_own() || LetIn::of(request).has_token {
        true => Ok(source),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "who talks to whom is told with a token, or to root and the daemon's own user at \
             this host: set `token_file` in `[http]` of the configuration",
        )),
    }
}

/// Asks, on the thread of long answers.
async fn ask(
    shared: &Arc<Shared>,
    source: Source,
    request: Request,
    rows: usize,
) -> Result<Answered, Problem> {
    let path = shared.nat.path();
    let path = path.ok_or_else(|| Problem::not_found("this daemon asks no translation"))?;
    let bytes = rows * ROW_BYTES + OTHER_BYTES;
    let _memory = shared.lease(source, bytes)?;
    let _place = shared.nat.places.take(source)?;
    let bounds = Bounds {
        patience: PATIENCE,
        bytes,
    };
    let work = async move {
        let asked = asking::ask(&path, &request, bounds).await;
        asked.map_err(|trouble| trouble.problem())
    };
    shared.background.run(work).await
}

fn filter(parameters: &mut Parameters<'_>, table: Table) -> Result<Filter, Problem> {
    let mut prefix_of = |name: &'static str| {
        let said = parameters.take(name)?;
        let wrong = |why| Problem::bad_request(format!("parameter `{name}`: {why} is expected"));
        said.map(|text| prefix(&text).map_err(wrong)).transpose()
    };
    let (inside, alias, remote) = (
        prefix_of("inside")?,
        prefix_of("alias")?,
        prefix_of("remote")?,
    );
    let port = match parameters.take_number("port")?.map(u16::try_from) {
        Some(Err(_)) => {
            return Err(Problem::bad_request(
                "parameter `port`: more than 65535, the highest port",
            ));
        }
        Some(Ok(port)) => Some(port),
        None => None,
    };
    let said = parameters.take("protocol")?;
    let wrong = |why| Problem::bad_request(format!("parameter `protocol`: {why} is expected"));
    let filter = Filter {
        inside,
        alias,
        port,
        remote,
        protocol: said
            .map(|text| protocol(&text).map_err(wrong))
            .transpose()?,
    };
    match filter.stray(table) {
        Some(stray) => Err(Problem::bad_request(format!(
            "parameter `{}`: these rows have no such thing",
            stray.trim_start_matches('-')
        ))),
        None => Ok(filter),
    }
}

/// A number of rows.
fn number(parameters: &mut Parameters<'_>, name: &'static str) -> Result<Option<u64>, Problem> {
    match parameters.take_number(name)? {
        Some(number) if !(1..=MAX_LIMIT).contains(&number) => Err(Problem::bad_request(format!(
            "parameter `{name}`: {number} is not between 1 and {MAX_LIMIT}"
        ))),
        number => Ok(number),
    }
}

fn format(parameters: &mut Parameters<'_>, request: &Parts) -> Result<Format, Problem> {
    match self::parameters::format(parameters, &request.headers)? {
        Format::Csv => Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            "there is application/json and application/x-ndjson of a translation",
        )),
        format => Ok(format),
    }
}

/// Rows as an answer, counted as its client's until it has taken them.
fn page(
    shared: &Shared,
    source: Source,
    answered: Answered,
    format: Format,
) -> Result<Response, Problem> {
    let mut body = answered.rows;
    if format == Format::Json {
        body = array(&body);
    }
    let kept = shared.budget.keep(source, body).map_err(|_| {
        Problem::busy("there is no memory for this answer: ask for fewer rows at once")
    })?;
    Ok(of_format(Body::from(kept), format))
}

/// Lines of JSON as one array.
fn array(lines: &[u8]) -> Vec<u8> {
    let mut array = Vec::with_capacity(lines.len() + 3);
    array.push(b'[');
    let lines = lines.split(|byte| *byte == b'\n');
    for (number, line) in lines.filter(|line| !line.is_empty()).enumerate() {
        if number > 0 {
            array.push(b',');
        }
        array.extend_from_slice(line);
    }
    array.extend_from_slice(b"]\n");
    array
}

fn response(body: Vec<u8>, format: Format) -> Response {
    of_format(Body::from(body), format)
}

fn of_format(body: Body, format: Format) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static(parameters::media_type(format));
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Where the next page is (RFC 8288).
fn link(uri: &Uri, next: &str) -> Option<HeaderValue> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let said = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    query.extend_pairs(said.filter(|(name, _)| name != "after"));
    query.append_pair("after", next);
    let link = format!("<{}?{}>; rel=\"next\"", uri.path(), query.finish());
    HeaderValue::from_str(&link).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_let_in_without_a_token_has_shown_none_whatever_is_asked_for_since() {
        let mut request = http::Request::new(()).into_parts().0;
        let from = std::net::Ipv4Addr::new(192, 0, 2, 1);
        request.extensions.insert(Source::Address(from.into()));
        assert!(admitted(&request).is_err());
        request.extensions.insert(LetIn::default());
        assert!(admitted(&request).is_err());
        let shown = LetIn {
            has_token: true,
            tells_others: true,
        };
        request.extensions.insert(shown);
        assert!(admitted(&request).is_ok());
    }

    #[test]
    fn lines_become_an_array() {
        assert_eq!(array(b""), b"[]\n");
        assert_eq!(array(b"{\"a\":1}\n"), b"[{\"a\":1}]\n");
        assert_eq!(array(b"{}\n{}\n"), b"[{},{}]\n");
    }

    #[test]
    fn the_next_page_is_of_the_same_question() {
        let uri: Uri = "/v1/nat/flows?inside=10.0.0.0%2F8&after=1.0.0&limit=5"
            .parse()
            .unwrap();
        let next = link(&uri, "1.0.2048").unwrap();
        assert_eq!(
            next,
            "</v1/nat/flows?inside=10.0.0.0%2F8&limit=5&after=1.0.2048>; rel=\"next\""
        );
    }
}
