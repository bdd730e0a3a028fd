//! Rules about what lies beside the code.

use super::finding::Finding;
use super::tree::Tree;

/// Files that a visitor looks for.
const EXPECTED: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "deny.toml",
];

/// The two commands that the README opens with.
const COMMANDS: &[&str] = &["cargo run --release -- up", "cargo xtask test"];
/// Lines of the README in which they are found.
const OPENING_LINES: usize = 12;

/// What a decision says, half a page in all; sections begin so ("What was
/// measured", "found" or "considered").
const SECTIONS: &[&str] = &["## Question", "## What was ", "## Choice"];

/// What a file may weigh, fuzz corpora apart.
const MAX_BYTES: u64 = 1 << 20;

/// Checks the documents and the weight of all files.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = EXPECTED
        .iter()
        .filter(|path| tree.get(path).is_none())
        .map(|path| Finding::new(path, 0, "is missing"))
        .collect();
    findings.extend(readme(tree));
    findings.extend(decisions(tree));
    findings.extend(weight(tree));
    findings
}

fn readme(tree: &Tree) -> Vec<Finding> {
    let text = tree.get("README.md").map_or("", |file| &file.text);
    let opening: Vec<&str> = text.lines().take(OPENING_LINES).collect();
    COMMANDS
        .iter()
        .filter(|command| !opening.iter().any(|line| line.contains(*command)))
        .map(|command| {
            let what = format!("does not open with the command `{command}`");
            Finding::new("README.md", 1, what)
        })
        .collect()
}

/// `docs/decisions/NNN-what.md`, no number twice. Gaps are those of work that
/// is under way, or came to nothing.
fn decisions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = Vec::new();
    for file in &tree.files {
        let Some(name) = file.path.strip_prefix("docs/decisions/") else {
            continue;
        };
        let number = name.split_once('-').and_then(|(number, _)| {
            let digits = number.len() == 3 && name.ends_with(".md");
            number.parse::<usize>().ok().filter(|_| digits)
        });
        match number {
            Some(number) => numbers.push(number),
            None => findings.push(Finding::new(
                &file.path,
                0,
                "a decision is named NNN-what.md",
            )),
        }
        for section in SECTIONS {
            if !file.text.lines().any(|line| line.starts_with(section)) {
                let what = format!("a decision has a section `{section}`");
                findings.push(Finding::new(&file.path, 0, what));
            }
        }
    }
    numbers.sort_unstable();
    for pair in numbers.windows(2).filter(|pair| pair[0] == pair[1]) {
        let what = format!("two decisions have the number {:03}", pair[0]);
        findings.push(Finding::new("docs/decisions", 0, what));
    }
    findings
}

fn weight(tree: &Tree) -> impl Iterator<Item = Finding> {
    let heavy = tree
        .files
        .iter()
        .filter(|file| file.len_bytes > MAX_BYTES && !file.path.starts_with("fuzz/corpus/"));
    heavy.map(|file| {
        let what = format!(
            "{} bytes; more than {MAX_BYTES} lies elsewhere",
            file.len_bytes
        );
        Finding::new(&file.path, 0, what)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    const DECISION: &str = "# x\n## Question\n## What was measured\n## Choice\n";

    #[test]
    fn what_is_missing_is_found() {
        let missing = check(&Tree::default());
        assert_eq!(missing.len(), EXPECTED.len() + COMMANDS.len());
    }

    #[test]
    fn the_readme_opens_with_both_commands() {
        let both = format!("# F\n{}\n{}\n", COMMANDS[0], COMMANDS[1]);
        assert!(readme(&Tree::of(&[("README.md", &both)])).is_empty());
        let late = format!("{}{both}", "\n".repeat(OPENING_LINES));
        assert_eq!(readme(&Tree::of(&[("README.md", &late)])).len(), 2);
    }

    #[test]
    fn decisions_are_numbered_and_say_why() {
        let good = ("docs/decisions/001-a.md", DECISION);
        assert!(decisions(&Tree::of(&[good])).is_empty());
        let later = ("docs/decisions/003-b.md", DECISION);
        assert!(decisions(&Tree::of(&[good, later])).is_empty());
        let twice = ("docs/decisions/001-b.md", DECISION);
        assert_eq!(decisions(&Tree::of(&[good, twice])).len(), 1);
        let unnamed = ("docs/decisions/notes.md", DECISION);
        assert_eq!(decisions(&Tree::of(&[unnamed])).len(), 1);
        let bare = ("docs/decisions/001-a.md", "# x\n");
        assert_eq!(decisions(&Tree::of(&[bare])).len(), SECTIONS.len());
    }

    #[test]
    fn a_heavy_file_is_found_but_in_a_corpus() {
        let heavy = |path: &str| {
            let mut file = File::of(path, "");
            file.len_bytes = MAX_BYTES + 1;
            weight(&Tree { files: vec![file] }).count()
        };
        assert_eq!(heavy("docs/film.mp4"), 1);
        assert_eq!(heavy("fuzz/corpus/link/a"), 0);
    }
}
