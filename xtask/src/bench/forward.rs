//! Case `forward`: packets through a worker between memory ports, beside
//! DPDK's testpmd between null ports.

use std::process::Stdio;

use ::lab::bench::Measured;
use anyhow::{Context, Result, bail};

use super::Setting;
use crate::host::{self, Needed};

/// The peer.
const NEEDED: &[Needed] = &[("dpdk-testpmd", "dpdk-dev")];

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    host::install_missing(NEEDED)?;
    let mut cargo = host::cargo();
    cargo
        .current_dir(host::workspace()?)
        .args([
            "bench",
            "--quiet",
            "--package=fingerpost-dataplane",
            "--bench=forward",
        ])
        .arg("--")
        .arg(format!("--rounds={}", setting.rounds))
        .arg("--testpmd=dpdk-testpmd");
    if setting.quick {
        cargo.arg("--quick");
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    if !output.status.success() {
        bail!("the benchmark `forward` failed");
    }
    serde_json::from_slice(&output.stdout).context("reading the benchmark's rows")
}
