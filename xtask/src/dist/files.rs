//! What lies where in each package.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::install;

/// Where it comes from.
pub struct From<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The release build.
    pub built: &'a Path,
}

/// A shell, the file of its completions, and where they belong.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/fingerpost"),
    ("zsh", "usr/share/zsh/vendor-completions/_fingerpost"),
    (
        "fish",
        "usr/share/fish/vendor_completions.d/fingerpost.fish",
    ),
];

/// What is copied as it is.
const PACKAGING: [(&str, &str); 4] = [
    (
        "fingerpost.service",
        "lib/systemd/system/fingerpost.service",
    ),
    (
        "fingerpost-router.service",
        "lib/systemd/system/fingerpost-router.service",
    ),
    ("sysusers.conf", "usr/lib/sysusers.d/fingerpost.conf"),
    ("fingerpost.toml", "etc/fingerpost/fingerpost.toml"),
];

impl From<'_> {
    /// The program, its man pages and completions, its service.
    pub fn program(&self, tree: &Path) -> Result<()> {
        let program = tree.join("usr/bin/fingerpost");
        copy(&self.built.join("fingerpost"), &program, 0o755)?;
        strip(&program, "--strip-all")?;
        let pages = tree.join("usr/share/man/man1");
        run(Command::new(&program).arg("man").arg(&pages))?;
        let of_files = tree.join("usr/share/man/man5");
        fs::create_dir_all(&of_files)?;
        for page in ["fingerpost.toml.5", "fingerpost-state.5"] {
            fs::rename(pages.join(page), of_files.join(page))?;
        }
        for page in fs::read_dir(&pages)?.chain(fs::read_dir(&of_files)?) {
            compress(&page?.path())?;
        }
        for (shell, path) in COMPLETIONS {
            let text = run(Command::new(&program).args(["completions", shell]))?;
            write(&tree.join(path), &text)?;
        }
        for (file, path) in PACKAGING {
            let from = self.root.join("packaging").join(file);
            copy(&from, &tree.join(path), 0o644)?;
        }
        Ok(())
    }

    /// libalias for programs that were linked with it.
    pub fn library(&self, tree: &Path, triplet: &str) -> Result<()> {
        let library = tree.join("usr/lib").join(triplet).join(install::SONAME);
        copy(&self.built.join("libalias.so"), &library, 0o644)?;
        strip(&library, "--strip-unneeded")
    }

    /// libalias for those who link programs with it.
    pub fn development(&self, tree: &Path, triplet: &str) -> Result<()> {
        let libraries = tree.join("usr/lib").join(triplet);
        let archive = libraries.join("libalias.a");
        copy(&self.built.join("libalias.a"), &archive, 0o644)?;
        strip(&archive, "--strip-debug")?;
        symlink(install::SONAME, libraries.join("libalias.so"))?;
        for header in install::HEADERS {
            let from = self.root.join("crates/libalias/include").join(header);
            copy(&from, &tree.join("usr/include").join(header), 0o644)?;
        }
        let described = install::pkg_config(Path::new("/usr"), &format!("lib/{triplet}"));
        write(
            &libraries.join("pkgconfig/libalias.pc"),
            described.as_bytes(),
        )
    }

    /// Copyright and changelog.
    pub fn documents(&self, tree: &Path, package: &str) -> Result<()> {
        let documents = tree.join("usr/share/doc").join(package);
        let packaging = self.root.join("packaging");
        copy(
            &packaging.join("copyright"),
            &documents.join("copyright"),
            0o644,
        )?;
        let changelog = documents.join("changelog");
        copy(&packaging.join("changelog"), &changelog, 0o644)?;
        compress(&changelog)
    }
}

/// Copies a file, and gives it its mode whatever the umask is.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Writes a file that everybody may read.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    make_parent(path)?;
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a path without a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))
}

fn strip(path: &Path, how: &str) -> Result<()> {
    let sections = ["--remove-section=.comment", "--remove-section=.note"];
    run(Command::new("strip").arg(how).args(sections).arg(path))?;
    Ok(())
}

/// As Debian wants it: the same bytes for the same text.
fn compress(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    run(Command::new("gzip").args(["-9", "-n"]).arg(path))?;
    Ok(())
}

/// Runs a program to its end; gives what it wrote.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {complaint}", command.get_program().display());
    }
    Ok(output.stdout)
}
