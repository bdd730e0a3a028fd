//! A question answered in pieces, for who cannot or will not take the
//! whole answer at once: each piece from whatever snapshot is newest then.
//!
//! A walk holds no snapshot between two pieces. It remembers the [`Position`]
//! of the last row and seeks it in the access path that the planner chose, so that
//! a row that is there from the first piece to the last is told exactly
//! once, whatever else comes and goes. A row that comes or goes meanwhile
//! is told or not; a route that is asked for by what it points to (`dev`,
//! `via`, `nhid`) and gets another next hop is a new row.

mod position;
mod routes;
mod scan;
mod sink;

use table::Tables;

use crate::answer_error::AnswerError;
use crate::context::Context;
use crate::printer::Printer;
use crate::question::{Object, Question};
use crate::selection::BadQuestion;
pub use position::Position;
pub(crate) use routes::tables_of_family;
pub(crate) use scan::Scan;
pub(crate) use sink::Sink;
use words::Names;

/// How long a piece gets, which is how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rows looked at, at most, wanted or not.
    pub visited: usize,
    /// Bytes, about: no row is begun beyond.
    pub bytes: usize,
}

impl Bounds {
    /// A whole answer.
    pub(crate) const NONE: Self = Self {
        visited: usize::MAX,
        bytes: usize::MAX,
    };
    /// Some hundred microseconds.
    pub const USUAL: Self = Self {
        visited: 4096,
        bytes: 32 << 10,
    };
    /// Some milliseconds, for a thread that serves one client alone.
    pub const LONG: Self = Self {
        visited: 1 << 20,
        bytes: 256 << 10,
    };
    /// Some ten microseconds: to see whether an answer is short.
    pub const SMALL: Self = Self {
        visited: 256,
        bytes: 8 << 10,
    };
}

/// The rows of a question, piece by piece.
#[derive(Debug, Clone)]
pub struct Walk {
    question: Question,
    after: Option<Position>,
    /// Rows that may still come.
    left: u64,
    rows: u64,
    begun: bool,
    /// Whether rows leave out what the filter says already, as [`crate::answer`]
    /// does.
    hides: bool,
    end: Option<End>,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There are no more rows.
    OfTable,
    /// The limit is reached, and there may be more.
    OfLimit,
}

impl Walk {
    /// A walk from after a position on, of as many rows as `limit` says.
    pub fn new(question: Question, after: Option<Position>, limit: Option<u64>) -> Self {
        Self {
            question,
            after,
            left: limit.unwrap_or(u64::MAX),
            rows: 0,
            begun: false,
            hides: false,
            end: None,
        }
    }

    /// A walk over all rows that says what [`crate::answer`] says; `None`:
    /// the answer is not one row after another (sorted rows, addresses
    /// below their links).
    pub fn of_answer(question: &Question) -> Option<Self> {
        let is_walked = question.object != Object::Addr && question.output.sort.is_none();
        is_walked.then(|| Self {
            hides: true,
            ..Self::new(question.clone(), None, None)
        })
    }

    /// The next piece of the answer's bytes; `None` after the last.
    /// Addresses are a row each, with the fields of their link.
    ///
    /// O(log n) for the seek and at most some thousand rows looked at; an
    /// answer to a filter without an index takes several pieces, which may
    /// be empty. With properties of links in the filter O(links) more.
    pub fn piece(
        &mut self,
        tables: &Tables,
        names: &Names,
        now_millis: u64,
    ) -> Result<Option<Vec<u8>>, AnswerError> {
        self.bounded_piece(Bounds::USUAL, tables, names, now_millis)
    }

    /// The next piece, of another length.
    pub fn bounded_piece(
        &mut self,
        bounds: Bounds,
        tables: &Tables,
        names: &Names,
        now_millis: u64,
    ) -> Result<Option<Vec<u8>>, AnswerError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let context = Context {
            links: tables.named_links(),
            tables: Some(tables),
            now_millis,
            names,
        };
        let first = !std::mem::replace(&mut self.begun, true);
        let opened = Printer::piece(&self.question, context, self.rows, first, self.hides);
        let mut printer = match opened {
            // The link was deleted under way, and its rows with it.
            Err(BadQuestion::NoSuchDevice(_)) if !first => return Ok(Some(self.cut())),
            opened => opened?,
        };
        let most_rows = self.rows.saturating_add(self.left);
        let mut scan = Scan::new(&mut printer, tables, bounds, most_rows);
        let ended = scan.run(self.after.as_ref())?;
        if let Some(last) = scan.last.take() {
            self.after = Some(last);
        }
        let shown = printer.rows() - self.rows;
        self.rows += shown;
        self.left -= shown;
        if ended {
            self.end = Some(End::OfTable);
        } else if self.left == 0 {
            self.end = Some(End::OfLimit);
        }
        Ok(Some(printer.finish_piece(self.end.is_some())?))
    }

    /// What closes an answer whose question makes no more sense.
    fn cut(&mut self) -> Vec<u8> {
        self.end = Some(End::OfTable);
        Printer::<Vec<u8>>::closing(&self.question, self.rows)
    }

    /// Ends the walk where it stands, as if its limit were reached; gives
    /// what closes the answer.
    pub fn stop(&mut self) -> Vec<u8> {
        if self.end.is_some() {
            return Vec::new();
        }
        self.end = Some(End::OfLimit);
        Printer::<Vec<u8>>::closing(&self.question, self.rows)
    }

    /// Rows told so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the last piece was given.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Where a next walk goes on; `None`: there is nothing more.
    pub fn rest(&self) -> Option<&Position> {
        match self.end {
            Some(End::OfTable) => None,
            Some(End::OfLimit) | None => self.after.as_ref(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
