//! Links and addresses for ifconfig, straight from the kernel.

use std::io::Write;

use anyhow::Result;
use linux::Namespace;
use view::ifconfig::{IfconfigQuestion, answer_rows};

use super::rows::Rows;

/// Lists the kernel's links; gives the number of blocks.
pub fn answer(
    question: &IfconfigQuestion,
    namespace: &Namespace,
    out: &mut impl Write,
) -> Result<u64> {
    let rows = Rows::new(namespace)?;
    let links = rows.links(question.shows_counters())?;
    let addresses = rows.addresses(0)?;
    let links = links
        .iter()
        .map(|(link, counters)| (link, counters.as_ref()));
    Ok(answer_rows(question, links, &addresses, out)?)
}
