//! Nanoseconds to decode a message of a dump of a million, in memory:
//! routes as a full table has them, and neighbours. The median datagram
//! (a few hundred messages: what other processes take away hits few of
//! them), and the median of whole rounds.
//!
//! `cargo bench -p fingerpost-netlink`

#![allow(
    clippy::expect_used,
    reason = "a bench stops at the first thing that is not as it should be"
)]

use std::hint::black_box;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use fingerpost_netlink::decode::{self, Operation};
use fingerpost_netlink::encode::{self, Request};
use fingerpost_netlink::message::{Message, messages};
use ipnet::{IpNet, Ipv4Net};
use table::{LinkLayerAddress, Neighbour, NextHop, NextHops, RawAttributes, Route, RouteBody};

const MESSAGES: u32 = 1_000_000;
/// Bytes of a receive buffer: what the kernel fills at most.
const DATAGRAM: usize = 32 << 10;
const ROUNDS: usize = 9;

const REQUEST: Request = Request {
    operation: Operation::New,
    flags: 0,
    sequence: 1,
    now_millis: 0,
};

fn main() -> io::Result<()> {
    let routes = dump(|out, number| {
        let row = route(number);
        encode::route(out, &REQUEST, &row).expect("a short route");
    });
    let neighbours = dump(|out, number| {
        let row = neighbour(number);
        encode::neighbour(out, &REQUEST, &row).expect("a short neighbour");
    });
    let mut out = io::stdout().lock();
    measure(&mut out, "walk, nothing decoded", &routes, |message| {
        black_box(message.payload.len());
    })?;
    measure(&mut out, "decode::route", &routes, |message| {
        black_box(decode::route(message.payload, 0)).expect("a sound route");
    })?;
    measure(&mut out, "decode::decode, routes", &routes, |message| {
        black_box(decode::decode(message, 0)).expect("a sound message");
    })?;
    measure(&mut out, "decode::neighbour", &neighbours, |message| {
        black_box(decode::neighbour(message.payload)).expect("a sound neighbour");
    })
}

/// Datagrams like those of a dump.
fn dump(mut write: impl FnMut(&mut Vec<u8>, u32)) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut datagram = Vec::with_capacity(DATAGRAM);
    for number in 0..MESSAGES {
        write(&mut datagram, number);
        if datagram.len() > DATAGRAM - 128 {
            datagrams.push(std::mem::replace(
                &mut datagram,
                Vec::with_capacity(DATAGRAM),
            ));
        }
    }
    datagrams.push(datagram);
    datagrams
}

fn measure(
    out: &mut impl Write,
    what: &str,
    datagrams: &[Vec<u8>],
    each: impl Fn(&Message<'_>),
) -> io::Result<()> {
    let mut rounds = Vec::new();
    let mut pieces = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for datagram in datagrams {
            let start = Instant::now();
            let mut count = 0;
            for message in messages(datagram) {
                each(&message.expect("a sound message"));
                count += 1;
            }
            pieces.push(nanos(start) / f64::from(count));
        }
        rounds.push(nanos(start) / f64::from(MESSAGES));
    }
    let round = middle(&mut rounds);
    let piece = middle(&mut pieces);
    writeln!(
        out,
        "{what:24} {piece:6.1} ns a message in the median datagram, {round:6.1} in the median round"
    )
}

fn nanos(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn route(number: u32) -> Route {
    let address = Ipv4Addr::from(0x0100_0000 + (number << 8));
    let gateway = Ipv4Addr::from(0x0a00_0000 + number % 200);
    let hop = NextHop {
        link: 2 + number % 4,
        gateway: Some(IpAddr::V4(gateway)),
        weight: 1,
        ..NextHop::default()
    };
    Route {
        table: 254,
        prefix: IpNet::V4(Ipv4Net::new_assert(address, 24)),
        tos: 0,
        metric: 20,
        body: RouteBody {
            kind: 1,
            protocol: 186,
            scope: 0,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::One(hop),
            metrics: None,
            preference: None,
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    }
}

fn neighbour(number: u32) -> Neighbour {
    let [a, b, c, d] = number.to_be_bytes();
    let lladdr = LinkLayerAddress::new(&[2, 0, a, b, c, d]);
    Neighbour {
        link: 2,
        address: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)),
        proxy: false,
        lladdr: lladdr.unwrap_or_default(),
        state: 0x80,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}
