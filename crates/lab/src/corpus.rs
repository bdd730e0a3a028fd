//! The corpora of the fuzz targets, for the tests that replay them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use memory::Random;

/// Where a target's corpus is.
fn directory(target: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    all.join(target)
}

/// Writes streams into a target's corpus, each as a file of its name; and
/// those of `joined` one behind the other as `all`, and as `again` broken
/// off and then once more. Called by the chores that make corpora.
pub fn write_streams(
    target: &str,
    streams: &[(&str, Vec<u8>)],
    joined: impl Fn(&str) -> bool,
) -> Result<()> {
    let directory = directory(target);
    fs::create_dir_all(&directory)?;
    for (name, bytes) in streams {
        fs::write(directory.join(name), bytes)?;
    }
    let joined = streams.iter().filter(|(name, _)| joined(name));
    let all: Vec<u8> = joined.flat_map(|(_, bytes)| bytes.clone()).collect();
    fs::write(directory.join("all"), &all)?;
    fs::write(directory.join("again"), [&all[..], &[9], &all].concat())?;
    Ok(())
}

/// The files of a target's corpus, in the order of their names; at least so
/// many.
pub fn files(target: &str, least: usize) -> Result<Vec<Vec<u8>>> {
    let directory = directory(target);
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

/// Tries files of a corpus with random changes, as many as
/// `FINGERPOST_FUZZ_ROUNDS` says, else `rounds`.
pub fn try_changed(corpus: &[Vec<u8>], rounds: u64, mut target: impl FnMut(&[u8])) {
    let said = std::env::var("FINGERPOST_FUZZ_ROUNDS").ok();
    let rounds = said.and_then(|text| text.parse().ok()).unwrap_or(rounds);
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let mut bytes = corpus[random.below(corpus.len())].clone();
        for _ in 0..1 + random.below(8) {
            if bytes.is_empty() {
                break;
            }
            change(&mut bytes, &mut random);
        }
        target(&bytes);
    }
}

/// A byte becomes another, or some go or come.
fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes[at] = random.number() as u8,
        1 => bytes[at] ^= 1 << random.below(8),
        2 => drop(bytes.drain(at..(at + random.below(9)).min(bytes.len()))),
        _ => bytes
            .splice(at..at, (0..random.below(9) as u8).rev())
            .for_each(drop),
    }
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
