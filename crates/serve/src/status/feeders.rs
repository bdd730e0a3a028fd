//! How those are who feed rows beside the kernel's, for all views.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use table::Tables;

use super::monitored::{PeerStatus, RouterStatus};
use crate::clock::Age;

/// How a feeder of rows is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeederStatus {
    /// What it is asked for by (`--source`).
    pub name: String,
    /// What it is doing, as [`super::MirrorStatus::phase`] says it.
    pub phase: String,
    /// Whether it follows, and misses nothing.
    pub complete: bool,
    /// Its routes.
    pub routes: usize,
    /// Its next-hop objects.
    pub nexthops: usize,
    /// Times that it told all its rows again.
    pub resyncs: u64,
    /// Rows of it that had no place.
    pub refused: u64,
    /// Where it is waited for, where a peer feeds it over a connection.
    #[serde(default)]
    pub listening: Option<String>,
    /// Who feeds it; the last one that did, where nobody does.
    #[serde(default)]
    pub peer: Option<String>,
    /// When that one came, or went, milliseconds since the UNIX epoch.
    #[serde(default)]
    pub since_millis: Option<u64>,
    /// How long ago that was, when the status was told, seconds: by a clock
    /// that nobody sets.
    #[serde(default)]
    pub since_secs: Option<u64>,
    /// Connections that fed it.
    #[serde(default)]
    pub connections: u64,
    /// Connections that were closed before they fed it.
    #[serde(default)]
    pub turned_away: u64,
    /// Frames read.
    #[serde(default)]
    pub frames: u64,
    /// Messages in them.
    #[serde(default)]
    pub messages: u64,
    /// Messages that have no row, by what they are.
    #[serde(default)]
    pub skipped: BTreeMap<String, u64>,
    /// Connections that ended with what could not be read.
    #[serde(default)]
    pub malformed: u64,
    /// Rows that were not told since its peer came, or went.
    #[serde(default)]
    pub unconfirmed: u64,
    /// Rows that were never told again, and went.
    #[serde(default)]
    pub swept: u64,
    /// When the last frame came, milliseconds since the UNIX epoch.
    #[serde(default)]
    pub last_heard_millis: Option<u64>,
    /// How long ago that was, when the status was told, seconds.
    #[serde(default)]
    pub last_heard_secs: Option<u64>,
    /// Of a BMP station, whose rows are all its routers' peers': those
    /// routers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers: Option<Vec<RouterStatus>>,
    /// Of a table that a router tells: the BGP peer that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitored: Option<PeerStatus>,
}

/// The feeders of a snapshot, by name.
pub fn feeders(tables: &Tables) -> Vec<FeederStatus> {
    let age = Age::now();
    let of_routers = |routers: &[table::MonitoredRouter]| -> Vec<RouterStatus> {
        let of = |router| RouterStatus::of(router, age);
        routers.iter().map(of).collect()
    };
    let of = |owner: &table::Owner| {
        let status = owner.status();
        let feed = status.feed.clone().unwrap_or_default();
        let skipped = feed.skipped.iter();
        FeederStatus {
            name: owner.name().to_owned(),
            phase: status.in_words(),
            complete: status.is_whole(),
            routes: owner.tables().routes.len(),
            nexthops: owner.tables().nexthops.len(),
            resyncs: status.resyncs,
            refused: status.refused.values().sum(),
            listening: status.feed.as_ref().map(|feed| feed.listening.clone()),
            skipped: skipped.map(|(what, n)| ((*what).to_owned(), *n)).collect(),
            peer: feed.peer,
            since_millis: feed.since.map(|since| since.millis),
            since_secs: feed.since.map(|since| age.secs(since)),
            connections: feed.connections,
            turned_away: feed.turned_away,
            frames: feed.frames,
            messages: feed.messages,
            malformed: status.malformed,
            unconfirmed: feed.unconfirmed,
            swept: feed.swept,
            last_heard_millis: feed.last_heard.map(|heard| heard.millis),
            last_heard_secs: feed.last_heard.map(|heard| age.secs(heard)),
            routers: feed.routers.as_deref().map(of_routers),
            monitored: feed
                .monitored
                .as_deref()
                .map(|peer| PeerStatus::of(peer, age)),
        }
    };
    tables.owners().map(of).collect()
}

impl FeederStatus {
    /// Writes it for people.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "source {}: {}, {} routes, {} nexthops, {} resyncs, {} rows refused",
            self.name, self.phase, self.routes, self.nexthops, self.resyncs, self.refused
        )?;
        self.write_peer(out)?;
        for router in self.routers.iter().flatten() {
            router.write(out)?;
        }
        self.monitored
            .as_ref()
            .map_or(Ok(()), |peer| peer.write(out))
    }

    /// What a connection feeds, where one may.
    fn write_peer(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(listening) = &self.listening else {
            return Ok(());
        };
        write!(out, "  at {listening}: ")?;
        match (&self.peer, self.since_secs) {
            (Some(peer), Some(secs)) if self.phase.starts_with("disconnected") => {
                write!(out, "{peer} left {secs} s ago")?;
            }
            (Some(peer), Some(secs)) => write!(out, "{peer} came {secs} s ago")?,
            _ => write!(out, "nobody came yet")?,
        }
        let skipped: Vec<String> = self
            .skipped
            .iter()
            .map(|(what, count)| format!(", {count} {what}"))
            .collect();
        write!(
            out,
            "; {} unconfirmed, {} swept, {} frames, {} messages ({} skipped{})",
            self.unconfirmed,
            self.swept,
            self.frames,
            self.messages,
            self.skipped.values().sum::<u64>(),
            skipped.concat()
        )?;
        if let Some(secs) = self.last_heard_secs {
            write!(out, ", last heard {secs} s ago")?;
        }
        writeln!(
            out,
            "; {} connections, {} turned away, {} unreadable",
            self.connections, self.turned_away, self.malformed
        )
    }
}
