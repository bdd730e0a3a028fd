//! `cargo xtask lab vlans`: the test of BRIDGE-MIB and Q-BRIDGE-MIB in a
//! machine whose kernel's bridges filter VLANs, which that of many hosts do
//! not: there the test says so and looks at the rest.

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{host, uml};

const TEST: &str = "groups::bridges_are_those_of_bridge";

/// Builds the test and runs it there; fails when it fails, or skips anything.
pub fn run() -> Result<ExitCode> {
    let test = built()?;
    let directory = host::workspace()?.join("crates/fingerpost");
    let said = uml::run(&format!(
        "cd {} && {} {TEST} --nocapture",
        directory.display(),
        test.display()
    ))?;
    let says = |what: &str| said.iter().any(|line| line.contains(what));
    let passed = says("test result: ok. 1 passed") && !says("SKIPPED");
    Ok(ExitCode::from(u8::from(!passed)))
}

/// The program of the tests of SNMP.
fn built() -> Result<PathBuf> {
    let output = host::cargo()
        .current_dir(host::workspace()?)
        .args(["test", "--package=fingerpost", "--test=snmp", "--no-run"])
        .arg("--message-format=json")
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().find_map(|line| {
        let told: Value = serde_json::from_str(line).ok()?;
        let is_it = told["target"]["name"] == "snmp" && told["profile"]["test"] == true;
        Some(told["executable"].as_str()?.into()).filter(|_| is_it)
    });
    found.context("the tests of SNMP cannot be built")
}
