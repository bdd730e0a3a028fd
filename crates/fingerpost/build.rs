//! What the linker leaves out of a release (decision 098). A release ends
//! with a panic (`panic = "abort"`), and nobody unwinds its stack.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Tables for unwinding go.
const SCRIPT: &str = "\
SECTIONS {
  /DISCARD/ : { *(.eh_frame) *(.gcc_except_table) *(.gcc_except_table.*) }
} INSERT AFTER .text;
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut cargo = io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    if !is_release()? || !has_rusts_linker()? {
        return Ok(());
    }
    let script = PathBuf::from(env::var("OUT_DIR")?).join("without-unwinding.ld");
    fs::write(&script, SCRIPT)?;
    writeln!(cargo, "cargo::rustc-link-arg-bins={}", script.display())?;
    // Functions that are the same are there once.
    for argument in ["--no-eh-frame-hdr", "--icf=all"] {
        writeln!(cargo, "cargo::rustc-link-arg-bins=-Wl,{argument}")?;
    }
    Ok(())
}

/// What is debugged, a package too, keeps them: debuggers go by them.
fn is_release() -> Result<bool, env::VarError> {
    Ok(env::var("PROFILE")? == "release" && env::var("DEBUG")? == "false")
}

/// These are the words of the linker that comes with Rust, which is used
/// where nobody says another.
fn has_rusts_linker() -> Result<bool, env::VarError> {
    let is_said = |name: &str, word: &str| env::var(name).is_ok_and(|said| said.contains(word));
    let is_other = env::var_os("RUSTC_LINKER").is_some()
        || is_said("CARGO_ENCODED_RUSTFLAGS", "link")
        || is_said("CARGO_ENCODED_RUSTFLAGS", "panic");
    Ok(env::var("TARGET")? == "x86_64-unknown-linux-gnu" && !is_other)
}
