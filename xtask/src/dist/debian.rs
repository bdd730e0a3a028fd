//! A tree of files as a Debian package: its control file, checksums,
//! scripts, and the archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::files::{copy, run, write};
use crate::install;

/// Of all packages.
const MAINTAINER: &str = "Fingerpost authors <fingerpost@users.noreply.github.com>";
const HOMEPAGE: &str = "https://github.com/fingerpost/fingerpost";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A package, but for its files.
pub struct Package<'a> {
    /// Its name.
    pub name: &'static str,
    /// Debian's section.
    pub section: &'static str,
    /// One line.
    pub summary: &'static str,
    /// A paragraph, line by line.
    pub description: &'a [&'static str],
    /// What it needs beside the libraries that are found out.
    pub depends: &'static str,
    /// `Multi-Arch`.
    pub multi_arch: Option<&'static str>,
    /// Files of the administrator.
    pub conffiles: &'a [&'static str],
    /// Scripts of `packaging/` that dpkg runs.
    pub scripts: &'a [&'static str],
}

impl Package<'_> {
    /// Makes the archive of a tree; gives its path.
    pub fn build(
        &self,
        root: &Path,
        tree: &Path,
        out: &Path,
        compression: &str,
    ) -> Result<PathBuf> {
        let control = tree.join("DEBIAN");
        fs::create_dir_all(&control)?;
        let architecture = architecture()?;
        let text = self.control(tree, &architecture)?;
        write(&control.join("control"), text.as_bytes())?;
        if !self.conffiles.is_empty() {
            let list = self.conffiles.join("\n") + "\n";
            write(&control.join("conffiles"), list.as_bytes())?;
        }
        for script in self.scripts {
            let from = root.join("packaging").join(script);
            copy(&from, &control.join(script), 0o755)?;
        }
        if self.section == "libs" {
            let known = install::SONAME.split_once(".so.");
            let (library, number) = known.context("a soname without a number")?;
            let shlibs = format!("{library} {number} {} (>= {VERSION})\n", self.name);
            write(&control.join("shlibs"), shlibs.as_bytes())?;
            write(&control.join("triggers"), b"activate-noawait ldconfig\n")?;
        }
        write(&control.join("md5sums"), &md5sums(tree)?)?;
        readable(tree)?;
        let package = out.join(format!("{}_{VERSION}_{architecture}.deb", self.name));
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "--build"])
            .arg(format!("-Z{compression}"))
            .arg(tree)
            .arg(&package)
            .env("SOURCE_DATE_EPOCH", epoch(root)?);
        run(&mut pack)?;
        Ok(package)
    }

    fn control(&self, tree: &Path, architecture: &str) -> Result<String> {
        let found = libraries(tree)?;
        let depends: Vec<&str> = [found.as_str(), self.depends]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let mut text = format!(
            "Package: {}\nSource: fingerpost\nVersion: {VERSION}\nArchitecture: {architecture}\n\
             Maintainer: {MAINTAINER}\nInstalled-Size: {}\n",
            self.name,
            kibibytes(tree)?
        );
        if !depends.is_empty() {
            text += &format!("Depends: {}\n", depends.join(", "));
        }
        if let Some(multi_arch) = self.multi_arch {
            text += &format!("Multi-Arch: {multi_arch}\n");
        }
        text += &format!(
            "Section: {}\nPriority: optional\nHomepage: {HOMEPAGE}\nDescription: {}\n {}\n",
            self.section,
            self.summary,
            self.description.join("\n ")
        );
        if self.name == "fingerpost" {
            // Debian's own tool for it is of no use where it is not there.
            text = text.replace("Section:", "Recommends: systemd\nSection:");
        }
        Ok(text)
    }
}

/// The packages of the shared libraries that a tree's programs need.
fn libraries(tree: &Path) -> Result<String> {
    let mut programs = Vec::new();
    for path in files(tree)? {
        // A link may lead into another package.
        let is_link = fs::symlink_metadata(&path)?.is_symlink();
        if !is_link && fs::read(&path)?.starts_with(b"\x7fELF") {
            programs.push(path);
        }
    }
    if programs.is_empty() {
        return Ok(String::new());
    }
    // It wants to stand in a source package.
    let place = tempfile::tempdir()?;
    fs::create_dir(place.path().join("debian"))?;
    fs::write(
        place.path().join("debian/control"),
        "Source: fingerpost\n\nPackage: fingerpost\nArchitecture: any\n",
    )?;
    let mut asked = Command::new("dpkg-shlibdeps");
    asked.current_dir(place.path()).arg("-O").args(&programs);
    let said = String::from_utf8(run(&mut asked)?)?;
    let found = said
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(found.unwrap_or_default().to_owned())
}

/// Everything in a tree that is no directory, in order, without dpkg's own.
fn files(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![tree.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                found.push(entry.path());
            } else if entry.file_name() != "DEBIAN" {
                directories.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn md5sums(tree: &Path) -> Result<Vec<u8>> {
    let mut names = Vec::new();
    for path in files(tree)? {
        if !fs::symlink_metadata(&path)?.is_symlink() {
            names.push(path.strip_prefix(tree)?.to_path_buf());
        }
    }
    run(Command::new("md5sum").current_dir(tree).args(names))
}

fn kibibytes(tree: &Path) -> Result<u64> {
    let mut sum = 0;
    for path in files(tree)? {
        sum += fs::symlink_metadata(&path)?.len().div_ceil(1024);
    }
    Ok(sum)
}

/// Directories are made with the umask of whoever packs.
fn readable(tree: &Path) -> Result<()> {
    let mut directories = vec![tree.to_path_buf()];
    while let Some(directory) = directories.pop() {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
}

/// The time of the newest entry of the changelog, so that the same tree
/// makes the same package.
fn epoch(root: &Path) -> Result<String> {
    let mut asked = Command::new("dpkg-parsechangelog");
    asked
        .args(["-S", "Timestamp", "-l"])
        .arg(root.join("packaging/changelog"));
    Ok(String::from_utf8(run(&mut asked)?)?.trim().to_owned())
}

fn architecture() -> Result<String> {
    let said = run(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(String::from_utf8(said)?.trim().to_owned())
}

/// Where libraries of this architecture lie.
pub fn triplet() -> Result<String> {
    let said = run(Command::new("dpkg-architecture").args(["-q", "DEB_HOST_MULTIARCH"]))?;
    Ok(String::from_utf8(said)?.trim().to_owned())
}
