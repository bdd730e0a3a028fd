//! The daemon as `top` asks it: three questions over its control socket,
//! connected anew each time, so that a restarted daemon is found again.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result};
use linux::Namespace;
use serve::control::client;
use serve::control::protocol::Ask;
use serve::status::Status;
use view::{Filter, Format, Object, Output, Question};

use super::sample::Link;
use crate::ask::{self, From};

/// Where a daemon is found.
#[derive(Debug, Clone)]
pub enum Daemon {
    /// Listening here.
    At(PathBuf),
    /// The one that mirrors the namespace with this inode.
    Of(u64),
}

impl Daemon {
    /// The daemon that is meant. Its namespace is not held open.
    pub fn of(from: &From) -> Result<Self> {
        Ok(match (&from.socket, &from.netns) {
            (Some(socket), _) => Self::At(socket.clone()),
            (None, Some(spec)) => Self::Of(Namespace::open(spec)?.inode()),
            (None, None) => Self::Of(Namespace::current()?.inode()),
        })
    }

    /// A connection, or a message that says what to do.
    fn connect(&self) -> Result<UnixStream> {
        match self {
            Self::At(socket) => client::connect(socket)
                .with_context(|| socket.display().to_string())?
                .with_context(|| format!("no daemon listens at {}", socket.display())),
            Self::Of(inode) => ask::daemon_of(*inode).with_context(|| {
                format!(
                    "no daemon mirrors this namespace (inode {inode}); `fingerpost up` starts one"
                )
            }),
        }
    }

    /// How it is.
    pub fn status(&self) -> Result<Status> {
        let mut text = Vec::new();
        client::ask(&self.connect()?, Ask::Status { json: true }, &mut text)?;
        serde_json::from_slice(&text).context("the daemon's status cannot be read")
    }

    /// Its links with their counters. Waits up to some seconds for counters
    /// that are fresh.
    pub fn links(&self) -> Result<Vec<Link>> {
        let question = Question {
            object: Object::Link,
            filter: Filter::default(),
            output: Output {
                format: Format::Ndjson,
                fields: ["ifindex", "ifname", "operstate", "stats64"]
                    .map(str::to_owned)
                    .into(),
                statistics: true,
                ..Output::default()
            },
        };
        let mut text = Vec::new();
        client::ask(
            &self.connect()?,
            Ask::Question(Box::new(question)),
            &mut text,
        )?;
        serde_json::Deserializer::from_slice(&text)
            .into_iter()
            .collect::<Result<_, _>>()
            .context("the daemon's links cannot be read")
    }

    /// Writes a table's changes to `out`, until the daemon goes.
    pub fn watch(&self, object: Object, filter: Filter, out: &mut impl Write) -> Result<()> {
        let question = Question {
            object,
            filter,
            output: Output::default(),
        };
        client::ask(&self.connect()?, Ask::Watch(Box::new(question)), out)?;
        Ok(())
    }
}
