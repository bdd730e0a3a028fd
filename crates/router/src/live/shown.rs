//! Answers as text. Called by `asking`.

use std::fmt::Write;

use serde_json::Value;

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn is(row: &Value, name: &str) -> bool {
    row[name].as_bool().unwrap_or(false)
}

fn rows(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten()
}

/// A line of a text; writing to one never fails.
macro_rules! line {
    ($out:expr, $($words:tt)*) => {{
        let _ = writeln!($out, $($words)*);
    }};
}

/// Which families of packets.
fn families(of: &Value) -> &'static str {
    match (is(of, "ipv4"), is(of, "ipv6")) {
        (true, true) => "IPv4 IPv6",
        (true, false) => "IPv4",
        (false, true) => "IPv6",
        (false, false) => "nothing",
    }
}

/// `router status`.
pub fn status(answer: &Value) -> String {
    let mut out = String::new();
    for port in rows(&answer["ports"]) {
        let link = match port["link"].as_u64() {
            Some(link) => format!("link {link}"),
            None => "no link".to_owned(),
        };
        let (receives, sends) = (families(&port["receives"]), families(&port["sends"]));
        let mut notes = String::new();
        for (name, note) in [
            ("strict_sources", ", strict sources"),
            ("checks_checksums", ", looks for unfinished checksums"),
        ] {
            if is(port, name) {
                notes.push_str(note);
            }
        }
        line!(
            out,
            "{}: {link}, forwards {receives}, sends {sends}{notes}",
            text(port, "name")
        );
        for why in rows(&port["why"]) {
            line!(out, "    {}", why.as_str().unwrap_or_default());
        }
    }
    for obstacle in rows(&answer["obstacles"]) {
        let accepted = match is(obstacle, "accepted") {
            true => "passed by",
            false => "left to the kernel",
        };
        line!(
            out,
            "obstacle {}: {} ({accepted})",
            text(obstacle, "name"),
            text(obstacle, "what")
        );
    }
    let translation = &answer["translation"];
    if translation.is_object() {
        let at_work = translation["works"].as_bool().unwrap_or_default();
        let without = match translation["closed"].as_bool().unwrap_or_default() {
            true => "what is to be translated is dropped",
            false => "the kernel forwards it as it is",
        };
        let outside: Vec<&str> = rows(&translation["outside"])
            .filter_map(Value::as_str)
            .collect();
        line!(
            out,
            "translated behind {}: {} flows at XDP{}",
            outside.join(", "),
            translation["flows"],
            if at_work {
                String::new()
            } else {
                format!("; the engine does not answer: {without}")
            }
        );
    }
    for (family, most) in ["IPv4", "IPv6"].iter().zip(rows(&answer["most_bytes"])) {
        if let Some(most) = most.as_u64() {
            line!(
                out,
                "{family} packets of more than {most} bytes go up: a route's MTU"
            );
        }
    }
    line!(
        out,
        "{} s, {} looks, {} stale neighbours used",
        answer["seconds"],
        answer["looks"],
        answer["neighbours_used"]
    );
    out
}

/// `router counters`.
pub fn counters(answer: &Value) -> String {
    let mut out = String::new();
    for row in rows(answer) {
        line!(
            out,
            "{}: forwarded {} packets {} bytes, up {} packets {} bytes",
            text(row, "name"),
            row["forwarded_packets"],
            row["forwarded_bytes"],
            row["up_packets"],
            row["up_bytes"]
        );
        if row["dropped_packets"].as_u64() > Some(0) {
            line!(
                out,
                "{}: dropped {} packets {} bytes",
                text(row, "name"),
                row["dropped_packets"],
                row["dropped_bytes"]
            );
        }
    }
    out
}

/// `router reasons`.
pub fn reasons(answer: &Value) -> String {
    let mut out = String::new();
    for row in rows(answer) {
        line!(
            out,
            "{}: {} {} packets {} bytes ({})",
            text(row, "name"),
            text(row, "reason"),
            row["packets"],
            row["bytes"],
            text(row, "meaning")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_answered_is_said_in_words() {
        let answer = json!({
            "ports": [{"name": "eth1", "link": 3, "receives": {"ipv4": true, "ipv6": false},
                "sends": {"ipv4": false, "ipv6": false}, "strict_sources": true,
                "why": ["cannot send"]}],
            "obstacles": [{"name": "nft", "what": "a chain", "accepted": false}],
            "seconds": 7, "looks": 8, "neighbours_used": 0,
        });
        assert_eq!(
            status(&answer),
            "eth1: link 3, forwards IPv4, sends nothing, strict sources\n    cannot send\n\
             obstacle nft: a chain (left to the kernel)\n7 s, 8 looks, 0 stale neighbours used\n"
        );
        let answer = json!([{"name": "eth1", "reason": "ttl", "packets": 2, "bytes": 120,
            "meaning": "old"}]);
        assert_eq!(reasons(&answer), "eth1: ttl 2 packets 120 bytes (old)\n");
    }
}
