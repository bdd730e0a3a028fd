//! Tests that cannot run here say so, and are counted as skipped instead
//! of passed. Called by tests; read by `cargo xtask test`.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::thread;

use anyhow::Context;

/// Names the file to which skipped tests are appended, one line each:
/// name of the test, a tab, the reason. `cargo xtask test` sets it.
pub const FILE_VARIABLE: &str = "FINGERPOST_SKIPPED_FILE";

/// Counts the running test as skipped and says why, past the test
/// runner's capture. The test returns right after.
pub fn skip(reason: &str) {
    let current = thread::current();
    let test = current.name().unwrap_or("main");
    let line = format!("{}{test}\t{}\n", program(), reason.replace('\n', "; "));
    // With nobody to listen there is nothing left to say it to.
    let _ = io::stderr().write_all(format!("SKIPPED: {line}").as_bytes());
    let Some(path) = env::var_os(FILE_VARIABLE) else {
        return;
    };
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(
        written.is_ok(),
        "a skipped test could not be counted in {}: {written:?}",
        path.display()
    );
}

/// The value, or `None` with the test counted as skipped:
/// `let Some(netns) = skip::unless(Netns::new("x")) else { return };`
pub fn unless<T>(result: anyhow::Result<T>) -> Option<T> {
    result.map_err(|error| skip(&format!("{error:#}"))).ok()
}

/// Whether this process may make TUN devices. Where `/dev/net/tun` is
/// root's alone, a user may not, in namespaces of his own neither.
pub fn tun() -> anyhow::Result<()> {
    let path = "/dev/net/tun";
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map(|_| ()).with_context(|| path.to_owned())
}

/// Whether a user is known in this user namespace.
pub fn user(id: u64) -> anyhow::Result<()> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    let is_known = map.lines().any(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        matches!(numbers[..], [inside, _, count] if (inside..inside + count).contains(&id))
    });
    anyhow::ensure!(is_known, "user {id} is not known in this user namespace");
    Ok(())
}

/// The test program's name without Cargo's hash, and `::`.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    format!("{name}::")
}
