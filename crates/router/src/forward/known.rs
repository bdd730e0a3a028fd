//! The tables that packets are forwarded by: a namespace's mirror, or a
//! file; with their own routes, or with those of zebra or of BGP tables.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dataplane::fib_sync::Taken;
use feed::fpm::Forwarded;
use feed::{Door, Feed, FpmFeed, Server};
use linux::{Mirror, Namespace, Options, Phase};
use table::row::link::hardware;
use table::{Limits, Link, Reader, Source, Writer};

use super::Forward;

/// Reads a file of tables; links that it does not name are made up, by
/// these names.
pub type ReadTables = fn(&Path, &[&str]) -> Result<Writer>;

/// Opens files of BGP tables, to read the routes of a peer, or the best.
pub type OpenRoutes = fn(&[PathBuf], Option<&str>) -> Result<ReadRoutes>;

/// Reads what was opened, to the end.
pub type ReadRoutes = Box<dyn FnOnce() -> Result<Box<dyn Source>>>;

/// Who reads files. Their words are those of changes and of replays, which
/// this crate does not know: the program brings the readers.
#[derive(Debug, Clone, Copy)]
pub struct Readers {
    /// Of `--tables`.
    pub tables: ReadTables,
    /// Of `--routes`.
    pub routes: OpenRoutes,
}

/// How long the first listing of a namespace may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the routes of `--fpm` are called.
const FEED: &str = "frr";

/// Tables, kept as long as this.
pub struct Known {
    own: Own,
    routes: Option<Routes>,
}

/// Links, neighbours, addresses, rules, and routes.
enum Own {
    /// A namespace's.
    Mirrored(Mirror),
    /// A file's.
    File(Box<Writer>),
}

/// Routes in the place of those.
enum Routes {
    /// What zebra tells.
    Fed { reader: Reader, server: Server },
    /// A file's.
    Read(Box<dyn Source>),
}

impl Known {
    /// Reads or mirrors what was asked for; ready when it returns. Before a
    /// thread starts, `give_up` says which rights it has.
    pub fn open(
        asked: &Forward,
        read: &Readers,
        give_up: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let namespace = match (&asked.tables, &asked.netns) {
            (Some(_), _) => None,
            (None, Some(spec)) => Some(Namespace::open(spec)),
            (None, None) => Some(Namespace::current()),
        };
        let namespace = namespace.transpose().context("finding the namespace")?;
        let door = asked.fpm.map(|address| door(address, namespace.as_ref()));
        let door = door.transpose()?;
        // Opened, and their beginnings looked at, with the rights of now; read
        // without.
        let files = match asked.routes.as_slice() {
            [] => None,
            files => Some((read.routes)(files, asked.source.as_deref())?),
        };
        let own = match (&asked.tables, namespace) {
            (None, None) => bail!("neither a file of tables nor a namespace was asked for"),
            (None, Some(namespace)) => Own::Mirrored(mirrored(namespace, give_up)?),
            (Some(path), _) => {
                let devices = asked.tun.iter().map(|device| device.link.as_str());
                let links: Vec<&str> = devices.chain(asked.host.as_deref()).collect();
                let writer = (read.tables)(path, &links)?;
                give_up()?;
                Own::File(Box::new(writer))
            }
        };
        let routes = match (door, files) {
            (Some(door), _) => Some(own.fed(door)?),
            (None, None) => None,
            (None, Some(read)) => Some(Routes::Read(read()?)),
        };
        Ok(Self { own, routes })
    }

    /// A reader of links, neighbours, addresses and rules, and of routes.
    pub fn reader(&self) -> Reader {
        match &self.own {
            Own::Mirrored(mirror) => mirror.reader(),
            Own::File(writer) => writer.reader(),
        }
    }

    /// A reader of the routes that take the place of those.
    pub fn routes(&self) -> Option<Reader> {
        self.routes.as_ref().map(|routes| match routes {
            Routes::Fed { reader, .. } => reader.clone(),
            Routes::Read(source) => source.reader(),
        })
    }

    /// How those routes are, and how many of them had no place.
    pub fn routes_state(&self) -> Option<String> {
        let reader = self.routes()?;
        let status = match self.routes.as_ref()? {
            Routes::Fed { .. } => {
                let all = self.reader().snapshot();
                let feed = all.owners().find(|owner| owner.name() == FEED)?;
                feed.status()
            }
            Routes::Read(source) => source.status(),
        };
        let refused = reader.snapshot().refused.by_table();
        let refused: u64 = refused.into_iter().map(|(_, refused)| refused).sum();
        let mut state = status.in_words();
        if let Some(feed) = &status.feed {
            let (taken, not) = (feed.acknowledged, feed.acknowledged_refused);
            state += &format!("; {taken} acknowledged, {not} as not forwarded");
        }
        if refused > 0 {
            state += &format!("; {refused} rows had no place");
        }
        Some(state)
    }

    /// Has zebra told what became of its routes here.
    pub fn acknowledge(&self, taken: Taken) {
        if let Some(Routes::Fed { server, .. }) = &self.routes {
            let Taken {
                seen,
                tables,
                refused,
            } = taken;
            let news = Forwarded {
                seen,
                tables,
                refused,
            };
            server.forwarded(FEED, news);
        }
    }

    /// The namespace they are of.
    pub fn namespace(&self) -> Result<Option<Namespace>> {
        Ok(match &self.own {
            Own::Mirrored(mirror) => Some(mirror.namespace()?),
            Own::File(_) => None,
        })
    }
}

impl Own {
    /// Has zebra's routes stand beside these.
    fn fed(&self, door: Door) -> Result<Routes> {
        let (feeders, reader) = match self {
            Self::Mirrored(mirror) => (mirror.feeders(), mirror.reader()),
            Self::File(writer) => (writer.feeders(), writer.reader()),
        };
        let feeder = feeders.join(FEED, Limits::default())?;
        let reader = reader.of(FEED).context("nobody feeds routes")?;
        let feed = FpmFeed {
            door,
            feeder,
            is_forwarded: true,
            tape: None,
        };
        let server = Server::start(vec![Feed::Fpm(feed)]);
        Ok(Routes::Fed {
            reader,
            server: server.context("starting the feed's thread")?,
        })
    }
}

/// Where zebra connects: in the namespace whose tables are used.
fn door(address: SocketAddr, namespace: Option<&Namespace>) -> Result<Door> {
    let open = || Door::open(address, &[]);
    let door = match namespace {
        Some(namespace) => namespace.run(open).context("entering the namespace")?,
        None => open(),
    };
    door.with_context(|| format!("cannot listen for zebra at {address}"))
}

fn mirrored(namespace: Namespace, give_up: impl FnOnce() -> Result<()>) -> Result<Mirror> {
    give_up()?;
    let mirror =
        Mirror::start(namespace, Options::default()).context("mirroring the namespace's tables")?;
    match mirror.wait_ready(PATIENCE) {
        Phase::Loading => bail!("the tables were not listed within {PATIENCE:?}"),
        Phase::Ended(why) | Phase::Disconnected(why) => bail!("the mirror ended: {why}"),
        Phase::Live | Phase::Resyncing => Ok(mirror),
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
