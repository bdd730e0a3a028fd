//! Forwarding at XDP beside the kernel's own, on veth pairs: the same frames
//! by the same links, in turn, once with the program's ports open and once
//! with all handed up. `cargo xtask bench xdp` runs it; it writes the measured
//! rows to standard output as JSON and its progress to standard error.
//!
//! Frames come from a packet socket (as a local sender's), or as XDP frames by
//! live runs of the program itself (as a driver's). Live runs use pages again
//! with what was changed in them: so the next hop has the port's own address,
//! and no page is used more often than its TTL lasts.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use fingerpost_dataplane::xdp::{Attached, Forwarding, PortSettings, run_live};
use lab::bench::Samples;
use lab::{Netns, Wire};

/// Frames of a run: a page's TTL lasts for so many at 64 pages.
const LIVE: u32 = 8_192;
const PAGES: u32 = 64;
const SOCKET: u32 = 20_000;
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
    program: OwnedFd,
    wire: Wire,
}

const LAN: [u8; 6] = [2, 0, 0, 0, 1, 1];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let place = Place::make()?;
    let mut samples = Samples::default();
    let runs = if arguments.quick { 4 } else { 40 };
    for round in 1..=arguments.rounds {
        let _ = writeln!(io::stderr().lock(), "xdp: round {round}");
        for (who, is_open) in [("kernel", false), ("fingerpost", true)] {
            place.open(is_open)?;
            let live = place.measure(LIVE * runs, || place.live(runs))?;
            samples.add(who, "XDP frames", 1, "ns_per_frame", live);
            let sent = place.measure(SOCKET, || place.send())?;
            samples.add(who, "frames of a socket", 1, "ns_per_frame", sent);
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
                 neigh add 10.{side}.0.2 lladdr 02:00:00:00:01:01 dev {name} nud permanent\n",
                ends.name()
            ))?;
            ends.ip(&["link", "set", &format!("e{name}"), "up"])?;
            ends.run("ethtool", &["-K", &format!("e{name}"), "gro", "on"])?;
        }
        router.sysctl("net/ipv4/ip_forward", "1")?;
        router.sysctl("net/ipv4/conf/all/rp_filter", "0")?;
        let wire = Wire::open(&ends)?;
        let forwarding = Forwarding::new()?;
        let ports = router.inside(|| -> Result<_> {
            let port = |name: &str, slot| -> Result<Attached> {
                Ok(forwarding.attach(index_of(&router, name)?, name, slot)?)
            };
            Ok([port("lan", 0)?, port("wan", 1)?])
        })??;
        let program = forwarding.program()?;
        Ok(Self {
            program,
            router,
            ends,
            forwarding,
            ports,
            wire,
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
            came * 2 > u64::from(frames),
            "{came} of {frames} frames came out"
        );
        Ok(began.elapsed().as_nanos() as f64 / came as f64)
    }

    fn live(&self, runs: u32) -> Result<()> {
        let lan = &self.ports[0];
        self.router.inside(|| -> Result<()> {
            for _ in 0..runs {
                run_live(self.program.as_fd(), lan.link(), &frame(), LIVE, PAGES)?;
            }
            Ok(())
        })?
    }

    fn send(&self) -> Result<()> {
        let frame = frame();
        for _ in 0..SOCKET {
            self.wire.send("elan", &frame)?;
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
    let mut packet = packet::build::Ip::new([10, 1, 0, 2].into(), [10, 2, 0, 2].into());
    packet.ttl = 255;
    let udp = packet.udp(1_000, 9, &[0; FRAME - 42]);
    [&LAN[..], &[2, 0, 0, 0, 2, 1], &[8, 0], &udp].concat()
}
