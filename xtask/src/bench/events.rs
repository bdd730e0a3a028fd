//! Case `events`: what a link, an alias and a neighbour that come cost the
//! daemon's mirror, beside how many there are already: processor time of its
//! thread, and bytes that it allocates. Both are to stay as they are while the
//! rows grow. A generation that is published copies the nodes of the trees
//! that its events change, once for all of them: where the kernel takes longer
//! over each row, fewer events share one, so bytes are told of a generation
//! as well, and how many events each has.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
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
    generations: f64,
    cpu_ns: f64,
    allocated: f64,
}

/// What comes by the thousand.
struct Rows {
    what: &'static str,
    /// Numbers of them; the last but for a quick run.
    sizes: [usize; 3],
    /// What is there before.
    begin: &'static [&'static str],
    /// Lines of `ip` that add the row of a number, and delete it.
    add: fn(usize) -> String,
    delete: fn(usize) -> String,
}

const ROWS: [Rows; 3] = [
    Rows {
        what: "links with IPv6",
        sizes: [1_000, 4_000, 16_000],
        begin: &[],
        // A pair, of which one is up.
        add: |at| format!("link add e{at} up group {GROUP} type veth peer name p{at}\n"),
        delete: |at| format!("link delete e{at}\n"),
    },
    Rows {
        what: "aliases of a link",
        sizes: [1_024, 4_096, 16_384],
        begin: ONE_LINK,
        add: |at| format!("addr add {}/8 dev e0\n", address(at)),
        delete: |at| format!("addr delete {}/8 dev e0\n", address(at)),
    },
    Rows {
        what: "neighbours",
        sizes: [6_250, 25_000, 100_000],
        begin: ONE_LINK,
        add: |at| {
            format!(
                "neigh add {} lladdr 02:00:00:00:00:01 dev e0\n",
                address(at)
            )
        },
        delete: |at| format!("neigh delete {} dev e0\n", address(at)),
    },
];

const ONE_LINK: &[&str] = &["link add e0 up group 77777 type veth peer name p0\n"];

/// Of 10.0.0.0/8, from 10.0.0.1 on.
fn address(at: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + at as u32)
}

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    for rows in &ROWS {
        let sizes = match (setting.quick, &rows.sizes) {
            (true, [few @ .., _]) => few,
            (false, all) => &all[..],
        };
        for &size in sizes {
            say(format_args!("events: {size} {}", rows.what));
            for _ in 0..setting.rounds {
                let netns = Netns::new("bench")?;
                netns.ip_batch(&rows.begin.concat())?;
                come(setting, &netns, rows, size, samples)?;
                clear(&netns)?;
            }
        }
    }
    Ok(())
}

/// Adds rows, and an eighth of them again behind all the others.
fn come(
    setting: &Setting,
    netns: &Netns,
    rows: &Rows,
    size: usize,
    samples: &mut Samples,
) -> Result<()> {
    let mut mirror = Mirror::start(setting, netns)?;
    let last = size - size / 8;
    for (which, some) in [("", 0..size), (", the last eighth", last..size)] {
        if some.start > 0 {
            let lines: String = some.clone().map(rows.delete).collect();
            netns.ip_batch(&lines)?;
        }
        let before = mirror.settled()?;
        netns.ip_batch(&some.map(rows.add).collect::<String>())?;
        let after = mirror.settled()?;
        let events = (after.events - before.events).max(1.0);
        let generations = (after.generations - before.generations).max(1.0);
        let allocated = after.allocated - before.allocated;
        let what = format!("{}{which}", rows.what);
        let mut told = |metric, value| samples.add("fingerpost", &what, size as u64, metric, value);
        told("cpu_ns_per_event", (after.cpu_ns - before.cpu_ns) / events);
        told("bytes_allocated_per_event", allocated / events);
        told("bytes_allocated_per_generation", allocated / generations);
        told("events_per_generation", events / generations);
    }
    Ok(())
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
            [events, generations, cpu_ns, allocated] => Ok(Spent {
                events,
                generations,
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
