//! A peer's program, which keeps its table and measures when it is asked.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// A running peer.
pub struct Peer {
    pub name: &'static str,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What making its table took, and its memory.
    pub build_ms: f64,
    pub heap_bytes: f64,
}

impl Peer {
    /// Starts a peer with its routes and the streams it will be asked for.
    pub fn start(program: &Path, name: &'static str, files: &[PathBuf]) -> Result<Self> {
        let mut child = Command::new(program)
            .arg(name)
            .args(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let questions = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut peer = Self {
            name,
            child,
            questions,
            answers,
            build_ms: 0.0,
            heap_bytes: 0.0,
        };
        let made = peer.answer()?;
        peer.build_ms = made["build_ms"].as_f64().context("no build_ms")?;
        peer.heap_bytes = made["heap_bytes"].as_f64().context("no heap_bytes")?;
        Ok(peer)
    }

    /// ns for each address of a stream.
    pub fn lookup(&mut self, stream: usize, batch: usize, millis: u64) -> Result<f64> {
        self.ask(&format!("lookup {stream} {batch} {millis}"))
    }

    /// ns for each of so many withdrawals and announcements of one route.
    pub fn change(&mut self, count: usize) -> Result<f64> {
        self.ask(&format!("change {count}"))
    }

    /// A sum over the answers for a stream, as [`sum`] makes it.
    pub fn check(&mut self, stream: usize) -> Result<u64> {
        writeln!(self.questions, "check {stream}")?;
        self.answer()?["sum"].as_u64().context("no sum")
    }

    fn ask(&mut self, question: &str) -> Result<f64> {
        writeln!(self.questions, "{question}")?;
        self.answer()?["ns_per_op"].as_f64().context("no ns_per_op")
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{} said {line:?}", self.name))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A sum over answers in order, as the peers make it.
pub fn sum(answers: impl Iterator<Item = u16>) -> u64 {
    answers.fold(0, |sum, answer| {
        (sum ^ u64::from(answer)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Writes records of bytes.
pub fn write<T: AsRef<[u8]>>(file: &Path, records: impl Iterator<Item = T>) -> Result<PathBuf> {
    let mut out = BufWriter::new(File::create(file)?);
    for record in records {
        out.write_all(record.as_ref())?;
    }
    out.flush()?;
    Ok(file.to_path_buf())
}
