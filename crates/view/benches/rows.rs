//! What a row costs to print: nanoseconds on one core, the best of some
//! rounds, into a sink. `cargo bench -p fingerpost-view`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use fingerpost_view as view;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::neighbour::state;
use table::row::route::{kind, protocol};
use table::{
    Change, Limits, Link, LinkLayerAddress, Neighbour, NextHop, NextHops, RawAttributes, Route,
    RouteBody, Tables, Writer,
};
use view::{Context, Filter, Format, Names, Object, Output, Printer, Question};

const ROWS: u32 = 200_000;
const ROUNDS: usize = 7;

fn tables() -> Tables {
    let links = (1..=4).map(|index| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags: 0x1_1043,
            ..Link::default()
        })
    });
    let mut writer = Writer::new(Limits::default());
    writer.commit(links).unwrap();
    writer.tables().clone()
}

fn neighbour(n: u32, v6: bool) -> Neighbour {
    let [_, b, c, d] = n.to_be_bytes();
    let v6_address = Ipv6Addr::new(0x2001, 0xdb8, 0, b.into(), 0, 0, c.into(), d.into());
    Neighbour {
        link: 1 + n / (ROWS / 4 + 1),
        address: if v6 {
            v6_address.into()
        } else {
            Ipv4Addr::new(10, b, c, d).into()
        },
        proxy: false,
        lladdr: LinkLayerAddress::new(&[2, 0, 0x29, b, c, d]).unwrap(),
        state: state::REACHABLE,
        flags: 0,
        protocol: 0,
        kind: 1,
    }
}

fn route(n: u32, v6: bool) -> Route {
    let address = n.wrapping_mul(0x9e37_79b1);
    let gateway: IpAddr = if v6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, (n % 200) as u16).into()
    } else {
        Ipv4Addr::new(192, 0, 2, (n % 200) as u8).into()
    };
    let wide = u128::from(address) << 80 | 0x2001 << 112;
    let prefix: IpNet = if v6 {
        Ipv6Net::new(wide.into(), 48).unwrap().trunc().into()
    } else {
        Ipv4Net::new(address.into(), 24).unwrap().trunc().into()
    };
    Route {
        table: 254,
        prefix,
        tos: 0,
        metric: 20,
        body: RouteBody {
            kind: kind::UNICAST,
            protocol: protocol::BIRD,
            scope: 0,
            flags: 0,
            preferred_source: None,
            source: None,
            nexthop_id: None,
            next_hops: NextHops::One(NextHop {
                link: 1 + n % 4,
                gateway: Some(gateway),
                weight: 1,
                ..NextHop::default()
            }),
            metrics: None,
            preference: v6.then_some(0),
            error: 0,
            expires_at_millis: None,
            rest: RawAttributes::default(),
            path: Default::default(),
        },
    }
}

/// Counts what it is given, and keeps nothing.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn measure(tables: &Tables, object: Object, format: Format, v6: bool) -> (f64, f64) {
    let question = Question {
        object,
        filter: Filter {
            family: Some(if v6 { 6 } else { 4 }),
            ..Filter::default()
        },
        output: Output {
            format,
            ..Output::default()
        },
    };
    let names = Names::default();
    let neighbours: Vec<_> = (0..ROWS).map(|n| neighbour(n, v6)).collect();
    let routes: Vec<_> = (0..ROWS).map(|n| route(n, v6)).collect();
    let mut best = f64::INFINITY;
    let mut bytes = 0.0;
    for _ in 0..ROUNDS {
        let context = Context {
            links: &tables.links,
            tables: Some(tables),
            now_millis: 0,
            names: &names,
        };
        let mut printer = Printer::new(&question, context, Sink(0)).unwrap();
        let start = Instant::now();
        if object == Object::Neigh {
            for row in &neighbours {
                printer.neighbour(row).unwrap();
            }
        } else {
            for row in &routes {
                printer.route(&row.with_body(&row.body)).unwrap();
            }
        }
        let sink = printer.finish().unwrap();
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROWS));
        bytes = sink.0 as f64 / f64::from(ROWS);
    }
    (best, bytes)
}

fn main() {
    let tables = tables();
    for object in [Object::Neigh, Object::Route] {
        for format in [Format::Text, Format::Json, Format::Ndjson, Format::Csv] {
            for v6 in [false, true] {
                let (ns, bytes) = measure(&tables, object, format, v6);
                let family = if v6 { 6 } else { 4 };
                let mut out = std::io::stdout().lock();
                let line = format!(
                    "{object:?} {format:?} IPv{family}: {ns:.1} ns, {bytes:.0} bytes a row"
                );
                writeln!(out, "{line}").unwrap();
            }
        }
    }
}
