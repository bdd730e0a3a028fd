//! How the forwarding stands, as questions are answered. Written by
//! `watching`, read by `control`.

use dataplane::xdp::{Count, Forwarding, REASONS};
use serde::Serialize;

/// How it stands.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Standing {
    /// The ports, in the order in which they were named.
    pub ports: Vec<PortStanding>,
    /// What is in the way.
    pub obstacles: Vec<ObstacleStanding>,
    /// Longer packets of IPv4 and of IPv6 go up: the least MTU that a route
    /// sets.
    pub most_bytes: [Option<u32>; 2],
    /// Stale neighbours that were used on behalf of packets, so far.
    pub neighbours_used: u64,
    /// Looks at the kernel's settings, so far.
    pub looks: u64,
    /// Seconds since it began.
    pub seconds: u64,
}

/// How a port stands.
#[derive(Debug, Clone, Serialize)]
pub struct PortStanding {
    /// Its link.
    pub name: String,
    /// The link's number; none while it is not there.
    pub link: Option<u32>,
    #[serde(skip)]
    pub slot: u32,
    /// Whether packets that come in are forwarded here, by family.
    pub receives: Families,
    /// Whether packets are sent there from here.
    pub sends: Families,
    /// Frames in several buffers are sent.
    pub sends_long: bool,
    /// `rp_filter` 1: sources have to be behind it.
    pub strict_sources: bool,
    /// Packets with unfinished checksums are looked for and handed up.
    pub checks_checksums: bool,
    /// What keeps it from all this.
    pub why: Vec<String>,
}

/// A yes or no by family.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Families {
    pub ipv4: bool,
    pub ipv6: bool,
}

/// How something in the way stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObstacleStanding {
    /// As `--accept` has it.
    pub name: &'static str,
    /// What it is.
    pub what: String,
    /// Whether packets pass it by.
    pub accepted: bool,
}

/// Packets of a port.
#[derive(Debug, Serialize)]
pub struct PortCounters {
    pub name: String,
    pub forwarded_packets: u64,
    pub forwarded_bytes: u64,
    pub up_packets: u64,
    pub up_bytes: u64,
}

/// Packets of a port that became of something.
#[derive(Debug, Serialize)]
pub struct ReasonCounter {
    pub name: String,
    pub reason: &'static str,
    pub packets: u64,
    pub bytes: u64,
    pub meaning: &'static str,
}

impl Standing {
    /// Packets by port: those forwarded, and those handed up to the kernel.
    pub fn counters(&self, forwarding: &Forwarding) -> anyhow::Result<Vec<PortCounters>> {
        let mut rows = Vec::new();
        for port in &self.ports {
            let counts = forwarding.counts(port.slot)?;
            let forwarded = counts.first().copied().unwrap_or_default();
            let mut up = Count::default();
            for count in counts.iter().skip(1) {
                up.packets += count.packets;
                up.bytes += count.bytes;
            }
            rows.push(PortCounters {
                name: port.name.clone(),
                forwarded_packets: forwarded.packets,
                forwarded_bytes: forwarded.bytes,
                up_packets: up.packets,
                up_bytes: up.bytes,
            });
        }
        Ok(rows)
    }

    /// Packets by port and reason, without reasons that there were none for.
    pub fn reasons(&self, forwarding: &Forwarding) -> anyhow::Result<Vec<ReasonCounter>> {
        let mut rows = Vec::new();
        for port in &self.ports {
            let counts = forwarding.counts(port.slot)?;
            for (count, reason) in counts.iter().zip(REASONS) {
                if count.packets > 0 {
                    rows.push(ReasonCounter {
                        name: port.name.clone(),
                        reason: reason.name,
                        packets: count.packets,
                        bytes: count.bytes,
                        meaning: reason.meaning,
                    });
                }
            }
        }
        Ok(rows)
    }
}
