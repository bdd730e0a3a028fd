//! `cargo xtask lab vlans`: tests about VLANs of bridges in a machine whose
//! kernel's bridges filter them, which that of many hosts do not: there the
//! tests say so, or look at refusals alone.

use std::process::ExitCode;

use anyhow::Result;

use crate::host::{self, say};
use crate::test::programs;
use crate::uml;

/// Programs of tests, and the test of each.
const TESTS: [(&str, &str); 2] = [
    ("snmp", "groups::bridges_are_those_of_bridge"),
    ("ip", "vlans::vlans_of_bridges_are_as_bridge_has_them"),
];

/// Builds the tests and runs them there; fails when one fails, or skips
/// anything.
pub fn run() -> Result<ExitCode> {
    let directory = host::workspace()?.join("crates/fingerpost");
    let mut all_passed = true;
    for (program, test) in TESTS {
        let program = programs::test_of("fingerpost", program)?;
        let said = uml::run(&format!(
            "cd {} && {} {test} --nocapture",
            directory.display(),
            program.display()
        ))?;
        let says = |what: &str| said.iter().any(|line| line.contains(what));
        let passed = says("test result: ok. 1 passed") && !says("SKIPPED");
        say(format_args!(
            "{test}: {}",
            if passed { "passed" } else { "failed" }
        ));
        all_passed &= passed;
    }
    Ok(ExitCode::from(u8::from(!all_passed)))
}
