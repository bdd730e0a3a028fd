//! The peers that are libraries: small C programs of `benches/peers/`,
//! built here and linked to Debian's packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::host::{self, Needed};

/// What building them takes.
pub const NEEDED: &[Needed] = &[("cc", "gcc"), ("pkg-config", "pkgconf")];

/// Installs a library's package unless pkg-config finds the library.
pub fn install_library(library: &str, package: &'static str) -> Result<()> {
    host::install_missing(NEEDED)?;
    if flags(library, "--exists").is_ok() {
        return Ok(());
    }
    host::install_package(package)
}

/// Builds `benches/peers/NAME.c` against libraries that pkg-config knows;
/// the program.
pub fn build(name: &str, libraries: &[&str]) -> Result<PathBuf> {
    let source = host::workspace()?.join(format!("benches/peers/{name}.c"));
    let directory = host::target()?.join("peers");
    fs::create_dir_all(&directory)?;
    let program = directory.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O3", "-march=native", "-Wall", "-pthread"]);
    for library in libraries {
        compiler.args(flags(library, "--cflags")?);
    }
    compiler.arg("-o").arg(&program).arg(&source);
    for library in libraries {
        compiler.args(flags(library, "--libs")?);
    }
    let status = compiler.status().context("starting cc")?;
    if !status.success() {
        bail!("{} does not compile", Path::display(&source));
    }
    Ok(program)
}

fn flags(library: &str, which: &str) -> Result<Vec<OsString>> {
    let output = Command::new("pkg-config")
        .args([which, library])
        .output()
        .context("starting pkg-config")?;
    if !output.status.success() {
        bail!("pkg-config knows no {library}");
    }
    let flags = String::from_utf8(output.stdout).context("pkg-config's flags")?;
    Ok(flags.split_whitespace().map(OsString::from).collect())
}
