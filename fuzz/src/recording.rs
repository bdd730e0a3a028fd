//! Recordings of what mirrors are fed with.

use fingerpost_linux::recording::{Player, Reader, Record};
use fingerpost_table::Limits;

/// Records that a target replays at most.
const RECORDS: usize = 256;

/// A file, whatever is in it; and, as no check fits to bytes that were made
/// up, the same bytes as records without one: kind (1 byte), length of the
/// payload (2 bytes, little endian), payload.
pub fn recording(bytes: &[u8]) {
    if let Ok(mut reader) = Reader::open(bytes) {
        let mut player = player();
        player.begin(reader.head());
        while let Ok(Some(record)) = reader.next_record() {
            if player.take(&record).is_err() {
                break;
            }
        }
        player.publish();
    }
    let mut player = player();
    let mut rest = bytes;
    for number in 0..RECORDS {
        let Some(([kind, a, b], after)) = rest.split_first_chunk() else {
            break;
        };
        let len = usize::from(u16::from_le_bytes([*a, *b])).min(after.len());
        let (payload, next) = after.split_at(len);
        let record = Record {
            kind: u16::from(*kind),
            namespace: 1,
            at_micros: 1_000 * number as u64,
            payload,
        };
        // What makes no sense is said so, and changes nothing.
        let _ = player.take(&record);
        rest = next;
    }
    player.publish();
    let _ = (player.progress(), player.incomplete(), player.take_new());
}

/// Small tables, so that their limits are met as well.
fn player() -> Player {
    Player::new(Limits {
        links: 64,
        addresses: 64,
        neighbours: 64,
        routes: 64,
        nexthops: 64,
        rules: 64,
        fdb: 64,
    })
}
