//! DPDK's testpmd between two null ports, on one core.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::ours::Rate;

/// What it forwards in a mode; `copy` writes each packet where it arrives
/// and reads it where it leaves.
pub fn rate(program: &Path, mode: &str, copy: bool, time: Duration) -> Result<Rate> {
    let device = |number: u8| format!("--vdev=net_null{number},size=64,copy={}", u8::from(copy));
    let mut child = Command::new(program)
        .args(["--no-huge", "--no-pci", "-m", "256", "-l", "0,1"])
        .args([
            "--no-telemetry",
            &format!("--file-prefix=bench{}", std::process::id()),
        ])
        .args([device(0), device(1)])
        .args([
            "--",
            "--nb-cores=1",
            "--total-num-mbufs=8192",
            "--no-lsc-interrupt",
        ])
        .args([
            "--interactive",
            "--auto-start",
            &format!("--forward-mode={mode}"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let stdout = child.stdout.take().context("no standard output")?;
    // Its rates are those since it was asked last.
    thread::sleep(Duration::from_millis(1_500));
    writeln!(stdin, "show port stats all")?;
    let (start, before) = (Instant::now(), cpu_nanos(child.id())?);
    thread::sleep(time);
    writeln!(stdin, "show port stats all\nstop\nquit")?;
    let (elapsed, after) = (start.elapsed(), cpu_nanos(child.id())?);
    drop(stdin);
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let rates: Vec<f64> = lines
        .filter_map(|line| {
            let rest = line.trim().strip_prefix("Tx-pps:")?;
            rest.split_whitespace().next()?.parse().ok()
        })
        .collect();
    child.wait().context("waiting for testpmd")?;
    // Both ports, the second time.
    let [.., one, two] = rates.as_slice() else {
        anyhow::bail!("testpmd in mode {mode} told no rates");
    };
    let mpps = (one + two) / 1e6;
    let share = (after - before) as f64 / elapsed.as_nanos() as f64;
    Ok(Rate {
        mpps,
        mpps_of_cpu: mpps / share,
    })
}

/// Time that its forwarding thread has run, to a hundredth of a second: the
/// one that has run longest.
fn cpu_nanos(process: u32) -> Result<u64> {
    let mut most = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let told = fs::read_to_string(task?.path().join("stat"))?;
        // Behind the name: state, ten more, then user and system time.
        let fields = told.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        most = most.max(ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum());
    }
    Ok(most * 10_000_000)
}
