//! The corpora of the fuzz targets, for the tests that replay them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The files of a target's corpus, in the order of their names; at least so
/// many.
pub fn files(target: &str, least: usize) -> Result<Vec<Vec<u8>>> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let directory = all.join(target);
    let entries = fs::read_dir(&directory)
        .with_context(|| format!("the corpus of {target}: {}", directory.display()))?;
    let paths: Result<Vec<_>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = paths?;
    paths.sort();
    let found = paths.len();
    ensure!(
        found >= least,
        "{target} has {found} files in its corpus, not {least}"
    );
    let read = |path: &_| fs::read(path).context("a file of a corpus");
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said() {
        assert!(files("forward", 1).is_ok_and(|files| !files.is_empty()));
        let few = files("forward", 1_000_000).unwrap_err().to_string();
        assert!(few.contains("forward has"), "{few}");
        let none = files("no such target", 0).unwrap_err().to_string();
        assert!(none.contains("no such target"), "{none}");
    }
}
