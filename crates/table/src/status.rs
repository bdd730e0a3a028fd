//! How a source of tables fares: what it is doing, what it lost, what its
//! tables miss. For sources, which keep it, and for all who answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::monitored::{MonitoredPeer, MonitoredRouter};

/// When something was: by the time of day, to be told, and by a clock that
/// nobody sets, for its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct When {
    /// Milliseconds since the UNIX epoch.
    pub millis: u64,
    /// The same moment by this process' clock; `None`: it is of a recording.
    pub instant: Option<Instant>,
}

impl When {
    /// How long ago it was, at a moment by both clocks.
    pub fn age(&self, now: Instant, now_millis: u64) -> Duration {
        match self.instant {
            Some(instant) => now.saturating_duration_since(instant),
            None => Duration::from_millis(now_millis.saturating_sub(self.millis)),
        }
    }
}

/// What a source is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// It lists the tables for the first time; readers see nothing yet.
    #[default]
    Loading,
    /// It follows.
    Live,
    /// It follows and lists the tables again, because events were lost or
    /// a listing was interrupted.
    Resyncing,
    /// Nobody feeds it: no peer came yet, or the one that did is gone. The
    /// rows stay as they were. Why.
    Disconnected(String),
    /// It ended; the tables stay as they were. Why.
    Ended(String),
}

/// How a source fares.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// How long the first listing took.
    pub load_time: Duration,
    /// Listings done again after a loss.
    pub resyncs: u64,
    /// Times that events were lost (the kernel says `ENOBUFS`).
    pub overruns: u64,
    /// Listings that the kernel called interrupted.
    pub interrupted_dumps: u64,
    /// Scans for drift done.
    pub scans: u64,
    /// Rows that a scan found different from the kernel's: should stay 0.
    pub drift: u64,
    /// The first few rows of the last drift, as the kernel has them.
    pub drift_examples: Vec<String>,
    /// Events applied.
    pub events: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// What could not be stored, if a table is full.
    pub full: Option<String>,
    /// Rows that had no place, by table, since the source began.
    pub refused: BTreeMap<&'static str, u64>,
    /// Tables that miss rows now, because they had no place; until a whole
    /// listing finds that none is missing.
    pub incomplete: BTreeSet<&'static str>,
    /// Nobody listed the tables whole yet, or since events were lost that
    /// nothing made up for: a recording with a gap.
    pub has_gap: bool,
    /// Datagrams that another process sent, which were dropped.
    pub foreign: u64,
    /// When the last scan for drift ended, milliseconds since the UNIX
    /// epoch; 0: there was none.
    pub last_scan_millis: u64,
    /// The same moment by a clock that nobody sets: for its age.
    pub last_scan: Option<Instant>,
    /// How long it took.
    pub last_scan_time: Duration,
    /// Rows that it found different.
    pub last_scan_drift: u64,
    /// The receive buffer as the host granted it, bytes.
    pub receive_buffer_bytes: usize,
    /// The last trouble, in words.
    pub last_trouble: Option<String>,
    /// What is told of one that a peer feeds over a connection.
    pub feed: Option<Box<FeedStatus>>,
}

/// How a feed fares that a peer makes over a connection: a routing daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedStatus {
    /// Where it is waited for.
    pub listening: String,
    /// Who feeds it; the last one that did, where nobody does.
    pub peer: Option<String>,
    /// When that one came, or went; `None`: nobody came yet.
    pub since: Option<When>,
    /// Connections that fed it.
    pub connections: u64,
    /// Connections that were closed before they fed it: they said nothing,
    /// or nothing that could be read, or there were too many.
    pub turned_away: u64,
    /// Frames read.
    pub frames: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages that have no row here, by what they are.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Rows that were there when the peer came (or went, where nobody
    /// feeds it) and that were not told since.
    pub unconfirmed: u64,
    /// Rows that were never told again, and went.
    pub swept: u64,
    /// Routes that were acknowledged to the peer: packets go by them here.
    pub acknowledged: u64,
    /// Routes of which the peer was told that packets do not go by them.
    pub acknowledged_refused: u64,
    /// When the last frame came; `None`: none came yet.
    pub last_heard: Option<When>,
    /// Where several routers feed, each with sources of its own (BMP): the
    /// routers. The rows are all in those.
    pub routers: Option<Arc<[MonitoredRouter]>>,
    /// Where the rows are what a router told of a BGP peer: that peer.
    pub monitored: Option<Arc<MonitoredPeer>>,
}

impl Status {
    /// Whether it follows and misses nothing.
    pub fn is_whole(&self) -> bool {
        self.phase == Phase::Live && self.misses_nothing()
    }

    /// Whether no table misses rows that are known to be missing, whatever
    /// it is doing.
    pub fn misses_nothing(&self) -> bool {
        self.incomplete.is_empty() && !self.has_gap
    }

    /// What it is doing, in words: `live`, `degraded: neighbours miss
    /// rows`, …
    pub fn in_words(&self) -> String {
        let incomplete: Vec<&str> = self.incomplete.iter().copied().collect();
        match &self.phase {
            Phase::Loading => "loading".to_owned(),
            Phase::Live if !incomplete.is_empty() => {
                format!("degraded: {} miss rows", incomplete.join(", "))
            }
            Phase::Ended(_) | Phase::Live if self.has_gap && incomplete.is_empty() => {
                "degraded: no listing follows a gap".to_owned()
            }
            Phase::Live => "live".to_owned(),
            Phase::Resyncing => "resyncing".to_owned(),
            Phase::Disconnected(why) => format!("disconnected: {why}"),
            Phase::Ended(why) if !incomplete.is_empty() => {
                format!("ended: {why}; {} miss rows", incomplete.join(", "))
            }
            Phase::Ended(why) => format!("ended: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_by_the_clock_that_nobody_sets() {
        let now = Instant::now();
        let of_recording = When {
            millis: 5_000,
            instant: None,
        };
        let live = When {
            instant: now.checked_sub(Duration::from_secs(2)),
            ..of_recording
        };
        // The time of day went an hour on, or back.
        for millis in [3_605_000, 0] {
            assert_eq!(live.age(now, millis), Duration::from_secs(2));
        }
        assert_eq!(of_recording.age(now, 8_000), Duration::from_secs(3));
        assert_eq!(of_recording.age(now, 0), Duration::ZERO);
    }

    #[test]
    fn only_live_tables_that_miss_nothing_are_whole() {
        let mut status = Status::default();
        assert!(!status.is_whole());
        status.phase = Phase::Live;
        assert!(status.is_whole());
        assert_eq!(status.in_words(), "live");
        status.incomplete = ["neighbours", "routes"].into();
        assert!(!status.is_whole());
        assert_eq!(status.in_words(), "degraded: neighbours, routes miss rows");
        status.incomplete.clear();
        status.has_gap = true;
        assert!(!status.is_whole());
        assert_eq!(status.in_words(), "degraded: no listing follows a gap");
        status.phase = Phase::Resyncing;
        assert_eq!(status.in_words(), "resyncing");
        status.has_gap = false;
        status.phase = Phase::Ended("stopped".into());
        assert_eq!(status.in_words(), "ended: stopped");
        status.incomplete = ["routes"].into();
        assert_eq!(status.in_words(), "ended: stopped; routes miss rows");
    }
}
