//! What the engine did in each call: for the calls that took longest, and at
//! the share that the times are told of.

use nat::{Nat, Statistics};

use super::super::measure::Row;

/// What is counted. The last three are counted by debug builds only.
const COUNTED: [&str; 6] = [
    "flows made",
    "flows ended",
    "flows looked at",
    "lines of an index",
    "names moved",
    "ports tried",
];
/// Counts that are told apart; more are as many.
const MOST: usize = 512;
/// The share of the calls that is told of.
const SHARE: f64 = 0.99999;

/// See the module.
pub struct Done {
    /// Calls by each count.
    calls: [Vec<u64>; COUNTED.len()],
    before: Statistics,
    slowest_nanos: u64,
    slowest: [u64; COUNTED.len()],
}

impl Done {
    pub fn new() -> Self {
        Self {
            calls: std::array::from_fn(|_| vec![0; MOST]),
            before: Statistics::default(),
            slowest_nanos: 0,
            slowest: [0; COUNTED.len()],
        }
    }

    /// A run of calls begins.
    pub fn begin(&mut self, nat: &Nat) {
        self.before = nat.statistics();
    }

    /// A call took so long.
    pub fn add(&mut self, nat: &Nat, nanos: u64) {
        let (now, before, work) = (nat.statistics(), self.before, nat.work());
        let ended = |of: &Statistics| of.flows_expired + of.flows_evicted + of.flows_removed;
        let counts = [
            now.flows_made - before.flows_made,
            ended(&now) - ended(&before),
            now.flows_inspected - before.flows_inspected,
            u64::from(work.lines),
            u64::from(work.moved),
            u64::from(work.ports),
        ];
        self.before = now;
        for (calls, count) in self.calls.iter_mut().zip(counts) {
            if let Some(calls) = calls.get_mut((count as usize).min(MOST - 1)) {
                *calls += 1;
            }
        }
        if nanos > self.slowest_nanos {
            (self.slowest_nanos, self.slowest) = (nanos, counts);
        }
    }

    pub fn rows(&self, who: &str, packets: usize) -> Vec<Row> {
        let row =
            |what: String, count: usize| Row::new(who, &what, packets, "times", vec![count as f64]);
        let mut rows = Vec::new();
        for ((what, calls), slowest) in COUNTED.iter().zip(&self.calls).zip(self.slowest) {
            let all: u64 = calls.iter().sum();
            let most = calls.iter().rposition(|calls| *calls > 0).unwrap_or(0);
            let wanted = (all as f64 * SHARE).ceil() as u64;
            let mut seen = 0;
            let at = calls.iter().position(|calls| {
                seen += calls;
                seen >= wanted
            });
            if most > 0 {
                rows.push(row(format!("{what}, 99.999 %"), at.unwrap_or(most)));
                rows.push(row(format!("{what}, most"), most));
                rows.push(row(format!("{what}, in the slowest"), slowest as usize));
            }
        }
        rows
    }
}
