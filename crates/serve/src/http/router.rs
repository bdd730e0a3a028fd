//! `/v1/router`: how forwarding at XDP stands, with packets by port and by
//! what became of them. O(ports).

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use serde_json::{Value, json};

use super::problem::Problem;
use super::query::Parameters;
use super::shared::Shared;

/// Answers.
pub async fn answer(shared: &Arc<Shared>, request: &Parts) -> Result<Response, Problem> {
    Parameters::parse(request.uri.query())?.finish()?;
    let status = match shared.forwarding.get() {
        Some(gauge) => gauge.told().await,
        None => None,
    };
    let is_there = status.is_some();
    let status = status.unwrap_or_default();
    let said = json!({
        "running": is_there,
        "trouble": status.trouble,
        "report": status.report,
    });
    let mut response = Response::new(Body::from(format!("{said}\n")));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What an answer looks like, for the OpenAPI document.
pub fn schema() -> Value {
    let report = object(
        &json!({
            "millis": {
                "type": "integer",
                "description": "Since it began, when packets were counted"
            },
            "status": standing_schema(),
            "counters": {"type": "array", "items": counters_schema()},
            "reasons": {"type": "array", "items": reason_schema()}
        }),
        &["millis", "status", "counters", "reasons"],
    );
    object(
        &json!({
            "running": {
                "type": "boolean",
                "description": "Whether `fingerpost router` has its control socket open"
            },
            "trouble": {
                "type": ["string", "null"],
                "description": "Why it does not answer"
            },
            "report": {"anyOf": [{"type": "null"}, report]}
        }),
        &["running", "trouble", "report"],
    )
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn truth() -> Value {
    json!({"type": "boolean"})
}

fn standing_schema() -> Value {
    let families = object(
        &json!({"ipv4": truth(), "ipv6": truth()}),
        &["ipv4", "ipv6"],
    );
    let port = object(
        &json!({
            "name": text(),
            "link": {"type": ["integer", "null"], "description": "Its index, while it is there"},
            "receives": families,
            "sends": families,
            "sends_long": truth(),
            "strict_sources": truth(),
            "checks_checksums": truth()
        }),
        &["name", "link", "receives", "sends"],
    );
    let obstacle = object(
        &json!({"name": text(), "accepted": truth()}),
        &["name", "accepted"],
    );
    object(
        &json!({
            "inode": {
                "type": "integer",
                "description": "Of the network namespace that it forwards in"
            },
            "ports": {"type": "array", "items": port},
            "obstacles": {
                "type": "array",
                "description": "What is in the way, by name; `router status` says which",
                "items": obstacle
            },
            "translation": object(
                &json!({
                    "outside": {"type": "array", "items": text()},
                    "closed": {"type": "boolean"},
                    "works": {"type": "boolean"},
                    "flows": count()
                }),
                &["outside", "closed", "works", "flows"],
            ),
            "most_bytes": {
                "type": "array",
                "description": "Longer packets of IPv4, of IPv6 go up: the least MTU of a route",
                "items": {"type": ["integer", "null"]}
            },
            "neighbours_used": count(),
            "looks": count(),
            "seconds": count()
        }),
        &["ports", "obstacles", "seconds"],
    )
}

fn counters_schema() -> Value {
    object(
        &json!({
            "name": text(),
            "forwarded_packets": count(),
            "forwarded_bytes": count(),
            "up_packets": count(),
            "up_bytes": count(),
            "dropped_packets": count(),
            "dropped_bytes": count()
        }),
        &["name", "forwarded_packets", "up_packets"],
    )
}

fn reason_schema() -> Value {
    object(
        &json!({
            "name": text(),
            "reason": text(),
            "packets": count(),
            "bytes": count(),
            "meaning": text()
        }),
        &["name", "reason", "packets", "bytes"],
    )
}
