//! What a feed costs: a million routes as zebra frames them, read as they
//! come from a socket, told once and then again after a cut.
//!
//! `cargo run --release -p fingerpost-feed --example load [ROUTES]`

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]

use std::io::Write;
use std::time::Duration;

use fingerpost_feed::fpm::{Frames, Now, Session};
use rustix::time::{ClockId, clock_gettime};
use table::{Limits, Writer};

/// Bytes of a read, as the server's.
const CHUNK: usize = 256 << 10;

fn main() {
    let routes = std::env::args()
        .nth(1)
        .map_or(1_000_000, |text| text.parse().unwrap());
    let stream: Vec<u8> = [object()]
        .into_iter()
        .chain((0..routes).map(route))
        .flatten()
        .collect();
    let first = Writer::default();
    let feeder = first.feeders().join("frr", Limits::default()).unwrap();
    let reader = feeder.reader();
    let mut session = Session::new(feeder, String::new());
    let mut now = Now::default();
    for what in ["told first", "told again"] {
        session.connected("peer", now);
        let mut frames = Frames::default();
        let begun = cpu();
        for part in stream.chunks(CHUNK) {
            frames.push(part);
            session.received(&mut frames, now).unwrap();
            session.publish();
        }
        let each = (cpu() - begun).as_nanos() / u128::from(routes);
        let tables = reader.snapshot();
        let bytes = tables.routes.heap_bytes() as f64 / f64::from(routes);
        let mut out = std::io::stdout().lock();
        let _ = writeln!(
            out,
            "{what}: {routes} routes, {each} ns of processor time each, {bytes:.1} bytes of heap each"
        );
        now.monotonic += Duration::from_secs(1);
        session.lost("cut", false, now);
    }
}

/// Of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn framed(kind: u16, header: &[u8], attributes: &[(u16, [u8; 4])]) -> Vec<u8> {
    let mut message = Vec::from(((16 + header.len() + 8 * attributes.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(0x501_u16.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(header);
    for (kind, value) in attributes {
        message.extend(8_u16.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
    }
    let len = (message.len() + 4) as u16;
    [&[1, 1][..], &len.to_be_bytes(), &message].concat()
}

/// The next-hop object 6.
fn object() -> Vec<u8> {
    let attributes = [
        (1, 6_u32.to_ne_bytes()),
        (6, [10, 1, 0, 2]),
        (5, 2_u32.to_ne_bytes()),
    ];
    framed(104, &[2, 0, 11, 0, 0, 0, 0, 0], &attributes)
}

/// A route of BGP with that object.
fn route(number: u32) -> Vec<u8> {
    let prefix = ((20 << 24) + (number << 8)).to_be_bytes();
    let attributes = [
        (1, prefix),
        (6, 20_u32.to_ne_bytes()),
        (30, 6_u32.to_ne_bytes()),
    ];
    framed(24, &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], &attributes)
}
