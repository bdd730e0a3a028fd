//! `fingerpost receive`: the other end of `send`. Counts what comes, what
//! is lost, reordered and doubled, and how long it took, with a bounded
//! memory whoever sends. Called by the command line.

mod report;
mod streams;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use dataplane::socket::{ReceiverConfig, UdpReceiver};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::caught::caught;
use crate::values::{amount, seconds};
use report::Report;
use streams::Streams;

/// Datagrams of one call.
const BATCH: usize = 128;
/// Calls of one socket before the others have their turn.
const CALLS_A_TURN: usize = 16;
/// The longest wait before signals and times are looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const AFTER_HELP: &str = "\
  fingerpost receive 9000                 every address, IPv4 and IPv6
  fingerpost receive 192.0.2.1:9000 9001 --duration 60
  fingerpost receive 9000 --count 1M --idle 5
Datagrams that `fingerpost send` did not send are only counted.
Latency is the difference of two hosts' clocks and includes the time in the
sender's batch. Ctrl-C ends the run and prints the report.";

/// Count UDP packets of `send`: losses, order, latency
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Where to listen; a port alone: on every address
    #[arg(value_name = "[ADDRESS:]PORT", required = true, num_args = 1..=64)]
    at: Vec<String>,
    /// End after this many packets
    #[arg(long, short = 'n', value_name = "N", value_parser = amount)]
    count: Option<f64>,
    /// End after this many seconds
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// End when nothing was received for this many seconds after the first packet
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle: Option<Duration>,
    /// Flows counted separately, at most; each takes about 300 bytes
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    max_flows: usize,
    /// Bytes of the kernel's receive buffer for each port
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "16M")]
    buffer: f64,
    /// A row for each flow as well
    #[arg(long)]
    per_flow: bool,
    /// The report as one JSON object
    #[arg(long, short)]
    json: bool,
}

/// `fingerpost receive` as the command line knows it.
pub fn command() -> Command {
    Arguments::augment_args(Command::new("receive"))
}

/// Reads what [`command`] matched.
pub fn parse(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(matches)
}

/// Receives, and tells what came.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let end = caught()?;
    let mut receivers = Vec::new();
    for text in &arguments.at {
        receivers.push(open(arguments, address(text)?)?);
    }
    privileges::give_up().context("giving up privileges")?;
    // For whoever started us and waits; nobody need be there.
    let places: Vec<String> = receivers
        .iter()
        .filter_map(|receiver| receiver.local_address())
        .map(|address| address.to_string())
        .collect();
    let _ = writeln!(io::stderr(), "listening on {}", places.join(", "));
    let mut streams = Streams::new(arguments.max_flows);
    let most = arguments.count.map_or(u64::MAX, |count| count as u64);
    let start = Instant::now();
    let mut last = None;
    let received = loop {
        if end.load(Ordering::Relaxed) || streams.packets() >= most {
            break Ok(());
        }
        let now = Instant::now();
        let is_over = arguments.duration.is_some_and(|most| now - start >= most);
        let is_idle = arguments
            .idle
            .is_some_and(|most| last.is_some_and(|last| now - last >= most));
        if is_over || is_idle {
            break Ok(());
        }
        match turn(&mut receivers, &mut streams, most) {
            Ok(0) => wait(&receivers),
            Ok(_) => last = Some(Instant::now()),
            Err(error) => break Err(error),
        }
    };
    let dropped = receivers.iter_mut().map(UdpReceiver::dropped).sum();
    let report = Report::of(&streams, dropped, start.elapsed(), arguments.per_flow);
    let mut out = io::stdout().lock();
    report.write(arguments.json, &mut out)?;
    out.flush()?;
    received.map(|()| ExitCode::SUCCESS)
}

/// Takes what has come to each port; how many.
fn turn(receivers: &mut [UdpReceiver], streams: &mut Streams, most: u64) -> Result<usize> {
    let mut taken = 0;
    for receiver in receivers {
        for _ in 0..CALLS_A_TURN {
            let count = receiver.receive(|datagram| streams.take(&datagram))?;
            taken += count;
            if count < BATCH || streams.packets() >= most {
                break;
            }
        }
    }
    Ok(taken)
}

fn wait(receivers: &[UdpReceiver]) {
    let mut waited: Vec<PollFd<'_>> = receivers
        .iter()
        .map(|receiver| PollFd::from_borrowed_fd(receiver.readable(), PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_EVERY.subsec_nanos().into(),
    };
    // Interrupted or not: the caller looks again.
    let _ = poll(&mut waited, Some(&timeout));
}

fn open(arguments: &Arguments, address: SocketAddr) -> Result<UdpReceiver> {
    let config = |address| ReceiverConfig {
        address,
        buffer_bytes: arguments.buffer as usize,
        batch: BATCH,
    };
    let opened = UdpReceiver::open(&config(address));
    if opened.is_err() && address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        // A host without IPv6.
        let any = SocketAddr::from(([0; 4], address.port()));
        return Ok(UdpReceiver::open(&config(any))?);
    }
    Ok(opened?)
}

fn address(text: &str) -> Result<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        ensure!(port != 0, "port 0 is no port to listen on");
        // Takes IPv4 as well.
        return Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    }
    text.parse().with_context(|| {
        format!("`{text}` is no port, nor an address and port like 192.0.2.1:9000")
    })
}
