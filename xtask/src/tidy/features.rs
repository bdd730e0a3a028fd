//! Features of others' crates. Tests ask more of them than the program and
//! the chores do, and Cargo builds a crate once for each set of features, with
//! all that stands on it. `xtask/Cargo.toml` asks for what only the tests
//! would; this rule holds it to that. Called by `tidy`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::finding::Finding;
use crate::host;
use crate::test::WITHOUT_EXAMPLES;

/// A crate with its version and its features, as Cargo prints them.
type Crates = BTreeSet<String>;

/// Compares what is asked for the program, by the chores, and for the examples
/// in the documentation, with what is asked for the tests.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let asked = |selection: &[&str]| crates(root, selection);
    let tested = asked(&["--workspace", "--edges=normal,build,dev"])?;
    let program = asked(&["--workspace", "--edges=normal,build"])?;
    let chores = asked(&["--package=xtask", "--edges=normal,build"])?;
    let library = ["--exclude", WITHOUT_EXAMPLES, "--edges=normal,build,dev"];
    let examples = asked(&[&["--workspace"], &library[..]].concat())?;
    Ok(built_twice(&tested, &[&program, &chores, &examples]))
}

/// Those that the tests would build once more.
fn built_twice(tested: &Crates, others: &[&Crates]) -> Vec<Finding> {
    let mut twice = BTreeSet::new();
    for other in others {
        twice.extend(other.difference(tested));
    }
    let finding = |one: &String| {
        let what =
            format!("`{one}` has more features in the tests: give it these here, or take them off");
        Finding::new("xtask/Cargo.toml", 0, what)
    };
    twice.into_iter().map(finding).collect()
}

/// What Cargo would build for this selection.
fn crates(root: &Path, selection: &[&str]) -> Result<Crates> {
    let output = host::cargo()
        .current_dir(root)
        .args(["tree", "--locked", "--prefix=none", "--format={p} {f}"])
        .args(selection)
        .output()
        .context("running cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("output of cargo tree")?;
    Ok(of_others(&text))
}

/// Our own crates have a path in brackets; a crate that is told again has a
/// star there.
fn of_others(text: &str) -> Crates {
    text.lines()
        .map(|line| line.trim_end_matches(" (*)").trim())
        .filter(|line| !line.is_empty() && !line.contains(" (/"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_other_features_in_the_tests_is_found() {
        let tested = of_others("log v0.4.35 alloc,std\nours v0.1.0 (/w/ours) \nmio v1.2.4 net (*)");
        assert_eq!(tested.len(), 2);
        assert_eq!(built_twice(&tested, &[&tested]), Vec::new());
        let program = of_others("log v0.4.35 \nmio v1.2.4 net");
        let findings = built_twice(&tested, &[&program, &program]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.starts_with("`log v0.4.35`"));
    }
}
