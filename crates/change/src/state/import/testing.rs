//! What the tests of imports share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Imported, Texts};
use crate::state::file::File;

/// Texts by their names; `*` at the end of a pattern is any name.
pub struct Known(pub BTreeMap<PathBuf, String>);

impl Texts for Known {
    fn read(&mut self, path: &Path) -> Result<String, String> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| format!("there is no {}", path.display()))
    }

    fn matching(&mut self, pattern: &Path) -> Result<Vec<PathBuf>, String> {
        let is_it = |path: &&PathBuf| match pattern.file_name().is_some_and(|name| name == "*") {
            true => path.parent() == pattern.parent(),
            false => path.as_path() == pattern,
        };
        Ok(self.0.keys().filter(is_it).cloned().collect())
    }
}

/// All of a single file.
pub fn only(name: &str, text: &str) -> Known {
    Known(BTreeMap::from([(name.into(), text.to_owned())]))
}

/// What is left, without where it stands.
pub fn left(imported: &Imported) -> Vec<(usize, &str)> {
    let left = imported.left.iter();
    left.map(|left| (left.line, left.key.as_str())).collect()
}

/// Compares what came of an import with a file, which is read as ours are.
pub fn toml(imported: &Imported, expected: &str) {
    let expected: File = toml::from_str(&on_one_line(expected)).unwrap();
    assert_eq!(
        imported.file,
        expected,
        "{}",
        imported.file.to_toml().unwrap()
    );
    // And it is written so that it is read again.
    let again: File = toml::from_str(&imported.file.to_toml().unwrap()).unwrap();
    assert_eq!(again, imported.file);
}

/// Inline tables stand on one line.
fn on_one_line(text: &str) -> String {
    let mut depth = 0;
    let joined = text.chars().map(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == '\n' && depth > 0 { ' ' } else { c }
    });
    joined.collect()
}
