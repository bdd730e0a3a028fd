//! Case `send`: each way of `fingerpost send` beside the barest C program
//! that does the same (`benches/peers/send.c`), over a veth pair in
//! namespaces of its own; how well rates are kept; and our own stack into
//! memory, stage by stage.
//!
//! The far side drops at once: packets go to a link-layer address that is
//! not its own, so that the kernel's IP input drops them as another host's.
//! Both sides of a comparison pay for that alike, in the sender's system
//! time. The link takes trains of segments as they are (`segments`), or has
//! the kernel cut them first (`segments, cut`).

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ::lab::bench::Samples;
use ::lab::{Netns, wait_until};
use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Setting, peers};
use crate::host::say;

const OURS: &str = "fingerpost";
const TO: &str = "10.99.0.2";
const PORT: &str = "9000";
const PAYLOAD: u64 = 64;
/// Seconds of one measurement.
const SECONDS: &str = "0.7";
/// Nobody's: the far side drops what is sent to it.
const NOBODY: &str = "02:00:00:00:00:99";

/// For a sender that could not start at once.
const PATIENCE: Duration = Duration::from_secs(5);

const WAYS: [&str; 8] = [
    "sendto",
    "connected",
    "sendmmsg",
    "segments",
    "segments, cut",
    "af-packet",
    "af-packet-ring",
    "af-xdp",
];
const STAGES: [&str; 6] = ["payload", "buffer", "header", "route", "neighbour", "port"];
/// Packets a second that are asked for.
const RATES: [u64; 3] = [1_000, 20_000, 100_000];

/// What our program says.
#[derive(Debug, Deserialize)]
struct Ours {
    pps: f64,
    seconds: f64,
    sent_packets: u64,
    cpu_ns_per_packet: f64,
    wall_ns_per_packet: f64,
}

/// What a bare program says.
#[derive(Debug, Deserialize)]
struct Bare {
    packets: u64,
    seconds: f64,
    cpu_seconds: f64,
}

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let peer = peers::build("send", &[])?;
    let peer = peer.to_string_lossy().into_owned();
    let near = link()?;
    for round in 1..=setting.rounds {
        for way in WAYS {
            say(format_args!("send: {way}, round {round}"));
            let is_cut = way.ends_with("cut");
            let most = if is_cut { "1" } else { "65535" };
            near.0.ip(&["link", "set", "near", "gso_max_segs", most])?;
            let name = way.split(',').next().unwrap_or(way);
            let ours = ours(setting, &near.0, &["--by", name, "--duration", SECONDS])?;
            add(samples, OURS, way, ours.pps, ours.cpu_ns_per_packet);
            let bare = bare(&near.0, &peer, name)?;
            let packets = bare.packets.max(1) as f64;
            let who = format!("{name} (C)");
            add(
                samples,
                &who,
                way,
                packets / bare.seconds,
                bare.cpu_seconds * 1e9 / packets,
            );
        }
        rates(setting, &near.0, samples)?;
        own(setting, &near.0, samples)?;
    }
    Ok(())
}

fn add(samples: &mut Samples, who: &str, what: &str, pps: f64, cpu_ns: f64) {
    samples.add(who, what, PAYLOAD, "packets_per_second", pps);
    samples.add(who, what, PAYLOAD, "cpu_ns_per_packet", cpu_ns);
}

/// Two namespaces with a link, whose far side drops. (The far one has to
/// live as long.)
fn link() -> Result<(Netns, Netns)> {
    let (near, far) = (Netns::new("send-near")?, Netns::new("send-far")?);
    near.ip_batch(&format!(
        "link add near type veth peer name far netns {}\n\
         addr add 10.99.0.1/24 dev near\n\
         link set near up\n\
         neigh add {TO} lladdr {NOBODY} dev near nud permanent\n",
        far.name()
    ))?;
    far.ip_batch(&format!("addr add {TO}/24 dev far\nlink set far up\n"))?;
    Ok((near, far))
}

fn ours(setting: &Setting, near: &Netns, arguments: &[&str]) -> Result<Ours> {
    let program = setting.fingerpost.to_string_lossy();
    let payload = PAYLOAD.to_string();
    let mut command = near.command(&program);
    command.args(["send", TO, PORT, "--json", "--payload", &payload]);
    command.args(arguments);
    output(&mut command)
}

fn bare(near: &Netns, peer: &str, way: &str) -> Result<Bare> {
    let payload = PAYLOAD.to_string();
    let mut command = near.command(peer);
    command.args([way, TO, PORT, &payload, SECONDS]);
    command.args(["near", "10.99.0.1", NOBODY]);
    output(&mut command)
}

/// Runs it and reads what it says. A queue of `AF_XDP` is free only a moment
/// after its last user has gone, so one that fails is tried again.
fn output<T: for<'a> Deserialize<'a>>(command: &mut Command) -> Result<T> {
    let done = wait_until(PATIENCE, "a sender that ends well", || {
        let output = command.stderr(Stdio::inherit()).output();
        let failed = |output: &Output| !output.status.success();
        (!output.as_ref().is_ok_and(failed)).then_some(output)
    })?;
    let output = done.with_context(|| format!("starting {command:?}"))?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("reading {command:?}"))
}

/// How far from the rate that was asked for.
fn rates(setting: &Setting, near: &Netns, samples: &mut Samples) -> Result<()> {
    for rate in RATES {
        let text = rate.to_string();
        for way in ["sendmmsg", "af-packet-ring"] {
            let arguments = ["--by", way, "--rate", &text, "--duration", "1"];
            let said = ours(setting, near, &arguments)?;
            let reached = said.sent_packets as f64 / said.seconds;
            let off = (reached / rate as f64 - 1.0).abs() * 100.0;
            samples.add(OURS, &format!("{way} at a rate"), rate, "off_percent", off);
        }
    }
    Ok(())
}

/// Our own stack into memory, up to each stage.
fn own(setting: &Setting, near: &Netns, samples: &mut Samples) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for cores in if cores > 1 { vec![1, cores] } else { vec![1] } {
        let threads = cores.to_string();
        for stage in STAGES {
            let arguments = [
                "--by",
                "own",
                "--stop-after",
                stage,
                "--cores",
                &threads,
                "--flows",
                "64",
                "--duration",
                "0.3",
            ];
            let said = ours(setting, near, &arguments)?;
            let what = format!("own stack, to {stage}, {cores} cores");
            let per_core = said.pps / cores as f64;
            samples.add(
                OURS,
                &what,
                PAYLOAD,
                "packets_per_second_and_core",
                per_core,
            );
            samples.add(
                OURS,
                &what,
                PAYLOAD,
                "wall_ns_per_packet",
                said.wall_ns_per_packet,
            );
        }
    }
    Ok(())
}
