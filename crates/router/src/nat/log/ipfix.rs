//! Records as IPFIX over UDP (RFC 7011), with the elements of RFC 8158.
//!
//! Templates go with the first message and again and again, because a
//! collector that was started later, or lost one, understands nothing before.

use std::time::{Duration, Instant};

use super::clock::wall_millis;
use super::place::{Failed, Writer};
use super::record::{Record, What};
use super::stream::Connection;

/// How often templates are sent again.
const TEMPLATES_AGAIN: Duration = Duration::from_secs(60);
/// Bytes of a message at most: no fragment on any way (RFC 7011 §10.3.3).
const MESSAGE_BYTES: usize = 1_400;
/// The template of blocks and exhaustion.
const OF_BLOCKS: u16 = 256;
/// The template of sessions.
const OF_SESSIONS: u16 = 257;
/// The template of quotas.
const OF_QUOTAS: u16 = 258;
/// `natQuotaExceededEvent`: a user has as many entries as it may have
/// (RFC 8158 §5.3; all quotas here are a subscriber's).
const ENTRIES_OF_A_USER: u32 = 3;

/// Elements and their lengths (IANA's registry).
const BLOCK_FIELDS: [(u16, u16); 7] = [
    // observationTimeMilliseconds, natEvent, sourceIPv4Address,
    (323, 8),
    (230, 1),
    (8, 4),
    // postNATSourceIPv4Address, portRangeStart, portRangeEnd,
    (225, 4),
    (361, 2),
    (362, 2),
    // sourceIPv4PrefixLength.
    (9, 1),
];
const SESSION_FIELDS: [(u16, u16); 9] = [
    (323, 8),
    (230, 1),
    (8, 4),
    (225, 4),
    // sourceTransportPort, postNAPTSourceTransportPort,
    (7, 2),
    (227, 2),
    // destinationIPv4Address, destinationTransportPort, protocolIdentifier.
    (12, 4),
    (11, 2),
    (4, 1),
];

const QUOTA_FIELDS: [(u16, u16); 5] = [
    (323, 8),
    (230, 1),
    // natQuotaExceededEvent.
    (466, 4),
    (8, 4),
    (9, 1),
];

/// Sends records to a collector.
pub struct Ipfix {
    connection: Connection,
    domain: u32,
    /// Data records so far (RFC 7011 §3.1).
    sequence: u32,
    templates_sent: Option<Instant>,
    /// Whether the message that is made has them.
    has_templates: bool,
    message: Vec<u8>,
}

impl Ipfix {
    pub fn new(connection: Connection, domain: u32) -> Self {
        Self {
            connection,
            domain,
            sequence: 0,
            templates_sent: None,
            has_templates: false,
            message: Vec::with_capacity(MESSAGE_BYTES),
        }
    }

    fn begin(&mut self, at_millis: u64) {
        self.message.clear();
        let seconds = (at_millis / 1_000) as u32;
        put(&mut self.message, &10_u16.to_be_bytes());
        put(&mut self.message, &[0; 2]);
        put(&mut self.message, &seconds.to_be_bytes());
        put(&mut self.message, &self.sequence.to_be_bytes());
        put(&mut self.message, &self.domain.to_be_bytes());
        self.has_templates = self.wants_templates();
        if self.has_templates {
            put_templates(&mut self.message);
        }
    }

    fn wants_templates(&self) -> bool {
        let again = |at: Instant| at.elapsed() >= TEMPLATES_AGAIN;
        self.templates_sent.is_none_or(again)
    }

    fn send(&mut self, records: u32) -> Result<(), String> {
        let len = self.message.len() as u16;
        if let Some(place) = self.message.get_mut(2..4) {
            place.copy_from_slice(&len.to_be_bytes());
        }
        let sent = self.connection.send(&self.message);
        match sent {
            Ok(()) => {
                self.sequence = self.sequence.wrapping_add(records);
                if self.has_templates {
                    self.templates_sent = Some(Instant::now());
                }
            }
            // Perhaps it did not get them.
            Err(_) => self.templates_sent = None,
        }
        sent
    }
}

impl Writer for Ipfix {
    fn write(&mut self, records: &[Record]) -> Result<(), Failed> {
        let mut written = 0;
        while let Some(rest) = records.get(written..).filter(|rest| !rest.is_empty()) {
            self.begin(wall_millis());
            let mut taken = 0;
            let mut sent = 0;
            while let Some(record) = rest.get(taken) {
                let Some(template) = template(record) else {
                    taken += 1;
                    continue;
                };
                let run = rest.iter().skip(taken);
                let run = run.take_while(|next| self::template(next) == Some(template));
                let room = MESSAGE_BYTES.saturating_sub(self.message.len() + 4);
                let run = run.take(room / len_of(template));
                let before = taken;
                taken += put_set(&mut self.message, template, run);
                sent += taken - before;
                if taken == before {
                    break;
                }
            }
            if sent > 0 {
                let done = self.send(sent as u32);
                done.map_err(|error| Failed { written, error })?;
            }
            written += taken;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        // Templates for who begins to listen, also while nothing happens.
        if self.wants_templates() {
            self.begin(wall_millis());
            return self.send(0);
        }
        Ok(())
    }
}

fn put(message: &mut Vec<u8>, bytes: &[u8]) {
    message.extend_from_slice(bytes);
}

/// By which template a record goes; `None`: there is no event for it.
fn template(record: &Record) -> Option<u16> {
    event(record.what)?;
    Some(match record.what {
        What::Quota(_) => OF_QUOTAS,
        _ if record.is_session() => OF_SESSIONS,
        _ => OF_BLOCKS,
    })
}

fn fields(template: u16) -> &'static [(u16, u16)] {
    match template {
        OF_SESSIONS => &SESSION_FIELDS,
        OF_QUOTAS => &QUOTA_FIELDS,
        _ => &BLOCK_FIELDS,
    }
}

/// RFC 8158's natEvent.
fn event(what: What) -> Option<u8> {
    match what {
        What::Started | What::Stopped | What::Suspended | What::Resumed | What::Recovered => None,
        // A block that is held still is told as one that was taken.
        What::Taken | What::Held => Some(16),
        What::GivenBack => Some(17),
        What::Exhausted => Some(12),
        What::Quota(_) => Some(13),
        What::SessionMade => Some(4),
        What::SessionEnded => Some(5),
    }
}

fn len_of(template: u16) -> usize {
    let lens = fields(template).iter().map(|(_, len)| usize::from(*len));
    lens.sum()
}

fn put_templates(message: &mut Vec<u8>) {
    let templates = [OF_BLOCKS, OF_SESSIONS, OF_QUOTAS];
    let len: usize = templates.iter().map(|of| 4 + 4 * fields(*of).len()).sum();
    put(message, &2_u16.to_be_bytes());
    put(message, &(4 + len as u16).to_be_bytes());
    for template in templates {
        put(message, &template.to_be_bytes());
        put(message, &(fields(template).len() as u16).to_be_bytes());
        for (element, len) in fields(template) {
            put(message, &element.to_be_bytes());
            put(message, &len.to_be_bytes());
        }
    }
}

/// Enters a set of records of one template; how many.
fn put_set<'a>(
    message: &mut Vec<u8>,
    template: u16,
    records: impl Iterator<Item = &'a Record>,
) -> usize {
    let at = message.len();
    put(message, &template.to_be_bytes());
    put(message, &[0; 2]);
    let mut count = 0;
    for record in records {
        put_record(message, record);
        count += 1;
    }
    if count == 0 {
        message.truncate(at);
        return 0;
    }
    let len = (message.len() - at) as u16;
    if let Some(place) = message.get_mut(at + 2..at + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
    count
}

fn put_record(message: &mut Vec<u8>, record: &Record) {
    put(message, &record.at_millis.to_be_bytes());
    put(message, &[event(record.what).unwrap_or(0)]);
    if matches!(record.what, What::Quota(_)) {
        put(message, &ENTRIES_OF_A_USER.to_be_bytes());
        put(message, &record.inside.octets());
        put(message, &[record.bits]);
        return;
    }
    put(message, &record.inside.octets());
    put(message, &record.alias.octets());
    let (first, last) = record.ports;
    if !record.is_session() {
        put(message, &first.to_be_bytes());
        put(message, &last.to_be_bytes());
        put(message, &[record.bits]);
        return;
    }
    put(message, &record.inside_port.to_be_bytes());
    put(message, &first.to_be_bytes());
    put(message, &record.remote.octets());
    put(message, &record.remote_port.to_be_bytes());
    put(message, &[record.protocol]);
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nat::QuotaKind;

    use super::super::stream::To;
    use super::*;

    #[test]
    fn messages_have_templates_first_and_lengths_that_are_right() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let to = To::Udp(collector.local_addr().unwrap());
        let mut ipfix = Ipfix::new(Connection::new(to), 5);
        let mut records = Vec::new();
        for number in 0..200_u16 {
            let kinds = [
                What::Taken,
                What::SessionMade,
                What::Started,
                What::Quota(QuotaKind::Sessions),
            ];
            let what = kinds[usize::from(number % 4)];
            let mut record = Record::mark(1_795_317_300_042, what);
            record.ports = (number, number + 1);
            records.push(record);
        }
        // Nothing goes to a collector about these, templates neither.
        assert!(ipfix.write(&[Record::mark(1, What::Started)]).is_ok());
        assert!(ipfix.write(&records).is_ok());
        let told = records.iter().filter(|record| template(record).is_some());
        let expected = told.count();
        let mut data = 0;
        let mut templates = 0;
        while data < expected {
            let mut buffer = [0; 2_000];
            let len = collector.recv(&mut buffer).unwrap();
            assert!(len <= MESSAGE_BYTES);
            let word = |at: usize| u16::from_be_bytes([buffer[at], buffer[at + 1]]);
            assert_eq!((word(0), usize::from(word(2))), (10, len));
            assert_eq!(
                u32::from_be_bytes(buffer[8..12].try_into().unwrap()),
                data as u32
            );
            let mut at = 16;
            while at < len {
                let (set, set_len) = (word(at), usize::from(word(at + 2)));
                if set == 2 {
                    assert_eq!((at, data), (16, 0));
                    templates += 1;
                } else {
                    assert_eq!((set_len - 4) % len_of(set), 0);
                    data += (set_len - 4) / len_of(set);
                }
                at += set_len;
            }
        }
        assert_eq!((data, templates), (expected, 1));
    }
}
