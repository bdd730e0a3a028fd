//! Rows as text: what `nat show` prints where JSON is not asked for.

use serde_json::Value;

/// A row as a line: names before values where a value alone says nothing.
pub fn line(row: &Value) -> String {
    let text = |name: &str| plain(row.get(name).unwrap_or(&Value::Null));
    let has = |name: &str| row.get(name).is_some_and(|value| !value.is_null());
    let end = |of: &str| format!("{}:{}", text(of), text(&format!("{of}_port")));
    let seconds = |name: &str| {
        let millis = row.get(name).and_then(Value::as_u64).unwrap_or(0);
        format!("{}s", millis / 1_000)
    };
    if has("state") {
        return format!(
            "{} {} {} -> {} idle {} expires {}",
            text("state"),
            end("inside"),
            end("alias"),
            end("remote"),
            seconds("idle_millis"),
            seconds("expires_millis")
        );
    }
    if has("flows") {
        let remote = if has("remote") {
            text("remote")
        } else {
            "any".to_owned()
        };
        return format!(
            "protocol {} {} {} remote {remote} flows {} expires {}",
            text("protocol"),
            end("inside"),
            end("alias"),
            text("flows"),
            seconds("expires_millis")
        );
    }
    if has("held_millis") {
        let ports = match has("first_port") {
            true => format!("{}-{}", text("first_port"), text("last_port")),
            false => "shuffled".to_owned(),
        };
        let kind = if row["deterministic"] == true {
            " deterministic"
        } else {
            ""
        };
        return format!(
            "{}:{ports} {} used {} held {}{kind}",
            text("alias"),
            text("subscriber"),
            text("used"),
            seconds("held_millis")
        );
    }
    words(row)
}

/// Names and values in order.
fn words(row: &Value) -> String {
    let Value::Object(fields) = row else {
        return plain(row);
    };
    let word = |(name, value): (&String, &Value)| match value {
        Value::Object(_) => format!("{name} ({})", words(value)),
        value => format!("{name} {}", plain(value)),
    };
    let all: Vec<String> = fields.iter().map(word).collect();
    all.join(" ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
