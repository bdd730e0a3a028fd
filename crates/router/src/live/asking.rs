//! `router status`, `counters`, `reasons`: the other end of the socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::At;
use super::control::{Asked, Question};
use super::shown;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks, and prints the answer.
pub fn ask(at: &At, asked: Asked) -> Result<ExitCode> {
    let path = at.control.display();
    let stream = UnixStream::connect(&at.control)
        .with_context(|| format!("asking {path}: does `fingerpost router --on …` run?"))?;
    privileges::give_up().context("giving up privileges")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let question = serde_json::to_string(&Question { ask: asked })?;
    writeln!(&stream, "{question}").context("sending the question")?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .with_context(|| format!("{path} gives no answer"))?;
    if !line.ends_with('\n') {
        bail!("the answer was cut off: the router has ended");
    }
    let answer: Value = serde_json::from_str(&line).context("reading the answer")?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        bail!("{error}");
    }
    let mut out = io::stdout().lock();
    let text = match (at.json, asked) {
        (true, _) => format!("{answer}\n"),
        (false, Asked::Status) => shown::status(&answer),
        (false, Asked::Counters) => shown::counters(&answer),
        (false, Asked::Reasons) => shown::reasons(&answer),
    };
    out.write_all(text.as_bytes())
        .context("writing the answer")?;
    Ok(ExitCode::SUCCESS)
}
