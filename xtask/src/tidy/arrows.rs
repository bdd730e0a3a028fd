//! Which room may lean on which: an arrow points to a lower floor.

use toml::{Table, Value};

use super::finding::Finding;
use super::tree::File;

/// The floors of the house. A new room is entered here when it is made.
const FLOORS: &[(&str, u8)] = &[
    ("fingerpost", 6),
    ("libalias", 6),
    ("lab", 6),
    ("serve", 5),
    ("change", 5),
    ("router", 5),
    ("traffic", 5),
    ("query", 4),
    ("dataplane", 3),
    ("view", 3),
    ("mib", 3),
    ("linux", 3),
    ("translation", 3),
    ("feed", 3),
    ("bgp", 2),
    ("words", 2),
    ("netlink", 2),
    ("fib", 2),
    ("nat", 2),
    ("table", 1),
    ("packet", 1),
    ("snmp", 1),
    ("memory", 0),
    ("privileges", 0),
];

/// Arrows down that are refused all the same, and why. Tests may have them.
const REFUSED: &[(&str, &str, &str)] = &[(
    "view",
    "netlink",
    "rows have values, and what shows them knows no source's bytes",
)];

/// What a member takes from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// Checks a member's manifest.
pub fn check(file: &File) -> Vec<Finding> {
    let member = file.path.strip_suffix("/Cargo.toml");
    let Some(member) = member.filter(|path| path.starts_with("crates/") || *path == "xtask") else {
        return Vec::new();
    };
    let find = |what: String| Finding::new(&file.path, 0, what);
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![find(format!("not TOML: {error}"))],
    };
    let mut findings = inheritance(&manifest);
    if let Some(room) = member.strip_prefix("crates/") {
        findings.extend(arrows(room, &manifest));
    }
    findings.into_iter().map(find).collect()
}

fn inheritance(manifest: &Table) -> Vec<String> {
    let from_workspace = |value: Option<&Value>| {
        let value = value.and_then(|value| value.get("workspace"));
        value.and_then(Value::as_bool) == Some(true)
    };
    let mut findings = Vec::new();
    if !from_workspace(manifest.get("lints")) {
        findings.push("the lints are not the workspace's: `[lints] workspace = true`".into());
    }
    let package = manifest.get("package");
    for key in INHERITED {
        if !from_workspace(package.and_then(|package| package.get(key))) {
            findings.push(format!("`{key}.workspace = true` is missing"));
        }
    }
    findings
}

fn arrows(room: &str, manifest: &Table) -> Vec<String> {
    let Some(from) = floor(room) else {
        return vec![format!(
            "the room `{room}` has no floor: enter it into xtask's tidy/arrows.rs"
        )];
    };
    let mut findings = Vec::new();
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        let dependencies = manifest.get(section).and_then(Value::as_table);
        for name in dependencies.into_iter().flat_map(Table::keys) {
            let name = name.strip_prefix("fingerpost-").unwrap_or(name);
            if name == "lab" && section == "dev-dependencies" {
                continue;
            }
            if section != "dev-dependencies" {
                findings.extend(refused(room, name));
            }
            if let Some(to) = floor(name).filter(|to| *to >= from) {
                findings.push(format!(
                    "`{room}` (floor {from}) leans on `{name}` (floor {to}): only lower floors"
                ));
            }
        }
    }
    findings
}

fn refused(room: &str, name: &str) -> Option<String> {
    let (_, _, why) = REFUSED
        .iter()
        .find(|(from, to, _)| (*from, *to) == (room, name))?;
    Some(format!("`{room}` leans on `{name}`: {why}"))
}

fn floor(room: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == room)
        .map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[package]\nname = \"x\"\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n[lints]\nworkspace = true\n";

    fn findings(room: &str, rest: &str) -> usize {
        let path = format!("crates/{room}/Cargo.toml");
        check(&File::of(&path, &format!("{HEAD}{rest}"))).len()
    }

    #[test]
    fn arrows_point_down_only() {
        assert_eq!(findings("view", "[dependencies]\ntable = {}\n"), 0);
        assert_eq!(findings("table", "[dependencies]\nview = {}\n"), 1);
        assert_eq!(findings("view", "[dependencies]\nlinux = {}\n"), 1);
        assert_eq!(findings("view", "[dependencies]\nfingerpost-mib = {}\n"), 1);
        assert_eq!(findings("memory", "[dependencies]\ntable = {}\n"), 1);
        assert_eq!(findings("table", "[dependencies]\nmemory = {}\n"), 0);
        assert_eq!(findings("table", "[dependencies]\nsnmp = {}\n"), 1);
    }

    #[test]
    fn what_shows_rows_knows_no_source_s_bytes() {
        assert_eq!(findings("view", "[dependencies]\nnetlink = {}\n"), 1);
        assert_eq!(
            findings("view", "[dependencies]\nfingerpost-netlink = {}\n"),
            1
        );
        assert_eq!(findings("view", "[dev-dependencies]\nnetlink = {}\n"), 0);
        assert_eq!(findings("mib", "[dependencies]\nnetlink = {}\n"), 0);
    }

    #[test]
    fn lab_is_for_tests_of_any_floor() {
        assert_eq!(findings("view", "[dev-dependencies]\nlab = {}\n"), 0);
        assert_eq!(findings("view", "[dependencies]\nlab = {}\n"), 1);
        assert_eq!(findings("view", "[dev-dependencies]\nlinux = {}\n"), 1);
    }

    #[test]
    fn a_room_without_a_floor_is_found() {
        assert_eq!(findings("attic", ""), 1);
    }

    #[test]
    fn lints_and_versions_are_the_workspace_s() {
        let alone = File::of("crates/view/Cargo.toml", "[package]\nname = \"x\"\n");
        assert_eq!(check(&alone).len(), 1 + INHERITED.len());
        let broken = File::of("xtask/Cargo.toml", "[package\n");
        assert_eq!(check(&broken).len(), 1);
    }
}
