//! Answers questions from a snapshot, whole.

use std::io;

use table::Tables;

use crate::answer_error::AnswerError;
use crate::context::Context;
use crate::printer::Printer;
use crate::question::{Object, Question};
use crate::walk::Scan;
use words::Names;

/// Writes the answer to a question; gives the number of rows.
///
/// O(log n + rows of the access path): there is one for a device, an
/// address, a link-layer address, a prefix (exact, within, covering), a
/// gateway, a preferred source, a table, a next-hop object, a priority of
/// rules. Else all rows of the object's table are looked at. How many
/// routes tables have is known without looking at any.
pub fn answer(
    question: &Question,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let within = Within {
        octets: usize::MAX,
        is_over: &|| false,
    };
    answer_within(&within, question, tables, names, now_millis, out)
}

/// What an answer may take that is not made while it is taken.
pub struct Within<'w> {
    /// Octets of rows that are sorted.
    pub octets: usize,
    /// Whether nobody waits for the answer any more; asked every some thousand
    /// rows.
    pub is_over: &'w dyn Fn() -> bool,
}

/// Rows that are sorted are looked at so often at most.
const MAX_ROUNDS: u64 = 64;

/// The same, with room for so many octets of rows that are sorted. They
/// are looked at again for each time that they fill it; where that is too
/// often, it is an error, and nothing is written. It ends with an error soon
/// after nobody waits for it any more.
pub fn answer_within(
    within: &Within<'_>,
    question: &Question,
    tables: &Tables,
    names: &Names,
    now_millis: u64,
    out: impl io::Write,
) -> Result<u64, AnswerError> {
    let context = Context {
        links: tables.named_links(),
        tables: Some(tables),
        now_millis,
        names,
    };
    let mut printer = Printer::within(within.octets, question, context, out)?;
    loop {
        let mut scan = Scan::whole(&mut printer, tables).until(within.is_over);
        match question.object {
            Object::Addr => scan.addresses_below_links()?,
            _ => {
                scan.run(None)?;
            }
        }
        if printer.rounds() > MAX_ROUNDS {
            return Err(AnswerError::NoRoom);
        }
        if !printer.ends_round()? {
            return Ok(printer.close()?);
        }
    }
}
