//! A router between two cables, in namespaces, with the program at both of
//! its ports.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fingerpost_dataplane::xdp::{Attached, Forwarding, Generator, PortSettings, Sink, Translation};
use lab::{Netns, Wire};

/// How long frames may be under way.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a frame.
const FRAME: usize = 60;
const LAN: [u8; 6] = [2, 0, 0, 0, 1, 1];

/// See the module.
pub struct Place {
    pub router: Netns,
    pub ends: Netns,
    pub forwarding: Forwarding,
    ports: [Attached; 2],
    /// The far end of the left cable.
    left: u32,
    wire: Wire,
    sink: Option<Sink>,
}

impl Place {
    /// Makes one whose ports hand all up; with a translation, where one is
    /// told.
    pub fn make(translation: Option<Translation>) -> Result<Self> {
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
            let end = format!("e{name}");
            ends.ip(&["link", "set", &end, "up"])?;
            // It takes XDP frames before there is a sink, too.
            ends.run("ethtool", &["-K", &end, "gro", "on"])?;
        }
        router.sysctl("net/ipv4/ip_forward", "1")?;
        router.sysctl("net/ipv4/conf/all/rp_filter", "0")?;
        router.ip(&["route", "add", "10.128.0.0/16", "via", "10.2.0.2"])?;
        let wire = Wire::deaf(&ends)?;
        let mut forwarding = Forwarding::new(1 << 16)?;
        let ports = router.inside(|| -> Result<_> {
            if let Some(translation) = translation {
                forwarding.translate(translation)?;
            }
            let port = |name: &str, slot| -> Result<Attached> {
                Ok(forwarding.attach(index_of(&router, name)?, name, slot)?)
            };
            Ok([port("lan", 0)?, port("wan", 1)?])
        })??;
        let left = index_of(&ends, "elan")?;
        Ok(Self {
            left,
            router,
            ends,
            forwarding,
            ports,
            wire,
            sink: None,
        })
    }

    /// Has the far end drop what comes as early as can be: nobody sees it
    /// there any more.
    pub fn sink(&mut self) -> Result<()> {
        let right = index_of(&self.ends, "ewan")?;
        self.sink = Some(self.ends.inside(|| Sink::at(right))??);
        Ok(())
    }

    /// Opens the ports, or hands all up.
    pub fn open(&self, is_open: bool) -> Result<()> {
        for (port, last) in self.ports.iter().zip([1, 2]) {
            let settings = PortSettings {
                receives_v4: is_open,
                sends_v4: is_open,
                is_soft: true,
                is_outside: last == 2,
                mac: [2, 0, 0, 0, 1, last],
                ..PortSettings::default()
            };
            self.forwarding.set(port, &settings)?;
        }
        Ok(self
            .forwarding
            .watched_for(Duration::from_secs(3_600), [u32::MAX; 2], true)?)
    }

    /// Nanoseconds a frame, from the first sent to the last that came out.
    pub fn measure(&self, frames: u32, send: impl Fn() -> Result<()>) -> Result<f64> {
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
    pub fn route(&self, routes: u32) -> Result<()> {
        let mut lines = String::new();
        for route in 1..routes {
            let [_, a, b, c] = ((20 << 16) + route).to_be_bytes();
            let _ = writeln!(lines, "route add {a}.{b}.{c}.0/24 via 10.2.0.2");
        }
        self.router.ip_batch(&lines)
    }

    /// Sends XDP frames.
    pub fn live(&self, generator: &Generator, frames: u32) -> Result<()> {
        Ok(self.ends.inside(|| generator.send(self.left, frames))??)
    }

    /// Sends frames of a socket, these in turn.
    pub fn send(&self, frames: &[Vec<u8>], count: u32) -> Result<()> {
        for frame in frames.iter().cycle().take(count as usize) {
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

/// UDP from the left to the right, from a port.
pub fn frame(port: u16) -> Vec<u8> {
    let mut packet = packet::build::Ip::new([10, 1, 0, 2].into(), [10, 128, 0, 0].into());
    packet.ttl = 64;
    let udp = packet.udp(port, 9, &[0; FRAME - 42]);
    [&LAN[..], &[2, 0, 0, 0, 2, 1], &[8, 0], &udp].concat()
}
