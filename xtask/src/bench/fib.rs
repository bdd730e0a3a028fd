//! Case `fib`: longest-prefix match beside DPDK's tables, on one core and
//! on two while a writer changes routes.

use std::process::Stdio;

use ::lab::bench::Measured;
use anyhow::{Context, Result, bail};

use super::{Setting, peers};
use crate::host;

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    peers::install_library("libdpdk", "libdpdk-dev")?;
    let peer = peers::build("fib", &["libdpdk"])?;
    let mut cargo = host::cargo();
    cargo
        .current_dir(host::workspace()?)
        .args([
            "bench",
            "--quiet",
            "--package=fingerpost-fib",
            "--bench=fib",
        ])
        .arg("--")
        .arg(format!("--rounds={}", setting.rounds))
        .arg("--peer")
        .arg(peer);
    if setting.quick {
        cargo.arg("--quick");
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    if !output.status.success() {
        bail!("the benchmark `fib` failed");
    }
    serde_json::from_slice(&output.stdout).context("reading the benchmark's rows")
}
