//! Case `events`: what a link that comes costs the daemon's mirror, beside
//! how many there are already: processor time of its thread, and bytes that
//! it allocates. Both are to stay as they are while the links grow.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ::lab::Netns;
use ::lab::bench::Samples;
use anyhow::{Context, Result, bail};

use super::Setting;
use crate::host::say;

/// A mirror that has nothing new for so long has taken in what there was:
/// less than it waits before it compares its tables with the kernel's.
const QUIET: Duration = Duration::from_millis(300);
/// The links' group.
const GROUP: &str = "77777";
/// For the largest size.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a mirror has done so far.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spent {
    events: f64,
    cpu_ns: f64,
    allocated: f64,
}

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let sizes: &[usize] = if setting.quick {
        &[1_000, 4_000]
    } else {
        &[1_000, 4_000, 16_000]
    };
    for &size in sizes {
        say(format_args!("events: {size} links with IPv6, of pairs"));
        for _ in 0..setting.rounds {
            let netns = Netns::new("bench")?;
            links(setting, &netns, size, samples)?;
            clear(&netns)?;
        }
    }
    Ok(())
}

/// Sets links up, and an eighth of them again behind all the others.
fn links(setting: &Setting, netns: &Netns, size: usize, samples: &mut Samples) -> Result<()> {
    let mut mirror = Mirror::start(setting, netns)?;
    let last = size - size / 8;
    for (what, links) in [("set up", 0..size), ("set up, the last eighth", last..size)] {
        if links.start > 0 {
            let lines: String = links
                .clone()
                .map(|at| format!("link delete e{at}\n"))
                .collect();
            netns.ip_batch(&lines)?;
        }
        let before = mirror.settled()?;
        add(netns, links)?;
        let after = mirror.settled()?;
        let events = (after.events - before.events).max(1.0);
        let mut told = |metric, value| samples.add("fingerpost", what, size as u64, metric, value);
        told("cpu_ns_per_event", (after.cpu_ns - before.cpu_ns) / events);
        told(
            "bytes_allocated_per_event",
            (after.allocated - before.allocated) / events,
        );
    }
    Ok(())
}

/// A pair of links each, of which one is up.
fn add(netns: &Netns, links: std::ops::Range<usize>) -> Result<()> {
    let line = |at| format!("link add e{at} up group {GROUP} type veth peer name p{at}\n");
    let lines: String = links.map(line).collect();
    netns.ip_batch(&lines)
}

/// Deletes the links by their group, in one request: a namespace that goes
/// with thousands keeps the kernel at work during the next one's turn.
fn clear(netns: &Netns) -> Result<()> {
    netns.ip(&["link", "delete", "group", GROUP]).map(drop)
}

/// A mirror in a process of its own, which tells what it has spent.
struct Mirror {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Mirror {
    fn start(setting: &Setting, netns: &Netns) -> Result<Self> {
        let program = setting.programs.join("mirror-spent");
        let started = netns.inside(|| {
            Command::new(program)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })?;
        let mut process = started.context("starting mirror-spent")?;
        Ok(Self {
            questions: process.stdin.take().context("no standard input")?,
            answers: BufReader::new(process.stdout.take().context("no standard output")?),
            process,
        })
    }

    fn spent(&mut self) -> Result<Spent> {
        writeln!(self.questions)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        match numbers[..] {
            [events, cpu_ns, allocated] => Ok(Spent {
                events,
                cpu_ns,
                allocated,
            }),
            _ => bail!("mirror-spent answered {line:?}"),
        }
    }

    /// What it has spent once nothing new has come for a while.
    fn settled(&mut self) -> Result<Spent> {
        let deadline = Instant::now() + PATIENCE;
        let mut before = self.spent()?;
        while Instant::now() < deadline {
            std::thread::sleep(QUIET);
            let now = self.spent()?;
            if now.events == before.events {
                return Ok(before);
            }
            before = now;
        }
        bail!("the kernel did not come to rest")
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
