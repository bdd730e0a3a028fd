//! Files of declared state, and files of those who declare it otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fingerpost_change::state::counted;
use fingerpost_change::state::import::{Texts, ifupdown, netplan, networkd, nmstate};

/// So many rows a file may have here: patterns stand for many.
const ROWS: usize = 10_000;

/// A file of declared state, TOML or rows of listings.
pub fn state_file(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        // What makes no sense is said so.
        let _ = counted(text, ROWS);
    }
}

/// A file of one of the four: its first octet says of which. Octets of zero
/// begin the next, for those that have several. What is carried over is a
/// file of declared state that makes sense.
pub fn state_import(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let mut texts = Known(BTreeMap::new());
    let import = match which % 4 {
        0 => ifupdown::import,
        1 => networkd::import,
        2 => netplan::import,
        _ => nmstate::import,
    };
    let path = match which % 4 {
        1 => {
            for (at, text) in text.split('\0').enumerate() {
                let end = [".netdev", ".network"][at % 2];
                let name = format!("n/{at}{end}");
                texts.0.insert(name.into(), text.to_owned());
            }
            "n"
        }
        _ => {
            for (at, text) in text.split('\0').enumerate() {
                let name = if at == 0 {
                    "f".to_owned()
                } else {
                    format!("f{at}")
                };
                texts.0.insert(name.into(), text.to_owned());
            }
            "f"
        }
    };
    let Ok(imported) = import(&mut texts, Path::new(path)) else {
        return;
    };
    let file = imported
        .file
        .to_toml()
        .unwrap_or_else(|why| panic!("{why}"));
    if let Err(why) = counted(&file, usize::MAX) {
        panic!("{why}: {file}");
    }
}

struct Known(BTreeMap<PathBuf, String>);

impl Texts for Known {
    fn read(&mut self, path: &Path) -> Result<String, String> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| format!("there is no {}", path.display()))
    }

    fn matching(&mut self, pattern: &Path) -> Result<Vec<PathBuf>, String> {
        let any = pattern.ends_with("*");
        let is_it = |path: &&PathBuf| match any {
            true => path.parent() == pattern.parent(),
            false => path.as_path() == pattern,
        };
        Ok(self.0.keys().filter(is_it).cloned().collect())
    }
}
