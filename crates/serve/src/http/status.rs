//! `/v1/status`: how the daemon is and how many rows each table has, for
//! the page and for programs that want no metrics. O(namespaces).

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use serde_json::{Value, json};

use super::definition::TABLES;
use super::nat;
use super::problem::Problem;
use super::query::Parameters;
use super::shared::Shared;
use crate::status;

/// Answers how the daemon is.
pub fn answer(shared: &Arc<Shared>, request: &Parts) -> Result<Response, Problem> {
    let mut parameters = Parameters::parse(request.uri.query())?;
    let netns = parameters.take("netns")?;
    parameters.finish()?;
    let namespace = shared.namespace(netns.as_deref(), request)?;
    let (tables, mirror) = (namespace.tables(), namespace.source.status());
    let told = shared.told(request);
    let names: Vec<Option<String>> = told.iter().map(|one| one.name.clone()).collect();
    let rows: Vec<Value> = TABLES
        .iter()
        .map(|table| json!({"table": table.name(), "rows": (table.rows)(&tables)}))
        .collect();
    let said = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "host": rustix::system::uname().nodename().to_string_lossy(),
        "netns": namespace.name,
        "namespaces": names,
        "uptime_secs": shared.started.elapsed().as_secs(),
        "generation": tables.generation.0,
        "resident_bytes": shared.memory(),
        "clients": shared.clients.count(),
        "mirror": {
            "phase": mirror.in_words(),
            "events": mirror.events,
            "resyncs": mirror.resyncs,
            "overruns": mirror.overruns,
            "drift": mirror.drift,
            "full": mirror.full,
            "complete": namespace.incomplete().is_none(),
            "incomplete": mirror.incomplete,
            "refused": mirror.refused.values().sum::<u64>(),
            "foreign": mirror.foreign,
            "last_scan_millis": (mirror.last_scan_millis > 0).then_some(mirror.last_scan_millis),
            "last_scan_time_millis": mirror.last_scan_time.as_millis() as u64,
            "last_scan_drift": mirror.last_scan_drift,
            "last_trouble": mirror.last_trouble,
            "counters_at_millis": tables.link_counters.taken_at_millis,
        },
        "tables": rows,
        "feeders": status::feeders(&tables),
        "translation": nat::is_told(shared, request).map(|is_told| json!({"told": is_told})),
    });
    let mut response = Response::new(Body::from(format!("{said}\n")));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What an answer looks like, for the OpenAPI document.
pub fn schema() -> Value {
    let count = || json!({"type": "integer", "minimum": 0});
    let text = || json!({"type": ["string", "null"]});
    json!({
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "host": {"type": "string", "description": "The host's name"},
            "netns": text(),
            "namespaces": {"type": "array", "items": text()},
            "uptime_secs": count(),
            "generation": count(),
            "resident_bytes": count(),
            "clients": {
                "type": "integer",
                "minimum": 0,
                "description": "Connections over HTTP, the one of this answer with them"
            },
            "mirror": {
                "type": "object",
                "properties": {
                    "phase": {"type": "string"},
                    "events": count(),
                    "resyncs": count(),
                    "overruns": count(),
                    "drift": count(),
                    "full": text(),
                    "complete": {
                        "type": "boolean",
                        "description": "False: an answer may lack rows, or have some that are gone"
                    },
                    "incomplete": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Tables that miss rows because they had no place"
                    },
                    "refused": count(),
                    "foreign": count(),
                    "last_scan_millis": {"type": ["integer", "null"]},
                    "last_scan_time_millis": count(),
                    "last_scan_drift": count(),
                    "last_trouble": text(),
                    "counters_at_millis": {
                        "type": ["integer", "null"],
                        "description": "When the counters of links were read last, since 1970"
                    }
                },
                "additionalProperties": false
            },
            "tables": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"table": {"type": "string"}, "rows": count()},
                    "required": ["table", "rows"],
                    "additionalProperties": false
                }
            },
            "feeders": {
                "type": "array",
                "description": "Those who feed rows beside the kernel's: `source=NAME`",
                "items": feeder_schema()
            },
            "translation": {
                "type": ["object", "null"],
                "description": "Whether a translation is there to be asked, and whether who asks this is told of it",
                "properties": {"told": {"type": "boolean"}},
                "required": ["told"],
                "additionalProperties": false
            }
        },
        "required": ["version", "namespaces", "generation", "mirror", "tables", "feeders"],
        "additionalProperties": false
    })
}

fn feeder_schema() -> Value {
    let count = || json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "phase": {"type": "string"},
            "complete": {"type": "boolean"},
            "routes": count(),
            "nexthops": count(),
            "resyncs": count(),
            "refused": count(),
            "listening": {
                "type": ["string", "null"],
                "description": "Where a peer is waited for that feeds it over a connection"
            },
            "peer": {
                "type": ["string", "null"],
                "description": "Who feeds it; the last one that did, where nobody does"
            },
            "since_millis": {
                "type": ["integer", "null"],
                "description": "When that one came, or went, since 1970"
            },
            "since_secs": {
                "type": ["integer", "null"],
                "description": "How long ago that was, by a clock that nobody sets"
            },
            "connections": count(),
            "turned_away": count(),
            "frames": count(),
            "messages": count(),
            "skipped": {
                "type": "object",
                "description": "Messages that have no row here, by what they are",
                "additionalProperties": count()
            },
            "malformed": count(),
            "unconfirmed": count(),
            "swept": count(),
            "last_heard_millis": {"type": ["integer", "null"]},
            "last_heard_secs": {"type": ["integer", "null"]},
            "routers": {
                "type": "array",
                "description": "Of a BMP station: its routers, whose peers' tables are sources",
                "items": router_schema()
            },
            "monitored": monitored_schema()
        },
        "required": ["name", "phase", "complete"],
        "additionalProperties": false
    })
}

fn router_schema() -> Value {
    let count = || json!({"type": "integer", "minimum": 0});
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "name": text(),
            "description": text(),
            "peer": text(),
            "disconnected": {"type": ["string", "null"]},
            "since_millis": count(),
            "since_secs": count(),
            "connections": count(),
            "peers": count(),
            "peers_up": count(),
            "routes": count(),
            "unconfirmed": count(),
            "messages": count(),
            "skipped": {"type": "object", "additionalProperties": count()},
            "refused": count()
        },
        "required": ["name", "disconnected", "peers", "peers_up"],
        "additionalProperties": false
    })
}

fn monitored_schema() -> Value {
    let count = || json!({"type": "integer", "minimum": 0});
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "description": "Of a table that a router tells by BMP: the BGP peer that it is of",
        "properties": {
            "router": text(),
            "address": text(),
            "distinguisher": text(),
            "table_name": text(),
            "rib": text(),
            "asn": count(),
            "bgp_id": text(),
            "up": {"type": "boolean"},
            "ups": count(),
            "downs": count(),
            "history": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "at_millis": count(),
                        "secs": count(),
                        "up": {"type": "boolean"},
                        "why": text()
                    },
                    "additionalProperties": false
                }
            },
            "statistics": {"type": "object", "additionalProperties": count()},
            "statistics_millis": {"type": ["integer", "null"]},
            "statistics_secs": {"type": ["integer", "null"]},
            "mirrored": count()
        },
        "required": ["router", "rib", "up"],
        "additionalProperties": false
    })
}
