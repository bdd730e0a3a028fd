//! The other end of the control socket: `router status`, `counters`,
//! `reasons`, and the daemon's question for all of it.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dataplane::xdp::standing::Report;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde_json::Value;
use translation::within::Within;

use super::control::{Asked, Question};
use super::shown;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer at most: 64 ports with all reasons have a tenth.
const ANSWER_BYTES: u64 = 4 << 20;

/// Asks, and prints the answer.
pub fn ask(path: &Path, asked: Asked, is_json: bool) -> Result<ExitCode> {
    let stream = connect(path)?.with_context(|| {
        format!(
            "nobody answers at {}: does `fingerpost router` run?",
            path.display()
        )
    })?;
    privileges::give_up().context("giving up privileges")?;
    let answer =
        answer(&stream, asked, PATIENCE).with_context(|| format!("asking {}", path.display()))?;
    let text = match (is_json, asked) {
        (true, _) | (false, Asked::Report) => format!("{answer}\n"),
        (false, Asked::Status) => shown::status(&answer),
        (false, Asked::Counters) => shown::counters(&answer),
        (false, Asked::Reasons) => shown::reasons(&answer),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .context("writing the answer")?;
    Ok(ExitCode::SUCCESS)
}

/// All that a router tells, for somebody who hands it on; `None` where there
/// is none. Waits for `patience` at most.
pub fn report(path: &Path, patience: Duration) -> Result<Option<Report>> {
    let Some(stream) = connect(path)? else {
        return Ok(None);
    };
    let answer = answer(&stream, Asked::Report, patience)?;
    let report = serde_json::from_value(answer).context("reading the answer")?;
    Ok(Some(report))
}

/// Connects, if somebody listens there who may be believed.
fn connect(path: &Path) -> Result<Option<UnixStream>> {
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let peer = socket_peercred(&stream).context("asking who answers")?;
    if !peer.uid.is_root() && peer.uid != geteuid() {
        bail!(
            "{}: user {} answers there, who is neither root nor this one",
            path.display(),
            peer.uid.as_raw()
        );
    }
    Ok(Some(stream))
}

fn answer(stream: &UnixStream, asked: Asked, patience: Duration) -> Result<Value> {
    let mut within = Within::new(stream, Some(patience));
    let question = serde_json::to_string(&Question { ask: asked })? + "\n";
    within
        .write_all(question.as_bytes())
        .context("sending the question")?;
    let mut line = String::new();
    BufReader::new(within.take(ANSWER_BYTES))
        .read_line(&mut line)
        .context("the router gives no answer")?;
    if !line.ends_with('\n') {
        bail!("the answer was cut off: the router has ended");
    }
    let answer: Value = serde_json::from_str(&line).context("reading the answer")?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        bail!("{error}");
    }
    Ok(answer)
}
