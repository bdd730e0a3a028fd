//! What was forwarded and what was not, as text or JSON.

use std::io::{self, Write};

use dataplane::Counters as PortCounters;
use dataplane::fib_sync::FibSyncState;
use dataplane::forward::{Counters, Node, Reason};
use dataplane::worker::State;
use nat::Statistics;
use serde_json::{Map, Value, json};

use crate::nat::log::Told;

/// What happened.
#[derive(Debug)]
pub struct Report {
    filled: FibSyncState,
    counters: Counters,
    /// What each worker forwarded.
    workers: Vec<Counters>,
    /// What each worker's translation counted, where there is one.
    translations: Vec<Statistics>,
    ports: Vec<(String, PortCounters)>,
    /// Requests about neighbours that nobody carried.
    pub unresolved: u64,
    /// Why ports could not go on, each once.
    pub failures: Vec<String>,
    /// What became of the records of a translation.
    pub records: Vec<Told>,
    /// Why what a translation had could not be kept.
    pub state_error: Option<anyhow::Error>,
    /// How the routes are that took the place of the namespace's, if any did.
    pub routes: Option<String>,
}

impl Report {
    /// An empty one, with how the tables stand.
    pub fn new(filled: FibSyncState) -> Self {
        Self {
            filled,
            counters: Counters::default(),
            workers: Vec::new(),
            translations: Vec::new(),
            ports: Vec::new(),
            unresolved: 0,
            failures: Vec::new(),
            records: Vec::new(),
            state_error: None,
            routes: None,
        }
    }

    /// Adds a worker's; `name` gives that of a port.
    pub fn add(&mut self, state: State, name: &dyn Fn(u16) -> String) {
        self.counters.add(&state.counters);
        self.workers.push(state.counters);
        self.translations.extend(state.nat);
        for (_, why) in state.failures {
            if !self.failures.contains(&why) {
                self.failures.push(why);
            }
        }
        for (number, counted) in state.ports {
            let name = name(number);
            match self.ports.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => add(sum, counted),
                None => self.ports.push((name, counted)),
            }
        }
    }

    /// Writes it.
    pub fn write(&self, as_json: bool, out: &mut impl Write) -> io::Result<()> {
        if as_json {
            serde_json::to_writer(&mut *out, &self.json())?;
            return writeln!(out);
        }
        let filled = &self.filled;
        writeln!(
            out,
            "tables: {} IPv4 and {} IPv6 prefixes, {} next hops, {} neighbours, {} refused",
            filled.prefixes_v4,
            filled.prefixes_v6,
            filled.next_hops,
            filled.neighbours,
            filled.refused
        )?;
        if let Some(routes) = &self.routes {
            writeln!(out, "routes: {routes}")?;
        }
        for node in Node::ALL {
            writeln!(
                out,
                "{:<10} {:>12} packets",
                node.name(),
                self.counters.of_node(node)
            )?;
            let of_node = Reason::ALL
                .into_iter()
                .filter(|reason| reason.node() == node);
            for reason in of_node {
                let packets = self.counters.of_reason(reason);
                if packets > 0 {
                    writeln!(out, "  {:<22} {packets:>10}", reason.name())?;
                }
            }
        }
        if let Some(sum) = self.translated() {
            writeln!(
                out,
                "translation: {} flows, {} made, {} expired, {} mappings, {} bytes",
                sum.flows, sum.flows_made, sum.flows_expired, sum.mappings, sum.memory_bytes
            )?;
        }
        for place in &self.records {
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

    /// What the translations of all workers counted, added up.
    fn translated(&self) -> Option<Statistics> {
        let mut sum = Statistics::default();
        for one in &self.translations {
            sum.add(one);
        }
        (!self.translations.is_empty()).then_some(sum)
    }

    fn json(&self) -> Value {
        let filled = &self.filled;
        let ports: Vec<Value> = self.ports.iter().map(port).collect();
        let workers: Vec<Value> = self.workers.iter().map(nodes).collect();
        let translated = self.translated().map(|sum| {
            let each: Vec<Value> = self.translations.iter().map(translation).collect();
            let mut all = translation(&sum);
            all["workers"] = each.into();
            all["records"] = self.records.iter().map(Told::json).collect();
            all
        });
        json!({
            "nodes": nodes(&self.counters),
            "workers": workers,
            "translation": translated,
            "ports": ports,
            "requests_lost": self.unresolved,
            "routes": self.routes,
            "tables": {
                "generation": filled.generation.0,
                "prefixes_v4": filled.prefixes_v4,
                "prefixes_v6": filled.prefixes_v6,
                "next_hops": filled.next_hops,
                "neighbours": filled.neighbours,
                "refused": filled.refused,
                "ignored_rules": filled.ignored_rules,
                "rebuilds": filled.rebuilds,
            },
        })
    }
}

fn translation(counted: &Statistics) -> Value {
    json!({
        "flows": counted.flows,
        "mappings": counted.mappings,
        "flows_made": counted.flows_made,
        "flows_expired": counted.flows_expired,
        "flows_evicted": counted.flows_evicted,
        "flows_removed": counted.flows_removed,
        "memory_bytes": counted.memory_bytes,
    })
}

fn nodes(counters: &Counters) -> Value {
    let all = Node::ALL.into_iter().map(|node| {
        let reasons: Map<String, Value> = Reason::ALL
            .into_iter()
            .filter(|reason| reason.node() == node)
            .map(|reason| (reason.name().to_owned(), counters.of_reason(reason).into()))
            .collect();
        let counted = json!({ "packets": counters.of_node(node), "reasons": reasons });
        (node.name().to_owned(), counted)
    });
    Value::Object(all.collect())
}

fn port((name, counted): &(String, PortCounters)) -> Value {
    json!({
        "name": name,
        "received_packets": counted.received_packets,
        "received_bytes": counted.received_bytes,
        "sent_packets": counted.sent_packets,
        "sent_bytes": counted.sent_bytes,
        "refused_packets": counted.refused_packets,
    })
}

fn add(sum: &mut PortCounters, more: PortCounters) {
    sum.received_packets += more.received_packets;
    sum.received_bytes += more.received_bytes;
    sum.sent_packets += more.sent_packets;
    sum.sent_bytes += more.sent_bytes;
    sum.refused_packets += more.refused_packets;
}
