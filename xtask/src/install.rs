//! `cargo xtask install-libalias`: builds libalias and puts it where C
//! programs find it, under FreeBSD's names.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::host::{self, say};

/// The name by which programs ask for the shared library.
pub const SONAME: &str = "libalias.so.7";
/// What C programs include.
pub const HEADERS: [&str; 2] = ["alias.h", "alias_mod.h"];
/// What a program that links the static library needs beside it.
const SYSTEM_LIBRARIES: &str = "-lgcc_s -lpthread -ldl -lm -lc";

/// Installs libalias.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Below which directory
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// Put in front of every path, for those who make packages
    #[arg(long)]
    destdir: Option<PathBuf>,
}

/// Builds and installs.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = host::workspace()?;
    let status = host::cargo()
        .current_dir(&root)
        .args([
            "build",
            "--profile",
            "dist",
            "--package",
            "fingerpost-libalias",
        ])
        .status()
        .context("starting cargo build")?;
    if !status.success() {
        bail!("libalias does not build");
    }
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    install(arguments, &root, &built.join("dist"))?;
    Ok(ExitCode::SUCCESS)
}

fn install(arguments: &Arguments, root: &Path, built: &Path) -> Result<()> {
    let prefix = match &arguments.destdir {
        Some(destdir) => destdir.join(
            arguments
                .prefix
                .strip_prefix("/")
                .unwrap_or(&arguments.prefix),
        ),
        None => arguments.prefix.clone(),
    };
    let libraries = prefix.join("lib");
    copy(&built.join("libalias.so"), &libraries.join(SONAME))?;
    copy(&built.join("libalias.a"), &libraries.join("libalias.a"))?;
    for header in HEADERS {
        let from = root.join("crates/libalias/include").join(header);
        copy(&from, &prefix.join("include").join(header))?;
    }
    link(SONAME, &libraries.join("libalias.so"))?;
    let described = libraries.join("pkgconfig/libalias.pc");
    write(&described, &pkg_config(&arguments.prefix, "lib"))?;
    say(format_args!("installed below {}", prefix.display()));
    Ok(())
}

/// The description that `pkg-config` reads; `libraries` lie below the
/// prefix.
pub fn pkg_config(prefix: &Path, libraries: &str) -> String {
    format!(
        "prefix={}\n\
         libdir=${{prefix}}/{libraries}\n\
         includedir=${{prefix}}/include\n\n\
         Name: libalias\n\
         Description: network address translation with the interface of FreeBSD's libalias\n\
         Version: {}\n\
         Libs: -L${{libdir}} -lalias\n\
         Libs.private: {SYSTEM_LIBRARIES}\n\
         Cflags: -I${{includedir}}\n",
        prefix.display(),
        env!("CARGO_PKG_VERSION"),
    )
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a path without a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))
}

/// Copies a file. The one that was there goes first: a program that runs
/// with it keeps it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    remove(to)?;
    fs::copy(from, to).with_context(|| format!("copying to {}", to.display()))?;
    Ok(())
}

fn link(target: &str, path: &Path) -> Result<()> {
    make_parent(path)?;
    remove(path)?;
    symlink(target, path).with_context(|| format!("making {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("replacing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_where_c_looks_for_it_also_the_second_time() {
        let directory = tempfile::tempdir().unwrap();
        let (built, destdir) = (directory.path().join("built"), directory.path().join("to"));
        fs::create_dir(&built).unwrap();
        for library in ["libalias.so", "libalias.a"] {
            fs::write(built.join(library), library).unwrap();
        }
        let arguments = Arguments {
            prefix: "/opt/x".into(),
            destdir: Some(destdir.clone()),
        };
        let root = host::workspace().unwrap();
        for _ in 0..2 {
            install(&arguments, &root, &built).unwrap();
        }
        let read = |path: &str| fs::read_to_string(destdir.join("opt/x").join(path)).unwrap();
        assert_eq!(read("lib/libalias.so"), "libalias.so");
        assert_eq!(read("lib/libalias.so.7"), "libalias.so");
        assert_eq!(read("lib/libalias.a"), "libalias.a");
        assert!(read("include/alias.h").contains("LibAliasInit"));
        assert!(read("include/alias_mod.h").contains("LibAliasAttachHandlers"));
        let described = read("lib/pkgconfig/libalias.pc");
        assert!(described.starts_with("prefix=/opt/x\n"), "{described}");
    }
}
