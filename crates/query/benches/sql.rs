//! What statements cost at 1,000,000 routes: the best of some rounds, on one
//! core, into a sink. `cargo bench -p fingerpost-query`;
//! behind `--` a part of the names of those that are wanted.

#![allow(
    clippy::unwrap_used,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fingerpost_query::{Asked, Limits, Moment, Question, Translation, answer};
use ipnet::IpNet;
use table::{
    Change, Counted, Link, LinkCounters, NextHop, NextHops, Nexthop, Placement, Reader, Route,
    RouteBody, Sample, Writer,
};
use view::{Format, Object};
use words::Names;

const ROUTES: u32 = 1_000_000;
const LINKS: u32 = 1_000;
const NEXT_HOPS: u32 = 4_000;
const ROUNDS: usize = 5;

const STATEMENTS: [(&str, &str); 10] = [
    (
        "a prefix",
        "select * from routes where prefix = '1.2.3.0/24'",
    ),
    (
        "the longest match",
        "select * from routes where longest_match(prefix, '1.2.3.4')",
    ),
    (
        "inside a /16",
        "select prefix, dev from routes where within(prefix, '1.2.0.0/16')",
    ),
    (
        "by gateway",
        "select count(*) from routes where gateway = '192.0.2.7'",
    ),
    (
        "the first of a table",
        "select prefix from routes where table_name = 'main' order by prefix limit 20",
    ),
    ("all, counted", "select count(*) from routes"),
    (
        "all, by link",
        "select dev, count(*) from routes group by dev",
    ),
    (
        "routes, links and counters",
        "select count(*), sum(c.rx_bytes) from routes r join links l on l.ifname = r.dev \
         join counters c on c.ifindex = l.ifindex",
    ),
    (
        "routes, next hops, links and counters",
        "select count(*), sum(c.rx_bytes), max(n.id) from routes r \
         join next_hops n on n.id = r.nhid join links l on l.ifname = n.dev \
         join counters c on c.ifindex = l.ifindex",
    ),
    (
        "routes, their hops, links and counters",
        "select count(*), sum(c.rx_bytes), max(r.metric) from hops h \
         join routes r on r.prefix = h.prefix join links l on l.ifname = r.dev \
         join counters c on c.ifindex = l.ifindex",
    ),
];

struct Namespace {
    reader: Reader,
    names: Arc<Names>,
}

impl Asked for Namespace {
    fn moment(&self) -> Moment {
        Moment {
            tables: self.reader.snapshot(),
            names: Arc::clone(&self.names),
            now_millis: 0,
            reader: self.reader.clone(),
        }
    }

    fn refresh(&self, _: Object, _: bool) {}

    fn translation(&self) -> Translation {
        Err("no translation runs here".to_owned())
    }
}

fn filled() -> Writer {
    let mut writer = Writer::default();
    let links = (1..=LINKS).map(|index| {
        Change::PutLink(Link {
            index,
            name: format!("eth{index}").into(),
            flags: 0x1_1043,
            ..Link::default()
        })
    });
    let next_hops = (1..=NEXT_HOPS).map(|id| {
        Change::PutNexthop(Nexthop {
            id,
            family: 2,
            link: Some(1 + id % LINKS),
            gateway: Some(gateway(id)),
            ..Nexthop::default()
        })
    });
    let routes = (0..ROUTES).map(|number| {
        let id = 1 + number % NEXT_HOPS;
        let hop = NextHop {
            link: 1 + id % LINKS,
            gateway: Some(gateway(id)),
            weight: 1,
            ..NextHop::default()
        };
        let prefix = (0x0100_0000 + (number << 8)).to_be_bytes();
        let route = Route {
            table: 254,
            prefix: IpNet::new(prefix.into(), 24).unwrap(),
            tos: 0,
            metric: 20,
            body: RouteBody {
                kind: 1,
                protocol: 186,
                nexthop_id: Some(id),
                next_hops: NextHops::One(hop),
                ..RouteBody::default()
            },
        };
        Change::PutRoute(route, Placement::Last)
    });
    writer.commit(links.chain(next_hops).chain(routes)).unwrap();
    let counted = (1..=LINKS)
        .map(|index| {
            (
                index,
                Counted {
                    counters: LinkCounters::default(),
                    at: None,
                },
            )
        })
        .collect();
    writer.publish_link_counters(Sample::new(1, counted));
    writer
}

fn gateway(id: u32) -> IpAddr {
    IpAddr::from([192, 0, (id >> 8) as u8, id as u8])
}

fn main() {
    let writer = filled();
    let namespace = Namespace {
        reader: writer.reader(),
        names: Arc::new(Names::default()),
    };
    let limits = Limits {
        time: Duration::from_secs(600),
        rows: u64::MAX,
        memory: 32 << 20,
    };
    writeln!(
        io::stdout().lock(),
        "{ROUTES} routes over {LINKS} links and {NEXT_HOPS} next hops"
    )
    .unwrap();
    let named = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let is_named = |what: &str| named.as_ref().is_none_or(|part| what.contains(part));
    for (what, statement) in STATEMENTS.iter().filter(|(what, _)| is_named(what)) {
        let question = Question {
            statement: (*statement).to_owned(),
            format: Format::Ndjson,
            explain: false,
        };
        let mut best = Duration::MAX;
        let mut counts = (0, 0);
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let answered = answer(&question, &namespace, &limits, || false, &mut io::sink());
            best = best.min(begun.elapsed());
            let answered = answered.unwrap();
            counts = (answered.rows, answered.visited);
        }
        let (rows, visited) = counts;
        let micros = best.as_micros();
        writeln!(
            io::stdout().lock(),
            "{what:40} {micros:>9} µs {rows:>8} rows {visited:>8} visited"
        )
        .unwrap();
    }
}
