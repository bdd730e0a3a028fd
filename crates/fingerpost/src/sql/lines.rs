//! Statements out of lines: each ends with a `;` at a line's end. From
//! standard input where it is no terminal; for the shell as well.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use super::Asker;
use crate::ask;

/// Octets of a statement at most: no daemon takes more.
const MAX_STATEMENT: usize = 64 << 10;

/// Lines of a statement that is not at its end.
#[derive(Debug, Default)]
pub(super) struct Lines(String);

impl Lines {
    /// Whether a statement has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes a line; the statement that ends with it.
    pub(super) fn take(&mut self, line: &str) -> Result<Option<String>> {
        if self.0.len() + line.len() > MAX_STATEMENT {
            self.0.clear();
            bail!("a statement is longer than {} KiB", MAX_STATEMENT >> 10);
        }
        self.0.push_str(line);
        self.0.push('\n');
        let is_whole = line.trim_end().ends_with(';');
        Ok(is_whole.then(|| std::mem::take(&mut self.0)))
    }

    /// What is there, where no more lines come.
    pub(super) fn rest(self) -> Option<String> {
        (!self.is_empty()).then_some(self.0)
    }
}

/// Answers the statements of standard input, until one fails.
pub(super) fn run(asker: &Asker, out: &mut impl Write) -> Result<ExitCode> {
    let mut lines = Lines::default();
    let mut ended = ExitCode::SUCCESS;
    let mut answer = |statement: &str| -> Result<()> {
        if let Some(why) = asker.ask(statement, out)? {
            ended = ask::ended(Some(why));
        }
        Ok(())
    };
    let mut input = io::stdin().lock();
    let mut line = String::new();
    loop {
        line.clear();
        let mut limited = io::Read::take(&mut input, MAX_STATEMENT as u64 + 1);
        if limited.read_line(&mut line).context("standard input")? == 0 {
            break;
        }
        if let Some(statement) = lines.take(line.trim_end_matches('\n'))? {
            answer(&statement)?;
        }
    }
    if let Some(statement) = lines.rest() {
        answer(&statement)?;
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_goes_on_to_its_semicolon() {
        let mut lines = Lines::default();
        assert_eq!(lines.take("select ';' as x").unwrap(), None);
        assert!(!lines.is_empty());
        let whole = lines.take("from links; ").unwrap();
        assert_eq!(whole.as_deref(), Some("select ';' as x\nfrom links; \n"));
        assert_eq!(lines.take("select 1").unwrap(), None);
        assert_eq!(lines.rest().as_deref(), Some("select 1\n"));
        let mut lines = Lines::default();
        assert_eq!(lines.take(&"x".repeat(MAX_STATEMENT - 1)).unwrap(), None);
        assert!(lines.take("yy").is_err());
        assert!(lines.is_empty(), "and goes on");
        assert_eq!(
            lines.take("select 1;").unwrap().as_deref(),
            Some("select 1;\n")
        );
        assert_eq!(lines.rest(), None);
    }
}
