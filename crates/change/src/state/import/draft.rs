//! What an import builds: links by their names, rows, and what is left.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde_json::Value;

use super::{Imported, Left};
use crate::state::file::{Link, Row};

/// Where something stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub path: &'a Path,
    pub line: usize,
}

/// What is built.
#[derive(Debug, Default)]
pub(super) struct Draft {
    made: Imported,
    places: BTreeMap<String, usize>,
    /// Options of links, word by word.
    options: BTreeMap<String, Vec<(String, String)>>,
}

impl Draft {
    /// The link of a name; it is made in the draft if it is not there.
    pub(super) fn link(&mut self, name: &str) -> &mut Link {
        let links = &mut self.made.file.link;
        let at = *self.places.entry(name.to_owned()).or_insert(links.len());
        if at == links.len() {
            links.push(Link {
                name: name.to_owned(),
                ..Link::default()
            });
        }
        &mut links[at]
    }

    /// An option of a link's kind; a later one of the same word counts.
    pub(super) fn option(&mut self, link: &str, word: &str, value: &str) {
        let options = self.options.entry(link.to_owned()).or_default();
        options.retain(|(before, _)| before != word);
        options.push((word.to_owned(), value.to_owned()));
    }

    /// A setting of a link under `/proc/sys/net/FAMILY/conf`.
    pub(super) fn sysctl(&mut self, link: &str, family: &str, name: &str, value: u32) {
        let settings = self.link(link).sysctl.entry(family.to_owned()).or_default();
        settings.insert(name.to_owned(), value.into());
    }

    /// An address of a link with its length.
    pub(super) fn address(&mut self, link: &str, address: IpNet) {
        let addresses = &mut self.link(link).addresses;
        let text = address.to_string();
        if !addresses.contains(&text) {
            addresses.push(text);
        }
    }

    /// A row of addresses, routes, rules, next hops, neighbours or
    /// forwarding entries.
    pub(super) fn row(&mut self, table: Table, row: Row) {
        let file = &mut self.made.file;
        let rows = match table {
            Table::Address => &mut file.address,
            Table::Neighbour => &mut file.neighbour,
            Table::Nexthop => &mut file.nexthop,
            Table::Route => &mut file.route,
            Table::Rule => &mut file.rule,
            Table::Fdb => &mut file.fdb,
        };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }

    /// Something is not carried over.
    pub(super) fn leave(&mut self, at: Place<'_>, key: &str, why: impl Into<String>) {
        self.made.left.push(Left {
            path: at.path.to_owned(),
            line: at.line,
            key: key.to_owned(),
            why: why.into(),
        });
    }

    /// The whole. What has braces would mean numbers in our file.
    pub(super) fn finish(mut self) -> Imported {
        for (name, options) in std::mem::take(&mut self.options) {
            let words = options.iter().map(|(word, value)| match value.as_str() {
                "" => word.clone(),
                value => format!("{word} {value}"),
            });
            let words: Vec<String> = words.collect();
            self.link(&name).options = Some(words.join(" "));
        }
        self.made
    }
}

/// A table that rows are of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Address,
    Neighbour,
    Nexthop,
    Route,
    Rule,
    Fdb,
}

/// A row of some texts and numbers.
pub(super) fn row<const N: usize>(keys: [(&str, Value); N]) -> Row {
    let keys = keys.into_iter();
    keys.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Whether a text means itself in our file, where braces are numbers.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['{', '}']) && !text.chars().any(char::is_control)
}

/// Whether a text may be the name of a link (`dev_valid_name` of the kernel).
pub(super) fn is_name(text: &str) -> bool {
    let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace();
    !text.is_empty()
        && text.len() < 16
        && !matches!(text, "." | "..")
        && !text.contains(is_bad)
        && is_plain(text)
}

/// An address with its length; without one it is of itself alone.
pub(super) fn network(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        Some(_) => text.parse().ok(),
        None => Some(IpNet::from(text.parse::<IpAddr>().ok()?)),
    }
}

/// Yes or no, as these files say it.
pub(super) fn yes(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A number of seconds as hundredths: `15`, `1.5`, `15s`, `200ms`, `1min`.
pub(super) fn hundredths(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [
        ("min", 6_000.0),
        ("ms", 0.1),
        ("s", 100.0),
        ("h", 360_000.0),
    ];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 100.0));
    let number: f64 = number.trim().parse().ok()?;
    let hundredths = number * factor;
    let is_whole = (hundredths - hundredths.round()).abs() < 1e-6;
    (number >= 0.0 && hundredths < 4e9 && is_whole).then_some(hundredths.round() as u64)
}

/// A link-layer address as we write it.
pub(super) fn hardware(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_octet = |part: &&str| {
        matches!(part.len(), 1 | 2) && part.bytes().all(|one| one.is_ascii_hexdigit())
    };
    if parts.len() != 6 || !parts.iter().all(is_octet) {
        return None;
    }
    let octets = parts.iter().map(|part| format!("{part:0>2}"));
    let octets: Vec<String> = octets.collect();
    Some(octets.join(":").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_understood_or_refused() {
        assert_eq!(hundredths("15"), Some(1_500));
        assert_eq!(hundredths("200ms"), Some(20));
        assert_eq!(hundredths("1.5s"), Some(150));
        assert_eq!(hundredths("2min"), Some(12_000));
        for wrong in ["", "x", "-1", "1ms", "nan", "inf", "99999999999"] {
            assert_eq!(hundredths(wrong), None, "{wrong}");
        }
        assert_eq!(
            hardware("2:0:0:0:A:b").as_deref(),
            Some("02:00:00:00:0a:0b")
        );
        assert_eq!(hardware("02:00:00:00:00"), None);
        assert_eq!(network("10.0.0.1").unwrap().to_string(), "10.0.0.1/32");
        assert_eq!(network("10.0.0.1/33"), None);
        assert!(is_name("eth0.10") && !is_name("a{}") && !is_name("eth0:1") && !is_name(""));
    }
}
