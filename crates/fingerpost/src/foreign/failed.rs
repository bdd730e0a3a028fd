//! How a command with another tool's command line ends that did not do what
//! was asked.

use std::io::{self, Write};
use std::process::ExitCode;

/// The status of what is refused by name.
const NOT_BUILT: u8 = 255;

/// What was not done: what is said of it on standard error, and the exit
/// status, which is that of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The exit status.
    pub status: u8,
    /// Without the line's end; empty: it is said already.
    pub text: String,
}

impl Failed {
    /// As the tool says it.
    pub fn new(status: u8, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    /// A word of the tool that is not built here; `instead`: what to do.
    pub fn not_built(tool: &str, word: &str, instead: &str) -> Self {
        let text = format!("{tool}: `{word}` is not built here, and nothing was done: {instead}");
        Self::new(NOT_BUILT, text)
    }

    /// Says it, and gives the exit status.
    pub fn end(&self) -> ExitCode {
        if !self.text.is_empty() {
            // Nobody to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "{}", self.text);
        }
        ExitCode::from(self.status)
    }
}

/// The system's words for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}
