//! Files of declared state, read: each table with the file and the line
//! where it stands. TOML, or the JSON objects of listings. Called by
//! [`mod@super`]; what the tables mean is read by [`super::wanted`].

use std::fmt;
use std::fs::File as OpenFile;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use toml::Spanned;
use words::{Object, document};

use super::file::{File, Link, Row};
use super::listed;

/// A larger file is none: a million rows.
const MAX_BYTES: u64 = 1 << 30;

/// Where something is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub line: usize,
    /// It is a row of a listing: braces in it are no numbers.
    pub is_listed: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// What is said, in the order of files and lines.
#[derive(Debug, Default)]
pub struct Said {
    pub links: Vec<(Place, Link)>,
    pub rows: Vec<(Place, Object, Row)>,
}

/// Reads files; `-` is standard input. What is wrong is said with its
/// place.
pub fn read(paths: &[std::path::PathBuf]) -> Result<Said, String> {
    let mut said = Said::default();
    for path in paths {
        let name: Arc<str> = match path.as_os_str() == "-" {
            true => "standard input".into(),
            false => path.display().to_string().into(),
        };
        let text = text(path).map_err(|error| format!("{name}: {error}"))?;
        parse(&name, &text, &mut said)?;
    }
    Ok(said)
}

fn text(path: &Path) -> std::io::Result<String> {
    match path.as_os_str() == "-" {
        true => whole(&mut std::io::stdin(), MAX_BYTES),
        false => whole(&mut OpenFile::open(path)?, MAX_BYTES),
    }
}

/// All of a text, of so many octets at most.
fn whole(from: &mut dyn Read, most: u64) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let why = format!("a file of at most {most} octets is expected");
        return Err(std::io::Error::other(why));
    }
    Ok(text)
}

/// Reads a file's text; `name` is for messages.
pub fn parse(name: &Arc<str>, text: &str, said: &mut Said) -> Result<(), String> {
    match text.trim_start().as_bytes() {
        [b'{', ..] => json(name, text, said),
        // `[[link]]` begins a table of TOML; a list of objects, or of none, is
        // JSON.
        [b'[', rest @ ..] if matches!(rest.trim_ascii_start(), [b'{' | b']', ..]) => {
            json(name, text, said)
        }
        _ => toml(name, text, said),
    }
}

fn toml(name: &Arc<str>, text: &str, said: &mut Said) -> Result<(), String> {
    let lines = Lines::of(text);
    let place = |at: usize| Place {
        file: Arc::clone(name),
        line: lines.at(at),
        is_listed: false,
    };
    let file: File<Spanned<Link>, Spanned<Row>> = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let key = match document::key_at(text, at).as_str() {
            "" => String::new(),
            key => format!("{key}: "),
        };
        format!("{}: {key}{}", place(at), error.message())
    })?;
    let links = file.link.into_iter();
    said.links
        .extend(links.map(|link| (place(link.span().start), link.into_inner())));
    for (object, rows) in [
        (Object::Addr, file.address),
        (Object::Neigh, file.neighbour),
        (Object::Nexthop, file.nexthop),
        (Object::Route, file.route),
        (Object::Rule, file.rule),
        (Object::Fdb, file.fdb),
    ] {
        let rows = rows.into_iter();
        said.rows
            .extend(rows.map(|row| (place(row.span().start), object, row.into_inner())));
    }
    Ok(())
}

fn json(name: &Arc<str>, text: &str, said: &mut Said) -> Result<(), String> {
    let lines = Lines::of(text);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let at = values.byte_offset();
        let blank = text.get(at..).unwrap_or_default();
        let at = at + (blank.len() - blank.trim_start().len());
        let place = Place {
            file: Arc::clone(name),
            line: lines.at(at),
            is_listed: true,
        };
        let value = match values.next() {
            None => return Ok(()),
            Some(value) => value.map_err(|error| format!("{name}:{}: {error}", error.line()))?,
        };
        let list = match value {
            Value::Array(list) => list,
            value => vec![value],
        };
        for value in list {
            let Value::Object(row) = value else {
                return Err(format!("{place}: a JSON object is expected"));
            };
            object(row, &place, said).map_err(|why| format!("{place}: {why}"))?;
        }
    }
}

/// One row of a listing: which table it is of, its keys tell.
fn object(row: Map<String, Value>, place: &Place, said: &mut Said) -> Result<(), String> {
    let has = |key: &str| row.contains_key(key);
    let object = if has("addr_info") || has("mtu") || has("link_type") {
        let (link, addresses) = listed::link(&row)?;
        said.links.extend(link.map(|link| (place.clone(), link)));
        let addresses = addresses.into_iter();
        said.rows
            .extend(addresses.map(|row| (place.clone(), Object::Addr, row)));
        return Ok(());
    } else if has("mac") {
        Object::Fdb
    } else if has("priority") {
        Object::Rule
    } else if has("id") {
        Object::Nexthop
    } else if has("lladdr") || has("state") || has("proxy") {
        Object::Neigh
    } else if has("dst") {
        Object::Route
    } else {
        return Err("of which table this row is cannot be told by its keys".to_owned());
    };
    let row = row.into_iter().collect();
    said.rows.push((place.clone(), object, row));
    Ok(())
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text
            .bytes()
            .enumerate()
            .filter(|(_, octet)| *octet == b'\n');
        Self(ends.map(|(at, _)| at).collect())
    }

    /// The line of an octet. O(log lines).
    fn at(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<Said, String> {
        let mut said = Said::default();
        parse(&"f".into(), text, &mut said).map(|()| said)
    }

    #[test]
    fn a_file_has_so_many_octets_at_most() {
        let read = |text: &str| whole(&mut text.as_bytes(), 5);
        assert_eq!(read("12345").unwrap(), "12345");
        let why = read("123456").unwrap_err().to_string();
        assert!(why.contains("at most 5 octets"), "{why}");
        assert_eq!(read("1234").unwrap(), "1234");
    }

    #[test]
    fn tables_have_their_places() {
        let text =
            "\n[[link]]\nname = \"a\"\n\n[[route]]\ndst = \"default\"\n\n[[link]]\nname = \"b\"\n";
        let said = said(text).unwrap();
        let links: Vec<_> = said
            .links
            .iter()
            .map(|(at, l)| (at.line, &*l.name))
            .collect();
        assert_eq!(links, [(2, "a"), (8, "b")]);
        assert_eq!((said.rows[0].0.line, said.rows[0].1), (5, Object::Route));
    }

    #[test]
    fn a_word_that_is_not_known_is_said_with_its_place() {
        let why = said("[[link]]\nname = \"a\"\nmtuu = 5\n").unwrap_err();
        assert!(why.starts_with("f:3: link[0].mtuu: "), "{why}");
        let why = said("[[link]]\nname = \"a\"\nmtu = \"x\"\n").unwrap_err();
        assert!(why.starts_with("f:3: link[0].mtu: "), "{why}");
        assert!(said("[[lnk]]\n").unwrap_err().starts_with("f:1: "));
        assert!(said("{\"a\":1}").unwrap_err().starts_with("f:1: "));
        assert!(
            said("{\"dst\":\"default\"}\n{")
                .unwrap_err()
                .starts_with("f:2: ")
        );
    }

    #[test]
    fn rows_of_listings_are_told_by_their_keys() {
        for none in ["[]", "[ ]\n", ""] {
            let none = said(none).unwrap();
            assert!(none.rows.is_empty() && none.links.is_empty());
        }
        let text = r#"{"dst":"10.0.0.0/8","dev":"a","flags":[]}
[{"id":5,"dev":"a"},{"priority":5,"src":"all","table":"main"}]
{"dst":"10.0.0.1","dev":"a","lladdr":"02:00:00:00:00:01","state":["PERMANENT"]}
{"mac":"02:00:00:00:00:01","ifname":"a","flags":["self"],"state":"permanent"}"#;
        let said = said(text).unwrap();
        let rows: Vec<_> = said.rows.iter().map(|(at, of, _)| (at.line, *of)).collect();
        let wanted = [
            (1, Object::Route),
            (2, Object::Nexthop),
            (2, Object::Rule),
            (3, Object::Neigh),
            (4, Object::Fdb),
        ];
        assert_eq!(rows, wanted);
    }
}
