//! `route flaps`: which prefixes of a source changed how often, or how much
//! each source did. From the events that are kept for watchers: nothing is
//! kept for it, and how far they reach is said. For who answers over the
//! control socket and HTTP; pure, as all of `view`.

mod shown;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::{Flaps, Reader, Tables};

use crate::answer_error::AnswerError;
use crate::context::{Context, Hidden, View};
use crate::question::{Format, Output};
use crate::selection::{BadQuestion, table_number};
use words::Names;

/// Seconds that are looked back over unless told otherwise.
pub const SECS: u32 = 3_600;
/// Prefixes or sources that are told unless told otherwise, and at most.
pub const LIMIT: u32 = 100;
/// See [`LIMIT`].
pub const MAX_LIMIT: u32 = 10_000;

/// Parts that the time is cut into at most, to tell how often a prefix
/// changed in each.
pub const MAX_PARTS: u32 = 240;

/// What an answer may be sorted by.
pub const SORTS: [&str; 6] = ["changes", "added", "changed", "deleted", "last", "name"];

/// Which routes changed how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteFlapsQuestion {
    /// Of which source, prefix by prefix; without: a sum for each source.
    #[serde(default)]
    pub source: Option<String>,
    /// Only in this table, by name or number; without: in all.
    #[serde(default)]
    pub table: Option<String>,
    /// Only prefixes within this one.
    #[serde(default)]
    pub within: Option<IpNet>,
    /// Over so many seconds.
    pub secs: u32,
    /// So many at most.
    pub limit: u32,
    /// By what they are sorted, one of [`SORTS`]; `-` before it: downwards.
    #[serde(default)]
    pub sort: Option<String>,
    /// So many parts of the time, with how often a prefix changed in each (in
    /// JSON); 0: none.
    #[serde(default)]
    pub parts: u32,
    /// Text, or one JSON object; or only the number.
    #[serde(default)]
    pub output: Output,
}

/// A source whose changes are asked for.
#[derive(Debug)]
pub struct FlapSource<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rows.
    pub tables: &'a Tables,
    /// Tells how they changed.
    pub reader: &'a Reader,
    /// Times that the session went down, where it is of a BGP peer.
    pub downs: Option<u64>,
}

/// What changed: a prefix, or all of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name<'a> {
    Prefix(IpNet, u32),
    Source(&'a str),
}

/// How it did.
#[derive(Debug, Clone)]
struct Row<'a> {
    name: Name<'a>,
    flaps: Flaps,
    /// Of a prefix: whether there is a route now.
    is_there: bool,
    /// Of a source: prefixes that changed.
    prefixes: usize,
    downs: Option<u64>,
    /// From when on all is known, milliseconds since the UNIX epoch.
    known_since_millis: u64,
    /// Changes in each part of the time, the oldest first.
    parts: Vec<u32>,
}

/// What is answered.
struct Told<'a> {
    source: Option<&'a str>,
    secs: u32,
    /// Those that are told, sorted.
    rows: Vec<Row<'a>>,
    /// How many there are.
    count: usize,
    /// From when on all is known of all, and whether that is what was asked.
    known_since_millis: u64,
    is_whole: bool,
}

/// Writes which routes changed how often. Gives how many prefixes or sources
/// that are. O(events kept) for each source.
pub fn route_flaps(
    question: &RouteFlapsQuestion,
    sources: &[FlapSource<'_>],
    names: &Names,
    now_millis: u64,
    mut out: impl io::Write,
) -> Result<u64, AnswerError> {
    let Some(first) = sources.first() else {
        return Ok(0);
    };
    let context = Context {
        links: first.tables.named_links(),
        tables: Some(first.tables),
        now_millis,
        names,
    };
    let table = question.table.as_deref();
    let table = table.map(|name| table_number(&context, name)).transpose()?;
    let order = Order::of(question.sort.as_deref())?;
    let since = now_millis.saturating_sub(u64::from(question.secs) * 1_000);
    let wanted = |of: u32, prefix: IpNet| {
        table.is_none_or(|table| table == of)
            && question
                .within
                .is_none_or(|within| within.contains(&prefix))
    };
    let mut rows = Vec::new();
    let mut known = since;
    for source in sources {
        let flaps = source.reader.route_flaps(since, &wanted);
        let known_since_millis = since.max(flaps.forgotten_at_millis);
        known = known.max(known_since_millis);
        let row = |name, flaps| Row {
            name,
            flaps,
            is_there: false,
            prefixes: 0,
            downs: None,
            known_since_millis,
            parts: Vec::new(),
        };
        if question.source.is_some() {
            let all = flaps.prefixes.iter();
            rows.extend(
                all.map(|((table, prefix), flaps)| row(Name::Prefix(*prefix, *table), *flaps)),
            );
            continue;
        }
        let sum = flaps
            .prefixes
            .values()
            .fold(Flaps::default(), |sum, one| sum.and(one));
        rows.push(Row {
            prefixes: flaps.prefixes.len(),
            downs: source.downs,
            ..row(Name::Source(source.name), sum)
        });
    }
    let count = rows.len();
    order.sort(&mut rows, question.limit.min(MAX_LIMIT) as usize);
    for row in &mut rows {
        if let Name::Prefix(prefix, table) = row.name {
            row.is_there = first.tables.routes.exact(table, prefix).next().is_some();
        }
    }
    if question.parts > 0 && question.source.is_some() {
        let of = Parts {
            since_millis: since,
            millis: (now_millis - since).max(1),
            count: question.parts.min(MAX_PARTS) as usize,
        };
        of.fill(&mut rows, first.reader);
    }
    let told = Told {
        source: question.source.as_deref(),
        secs: question.secs,
        rows,
        count,
        known_since_millis: known,
        is_whole: known == since,
    };
    let view = View::new(&context, &question.output, Hidden::default());
    let mut text = Vec::new();
    match question.output.format {
        _ if question.output.count => text.extend(format!("{count}\n").bytes()),
        Format::Text | Format::Csv => shown::text(&told, &view, &mut text),
        Format::Json | Format::Ndjson => shown::json(&told, &view, &mut text),
    }
    out.write_all(&text)?;
    Ok(count as u64)
}

/// The time that was asked about, in equal parts.
struct Parts {
    since_millis: u64,
    millis: u64,
    count: usize,
}

impl Parts {
    /// Counts the changes of the rows' prefixes in each part. O(events kept).
    fn fill(&self, rows: &mut [Row<'_>], reader: &Reader) {
        let mut places = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter_mut().enumerate() {
            row.parts = vec![0; self.count];
            if let Name::Prefix(prefix, table) = row.name {
                places.insert((table, prefix), at);
            }
        }
        reader.route_times(self.since_millis, &mut |table, prefix, at_millis| {
            let row = places
                .get(&(table, prefix))
                .and_then(|at| rows.get_mut(*at));
            let after = at_millis.saturating_sub(self.since_millis);
            let part = after.saturating_mul(self.count as u64) / self.millis;
            // What is later than the question belongs to its end.
            let part = (part as usize).min(self.count - 1);
            if let Some(count) = row.and_then(|row| row.parts.get_mut(part)) {
                *count = count.saturating_add(1);
            }
        });
    }
}

/// What rows are sorted by.
struct Order {
    by: usize,
    is_down: bool,
}

impl Order {
    /// Without a word the most changes come first.
    fn of(word: Option<&str>) -> Result<Self, BadQuestion> {
        let Some(word) = word else {
            return Ok(Self {
                by: 0,
                is_down: true,
            });
        };
        let name = word.strip_prefix('-').unwrap_or(word);
        let by = SORTS.iter().position(|one| *one == name);
        let by = by.ok_or_else(|| BadQuestion::NotOneOf {
            what: "Column",
            name: name.to_owned(),
            valid: SORTS.join(", "),
        })?;
        let is_down = name.len() < word.len();
        Ok(Self { by, is_down })
    }

    /// Keeps the first so many, in order; equal ones by their names.
    fn sort(&self, rows: &mut Vec<Row<'_>>, most: usize) {
        let value = |row: &Row<'_>| match self.by {
            0 => row.flaps.times(),
            1 => row.flaps.added.into(),
            2 => row.flaps.changed.into(),
            3 => row.flaps.deleted.into(),
            4 => row.flaps.last_millis,
            _ => 0,
        };
        if self.by + 1 == SORTS.len() && self.is_down {
            rows.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        } else if self.is_down {
            rows.sort_unstable_by(|one, other| {
                let of = |row| Reverse(value(row));
                of(one)
                    .cmp(&of(other))
                    .then_with(|| one.name.cmp(&other.name))
            });
        } else {
            rows.sort_unstable_by(|one, other| {
                value(one)
                    .cmp(&value(other))
                    .then_with(|| one.name.cmp(&other.name))
            });
        }
        rows.truncate(most);
    }
}

#[cfg(test)]
mod tests;
