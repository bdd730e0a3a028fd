//! Case `record`: what a recording costs the daemon at 10,000 changes a
//! second, and how fast one of a full table is replayed.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ::lab::bench::Samples;
use ::lab::situation::routes::{self, Family};
use ::lab::{Child, Netns, wait_until};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::Setting;
use crate::host::say;

/// Changes a second.
const CHANGES: usize = 10_000;
/// Packs of them a second.
const PACKS: usize = 20;
/// How long each round lasts.
const ROUND: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    overhead(setting, samples)?;
    replay(setting, samples)
}

/// The daemon's processor time with a recording and without, in turn.
fn overhead(setting: &Setting, samples: &mut Samples) -> Result<()> {
    say(format_args!("record: {CHANGES} changes a second"));
    let netns = Netns::new("bench")?;
    routes::build(&netns, Family::V4, 1_000)?;
    let place = tempfile::tempdir()?;
    let pack = place.path().join("pack");
    let lines =
        (0..CHANGES / PACKS).map(|number| format!("100.64.{}.{}/32\n", number / 250, number % 250));
    fs::write(&pack, lines.collect::<String>())?;
    for _ in 0..setting.rounds {
        for who in ["fingerpost", "fingerpost, recording"] {
            let file = place.path().join("recording");
            let mut command = netns.command(&setting.fingerpost.to_string_lossy());
            command.arg("up");
            if who != "fingerpost" {
                command.arg("--record").arg(&file);
            }
            let daemon = up(command, &netns, setting)?;
            let (before, start) = (cpu_nanos(daemon.id())?, Instant::now());
            let changes = churn(setting, &netns, &pack)?;
            // What was sent last is still under way.
            thread::sleep(Duration::from_millis(200));
            let nanos = (cpu_nanos(daemon.id())? - before) as f64;
            let rows = CHANGES as u64;
            let percent = nanos / 1e7 / start.elapsed().as_secs_f64();
            samples.add(who, "churn", rows, "cpu_percent", percent);
            samples.add(
                who,
                "churn",
                rows,
                "cpu_ns_per_change",
                nanos / changes as f64,
            );
            end(daemon)?;
        }
    }
    Ok(())
}

/// Adds and takes away routes at a steady pace; gives the changes made.
fn churn(setting: &Setting, netns: &Netns, pack: &Path) -> Result<usize> {
    let bare = setting.programs.join("bare-routes");
    let (bare, pack) = (bare.to_string_lossy(), pack.to_string_lossy());
    let start = Instant::now();
    let mut packs = 0;
    while start.elapsed() < ROUND {
        let what = if packs % 2 == 0 { "add" } else { "delete" };
        netns.run(&bare, &[what, &pack, "up0", "198.18.0.1"])?;
        packs += 1;
        let due = Duration::from_secs(1) * packs / PACKS as u32;
        thread::sleep(due.saturating_sub(start.elapsed()));
    }
    Ok(packs as usize * CHANGES / PACKS)
}

/// A recording of a full table, replayed as it should be, beside taking
/// its messages apart and keeping the rows.
fn replay(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let size = if setting.quick { 100_000 } else { 1_000_000 };
    say(format_args!("record: a replay of {size} routes"));
    let netns = Netns::new("bench")?;
    routes::build(&netns, Family::V4, size)?;
    let place = tempfile::tempdir()?;
    let file = place.path().join("recording");
    let mut command = netns.command(&setting.fingerpost.to_string_lossy());
    command.args(["up", "--record"]).arg(&file);
    end(up(command, &netns, setting)?)?;
    let bytes = fs::metadata(&file)?.len();
    let rows = size as u64;
    samples.add("fingerpost", "recording", rows, "bytes", bytes as f64);
    let once = setting.programs.join("replay-once");
    let (once, file) = (once.to_string_lossy(), file.to_string_lossy());
    for _ in 0..setting.rounds {
        for (who, how) in [("fingerpost", "check"), ("bare decode and apply", "bare")] {
            let said = netns.run(&once, &[how, &file])?;
            let numbers: Vec<f64> = said
                .split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect();
            let [ms, messages, _] = numbers[..] else {
                bail!("replay-once wrote {said:?}");
            };
            samples.add(who, "replay", rows, "wall_ms", ms);
            samples.add(
                who,
                "replay",
                rows,
                "messages_per_s",
                messages / ms * 1_000.0,
            );
        }
    }
    Ok(())
}

/// Starts a daemon and waits until it answers.
fn up(mut command: std::process::Command, netns: &Netns, setting: &Setting) -> Result<Child> {
    command.stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null());
    let daemon = Child::spawn(command)?;
    let program = setting.fingerpost.to_string_lossy();
    wait_until(PATIENCE, "the daemon", || {
        netns.run(&program, &["status"]).ok()
    })?;
    Ok(daemon)
}

fn end(mut daemon: Child) -> Result<()> {
    daemon.signal(Signal::TERM)?;
    daemon.wait(PATIENCE)?;
    Ok(())
}

/// Processor time of all threads of a process, nanoseconds.
fn cpu_nanos(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next();
        sum += first.context("no time")?.parse::<u64>()?;
    }
    Ok(sum)
}
