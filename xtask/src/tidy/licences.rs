//! Licences of the whole dependency tree against deny.toml's list, by
//! `cargo metadata`, so that the check runs wherever Cargo does.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::finding::Finding;
use super::tree::Tree;
use crate::host;

/// Checks every package that is built on this platform.
pub fn check(root: &Path, tree: &Tree) -> Result<Vec<Finding>> {
    let deny = tree.get("deny.toml").map_or("", |file| &file.text);
    let allowed = allowed(deny).context("reading deny.toml")?;
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo metadata names no packages")?;
    Ok(packages
        .iter()
        .filter_map(|package| refused(package, &allowed))
        .map(|what| Finding::new("Cargo.lock", 0, what))
        .collect())
}

fn allowed(deny: &str) -> Result<Vec<String>> {
    let deny: toml::Table = deny.parse()?;
    let list = deny
        .get("licenses")
        .and_then(|section| section.get("allow"));
    let list = list.and_then(toml::Value::as_array);
    let list = list.context("`licenses.allow` is missing")?;
    Ok(list
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect())
}

fn metadata(root: &Path) -> Result<Value> {
    let output = host::cargo()
        .current_dir(root)
        .args(["metadata", "--format-version=1", "--locked"])
        .arg(format!("--filter-platform={}", platform()))
        .output()
        .context("running cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("output of cargo metadata")
}

/// The usual Linux target of this processor.
fn platform() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// What is wrong with a package's licence.
fn refused(package: &Value, allowed: &[String]) -> Option<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("`{name}` states no licence"));
    };
    (!permits(licence, allowed))
        .then(|| format!("`{name}` is licensed {licence}, which deny.toml does not allow"))
}

/// Whether an SPDX expression can be met with the allowed licences. `/` is
/// the older way to write `OR`. `AND` binds tighter than `OR`.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace(" WITH ", "+WITH+");
    let mut words = spaced.split_whitespace().peekable();
    let permitted = any_of(&mut words, allowed);
    permitted && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        permitted |= all_of(words, allowed);
    }
    permitted
}

fn all_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        permitted &= one(words, allowed);
    }
    permitted
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    match words.next() {
        Some("(") => {
            let inner = any_of(words, allowed);
            words.next() == Some(")") && inner
        }
        Some(licence) => {
            let licence = licence.replace("+WITH+", " WITH ");
            // The older way to write "or any later version".
            let licence = licence.strip_suffix('+').unwrap_or(&licence);
            allowed.iter().any(|allowed| allowed == licence)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(expression: &str) -> bool {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "Unicode-3.0",
        ];
        permits(expression, &allowed.map(str::to_owned))
    }

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        assert!(permitted("MIT") && permitted("MIT/GPL-2.0") && permitted("GPL-2.0 OR MIT"));
        assert!(permitted("(MIT OR GPL-2.0) AND Unicode-3.0"));
        assert!(permitted("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
        assert!(permitted("MIT+") && !permitted("GPL-2.0+"));
        assert!(!permitted("MIT AND GPL-2.0"));
        assert!(!permitted("GPL-2.0 WITH LLVM-exception"));
        assert!(permitted("GPL-2.0 AND EUPL-1.2 OR MIT"));
        assert!(!permitted("") && !permitted("(MIT") && !permitted("MIT MIT"));
    }

    #[test]
    fn a_package_with_a_foreign_licence_or_none_is_found() {
        let package = |licence: Value| serde_json::json!({"name": "x", "license": licence});
        let allowed = ["MIT".to_owned()];
        assert_eq!(refused(&package("MIT".into()), &allowed), None);
        assert!(refused(&package("EUPL-1.2".into()), &allowed).is_some());
        assert!(refused(&package(Value::Null), &allowed).is_some());
    }

    #[test]
    fn the_list_is_deny_toml_s() {
        assert_eq!(allowed("[licenses]\nallow = [\"MIT\"]\n").unwrap(), ["MIT"]);
        assert!(allowed("").is_err());
    }
}
