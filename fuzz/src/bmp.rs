//! A stream of BMP messages.

use std::net::SocketAddr;
use std::time::Duration;

use fingerpost_feed::bmp::{Heard, Messages, Now, Station, StationLimits};
use table::{Limits, Writer};

/// Lives of a connection that a target has at most.
const CONNECTIONS: u16 = 4;
/// What a stream that says nothing of itself is begun with, so that not all
/// is turned away: the initiation of `a`.
const INITIATION: [u8; 11] = [3, 0, 0, 0, 11, 4, 0, 2, 0, 1, b'a'];

/// Any bytes as a stream, cut into reads by its own content; and, after
/// whatever ended it, the rest as another connection's.
pub fn bmp(bytes: &[u8]) {
    // Small tables, so that their limits are met as well.
    let limits = StationLimits {
        rows: Limits {
            routes: 16,
            ..Limits::default()
        },
        routers: 2,
        tables: 4,
    };
    let first = Writer::default();
    let Ok(own) = first.feeders().join("fuzz", limits.rows) else {
        return;
    };
    let reader = first.reader();
    let mut station = Station::new(own, first.feeders(), String::new(), limits);
    let mut rest = bytes;
    for connection in 0..CONNECTIONS {
        let mut now = Now {
            monotonic: Duration::from_secs(u64::from(connection) * 1_000),
            millis: u64::from(connection) * 1_000_000,
            instant: None,
        };
        let mut messages = Messages::default();
        messages.push(&INITIATION);
        let from = SocketAddr::from(([127, 0, 0, 1], connection));
        let Ok(id) = station.connected(from, &mut messages, now) else {
            return;
        };
        while let Some((&cut, _)) = rest.split_first() {
            let (part, next) = rest.split_at(rest.len().min(1 + usize::from(cut)));
            rest = next;
            messages.push(part);
            match station.received(id, &mut messages, now) {
                Ok(Heard::On) => station.publish(),
                Ok(Heard::Ended(why)) => {
                    station.lost(id, &why, false, now);
                    break;
                }
                Err(error) => {
                    station.lost(id, &error.to_string(), true, now);
                    break;
                }
            }
        }
        let tables = reader.snapshot();
        let routes = tables.owners().map(|owner| owner.tables().routes.len());
        assert!(routes.sum::<usize>() <= 16);
        // The station's own, and the tables of one router.
        assert!(tables.owners().count() <= 1 + 4);
        for _ in 0..30 {
            now.monotonic += Duration::from_secs(1);
            station.tick(now, &mut |_| {});
            station.publish();
        }
    }
}
