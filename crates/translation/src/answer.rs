//! The lines of an answer, as they are written and as they are read.

use serde_json::{Value, json};

/// Bytes of a line at most. No row comes near it.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A row, or what was done.
    Row(Value),
    /// There are no more; where a walk goes on, if it does.
    End(Option<String>),
    /// It is refused, or was cut off.
    Refused(String),
}

impl Line {
    /// Reads a line; `None`: it is none of an answer.
    pub fn read(line: &[u8]) -> Option<Self> {
        let row: Value = serde_json::from_slice(line).ok()?;
        let fields = row.as_object()?;
        if let Some(error) = fields.get("error") {
            return Some(Self::Refused(error.as_str()?.to_owned()));
        }
        if fields.contains_key("end") {
            let next = fields.get("next").and_then(Value::as_str);
            return Some(Self::End(next.map(str::to_owned)));
        }
        Some(Self::Row(row))
    }

    /// As JSON.
    pub fn json(self) -> Value {
        match self {
            Self::Row(row) => row,
            Self::End(next) => json!({"end": true, "next": next}),
            Self::Refused(why) => json!({"error": why}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for line in [
            Line::Row(json!({"helper": "ftp", "on": true})),
            Line::End(None),
            Line::End(Some("7.0.2048".to_owned())),
            Line::Refused("busy".to_owned()),
        ] {
            let written = line.clone().json().to_string();
            assert_eq!(Line::read(written.as_bytes()), Some(line));
        }
        for nonsense in ["", "7", "[]", "{\"error\":7}", "HTTP/1.1 200 OK"] {
            assert_eq!(Line::read(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}
