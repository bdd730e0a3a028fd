//! A Debian package that is not installed, but lies below a directory: for
//! kernels and peers whose installation would change the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A package, fetched by apt and taken apart below a directory; once.
pub fn unpacked(directory: &Path, package: &str) -> Result<PathBuf> {
    let root = directory.join(package);
    if root.exists() {
        return Ok(root);
    }
    // Another may be at it: each has its own place, and the first is right.
    let own = directory.join(format!("{package}.{}", std::process::id()));
    let fetched = own.join("fetched");
    fs::create_dir_all(&fetched).with_context(|| format!("making {}", fetched.display()))?;
    let mut download = Command::new("apt-get");
    download.args(["download", package]).current_dir(&fetched);
    if done(&mut download).is_err() {
        done(Command::new("apt-get").arg("update"))?;
        done(&mut download)?;
    }
    let archive = fs::read_dir(&fetched)?
        .next()
        .context("apt-get download gave no file")??
        .path();
    let whole = own.join("whole");
    done(Command::new("dpkg-deb").arg("-x").args([&archive, &whole]))?;
    let renamed = fs::rename(&whole, &root);
    fs::remove_dir_all(&own).with_context(|| format!("removing {}", own.display()))?;
    match renamed {
        Err(_) if root.exists() => Ok(root),
        renamed => renamed
            .map(|()| root)
            .with_context(|| format!("putting {package} into its place")),
    }
}

fn done(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{shown}: {}", why.trim());
    }
    Ok(())
}
