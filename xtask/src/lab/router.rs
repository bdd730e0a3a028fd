//! `cargo xtask lab router`: three routers in a row with FRR and forwarding
//! at XDP on all their ports, looked at from all sides, under load for as long
//! as is wanted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::lab::routers::Routers;
use anyhow::{Result, ensure};

use crate::host::{self, say};

/// How long routing has to stand under load, unless said.
pub const USUAL_SECONDS: usize = 600;
/// Times that a learnt route is timed.
const LEARNT: u8 = 20;

/// Does it; fails where anything does not hold.
pub fn run(seconds: usize) -> Result<ExitCode> {
    let program: PathBuf = host::released()?;
    let directory = tempfile::tempdir()?;
    let begin = Instant::now();
    let routers = Routers::build("labrow", &program, directory.path())?;
    say(format_args!(
        "three routers in {} namespaces, converged after {:.1} s; meanwhile: ip netns list",
        routers.routers.len() + routers.hosts.len(),
        begin.elapsed().as_secs_f32()
    ));
    routers.takes_long_packets()?;
    say("packets of 9,000 bytes go through at XDP, IPv4 and IPv6");
    routers.shows_each_hop()?;
    say("traceroute shows each hop, IPv4 and IPv6");
    routers.is_logged_in_to()?;
    say("ssh to the router in the middle works, IPv4 and IPv6");
    learnt(routers.uses_what_is_learnt(LEARNT)?);
    let stood = routers.stand_under_load(Duration::from_secs(seconds as u64))?;
    let [sent, answered] = stood.pings;
    say(format_args!(
        "{} looks in {seconds} s: all adjacencies and sessions stood; {} packets forwarded at \
         XDP, {} up; {answered} of {sent} pings answered",
        stood.looks, stood.forwarded, stood.up
    ));
    // Lost is what a busy machine has no room for.
    ensure!(
        answered * 10 >= sent * 9,
        "more than a tenth of the pings were lost"
    );
    ensure!(
        stood.forwarded >= answered,
        "not all pings were forwarded at XDP"
    );
    routers.finds_the_way_s_mtu()?;
    say("the way's MTU is found, IPv4 and IPv6");
    Ok(ExitCode::SUCCESS)
}

/// From the moment that the kernels have a route until a packet gets through.
fn learnt(mut took: Vec<f64>) {
    took.sort_by(f64::total_cmp);
    let middle = took.get(took.len() / 2).copied().unwrap_or_default();
    let most = took.last().copied().unwrap_or_default();
    say(format_args!(
        "a route that all kernels have is used after {middle:.1} ms in the median, {most:.1} at \
         most (pings every 2 ms)"
    ));
}
