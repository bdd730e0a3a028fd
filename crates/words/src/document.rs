//! Where something stands in a document of TOML, for errors that name line
//! and key. Called by whoever reads such files: settings and declared state.

use std::fmt::Write;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line of an octet, from 1.
pub fn line_at(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    1 + before.iter().filter(|octet| **octet == b'\n').count()
}

/// The key at an octet, or of the value there, with those around it
/// (`link[2].mtu`); empty where none is, or where the text is no TOML. The
/// document is read again: this is for errors.
pub fn key_at(text: &str, at: usize) -> String {
    let Ok(document) = DeTable::parse(text) else {
        return String::new();
    };
    let mut found = Found {
        at,
        path: String::new(),
        key: String::new(),
    };
    found.look_through_table(document.get_ref());
    found.key
}

/// The search for a place.
struct Found {
    at: usize,
    /// Of what is looked at.
    path: String,
    /// The innermost so far: it is looked at after what is around it.
    key: String,
}

impl Found {
    fn look_through_table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            let before = self.path.len();
            if before > 0 {
                self.path.push('.');
            }
            self.path += key.get_ref();
            self.note_if_here(key);
            self.look_through(value);
            self.path.truncate(before);
        }
    }

    fn look_through(&mut self, value: &Spanned<DeValue<'_>>) {
        self.note_if_here(value);
        match value.get_ref() {
            DeValue::Table(table) => self.look_through_table(table),
            DeValue::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    let before = self.path.len();
                    // Writing to a text does not fail.
                    let _ = write!(self.path, "[{number}]");
                    self.look_through(value);
                    self.path.truncate(before);
                }
            }
            _ => {}
        }
    }

    fn note_if_here<T>(&mut self, of: &Spanned<T>) {
        if of.span().contains(&self.at) {
            self.key.clone_from(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_found_where_they_stand() {
        let text = "log = 'info'\n[http]\nlisten = ['a', 'b']\n\n[[link]]\nmtu = 1\n[[link]]\n\
                    name = 'x'\nsysctl.ipv6 = { forwarding = 3 }\n";
        for (what, line, key) in [
            ("log", 1, "log"),
            ("info", 1, "log"),
            ("[http]", 2, "http"),
            ("listen", 3, "http.listen"),
            ("'b'", 3, "http.listen[1]"),
            ("mtu", 6, "link[0].mtu"),
            ("'x'", 8, "link[1].name"),
            ("3", 9, "link[1].sysctl.ipv6.forwarding"),
            ("{ forw", 9, "link[1].sysctl.ipv6"),
        ] {
            let at = text.find(what).unwrap();
            assert_eq!(line_at(text, at), line, "{what}");
            assert_eq!(key_at(text, at), key, "{what}");
        }
        let second = text.rfind("[[link]]").unwrap();
        assert_eq!(key_at(text, second), "link[1]");
    }

    #[test]
    fn where_nothing_stands_there_is_no_key() {
        for (text, at) in [
            ("", 0),
            ("a = 1\n", 900),
            ("# a\nb = 1\n", 1),
            ("a = [", 0),
            ("a = 1\na = 2\n", 0),
        ] {
            assert_eq!(key_at(text, at), "", "{text:?}");
        }
        assert_eq!((line_at("", 0), line_at("\n\n", 9)), (1, 1));
    }
}
