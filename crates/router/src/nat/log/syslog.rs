//! Records as syslog messages (RFC 5424), one for each; over UDP a datagram
//! each (RFC 5426), over TCP and TLS with their length before them (RFC 6587
//! §3.4.1, RFC 5425 §4.3).

use std::fmt::Write as _;

use words::calendar;

use super::place::{Failed, Writer};
use super::record::{Record, What};
use super::stream::Connection;

/// Facility local0, severities informational and warning.
const INFORMATIONAL: u8 = 16 * 8 + 6;
const WARNING: u8 = 16 * 8 + 4;

/// Sends records to a collector.
pub struct Syslog {
    connection: Connection,
    host: String,
    process: u32,
    /// Messages of a stream that go together.
    buffer: Vec<u8>,
    line: String,
}

impl Syslog {
    pub fn new(connection: Connection, host: String) -> Self {
        Self {
            connection,
            host,
            process: std::process::id(),
            buffer: Vec::new(),
            line: String::new(),
        }
    }
}

impl Writer for Syslog {
    fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
        self.buffer.clear();
        for (at, record) in records.iter().enumerate() {
            self.line.clear();
            message(record, &self.host, self.process, &mut self.line);
            if self.connection.is_stream() {
                self.buffer.extend(self.line.len().to_string().bytes());
                self.buffer.push(b' ');
                self.buffer.extend(self.line.bytes());
                continue;
            }
            let sent = self.connection.send(self.line.as_bytes());
            sent.map_err(|error| Failed { written: at, error })?;
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        // What was half sent when it failed is sent again: a collector may
        // see a record twice. What the system took of us before the peer
        // went is lost without a word: the protocol has no answers.
        let sent = self.connection.send(&self.buffer);
        sent.map_err(|error| Failed { written: 0, error })
    }

    fn tick(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// One message.
fn message(record: &Record, host: &str, process: u32, out: &mut String) {
    let severity = match record.what {
        What::Exhausted | What::Quota(_) => WARNING,
        _ => INFORMATIONAL,
    };
    let seconds = calendar::text(record.at_millis / 1_000);
    let seconds = seconds.trim_end_matches('Z');
    let millis = record.at_millis % 1_000;
    let name = record.what.name();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<{severity}>1 {seconds}.{millis:03}Z {host} fingerpost-nat {process} {name} "
    );
    if record.inside.is_unspecified() {
        let _ = write!(out, "- the translation has {name}");
        return;
    }
    // 32473 is the number for examples (RFC 5612): there is none of ours.
    let _ = write!(
        out,
        "[nat@32473 inside=\"{}/{}\" alias=\"{}\"",
        record.inside, record.bits, record.alias
    );
    let (first, last) = record.ports;
    if last > 0 {
        let _ = write!(out, " first=\"{first}\" last=\"{last}\"");
    }
    if record.is_session() {
        let _ = write!(
            out,
            " protocol=\"{}\" insidePort=\"{}\" remote=\"{}\" remotePort=\"{}\"",
            record.protocol, record.inside_port, record.remote, record.remote_port
        );
    }
    let _ = write!(
        out,
        "] {name} {}/{} {}:{first}-{last}",
        record.inside, record.bits, record.alias
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_parts() {
        let mut record = Record::mark(1_795_317_300_042, What::Taken);
        record.inside = [100, 64, 0, 8].into();
        record.bits = 29;
        record.alias = [192, 0, 2, 1].into();
        record.ports = (1_024, 1_279);
        let mut text = String::new();
        message(&record, "cgn1", 7, &mut text);
        assert_eq!(
            text,
            "<134>1 2026-11-22T03:15:00.042Z cgn1 fingerpost-nat 7 block-taken \
             [nat@32473 inside=\"100.64.0.8/29\" alias=\"192.0.2.1\" first=\"1024\" last=\"1279\"] \
             block-taken 100.64.0.8/29 192.0.2.1:1024-1279"
        );
    }
}
