//! What a FIB costs over a feed, beside the same routes of a kernel; and what
//! a link's change costs where gateways have no link, as files have them.
//!
//! `cargo run --release -p fingerpost-dataplane --example feed_fib [ROUTES]`

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]

use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fingerpost_dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use ipnet::IpNet;
use memory::quiescent::Domain;
use table::row::link::flag::{LOWER_UP, RUNNING, UP};
use table::row::route::{kind, protocol, scope, table_id};
use table::{
    AF_INET, Change, Link, NextHop, NextHops, Placement, Route, RouteBody, Rule, TableFull, Writer,
};

/// Processor time of this thread, seconds.
fn cpu() -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos: f64 = told.split(' ').next().unwrap().parse().unwrap();
    nanos / 1e9
}

fn link(index: u32, is_up: bool) -> Change {
    Change::PutLink(Link {
        index,
        name: format!("em{index}").as_str().into(),
        mtu: 1_500,
        flags: if is_up { UP | RUNNING | LOWER_UP } else { 0 },
        ..Link::default()
    })
}

fn route(prefix: IpNet, proto: u8, hop: NextHop) -> Change {
    let body = RouteBody {
        kind: kind::UNICAST,
        protocol: proto,
        scope: match hop.gateway {
            Some(_) => scope::UNIVERSE,
            None => scope::LINK,
        },
        next_hops: NextHops::One(hop),
        ..RouteBody::default()
    };
    let row = Route {
        table: table_id::MAIN,
        prefix,
        tos: 0,
        metric: 0,
        body,
    };
    Change::PutRoute(row, Placement::Last)
}

/// As many /24s over nine gateways, on a link or none.
fn routes(count: u32, link: u32, turn: u32) -> impl Iterator<Item = Change> {
    (0..count).map(move |number| {
        let prefix = IpNet::new(Ipv4Addr::from((20 << 24) + (number << 8)).into(), 24).unwrap();
        let gateway = IpAddr::from([10, 1, 0, 2 + ((number + turn) % 9) as u8]);
        let hop = NextHop {
            link,
            gateway: Some(gateway),
            weight: 1,
            ..NextHop::default()
        };
        let Change::PutRoute(row, _) = route(prefix, protocol::BGP, hop) else {
            unreachable!()
        };
        Change::PutRoute(row, Placement::InsteadOfFirst)
    })
}

/// A router's own: a link, its connected prefix, and the rule of `main`.
fn own(writer: &mut Writer) -> Result<(), TableFull> {
    let connected = NextHop {
        link: 2,
        weight: 1,
        ..NextHop::default()
    };
    let rule = Rule {
        family: AF_INET,
        priority: 32_766,
        table: table_id::MAIN,
        action: table::row::rule::action::TO_TABLE,
        ..Rule::default()
    };
    let connected = route("10.1.0.0/24".parse().unwrap(), protocol::KERNEL, connected);
    writer.commit([
        link(2, true),
        link(3, true),
        connected,
        Change::PutRule(rule),
    ])?;
    Ok(())
}

/// Fills, has one route and then the link change; says what each took.
fn measured(what: &str, count: u32, is_fed: bool, of_link: u32) -> f64 {
    let mut writer = Writer::default();
    own(&mut writer).unwrap();
    let mut feeder = writer
        .feeders()
        .join("frr", table::Limits::default())
        .unwrap();
    match is_fed {
        true => drop(feeder.commit(routes(count, of_link, 0)).unwrap()),
        false => drop(writer.commit(routes(count, of_link, 0)).unwrap()),
    }
    let feed = is_fed.then(|| feeder.reader());
    let ports = vec![Attachment::ethernet("em2")];
    let settings = FibSyncSettings::default();
    let domain = Domain::new(1);
    let begun = cpu();
    let mut sync = FibSync::over(writer.reader(), feed, &domain, ports, settings).unwrap();
    let filled = cpu() - begun;
    let begun = cpu();
    for change in routes(1_000, of_link, 1) {
        match is_fed {
            true => drop(feeder.commit([change]).unwrap()),
            false => drop(writer.commit([change]).unwrap()),
        }
        sync.follow(Duration::ZERO);
    }
    let changed = cpu() - begun;
    // That of all routes, and one of none.
    let [moved, other] = [2, 3].map(|index| {
        let begun = cpu();
        for is_up in [false, true] {
            writer.commit([link(index, is_up)]).unwrap();
            while sync.follow(Duration::ZERO) {}
        }
        (cpu() - begun) / 2.0
    });
    let mut out = std::io::stdout().lock();
    let _ = writeln!(
        out,
        "{what}: {count} routes, filled in {filled:.3} s, 1,000 changes in {changed:.3} s, \
         the link down or up in {moved:.3} s, another in {other:.3} s, made anew {} times",
        sync.filled().rebuilds
    );
    filled
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(1_000_000, |text| text.parse().unwrap());
    for _ in 0..2 {
        let kernel = measured("the kernel's", count, false, 2);
        let feed = measured("a feed's", count, true, 2);
        let far = measured("a feed's, no links", count, true, 0);
        let mut out = std::io::stdout().lock();
        let (feed, far) = (feed / kernel, far / kernel);
        let _ = writeln!(out, "filling, of the kernel's: {feed:.2} and {far:.2}");
    }
}
