//! Forwarding at XDP beside the kernel's own, on veth pairs: the same frames
//! by the same links, in turn, once with the program's ports open and once
//! with all handed up. `cargo xtask bench xdp` runs it; it writes the measured
//! rows to standard output as JSON and its progress to standard error.
//!
//! Frames come from a packet socket (as a local sender's), or as XDP frames
//! from a program at the other end (as a driver's): to one destination, to
//! 65,536, and to these with a million routes. More are offered than can be
//! forwarded: what is measured is the time for each that came out.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use fingerpost_dataplane::xdp::{Attached, Forwarding, Generator, PortSettings, Sink};
use lab::bench::Samples;
use lab::{Netns, Wire};

/// Frames of a run.
const LIVE: u32 = 2_000_000;
const SOCKET: u32 = 200_000;
/// Bytes of a frame.
const FRAME: usize = 60;
/// How long frames may be under way.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures forwarding at XDP.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A tenth of the runs
    #[arg(long)]
    quick: bool,
    /// Handed over by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// A router between two cables, in namespaces.
struct Place {
    router: Netns,
    ends: Netns,
    forwarding: Forwarding,
    ports: [Attached; 2],
    /// The far end of the left cable.
    left: u32,
    wire: Wire,
    _sink: Sink,
}

const LAN: [u8; 6] = [2, 0, 0, 0, 1, 1];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let place = Place::make()?;
    let mut samples = Samples::default();
    let part = if arguments.quick { 10 } else { 1 };
    let frame = frame();
    let one = Generator::new(&frame, 0)?;
    let many = Generator::new(&frame, u16::MAX)?;
    for (routes, generators) in [(1, &[&one, &many][..]), (1_000_000, &[&many])] {
        place.route(routes / part)?;
        for round in 1..=arguments.rounds {
            let _ = writeln!(io::stderr().lock(), "xdp: {routes} routes, round {round}");
            for (who, is_open) in [("kernel", false), ("fingerpost", true)] {
                place.open(is_open)?;
                for (what, generator) in ["XDP frames, many destinations", "XDP frames"]
                    .into_iter()
                    .zip(generators.iter().rev())
                {
                    let took = place.measure(LIVE / part, || place.live(generator, LIVE / part))?;
                    samples.add(who, what, u64::from(routes), "ns_per_frame", took);
                }
                if routes == 1 {
                    let took =
                        place.measure(SOCKET / part, || place.send(&frame, SOCKET / part))?;
                    samples.add(who, "frames of a socket", 1, "ns_per_frame", took);
                }
            }
        }
    }
    let rows = serde_json::to_string(&samples.into_rows())?;
    writeln!(io::stdout().lock(), "{rows}").context("writing the rows")
}

impl Place {
    fn make() -> Result<Self> {
        let ends = Netns::new("bxe")?;
        let router = Netns::new("bxr")?;
        for (name, side) in [("lan", 1), ("wan", 2)] {
            router.ip_batch(&format!(
                "link add {name} address 02:00:00:00:01:0{side} type veth peer name e{name} netns {}\n\
                 addr add 10.{side}.0.1/24 dev {name}\n\
                 link set {name} up\n\
                 neigh add 10.{side}.0.2 lladdr 02:00:00:00:02:09 dev {name} nud permanent\n",
                ends.name()
            ))?;
            ends.ip(&["link", "set", &format!("e{name}"), "up"])?;
        }
        router.sysctl("net/ipv4/ip_forward", "1")?;
        router.sysctl("net/ipv4/conf/all/rp_filter", "0")?;
        router.ip(&["route", "add", "10.128.0.0/16", "via", "10.2.0.2"])?;
        let wire = Wire::deaf(&ends)?;
        let forwarding = Forwarding::new()?;
        let ports = router.inside(|| -> Result<_> {
            let port = |name: &str, slot| -> Result<Attached> {
                Ok(forwarding.attach(index_of(&router, name)?, name, slot)?)
            };
            Ok([port("lan", 0)?, port("wan", 1)?])
        })??;
        let right = index_of(&ends, "ewan")?;
        let sink = ends.inside(|| Sink::at(right))??;
        let left = index_of(&ends, "elan")?;
        Ok(Self {
            left,
            router,
            ends,
            forwarding,
            ports,
            wire,
            _sink: sink,
        })
    }

    /// Opens the ports, or hands all up.
    fn open(&self, is_open: bool) -> Result<()> {
        for (port, last) in self.ports.iter().zip([1, 2]) {
            let settings = PortSettings {
                receives_v4: is_open,
                sends_v4: is_open,
                is_soft: true,
                mac: [2, 0, 0, 0, 1, last],
                ..PortSettings::default()
            };
            self.forwarding.set(port, &settings)?;
        }
        Ok(self
            .forwarding
            .watched_for(Duration::from_secs(600), [u32::MAX; 2])?)
    }

    /// Nanoseconds a frame, from the first sent to the last that came out.
    fn measure(&self, frames: u32, send: impl Fn() -> Result<()>) -> Result<f64> {
        let before = self.came()?;
        let began = Instant::now();
        send()?;
        let mut came = 0;
        // What a full ring drops is no frame forwarded: until no more come.
        while began.elapsed() < PATIENCE {
            let now = self.came()? - before;
            if now >= u64::from(frames) || now == came {
                came = now;
                break;
            }
            came = now;
        }
        ensure!(
            came * 10 > u64::from(frames),
            "{came} of {frames} frames came out"
        );
        Ok(began.elapsed().as_nanos() as f64 / came as f64)
    }

    /// So many routes of 24 bits beside the one that is used.
    fn route(&self, routes: u32) -> Result<()> {
        let mut lines = String::new();
        for route in 1..routes {
            let [_, a, b, c] = ((20 << 16) + route).to_be_bytes();
            let _ = writeln!(lines, "route add {a}.{b}.{c}.0/24 via 10.2.0.2");
        }
        self.router.ip_batch(&lines)
    }

    fn live(&self, generator: &Generator, frames: u32) -> Result<()> {
        Ok(self.ends.inside(|| generator.send(self.left, frames))??)
    }

    fn send(&self, frame: &[u8], frames: u32) -> Result<()> {
        for _ in 0..frames {
            self.wire.send("elan", frame)?;
        }
        Ok(())
    }

    /// Frames that have come out of the router so far.
    fn came(&self) -> Result<u64> {
        let shown = self.ends.run("cat", &["/proc/net/dev"])?;
        let line = shown.lines().find(|line| line.contains("ewan:"));
        let packets = line.and_then(|line| line.split_whitespace().nth(2));
        Ok(packets.context("a counter")?.parse()?)
    }
}

/// A link's number, as `ip` begins its line.
fn index_of(netns: &Netns, name: &str) -> Result<u32> {
    let shown = netns.ip(&["-o", "link", "show", "dev", name])?;
    let number = shown.split(':').next().context("a line of ip")?;
    Ok(number.trim().parse()?)
}

/// UDP from the left to the right.
fn frame() -> Vec<u8> {
    let mut packet = packet::build::Ip::new([10, 1, 0, 2].into(), [10, 128, 0, 0].into());
    packet.ttl = 64;
    let udp = packet.udp(1_000, 9, &[0; FRAME - 42]);
    [&LAN[..], &[2, 0, 0, 0, 2, 1], &[8, 0], &udp].concat()
}
