//! `/openapi.json`: what can be asked, as OpenAPI 3.1, made from the same
//! tables that requests are read by ([`super::definition`], the words of
//! the command line, [`view::columns`]).

use serde_json::{Map, Value, json};
use view::conditions::{self, Word};
use view::{ColumnType, Object};

use super::definition::{
    ADDRESS, CHANGES, DIFF, FILTER, FLAPS, NETNS, OUTPUT, PAGES, Parameter, TABLES, Table,
    Value as Kind, WHY,
};
use super::nat::definition::{self as nat, NatTable};
use super::problem;

/// The document.
pub fn document() -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for table in TABLES {
        paths.insert(table.path.to_owned(), rows_path(table));
        schemas.insert(table.row.to_owned(), row(table.object));
    }
    paths.insert("/v1/routes/get".to_owned(), route_get_path());
    paths.insert("/v1/routes/diff".to_owned(), diff_path());
    paths.insert("/v1/routes/why".to_owned(), why_path());
    paths.insert("/v1/routes/flaps".to_owned(), flaps_path());
    for table in nat::TABLES {
        paths.insert(table.path.to_owned(), nat_path(table));
        schemas.insert(table.row.to_owned(), table.schema());
    }
    paths.insert("/v1/nat/who".to_owned(), nat_who_path());
    paths.insert(super::statement::PATH.to_owned(), sql_path());
    paths.insert("/v1/changes".to_owned(), changes_path());
    for (path, summary, media_type, schema) in [
        (
            "/v1/status",
            "How the daemon is, and how many rows each table has",
            "application/json",
            super::status::schema(),
        ),
        (
            "/v1/nat/statistics",
            "What a translation counted, and how much it has",
            "application/json",
            nat::statistics_schema(),
        ),
        (
            "/v1/router",
            "How forwarding at XDP (`fingerpost router`) stands, with packets by port and by \
             what became of them",
            "application/json",
            super::router::schema(),
        ),
        (
            "/metrics",
            "Metrics for Prometheus, links with node_exporter's names",
            "text/plain",
            json!({"type": "string"}),
        ),
        (
            "/healthz",
            "Whether the daemon is well: 200, else 503",
            "application/json",
            json!({
                "type": "object",
                "properties": {"status": {"const": "ok"}},
                "required": ["status"],
                "additionalProperties": false
            }),
        ),
        (
            "/openapi.json",
            "This document",
            "application/json",
            json!({"type": "object"}),
        ),
    ] {
        let content = json!({media_type: {"schema": schema}});
        let netns = matches!(path, "/metrics" | "/v1/status").then(|| parameter(&NETNS));
        let parameters = netns.into_iter().collect();
        let id = path
            .trim_start_matches("/v1")
            .trim_start_matches('/')
            .replace(".json", "");
        paths.insert(
            path.to_owned(),
            path_of(&id, summary, parameters, &content, &[]),
        );
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fingerpost",
            "summary": "What a router knows, at any size, answered at once",
            "description": "Questions only: nothing here changes anything, a statement of SQL neither. Each parameter is the \
                            flag of the same name on the command line.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"}
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Where `token_file` is configured; always beyond loopback"
                }
            }
        }
    })
}

fn rows_path(table: &Table) -> Value {
    let words = conditions::of_object(conditions::FILTERS, table.object).map(word);
    let others = [&NETNS, &FILTER].into_iter().chain(OUTPUT).chain(PAGES);
    let parameters = words.chain(others.map(parameter)).collect();
    let content = rows_content(table.row);
    let id = table.path.trim_start_matches("/v1/");
    path_of(
        id,
        table.summary,
        parameters,
        &content,
        &[
            "ETag",
            "Link",
            "Fingerpost-Generation",
            "Fingerpost-Counters-At",
        ],
    )
}

/// Rows in each of the formats; with `count`, their number.
fn rows_content(row: &str) -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{row}")});
    let rows = json!({"type": "array", "items": schema});
    json!({
        "application/json": {"schema": {"anyOf": [rows, {"type": "integer", "minimum": 0}]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
        "text/csv": {"schema": {"type": "string"}}
    })
}

fn nat_path(table: &NatTable) -> Value {
    let id = table.path.trim_start_matches("/v1/");
    let parameters = table.parameters().map(parameter).collect();
    let mut content = rows_content(table.row);
    if let Some(types) = content.as_object_mut() {
        types.remove("text/csv");
    }
    path_of(id, table.summary, parameters, &content, &["Link"])
}

fn sql_path() -> Value {
    let format = json!({
        "name": "format",
        "in": "query",
        "description": "What rows are written as, whatever Accept says",
        "schema": {"type": "string", "enum": ["json", "ndjson", "csv"]}
    });
    let explain = json!({
        "name": "explain",
        "in": "query",
        "description": "What was looked up in an index, and how many rows were looked at, instead \
                        of the rows",
        "schema": {"type": "boolean"}
    });
    let parameters = [parameter(&NETNS), format, explain];
    super::sql::path(&parameters, &refused())
}

fn nat_who_path() -> Value {
    let parameters = nat::WHO.iter().map(required);
    let parameters = parameters.chain([parameter(&nat::FORMAT)]).collect();
    let summary = "Whose an outside port of a translation is now: the block that it is in";
    let schema = json!({"type": "array", "items": {"$ref": "#/components/schemas/NatBlock"}});
    let content = json!({"application/json": {"schema": schema}});
    path_of("natWho", summary, parameters, &content, &[])
}

fn route_get_path() -> Value {
    let address = required(&ADDRESS);
    let words = conditions::of_object(conditions::GET, Object::Route).map(word);
    let others = [&NETNS].into_iter().chain(OUTPUT).map(parameter);
    let parameters = [address].into_iter().chain(words).chain(others).collect();
    path_of(
        "routeGet",
        "The route that a packet would take, as `ip -j route get` shows it",
        parameters,
        &rows_content("Route"),
        &["ETag", "Fingerpost-Generation"],
    )
}

fn diff_path() -> Value {
    let words = conditions::of_object(conditions::FILTERS, Object::Route);
    let words = words.filter(|word| word.flag != "source").map(word);
    let [first, second, others @ ..] = &DIFF;
    let named = [required(first), required(second), parameter(&NETNS)];
    let parameters = named.into_iter().chain(words);
    let parameters = parameters.chain(others.iter().map(parameter)).collect();
    let side = json!({"type": "array", "items": {"$ref": "#/components/schemas/Route"}});
    let difference = json!({
        "type": "object",
        "properties": {
            "family": {"enum": ["inet", "inet6"], "type": "string"},
            "dst": {"type": "string"},
            "table": {"type": "string"},
            "difference": {"enum": ["missing", "extra", "different"], "type": "string"},
            "since_millis": {"type": "integer"},
            "or_earlier": {"type": "boolean"},
            "first": side,
            "second": side
        },
        "additionalProperties": false
    });
    let all = json!({"type": "array", "items": difference});
    let content = json!({
        "application/json": {"schema": {"anyOf": [all, {"type": "integer", "minimum": 0}]}},
        "application/x-ndjson": {"schema": {"type": "string"}}
    });
    path_of(
        "routesDiff",
        "Where the routes of two sources differ, prefix by prefix: `missing` in the second, \
         `extra` there, or `different`",
        parameters,
        &content,
        &[],
    )
}

fn why_path() -> Value {
    let [prefix, others @ ..] = &WHY;
    let others = others.iter().chain([&NETNS]).map(parameter);
    let parameters = [required(prefix)].into_iter().chain(others).collect();
    let row = json!({"type": "object", "additionalProperties": true});
    let rows = json!({"type": "array", "items": row});
    let source = json!({
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "routes": rows,
            "changes": {"type": "integer"},
            "known_since_millis": {"type": "integer"},
            "history": rows
        },
        "additionalProperties": false
    });
    let content = json!({"application/json": {"schema": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "table": {"type": "string"},
            "sources": {"type": "array", "items": source},
            "packet": row
        },
        "additionalProperties": false
    }}});
    path_of(
        "routesWhy",
        "What each source knows of a prefix, with a verdict for each route, and what a packet \
         there would do",
        parameters,
        &content,
        &[],
    )
}

fn flaps_path() -> Value {
    let parameters = FLAPS.iter().chain([&NETNS]).map(parameter).collect();
    let integer = json!({"type": "integer", "minimum": 0});
    let row = json!({
        "type": "object",
        "properties": {
            "dst": {"type": "string"},
            "table": {"type": "string"},
            "source": {"type": "string"},
            "changes": integer,
            "added": integer,
            "changed": integer,
            "deleted": integer,
            "first_millis": integer,
            "last_millis": integer,
            "there": {"type": "boolean"},
            "parts": {"type": "array", "items": integer},
            "prefixes": integer,
            "known_since_millis": integer,
            "downs": integer
        },
        "additionalProperties": false
    });
    let rows = json!({"type": "array", "items": row});
    let content = json!({"application/json": {"schema": {
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "secs": integer,
            "known_since_millis": integer,
            "complete": {"type": "boolean"},
            "count": integer,
            "prefixes": rows,
            "sources": rows
        },
        "additionalProperties": false
    }}});
    path_of(
        "routesFlaps",
        "Which routes changed how often, as far back as events are kept (`known_since_millis`; \
         not `complete`: that is less than was asked for)",
        parameters,
        &content,
        &[],
    )
}

fn required(of: &Parameter) -> Value {
    let mut parameter = parameter(of);
    if let Some(map) = parameter.as_object_mut() {
        map.insert("required".to_owned(), true.into());
    }
    parameter
}

fn changes_path() -> Value {
    let mut parameters: Vec<Value> = [&NETNS].into_iter().chain(CHANGES).map(parameter).collect();
    // Changes are those of the kernel's rows.
    let mut told = vec!["source"];
    for word in conditions::FILTERS {
        // Two objects may have a word with one flag; a name is told once.
        if !told.contains(&word.flag) {
            told.push(word.flag);
            parameters.push(self::word(word));
        }
    }
    parameters.push(json!({
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event seen, as browsers send it",
        "schema": {"type": "string"}
    }));
    let content = json!({"text/event-stream": {"schema": {
        "type": "string",
        "description": "Events `start`, `added`, `changed`, `deleted` (data: a row, with `event`, \
                        `object` and `time_millis`, a changed one with the row that it was as \
                        `before`) and `fell_behind`: some changes are lost, ask for the rows \
                        again and go on from its generation"
    }}});
    path_of(
        "changes",
        "Changes as they happen, as server-sent events",
        parameters,
        &content,
        &[],
    )
}

fn path_of(
    id: &str,
    summary: &str,
    parameters: Vec<Value>,
    content: &Value,
    headers: &[&str],
) -> Value {
    let headers: Map<String, Value> = headers
        .iter()
        .map(|name| ((*name).to_owned(), json!({"schema": {"type": "string"}})))
        .collect();
    let mut responses = Map::new();
    let ok = json!({"description": "The answer", "headers": headers, "content": content});
    responses.insert("200".to_owned(), ok);
    if !headers.is_empty() {
        let known = json!({"description": "If-None-Match named the ETag of this answer"});
        responses.insert("304".to_owned(), known);
    }
    let refused = refused();
    responses.insert("4XX".to_owned(), refused.clone());
    responses.insert("5XX".to_owned(), refused);
    json!({"get": {
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "responses": responses
    }})
}

fn refused() -> Value {
    json!({
        "description": "What is wrong, and what to do",
        "content": {problem::MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    })
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "description": "RFC 9457",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"}
        },
        "required": ["type", "title", "status", "detail"],
        "additionalProperties": false
    })
}

fn word<T: Default>(word: &'static Word<T>) -> Value {
    let schema = match (word.value, word.many) {
        (None, _) => json!({"type": "boolean"}),
        (Some("NUMBER" | "ID" | "GROUP"), false) => json!({"type": "integer", "minimum": 0}),
        (Some(_), false) => json!({"type": "string"}),
        (Some(_), true) => json!({"type": "array", "items": {"type": "string"}}),
    };
    json!({"name": word.flag, "in": "query", "description": word.help, "schema": schema})
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.value {
        Kind::Text => json!({"type": "string"}),
        Kind::OneOf(names) => json!({"type": "string", "enum": names}),
        Kind::Number(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
        Kind::Switch => json!({"type": "boolean"}),
    };
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "schema": schema
    })
}

/// The schema of a row: its columns, nested where they have dots.
fn row(object: Object) -> Value {
    let mut root = Map::new();
    for column in view::columns(object) {
        let mut parts = column.name.split('.').peekable();
        let mut level = &mut root;
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let entry = level.entry(part).or_insert_with(|| {
                if is_last {
                    leaf(column.holds)
                } else {
                    json!({"properties": {}})
                }
            });
            let Some(next) = entry.get_mut("properties").and_then(Value::as_object_mut) else {
                break;
            };
            level = next;
        }
    }
    if object == Object::Route {
        root.insert(
            "nexthops".to_owned(),
            json!({"items": {"type": "object", "additionalProperties": true}}),
        );
    }
    for name in ["netns", "words"] {
        root.insert(name.to_owned(), json!({"type": "string"}));
    }
    let mut schema = json!({"properties": root});
    settle(&mut schema, "", is_open(object));
    schema
}

/// Whether rows have fields that are no columns: those of encapsulations.
fn is_open(object: Object) -> bool {
    matches!(object, Object::Route | Object::Nexthop)
}

/// Says of everything with properties whether it is an object or a list
/// of objects.
fn settle(schema: &mut Value, name: &str, open: bool) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    if map.contains_key("items") {
        map.insert("type".to_owned(), "array".into());
    }
    let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        settle(property, name, open);
    }
    map.insert("type".to_owned(), "object".into());
    map.insert(
        "additionalProperties".to_owned(),
        (open || name == "info_data").into(),
    );
    if matches!(name, "addr_info" | "metrics" | "group") {
        *schema = json!({"type": "array", "items": schema.take()});
    }
}

/// What a column holds.
fn leaf(holds: ColumnType) -> Value {
    match holds {
        ColumnType::Number => json!({"type": "integer"}),
        ColumnType::Flag => json!({"type": ["boolean", "null"]}),
        ColumnType::List => json!({"items": {"type": "string"}}),
        ColumnType::Row => json!({"type": "object", "additionalProperties": true}),
        ColumnType::Text | ColumnType::Address | ColumnType::Prefix | ColumnType::LinkLayer => {
            json!({"type": "string"})
        }
        // A link in a foreign namespace may have a number for a name, and
        // times of a bridge are in hundredths of a second.
        _ => json!({"type": ["string", "number", "boolean", "null"]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_told_once_and_every_reference_leads_somewhere() {
        let document = document();
        for (path, methods) in document["paths"].as_object().unwrap() {
            let method = if path == "/v1/sql" { "post" } else { "get" };
            let parameters = methods[method]["parameters"].as_array().unwrap();
            let mut names: Vec<_> = parameters.iter().map(|one| one["name"].as_str()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{path}");
        }
        let text = document.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
    }

    #[test]
    fn rows_have_the_columns() {
        let link = row(Object::Link);
        assert_eq!(link["properties"]["ifname"]["type"], "string");
        let bytes = &link["properties"]["stats64"]["properties"]["rx"]["properties"]["bytes"];
        assert_eq!(bytes["type"], "integer");
        let address = row(Object::Addr);
        assert_eq!(address["properties"]["addr_info"]["type"], "array");
    }
}
