//! The socket, and a thread for each client.
//!
//! What is asked says who talks to whom, so only root and the user who runs
//! the translation are answered; places are kept for root.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde_json::{Value, json};
use tracing::warn;

use super::pieces::{Asking, Jobs, Place, Rows, Wanted, pair};
use super::request::{Request, Table};
use super::rows;
use crate::control_socket::{self, Refusals};

/// Clients at a time, and of them those that only root takes.
const CLIENTS: usize = 16;
const OF_ROOT: usize = 4;
/// Bytes of a request at most.
const REQUEST_BYTES: u64 = 64 << 10;
/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client may take nothing of its answer.
const STALLED: Duration = Duration::from_secs(60);
/// Inside addresses that are counted for the top ones at most.
const COUNTED: usize = 4 << 20;

const REFUSALS: Refusals = Refusals {
    other: "there is something else",
    answered: "another translation answers there",
};

/// The socket's file, which goes with this.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the socket; its thread answers from then on.
pub fn open(path: &Path) -> anyhow::Result<(Door, Jobs)> {
    let (asking, jobs) = pair()?;
    let listener = control_socket::bind(path, REFUSALS)
        .with_context(|| format!("opening {}", path.display()))?;
    let door = Door {
        path: path.to_owned(),
    };
    thread::Builder::new()
        .name("nat-control".to_owned())
        .spawn(move || accept(&listener, &asking))
        .context("starting the control socket's thread")?;
    Ok((door, jobs))
}

fn accept(listener: &UnixListener, asking: &Asking) {
    // Clients' threads have no more than this one.
    if let Err(error) = privileges::give_up() {
        warn!("the control socket: giving up privileges: {error}");
    }
    let clients = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        let (Ok(client), Ok(asking)) = (client, asking.again()) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let Ok(peer) = socket_peercred(&client) else {
            continue;
        };
        let is_root = peer.uid.is_root();
        let most = if is_root { CLIENTS } else { CLIENTS - OF_ROOT };
        let refusal = match (
            is_root || peer.uid == geteuid(),
            clients.load(Ordering::Relaxed) < most,
        ) {
            (false, _) => Some("only root and who runs the translation are answered"),
            (true, false) => Some("there are too many clients"),
            (true, true) => None,
        };
        if let Some(refusal) = refusal {
            let mut client = client;
            let _ = client.set_nonblocking(true);
            let _ = writeln!(client, "{}", json!({"error": refusal}));
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let leaving = Leaving(Arc::clone(&clients));
        let spawned = thread::Builder::new()
            .name("nat-client".to_owned())
            .spawn(move || {
                let _leaving = leaving;
                serve(client, asking);
            });
        if let Err(error) = spawned {
            warn!("a client's thread: {error}");
        }
    }
}

/// A client's place, given back when it goes.
struct Leaving(Arc<AtomicUsize>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers one request. A client that goes away ends it.
fn serve(client: UnixStream, mut asking: Asking) {
    let answered = answer(&client, &mut asking);
    if let Err(error) = answered {
        let mut client = client;
        let _ = writeln!(client, "{}", json!({"error": format!("{error:#}")}));
    }
}

fn answer(client: &UnixStream, asking: &mut Asking) -> anyhow::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(STALLED))?;
    let mut line = Vec::new();
    let mut bounded = BufReader::new(client.take(REQUEST_BYTES));
    let read = bounded.read_until(b'\n', &mut line);
    read.context("reading the request")?;
    if line.last() != Some(&b'\n') {
        bail!("the request has no end, or more than {REQUEST_BYTES} bytes");
    }
    let request = serde_json::from_slice(&line).context("reading the request")?;
    let mut out = BufWriter::new(client);
    match request {
        Request::Show {
            table,
            filter,
            count,
            limit,
            top,
        } => {
            let mut show = Show {
                table,
                limit: limit.unwrap_or(usize::MAX),
                is_counted: count,
                count: 0,
                top,
                by_inside: HashMap::new(),
            };
            show.run(asking, &filter, &mut out)?;
        }
        Request::Clear { filter } => {
            let mut ended = 0;
            let mut place = Some(Place::default());
            while let Some(from) = place {
                let piece = asking.ask(Wanted::Clear(filter.clone()), from)?;
                if let Rows::Ended(more) = piece.rows {
                    ended += more;
                }
                place = piece.next;
            }
            writeln!(out, "{}", json!({"ended": ended}))?;
        }
        Request::Reload => match asking.ask(Wanted::Reload, Place::default())?.rows {
            Rows::Reloaded(Ok(())) => writeln!(out, "{}", json!({"reloaded": true}))?,
            Rows::Reloaded(Err(error)) => bail!("the rules stay as they were: {error}"),
            _ => bail!("no answer"),
        },
        Request::Who { alias, port } => {
            let mut place = Some(Place::default());
            while let Some(from) = place {
                let piece = asking.ask(Wanted::Who(alias, port), from)?;
                place = piece.next;
                if let Rows::Blocks(found) = piece.rows {
                    for block in &found {
                        writeln!(out, "{}", rows::block(block))?;
                    }
                }
            }
        }
    }
    // So that an answer that was cut off is told from a whole one.
    writeln!(out, "{}", json!({"end": true}))?;
    out.flush().context("writing the answer")
}

/// A table that is shown.
struct Show {
    table: Table,
    limit: usize,
    is_counted: bool,
    count: usize,
    top: Option<usize>,
    by_inside: HashMap<IpAddr, u64>,
}

impl Show {
    fn run(
        &mut self,
        asking: &mut Asking,
        filter: &super::request::Filter,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        if let Some(stray) = filter.stray(self.table) {
            bail!("{stray} is of no use here: these rows have no such thing");
        }
        let mut place = Some(Place::default());
        while let Some(from) = place {
            let piece = asking.ask(Wanted::Rows(self.table), from)?;
            place = piece.next;
            for (inside, row) in rows::meant(&piece.rows, filter) {
                if !self.take(inside, &row, out)? {
                    place = None;
                    break;
                }
            }
        }
        if self.is_counted {
            writeln!(out, "{}", json!({"count": self.count}))?;
        }
        self.write_top(out)
    }

    /// Whether more are wanted.
    fn take(
        &mut self,
        inside: Option<IpAddr>,
        row: &Value,
        out: &mut impl Write,
    ) -> anyhow::Result<bool> {
        if self.is_counted {
            self.count += 1;
            return Ok(true);
        }
        if self.top.is_some() {
            let inside = inside.ok_or_else(|| anyhow!("these rows have no inside address"))?;
            if self.by_inside.len() >= COUNTED && !self.by_inside.contains_key(&inside) {
                bail!("more than {COUNTED} inside addresses: narrow it down by --inside");
            }
            *self.by_inside.entry(inside).or_default() += 1;
            return Ok(true);
        }
        if self.count >= self.limit {
            return Ok(false);
        }
        self.count += 1;
        writeln!(out, "{row}")?;
        // Else the rest of the table would be looked through for one more.
        Ok(self.count < self.limit)
    }

    fn write_top(&mut self, out: &mut impl Write) -> anyhow::Result<()> {
        let Some(top) = self.top else {
            return Ok(());
        };
        let mut all: Vec<(IpAddr, u64)> = self.by_inside.drain().collect();
        all.sort_unstable_by_key(|(inside, count)| (std::cmp::Reverse(*count), *inside));
        for (inside, count) in all.into_iter().take(top) {
            writeln!(out, "{}", json!({"inside": inside, "rows": count}))?;
        }
        Ok(())
    }
}
