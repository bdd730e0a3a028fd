//! The program without the checks of a development build: no assertions of
//! such a build, no look for overflows, and a command line that is not
//! checked before it is parsed. That is how a release differs in what it
//! does; how fast it does it is the benchmarks' affair. Called by `test`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::programs::Program;
use crate::host;

/// Libraries whose checks tell of our mistakes; all others are taken as the
/// tests' own build has them, so that they are built once.
const CHECKING: [&str; 4] = ["clap", "clap_builder", "clap_complete", "clap_mangen"];

/// Tests that find nothing in such a build that others do not. An input that
/// passes with checks passes without them, unless it meets the command line
/// or what only a development build has; so whatever looks beyond that once
/// more is left out: at what is outside the program (a browser, a terminal,
/// other programs' traffic, routing daemons, managers, the kernel's own
/// program), at how long or how large something gets, or at the same few
/// commands with many words (`ip`'s and net-tools' are no part of the command
/// line's definition). Three quarters of what the round took was these.
const FOUND_ALREADY: [&str; 14] = [
    "feed",
    "foreign",
    "foreign_daemon",
    "forward",
    "ip",
    "page",
    "recordings",
    "router",
    "send",
    "siege",
    "size",
    "snmp",
    "soak",
    "top",
];

/// Whether a test program starts the program.
pub fn starts_it(program: &Program) -> bool {
    program.is_outside && program.package == STARTS_IT
}

/// Whether a test program may find something new.
pub fn differs(program: &Program) -> bool {
    !FOUND_ALREADY.contains(&program.target.as_str())
}

/// The package whose tests start the program.
const STARTS_IT: &str = "fingerpost";

/// Builds the program so, and gives where it lies: beside the tests' own,
/// which comes back with the next build. As a part of the workspace: alone it
/// would ask other features of others' crates, and have them built again.
pub fn build() -> Result<PathBuf> {
    let mut cargo = host::cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bin", "fingerpost"]);
    for setting in settings() {
        cargo.args(["--config", &setting]);
    }
    if !cargo.status().context("starting cargo")?.success() {
        bail!("the program does not build without checks");
    }
    let target = host::target()?;
    let directory = target.join("unchecked");
    let program = directory.join("fingerpost");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    fs::copy(target.join("debug/fingerpost"), &program)
        .with_context(|| format!("copying the program to {}", program.display()))?;
    Ok(program)
}

fn settings() -> Vec<String> {
    let checks = |of: &str, are: bool| {
        ["debug-assertions", "overflow-checks"].map(|name| format!("profile.dev{of}.{name}={are}"))
    };
    let mut settings = Vec::from(checks("", false));
    settings.extend(checks(".package.\"*\"", true));
    for name in CHECKING {
        settings.extend(checks(&format!(".package.{name}"), false));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_s_crates_and_the_command_line_go_without_checks() {
        let settings = settings();
        for expected in [
            "profile.dev.overflow-checks=false",
            "profile.dev.package.\"*\".debug-assertions=true",
            "profile.dev.package.clap_builder.debug-assertions=false",
        ] {
            assert!(settings.iter().any(|one| one == expected), "{expected}");
        }
    }

    #[test]
    fn what_is_left_out_is_there() {
        let tests = host::workspace().unwrap().join("crates/fingerpost/tests");
        for name in FOUND_ALREADY {
            let is_there = tests.join(name).is_dir() || tests.join(format!("{name}.rs")).exists();
            assert!(is_there, "{name}");
        }
    }
}
