//! `cargo xtask lab vlans`: the test of BRIDGE-MIB and Q-BRIDGE-MIB in a
//! machine whose kernel's bridges filter VLANs, which that of many hosts do
//! not: there the test says so and looks at the rest.

use std::process::ExitCode;

use anyhow::Result;

use crate::test::programs;
use crate::{host, uml};

const TEST: &str = "groups::bridges_are_those_of_bridge";

/// Builds the test and runs it there; fails when it fails, or skips anything.
pub fn run() -> Result<ExitCode> {
    let test = programs::test_of("fingerpost", "snmp")?;
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
