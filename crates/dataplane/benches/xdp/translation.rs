//! Established flows of UDP from inside, translated at XDP and by nft's
//! masquerade: in two places that are alike otherwise, in turn. In nft's all
//! is handed up, as where the kernel forwards.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fingerpost_dataplane::xdp::{Drawn, Flow, Generator, Translation};
use lab::Wire;
use lab::bench::Samples;
use packet::{Ipv4, Udp, protocol};

use crate::place::{Place, frame};
use crate::{Arguments, LIVE, METRIC, SOCKET, say};

/// The most flows; each has a port of its own, from this one on.
const FLOWS: u16 = 60_000;
const FIRST_PORT: u16 = 5_000;
/// The router's address outside.
const ALIAS: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
/// Frames that are looked at.
const LOOKED_AT: u32 = 64;
const PATIENCE: Duration = Duration::from_secs(10);
/// The loopback's number: nothing is to go to the engine.
const NO_ENGINE: [u32; 2] = [1; 2];
const MASQUERADE: &str = "add table ip bench; \
    add chain ip bench post { type nat hook postrouting priority srcnat; }; \
    add rule ip bench post oifname wan masquerade";

/// Measures both.
pub fn measure(arguments: &Arguments, part: u32, samples: &mut Samples) -> Result<()> {
    let frames: Vec<Vec<u8>> = (FIRST_PORT..).take(FLOWS.into()).map(frame).collect();
    let first = frames.first().context("a frame")?;
    let many = Generator::new(first, Drawn::SourcePorts(FLOWS))?;
    let mut places = [("nft masquerade", nft(&frames)?), ("fingerpost", ours()?)];
    for (who, place) in &mut places {
        look(place, &many).with_context(|| format!("what {who} translates"))?;
        place.sink()?;
    }
    for flows in [1, FLOWS] {
        let generator = Generator::new(first, Drawn::SourcePorts(flows))?;
        let some = frames.get(..flows.into()).unwrap_or_default();
        for round in 0..=arguments.rounds {
            say(format_args!("{flows} flows translated, round {round}"));
            for (who, place) in &places {
                let live = LIVE / part;
                let took = place.measure(live, || place.live(&generator, live))?;
                let sent = SOCKET / part;
                let took_sent = place.measure(sent, || place.send(some, sent))?;
                // The first finds nothing at hand yet.
                if round == 0 {
                    continue;
                }
                let mut add = |what, took| samples.add(who, what, flows.into(), METRIC, took);
                add("translated XDP frames", took);
                add("translated frames of a socket", took_sent);
            }
        }
    }
    Ok(())
}

/// The kernel's, with all flows known.
fn nft(frames: &[Vec<u8>]) -> Result<Place> {
    let place = Place::make(None)?;
    place.open(false)?;
    place.router.run("nft", &[MASQUERADE])?;
    for key in ["udp_timeout", "udp_timeout_stream"] {
        let key = format!("net/netfilter/nf_conntrack_{key}");
        place.router.sysctl(&key, "3600")?;
    }
    // Some may find the ring full.
    for _ in 0..100 {
        place.send(frames, frames.len() as u32)?;
        let key = "/proc/sys/net/netfilter/nf_conntrack_count";
        let known: usize = place.router.run("cat", &[key])?.trim().parse()?;
        if known >= frames.len() {
            return Ok(place);
        }
    }
    bail!("the kernel does not take all flows");
}

/// Ours, with all flows known.
fn ours() -> Result<Place> {
    let place = Place::make(Some(Translation {
        is_closed: false,
        engine: NO_ENGINE,
        ports: FIRST_PORT..=u16::MAX,
    }))?;
    place.forwarding.name_alias(ALIAS, 32)?;
    for port in (FIRST_PORT..).take(FLOWS.into()) {
        let is_known = place.forwarding.enter(&Flow {
            protocol: protocol::UDP,
            inside: ([10, 1, 0, 2].into(), port),
            alias: (ALIAS, port),
            remote: ([10, 128, 0, 0].into(), 9),
        })?;
        ensure!(is_known, "there is no room for flows");
    }
    place.open(true)?;
    Ok(place)
}

/// Looks whether frames leave translated, with right checksums.
fn look(place: &Place, generator: &Generator) -> Result<()> {
    let wire = Wire::open(&place.ends)?;
    place.live(generator, LOOKED_AT)?;
    let mut seen = 0;
    while seen < LOOKED_AT {
        let (link, frame) = wire.receive(PATIENCE)?.context("frames came out")?;
        let is_ip = frame.get(12..14) == Some(&[8, 0]);
        if link != "ewan" || !is_ip {
            continue;
        }
        let ip = Ipv4::new(frame.get(14..).unwrap_or_default())?;
        let udp = Udp::new(ip.payload())?;
        let is_right = ip.source() == ALIAS
            && ip.ttl() == 63
            && ip.checksum_is_right()
            && udp.checksum_is_right(ip.pseudo_header());
        ensure!(is_right, "{ip:?} {udp:?} came out");
        seen += 1;
    }
    Ok(())
}
