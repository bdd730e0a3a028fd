//! The feeds of routing daemons: their doors, which are open as long as the
//! daemon runs, and the mirror that their rows stand beside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use anyhow::{Context, Result, bail};
use feed::{Door, Feed, FpmFeed, Limits, Server, StationFeed};
use linux::Mirror;

use super::Up;
use super::mirrored::Mirrored;
use super::taped::Taped;
use crate::config::feed::Kind;
use crate::config::{self, Config};

/// The feed that `--fpm` makes or moves.
const FPM: &str = "frr";
/// The one that `--bmp` does.
const BMP: &str = "bmp";

/// All feeds. Dropped, they end.
#[derive(Debug, Default)]
pub struct Feeds {
    wanted: BTreeMap<String, config::Feed>,
    doors: Vec<(String, Door)>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    mirror: Weak<Mirror>,
    server: Server,
}

impl Feeds {
    /// Opens their doors: before rights are given up.
    pub fn open(up: &Up, config: &Config) -> Result<Self> {
        let wanted = wanted(up, config)?;
        let mut doors = Vec::new();
        for (name, feed) in &wanted {
            let door =
                Door::open(feed.listen, &feed.peers).with_context(|| cannot_listen(name, feed))?;
            doors.push((name.clone(), door));
        }
        Ok(Self {
            wanted,
            doors,
            running: None,
        })
    }

    /// Where each of a kind is waited for.
    pub fn listening(&self, kind: Kind) -> impl Iterator<Item = (&str, SocketAddr)> {
        let is_of = move |name: &str| self.wanted.get(name).is_some_and(|feed| feed.kind == kind);
        let doors = self.doors.iter().filter(move |(name, _)| is_of(name));
        doors.map(|(name, door)| (name.as_str(), door.address()))
    }

    /// Has their rows stand beside those of the daemon's own namespace, or
    /// of the first that it mirrors. Where that mirror is another than
    /// before the feeds begin anew: their peers connect again.
    pub fn follow(&mut self, namespaces: &[Mirrored]) -> Result<()> {
        let own = namespaces.iter().find(|one| one.spec.is_none());
        let Some(beside) = own
            .or(namespaces.first())
            .filter(|_| !self.doors.is_empty())
        else {
            self.running = None;
            return Ok(());
        };
        let mirror = beside.mirror();
        let is_same = |running: &Running| running.mirror.as_ptr() == Arc::as_ptr(mirror);
        if self.running.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        self.running = None;
        let mut feeds = Vec::new();
        for (name, door) in &self.doors {
            let Some(wanted) = self.wanted.get(name) else {
                continue;
            };
            let feeders = mirror.feeders();
            let tape = beside
                .tap()
                .map(|tap| Taped::tape(tap, name, door, wanted.kind));
            let door = door.again().context("cannot open a feed's door again")?;
            feeds.push(match wanted.limits() {
                Limits::Fpm(limits) => Feed::Fpm(FpmFeed {
                    door,
                    feeder: feeders.join(name, limits)?,
                    is_forwarded: false,
                    tape,
                }),
                Limits::Bmp(limits) => Feed::Bmp(StationFeed {
                    door,
                    own: feeders.join(name, limits.rows)?,
                    feeders,
                    limits,
                    tape,
                }),
            });
        }
        self.running = Some(Running {
            mirror: Arc::downgrade(mirror),
            server: Server::start(feeds).context("cannot start the feeds' thread")?,
        });
        Ok(())
    }

    /// Takes over what a configuration says anew: limits. False: it says
    /// more, which takes effect at the next start.
    pub fn reload(&mut self, up: &Up, config: &Config) -> bool {
        let wanted = match wanted(up, config) {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::error!("the feeds stay as they are: {error}");
                return false;
            }
        };
        for (name, feed) in &mut self.wanted {
            let same = |new: &&config::Feed| new.is_but_for_limits(feed) && *new != feed;
            let Some(new) = wanted.get(name).filter(same) else {
                continue;
            };
            *feed = new.clone();
            if let Some(running) = &self.running {
                running.server.set_limits(name, new.limits());
            }
        }
        self.wanted == wanted
    }
}

/// What is said of a door that cannot be opened, before why.
pub fn cannot_listen(name: &str, feed: &config::Feed) -> String {
    format!(
        "feed.{name}.listen: cannot listen at {}: choose another address or port, or end who has it",
        feed.listen
    )
}

/// Those of the configuration, and those that the command line makes or
/// moves; not one that is of another kind in the configuration.
fn wanted(up: &Up, config: &Config) -> Result<BTreeMap<String, config::Feed>> {
    let mut wanted = config.feed.clone();
    let of_the_command_line = [
        ("--fpm", FPM, Kind::Fpm, up.fpm),
        ("--bmp", BMP, Kind::Bmp, up.bmp),
    ];
    for (option, name, kind, address) in of_the_command_line {
        let Some(address) = address else {
            continue;
        };
        let of_here = || config::Feed::at(kind, address);
        let feed = wanted.entry(name.to_owned()).or_insert_with(of_here);
        if feed.kind != kind {
            bail!(
                "{option} is for the feed {name}, which is of another kind in the configuration \
                 (`[feed.{name}]`, `kind`): give that one another name, or leave {option} away"
            );
        }
        feed.listen = address;
    }
    Ok(wanted)
}
