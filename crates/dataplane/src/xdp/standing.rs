//! How the forwarding stands, as who runs it answers questions: plain data,
//! for `router`, which tells it, and for `serve`, which hands it on.

use serde::{Deserialize, Serialize};

use super::{Count, Fate, Forwarding, REASONS, XdpError};

/// All that is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Milliseconds since it began, when packets were counted.
    pub millis: u64,
    /// How it stands.
    pub status: Standing,
    /// Packets by port.
    pub counters: Vec<PortCounters>,
    /// Packets by port and by what became of them.
    pub reasons: Vec<ReasonCounter>,
}

impl Report {
    /// Without what only those who may list filters are told: which chain,
    /// which filter.
    pub fn without_details(mut self) -> Self {
        self.status
            .ports
            .iter_mut()
            .for_each(|port| port.why.clear());
        let obstacles = &mut self.status.obstacles;
        obstacles.iter_mut().for_each(|one| one.what.clear());
        obstacles.dedup();
        self
    }

    /// Packets and bytes that were forwarded, and that went up, at all ports.
    pub fn total(&self) -> [Count; 2] {
        let mut total = [Count::default(); 2];
        for port in &self.counters {
            total[0].packets += port.forwarded_packets;
            total[0].bytes += port.forwarded_bytes;
            total[1].packets += port.up_packets;
            total[1].bytes += port.up_bytes;
        }
        total
    }
}

/// How it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The inode of the network namespace that it forwards in.
    pub inode: u64,
    /// The ports, in the order in which they were named.
    pub ports: Vec<PortStanding>,
    /// What is in the way.
    pub obstacles: Vec<ObstacleStanding>,
    /// How IPv4 is translated, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationStanding>,
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortStanding {
    /// Its link.
    pub name: String,
    /// The link's number; none while it is not there.
    pub link: Option<u32>,
    /// Where its packets are counted.
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// How a translation stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TranslationStanding {
    /// The links outside of it.
    pub outside: Vec<String>,
    /// Without the engine nothing leaves that was to be translated.
    pub closed: bool,
    /// The engine is at work.
    pub works: bool,
    /// Established flows that are translated at XDP.
    pub flows: u64,
}

/// A yes or no by family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Families {
    /// Of IPv4.
    pub ipv4: bool,
    /// Of IPv6.
    pub ipv6: bool,
}

/// How something in the way stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObstacleStanding {
    /// As `--accept` has it.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// Whether packets pass it by.
    pub accepted: bool,
}

/// Packets of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Its link.
    pub name: String,
    /// Packets that came in there and left by another port.
    pub forwarded_packets: u64,
    /// Their bytes, link headers included.
    pub forwarded_bytes: u64,
    /// Packets that came in there and were handed up, to the kernel or to the
    /// engine that translates.
    pub up_packets: u64,
    /// Their bytes.
    pub up_bytes: u64,
    /// Packets that came in there and were dropped: they were to be
    /// translated, and could not be.
    #[serde(default)]
    pub dropped_packets: u64,
    /// Their bytes.
    #[serde(default)]
    pub dropped_bytes: u64,
}

/// Packets of a port that became of something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCounter {
    /// The link that they came in by.
    pub name: String,
    /// The reason's name; `forwarded` and `translated` of those that left by
    /// another port.
    pub reason: String,
    /// Packets.
    pub packets: u64,
    /// Their bytes, link headers included.
    pub bytes: u64,
    /// The reason in words.
    pub meaning: String,
}

impl Standing {
    /// All that is told of it; it began so many milliseconds ago.
    pub fn report(self, forwarding: &Forwarding, millis: u64) -> Result<Report, XdpError> {
        Ok(Report {
            millis,
            counters: self.counters(forwarding)?,
            reasons: self.reasons(forwarding)?,
            status: self,
        })
    }

    /// Packets by port: those forwarded, handed up, dropped.
    pub fn counters(&self, forwarding: &Forwarding) -> Result<Vec<PortCounters>, XdpError> {
        let mut rows = Vec::new();
        for port in &self.ports {
            let counts = forwarding.counts(port.slot)?;
            let of = |fate| {
                let mut sum = Count::default();
                let of_fate = counts
                    .iter()
                    .zip(REASONS)
                    .filter(|(_, one)| one.fate == fate);
                for (count, _) in of_fate {
                    sum.packets += count.packets;
                    sum.bytes += count.bytes;
                }
                sum
            };
            let (forwarded, up) = (of(Fate::Forwarded), of(Fate::Up));
            let dropped = of(Fate::Dropped);
            rows.push(PortCounters {
                name: port.name.clone(),
                forwarded_packets: forwarded.packets,
                forwarded_bytes: forwarded.bytes,
                up_packets: up.packets,
                up_bytes: up.bytes,
                dropped_packets: dropped.packets,
                dropped_bytes: dropped.bytes,
            });
        }
        Ok(rows)
    }

    /// Packets by port and reason, without reasons that there were none for.
    pub fn reasons(&self, forwarding: &Forwarding) -> Result<Vec<ReasonCounter>, XdpError> {
        let mut rows = Vec::new();
        for port in &self.ports {
            let counts = forwarding.counts(port.slot)?;
            for (count, reason) in counts.iter().zip(REASONS) {
                if count.packets > 0 {
                    rows.push(ReasonCounter {
                        name: port.name.clone(),
                        reason: reason.name.to_owned(),
                        packets: count.packets,
                        bytes: count.bytes,
                        meaning: reason.meaning.to_owned(),
                    });
                }
            }
        }
        Ok(rows)
    }
}
