//! The helpers' part of a saved state: connections, what was changed in
//! them, and calls.

use std::io;
use std::net::Ipv4Addr;

use arrayvec::ArrayVec;

use super::connection::Connection;
use super::sequence::{Change, Sequence, Text};
use super::{ControlKey, Helpers, Kind, skinny};
use crate::saved::{Chunk, Chunks, Fields, Record, tag};

impl Helpers {
    /// Writes all that is remembered; times as how long ago they were.
    pub fn save(&self, now_millis: u64, out: &mut Chunks<'_>) -> io::Result<()> {
        let mut record = Record::default();
        for (key, connection) in self.connections.all() {
            record = connection.saved(key, now_millis, record.again());
            out.record(tag::CONNECTION, record.bytes())?;
        }
        for (key, connection) in self.connections.all() {
            for (way, sequence) in [(0, &connection.out), (1, &connection.incoming)] {
                for change in sequence.changes() {
                    record = change.saved(put_key(key, record.again()).u8(way));
                    out.record(tag::CHANGE, record.bytes())?;
                }
            }
        }
        self.calls.save(now_millis, out)
    }

    /// Takes a chunk of [`Helpers::save`] that was written so long ago.
    pub fn restore(&mut self, chunk: &Chunk, time: (u64, u64)) {
        for mut fields in chunk.records() {
            match chunk.tag {
                tag::CONNECTION => {
                    let key = key(&mut fields);
                    if let Some(connection) = Connection::restored(&mut fields, time) {
                        self.connections
                            .insert(key, Box::new(connection), |_| false);
                    }
                }
                tag::CHANGE => {
                    let (key, way) = (key(&mut fields), fields.u8());
                    if let Some(connection) = self.connections.get_mut(&key) {
                        let change = Change::restored(&mut fields);
                        let sequence = match way {
                            0 => &mut connection.out,
                            _ => &mut connection.incoming,
                        };
                        sequence.restore_change(change);
                    }
                }
                _ => self.calls.restore(&mut fields, time),
            }
        }
    }
}

impl Connection {
    fn saved(&self, key: &ControlKey, now_millis: u64, out: Record) -> Record {
        let mut head = [0; 16];
        let mut told = [0; 32];
        for (place, byte) in head.iter_mut().zip(&self.head) {
            *place = *byte;
        }
        for (place, byte) in told.iter_mut().zip(&self.told) {
            *place = *byte;
        }
        let [inside, remote] = self.opened;
        let idle = now_millis.saturating_sub(self.last_used_millis);
        let out = put_key(key, out).u8(self.kind as u8).u64(idle);
        let out = self.incoming.saved(self.out.saved(out));
        let out = out.u8(u8::from(self.seen.is_some()));
        let out = out.u32(self.seen.unwrap_or(0));
        let out = out.u8(self.head.len() as u8).with(head);
        let out = out.u8(u8::from(self.head_lost));
        let out = out.u8(self.told.len() as u8).with(told);
        out.u8(u8::from(inside)).u8(u8::from(remote)).u32(self.left)
    }

    /// `None`: of a helper that is none of ours.
    fn restored(fields: &mut Fields<'_>, (now_millis, gone): (u64, u64)) -> Option<Self> {
        let kind = Kind::of(fields.u8())?;
        let idle = fields.u64().saturating_add(gone);
        let last_used = now_millis.saturating_sub(idle);
        let (out, incoming) = (Sequence::restored(fields), Sequence::restored(fields));
        let (is_seen, seen) = (fields.u8() != 0, fields.u32());
        let (head_len, head) = (usize::from(fields.u8()), fields.bytes::<16>());
        let head_lost = fields.u8() != 0;
        let (told_len, told) = (usize::from(fields.u8()), fields.bytes::<32>());
        let mut head: ArrayVec<u8, 16> = head.into_iter().take(head_len).collect();
        // A whole header is none that is waited for: it was never written so,
        // and where the next message begins is not known.
        let is_torn = kind == Kind::Skinny && head.len() >= skinny::HEADER_LEN;
        if is_torn {
            head.clear();
        }
        let told: Text = told.into_iter().take(told_len).collect();
        Some(Self {
            out,
            incoming,
            seen: is_seen.then_some(seen),
            head,
            head_lost: head_lost || is_torn,
            opened: [fields.u8() != 0, fields.u8() != 0],
            left: fields.u32(),
            ..Self::new(kind, told, last_used)
        })
    }
}

fn put_key(key: &ControlKey, out: Record) -> Record {
    let out = out.with(key.inside.octets()).u16(key.inside_port);
    out.with(key.remote.octets()).u16(key.remote_port)
}

fn key(fields: &mut Fields<'_>) -> ControlKey {
    ControlKey {
        inside: Ipv4Addr::from(fields.bytes::<4>()),
        inside_port: fields.u16(),
        remote: Ipv4Addr::from(fields.bytes::<4>()),
        remote_port: fields.u16(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ControlKey = ControlKey {
        inside: Ipv4Addr::new(10, 0, 0, 1),
        inside_port: 3_000,
        remote: Ipv4Addr::new(192, 0, 2, 1),
        remote_port: 2_000,
    };

    #[test]
    fn a_header_of_skinny_that_is_none_is_not_gone_on_with() {
        for len in 0..=16 {
            let mut saved = Connection::new(Kind::Skinny, Text::new(), 0);
            saved.head = (0..len).collect();
            let record = saved.saved(&KEY, 0, Record::default());
            let mut fields = Fields(record.bytes());
            assert_eq!(key(&mut fields), KEY);
            let restored = Connection::restored(&mut fields, (0, 0)).unwrap();
            let is_whole = usize::from(len) >= skinny::HEADER_LEN;
            assert_eq!(restored.head.is_empty(), is_whole || len == 0, "{len}");
            assert_eq!(restored.head_lost, is_whole, "{len}");
        }
    }
}
