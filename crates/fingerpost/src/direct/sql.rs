//! SQL where no daemon is: over a mirror of this process's own, which reads
//! all tables once, for one statement.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use linux::{Mirror, Namespace, Options};
use query::Question;
use serve::sql;

use super::{Answered, loaded};

/// Answers a statement.
pub fn answer(
    question: &Question,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<Answered> {
    let mirror = Mirror::start(namespace.clone(), Options::default())?;
    loaded(&mirror)?;
    // The mirror's threads have what they need.
    privileges::drop_all()?;
    let asked = serve::namespace::Namespace {
        name: None,
        inode: namespace.inode(),
        is_others: false,
        source: Arc::new(mirror),
        feeder: None,
    };
    let names = Arc::new(words::load());
    let limits = sql::limits(sql::MEMORY);
    let answered = sql::answer(question, &asked, &names, &limits, || false, out)?;
    Ok(Answered {
        rows: answered.rows,
        incomplete: asked.incomplete(),
    })
}
