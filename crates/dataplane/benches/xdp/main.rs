//! Forwarding at XDP beside the kernel's own, on veth pairs: the same frames
//! by the same links, in turn, once with the program's ports open and once
//! with all handed up. `cargo xtask bench xdp` runs it; it writes the measured
//! rows to standard output as JSON and its progress to standard error.
//!
//! Frames come from a packet socket (as a local sender's), or as XDP frames
//! from a program at the other end (as a driver's): to one destination, to
//! 65,536, and to these with a million routes. More are offered than can be
//! forwarded: what is measured is the time for each that came out.
//!
//! Then established flows are translated, one and 60,000: see `translation`.

mod place;
mod translation;

use std::fmt;
use std::io::{self, Write as _};

use anyhow::{Context, Result};
use clap::Parser;
use fingerpost_dataplane::xdp::{Drawn, Generator};
use lab::bench::Samples;

use place::{Place, frame};

/// Frames of a run.
const LIVE: u32 = 2_000_000;
const SOCKET: u32 = 200_000;

/// Measures forwarding at XDP.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A tenth of the runs
    #[arg(long)]
    quick: bool,
    /// Only translation
    #[arg(long)]
    translation: bool,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut samples = Samples::default();
    let part = if arguments.quick { 10 } else { 1 };
    if !arguments.translation {
        forward(&arguments, part, &mut samples)?;
    }
    translation::measure(&arguments, part, &mut samples)?;
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

fn say(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "xdp: {what}");
}

/// Measures forwarding without translation.
fn forward(arguments: &Arguments, part: u32, samples: &mut Samples) -> Result<()> {
    let mut place = Place::make(None)?;
    place.sink()?;
    let frame = frame(1_000);
    let one = Generator::new(&frame, Drawn::None)?;
    let many = Generator::new(&frame, Drawn::Destinations)?;
    for (routes, generators) in [(1, &[&one, &many][..]), (1_000_000, &[&many])] {
        place.route(routes / part)?;
        for round in 1..=arguments.rounds {
            say(format_args!("{routes} routes, round {round}"));
            for (who, is_open) in [("kernel", false), ("fingerpost", true)] {
                place.open(is_open)?;
                for (what, generator) in ["XDP frames, many destinations", "XDP frames"]
                    .into_iter()
                    .zip(generators.iter().rev())
                {
                    let took = place.measure(LIVE / part, || place.live(generator, LIVE / part))?;
                    samples.add(who, what, u64::from(routes), METRIC, took);
                }
                if routes == 1 {
                    let frames = [frame.clone()];
                    let took =
                        place.measure(SOCKET / part, || place.send(&frames, SOCKET / part))?;
                    samples.add(who, "frames of a socket", 1, METRIC, took);
                }
            }
        }
    }
    Ok(())
}

const METRIC: &str = "ns_per_frame";
