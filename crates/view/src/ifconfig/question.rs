//! What may be asked as ifconfig(8) asks it, and the answer: links and
//! addresses, from the kernel or from a snapshot, joined.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use table::{Address, Link, LinkCounters, Tables};

use super::{Interface, Selection, Style, list};

/// What is to be listed. Plain data: it goes to the daemon as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IfconfigQuestion {
    /// How links are written.
    pub style: Style,
    /// Which links.
    pub which: Which,
}

/// [`Selection`], with a name of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// All.
    All,
    /// Those that are up.
    Up,
    /// Those that are down.
    Down,
    /// The one of this name.
    Named(String),
}

impl IfconfigQuestion {
    /// Whether counters are shown.
    pub fn shows_counters(&self) -> bool {
        matches!(self.style, Style::Linux | Style::LinuxShort)
    }

    fn selection(&self) -> Selection<'_> {
        match &self.which {
            Which::All => Selection::All,
            Which::Up => Selection::Up,
            Which::Down => Selection::Down,
            Which::Named(name) => Selection::Named(name),
        }
    }
}

/// Lists the links of a snapshot; gives the number of blocks. O(n log n) in
/// links and addresses, which are copied for the time being.
pub fn answer(question: &IfconfigQuestion, tables: &Tables, out: impl Write) -> io::Result<u64> {
    let addresses: Vec<Address> = tables
        .addresses
        .iter()
        .map(|address| Address::clone(address))
        .collect();
    let links = tables.links.iter().map(|link| {
        let counters = question
            .shows_counters()
            .then(|| tables.counters_of(link.index))
            .flatten();
        (&**link, counters)
    });
    answer_rows(question, links, &addresses, out)
}

/// Lists links with their addresses; gives the number of blocks. Both are
/// ordered by link. An address of a link that is not listed (it went or came
/// in between) is passed over.
pub fn answer_rows<'a>(
    question: &IfconfigQuestion,
    links: impl Iterator<Item = (&'a Link, Option<&'a LinkCounters>)>,
    addresses: &'a [Address],
    out: impl Write,
) -> io::Result<u64> {
    let mut rest = addresses;
    let interfaces: Vec<Interface<'_>> = links
        .map(|(link, counters)| {
            let begin = rest.partition_point(|address| address.link < link.index);
            let end = rest.partition_point(|address| address.link <= link.index);
            let (done, after) = rest.split_at(end);
            rest = after;
            Interface {
                link,
                counters,
                addresses: &done[begin..],
            }
        })
        .collect();
    list(&interfaces, question.selection(), question.style, out)
}
