//! Running a command as its users do, and what it cost.

use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ::lab::Netns;
use ::lab::bench::Samples;
use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::Setting;
use crate::host::say;

/// Outputs go to a file in memory, the same for all: a pipe would measure
/// its reader, and to `/dev/null` writing costs nothing.
const OUTPUT_DIRECTORY: &str = "/dev/shm";
/// One who takes longer has had rounds enough after the first two.
const SLOW: Duration = Duration::from_secs(4);
const ROUNDS_OF_THE_SLOW: usize = 2;
/// A daemon that is not ready by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who does a job.
pub struct Contender {
    /// `fingerpost`, or the peer's name.
    pub who: String,
    /// The job.
    pub what: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    slow: usize,
}

impl Contender {
    pub fn new(who: &str, what: &str, program: impl Into<PathBuf>, arguments: &str) -> Self {
        Self {
            who: who.to_owned(),
            what: what.to_owned(),
            program: program.into(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            slow: 0,
        }
    }

    /// A peer, called by its own name.
    pub fn peer(what: &str, line: &str) -> Self {
        let (program, arguments) = line.split_once(' ').unwrap_or((line, ""));
        Self::new(line, what, program, arguments)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command
    }
}

/// What one run cost.
pub struct Cost {
    pub wall: Duration,
    pub cpu_ms: f64,
    pub bytes: u64,
}

/// Lets all do their jobs in turn, `rounds` times.
pub fn in_turn(
    setting: &Setting,
    netns: &Netns,
    size: u64,
    contenders: &mut [Contender],
    samples: &mut Samples,
) -> Result<()> {
    netns.inside(|| {
        for _ in 0..setting.rounds {
            for contender in contenders.iter_mut() {
                if contender.slow >= ROUNDS_OF_THE_SLOW {
                    continue;
                }
                let cost = match run(contender) {
                    Ok(cost) => cost,
                    Err(error) => {
                        // The others still have something to show.
                        say(format_args!("left out: {error:#}"));
                        contender.slow = ROUNDS_OF_THE_SLOW;
                        continue;
                    }
                };
                contender.slow += usize::from(cost.wall >= SLOW);
                let Contender { who, what, .. } = contender;
                let wall_ms = cost.wall.as_secs_f64() * 1_000.0;
                samples.add(who, what, size, "wall_ms", wall_ms);
                samples.add(who, what, size, "cpu_ms", cost.cpu_ms);
                samples.add(who, what, size, "output_bytes", cost.bytes as f64);
            }
        }
        Ok(())
    })?
}

/// Runs one to its end; it must succeed.
pub fn run(contender: &Contender) -> Result<Cost> {
    let path = output_path();
    let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    let before = children_cpu_ms()?;
    let start = Instant::now();
    let mut command = contender.command();
    let mut child = command
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    let status = child.wait()?;
    let wall = start.elapsed();
    let cpu_ms = children_cpu_ms()? - before;
    let bytes = fs::metadata(&path)?.len();
    fs::remove_file(&path)?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(Cost {
        wall,
        cpu_ms,
        bytes,
    })
}

fn output_path() -> PathBuf {
    PathBuf::from(OUTPUT_DIRECTORY).join(format!("fingerpost-bench-{}", std::process::id()))
}

fn children_cpu_ms() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 / 1_000.0)
}

/// The bytes a contender writes, by a run that is not measured.
pub fn output_bytes(netns: &Netns, contender: &Contender) -> Result<u64> {
    netns.inside(|| run(contender).map(|cost| cost.bytes))?
}

/// System calls of a run of its own, counted by strace.
pub fn system_calls(netns: &Netns, contender: &Contender) -> Result<f64> {
    let counts = output_path().with_extension("strace");
    let mut traced = Contender::new(&contender.who, &contender.what, "strace", "-f -c -o");
    traced.arguments.push(counts.display().to_string());
    traced
        .arguments
        .push(contender.program.display().to_string());
    traced.arguments.extend(contender.arguments.iter().cloned());
    netns.inside(|| run(&traced).map(drop))??;
    let text = fs::read_to_string(&counts).context("reading strace's counts")?;
    fs::remove_file(&counts)?;
    total_calls(&text).context("strace's counts have no total")
}

/// The number of calls in strace's last line: `100.00 0.012 3 4021 7 total`.
fn total_calls(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// A running `fingerpost up`; ended when dropped.
pub struct Daemon {
    process: Child,
}

impl Daemon {
    /// Starts it inside the namespace and waits until it says that its
    /// mirror is complete, as it would say to systemd.
    pub fn start(setting: &Setting, netns: &Netns) -> Result<Self> {
        Self::start_with(setting, netns, &[])
    }

    /// The same with arguments of its own.
    pub fn start_with(setting: &Setting, netns: &Netns, arguments: &[&str]) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("fingerpost-ready-{}", std::process::id()));
        let ready = UnixDatagram::bind(&path).context("making a socket to be notified on")?;
        ready.set_read_timeout(Some(PATIENCE))?;
        let process = netns.inside(|| {
            let mut up = Command::new(&setting.fingerpost);
            up.arg("up")
                .args(arguments)
                .env("NOTIFY_SOCKET", &path)
                .env(
                    "STATE_DIRECTORY",
                    std::env::temp_dir().join("fingerpost-bench"),
                )
                .stdin(Stdio::null());
            up.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        })??;
        let daemon = Self { process };
        let mut word = [0; 1_024];
        let heard = ready.recv(&mut word);
        fs::remove_file(&path)?;
        let len = heard.context("the daemon does not say that it is ready")?;
        let word = String::from_utf8_lossy(word.get(..len).unwrap_or_default());
        if !word.contains("READY=1") {
            bail!("the daemon said {word:?} instead of READY=1");
        }
        Ok(daemon)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Milliseconds of processor time so far, all threads.
    pub fn cpu_ms(&self) -> f64 {
        cpu_ms_of(self.process.id())
    }

    /// `VmRSS` in bytes.
    pub fn resident_bytes(&self) -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
        let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1_024.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Milliseconds of processor time of a process so far, all threads.
pub fn cpu_ms_of(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let on_cpu = |path: PathBuf| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let ns: f64 = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| on_cpu(task.path()))
        .sum();
    ns / 1_000_000.0
}

/// Asks the daemon a question many times and tells what one costs the
/// daemon, and the one who asks.
pub fn ask_often(
    setting: &Setting,
    netns: &Netns,
    daemon: &Daemon,
    size: u64,
    what: &str,
    arguments: &str,
    samples: &mut Samples,
) -> Result<()> {
    const TIMES: usize = 20;
    let asker = Contender::new("fingerpost (daemon)", what, &setting.fingerpost, arguments);
    for _ in 0..setting.rounds {
        let before = daemon.cpu_ms();
        let start = Instant::now();
        netns.inside(|| (0..TIMES).try_for_each(|_| run(&asker).map(drop)))??;
        let wall_ms = start.elapsed().as_secs_f64() * 1_000.0 / TIMES as f64;
        let cpu_ms = (daemon.cpu_ms() - before) / TIMES as f64;
        samples.add(&asker.who, what, size, "wall_ms", wall_ms);
        samples.add(&asker.who, what, size, "daemon_cpu_ms", cpu_ms);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straces_total_is_read() {
        let text = "% time seconds usecs/call calls errors syscall\n 99.00 0.01 3 4000 openat\n------\n100.00    0.012345           3      4021         7 total\n";
        assert_eq!(total_calls(text), Some(4_021.0));
        assert_eq!(total_calls(""), None);
    }
}
