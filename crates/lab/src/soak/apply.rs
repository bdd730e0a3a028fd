//! Does what the lines of a run say. Lines of one tool that follow each
//! other go to one process of it, so that changes come as fast as the
//! kernel takes them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::tally::Tally;
use crate::{Child, Netns};

/// Lines given to one process: `ip` keeps the names of links that it has
/// seen as long as it lives.
const BATCH: usize = 16;
/// How long a process may take over them.
const PATIENCE: Duration = Duration::from_secs(120);

/// Octets of what a process complains of that are read; a pipe holds as
/// many.
const MAX_ERRORS: u64 = 64 << 10;

/// Lines for one process: whole, and what it is told of each.
type Batch<'a> = Vec<(&'a str, &'a str)>;

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
    pub(super) fn apply(&self, lines: &[impl AsRef<str>]) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut waiting: Option<(Tool<'_>, Batch<'_>)> = None;
        for text in lines {
            let text = text.as_ref();
            let line = parsed(text);
            if let (Line::Tool(tool, words), Some((same, batch))) = (&line, &mut waiting)
                && tool == same
                && batch.len() < BATCH
            {
                batch.push((text, words));
                continue;
            }
            self.batch(waiting.take(), &mut tally)?;
            match line {
                Line::Tool(tool, words) => waiting = Some((tool, vec![(text, words)])),
                Line::Setting(at, value) => tally.count(text, self.set(at, value)?),
                Line::Signal(signal) => {
                    self.daemon.map_or(Ok(()), |it| it.signal(signal))?;
                    tally.count(text, true);
                }
                Line::Unknown => anyhow::bail!("a line that nobody understands: {line:?}"),
            }
        }
        self.batch(waiting, &mut tally)?;
        Ok(tally)
    }

    fn batch(&self, batch: Option<(Tool<'_>, Batch<'_>)>, tally: &mut Tally) -> Result<()> {
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
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Child::spawn(command)?;
        let mut stdin = process.process().stdin.take().context("its input")?;
        let stderr = process.process().stderr.take().context("its errors")?;
        let words = lines.iter().map(|(_, words)| format!("{words}\n"));
        let text: String = words.collect();
        let text = text.replace("$HERE", self.here.name());
        stdin.write_all(text.replace("$OTHER", self.other.name()).as_bytes())?;
        drop(stdin);
        // They end when the process does, and are few.
        let mut errors = String::new();
        process.wait(PATIENCE)?;
        stderr.take(MAX_ERRORS).read_to_string(&mut errors)?;
        let failed: Vec<usize> = errors.lines().filter_map(failed_line).collect();
        for (at, (text, _)) in (1..).zip(&lines) {
            tally.count(text, !failed.contains(&at));
        }
        Ok(())
    }

    /// Whether it could be set: the link may not be there, nor the setting
    /// in this kernel.
    fn set(&self, at: &str, value: &str) -> Result<bool> {
        Ok(self.here.inside(|| fs::write(at, value))?.is_ok())
    }
}

/// The number of a line that a batch could not do, from 1.
fn failed_line(error: &str) -> Option<usize> {
    let number = error.strip_prefix("Command failed -:")?;
    number.trim().parse().ok()
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
