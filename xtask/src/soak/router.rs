//! `cargo xtask soak --router`: a router at XDP beside a twin that the kernel
//! alone forwards, both changed at random under traffic. The tests of
//! `fingerpost router` do it (`crates/fingerpost/tests/router/twin.rs`), here
//! for as long as is wanted, and in the machine with its bonds and VLANs.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::{Arguments, in_machine};
use crate::host::{self, say};
use crate::test::programs;

/// How long, unless said.
const USUAL_SECONDS: u64 = 1_800;
/// The campaign; and what only a machine of its own can do.
const CAMPAIGN: &str = "what_leaves_is";
const OF_MACHINE: &str = "what_is_behind_a_bond";

/// Does it; fails where something left otherwise.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let seconds = arguments.seconds.unwrap_or(USUAL_SECONDS);
    let is_inside = arguments.tests.is_some();
    let tests = match &arguments.tests {
        Some(tests) => tests.clone(),
        None => programs::test_of("fingerpost", "router")?,
    };
    if arguments.vm {
        let words = format!(
            "--router --from {} --seconds {seconds} --tests {}",
            arguments.from,
            tests.display()
        );
        return in_machine(Path::new("/bin/true"), &[words]);
    }
    let mut command = Command::new(&tests);
    command
        .args(["--nocapture", "--test-threads=1", CAMPAIGN])
        .env("FINGERPOST_TWIN_SECONDS", seconds.to_string())
        .env("FINGERPOST_TWIN_SEED", arguments.from.to_string());
    if is_inside {
        // Its kernel does not tell VLAN tags.
        command.arg(OF_MACHINE).env("FINGERPOST_TWIN_OLD", "1");
    }
    let status = command
        .status()
        .with_context(|| tests.display().to_string())?;
    let [passed, failed] = [status.success(), !status.success()].map(u8::from);
    say(format_args!("soak: {passed} passed, {failed} failed"));
    Ok(ExitCode::from(failed))
}
