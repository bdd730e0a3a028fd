//! The tables that packets are forwarded by: a namespace's mirror, or a
//! file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linux::{Mirror, Namespace, Options, Phase};
use table::row::link::hardware;
use table::{Link, Reader, Writer};

use super::Forward;

/// Reads a file of tables; links that it does not name are made up, by
/// these names. The words of such a file are those of changes, which this
/// crate does not know: the program brings the reader.
pub type ReadTables = fn(&Path, &[&str]) -> Result<Writer>;

/// How long the first listing of a namespace may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tables, kept as long as this.
pub enum Known {
    /// A namespace's.
    Mirrored(Mirror),
    /// A file's.
    File(Box<Writer>),
}

impl Known {
    /// Reads or mirrors what was asked for; ready when it returns. Before a
    /// mirror's thread starts, `give_up` says which rights it has.
    pub fn open(
        asked: &Forward,
        read: ReadTables,
        give_up: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        if let Some(path) = &asked.tables {
            let devices = asked.tun.iter().map(|device| device.link.as_str());
            let links: Vec<&str> = devices.chain(asked.host.as_deref()).collect();
            return read(path, &links).map(|writer| Self::File(Box::new(writer)));
        }
        let namespace = match &asked.netns {
            Some(spec) => Namespace::open(spec),
            None => Namespace::current(),
        };
        let namespace = namespace.context("finding the namespace")?;
        give_up()?;
        let mirror = Mirror::start(namespace, Options::default())
            .context("mirroring the namespace's tables")?;
        match mirror.wait_ready(PATIENCE) {
            Phase::Loading => bail!("the tables were not listed within {PATIENCE:?}"),
            Phase::Ended(why) | Phase::Disconnected(why) => bail!("the mirror ended: {why}"),
            Phase::Live | Phase::Resyncing => Ok(Self::Mirrored(mirror)),
        }
    }

    /// A reader of them.
    pub fn reader(&self) -> Reader {
        match self {
            Self::Mirrored(mirror) => mirror.reader(),
            Self::File(writer) => writer.reader(),
        }
    }

    /// The namespace they are of.
    pub fn namespace(&self) -> Result<Option<Namespace>> {
        Ok(match self {
            Self::Mirrored(mirror) => Some(mirror.namespace()?),
            Self::File(_) => None,
        })
    }
}

/// The names of links that have Ethernet headers, in the order of their
/// indexes.
pub fn ethernet_links(reader: &Reader) -> Vec<String> {
    let tables = reader.snapshot();
    let links = tables.links.iter();
    links
        .filter(|link: &&Arc<Link>| link.hardware == hardware::ETHER)
        .map(|link| link.name.to_string())
        .collect()
}
