//! IPv4 lookups: by table size, stream and batch.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fingerpost_fib::{Config, Reader4, Route4, Writer4, fib};
use lab::bench::Samples;
use lab::situation::fib::{Family, Route, Stream, stream, table};
use memory::Reserved;
use memory::quiescent::Domain;

use crate::peer::{self, Peer};
use crate::{Arguments, ns_per_op, progress};

/// Batches that are measured.
const BATCHES: [usize; 3] = [32, 64, 256];
/// Above it rte_lpm takes minutes to be built: only once, at most here.
const LPM_ROUTES: usize = 100_000;

/// The routes of a case; the report's own are none and one default route.
pub fn cases(quick: bool) -> Vec<(&'static str, Vec<Route>)> {
    let mut cases = vec![("empty ", Vec::new()), ("default ", vec![(0, 0, 1)])];
    for size in [1_000, 10_000, 100_000, 1_000_000] {
        if size <= 100_000 || !quick {
            cases.push(("", table(Family::V4, size)));
        }
    }
    cases
}

/// A table with these routes, and what building it took in ms.
pub fn build(routes: &[Route], domain: &std::sync::Arc<Domain>) -> Result<(Writer4, Reader4, f64)> {
    let (mut writer, reader) = fib(Config::default(), domain)?;
    let routes: Vec<Route4> = routes.iter().map(route).collect();
    let start = Instant::now();
    writer.build(routes.into_iter())?;
    Ok((writer, reader, start.elapsed().as_secs_f64() * 1e3))
}

pub fn route((prefix, len, next_hop): &Route) -> Route4 {
    Route4 {
        prefix: (prefix >> 96) as u32,
        len: *len,
        next_hop: *next_hop,
    }
}

/// A stream on huge pages, as the peers' are.
pub fn addresses(which: Stream, routes: &[Route]) -> Result<Reserved<u32>> {
    let numbers = stream(Family::V4, which, routes);
    let mut addresses = Reserved::new(numbers.len())?;
    addresses.prepare(numbers.len());
    for number in numbers {
        addresses.push((number >> 96) as u32);
    }
    Ok(addresses)
}

pub fn measure(arguments: &Arguments, samples: &mut Samples) -> Result<()> {
    for (name, routes) in cases(arguments.quick) {
        if !arguments.wants(routes.len()) {
            continue;
        }
        progress(&format!("fib: {name}{} IPv4 routes", routes.len()));
        measure_table(arguments, samples, name, &routes)?;
    }
    Ok(())
}

fn measure_table(
    arguments: &Arguments,
    samples: &mut Samples,
    name: &str,
    routes: &[Route],
) -> Result<()> {
    let domain = Domain::new(1);
    let size = routes.len() as u64;
    let streams = Stream::ALL.map(|which| addresses(which, routes));
    let [uniform, inside, zipf] = streams;
    let streams = [uniform?, inside?, zipf?];
    let directory = tempfile::tempdir()?;
    let files = write_files(directory.path(), routes, &streams)?;
    let mut peers = start_peers(arguments, &files, routes.len())?;
    let mut registered = domain.register()?;
    for round in 0..arguments.rounds {
        let (writer, reader, build_ms) = build(routes, &domain)?;
        let mut online = registered.online();
        if round == 0 {
            let section = online.enter();
            for (at, addresses) in streams.iter().enumerate() {
                let mut answers = vec![0; addresses.len()];
                reader.lookup(&section, addresses, &mut answers);
                let sum = peer::sum(answers.into_iter());
                for peer in &mut peers {
                    ensure!(peer.check(at)? == sum, "{} answers otherwise", peer.name);
                }
            }
            for peer in &peers {
                samples.add(
                    peer.name,
                    &format!("{name}build"),
                    size,
                    "wall_ms",
                    peer.build_ms,
                );
                samples.add(
                    peer.name,
                    &format!("{name}memory"),
                    size,
                    "bytes",
                    peer.heap_bytes,
                );
            }
            let bytes = writer.stats().lookup_bytes as f64;
            samples.add("fingerpost", &format!("{name}memory"), size, "bytes", bytes);
        }
        samples.add(
            "fingerpost",
            &format!("{name}build"),
            size,
            "wall_ms",
            build_ms,
        );
        for (at, (which, addresses)) in Stream::ALL.iter().zip(&streams).enumerate() {
            for batch in BATCHES {
                let what = format!("{name}{}, batches of {batch}", which.name());
                let mut answers = vec![0; batch];
                let ns = ns_per_op(arguments.millis, addresses.len(), || {
                    for addresses in addresses.chunks_exact(batch) {
                        let section = online.enter();
                        reader.lookup(&section, addresses, &mut answers);
                        std::hint::black_box(&mut answers);
                    }
                });
                samples.add("fingerpost", &what, size, "ns_per_op", ns);
                for peer in &mut peers {
                    let ns = peer.lookup(at, batch, arguments.millis)?;
                    samples.add(peer.name, &what, size, "ns_per_op", ns);
                }
            }
        }
    }
    Ok(())
}

fn start_peers(arguments: &Arguments, files: &[PathBuf], routes: usize) -> Result<Vec<Peer>> {
    let Some(program) = &arguments.peer else {
        return Ok(Vec::new());
    };
    let mut peers = vec![Peer::start(program, "rte_fib", files)?];
    // It knows no default route.
    if (2..=LPM_ROUTES).contains(&routes) {
        peers.push(Peer::start(program, "rte_lpm", files)?);
    }
    Ok(peers)
}

pub fn write_files(
    directory: &Path,
    routes: &[Route],
    streams: &[Reserved<u32>; 3],
) -> Result<Vec<PathBuf>> {
    let records = routes.iter().map(|route| {
        let Route4 {
            prefix,
            len,
            next_hop,
        } = self::route(route);
        let mut record = [0; 8];
        record[..4].copy_from_slice(&prefix.to_ne_bytes());
        record[4] = len;
        record[6..].copy_from_slice(&next_hop.to_ne_bytes());
        record
    });
    let mut files = vec![peer::write(&directory.join("routes"), records)?];
    for (which, addresses) in Stream::ALL.iter().zip(streams) {
        let records = addresses.iter().map(|address| address.to_ne_bytes());
        let file = peer::write(&directory.join(which.name()), records);
        files.push(file.context("writing a stream")?);
    }
    Ok(files)
}
