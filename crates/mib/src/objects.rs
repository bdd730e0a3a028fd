//! The objects of one context at one moment.

use table::Tables;

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
    /// When the agent started, milliseconds since the UNIX epoch.
    pub started_at_millis: u64,
    /// Now, likewise.
    pub now_millis: u64,
}

impl MibContext<'_> {
    /// `sysUpTime` at a time of day: hundredths of a second since the start,
    /// 0 for what was before. Wraps after 497 days (RFC 3418).
    pub(crate) fn ticks(&self, at_millis: u64) -> u32 {
        (at_millis.saturating_sub(self.started_at_millis) / 10) as u32
    }

    /// `sysUpTime`.
    pub(crate) fn up_time(&self) -> u32 {
        self.ticks(self.now_millis)
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

    /// The same with a bridge; `None`: the first.
    #[must_use]
    pub fn of_bridge(self, bridge: Option<u32>) -> Self {
        Self { bridge, ..self }
    }

    pub(crate) fn tables(&self) -> &'a Tables {
        self.moment.tables
    }
}
