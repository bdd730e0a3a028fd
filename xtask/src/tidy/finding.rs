//! What a rule finds. Called by the rules.

/// A rule that is broken somewhere.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// File, from the workspace's directory.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}
