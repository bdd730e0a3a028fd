//! `cargo xtask fuzz`: libFuzzer on the targets of `fuzz/`, with the stable
//! toolchain: its feedback comes from a pass of LLVM that needs no other.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::host::{self, say};

/// What makes a program tell libFuzzer where it has been.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];
/// What a release lacks: a crash is told with the names of its functions.
const NAMES: [&str; 2] = [
    "profile.release.strip=\"none\"",
    "profile.release.debug=\"line-tables-only\"",
];
/// How long one input may take, in seconds, and how much memory, in MiB.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=4096"];

/// Looks for inputs that break a parser or an engine.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which targets of `fuzz/fuzz_targets`; all of them unless said
    targets: Vec<String>,
    /// How long each is run
    #[arg(long, default_value_t = 30)]
    seconds: u32,
}

/// Builds the targets and runs one after the other. New inputs are kept in
/// `target/fuzz/corpus`, those that broke something in
/// `target/fuzz/artifacts`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(&[("cc", "gcc"), ("c++", "g++")])?;
    let workspace = host::workspace()?;
    let known = targets(&workspace)?;
    for asked in &arguments.targets {
        ensure!(
            known.contains(asked),
            "there is no target {asked}; there are {}",
            known.join(", ")
        );
    }
    let chosen = match arguments.targets.as_slice() {
        [] => &known,
        asked => asked,
    };
    let built = build(&workspace)?;
    let mut broken = Vec::new();
    for target in chosen {
        say(format_args!("{target}: {} s", arguments.seconds));
        if !fuzz(&workspace, &built, target, arguments.seconds)? {
            broken.push(target.as_str());
        }
    }
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!(
        "broken: {}; the inputs are in target/fuzz/artifacts",
        broken.join(", ")
    ));
    Ok(ExitCode::FAILURE)
}

/// The names of all targets.
fn targets(workspace: &Path) -> Result<Vec<String>> {
    let directory = workspace.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets and says where their programs are.
fn build(workspace: &Path) -> Result<PathBuf> {
    let target_dir = workspace.join("target/fuzz");
    // Named, so that programs of the build itself go without the flags.
    let tuple = host_tuple()?;
    let status = host::cargo()
        .args(["build", "--release", "--locked", "--target", &tuple])
        .args(["--package", "fingerpost-fuzz"])
        .args(NAMES.iter().flat_map(|setting| ["--config", setting]))
        .arg("--target-dir")
        .arg(&target_dir)
        .env("RUSTFLAGS", COVERAGE.join(" "))
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the fuzz targets do not build");
    }
    Ok(target_dir.join(tuple).join("release"))
}

/// What this machine is to the compiler.
fn host_tuple() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "host-tuple"])
        .output()
        .context("starting rustc")?;
    ensure!(
        output.status.success(),
        "rustc does not say what this machine is"
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs a target; whether nothing broke.
fn fuzz(workspace: &Path, built: &Path, target: &str, seconds: u32) -> Result<bool> {
    let found = workspace.join("target/fuzz/corpus").join(target);
    let artifacts = workspace.join("target/fuzz/artifacts").join(target);
    for directory in [&found, &artifacts] {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let status = Command::new(built.join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(LIMITS)
        .args(["-verbosity=0", "-print_final_stats=1"])
        .arg(&found)
        .arg(workspace.join("fuzz/corpus").join(target))
        .status()
        .with_context(|| format!("starting {target}"))?;
    Ok(status.success())
}
