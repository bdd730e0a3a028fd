//! The OpenAPI document, held against the answers.

use serde_json::Value;

use super::{ask, asked};

/// Checks a value against a schema, of which the document uses these
/// words only; gives what does not fit.
pub fn misfit(value: &Value, schema: &Value, document: &Value, at: &str) -> Option<String> {
    for word in schema.as_object()?.keys() {
        let known = [
            "type",
            "properties",
            "items",
            "anyOf",
            "$ref",
            "additionalProperties",
            "required",
            "description",
            "minimum",
            "maximum",
            "enum",
            "const",
        ];
        assert!(known.contains(&word.as_str()), "{word} is not checked");
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let of = document
            .pointer(reference.strip_prefix('#').unwrap())
            .unwrap();
        return misfit(value, of, document, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let misfits: Vec<_> = any
            .iter()
            .map(|schema| misfit(value, schema, document, at))
            .collect();
        return match misfits.iter().any(Option::is_none) {
            true => None,
            false => misfits.into_iter().flatten().next(),
        };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return Some(format!("{at}: {value} is no {types:?}"));
    }
    if let Some(items) = value.as_array() {
        return items
            .iter()
            .find_map(|item| misfit(item, &schema["items"], document, at));
    }
    let fields = value.as_object()?;
    fields.iter().find_map(|(name, field)| {
        let at = format!("{at}.{name}");
        match schema["properties"].get(name) {
            Some(schema) => misfit(field, schema, document, &at),
            None if schema["additionalProperties"] == true => None,
            None => Some(format!("{at} is not in the document")),
        }
    })
}

#[test]
fn every_answer_fits_the_document() {
    let Some((netns, _daemon)) = asked("httpschema") else {
        return;
    };
    let document = ask(&netns, "/openapi.json", &[]).json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let mut rows = 0;
    for (path, methods) in paths {
        let reply = match path.as_str() {
            "/v1/changes" | "/metrics" | "/openapi.json" => continue,
            // No translation is there: `nat.rs` has one.
            nat if nat.starts_with("/v1/nat/") => continue,
            "/v1/routes/get" => ask(&netns, "/v1/routes/get?address=10.1.2.3", &[]),
            // No feed is there: what they answer is in the tests of feeds.
            "/v1/routes/diff" => {
                let refused = ask(&netns, "/v1/routes/diff?first=kernel&second=frr", &[]);
                let problem = &document["components"]["schemas"]["Problem"];
                assert_eq!(misfit(&refused.json(), problem, &document, path), None);
                continue;
            }
            "/v1/routes/why" => ask(&netns, "/v1/routes/why?prefix=10.1.2.3", &[]),
            "/healthz" => ask(&netns, path, &[]),
            "/v1/sql" => ask(&netns, path, &["-d", "select prefix, dev from routes"]),
            table => {
                let schema = &methods["get"]["responses"]["200"]["content"]["application/json"];
                for query in [
                    "details&statistics",
                    "table=all",
                    "table=all&ipv6",
                    "ipv6",
                    "state=all",
                    "count",
                    "limit=2",
                    "netns=nope",
                    "nonsense",
                ] {
                    let reply = ask(&netns, &format!("{table}?{query}"), &[]);
                    let schema = match reply.status {
                        200 => &schema["schema"],
                        _ => &document["components"]["schemas"]["Problem"],
                    };
                    let wrong = misfit(&reply.json(), schema, &document, table);
                    assert_eq!(wrong, None, "{table}?{query}");
                    rows += reply.json().as_array().map_or(0, Vec::len);
                }
                ask(&netns, table, &[])
            }
        };
        assert_eq!(reply.status, 200, "{path}");
        let method = if path == "/v1/sql" { "post" } else { "get" };
        let schema = &methods[method]["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(
            misfit(&reply.json(), schema, &document, path),
            None,
            "{path}"
        );
    }
    assert!(rows > 50, "{rows} rows were checked");
    // Each parameter that is told is taken: no answer says it is unknown.
    for (path, methods) in paths {
        let (method, sent): (_, &[&str]) = match path.as_str() {
            "/v1/sql" => ("post", &["-d", "select 1"]),
            _ => ("get", &[]),
        };
        for parameter in methods[method]["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] != "query" || path == "/v1/changes" {
                continue;
            }
            let reply = ask(&netns, &format!("{path}?{name}=x"), sent);
            let unknown = format!("`{name}` is not known here");
            assert!(!reply.body.contains(&unknown), "{path}: {}", reply.body);
        }
    }
}
