//! `nat show`, `nat clear`, `nat reload`: the other end of the socket.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use serde_json::Value;

use translation::client::Connection;
use translation::request::{Filter, Request, Table};

use super::shown::line;

/// Which translation.
#[derive(Debug, Args)]
pub struct At {
    /// The control socket of the translation (its `--control`)
    #[arg(long, value_name = "PATH", default_value = translation::USUAL, value_hint = ValueHint::FilePath)]
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
    /// The N inside addresses with the most rows; of subscribers those with
    /// the most sessions
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
        after: None,
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
    let connection = Connection::open(control)?;
    privileges::give_up().context("giving up privileges")?;
    connection.ask(request, None, sink)?;
    Ok(())
}
