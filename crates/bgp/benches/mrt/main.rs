//! What loading a collector's table costs: unpacking it alone, ours, and
//! `bgpkit-parser`, which only reads it. `cargo xtask bench mrt` runs it; it
//! writes the measured rows to standard output as JSON and its progress to
//! standard error.
//!
//! The table is made (`lab::mrt::FullFeeds`): peers with a full feed each.
//! Reading goes beside unpacking, on a thread of its own, as in the program.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bgpkit_parser::BgpkitParser;
use bzip2::Compression;
use bzip2::read::BzDecoder;
use bzip2::write::BzEncoder;
use cap::Cap;
use clap::Parser;
use fingerpost_bgp::Rib;
use fingerpost_bgp::mrt::Reader;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lab::bench::Samples;
use lab::mrt::FullFeeds;
use rustix::time::{ClockId, clock_gettime};
use table::Limits;

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// Measures the loading of a collector's table.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A tenth of the prefixes
    #[arg(long)]
    quick: bool,
    /// Peers of the larger table
    #[arg(long, default_value_t = 20)]
    peers: u16,
    /// A collector's file instead of those that are made
    #[arg(long)]
    file: Option<PathBuf>,
    /// Prefixes of each table, instead of a million
    #[arg(long)]
    prefixes: Option<u32>,
    /// Without bgpkit-parser
    #[arg(long)]
    ours: bool,
    /// Only a table of so many peers, packed by gzip, into this file
    #[arg(long, value_name = "FILE")]
    make: Option<PathBuf>,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut samples = Samples::default();
    let usual = if arguments.quick { 100_000 } else { 1_000_000 };
    let prefixes = arguments.prefixes.unwrap_or(usual);
    if let Some(file) = &arguments.make {
        let peers = arguments.peers;
        return pack(&FullFeeds { prefixes, peers }, file, false);
    }
    if let Some(file) = &arguments.file {
        measure(file, 1, &arguments, &mut samples)?;
    } else {
        for peers in [1, arguments.peers] {
            let feeds = FullFeeds { prefixes, peers };
            for (name, bzip2) in [("gz", false), ("bz2", true)] {
                let path = std::env::temp_dir()
                    .join(format!("fingerpost-{}-{peers}.{name}", std::process::id()));
                pack(&feeds, &path, bzip2)?;
                let measured = measure(&path, u64::from(peers), &arguments, &mut samples);
                std::fs::remove_file(&path).context("removing the dump")?;
                measured?;
            }
        }
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

fn pack(feeds: &FullFeeds, path: &PathBuf, bzip2: bool) -> Result<()> {
    progress(&format!("makes {}", path.display()));
    let to = BufWriter::new(File::create(path)?);
    if bzip2 {
        let mut to = BzEncoder::new(to, Compression::best());
        feeds.write(|bytes| to.write_all(bytes))?;
        to.finish()?.flush()?;
    } else {
        let mut to = GzEncoder::new(to, flate2::Compression::default());
        feeds.write(|bytes| to.write_all(bytes))?;
        to.finish()?.flush()?;
    }
    Ok(())
}

fn unpacked(path: &PathBuf) -> Result<Box<dyn Read + Send>> {
    let from = BufReader::with_capacity(1 << 18, File::open(path)?);
    Ok(match path.extension().is_some_and(|of| of == "bz2") {
        true => Box::new(BzDecoder::new(from)),
        false => Box::new(GzDecoder::new(from)),
    })
}

fn measure(path: &PathBuf, peers: u64, arguments: &Arguments, samples: &mut Samples) -> Result<()> {
    let kind = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for _ in 0..arguments.rounds {
        let (start, spent) = (Instant::now(), processor());
        let bytes = io::copy(&mut unpacked(path)?, &mut io::sink())?;
        let alone = start.elapsed().as_secs_f64();
        let alone_cpu = (processor() - spent).as_secs_f64();
        samples.add("unpacking alone", &kind, peers, "s", alone);
        let before = ALLOCATOR.allocated();
        let (start, spent) = (Instant::now(), processor());
        let rib = load(Ahead::of(unpacked(path)?))?;
        let ours = start.elapsed().as_secs_f64();
        let ours_cpu = (processor() - spent).as_secs_f64();
        let held = ALLOCATOR.allocated() - before;
        let paths: usize = rib.peers().map(|peer| peer.tables().routes.len()).sum();
        ensure!(paths > 0, "no paths were read");
        samples.add("fingerpost", &kind, peers, "s", ours);
        // Of both threads: on a machine that others use it says more than
        // the clock.
        samples.add("unpacking alone", &kind, peers, "processor s", alone_cpu);
        samples.add("fingerpost", &kind, peers, "processor s", ours_cpu);
        samples.add("fingerpost", &kind, peers, "times unpacking", ours / alone);
        samples.add(
            "fingerpost",
            &kind,
            peers,
            "bytes/path",
            held as f64 / paths as f64,
        );
        progress(&format!(
            "{kind}, {peers} peers, {bytes} bytes, {paths} paths: unpacking {alone:.2} s ({alone_cpu:.2} s of processor), ours {ours:.2} s ({ours_cpu:.2} s of processor, {:.2} times unpacking), {:.1} bytes a path, {held} in all",
            ours / alone,
            held as f64 / paths as f64,
        ));
        drop(rib);
        if arguments.ours {
            continue;
        }
        let start = Instant::now();
        let read = BgpkitParser::from_reader(Ahead::of(unpacked(path)?))
            .into_elem_iter()
            .count();
        let theirs = start.elapsed().as_secs_f64();
        samples.add("bgpkit-parser, reading alone", &kind, peers, "s", theirs);
        progress(&format!("bgpkit-parser {theirs:.2} s, {read} elements"));
    }
    Ok(())
}

/// What this process has spent so far.
fn processor() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn load(from: impl Read) -> Result<Rib> {
    let mut rib = Rib::new(Limits::default());
    let mut reader = Reader::new(from);
    while let Some((header, body)) = reader.next_record()? {
        rib.take(&header, body)?;
    }
    rib.publish();
    Ok(rib)
}

/// A stream that another thread reads.
struct Ahead {
    blocks: Receiver<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    fn of(mut from: Box<dyn Read + Send>) -> Self {
        let (to, blocks) = sync_channel(8);
        thread::spawn(move || {
            loop {
                let mut block = Vec::with_capacity(1 << 18);
                match from.by_ref().take(1 << 18).read_to_end(&mut block) {
                    Ok(read) if read > 0 && to.send(block).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self {
            blocks,
            block: Vec::new(),
            at: 0,
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            match self.blocks.recv() {
                Ok(block) => (self.block, self.at) = (block, 0),
                Err(_) => return Ok(0),
            }
        }
        let rest = &self.block[self.at..];
        let len = rest.len().min(to.len());
        to[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// A closed standard error is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
