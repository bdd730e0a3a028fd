//! `cargo xtask miri`: the tests of what handles memory by itself, run by
//! miri, which sees undefined behaviour that no processor shows. Not one of
//! the checks: it wants a nightly toolchain and takes long.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::host::{self, say};

/// What is looked at: packages, and the tests in them (all, unless named).
/// No test of the kernel's, nor any that starts a program: miri has neither.
/// Nor models with thousands of steps where there is no unsafe code (the
/// tables' rows): a quarter of an hour each, and nothing to be found.
const LOOKED_AT: [(&str, &[&str]); 4] = [
    ("fingerpost-memory", &[]),
    (
        "fingerpost-table",
        &["ordered::", "--skip", "hundred_thousand"],
    ),
    ("fingerpost-dataplane", &["buffer::"]),
    ("fingerpost-nat", &["index::"]),
];

/// Looks for undefined behaviour.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The toolchain that has miri
    #[arg(long, default_value = "nightly")]
    toolchain: String,
}

/// Runs all of them, and says which broke.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    check(&arguments.toolchain)?;
    let mut broken = Vec::new();
    for (package, tests) in LOOKED_AT {
        say(format_args!("miri: {package}"));
        let status = miri(&arguments.toolchain)
            .args(["test", "--package", package, "--lib", "--"])
            .args(tests)
            .current_dir(host::workspace()?)
            // Pools are mapped from the system; property tests read no files.
            .env(
                "MIRIFLAGS",
                "-Zmiri-disable-isolation -Zmiri-permissive-provenance",
            )
            .env("PROPTEST_CASES", "4")
            .status()
            .context("starting cargo miri")?;
        if !status.success() {
            broken.push(package);
        }
    }
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("miri: broken in {}", broken.join(", ")));
    Ok(ExitCode::FAILURE)
}

/// Whether the toolchain is there and has miri; what to do if not.
fn check(toolchain: &str) -> Result<()> {
    let output = miri(toolchain)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .context("starting rustup, which chooses the toolchain")?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let first = complaint.lines().next().unwrap_or_default();
        bail!(
            "the toolchain {toolchain} has no miri ({first}): \
             rustup toolchain install {toolchain} --component miri,rust-src"
        );
    }
    Ok(())
}

/// Cargo's miri, of a toolchain.
fn miri(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo", "miri"]);
    // It would be the cargo that runs us.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_without_miri_is_named_with_what_to_do() {
        let error = check("no-such-toolchain").unwrap_err().to_string();
        if host::find("rustup").is_none() {
            assert!(error.contains("rustup"), "{error}");
            return;
        }
        assert!(error.contains("no-such-toolchain has no miri"), "{error}");
        assert!(error.contains("--component miri"), "{error}");
    }

    #[test]
    fn what_is_looked_at_is_there() {
        let crates = host::workspace().unwrap().join("crates");
        for (package, _) in LOOKED_AT {
            let name = package.strip_prefix("fingerpost-").unwrap();
            assert!(crates.join(name).join("src/lib.rs").exists(), "{package}");
        }
    }
}
