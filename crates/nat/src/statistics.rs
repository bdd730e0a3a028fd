//! What an engine counted. For its callers.

use crate::{Direction, Verdict};

/// What an engine counted since it was made, and its sizes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Outgoing packets by [`Verdict::index`].
    pub out: [u64; Verdict::ALL.len()],
    /// Incoming packets by [`Verdict::index`].
    pub incoming: [u64; Verdict::ALL.len()],
    /// Flows made.
    pub flows_made: u64,
    /// Flows ended by their timeout.
    pub flows_expired: u64,
    /// Flows ended to make room: at the cap, or for their alias port.
    pub flows_evicted: u64,
    /// Flows ended by the caller: removed, forgotten, or their rule deleted.
    pub flows_removed: u64,
    /// Flows that the sweep looked at.
    pub flows_inspected: u64,
    /// Alias ports tried that were taken.
    pub ports_retried: u64,
    /// Events that found the ring full.
    pub events_lost: u64,
    /// The same of subscribers and blocks.
    pub block_events_lost: u64,
    /// Subscribers now, those that have had something a moment ago included.
    pub subscribers: usize,
    /// Blocks that subscribers have now.
    pub blocks: usize,
    /// Flows now, those that expired but were not swept yet included.
    pub flows: usize,
    /// Those of them that someone outside made, and that the inside has not
    /// made its own by an answer.
    pub strangers: usize,
    /// Ports that inside hosts have asked for by PCP and NAT-PMP: leases now.
    pub leases: usize,
    /// Mappings now that are shared by flows (endpoint or address dependent
    /// mapping; without it each flow is its own mapping).
    pub mappings: usize,
    /// Bytes of memory in use by tables.
    pub memory_bytes: usize,
}

impl Statistics {
    /// Adds those of another engine.
    pub fn add(&mut self, other: &Self) {
        let counted = self.out.iter_mut().zip(other.out);
        for (sum, more) in counted.chain(self.incoming.iter_mut().zip(other.incoming)) {
            *sum += more;
        }
        self.flows_made += other.flows_made;
        self.flows_expired += other.flows_expired;
        self.flows_evicted += other.flows_evicted;
        self.flows_removed += other.flows_removed;
        self.flows_inspected += other.flows_inspected;
        self.ports_retried += other.ports_retried;
        self.events_lost += other.events_lost;
        self.block_events_lost += other.block_events_lost;
        self.subscribers += other.subscribers;
        self.blocks += other.blocks;
        self.flows += other.flows;
        self.strangers += other.strangers;
        self.leases += other.leases;
        self.mappings += other.mappings;
        self.memory_bytes += other.memory_bytes;
    }

    /// Packets of a direction with a verdict.
    pub fn packets(&self, direction: Direction, verdict: Verdict) -> u64 {
        let counters = match direction {
            Direction::Out => &self.out,
            Direction::In => &self.incoming,
        };
        counters.get(verdict.index()).copied().unwrap_or(0)
    }
}
