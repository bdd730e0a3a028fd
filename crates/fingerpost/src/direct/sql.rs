//! SQL where no daemon is: over a mirror of this process's own, which reads
//! all tables once, for one statement.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use linux::{Mirror, Namespace, Options};
use query::{Question, Translation};
use serve::sql::{self, About};

use super::{Answered, loaded};
use crate::config;

/// Where the translation is asked. It tells whom it wants, by who we are.
fn translation() -> Translation {
    let config = config::load_to_ask().map_err(|error| error.to_string())?;
    sql::translation(config.nat.control.map(Arc::from), true)
}

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
    let about = About {
        namespace: &asked,
        names: Arc::new(words::load()),
        translation: translation(),
        earlier: None,
    };
    let limits = sql::limits(sql::MEMORY);
    let answered = query::answer(question, &about, &limits, || false, out)?;
    Ok(Answered {
        rows: answered.rows,
        incomplete: asked.incomplete(),
    })
}
