//! `cargo xtask soak --router`: a router at XDP beside a twin that the kernel
//! alone forwards, both changed at random under traffic. The tests of
//! `fingerpost router` do it (`crates/fingerpost/tests/router/twin.rs`), here
//! for as long as is wanted, and in user-mode Linux with its bonds and VLANs.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::Arguments;
use crate::host;
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
    let mut tests = built()?;
    let variables = [
        (
            "FINGERPOST_TWIN_SECONDS",
            arguments.seconds.unwrap_or(USUAL_SECONDS),
        ),
        ("FINGERPOST_TWIN_SEED", arguments.from),
    ];
    if arguments.vm {
        return in_machine(&tests, &variables);
    }
    tests.args(["--nocapture", CAMPAIGN]);
    tests.envs(variables.map(|(name, value)| (name, value.to_string())));
    let status = tests.status().context("starting the router's tests")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// The same in the machine, whose kernel does not tell VLAN tags, with what a
/// bond is for beside it.
fn in_machine(tests: &Command, variables: &[(&str, u64)]) -> Result<ExitCode> {
    let directory = tests.get_current_dir().unwrap_or(Path::new("/"));
    let mut line = format!("cd {} && FINGERPOST_TWIN_OLD=1", directory.display());
    for (name, value) in variables {
        line.push_str(&format!(" {name}={value}"));
    }
    let program = Path::new(tests.get_program()).display();
    line.push_str(&format!(
        " {program} --nocapture --test-threads=1 {CAMPAIGN} {OF_MACHINE}"
    ));
    let said = uml::run(&line)?;
    let says = |what: &str| said.iter().any(|line| line.contains(what));
    let passed = says("test result: ok. 2 passed") && !says("SKIPPED");
    Ok(ExitCode::from(u8::from(!passed)))
}

/// The tests of the router, built.
fn built() -> Result<Command> {
    let mut cargo = host::cargo();
    cargo.args(["test", "--no-run", "-p", "fingerpost", "--test", "router"]);
    let built = programs::build(cargo, "the router's tests")?;
    Ok(built.first().context("cargo built no test")?.command())
}
