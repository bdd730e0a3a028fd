//! Rules about the text of files.

use super::finding::Finding;
use super::tree::File;

/// Lines a source file may have.
const MAX_LINES: usize = 1_200;

/// Rooms that may hold `unsafe` (design: packet buffers and ports, SQLite, C's
/// interface, SIMD, reclamation).
const MAY_BE_UNSAFE: &[&str] = &["dataplane", "fib", "libalias", "memory", "packet", "query"];

/// Words that say something is unfinished. Put together here, so that this
/// file does not break its own rule.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("dbg", "!("),
    concat!("todo", "!("),
    concat!("unimple", "mented!("),
];

/// Macros that panic on a closed pipe, or write where they should not.
const PRINTING: &[&str] = &[concat!("print", "ln!("), concat!("print", "!(")];

/// Hosts that packages come from, and directories of one machine: neither
/// belongs into a project that is built elsewhere.
const PLACES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("docs", ".rs/"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Checks one file.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = places(file);
    if file.path.ends_with(".rs") {
        findings.extend(head(file));
        findings.extend(length(file));
        findings.extend(words(file));
        findings.extend(allows(file));
    }
    findings
}

fn head(file: &File) -> Option<Finding> {
    // `x/tests.rs` says by its name what it is for.
    if file.path.ends_with("/tests.rs") {
        return None;
    }
    let first = file
        .text
        .lines()
        .find(|line| !line.starts_with("#![") && !line.is_empty());
    let has_head = first.is_some_and(|line| line.starts_with("//!"));
    (!has_head).then(|| {
        Finding::new(
            &file.path,
            1,
            "a module begins with a `//!` head: what it is for, who may call it",
        )
    })
}

fn length(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > MAX_LINES).then(|| {
        Finding::new(
            &file.path,
            lines,
            format!("{lines} lines; more than {MAX_LINES} is two rooms"),
        )
    })
}

fn words(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let may_be_unsafe = MAY_BE_UNSAFE
        .iter()
        .any(|name| file.path.starts_with(&format!("crates/{name}/")));
    let mut in_tests = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    for (at, line) in file.text.lines().enumerate() {
        let mut find = |what: String| findings.push(Finding::new(&file.path, at + 1, what));
        in_tests |= line.starts_with("#[cfg(test)]");
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(*word)) {
            find(format!("`{word}`: finish it, or write an issue"));
        }
        let code = line.split("//").next().unwrap_or_default();
        if !in_tests && PRINTING.iter().any(|word| code.contains(word)) {
            find("printing macros panic on a closed pipe: write to a locked stdout".into());
        }
        if !may_be_unsafe && is_unsafe(code) {
            find("unsafe code outside the rooms that may hold it".into());
        }
    }
    findings
}

fn is_unsafe(code: &str) -> bool {
    let keyword = concat!("un", "safe");
    ["{", "fn", "impl", "extern"]
        .iter()
        .any(|next| code.contains(&format!("{keyword} {next}")))
}

/// `allow` and `expect` attributes without a reason.
fn allows(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut offset = 0;
    for (at, line) in file.text.split_inclusive('\n').enumerate() {
        let rest = file.text.get(offset..).unwrap_or_default().trim_start();
        offset += line.len();
        let Some(name) = rest.strip_prefix("#[").or_else(|| rest.strip_prefix("#![")) else {
            continue;
        };
        if !(name.starts_with("allow(") || name.starts_with("expect(")) {
            continue;
        }
        let attribute = rest.split(")]").next().unwrap_or_default();
        if !attribute.contains("reason = ") {
            findings.push(Finding::new(
                &file.path,
                at + 1,
                "a lint is switched off without a `reason = \"…\"`",
            ));
        }
    }
    findings
}

fn places(file: &File) -> Vec<Finding> {
    // Cargo writes the name of its index into the lock file itself.
    if file.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        for place in PLACES {
            if stands_alone(line, place) {
                findings.push(Finding::new(
                    &file.path,
                    at + 1,
                    format!("`{place}` is a place outside the project"),
                ));
            }
        }
    }
    findings
}

/// Whether a place is named by itself, not as the end of a longer path.
fn stands_alone(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(offset, _)| {
        let before = line.get(..offset).unwrap_or_default().chars().last();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let check = check(&File::of(path, text));
        check.into_iter().map(|finding| finding.what).collect()
    }

    fn code(text: &str) -> Vec<String> {
        findings("crates/table/src/x.rs", &format!("//! Head.\n{text}\n"))
    }

    #[test]
    fn a_clean_file_has_no_finding() {
        let text =
            "#[allow(\n    dead_code,\n    reason = \"an example\"\n)]\nfn f() {} // crates/work/";
        assert_eq!(code(text), Vec::<String>::new());
    }

    #[test]
    fn a_module_without_a_head_is_found() {
        assert_eq!(findings("crates/x/src/a.rs", "use std::fs;\n").len(), 1);
        assert!(findings("crates/x/src/a/tests.rs", "use super::*;\n").is_empty());
        let after_attribute = "#![no_main]\n//! Head.\n";
        assert!(findings("fuzz/fuzz_targets/a.rs", after_attribute).is_empty());
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(code(&"\n".repeat(MAX_LINES - 2)).is_empty());
        assert_eq!(code(&"\n".repeat(MAX_LINES)).len(), 1);
    }

    #[test]
    fn unfinished_words_are_found() {
        for word in UNFINISHED {
            assert_eq!(code(&format!("// {word} later")).len(), 1, "{word}");
        }
    }

    #[test]
    fn printing_is_found_but_in_tests() {
        let line = format!("{}\"x\");", PRINTING[0]);
        assert_eq!(code(&line).len(), 1);
        assert_eq!(code(&format!("e{line}")).len(), 1);
        assert!(code(&format!("#[cfg(test)]\nmod t {{}}\n{line}")).is_empty());
        assert!(code("writeln!(out)").is_empty());
    }

    #[test]
    fn a_lint_switched_off_without_a_reason_is_found() {
        assert_eq!(code("#[allow(dead_code)]").len(), 1);
        assert_eq!(code("#![allow(dead_code)]").len(), 1);
        assert_eq!(code("#[expect(dead_code)]").len(), 1);
    }

    #[test]
    fn unsafe_code_is_found_but_in_its_rooms() {
        let line = format!("{} {{ read(p) }}", concat!("un", "safe"));
        assert_eq!(code(&line).len(), 1);
        let text = format!("//! Head.\n{line}\n");
        assert!(findings("crates/memory/src/x.rs", &text).is_empty());
        assert!(code("//! forbids unsafe {code}").is_empty());
    }

    #[test]
    fn places_of_one_machine_are_found_in_any_file() {
        for place in PLACES {
            assert_eq!(findings("README.md", &format!("see {place}x")).len(), 1);
        }
        assert!(findings("Cargo.lock", PLACES[0]).is_empty());
    }
}
