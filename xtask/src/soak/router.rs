//! `cargo xtask soak --router`: a router at XDP beside a twin that the kernel
//! alone forwards, both changed at random under traffic. The tests of
//! `fingerpost router` do it (`crates/fingerpost/tests/router/twin.rs`), here
//! for as long as is wanted, and in user-mode Linux with its bonds and VLANs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use super::Arguments;
use crate::host::{self, say};
use crate::test::programs;
use crate::uml;

/// How long, unless said.
const USUAL_SECONDS: u64 = 1_800;
/// The campaign; and what only a machine of its own can do.
const CAMPAIGN: &str = "what_leaves_is";
const OF_MACHINE: &str = "what_is_behind_a_bond";

/// Does it; fails where something left otherwise.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    let tests = programs::test_of("fingerpost", "router")?;
    let directory = host::workspace()?.join("crates/fingerpost");
    let seconds = arguments.seconds.unwrap_or(USUAL_SECONDS);
    let variables = [
        ("FINGERPOST_TWIN_SECONDS", seconds),
        ("FINGERPOST_TWIN_SEED", arguments.from),
    ];
    if arguments.vm {
        return in_machine(&tests, &directory, &variables);
    }
    let mut campaign = Command::new(&tests)
        .current_dir(directory)
        .args(["--nocapture", CAMPAIGN])
        .envs(variables.map(|(name, value)| (name, value.to_string())))
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the router's tests")?;
    let said = campaign.stdout.take().context("what the tests say")?;
    let mut lines = Vec::new();
    for line in BufReader::new(said).lines() {
        let line = line?;
        say(&line);
        lines.push(line);
    }
    let passed = campaign.wait()?.success() && has_passed(&lines, 1);
    Ok(ExitCode::from(u8::from(!passed)))
}

/// Whether so many tests ran and passed, none of them skipped.
fn has_passed(said: &[String], tests: usize) -> bool {
    let says = |what: &str| said.iter().any(|line| line.contains(what));
    says(&format!("test result: ok. {tests} passed")) && !says("SKIPPED")
}

/// The same in the machine, whose kernel does not tell VLAN tags, with what a
/// bond is for beside it.
fn in_machine(tests: &Path, directory: &Path, variables: &[(&str, u64)]) -> Result<ExitCode> {
    let mut line = format!("cd {} && FINGERPOST_TWIN_OLD=1", directory.display());
    for (name, value) in variables {
        line.push_str(&format!(" {name}={value}"));
    }
    line.push_str(&format!(
        " {} --nocapture --test-threads=1 {CAMPAIGN} {OF_MACHINE}",
        tests.display()
    ));
    let said = uml::run(&line)?;
    Ok(ExitCode::from(u8::from(!has_passed(&said, 2))))
}
