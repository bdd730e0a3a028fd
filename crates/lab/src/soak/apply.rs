//! Does what the lines of a run say. Lines of one tool that follow each
//! other go to one process of it, so that changes come as fast as the
//! kernel takes them.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::{Child, Netns};

/// Lines given to one process: `ip` keeps the names of links that it has
/// seen as long as it lives.
const BATCH: usize = 16;
/// How long a process may take over them.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where lines are done: a namespace, another, and the daemon in the first.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub here: &'a Netns,
    pub other: &'a Netns,
    pub daemon: Option<&'a Child>,
}

/// What a line asks for.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    /// A tool, whether elsewhere, for IPv6 alone, and the words.
    Tool(Tool<'a>, &'a str),
    /// A file below `/proc/sys` is written.
    Setting(&'a str, &'a str),
    Signal(Signal),
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Tool<'a> {
    name: &'a str,
    elsewhere: bool,
    v6: bool,
}

impl Stage<'_> {
    /// Does the lines, in their order. Those that are refused are part of
    /// the game.
    pub(super) fn apply(&self, lines: &[impl AsRef<str>]) -> Result<()> {
        let mut waiting: Option<(Tool<'_>, Vec<&str>)> = None;
        for line in lines {
            let line = parsed(line.as_ref());
            if let (Line::Tool(tool, words), Some((same, batch))) = (&line, &mut waiting)
                && tool == same
                && batch.len() < BATCH
            {
                batch.push(words);
                continue;
            }
            self.batch(waiting.take())?;
            match line {
                Line::Tool(tool, words) => waiting = Some((tool, vec![words])),
                Line::Setting(at, value) => self.set(at, value)?,
                Line::Signal(signal) => self.daemon.map_or(Ok(()), |it| it.signal(signal))?,
                Line::Unknown => anyhow::bail!("a line that nobody understands: {line:?}"),
            }
        }
        self.batch(waiting)
    }

    fn batch(&self, batch: Option<(Tool<'_>, Vec<&str>)>) -> Result<()> {
        let Some((tool, lines)) = batch else {
            return Ok(());
        };
        let netns = if tool.elsewhere {
            self.other
        } else {
            self.here
        };
        let mut command = netns.command(tool.name);
        command.args(tool.v6.then_some("-6"));
        command.args(["-force", "-batch", "-"]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Child::spawn(command)?;
        let mut stdin = process.process().stdin.take().context("its input")?;
        let text = lines.join("\n") + "\n";
        let text = text.replace("$HERE", self.here.name());
        stdin.write_all(text.replace("$OTHER", self.other.name()).as_bytes())?;
        drop(stdin);
        process.wait(PATIENCE)?;
        Ok(())
    }

    fn set(&self, at: &str, value: &str) -> Result<()> {
        // The link may not be there, nor the setting in this kernel.
        let _ = self.here.inside(|| fs::write(at, value))?;
        Ok(())
    }
}

fn parsed(line: &str) -> Line<'_> {
    match line {
        "kill -STOP $DAEMON" => return Line::Signal(Signal::STOP),
        "kill -CONT $DAEMON" => return Line::Signal(Signal::CONT),
        _ => {}
    }
    if let Some((value, at)) = line
        .strip_prefix("echo ")
        .and_then(|rest| rest.split_once(" > "))
    {
        return Line::Setting(at, value);
    }
    let Some((name @ ("ip" | "bridge"), rest)) = line.split_once(' ') else {
        return Line::Unknown;
    };
    let (elsewhere, rest) = without(rest, "-n $OTHER ");
    let (v6, words) = without(rest, "-6 ");
    let tool = Tool {
        name,
        elsewhere,
        v6,
    };
    Line::Tool(tool, words)
}

/// Whether a text begins so, and the rest.
fn without<'a>(text: &'a str, begin: &str) -> (bool, &'a str) {
    text.strip_prefix(begin)
        .map_or((false, text), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_made_is_understood() {
        for line in super::super::lines(3, 20_000) {
            assert_ne!(parsed(&line), Line::Unknown, "{line}");
            // A shell and `ip -batch` read it alike.
            assert!(!line.contains(';') && !line.contains('&'), "{line}");
        }
        let tool = Tool {
            name: "ip",
            elsewhere: true,
            v6: false,
        };
        let line = parsed("ip -n $OTHER link set v0 netns $HERE");
        assert_eq!(line, Line::Tool(tool, "link set v0 netns $HERE"));
    }
}
