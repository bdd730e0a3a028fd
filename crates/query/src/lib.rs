//! SQL over the tables: a statement is answered from one moment, by SQLite,
//! whose tables are ours.
//!
//! - [`answer`]: answers a [`Question`] from what an [`Asked`] has, within
//!   [`Limits`].
//! - [`Moment`]: one moment of a namespace.
//! - [`Earlier`]: who tells what happened before.
//! - [`Translation`]: where the host's translation is asked.
//! - [`tables`]: the tables and their columns, for who completes them.
//!
//! Each statement has a connection of its own, in memory, on the thread of
//! whoever asks. It reads and nothing else: no file, no other database, no
//! extension. What conditions say of addresses, prefixes, links and next
//! hops goes to the planner of `view` (`narrowing`), and to the indexes of
//! `table` with it; SQLite looks at each row that comes all the same.

mod address_text;
mod cursor;
mod function;
mod heap;
mod listed;
mod moment;
mod narrowing;
mod nat;
mod osquery;
mod output;
mod schema;
mod session;
mod vtab;

pub use moment::{Earlier, EarlierBatch, EarlierEvents, Moment, Translation};
pub use session::{Answered, Asked, Limits, Question, SqlError, answer};

/// The tables and their columns, those that are no part of `*` too.
pub fn tables() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    schema::SCHEMAS.iter().map(|schema| {
        let columns = schema.columns.iter().map(|column| &*column.name);
        (schema.name, columns)
    })
}
