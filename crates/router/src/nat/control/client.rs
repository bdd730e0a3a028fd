//! `nat show`, `nat clear`, `nat reload`: the other end of the socket.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use serde_json::Value;

use super::request::{Filter, Request, Table};
use super::shown::line;

/// Which translation.
#[derive(Debug, Args)]
pub struct At {
    /// The control socket of the translation (its `--control`)
    #[arg(long, value_name = "PATH", default_value = super::USUAL, value_hint = ValueHint::FilePath)]
    control: PathBuf,
}

/// Show what a translation has
#[derive(Debug, Args)]
pub struct Show {
    /// Of what
    table: Table,
    #[command(flatten)]
    filter: Filter,
    /// Only how many there are
    #[arg(long, conflicts_with_all = ["top", "limit"])]
    count: bool,
    /// The N inside addresses with the most rows
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    top: Option<usize>,
    /// So many rows at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// As JSON, an object a line
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    at: At,
}

/// End flows
#[derive(Debug, Args)]
pub struct Clear {
    #[command(flatten)]
    filter: Filter,
    /// All of them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    at: At,
}

/// Read the rules again
#[derive(Debug, Args)]
pub struct Reload {
    #[command(flatten)]
    at: At,
}

/// Prints rows.
pub fn show(show: &Show) -> anyhow::Result<ExitCode> {
    let request = Request::Show {
        table: show.table,
        filter: show.filter.clone(),
        count: show.count,
        limit: show.limit,
        top: show.top,
    };
    let mut out = io::stdout().lock();
    ask(&show.at.control, &request, &mut |row| {
        match show.json {
            true => writeln!(out, "{row}"),
            false => writeln!(out, "{}", line(&row)),
        }
        .context("writing rows")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Ends flows, and says how many.
pub fn clear(clear: &Clear) -> anyhow::Result<ExitCode> {
    if clear.filter.is_empty() != clear.all {
        bail!("say which flows, or --all");
    }
    let filter = clear.filter.clone();
    ask(&clear.at.control, &Request::Clear { filter }, &mut print)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the rules again.
pub fn reload(reload: &Reload) -> anyhow::Result<ExitCode> {
    ask(&reload.at.control, &Request::Reload, &mut print)?;
    Ok(ExitCode::SUCCESS)
}

fn print(row: Value) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", line(&row)).context("writing the answer")
}

/// The block that an alias port is in, by what runs.
pub fn who(control: &Path, alias: Ipv4Addr, port: u16) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    ask(control, &Request::Who { alias, port }, &mut |row| {
        found.push(row);
        Ok(())
    })?;
    Ok(found)
}

/// Sends a request, and hands the rows of its answer on.
fn ask(
    control: &Path,
    request: &Request,
    sink: &mut dyn FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(control).with_context(|| {
        format!(
            "asking {}: is there a `nat run --control` or `forward --nat-control` of it?",
            control.display()
        )
    })?;
    privileges::give_up().context("giving up privileges")?;
    let mut request = serde_json::to_vec(request)?;
    request.push(b'\n');
    stream.write_all(&request).context("sending the question")?;
    for line in BufReader::new(stream).lines() {
        let row: Value = serde_json::from_str(&line.context("reading the answer")?)?;
        if let Some(error) = row.get("error").and_then(Value::as_str) {
            bail!("{error}");
        }
        if row.get("end").is_some() {
            return Ok(());
        }
        sink(row)?;
    }
    bail!("the answer was cut off: the translation has ended")
}
