//! Benchmarks that are programs of a crate of ours (`cargo bench`) and write
//! their rows as JSON.

use std::ffi::OsString;
use std::process::Stdio;

use ::lab::bench::Measured;
use anyhow::{Context, Result, bail};

use super::Setting;
use crate::host;

/// Runs a package's benchmark, with what else it is told, and reads its rows.
pub fn measure(
    setting: &Setting,
    package: &str,
    bench: &str,
    told: impl IntoIterator<Item = OsString>,
) -> Result<Vec<Measured>> {
    let mut cargo = host::cargo();
    cargo
        .current_dir(host::workspace()?)
        .args(["bench", "--quiet", "--package", package, "--bench", bench])
        .arg("--")
        .arg(format!("--rounds={}", setting.rounds))
        .args(told);
    if setting.quick {
        cargo.arg("--quick");
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    if !output.status.success() {
        bail!("the benchmark `{bench}` failed");
    }
    serde_json::from_slice(&output.stdout).context("reading the benchmark's rows")
}
