//! The objects of one context at one moment.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use table::{Counted, CountedBeside, LinkCounters, LinkRanges, Tables};

use crate::framework::Engine;
use crate::health::Health;
use crate::history::History;
use crate::system::System;

/// What objects are made from. Copies share it all.
#[derive(Debug, Clone, Copy)]
pub struct MibContext<'a> {
    /// The tables as of this request.
    pub tables: &'a Tables,
    /// What the system says of itself.
    pub system: &'a System,
    /// The agent as an engine, with its counters.
    pub engine: Engine<'a>,
    /// When what changed.
    pub history: &'a History,
    /// How the tables fare.
    pub health: &'a Health,
    /// How long the agent is up, milliseconds by a clock that nobody sets.
    pub up_millis: u64,
    /// By how much the clock of the one who asks is ahead of ours, where it
    /// is not ours (an AgentX master).
    pub ahead_millis: i64,
    /// Now, by a clock that nobody sets.
    pub now: Instant,
    /// When samples were begun.
    pub sampled: SampleTimes,
    /// Counters that are not in the tables: the mirror was kept from reading
    /// them.
    pub beside: Option<&'a CountedBeside>,
    /// Where it is noted what was read of them.
    pub reads: &'a Reads,
    /// The time of day, milliseconds since the UNIX epoch: for what the
    /// tables tell by it, and for no duration.
    pub now_millis: u64,
}

/// When samples were begun; `None`: none was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleTimes {
    /// Counters of all links, in the tables.
    pub counters: Option<Instant>,
    /// Ages of neighbours.
    pub neighbours: Option<Instant>,
}

/// The links whose counters an answer has read: those are to be fresh, and
/// no others have to be sampled for it.
#[derive(Debug, Default)]
pub struct Reads(RefCell<LinkRanges>);

impl Reads {
    /// The links whose counters were read since this was last asked.
    pub fn take(&self) -> LinkRanges {
        self.0.take()
    }

    /// Notes that the counters of a link are read.
    pub fn note(&self, link: u32) {
        self.0.borrow_mut().add(link);
    }
}

impl MibContext<'_> {
    /// `sysUpTime` when the agent had been up for so long: hundredths of a
    /// second; 0 for what was before that clock began. Wraps after 497 days
    /// (RFC 3418).
    pub(crate) fn ticks(&self, up_millis: u64) -> u32 {
        match up_millis {
            0 => 0,
            _ => (up_millis.saturating_add_signed(self.ahead_millis) / 10) as u32,
        }
    }

    /// `sysUpTime`.
    pub(crate) fn up_time(&self) -> u32 {
        self.ticks(self.up_millis)
    }
}

/// The objects of one context at one moment: all that this crate knows of,
/// the routes those of one kernel routing table.
#[derive(Debug, Clone, Copy)]
pub struct Objects<'a> {
    pub(crate) moment: MibContext<'a>,
    /// `RT_TABLE_…` of the routes shown.
    pub(crate) routing_table: u32,
    /// The bridge shown; `None`: the first.
    pub(crate) bridge: Option<u32>,
}

impl<'a> Objects<'a> {
    /// The objects with the routes of a kernel routing table.
    pub fn new(moment: MibContext<'a>, routing_table: u32) -> Self {
        Self {
            moment,
            routing_table,
            bridge: None,
        }
    }

    /// Notes that what is sampled of a link is read.
    pub(crate) fn note_counters(&self, link: u32) {
        self.moment.reads.note(link);
    }

    /// Counters of a link; notes that they were read.
    pub(crate) fn counters_of(&self, link: u32) -> Option<&'a LinkCounters> {
        self.note_counters(link);
        self.counted(link).map(|(counted, _)| &counted.counters)
    }

    /// The same where single errors are read of them: nothing of a link of
    /// which only their sums are known.
    pub(crate) fn errors_of(&self, link: u32) -> Option<&'a LinkCounters> {
        self.note_counters(link);
        let beside = self.moment.beside;
        let of_sums = beside.is_some_and(|beside| beside.sums_alone.contains(&link));
        let counted = match of_sums {
            true => self.counted_by_netlink(link),
            false => self.counted(link),
        };
        counted.map(|(counted, _)| &counted.counters)
    }

    /// What a link has counted, as it was read last, and when that was.
    fn counted(&self, link: u32) -> Option<(&'a Counted, Option<Instant>)> {
        let told = self.counted_by_netlink(link);
        let beside = self.moment.beside.and_then(|one| one.links.get(&link));
        let at = told.and_then(|(_, at)| at);
        match beside.filter(|beside| beside.at > at) {
            Some(later) => Some((later, later.at)),
            None => told,
        }
    }

    /// The same, as netlink told it.
    fn counted_by_netlink(&self, link: u32) -> Option<(&'a Counted, Option<Instant>)> {
        let (tables, sampled) = (self.moment.tables, self.moment.sampled);
        if let Some(alone) = tables.counted_alone.get(&link) {
            return Some((alone, alone.at));
        }
        let told = tables.link_counters.get(&link)?;
        Some((told, told.at.or(sampled.counters)))
    }

    /// How old the counters of a link are; `None`: there are none, or of
    /// unknown age.
    pub(crate) fn counters_age(&self, link: u32) -> Option<Duration> {
        let (_, at) = self.counted(link)?;
        Some(self.moment.now.saturating_duration_since(at?))
    }

    /// The same with a bridge; `None`: the first.
    #[must_use]
    pub fn of_bridge(self, bridge: Option<u32>) -> Self {
        Self { bridge, ..self }
    }

    pub(crate) fn tables(&self) -> &'a Tables {
        self.moment.tables
    }
}
