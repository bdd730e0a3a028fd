//! YAML with the lines where things stand. Anchors, tags and keys that are no
//! texts are refused by the reader; what is nested too deep, here: it would
//! be read by a call for each level.

use std::path::Path;

use marked_yaml::types::MarkedMappingNode;
use marked_yaml::{LoaderOptions, Node, parse_yaml_with_options};

use super::draft::{Draft, Place};

/// Brackets, columns before a line, or marks in a row at its beginning.
const MAX_FLOW: usize = 64;
const MAX_COLUMNS: usize = 256;
const MAX_MARKS: usize = 32;

pub(super) const NOT_KNOWN: &str = "it is not known, or its value is not understood";

/// Reads a text whose top is a mapping.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, String> {
    let name = path.display();
    if is_deep(text) {
        return Err(format!("{name}: it is nested too deep"));
    }
    // The reader would take these for the end.
    if text.contains('\0') || is_several(text) {
        return Err(format!("{name}: it is several documents, or no text"));
    }
    let options = LoaderOptions::default().error_on_duplicate_keys(true);
    parse_yaml_with_options(0, text, options).map_err(|error| format!("{name}: {error}"))
}

/// Whether a document follows another, or its end.
fn is_several(text: &str) -> bool {
    let is_mark = |line: &str, mark: &str| {
        let behind = line.strip_prefix(mark);
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\t']))
    };
    let mut has_content = false;
    for line in text.lines() {
        let is_blank = line.trim().is_empty() || line.trim_start().starts_with(['#', '%']);
        if is_mark(line, "...") || has_content && is_mark(line, "---") {
            return true;
        }
        has_content |= !is_blank;
    }
    false
}

fn is_deep(text: &str) -> bool {
    let mut open = 0_usize;
    for line in text.lines() {
        let begun = line.trim_start_matches(' ');
        if line.len() - begun.len() > MAX_COLUMNS {
            return true;
        }
        let marks = begun
            .bytes()
            .take_while(|one| matches!(one, b'-' | b'?' | b':' | b' ' | b'\t'));
        if marks.filter(|one| !matches!(one, b' ' | b'\t')).count() > MAX_MARKS {
            return true;
        }
        for one in line.bytes() {
            match one {
                b'[' | b'{' => open += 1,
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > MAX_FLOW {
                return true;
            }
        }
    }
    false
}

/// The line of a node.
pub(super) fn line(node: &Node) -> usize {
    node.span().start().map_or(1, marked_yaml::Marker::line)
}

/// A text, a number or a switch as it is written; nothing for `null`.
pub(super) fn text(node: &Node) -> Option<&str> {
    let text = node.as_scalar()?.as_str();
    (!matches!(text, "" | "~" | "null")).then_some(text)
}

/// The items of a list; one text alone is a list of one.
pub(super) fn items(node: &Node) -> Option<Vec<&Node>> {
    match node {
        Node::Sequence(items) => Some(items.iter().collect()),
        Node::Scalar(_) => Some(text(node).map(|_| node).into_iter().collect()),
        Node::Mapping(_) => None,
    }
}

/// The texts of a list.
pub(super) fn texts(node: &Node) -> Option<Vec<&str>> {
    items(node)?.into_iter().map(text).collect()
}

/// Hands each key of a mapping over; what is not carried is left.
pub(super) fn each(
    draft: &mut Draft,
    path: &Path,
    map: &MarkedMappingNode,
    of: &mut dyn FnMut(&mut Draft, &str, &Node) -> Option<()>,
) {
    for (key, value) in map.iter() {
        if of(draft, key.as_str(), value).is_none() {
            let at = Place {
                path,
                line: key.span().start().map_or(1, marked_yaml::Marker::line),
            };
            draft.leave(at, key.as_str(), NOT_KNOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let path = Path::new("f");
        parse(path, "a: {b: [1, 2]}\n").unwrap();
        let nested = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
        parse(path, &nested(MAX_FLOW)).unwrap();
        assert!(
            parse(path, &nested(MAX_FLOW + 1))
                .unwrap_err()
                .contains("deep")
        );
        for deep in [
            "a:\n".to_owned() + &" ".repeat(MAX_COLUMNS + 1) + "b: 1\n",
            "- ".repeat(100_000),
            "? ".repeat(100_000),
            "[".repeat(100_000),
        ] {
            assert!(parse(path, &deep).unwrap_err().contains("deep"));
        }
        parse(path, "# one\n---\na: 1\n").unwrap();
        for several in [
            "a: 1\n---\nb: 1\n",
            "---\na: 1\n---\n",
            "a: 1\n...\nb: 1\n",
            "a: 1\0b: 1",
        ] {
            assert!(parse(path, several).unwrap_err().contains("documents"));
        }
        for wrong in [
            "a: 1\na: 2\n",
            "&x a: 1\n",
            "a: !!int 1\n",
            "- a\n",
            "a: [",
            "\u{0}",
        ] {
            assert!(parse(path, wrong).is_err(), "{wrong:?}");
        }
    }
}
