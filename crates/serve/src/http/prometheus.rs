//! Prometheus' text format (0.0.4): heads, samples, labels.

use std::fmt::{Display, Write as _};

/// The head of a family.
pub fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A label's value.
pub fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

/// A sample with the labels that have a value.
pub fn labelled(
    out: &mut String,
    name: &str,
    labels: &[(&str, Option<&str>)],
    value: impl Display,
) {
    out.push_str(name);
    let mut open = '{';
    for (label, text) in labels {
        if let Some(text) = text {
            out.push(open);
            out.push_str(label);
            out.push_str("=\"");
            escape(out, text);
            out.push('"');
            open = ',';
        }
    }
    if open == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}
