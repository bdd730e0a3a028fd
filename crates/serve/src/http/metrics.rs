//! `/metrics`: what Prometheus scrapes (text format 0.0.4).
//!
//! Counters of links have node_exporter's names, so that dashboards made
//! for it show them; the daemon's own begin with `fingerpost_`. A link is a
//! label, a prefix or a neighbour never.

mod families;
mod forwarding;
mod history;
mod subagents;

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use table::{Link, LinkCounters, Phase, Tables};
use view::Object;

use super::background;
use super::compressed;
use super::definition::TABLES;
use super::nat;
use super::problem::Problem;
use super::prometheus::{escape, head, labelled};
use super::query::Parameters;
use super::shared::Shared;
use super::streamed::{Pieces, Streamed};
use crate::forwarding::ForwardingStatus;
use crate::namespace::Namespace;
use crate::status;
use families::LINK_FAMILIES;

/// What the text is.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Bytes of a piece, about.
const PIECE_BYTES: usize = 32 << 10;

/// Answers a scrape. O(links).
pub async fn answer(shared: &Arc<Shared>, request: &Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let netns = parameters.take("netns")?;
    parameters.finish()?;
    let namespaces: Arc<[Namespace]> = match netns {
        None => shared.told(request),
        Some(name) => [shared.namespace(Some(&name), request)?].into(),
    };
    for one in namespaces.iter() {
        one.want(Object::Link);
    }
    for one in namespaces.iter() {
        one.refreshed(Object::Link, true).await;
    }
    let nat = nat::metrics::sample(&shared.nat, &shared.background).await;
    let forwarding = match shared.forwarding.get() {
        Some(gauge) => gauge.told().await,
        None => None,
    };
    let compress = compressed::permit(shared, request);
    let scrape = Scrape {
        nat,
        shared: Arc::clone(shared),
        namespaces,
        forwarding,
        began: false,
        family: 0,
        namespace: 0,
        next_link: 0,
    };
    let mut response = Response::new(compressed::body(Streamed::new(scrape), &compress));
    compressed::mark(&mut response, compress.is_some());
    background::mark(&mut response);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Answers whether the daemon is well: it has tables, and no mirror ended.
pub fn health(shared: &Arc<Shared>) -> Result<Response, Problem> {
    let namespaces = shared.namespaces();
    if namespaces.is_empty() {
        return Err(Problem::busy("the tables are being read; ask again"));
    }
    for one in namespaces.iter() {
        if let Phase::Ended(why) = one.source.status().phase {
            return Err(Problem::busy(format!("a mirror ended: {why}")));
        }
    }
    let mut response = Response::new(Body::from("{\"status\":\"ok\"}\n"));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What a family's value of a link is made from.
struct OfLink<'a> {
    link: &'a Link,
    counters: Option<&'a LinkCounters>,
    /// Mb/s.
    speed: Option<u32>,
}

/// A scrape under way: family by family, each over all namespaces.
struct Scrape {
    nat: Arc<nat::metrics::Sample>,
    shared: Arc<Shared>,
    namespaces: Arc<[Namespace]>,
    forwarding: Option<ForwardingStatus>,
    began: bool,
    family: usize,
    namespace: usize,
    next_link: u32,
}

impl Pieces for Scrape {
    fn piece(&mut self) -> Result<Option<Bytes>, Problem> {
        let mut out = String::new();
        if !std::mem::replace(&mut self.began, true) {
            self.own(&mut out);
            return Ok(Some(out.into()));
        }
        while out.len() < PIECE_BYTES {
            let Some(family) = LINK_FAMILIES.get(self.family) else {
                break;
            };
            if self.namespace == 0 && self.next_link == 0 {
                head(&mut out, family.name, family.help, family.kind);
            }
            let Some(one) = self.namespaces.get(self.namespace) else {
                self.family += 1;
                self.namespace = 0;
                continue;
            };
            let tables = one.tables();
            self.next_link = of_family(family, one, &tables, self.next_link, &mut out);
            if self.next_link == 0 {
                self.namespace += 1;
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }
}

/// Writes the values of links from an index on; gives the index to go on
/// from, 0 after the last.
fn of_family(
    family: &families::LinkFamily,
    one: &Namespace,
    tables: &Tables,
    from: u32,
    out: &mut String,
) -> u32 {
    for link in tables.links.from(from) {
        if out.len() >= PIECE_BYTES {
            return link.index;
        }
        let of = OfLink {
            link,
            counters: tables.counters_of(link.index),
            speed: tables.link_speeds.get(&link.index).copied(),
        };
        let Some(value) = (family.value)(&of) else {
            continue;
        };
        out.push_str(family.name);
        out.push_str("{device=\"");
        escape(out, &link.name);
        if let Some(netns) = &one.name {
            out.push_str("\",netns=\"");
            escape(out, netns);
        }
        if let Some(labels) = family.labels {
            labels(&of, out);
        }
        // Writing to a text does not fail.
        let _ = writeln!(out, "\"}} {value}");
    }
    0
}

impl Scrape {
    /// What the allocator has, and what is kept of changes.
    fn heap(&self, out: &mut String) {
        if let Some(heap) = memory::heap::last_usage() {
            let name = "fingerpost_heap_bytes";
            let help = "Memory of the allocator: allocated, and freed but not given back";
            head(out, name, help, "gauge");
            let _ = writeln!(out, "{name}{{state=\"used\"}} {}", heap.used);
            let _ = writeln!(out, "{name}{{state=\"free\"}} {}", heap.free);
        }
        let name = "fingerpost_changes_kept_bytes";
        let help = "Memory of the changes that are kept for those who watch, of all namespaces";
        head(out, name, help, "gauge");
        let namespaces = self.shared.namespaces();
        let kept = namespaces
            .iter()
            .map(|one| one.source.reader().events_bytes());
        let _ = writeln!(out, "{name} {}", kept.sum::<usize>());
    }

    /// What is not of a link: O(namespaces).
    fn own(&self, out: &mut String) {
        let version = env!("CARGO_PKG_VERSION");
        head(out, "fingerpost_build_info", "The release", "gauge");
        let _ = writeln!(out, "fingerpost_build_info{{version=\"{version}\"}} 1");
        let shared = &self.shared;
        let counts = &shared.counts;
        for (name, help, kind, value) in [
            (
                "process_resident_memory_bytes",
                "Memory that the daemon has in use",
                "gauge",
                status::resident_bytes(),
            ),
            (
                "process_start_time_seconds",
                "Start of the daemon since the UNIX epoch",
                "gauge",
                shared.started_secs,
            ),
            (
                "fingerpost_http_clients",
                "Clients connected over HTTP",
                "gauge",
                shared.clients.count() as u64,
            ),
            (
                "fingerpost_http_event_streams",
                "Event streams open",
                "gauge",
                shared.streams.count() as u64,
            ),
            (
                "fingerpost_http_clients_refused_total",
                "Clients refused for want of a place",
                "counter",
                counts.refused.load(std::sync::atomic::Ordering::Relaxed),
            ),
            (
                "fingerpost_answers_kept_bytes",
                "Memory that those who are answered take, of all faces",
                "gauge",
                shared.budget.taken() as u64,
            ),
            (
                "fingerpost_answers_kept_bytes_max",
                "Memory that they may take at most",
                "gauge",
                shared.budget.most() as u64,
            ),
            (
                "fingerpost_answers_without_memory_total",
                "How often somebody got less, or nothing, for want of it",
                "counter",
                shared.budget.refusals(),
            ),
        ] {
            head(out, name, help, kind);
            let _ = writeln!(out, "{name} {value}");
        }
        self.heap(out);
        let name = "fingerpost_http_requests_total";
        head(
            out,
            name,
            "Requests answered, by the class of their status",
            "counter",
        );
        for class in 2..=5 {
            let count = counts.of_class(class);
            let _ = writeln!(out, "{name}{{code=\"{class}xx\"}} {count}");
        }
        let snmp = shared.snmp.get().and_then(crate::snmp::Gauge::status);
        if let Some(master) = snmp.and_then(|snmp| snmp.agentx_master) {
            subagents::write(&master, out);
        }
        self.nat.write(out);
        if let Some(status) = &self.forwarding {
            forwarding::write(status, out);
        }
        if let Some(gauge) = self.shared.history.get() {
            history::write(&gauge.status(), out);
        }
        self.of_namespaces(out);
    }

    fn of_namespaces(&self, out: &mut String) {
        let name = "fingerpost_table_rows";
        head(out, name, "Rows of a table", "gauge");
        for one in self.namespaces.iter() {
            let tables = one.tables();
            for table in TABLES {
                let netns = one.name.as_deref();
                labelled(
                    out,
                    name,
                    &[("table", Some(table.name())), ("netns", netns)],
                    (table.rows)(&tables),
                );
            }
        }
        let statuses: Vec<_> = self
            .namespaces
            .iter()
            .map(|one| {
                let tables = one.tables();
                (one.name.as_deref(), one.source.status(), tables)
            })
            .collect();
        let name = "fingerpost_complete";
        head(
            out,
            name,
            "Whether answers are complete: 0 where rows may be missing",
            "gauge",
        );
        for one in self.namespaces.iter() {
            let netns = one.name.as_deref();
            labelled(
                out,
                name,
                &[("netns", netns)],
                u8::from(one.incomplete().is_none()),
            );
        }
        self.of_tables(out);
        self.of_feeders(out);
        for (name, help, kind, value) in families::MIRROR_FAMILIES {
            head(out, name, help, kind);
            for (netns, status, tables) in &statuses {
                labelled(out, name, &[("netns", *netns)], value(status, tables));
            }
        }
        let name = "fingerpost_mirror_last_scan_duration_seconds";
        head(out, name, "How long the last scan for drift took", "gauge");
        for (netns, status, _) in &statuses {
            let took = status.last_scan_time.as_secs_f64();
            labelled(out, name, &[("netns", *netns)], took);
        }
    }
}

impl Scrape {
    fn of_tables(&self, out: &mut String) {
        for (name, help, kind, value) in families::TABLE_FAMILIES {
            head(out, name, help, kind);
            for one in self.namespaces.iter() {
                let status = one.source.status();
                for table in TABLES {
                    let labels = [
                        ("table", Some(table.name())),
                        ("netns", one.name.as_deref()),
                    ];
                    labelled(out, name, &labels, value(&status, table.name()));
                }
            }
        }
    }

    /// Nothing where nobody feeds.
    fn of_feeders(&self, out: &mut String) {
        let all: Vec<_> = self
            .namespaces
            .iter()
            .map(|one| (one.name.as_deref(), status::feeders(&one.tables())))
            .collect();
        if all.iter().all(|(_, feeders)| feeders.is_empty()) {
            return;
        }
        for (name, help, kind, value) in families::FEEDER_FAMILIES {
            head(out, name, help, kind);
            for (netns, feeders) in &all {
                for feeder in feeders {
                    let labels = [("source", Some(&*feeder.name)), ("netns", *netns)];
                    labelled(out, name, &labels, value(feeder));
                }
            }
        }
    }
}
