//! A stream of FPM frames.

use std::time::Duration;

use fingerpost_feed::fpm::{Frames, Now, Session};
use table::{Limits, Writer};

/// Lives of a connection that a target has at most.
const CONNECTIONS: u64 = 4;

/// Any bytes as a stream, cut into reads by its own content; and, after
/// whatever ended it, the rest as another connection's.
pub fn fpm(bytes: &[u8]) {
    // Small tables, so that their limits are met as well.
    let limits = Limits {
        routes: 32,
        nexthops: 8,
        ..Limits::default()
    };
    let first = Writer::default();
    let Ok(feeder) = first.feeders().join("fuzz", limits) else {
        return;
    };
    let reader = feeder.reader();
    let mut session = Session::new(feeder, String::new());
    let mut rest = bytes;
    for connection in 0..CONNECTIONS {
        let mut now = Now {
            monotonic: Duration::from_secs(connection * 1_000),
            millis: connection * 1_000_000,
            instant: None,
        };
        session.connected("peer", now);
        let mut frames = Frames::default();
        while let Some((&cut, _)) = rest.split_first() {
            let (part, next) = rest.split_at(rest.len().min(1 + usize::from(cut)));
            rest = next;
            frames.push(part);
            assert!(frames.pending() <= 65_535 + 256);
            if let Err(error) = session.received(&mut frames, now) {
                session.lost(&error.to_string(), true, now);
                break;
            }
            session.publish();
        }
        assert!(reader.snapshot().routes.len() <= 32);
        for _ in 0..30 {
            now.monotonic += Duration::from_secs(1);
            session.tick(now);
        }
    }
}
