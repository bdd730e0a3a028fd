//! The statistics of a run, as text or JSON.

use std::io::{self, Write};

use dataplane::Counters;
use nat::{Direction, Protocol, Statistics, Verdict};
use serde_json::{Map, Value, json};

use super::log::Told;

/// What happened.
#[derive(Debug, Default)]
pub struct Report {
    /// What the engine counted.
    pub statistics: Statistics,
    /// What went through each port, by its name.
    pub ports: Vec<(String, Counters)>,
    /// What became of what was to be written for the record.
    pub places: Vec<Told>,
    /// Packets that are none of a translator's business: not IPv4, or not
    /// between inside and outside.
    pub left_alone: u64,
    /// Packets whose end the capture had cut off: they cannot be translated.
    pub cut_off: u64,
    /// Why what is there could not be kept for the next one.
    pub state_error: Option<anyhow::Error>,
}

impl Report {
    /// Notes whether the state was kept: that is said at the end, once all
    /// else is done.
    pub fn keep(&mut self, kept: anyhow::Result<bool>) -> bool {
        match kept {
            Ok(is_kept) => is_kept,
            Err(error) => {
                self.state_error = Some(error);
                false
            }
        }
    }

    /// Writes it.
    pub fn write(&self, as_json: bool, out: &mut impl Write) -> io::Result<()> {
        if as_json {
            serde_json::to_writer(&mut *out, &self.json())?;
            return writeln!(out);
        }
        for (name, direction) in [("out", Direction::Out), ("in", Direction::In)] {
            writeln!(out, "{name:<8} {}", self.verdicts(direction))?;
        }
        let counted = &self.statistics;
        writeln!(
            out,
            "{:<8} {} made, {} expired, {} evicted, {} removed, {} there ({} of strangers)",
            "flows",
            counted.flows_made,
            counted.flows_expired,
            counted.flows_evicted,
            counted.flows_removed,
            counted.flows,
            counted.strangers
        )?;
        writeln!(
            out,
            "{:<8} {} not to be translated, {} cut off by the capture",
            "others", self.left_alone, self.cut_off
        )?;
        if counted.subscribers > 0 {
            writeln!(
                out,
                "{:<8} {} subscribers, {} blocks, {} events lost",
                "blocks", counted.subscribers, counted.blocks, counted.block_events_lost
            )?;
        }
        for place in &self.places {
            writeln!(out, "{place}")?;
        }
        for (name, port) in &self.ports {
            writeln!(
                out,
                "{name}: {} packets ({} bytes) in, {} packets ({} bytes) out, {} refused",
                port.received_packets,
                port.received_bytes,
                port.sent_packets,
                port.sent_bytes,
                port.refused_packets
            )?;
        }
        Ok(())
    }

    fn verdicts(&self, direction: Direction) -> String {
        let counted = Verdict::ALL.iter().map(|verdict| {
            let packets = self.statistics.packets(direction, *verdict);
            (packets, name(*verdict).replace('_', " "))
        });
        let said: Vec<String> = counted
            .filter(|(packets, _)| *packets > 0)
            .map(|(packets, name)| format!("{packets} {name}"))
            .collect();
        if said.is_empty() {
            return "no packets".to_owned();
        }
        said.join(", ")
    }

    fn json(&self) -> Value {
        let verdicts = |direction| -> Map<String, Value> {
            let counted = Verdict::ALL.iter().map(|verdict| {
                let packets = self.statistics.packets(direction, *verdict);
                (name(*verdict).to_owned(), packets.into())
            });
            counted.collect()
        };
        let ports: Vec<Value> = self.ports.iter().map(port).collect();
        let counted = &self.statistics;
        json!({
            "out": verdicts(Direction::Out),
            "in": verdicts(Direction::In),
            "flows": {
                "made": counted.flows_made,
                "expired": counted.flows_expired,
                "evicted": counted.flows_evicted,
                "removed": counted.flows_removed,
                "there": counted.flows,
                "strangers": counted.strangers,
                "inspected": counted.flows_inspected,
            },
            "leases": counted.leases,
            "subscribers": counted.subscribers,
            "blocks": counted.blocks,
            "events_lost": counted.events_lost + counted.block_events_lost,
            "records": self.places.iter().map(Told::json).collect::<Vec<_>>(),
            "memory_bytes": counted.memory_bytes,
            "left_alone": self.left_alone,
            "cut_off": self.cut_off,
            "ports": ports,
        })
    }
}

fn port((name, counters): &(String, Counters)) -> Value {
    json!({
        "name": name,
        "received_packets": counters.received_packets,
        "received_bytes": counters.received_bytes,
        "sent_packets": counters.sent_packets,
        "sent_bytes": counters.sent_bytes,
        "refused_packets": counters.refused_packets,
    })
}

/// What was counted, for who asks a translation that runs; with its limits of
/// flows and of subscribers.
pub fn counted(statistics: &Statistics, [flows, subscribers]: [usize; 2]) -> Value {
    let verdicts = |direction| -> Map<String, Value> {
        let counted = Verdict::ALL.iter().map(|verdict| {
            let packets = statistics.packets(direction, *verdict);
            (name(*verdict).to_owned(), packets.into())
        });
        counted.collect()
    };
    let protocols = Protocol::ALL.iter().map(|protocol| {
        let of = statistics.of(*protocol);
        let counted = json!({
            "translated": of.translated,
            "refused": of.refused,
            "mappings_made": of.mappings_made,
            "mappings": of.mappings,
        });
        (protocol_name(*protocol).to_owned(), counted)
    });
    json!({
        "packets": {"out": verdicts(Direction::Out), "in": verdicts(Direction::In)},
        "protocols": protocols.collect::<Map<_, _>>(),
        "flows": statistics.flows,
        "flows_max": flows,
        "flows_made": statistics.flows_made,
        "flows_expired": statistics.flows_expired,
        "flows_evicted": statistics.flows_evicted,
        "flows_removed": statistics.flows_removed,
        "flows_of_strangers": statistics.strangers,
        "addresses_exhausted": statistics.addresses_exhausted,
        "fragments_dropped": statistics.fragments_dropped,
        "mappings": statistics.mappings,
        "leases": statistics.leases,
        "subscribers": statistics.subscribers,
        "subscribers_max": subscribers,
        "blocks": statistics.blocks,
        "events_lost": statistics.events_lost + statistics.block_events_lost,
        "memory_bytes": statistics.memory_bytes,
    })
}

fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
        Protocol::Other => "other",
    }
}

/// A verdict's name in the statistics.
fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Translated => "translated",
        Verdict::Passed => "passed",
        Verdict::Hairpinned => "hairpinned",
        Verdict::Answered => "answered",
        Verdict::NoMapping => "no_mapping",
        Verdict::Denied => "denied",
        Verdict::TableFull => "table_full",
        Verdict::PortsExhausted => "ports_exhausted",
        Verdict::OverQuota => "over_quota",
        Verdict::Malformed => "malformed",
        Verdict::FragmentWaiting => "fragment_waiting",
        Verdict::HelperRefused => "helper_refused",
        Verdict::Unsupported => "unsupported",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_beside_the_flows_that_are_there() {
        let statistics = Statistics {
            flows: 7,
            strangers: 3,
            ..Statistics::default()
        };
        let report = Report {
            statistics,
            ..Report::default()
        };
        let mut text = Vec::new();
        report.write(false, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("7 there (3 of strangers)"), "{text}");
        let flows = &report.json()["flows"];
        assert_eq!(
            (&flows["there"], &flows["strangers"]),
            (&json!(7), &json!(3))
        );
    }
}
