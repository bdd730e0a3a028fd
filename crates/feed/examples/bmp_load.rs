//! What a BMP station costs: paths of some peers as a router tells them, one
//! message a path, read as they come from a socket; told once, and again
//! after a cut; then a peer that goes down.
//!
//! `cargo run --release -p fingerpost-feed --example bmp_load [PATHS [PEERS]]`

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]

use std::alloc::System;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cap::Cap;
use fingerpost_feed::bmp::{Messages, Now, RouterId, Station, StationLimits};
use ipnet::Ipv4Net;
use lab::Random;
use lab::bmp::{Peer, initiation};
use lab::mrt::{Attributes, set_of_attributes};
use rustix::time::{ClockId, clock_gettime};
use table::Writer;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes of a read, as the server's.
const CHUNK: usize = 64 << 10;
/// Paths that share a set of attributes, as in a full feed.
const A_SET: u32 = 6;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let paths: u32 = arguments.next().unwrap_or(1_000_000);
    let peers = arguments.next().unwrap_or(4).clamp(1, 200);
    let each = paths / peers;
    let streams: Vec<Vec<u8>> = (0..peers).map(|at| stream(at as u16, each)).collect();
    let first = Writer::default();
    let limits = StationLimits::default();
    let own = first.feeders().join("bmp", limits.rows).unwrap();
    let reader = first.reader();
    let before = HEAP.allocated();
    let mut station = Station::new(own, first.feeders(), String::new(), limits);
    let mut now = Now::default();
    for what in ["told first", "told again"] {
        let mut messages = Messages::default();
        messages.push(&initiation("lab"));
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let router = station.connected(from, &mut messages, now).unwrap();
        let begun = cpu();
        for stream in &streams {
            for part in stream.chunks(CHUNK) {
                hear(&mut station, router, &mut messages, part, now);
            }
        }
        let spent = (cpu() - begun).as_nanos() / u128::from(each * peers);
        drop(messages);
        let tables = reader.snapshot();
        let rows: usize = tables.owners().map(|one| one.tables().routes.len()).sum();
        assert_eq!(rows, (each * peers) as usize);
        let sets = tables
            .owners()
            .map(|one| one.tables().routes.distinct_bodies());
        let sets: usize = sets.sum();
        let bytes = (HEAP.allocated() - before) as f64 / rows as f64;
        say(&format!(
            "{what}: {rows} paths of {peers} peers ({sets} sets of attributes), \
             {spent} ns of processor time a path, {bytes:.1} bytes of heap a path"
        ));
        drop(tables);
        now.monotonic += Duration::from_secs(1);
        station.lost(router, "cut", false, now);
    }
    flap(&mut station, now);
    let gone = reader.snapshot().of("bmp:192.0.2.1").unwrap().routes.len();
    assert_eq!(gone, 0);
}

/// A peer goes down: from the message to the moment at which readers see
/// none of its paths, and until their memory is given back.
fn flap(station: &mut Station, now: Now) {
    let mut messages = Messages::default();
    messages.push(&initiation("lab"));
    let from = SocketAddr::from(([127, 0, 0, 1], 1));
    let router = station.connected(from, &mut messages, now).unwrap();
    hear(station, router, &mut messages, &peer(0).plain_up(), now);
    let begun = (Instant::now(), cpu());
    hear(station, router, &mut messages, &peer(0).down(4, &[]), now);
    let (wall, spent) = (begun.0.elapsed(), cpu() - begun.1);
    say(&format!(
        "a peer down: {wall:.1?}, {spent:.1?} of processor time"
    ));
}

fn hear(station: &mut Station, router: RouterId, messages: &mut Messages, bytes: &[u8], now: Now) {
    messages.push(bytes);
    station.received(router, messages, now).unwrap();
    station.publish();
}

fn say(line: &str) {
    // Who asked may have gone.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn peer(at: u16) -> Peer {
    let asn = 3_000 + u32::from(at);
    Peer::new([192, 0, 2, at as u8 + 1].into(), asn)
}

/// All that a peer is told to have.
fn stream(at: u16, paths: u32) -> Vec<u8> {
    let mut random = Random::new(7);
    let mut stream = peer(at).plain_up();
    let mut set = 0;
    for number in 0..paths {
        // An origin has some prefixes behind each other, and some elsewhere.
        if random.below(3) == 0 {
            set = random.below((paths / A_SET + 1) as usize) as u32;
        }
        let how = Attributes(set_of_attributes(at, set));
        let address = (0x0100_0000 + (number << 8)).to_be_bytes();
        let prefix = Ipv4Net::new_assert(address.into(), 24);
        stream.extend(peer(at).update(&[], &how, &[prefix.into()]));
    }
    stream
}
