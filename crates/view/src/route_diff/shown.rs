//! A difference as text and as JSON. For [`super`].

use table::RouteRef;

use super::Place;
use super::compare::{Differ, Kind, Since};
use crate::context::View;
use crate::fields::{Json, Value, Visit};
use crate::format::{push_destination, push_duration, push_prefix};
use crate::printer::Show;

/// What happened to a prefix, for who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// The sources differ about it, or differ otherwise than before.
    Differs,
    /// They agree again.
    Agrees,
}

impl Happened {
    fn name(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Agrees => "agrees",
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Different => "different",
        }
    }
}

/// A line for the prefix, then the routes of each source below it:
///
/// ```text
/// 10.0.0.0/24 differs for 12s
///     kernel: 10.0.0.0/24 via 192.0.2.1 dev eth0 proto bgp metric 20
///     frr: 10.0.0.0/24 via 192.0.2.2 dev eth0 proto bgp metric 20
/// ```
pub(super) fn text(
    differ: &Differ<'_>,
    sources: &[String; 2],
    views: &[View<'_>; 2],
    out: &mut Vec<u8>,
) {
    push_place(out, differ.place);
    let only = match differ.kind {
        Kind::Missing => Some(&sources[0]),
        Kind::Extra => Some(&sources[1]),
        Kind::Different => None,
    };
    match only {
        None => out.extend_from_slice(b" differs"),
        Some(source) => {
            out.extend_from_slice(b" only in ");
            out.extend_from_slice(source.as_bytes());
        }
    }
    since_text(differ.since, views[0].now_millis, out);
    out.push(b'\n');
    for ((rows, source), view) in differ.rows.iter().zip(sources).zip(views) {
        for row in rows {
            out.extend_from_slice(b"    ");
            out.extend_from_slice(source.as_bytes());
            out.extend_from_slice(b": ");
            row_text(row, view, out);
        }
    }
}

/// The prefix. There are two that `ip` calls `default`.
fn push_place(out: &mut Vec<u8>, place: Place) {
    match place.prefix.prefix_len() {
        0 => push_prefix(out, place.prefix),
        _ => push_destination(out, place.prefix),
    }
}

/// ` for 12s`, ` for 3m or longer`; nothing where nothing is known.
pub(super) fn since_text(since: Since, now_millis: u64, out: &mut Vec<u8>) {
    if since.at_millis == 0 {
        return;
    }
    out.extend_from_slice(b" for ");
    push_duration(out, now_millis.saturating_sub(since.at_millis) / 1000);
    if since.or_earlier {
        out.extend_from_slice(b" or longer");
    }
}

/// A route as `ip route` shows it, with the line's end; what stands on lines
/// of its own (next hops) keeps below it.
pub(crate) fn row_text(row: &RouteRef<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(128);
    row.with_body(&**row.body).text(view, &mut text);
    for (at, line) in text
        .trim_ascii_end()
        .split(|byte| *byte == b'\n')
        .enumerate()
    {
        if at > 0 {
            out.extend_from_slice(b"\n    ");
        }
        out.extend_from_slice(line.trim_ascii_end());
    }
    out.push(b'\n');
}

/// One object: `family`, `dst`, `table`, `difference`, `since_millis`, and
/// the routes of each source as `ip -j` has them, as `first` and `second`.
pub(super) fn json(
    differ: &Differ<'_>,
    happened: Option<Happened>,
    views: &[View<'_>; 2],
    out: &mut Vec<u8>,
) {
    let mut json = begin(differ.place, happened, &views[0], out);
    json.value("difference", Value::Text(differ.kind.name()));
    since_fields(differ.since, &mut json);
    for ((key, rows), view) in ["first", "second"].into_iter().zip(&differ.rows).zip(views) {
        json.list(key);
        for row in rows {
            json.object_item();
            row.with_body(&**row.body).fields(view, &mut json);
            json.end_item();
        }
        json.end_list();
    }
    json.out.push(b'}');
}

/// The line that says that the sources agree about a prefix again.
pub(super) fn agrees(place: Place, view: &View<'_>, out: &mut Vec<u8>) {
    begin(place, Some(Happened::Agrees), view, out)
        .out
        .push(b'}');
}

fn begin<'o>(
    place: Place,
    happened: Option<Happened>,
    view: &View<'_>,
    out: &'o mut Vec<u8>,
) -> Json<'o> {
    out.push(b'{');
    let mut json = Json { out };
    if let Some(happened) = happened {
        json.value("event", Value::Text(happened.name()));
    }
    let family = if place.is_v6 { "inet6" } else { "inet" };
    json.value("family", Value::Text(family));
    json.value("dst", Value::Destination(place.prefix));
    json.value("table", Value::Name(view.names.table(place.table)));
    json
}

/// `since_millis`, and `or_earlier` where it may be longer.
fn since_fields(since: Since, json: &mut Json<'_>) {
    if since.at_millis > 0 {
        json.value("since_millis", Value::Number(since.at_millis));
    }
    if since.or_earlier {
        json.value("or_earlier", Value::True);
    }
}
