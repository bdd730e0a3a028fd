//! The answer to `route flaps` as text and as JSON. For [`super`].

use table::row::route::table_id;

use super::{Name, Row, Told};
use crate::context::View;
use crate::fields::{Json, Value, Visit, push_name};
use crate::format::{push_destination, push_duration, push_u64};

/// What is told, and how far it reaches; then a line each:
///
/// ```text
/// frr over 1h: 2 prefixes changed
/// 10.0.0.0/24 changed 12 times: 4 added, 4 changed, 4 deleted, the last 3s ago, gone now
/// ```
pub(super) fn text(told: &Told<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    push(out, &[told.source.unwrap_or("all sources"), " over "]);
    push_duration(out, told.secs.into());
    push(out, &[": "]);
    push_u64(out, told.count as u64);
    push(
        out,
        &[match (told.source, told.count) {
            (Some(_), 1) => " prefix changed",
            (Some(_), _) => " prefixes changed",
            (None, 1) => " source",
            (None, _) => " sources",
        }],
    );
    if !told.is_whole {
        push(out, &[", as far as is known: changes of more than "]);
        push_duration(
            out,
            view.now_millis.saturating_sub(told.known_since_millis) / 1_000,
        );
        push(out, &[" ago may be forgotten"]);
    }
    out.push(b'\n');
    for row in &told.rows {
        row_text(row, view, out);
    }
    let more = told.count - told.rows.len();
    if more > 0 {
        push(out, &["and "]);
        push_u64(out, more as u64);
        push(out, &[" more (--limit)\n"]);
    }
}

fn row_text(row: &Row<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    match &row.name {
        Name::Prefix(prefix, table) => {
            push_destination(out, *prefix);
            if *table != table_id::MAIN {
                push(out, &[" table "]);
                push_name(out, view.names.table(*table));
            }
        }
        Name::Source(name) => push(out, &[*name]),
    }
    let flaps = &row.flaps;
    push(out, &[" changed "]);
    push_u64(out, flaps.times());
    push(
        out,
        &[if flaps.times() == 1 {
            " time"
        } else {
            " times"
        }],
    );
    if flaps.times() > 0 {
        for (before, number, what) in [
            (": ", flaps.added, " added"),
            (", ", flaps.changed, " changed"),
            (", ", flaps.deleted, " deleted"),
        ] {
            push(out, &[before]);
            push_u64(out, number.into());
            push(out, &[what]);
        }
        // Of what a file has told it is not known when it was.
        if flaps.last_millis > 0 {
            push(out, &[", the last "]);
            push_duration(
                out,
                view.now_millis.saturating_sub(flaps.last_millis) / 1_000,
            );
            push(out, &[" ago"]);
        }
    }
    match row.name {
        Name::Prefix(..) if row.is_there => push(out, &[", there now"]),
        Name::Prefix(..) => push(out, &[", gone now"]),
        Name::Source(_) => {
            push(out, &["; prefixes: "]);
            push_u64(out, row.prefixes as u64);
        }
    }
    if let Some(downs) = row.downs {
        push(out, &["; its session went down "]);
        push_u64(out, downs);
        push(
            out,
            &[
                if downs == 1 { " time" } else { " times" },
                " since it is known",
            ],
        );
    }
    out.push(b'\n');
}

/// One object: `secs`, `known_since_millis`, `complete`, `count`, and the
/// `prefixes` of the `source`, or `sources`.
pub(super) fn json(told: &Told<'_>, view: &View<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut json = Json { out };
    if let Some(source) = told.source {
        json.value("source", Value::Text(source));
    }
    json.value("secs", Value::Number(told.secs.into()));
    json.value("known_since_millis", Value::Number(told.known_since_millis));
    let complete = if told.is_whole {
        Value::True
    } else {
        Value::False
    };
    json.value("complete", complete);
    json.value("count", Value::Number(told.count as u64));
    let of_source = told.source.is_some();
    json.list(if of_source { "prefixes" } else { "sources" });
    for row in &told.rows {
        json.object_item();
        row_fields(row, view, &mut json);
        json.end_item();
    }
    json.end_list();
    out.extend_from_slice(b"}\n");
}

fn row_fields(row: &Row<'_>, view: &View<'_>, json: &mut Json<'_>) {
    match &row.name {
        Name::Prefix(prefix, table) => {
            json.value("dst", Value::Destination(*prefix));
            json.value("table", Value::Name(view.names.table(*table)));
        }
        Name::Source(name) => json.value("source", Value::Text(name)),
    }
    let flaps = &row.flaps;
    json.value("changes", Value::Number(flaps.times()));
    json.value("added", Value::Number(flaps.added.into()));
    json.value("changed", Value::Number(flaps.changed.into()));
    json.value("deleted", Value::Number(flaps.deleted.into()));
    json.value("first_millis", Value::Number(flaps.first_millis));
    json.value("last_millis", Value::Number(flaps.last_millis));
    match row.name {
        Name::Prefix(..) => {
            let there = if row.is_there {
                Value::True
            } else {
                Value::False
            };
            json.value("there", there);
            if !row.parts.is_empty() {
                json.list("parts");
                for count in &row.parts {
                    json.item(Value::Number((*count).into()));
                }
                json.end_list();
            }
        }
        Name::Source(_) => {
            json.value("prefixes", Value::Number(row.prefixes as u64));
            json.value("known_since_millis", Value::Number(row.known_since_millis));
        }
    }
    if let Some(downs) = row.downs {
        json.value("downs", Value::Number(downs));
    }
}

fn push(out: &mut Vec<u8>, words: &[&str]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(word.as_bytes()));
}
