//! Programs that answer measurements on standard input, a line each: ours
//! and a C peer are asked in turn, so that both have the same minutes of the
//! machine.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::host;

/// How long one measurement takes.
const MILLIS: u32 = 200;

/// A program that waits for a question.
pub struct Served {
    name: String,
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Served {
    /// A benchmark of `dataplane`, built first.
    pub fn bench(name: &str) -> Result<Self> {
        let mut cargo = host::cargo();
        cargo.current_dir(host::workspace()?).args([
            "bench",
            "--quiet",
            "--package=fingerpost-dataplane",
            "--bench",
            name,
        ]);
        Self::start(name, cargo)
    }

    /// A peer that was built.
    pub fn peer(program: &Path) -> Result<Self> {
        let name = program.display().to_string();
        Self::start(&name, Command::new(program))
    }

    fn start(name: &str, mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let questions = child.stdin.take();
        let answers = child.stdout.take().context("no standard output")?;
        Ok(Self {
            name: name.to_owned(),
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// Nanoseconds for each operation of what is asked for.
    pub fn ns(&mut self, what: &str) -> Result<f64> {
        let questions = self.questions.as_mut().context("it has ended")?;
        writeln!(questions, "{what} {MILLIS}")?;
        questions.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let value: serde_json::Value = serde_json::from_str(&answer)
            .with_context(|| format!("{} answered {answer:?} to {what}", self.name))?;
        let ns = value.get("ns_per_op").and_then(serde_json::Value::as_f64);
        ns.with_context(|| format!("{} answered {answer:?} to {what}", self.name))
    }

    /// Lets it end.
    pub fn end(mut self) -> Result<()> {
        drop(self.questions.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{}: {status}", self.name);
        }
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Without questions it ends by itself; killed if it does not listen.
        drop(self.questions.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
