//! No circle of files crosses a folder.
//!
//! A file leans on another when it names something that stands there: in a
//! `use`, or by a path within its code. What is imported and given on is
//! looked up where it stands, so a parent that declares its children and
//! re-exports what they have is in no circle because of that. Naming a module
//! alone is no leaning; naming what is in it is. Whatever is `cfg(test)` is
//! left out.
//!
//! Files that lean on each other around a circle must lie in one folder. The
//! file `foo.rs` of a folder `foo/` counts as one of that folder, and as one
//! of the folder that it stands in.

mod graph;
mod modules;
mod text;

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::Tree;
use graph::{Arrow, Graph};
use modules::Crate;

/// Checks every crate of the tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files.iter();
    let roots = files.filter(|file| {
        file.path.ends_with("src/lib.rs")
            || file.path.ends_with("src/main.rs")
            || file.path.contains("/src/bin/")
    });
    let mut findings = Vec::new();
    for root in roots {
        match Crate::read(tree, &root.path) {
            Ok(found) => findings.extend(circles(&found)),
            Err(finding) => findings.push(finding),
        }
    }
    findings
}

/// A finding for each group of files that lean on each other and do not lie in
/// one folder: the shortest circle through two that have no folder in common.
fn circles(of: &Crate) -> Vec<Finding> {
    let graph = Graph::of(of.files.len(), of.arrows());
    let mut findings = Vec::new();
    for group in graph.groups() {
        let apart = pairs(&group).filter(|(one, other)| are_apart(of, *one, *other));
        let circles = apart.map(|(one, other)| graph.circle(one, other));
        if let Some(circle) = circles.min_by_key(Vec::len) {
            findings.push(finding(of, &circle, &group));
        }
    }
    findings
}

fn pairs(group: &BTreeSet<usize>) -> impl Iterator<Item = (usize, usize)> {
    let behind = |one: &usize| group.range(one + 1..);
    group
        .iter()
        .flat_map(move |one| behind(one).map(|other| (*one, *other)))
}

/// Whether two files have no folder in common. Where every two have one, all
/// have the same.
fn are_apart(of: &Crate, one: usize, other: usize) -> bool {
    let other = folders(&of.files[other]);
    !folders(&of.files[one])
        .iter()
        .any(|folder| other.contains(folder))
}

/// The folder that a file stands in, and the one whose own file it is.
fn folders(file: &str) -> [&str; 2] {
    let stands_in = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    [stands_in, file.strip_suffix(".rs").unwrap_or(file)]
}

fn finding(of: &Crate, circle: &[Arrow], group: &BTreeSet<usize>) -> Finding {
    let steps: Vec<String> = circle
        .iter()
        .map(|arrow| format!("{}:{}", of.files[arrow.from], arrow.line))
        .collect();
    let [first, ..] = circle else {
        return Finding::new("", 0, "a circle of no files");
    };
    let start = &of.files[first.from];
    Finding::new(
        start,
        first.line,
        format!(
            "a circle of files crosses a folder: {} → {start} ({} files lean on each other); \
             move what they share to where all may lean on it",
            steps.join(" → "),
            group.len(),
        ),
    )
}

#[cfg(test)]
mod tests;
