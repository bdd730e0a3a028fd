//! Paths by peer into tables: each peer a feeder with rows of its own, and
//! as the tables' own rows the best path of each prefix.
//!
//! - `peers`: who they are, and what they are called.
//! - `load`: the paths of a dump, which come in the order of prefixes.
//! - `change`: what a peer says later, path by path.
//! - `best`: which path is the best.
//! - `source`: who asks, asks this.

mod best;
mod change;
mod known;
mod load;
mod peers;
mod source;

use std::collections::BTreeSet;
use std::sync::Arc;

use ipnet::IpNet;
use table::row::route::table_id;
use table::row::rule::{Rule, action};
use table::{AF_INET, AF_INET6, Change, Limits, Phase, SourceState, Writer};

use crate::mrt::{Header, Record};
use crate::paths::TABLE;
use crate::{Bad, body};
use load::Load;
pub use peers::Peer;
use peers::Peers;
pub use source::RibSource;

/// Prefixes whose best path is to be found again at most; then it is.
const MAX_DIRTY: usize = 1 << 16;

/// What came of the records so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Records taken in.
    pub records: u64,
    /// Paths told, by tables and by messages.
    pub paths: u64,
    /// Prefixes withdrawn.
    pub withdrawn: u64,
    /// Records of what has no rows here.
    pub passed_over: u64,
    /// Records and entries that could not be read.
    pub malformed: u64,
    /// Time of the first record, microseconds since the UNIX epoch.
    pub first_micros: u64,
    /// Time of the newest.
    pub newest_micros: u64,
}

/// Takes records in, and keeps the tables that come of them.
#[derive(Debug)]
pub struct Rib {
    limits: Limits,
    /// The best paths.
    best: Writer,
    peers: Peers,
    /// What the numbers of the last table of peers mean.
    index: Vec<usize>,
    load: Option<Load>,
    /// Prefixes whose best path may be another now.
    dirty: BTreeSet<IpNet>,
    counts: Counts,
    /// The second of the newest record, since the UNIX epoch: what messages
    /// change within it is told together, with this time.
    second: u64,
    state: Arc<SourceState>,
}

impl Rib {
    /// No peers and no paths; tables may have so many rows.
    pub fn new(limits: Limits) -> Self {
        let mut best = Writer::new(limits);
        best.without_events();
        // A limit on rules leaves those out that it has no room for, and
        // says so.
        let _ = best.commit(usual_rules().map(Change::PutRule));
        let peers = Peers::new(best.feeders(), limits);
        Self {
            limits,
            best,
            peers,
            index: Vec::new(),
            load: None,
            dirty: BTreeSet::new(),
            counts: Counts::default(),
            second: 0,
            state: Arc::default(),
        }
    }

    /// Where its tables are asked.
    pub fn source(&self) -> RibSource {
        RibSource::new(self.best.reader(), Arc::clone(&self.state))
    }

    /// What came of the records so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The peers, in the order in which they came.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    /// Takes a record in. One that cannot be read, or an entry of it, is
    /// left out, counted, and makes the tables incomplete: why, the first
    /// time in this record. What it says before that stays.
    pub fn take(&mut self, header: &Header, body: &[u8]) -> Result<(), Bad> {
        let counts = &mut self.counts;
        counts.records += 1;
        if counts.first_micros == 0 {
            counts.first_micros = header.at_micros;
        }
        counts.newest_micros = counts.newest_micros.max(header.at_micros);
        let mut first = None;
        let second = header.at_micros / 1_000_000;
        // What came before, by its own time; a dump is taken whole, whatever
        // the times in it.
        if second != self.second && (header.is_message() || self.load.is_none()) {
            self.show();
        }
        self.second = second;
        match Record::read(header, body) {
            Ok(record) => self.take_record(record, &mut first),
            Err(bad) => self.note(bad, &mut first),
        }
        first.map_or(Ok(()), Err)
    }

    fn take_record(&mut self, record: Record<'_>, first: &mut Option<Bad>) {
        match record {
            Record::Peers(index) => self.set_index(index, first),
            Record::Rib(rib) => self.load_rib(rib, first),
            Record::TableDump(paths) => self.load_paths(paths, first),
            Record::Message(message) => {
                self.settle();
                self.change(message, first);
            }
            Record::StateChange(change) if change.is_up => {}
            Record::StateChange(change) => {
                self.settle();
                self.went_down(change.peer);
            }
            Record::Other => self.counts.passed_over += 1,
        }
    }

    /// Something could not be read.
    fn note(&mut self, bad: Bad, first: &mut Option<Bad>) {
        self.counts.malformed += 1;
        first.get_or_insert(bad);
    }

    /// Lets readers see what came of the records so far. A load that is
    /// under way ends.
    pub fn publish(&mut self) {
        self.show();
        let refused = self.best.tables().refused.by_table();
        let incomplete = refused.into_iter().filter(|(_, refused)| *refused > 0);
        let incomplete: BTreeSet<_> = incomplete.map(|(table, _)| table).collect();
        let counts = self.counts;
        self.state.set_clock(counts.newest_micros);
        self.state.update(|status| {
            if status.phase == Phase::Loading {
                status.phase = Phase::Live;
            }
            status.events = counts.paths + counts.withdrawn;
            status.malformed = counts.malformed;
            status.incomplete.extend(incomplete);
        });
    }

    /// Readers see what came up to now, and when.
    fn show(&mut self) {
        self.settle();
        self.choose();
        let at_millis = self.second * 1_000;
        self.best.set_time(at_millis);
        self.best.publish();
        self.peers.publish(at_millis);
    }

    /// The tables miss rows: why. They and those of all peers say so from
    /// now on.
    pub fn misses_rows(&mut self, why: &str) {
        let miss = |status: &mut table::Status| {
            status.incomplete.insert("routes");
            status.last_trouble.get_or_insert_with(|| why.to_owned());
        };
        self.state.update(miss);
        self.peers.update(miss);
    }

    /// Ends a load: what it told stands in the tables.
    fn settle(&mut self) {
        if let Some(load) = self.load.take() {
            let best = load.finish(&mut self.peers, &mut self.dirty);
            if let Some(best) = best {
                self.best.replace_routes(best);
            }
        }
    }
}

/// The rules that a host begins with (`fib_default_rules_init`), by which
/// a packet's route is found among the best.
fn usual_rules() -> impl Iterator<Item = Rule> {
    let of = |(family, priority, table)| Rule {
        family,
        priority,
        table,
        action: action::TO_TABLE,
        protocol: table::row::route::protocol::KERNEL,
        ..Rule::default()
    };
    [
        (AF_INET, 0, table_id::LOCAL),
        (AF_INET, 32_766, table_id::MAIN),
        (AF_INET, 32_767, table_id::DEFAULT),
        (AF_INET6, 0, table_id::LOCAL),
        (AF_INET6, 32_766, table_id::MAIN),
    ]
    .into_iter()
    .map(of)
}
