//! Case `nat`: what a packet costs the translation engine, from 2,000 to 10
//! million flows, in the shapes of carriers, and from one port to many
//! remotes; a million subscribers with one who scans and a flood of strangers;
//! and the slowest calls. All in one process, the program's own:
//! `fingerpost nat bench`.

use std::process::{Command, Stdio};

use ::lab::bench::{Measured, Samples};
use anyhow::{Context, Result, bail};

use super::Setting;
use crate::host::say;

/// Shapes, and what stands before the names of their rows.
const SHAPES: [(&str, &str); 5] = [
    ("growth", ""),
    ("one-port", ""),
    ("carrier", "carrier: "),
    ("subscribers", "subscribers: "),
    ("tail", "tail: "),
];

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    for round in 1..=setting.rounds {
        for (shape, prefix) in SHAPES {
            // The largest shape is measured for its memory, once; the slowest
            // calls are few in any run but a long one.
            if matches!(shape, "carrier" | "subscribers" | "tail") && round > 1 {
                continue;
            }
            say(format_args!("nat: {shape}, round {round}"));
            for row in rows(setting, shape)? {
                let what = format!("{prefix}{}", row.what);
                samples.add(&row.who, &what, row.size, &row.metric, row.median);
            }
        }
    }
    Ok(())
}

fn rows(setting: &Setting, shape: &str) -> Result<Vec<Measured>> {
    let mut bench = Command::new(&setting.fingerpost);
    bench.args(["nat", "bench", "--json", "--shape", shape]);
    if setting.quick {
        bench.args(["--quick", "--packets", "10000000"]);
    }
    let output = bench
        .stderr(Stdio::inherit())
        .output()
        .context("starting fingerpost nat bench")?;
    if !output.status.success() {
        bail!("fingerpost nat bench --shape {shape}: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("reading the rows of fingerpost nat bench")
}
