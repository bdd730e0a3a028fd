//! Questions: to the daemon of the namespace where one runs, else to the
//! kernel.

mod joined;

use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail};
use linux::Namespace;
use view::Format;

use crate::arp;
use crate::cli::From;
use crate::control::protocol::Ask;
use crate::control::{client, paths};
use crate::direct::{self, route_get};
use crate::ifconfig;
use joined::Joined;

/// Octets gathered before they are written.
const OUTPUT_BYTES: usize = 64 << 10;

/// Asks, and writes the answer.
pub fn run(ask: Ask, from: &From, out: &mut impl Write) -> Result<()> {
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, out);
    if let Some(socket) = &from.socket {
        let daemon = client::connect(socket)
            .with_context(|| socket.display().to_string())?
            .with_context(|| format!("no daemon listens at {}", socket.display()))?;
        client::ask(&daemon, ask, &mut out)?;
    } else if from.all_netns {
        every_namespace(&ask, from, &mut out)?;
    } else {
        let namespace = match &from.netns {
            Some(spec) => Namespace::open(spec)?,
            None => Namespace::current()?,
        };
        one_namespace(ask, &namespace, from.direct, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Asks about a namespace: its daemon, if there is one and it is not to be
/// `direct`, else the kernel. Gives the number of rows.
pub fn one_namespace(
    ask: Ask,
    namespace: &Namespace,
    direct: bool,
    out: &mut impl Write,
) -> Result<u64> {
    let daemon = if direct {
        None
    } else {
        daemon_of(namespace.inode())
    };
    match (daemon, ask) {
        (Some(daemon), ask) => Ok(client::ask(&daemon, ask, out)?.rows),
        (None, Ask::Question(question)) => direct::question(&question, namespace, out),
        (None, Ask::RouteGet(question)) => route_get::answer(&question, namespace, out),
        (None, Ask::Watch(question)) => direct::watch(&question, namespace, out),
        (None, Ask::Arp(question)) => arp::direct(&question, namespace, None, out),
        (None, Ask::Ifconfig(question)) => ifconfig::direct(&question, namespace, out),
        (None, Ask::Status { .. }) => bail!(
            "no daemon mirrors this namespace (inode {}); `fingerpost up` starts one",
            namespace.inode()
        ),
    }
}

/// The daemon that mirrors the namespace with an inode, if one can be asked.
pub fn daemon_of(inode: u64) -> Option<UnixStream> {
    paths::directories().iter().find_map(|directory| {
        let socket = paths::socket(directory, inode);
        client::connect(&socket).unwrap_or_else(|error| {
            // Not for this user: the kernel answers as well.
            tracing::debug!("{}: {error}", socket.display());
            None
        })
    })
}

/// Asks about all named namespaces, one after the other, and makes one
/// answer of theirs.
fn every_namespace(ask: &Ask, from: &From, out: &mut impl Write) -> Result<()> {
    let wanted = match ask {
        Ask::Question(question) => question.output.format,
        Ask::Status { json: true } => Format::Ndjson,
        Ask::Status { json: false } => Format::Text,
        Ask::RouteGet(get) => get.output.format,
        Ask::Watch(_) => bail!("--watch looks at one namespace: name it with --netns"),
        Ask::Arp(_) | Ask::Ifconfig(_) => {
            bail!("arp and ifconfig list one namespace: name it with --netns")
        }
    };
    let counts = matches!(ask, Ask::Question(question) if question.output.count);
    let mut rows = 0;
    let mut joined = Joined::new(wanted, &mut *out);
    for name in Namespace::names() {
        let namespace = match Namespace::open(&name) {
            Ok(namespace) => namespace,
            // Deleted since the names were listed.
            Err(_) if !Namespace::names().contains(&name) => continue,
            Err(error) => return Err(error.into()),
        };
        let ask = of_namespace(ask.clone(), &name);
        joined.next();
        let answered = if counts {
            one_namespace(ask, &namespace, from.direct, &mut io::sink())
        } else {
            one_namespace(ask, &namespace, from.direct, &mut joined)
        };
        rows += answered.with_context(|| format!("namespace {name}"))?;
    }
    if counts {
        writeln!(out, "{rows}")?;
    } else {
        joined.finish()?;
    }
    Ok(())
}

/// The same question with the namespace's name on each row, in a format
/// whose answers can follow each other.
fn of_namespace(mut ask: Ask, name: &str) -> Ask {
    let output = match &mut ask {
        Ask::Question(question) => Some(&mut question.output),
        Ask::RouteGet(get) => Some(&mut get.output),
        Ask::Watch(_) | Ask::Arp(_) | Ask::Ifconfig(_) | Ask::Status { .. } => None,
    };
    if let Some(output) = output {
        output.netns = Some(name.to_owned());
        if output.format == Format::Json && !output.count {
            output.format = Format::Ndjson;
        }
    }
    ask
}
