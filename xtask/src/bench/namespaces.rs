//! Case `namespaces`: a thousand namespaces of ten links each, mirrored by
//! one daemon: how long it takes to start, and what each takes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ::lab::bench::Samples;
use anyhow::{Context, Result};

use super::Setting;
use crate::host::say;

/// Pairs of links.
const PAIRS: usize = 5;
/// What the script says when the namespaces are there.
const MADE: &str = "made";

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let sizes: &[usize] = if setting.quick { &[100] } else { &[100, 1_000] };
    let directory = tempfile::tempdir()?;
    for &size in sizes {
        say(format_args!(
            "namespaces: {size} of {} links each",
            2 * PAIRS
        ));
        for _ in 0..setting.rounds {
            start(setting, size, directory.path(), samples)?;
        }
    }
    Ok(())
}

/// The namespaces' names are in a directory of the daemon's own mounts, and
/// go with it; they themselves a moment later.
fn start(setting: &Setting, size: usize, directory: &Path, samples: &mut Samples) -> Result<()> {
    let names: String = (0..size).map(|at| format!("netns add n{at}\n")).collect();
    let pair = |at: usize| {
        let of = at / PAIRS;
        format!("link add e{at} netns n{of} up type veth peer name p{at} netns n{of}\n")
    };
    let links: String = (0..size * PAIRS).map(pair).collect();
    fs::write(directory.join("lines"), names + &links)?;
    let config = format!("[control]\ndirectory = {:?}\n", directory.join("sockets"));
    fs::write(directory.join("fingerpost.toml"), config)?;
    let script = format!(
        "mkdir -p /run/netns && mount -t tmpfs names /run/netns && ip -batch {lines} && \
         echo {MADE} && exec {program} up --all-netns --config {config}",
        lines = directory.join("lines").display(),
        program = setting.fingerpost.display(),
        config = directory.join("fingerpost.toml").display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", &script]);
    command
        .env("STATE_DIRECTORY", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut daemon = Daemon(command.spawn().context("starting the daemon")?);
    let out = daemon.0.stdout.take().context("no standard output")?;
    let mut lines = BufReader::new(out).lines();
    until(&mut lines, MADE)?;
    let begun = Instant::now();
    until(&mut lines, "Ctrl-C")?;
    let mut add =
        |metric, value| samples.add("fingerpost", "up --all-netns", size as u64, metric, value);
    add("wall_ms", begun.elapsed().as_secs_f64() * 1_000.0);
    let process = format!("/proc/{}", daemon.0.id());
    let count = |of: &str| fs::read_dir(format!("{process}/{of}")).map(Iterator::count);
    add(
        "descriptors_per_namespace",
        count("fd")? as f64 / size as f64,
    );
    add("threads_per_namespace", count("task")? as f64 / size as f64);
    let status = fs::read_to_string(format!("{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .context("no VmRSS")?;
    add("resident_mib", kib / 1_024.0);
    Ok(())
}

/// Reads up to a line that begins so.
fn until(lines: &mut impl Iterator<Item = std::io::Result<String>>, text: &str) -> Result<()> {
    for line in lines {
        if line?.starts_with(text) {
            return Ok(());
        }
    }
    anyhow::bail!("the daemon ended before it said {text:?}")
}

/// Ended with its value, and its namespaces with it.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
