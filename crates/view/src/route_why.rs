//! `route why`: what each source knows of a prefix, which route packets
//! take, where its next hops lead, and how it came to that. For who answers
//! over the control socket and HTTP; pure, as all of `view`.

mod shown;
mod verdict;

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::row::route::table_id;
use table::{Decision, NoRoute, Packet, Reader, RouteHistory, RouteRef, Tables};

use crate::answer_error::AnswerError;
use crate::context::{Context, Hidden, View};
use crate::question::{Format, Output};
use crate::selection::table_number;
use verdict::Verdict;
use words::Names;

/// Changes that are told of each source at most.
const HISTORY: usize = 8;
/// Sources whose changes are told: each takes some milliseconds.
const HISTORIES: usize = 16;
/// Routes that are told of each source at most.
const MAX_ROUTES: usize = 64;

/// Why packets to an address or prefix go where they go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteWhyQuestion {
    /// A prefix; for an address the one of its full length.
    pub to: IpNet,
    /// The table by name or number; without: `main`.
    #[serde(default)]
    pub table: Option<String>,
    /// The format: text, or one JSON object.
    #[serde(default)]
    pub output: Output,
}

/// A source whose routes are asked for.
#[derive(Debug)]
pub struct WhySource<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rows.
    pub tables: &'a Tables,
    /// Tells how they changed.
    pub reader: &'a Reader,
}

/// What is known, ready to be shown.
struct Why<'a> {
    to: IpNet,
    table: u32,
    sources: Vec<Candidates<'a>>,
    packet: Followed<'a>,
}

/// A packet that the kernel's tables decided about.
struct Followed<'a> {
    to: IpAddr,
    decision: Result<Decision<'a>, NoRoute>,
    tables: &'a Tables,
}

/// The routes of one source.
struct Candidates<'a> {
    name: &'a str,
    /// Those of the longest prefix that covers what is asked for, the best
    /// first, and what became of each.
    routes: Vec<(RouteRef<'a>, Verdict)>,
    history: RouteHistory,
}

/// Writes why packets go where they go. The kernel's rows decide; the
/// others are compared with them. Gives the number of sources that have a
/// route. O(log routes + events kept) for each source.
pub fn route_why(
    question: &RouteWhyQuestion,
    kernel: &WhySource<'_>,
    others: &[WhySource<'_>],
    names: &Names,
    now_millis: u64,
    mut out: impl io::Write,
) -> Result<u64, AnswerError> {
    let context = Context {
        links: kernel.tables.named_links(),
        tables: Some(kernel.tables),
        now_millis,
        names,
    };
    let asked = question.table.as_deref();
    let table = asked.map_or(Ok(table_id::MAIN), |name| table_number(&context, name))?;
    let to = question.to.addr();
    let packet = Followed {
        to,
        decision: kernel.tables.route_of(&Packet::to(to)),
        tables: kernel.tables,
    };
    let all = std::iter::once(kernel).chain(others).enumerate();
    let sources = all.map(|(at, source)| {
        let routes = longest(source.tables, table, question.to);
        let prefix = routes.first().map_or(question.to, |route| route.prefix);
        let judged = match at {
            0 => verdict::of_kernel(&routes, &packet),
            _ => verdict::of_other(&routes, source.tables, &packet),
        };
        Candidates {
            name: source.name,
            routes: routes.into_iter().zip(judged).collect(),
            history: match at < HISTORIES {
                true => source.reader.history_of(table, prefix, HISTORY),
                false => RouteHistory::default(),
            },
        }
    });
    let why = Why {
        to: question.to,
        table,
        sources: sources.collect(),
        packet,
    };
    let view = View::new(&context, &question.output, Hidden::default());
    let mut told = Vec::new();
    match question.output.format {
        Format::Text | Format::Csv => shown::text(&why, &view, &mut told),
        Format::Json | Format::Ndjson => shown::json(&why, &view, &mut told),
    }
    out.write_all(&told)?;
    let found = why.sources.iter().filter(|of| !of.routes.is_empty());
    Ok(found.count() as u64)
}

/// The routes of the longest prefix that covers another, the best first.
fn longest(tables: &Tables, table: u32, to: IpNet) -> Vec<RouteRef<'_>> {
    let covering = tables.routes.covering(table, to);
    let mut routes = covering.take(MAX_ROUTES).collect::<Vec<_>>();
    let prefix = routes.first().map(|route| route.prefix);
    routes.retain(|route| Some(route.prefix) == prefix);
    routes
}

#[cfg(test)]
mod tests;
