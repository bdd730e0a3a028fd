//! Seeds in a virtual machine with Debian's kernel, which has the kinds of
//! links that a host may lack.

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::host;
use crate::lab::vm;

/// What the machine runs first.
const INIT: &str = include_str!("vm.sh");
/// Emulation is slow, and so is a host that does other things.
const WHOLE: Duration = Duration::from_secs(4 * 3_600);
/// The line that says how many seeds passed.
const SUMMARY: &str = "soak: ";

/// Runs this command with these words in a machine; fails when it fails
/// there.
pub(super) fn run(program: &Path, words: &[String]) -> Result<ExitCode> {
    let this = env::current_exe().context("finding our own program")?;
    let find = |name| host::find(name).with_context(|| format!("{name} is not there"));
    let programs = [find("bridge")?, find("nsenter")?];
    let programs = [&this, program, &programs[0], &programs[1]];
    let init = INIT.replace("WORDS", &words.join(" "));
    let (_, lines) = vm::start(&programs, &init, WHOLE)?;
    let summary = lines.iter().find(|line| line.starts_with(SUMMARY));
    let passed = summary.is_some_and(|line| line.contains(" passed, 0 failed"));
    Ok(ExitCode::from(u8::from(!passed)))
}
