//! Case `mrt`: loading a collector's table beside unpacking it, and beside
//! `bgpkit-parser`; the bytes of a path.

use std::process::Stdio;

use ::lab::bench::Measured;
use anyhow::{Context, Result, bail};

use super::Setting;
use crate::host;

pub fn measure(setting: &Setting) -> Result<Vec<Measured>> {
    let mut cargo = host::cargo();
    cargo
        .current_dir(host::workspace()?)
        .args([
            "bench",
            "--quiet",
            "--package=fingerpost-bgp",
            "--bench=mrt",
        ])
        .arg("--")
        .arg(format!("--rounds={}", setting.rounds));
    if setting.quick {
        cargo.arg("--quick");
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    if !output.status.success() {
        bail!("the benchmark `mrt` failed");
    }
    serde_json::from_slice(&output.stdout).context("reading the benchmark's rows")
}
