//! `route diff`: where the routes of two sources differ, prefix by prefix.
//! For who answers over the control socket and HTTP; pure, as all of `view`.
//!
//! Both sources' routes are in the same order, so one pass over both finds
//! all differences: O(routes of both), in pieces between which no snapshot
//! is held. What counts as a difference is in [`compare`].

mod compare;
mod shown;
mod watch;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::{RouteChanges, Tables};

use crate::answer_error::AnswerError;
use crate::context::{Context, Hidden, View};
use crate::question::{Filter, Format, Object, Output, Question};
use crate::selection::{BadQuestion, Selection};
use crate::walk::Bounds;
use compare::{Differ, Prefixes};
use words::Names;

pub(crate) use compare::go_the_same_way;
pub(crate) use shown::row_text;
pub use watch::RouteDiffWatch;

/// Where the routes of two sources differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteDiffQuestion {
    /// The two sources by name.
    pub sources: [String; 2],
    /// Whether all routes of a prefix are compared, with protocol, metric,
    /// scope, source and metrics. Else where packets go: the type and the
    /// next hops of the best route.
    #[serde(default)]
    pub strict: bool,
    /// Which prefixes: those of which either source has a route that fits.
    #[serde(default)]
    pub filter: Filter,
    /// The format, whether rows are only counted, the details.
    #[serde(default)]
    pub output: Output,
}

impl RouteDiffQuestion {
    /// What its filter selects: both families unless one is asked for.
    fn selection(&self, side: &Side<'_>, names: &Names) -> Result<Selection, BadQuestion> {
        let listing = Question {
            object: Object::Route,
            filter: self.filter.clone(),
            output: Output::default(),
        };
        let mut selection = Selection::new(&listing, &side.context(names, 0))?;
        let filter = &self.filter;
        let prefixes = [filter.to, filter.exact, filter.covering];
        if filter.family.is_none() && filter.src.is_none() && prefixes == [None; 3] {
            selection.family = None;
        }
        Ok(selection)
    }
}

/// One of the two sources at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its rows.
    pub tables: &'a Tables,
    /// When they changed.
    pub changes: &'a RouteChanges,
}

impl<'a> Side<'a> {
    fn context(&self, names: &'a Names, now_millis: u64) -> Context<'a> {
        Context {
            links: self.tables.named_links(),
            tables: Some(self.tables),
            now_millis,
            names,
        }
    }

    fn view(&self, output: &Output, names: &'a Names, now_millis: u64) -> View<'a> {
        View::new(&self.context(names, now_millis), output, Hidden::default())
    }
}

/// Where the routes of a table and prefix stand: IPv4 before IPv6, then by
/// table, address and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    is_v6: bool,
    table: u32,
    prefix: IpNet,
}

impl Place {
    fn new(table: u32, prefix: IpNet) -> Self {
        Self {
            is_v6: matches!(prefix, IpNet::V6(_)),
            table,
            prefix,
        }
    }
}

/// An answer to a [`RouteDiffQuestion`], piece by piece.
#[derive(Debug, Clone)]
pub struct RouteDiff {
    question: RouteDiffQuestion,
    after: Option<Place>,
    rows: u64,
    is_begun: bool,
    is_over: bool,
}

impl RouteDiff {
    /// From the first prefix on.
    pub fn new(question: RouteDiffQuestion) -> Self {
        Self {
            question,
            after: None,
            rows: 0,
            is_begun: false,
            is_over: false,
        }
    }

    /// Prefixes that were found to differ so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the last piece was given.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next piece of the answer's bytes, from the two sources as they
    /// are now; `None` after the last. It may be empty: where nothing
    /// differs. A seek, then O(1) for each route looked at, as many as the
    /// bounds say.
    pub fn piece(
        &mut self,
        bounds: Bounds,
        sides: [Side<'_>; 2],
        names: &Names,
        now_millis: u64,
    ) -> Result<Option<Vec<u8>>, AnswerError> {
        if self.is_over {
            return Ok(None);
        }
        let selection = self.question.selection(&sides[0], names)?;
        let views = sides.map(|side| side.view(&self.question.output, names, now_millis));
        let mut out = Vec::new();
        self.begin(&mut out);
        let mut prefixes = Prefixes::new(sides, &selection, self.after);
        while prefixes.visited() < bounds.visited && out.len() < bounds.bytes {
            let Some(prefix) = prefixes.next() else {
                self.end(&mut out);
                return Ok(Some(out));
            };
            self.after = Some(prefix.place);
            if let Some(differ) = prefix.differ(&selection, self.question.strict) {
                self.tell(&differ, &views, &mut out);
            }
        }
        Ok(Some(out))
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        let output = &self.question.output;
        if !self.is_begun && output.format == Format::Json && !output.count {
            out.push(b'[');
        }
        self.is_begun = true;
    }

    fn tell(&mut self, differ: &Differ<'_>, views: &[View<'_>; 2], out: &mut Vec<u8>) {
        self.rows += 1;
        let Output { format, count, .. } = self.question.output;
        if count {
            return;
        }
        match format {
            Format::Text | Format::Csv => shown::text(differ, &self.question.sources, views, out),
            Format::Json => {
                if self.rows > 1 {
                    out.push(b',');
                }
                shown::json(differ, None, views, out);
            }
            Format::Ndjson => {
                shown::json(differ, None, views, out);
                out.push(b'\n');
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.is_over = true;
        let output = &self.question.output;
        if output.count {
            out.extend_from_slice(format!("{}\n", self.rows).as_bytes());
        } else if output.format == Format::Json {
            out.extend_from_slice(b"]\n");
        }
    }
}

#[cfg(test)]
mod tests;
