//! IPv6 lookups: by table size, stream and batch.

use std::time::Instant;

use anyhow::{Result, ensure};
use fingerpost_fib::{Change6, Config, Route6, Writer6, fib};
use lab::Random;
use lab::bench::Samples;
use lab::situation::fib::{Family, Route, Stream, stream, table};
use memory::Reserved;
use memory::quiescent::Domain;

use crate::peer::{self, Peer};
use crate::{Arguments, ns_per_op, progress};

/// Batches that are measured.
const BATCHES: [usize; 3] = [32, 64, 256];
/// Changes are measured in tables of so many routes.
const LARGE: usize = 100_000;
/// Single changes of a measurement.
const CHANGES: usize = 40_000;

pub fn measure(arguments: &Arguments, samples: &mut Samples) -> Result<()> {
    let default = vec![(0, 0, 1)];
    let mut cases = vec![("empty", Vec::new()), ("default", default)];
    for size in [1_000, 10_000, 200_000] {
        if size <= 10_000 || !arguments.quick {
            cases.push(("", table(Family::V6, size)));
        }
    }
    for (name, routes) in cases {
        if !arguments.wants(routes.len()) {
            continue;
        }
        progress(&format!("fib: {} IPv6 routes {name}", routes.len()));
        let name = format!("IPv6 {name}{}", if name.is_empty() { "" } else { " " });
        measure_table(arguments, samples, &name, &routes)?;
    }
    Ok(())
}

fn route((prefix, len, next_hop): &Route) -> Route6 {
    Route6 {
        prefix: *prefix,
        len: *len,
        next_hop: *next_hop,
    }
}

/// ns for each of many withdrawals and announcements of one route; ms for a
/// default route that comes and goes.
fn change(writer: &mut Writer6, routes: &[Route]) -> Result<(f64, f64)> {
    let mut random = Random::new(9);
    let of = |(prefix, len, next_hop): &Route, there: bool| Change6 {
        prefix: *prefix,
        len: *len,
        next_hop: there.then_some(*next_hop),
    };
    let changes: Vec<Change6> = (0..CHANGES / 2)
        .map(|_| &routes[random.below(routes.len())])
        .flat_map(|route| [of(route, false), of(route, true)])
        .collect();
    let start = Instant::now();
    for change in &changes {
        writer.apply(std::slice::from_ref(change))?;
    }
    let single = start.elapsed().as_secs_f64() * 1e9 / changes.len() as f64;
    let start = Instant::now();
    writer.apply(&[of(&(0, 0, 7), true)])?;
    writer.apply(&[of(&(0, 0, 7), false)])?;
    Ok((single, start.elapsed().as_secs_f64() * 1e3))
}

fn measure_table(
    arguments: &Arguments,
    samples: &mut Samples,
    name: &str,
    routes: &[Route],
) -> Result<()> {
    let domain = Domain::new(1);
    let size = routes.len() as u64;
    let directory = tempfile::tempdir()?;
    let records = routes.iter().map(|(prefix, len, next_hop)| {
        let mut record = [0; 20];
        record[..16].copy_from_slice(&prefix.to_be_bytes());
        record[16] = *len;
        record[18..].copy_from_slice(&next_hop.to_ne_bytes());
        record
    });
    let mut files = vec![peer::write(&directory.path().join("routes"), records)?];
    let mut streams = Vec::new();
    for which in Stream::ALL {
        let numbers = stream(Family::V6, which, routes);
        let records = numbers.iter().map(|address| address.to_be_bytes());
        files.push(peer::write(&directory.path().join(which.name()), records)?);
        let mut addresses = Reserved::new(numbers.len())?;
        addresses.prepare(numbers.len());
        for number in numbers {
            addresses.push(number);
        }
        streams.push(addresses);
    }
    let mut peer = match &arguments.peer {
        Some(program) => Some(Peer::start(program, "rte_fib6", &files)?),
        None => None,
    };
    let mut registered = domain.register()?;
    for round in 0..arguments.rounds {
        let (mut writer, reader) = fib(Config::default(), &domain)?;
        let ours: Vec<Route6> = routes.iter().map(route).collect();
        let start = Instant::now();
        writer.build(ours.into_iter())?;
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let mut add = |who: &str, what: &str, metric: &str, value: f64| {
            samples.add(who, &format!("{name}{what}"), size, metric, value);
        };
        add("fingerpost", "build", "wall_ms", build_ms);
        if routes.len() >= LARGE {
            let (single, default) = change(&mut writer, routes)?;
            add("fingerpost", "single changes", "ns_per_op", single);
            add(
                "fingerpost",
                "a default route added and withdrawn",
                "wall_ms",
                default,
            );
        }
        let mut online = registered.online();
        if round == 0 {
            add(
                "fingerpost",
                "memory",
                "bytes",
                writer.stats().lookup_bytes as f64,
            );
            if let Some(peer) = &mut peer {
                add(peer.name, "build", "wall_ms", peer.build_ms);
                add(peer.name, "memory", "bytes", peer.heap_bytes);
                if routes.len() >= LARGE {
                    add(
                        peer.name,
                        "single changes",
                        "ns_per_op",
                        peer.change(CHANGES)?,
                    );
                }
                let section = online.enter();
                for (at, addresses) in streams.iter().enumerate() {
                    let mut answers = vec![0; addresses.len()];
                    reader.lookup(&section, addresses, &mut answers);
                    let sum = peer::sum(answers.into_iter());
                    ensure!(peer.check(at)? == sum, "{} answers otherwise", peer.name);
                }
            }
        }
        for (at, (which, addresses)) in Stream::ALL.iter().zip(&streams).enumerate() {
            for batch in BATCHES {
                let what = format!("{}, batches of {batch}", which.name());
                let mut answers = vec![0; batch];
                let ns = ns_per_op(arguments.millis, addresses.len(), || {
                    for addresses in addresses.chunks_exact(batch) {
                        let section = online.enter();
                        reader.lookup(&section, addresses, &mut answers);
                        std::hint::black_box(&mut answers);
                    }
                });
                add("fingerpost", &what, "ns_per_op", ns);
                if let Some(peer) = &mut peer {
                    add(
                        peer.name,
                        &what,
                        "ns_per_op",
                        peer.lookup(at, batch, arguments.millis)?,
                    );
                }
            }
        }
    }
    Ok(())
}
