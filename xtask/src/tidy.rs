//! `cargo xtask tidy`: the rules of the house that a compiler does not
//! check. Each rule is a function from what lies in the tree to findings,
//! with a test of a violation beside it.

mod arrows;
mod circles;
mod documents;
mod features;
mod finding;
mod licences;
mod source;
mod tree;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::host::{self, say};
use finding::Finding;
use tree::Tree;

/// Checks all rules; fails with a line for each finding.
pub fn run() -> Result<ExitCode> {
    let root = host::workspace()?;
    let tree = Tree::read(&root).context("reading the workspace's files")?;
    let mut findings = check(&tree);
    findings.extend(licences::check(&root, &tree)?);
    findings.extend(features::check(&root)?);
    for Finding { path, line, what } in &findings {
        say(format_args!("{path}:{line}: {what}"));
    }
    let files = tree.files.len();
    say(format_args!(
        "tidy: {files} files, {} findings",
        findings.len()
    ));
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}

/// The rules that need nothing but the files.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        findings.extend(source::check(file));
        findings.extend(arrows::check(file));
    }
    findings.extend(circles::check(tree));
    findings.extend(documents::check(tree));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_itself_is_tidy() {
        let tree = Tree::read(&host::workspace().unwrap()).unwrap();
        assert_eq!(check(&tree), Vec::new());
    }
}
