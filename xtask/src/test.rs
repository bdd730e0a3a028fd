//! `cargo xtask test`: all tests of the workspace on a fresh machine, as
//! root or as an ordinary user, with one line of counts at the end.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::host::{self, say};

/// The package whose shared structures are modelled with loom. (`fib` has a
/// model as well, run by hand: it takes minutes to build apart.)
const MODELLED: &str = "fingerpost-memory";

/// Runs the tests.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only the tests of these packages
    #[arg(short, long)]
    package: Vec<String>,
    /// Only those that start the program, and on this build of it
    #[arg(long, value_name = "FILE", value_parser = whole, conflicts_with = "package")]
    program: Option<PathBuf>,
    /// Handed to the test programs (the models are left out then)
    #[arg(last = true)]
    rest: Vec<String>,
}

/// What came of the tests.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Installs what is missing, builds, goes to namespaces of its own where
/// the user may not make them here, and tests.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(host::FOR_TESTS)?;
    // Built out here: namespaces of our own have no network to fetch by.
    let built = arguments.cargo().arg("--no-run").status();
    if !built.context("starting cargo")?.success() {
        bail!("the tests do not build");
    }
    if arguments.has_models() {
        let built = models().arg("--no-run").status();
        if !built.context("starting cargo for the models")?.success() {
            bail!("the models do not build");
        }
    }
    if !host::may_make_namespaces() {
        if host::has_own_namespaces() {
            say("running as an ordinary user, in namespaces of our own");
            host::enter_own_namespaces()?;
        }
        say("this system gives us no network namespaces: tests that need one are skipped");
    }
    ::lab::sweep();
    ::lab::put_back_leftovers()?;
    let skipped = env::temp_dir().join(format!("fingerpost-skipped-{}", std::process::id()));
    let counts = test(arguments, &skipped);
    let _ = fs::remove_file(&skipped);
    ::lab::sweep();
    ::lab::put_back_leftovers()?;
    let counts = counts?;
    let Counts {
        passed,
        failed,
        skipped,
    } = counts;
    say(format_args!(
        "{passed} passed, {failed} failed, {skipped} skipped"
    ));
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The tests do not run where they are called from.
fn whole(path: &str) -> std::io::Result<PathBuf> {
    fs::canonicalize(path)
}

impl Arguments {
    /// Whether the models are among what is asked for.
    fn has_models(&self) -> bool {
        let is_asked = self.package.is_empty() || self.package.iter().any(|name| name == MODELLED);
        is_asked && self.rest.is_empty() && self.program.is_none()
    }

    fn cargo(&self) -> std::process::Command {
        let mut cargo = host::cargo();
        cargo.args(["test", "--no-fail-fast"]);
        if let Some(program) = &self.program {
            cargo.args(["--package", "fingerpost", "--test", "*"]);
            cargo.env(::lab::program::VARIABLE, program);
        } else if self.package.is_empty() {
            cargo.arg("--workspace");
        }
        for package in &self.package {
            cargo.args(["--package", package]);
        }
        cargo
    }
}

/// The test program of the models, built apart: with loom's atomics in place
/// of the real ones.
fn models() -> std::process::Command {
    let mut cargo = host::cargo();
    cargo
        .args(["test", "--package", MODELLED, "--lib"])
        .env("RUSTFLAGS", "--cfg loom");
    cargo
}

fn test(arguments: &Arguments, skipped: &Path) -> Result<Counts> {
    let mut cargo = arguments
        .cargo()
        .arg("--")
        .args(&arguments.rest)
        .env(::lab::skip::FILE_VARIABLE, skipped)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let output = cargo.stdout.take().context("cargo test has no output")?;
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("reading from cargo test")?;
        counts.add(&line);
        say(line);
    }
    let status = cargo.wait().context("waiting for cargo test")?;
    if !status.success() && counts.failed == 0 {
        // A test program that died before it could count.
        counts.failed = 1;
    }
    let reasons = fs::read_to_string(skipped).unwrap_or_default();
    counts.set_apart(&reasons);
    if arguments.has_models() {
        counts.add_models()?;
    }
    Ok(counts)
}

impl Counts {
    /// Runs the models of what threads share, in all interleavings.
    fn add_models(&mut self) -> Result<()> {
        let output = models()
            .args(["--", "models"])
            .stderr(Stdio::inherit())
            .output()
            .context("starting cargo test for the models")?;
        let before = self.failed;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            self.add(line);
            say(line);
        }
        if !output.status.success() && self.failed == before {
            self.failed += 1;
        }
        Ok(())
    }

    /// Adds up a line such as
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let (_, numbers) = result.split_once(". ").unwrap_or_default();
        for part in numbers.split("; ") {
            let (number, what) = part.split_once(' ').unwrap_or_default();
            let number: usize = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => (),
            }
        }
    }

    /// Moves the tests that said they were skipped from the passed, and
    /// lists them by reason.
    fn set_apart(&mut self, lines: &str) {
        let mut tests: BTreeMap<&str, &str> = BTreeMap::new();
        for line in lines.lines() {
            let (test, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
            tests.entry(test).or_insert(reason);
        }
        for (test, reason) in &tests {
            say(format_args!("SKIPPED {test}: {reason}"));
        }
        self.passed = self.passed.saturating_sub(tests.len());
        self.skipped += tests.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_the_skipped_are_not_passed() {
        let mut counts = Counts::default();
        counts.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        counts
            .add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out");
        counts.add("test something ... ok");
        assert_eq!(
            counts,
            Counts {
                passed: 5,
                failed: 1,
                skipped: 1
            }
        );
        // One test may give several reasons; it is one test.
        counts.set_apart("a::b\tno root\na::b\tno namespace\nc\tno root\n");
        assert_eq!(
            counts,
            Counts {
                passed: 3,
                failed: 1,
                skipped: 3
            }
        );
    }
}
