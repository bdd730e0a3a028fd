//! fingerpost-state(5), the files of `fingerpost apply`: made of
//! `docs/state.md`, which is their manual. What of Markdown stands there is
//! understood: headings, paragraphs, code, tables, and text in backquotes.

use std::io::{self, Write};

use clap_mangen::roff::{Inline, Roff, bold, roman};

const TEXT: &str = include_str!("../../../../docs/state.md");

/// Writes the page.
pub fn page(out: &mut impl Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("TH", ["fingerpost-state", "5", "", "Fingerpost"]);
    page.control("SH", ["NAME"]);
    page.text([roman(
        "fingerpost-state - files of declared state, for `fingerpost apply`",
    )]);
    page.control("SH", ["DESCRIPTION"]);
    let mut lines = TEXT.lines().peekable();
    // What it is called stands under NAME.
    lines.next_if(|line| line.starts_with("# "));
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            page.control("SH", [title.replace('`', "").to_uppercase().as_str()]);
        } else if line.starts_with("```") {
            page.control("PP", []);
            page.control("nf", []);
            for line in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                page.text([roman(line)]);
            }
            page.control("fi", []);
        } else if line.starts_with('|') {
            // The head of a table, and what stands below it, say nothing here.
            lines.next_if(|line| line.starts_with("|---"));
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                of_row(&mut page, row);
            }
        } else if !line.is_empty() {
            page.control("PP", []);
            page.text(inlines(line));
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(
        "fingerpost-apply(1), fingerpost-diff(1), fingerpost-export(1), fingerpost-import(1)",
    )]);
    page.to_writer(out)
}

/// A row of a table: what it is about, and what is said of it.
fn of_row(page: &mut Roff, row: &str) {
    let mut cells = row.trim_matches('|').split('|').map(str::trim);
    page.control("TP", []);
    page.text(inlines(cells.next().unwrap_or_default()));
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            page.control("IP", []);
        }
        page.text(inlines(cell));
    }
}

/// A text whose every second part stands in backquotes.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    let parts = parts.filter(|(_, part)| !part.is_empty());
    parts
        .map(|(at, part)| match at % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use change::state::file::{File, Link};
    use serde_json::Value;
    use words::Object;

    use super::*;

    /// What stands in backquotes: the first word of each.
    fn told() -> Vec<&'static str> {
        // Between examples, which stand in fences.
        let prose = TEXT.split("```").step_by(2);
        let quoted = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
        let word = |text: &'static str| {
            let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
            text.split(|letter| !is_of_key(letter))
                .find(|word| !word.is_empty())
        };
        quoted.filter_map(word).collect()
    }

    #[test]
    fn every_key_that_is_read_is_in_the_page() {
        let told = told();
        let has = |key: &str, of: &str| assert!(told.contains(&key), "{of}: {key}");
        let text = || Some("x".to_owned());
        let many = || vec!["x".to_owned()];
        // All of it: what is not said is not written.
        let link = Link {
            name: "x".to_owned(),
            kind: text(),
            options: text(),
            peer: text(),
            link: text(),
            master: text(),
            up: Some(true),
            mtu: Some(1),
            txqueuelen: Some(1),
            group: Some(1),
            address: text(),
            peer_address: text(),
            alias: text(),
            altnames: many(),
            addresses: many(),
            peer_addresses: many(),
            sysctl: BTreeMap::from([("ipv4".to_owned(), BTreeMap::new())]),
        };
        let row = || vec![BTreeMap::from([("x".to_owned(), Value::from(1))])];
        let file = File {
            link: vec![link],
            address: row(),
            neighbour: row(),
            nexthop: row(),
            route: row(),
            rule: row(),
            fdb: row(),
        };
        let Value::Object(tables) = serde_json::to_value(&file).unwrap() else {
            panic!("a file is a table of tables");
        };
        for table in tables.keys() {
            has(table, "the file");
        }
        for key in tables["link"][0].as_object().unwrap().keys() {
            has(key, "[[link]]");
        }
        for object in Object::ALL {
            for key in words::json::keys(object) {
                has(key, object.name());
            }
        }
    }

    #[test]
    fn the_page_says_what_the_text_says() {
        let mut page = Vec::new();
        super::page(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for word in told() {
            let word = word.replace('-', "\\-");
            assert!(page.contains(&word), "{word}");
        }
        for none in ["```", "|---", "## "] {
            assert!(!page.contains(none), "{none}: {page}");
        }
        assert!(page.contains(".SH [[LINK]]"), "{page}");
    }
}
