//! A translation over SNMP: NATV2-MIB (RFC 7659), told as an AgentX subagent
//! (RFC 2741) of whatever master runs here: the daemon's, or net-snmp's.
//!
//! Subscribers are walked where they lie, by a cursor between two batches; a
//! million of them are copied nowhere (decision 083).
//!
//! - `objects`: names and values.
//! - `maps`: all address and port maps, in order.
//! - `thresholds`: when a notification is due.
//! - `subagent`: the thread that speaks with the master.

mod maps;
mod objects;
mod subagent;
mod thresholds;

use std::path::PathBuf;

use clap::{Args, ValueHint};

pub use subagent::Subagent;

/// `natv2MIB`.
const NATV2: [u32; 7] = [1, 3, 6, 1, 2, 1, 234];

/// What managers are told.
#[derive(Debug, Clone, Default, Args)]
pub struct Snmp {
    /// The socket of an AgentX master, which is told what NATV2-MIB (RFC 7659)
    /// has: the daemon's or net-snmp's, /var/agentx/master usually
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub agentx: Option<PathBuf>,
    #[command(flatten)]
    pub thresholds: Thresholds,
}

/// When managers are notified.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Thresholds {
    /// Notify when N percent of the ports of all outside addresses, or more,
    /// are mapped for one protocol
    #[arg(long, value_name = "N", requires = "agentx", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub notify_pool_high: Option<u8>,
    /// Notify when they are N percent again, or fewer
    #[arg(long, value_name = "N", requires = "agentx", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub notify_pool_low: Option<u8>,
    /// Notify when there are N mappings, or more
    #[arg(long, value_name = "N", requires = "agentx", value_parser = clap::value_parser!(i32).range(0..))]
    pub notify_mappings: Option<i32>,
    /// Notify when N subscribers, or more, have an outside address
    #[arg(long, value_name = "N", requires = "agentx", value_parser = clap::value_parser!(i32).range(0..))]
    pub notify_subscribers: Option<i32>,
    /// Notify when a subscriber has N mappings, or more; needs
    /// `subscriber_counters yes` in the rules
    #[arg(long, value_name = "N", requires = "agentx", value_parser = clap::value_parser!(i32).range(1..))]
    pub notify_subscriber_mappings: Option<i32>,
}

impl Snmp {
    /// Whether an engine counts what managers are to be told.
    pub fn check(&self, config: &nat::Config) -> anyhow::Result<()> {
        let of_each = self.thresholds.notify_subscriber_mappings;
        if of_each.is_some() && !config.subscribers.counted {
            anyhow::bail!(
                "--notify-subscriber-mappings tells how many mappings a subscriber has made: write `subscriber_counters yes` into the rules"
            );
        }
        Ok(())
    }
}
