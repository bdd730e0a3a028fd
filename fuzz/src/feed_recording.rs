//! What feeds heard, as a recording has it.

use fingerpost_feed::recording::{Declaration, Kind, Replay, ReplayLimits};
use table::{Limits, Writer};

/// Records that a target replays at most.
const RECORDS: usize = 256;

/// Any bytes as records of two feeds, one by FPM and one by BMP: what it is
/// and of which (a byte), length of the payload (2 bytes, little endian),
/// payload.
pub fn feed_recording(bytes: &[u8]) {
    let first = Writer::default();
    // Small tables, so that their limits are met as well.
    let rows = Limits {
        routes: 16,
        nexthops: 8,
        ..Limits::default()
    };
    let mut replay = Replay::new(ReplayLimits { rows });
    for (number, kind) in [Kind::Fpm, Kind::Bmp].into_iter().enumerate() {
        let declaration = Declaration {
            kind,
            name: format!("feed{number}"),
            listening: String::new(),
        };
        let said = declaration.bytes();
        assert!(replay.feed(number as u32, first.feeders(), &said).is_ok());
    }
    let mut rest = bytes;
    for at in 0..RECORDS {
        let Some(([what, a, b], after)) = rest.split_first_chunk() else {
            break;
        };
        let len = usize::from(u16::from_le_bytes([*a, *b])).min(after.len());
        let (payload, next) = after.split_at(len);
        let number = u32::from(what & 1);
        // What makes no sense is said so, and changes nothing.
        let _ = match what >> 1 {
            0 | 1 => replay.heard(number, 1_000 * at as u64, payload),
            2 | 3 => replay.state(number, what >> 1 == 3),
            4 => replay.feed(number, first.feeders(), payload),
            5 => {
                replay.gap(number);
                Ok(())
            }
            6 => {
                replay.ended(number);
                Ok(())
            }
            _ => {
                replay.begin(what & 2 == 0);
                Ok(())
            }
        };
        rest = next;
    }
    replay.publish();
    let tables = first.reader().snapshot();
    for owner in tables.owners() {
        assert!(owner.tables().routes.len() <= 16);
    }
    let _ = replay.incomplete();
}
