//! What a binding costs: nanoseconds on one core and allocations, without
//! SNMP around it. `cargo bench -p fingerpost-mib`.

#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

use std::hint::black_box;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use std::time::Instant;

use cap::Cap;
use fingerpost_mib::{Engine, Health, History, MibContext, Objects, Reads, SampleTimes, System};
use lab::situation::routes::{Family, rows};
use snmp::Mib;
use snmp::counters::Counters;
use snmp::oid::Name;
use table::row::neighbour::state;
use table::row::route::table_id;
use table::{
    Address, Change, Link, LinkCounters, LinkLayerAddress, Neighbour, Placement, Sample, Tables,
    Writer,
};

/// Counts the bytes that are allocated.
#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// Bindings of a bulk answer, as `snmpbulkwalk -Cr50` asks for.
const PAGE: usize = 50;
const ROUNDS: usize = 5;

const INET_ROUTE: [u32; 11] = [1, 3, 6, 1, 2, 1, 4, 24, 7, 1, 7];
const CIDR_ROUTE: [u32; 11] = [1, 3, 6, 1, 2, 1, 4, 24, 4, 1, 5];
const ROUTE: [u32; 10] = [1, 3, 6, 1, 2, 1, 4, 21, 1, 2];

/// Walks the column in pages, as requests do: each begins with the name it
/// ended at. Gives the bindings.
fn walk(objects: &Objects<'_>, column: &[u32], page: usize) -> usize {
    let mut after: Name = column.iter().copied().collect();
    let mut all = 0;
    loop {
        let mut left = page;
        let mut last = Name::new();
        objects.walk(&after, &mut |name, value| {
            if !name.starts_with(column) {
                return ControlFlow::Break(());
            }
            black_box(value);
            left -= 1;
            if left == 0 {
                last.extend(name.iter().copied());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        all += page - left;
        if left > 0 {
            return all;
        }
        after = last;
    }
}

/// The best of some rounds.
fn measure(tables: &Tables, what: &str, size: usize, column: &[u32], page: usize) {
    let (system, history, counters, health) = Default::default();
    let reads = Reads::default();
    let moment = moment(tables, &system, &history, &counters, &health, &reads);
    let objects = Objects::new(moment, table_id::MAIN);
    let mut best = f64::INFINITY;
    let mut bindings = 0;
    let before = ALLOCATOR.total_allocated();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        bindings = walk(&objects, column, page);
        let ns = start.elapsed().as_nanos() as f64;
        best = best.min(ns / bindings.max(1) as f64);
    }
    let allocated = ALLOCATOR.total_allocated() - before;
    let line = format!(
        "{what:<24} {size:>8} rows, pages of {page:>3}: {best:>7.1} ns a binding, \
         {bindings} bindings, {allocated} bytes allocated"
    );
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
}

fn moment<'a>(
    tables: &'a Tables,
    system: &'a System,
    history: &'a History,
    counters: &'a Counters,
    health: &'a Health,
    reads: &'a Reads,
) -> MibContext<'a> {
    MibContext {
        tables,
        system,
        engine: Engine {
            id: b"bench",
            boots: 1,
            max_message_bytes: 1_472,
            sends_authentication_failures: false,
            counters,
        },
        history,
        health,
        up_millis: 1,
        ahead_millis: 0,
        now: Instant::now(),
        sampled: SampleTimes::default(),
        beside: None,
        reads,
        now_millis: 1,
    }
}

fn routes(family: Family, size: usize) -> Tables {
    let mut writer = Writer::default();
    let rows = rows(family, size, &[11, 12, 13, 14]).unwrap();
    let put = |row| Change::PutRoute(row, Placement::Last);
    writer.commit(rows.into_iter().map(put)).unwrap();
    writer.tables().clone()
}

/// The reports' router: an address on each of many interfaces, a /30 each.
fn aliases(size: u32) -> Tables {
    let mut writer = Writer::default();
    let counters = (1..=size).map(|index| (index, LinkCounters::default().into()));
    writer.publish_link_counters(Sample::new(1, counters.collect()));
    let rows = (1..=size).flat_map(|index| {
        let link = Link {
            index,
            name: format!("v{index}").into(),
            flags: 1,
            ..Link::default()
        };
        // Backwards: the order by address is not that by link.
        let address = Address {
            flags: 0x80,
            ..Address::new(
                index,
                Ipv4Addr::from(0x0a00_0000 + (size - index) * 4 + 1).into(),
                30,
            )
        };
        [Change::PutLink(link), Change::PutAddress(address)]
    });
    writer.commit(rows).unwrap();
    writer.tables().clone()
}

fn neighbours(size: u32) -> Tables {
    let mut writer = Writer::default();
    let rows = (0..size).map(|n| {
        Change::PutNeighbour(Neighbour {
            link: 1 + n % 4,
            address: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n)),
            proxy: false,
            lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
            state: state::REACHABLE,
            flags: 0,
            protocol: 0,
            kind: 1,
        })
    });
    writer.commit(rows).unwrap();
    writer.tables().clone()
}

fn main() {
    for size in [1_000, 10_000, 100_000, 1_000_000] {
        let tables = routes(Family::V4, size);
        measure(&tables, "inetCidrRouteIfIndex", size, &INET_ROUTE, PAGE);
        measure(&tables, "inetCidrRouteIfIndex", size, &INET_ROUTE, 1);
        measure(&tables, "ipCidrRouteIfIndex", size, &CIDR_ROUTE, PAGE);
        measure(&tables, "ipRouteIfIndex", size, &ROUTE, PAGE);
    }
    for size in [1_000, 200_000] {
        let tables = routes(Family::V6, size);
        measure(
            &tables,
            "inetCidrRouteIfIndex IPv6",
            size,
            &INET_ROUTE,
            PAGE,
        );
    }
    for size in [100_u32, 4_000, 20_000] {
        let tables = aliases(size);
        let size = size as usize;
        measure(
            &tables,
            "ipAdEntIfIndex",
            size,
            &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2],
            PAGE,
        );
        measure(
            &tables,
            "ipAddressIfIndex",
            size,
            &[1, 3, 6, 1, 2, 1, 4, 34, 1, 3],
            PAGE,
        );
        measure(
            &tables,
            "ifDescr",
            size,
            &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2],
            PAGE,
        );
        measure(
            &tables,
            "ifHCInOctets",
            size,
            &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6],
            PAGE,
        );
        measure(
            &tables,
            "ifStackStatus",
            size,
            &[1, 3, 6, 1, 2, 1, 31, 1, 2, 1, 3],
            PAGE,
        );
    }
    for size in [4_000, 100_000] {
        let tables = neighbours(size);
        let size = size as usize;
        let media = [1, 3, 6, 1, 2, 1, 4, 22, 1, 2];
        measure(&tables, "ipNetToMediaPhysAddress", size, &media, PAGE);
        let physical = [1, 3, 6, 1, 2, 1, 4, 35, 1, 4];
        measure(&tables, "ipNetToPhysicalPhysAddress", size, &physical, PAGE);
    }
}
