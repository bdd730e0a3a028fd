//! A command in a machine of its own, which has the kinds of links that a host
//! may lack (VRFs, bonds, VLANs, Geneve and others), and bridges that filter
//! VLANs. Called by `cargo xtask soak --vm` and `cargo xtask lab vlans`.
//!
//! The machine is user-mode Linux: Debian's kernel as a process, up in
//! seconds where QEMU without KVM takes longer than anybody waits. The
//! package is taken apart, not installed. Its files are the host's, which it
//! cannot write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::host::{self, Needed, say};
use crate::lab::vm;

const NEEDED: &[Needed] = &[
    ("dpkg-deb", "dpkg"),
    ("modprobe", "kmod"),
    ("taskset", "util-linux"),
];
const PACKAGE: &str = "user-mode-linux";
/// What the machine runs first.
const INIT: &str = include_str!("uml.sh");
const MEMORY: &str = "mem=512M";
/// Without a word for so long it does not work: it is up within a minute on
/// a busy host.
const FIRST_WORD: Duration = Duration::from_secs(180);
/// The end of the longest run.
const WHOLE: Duration = Duration::from_secs(12 * 3_600);

/// Runs a shell's line in a machine; the lines that it says there.
pub fn run(line: &str) -> Result<Vec<String>> {
    host::install_missing(NEEDED)?;
    let directory = host::target()?.join("uml");
    fs::create_dir_all(&directory)?;
    let root = ::lab::package::unpacked(&directory, PACKAGE)?;
    let modules = modules(&directory, &root)?;
    let init = init(&directory, &modules, line)?;
    say(format_args!("starting {PACKAGE}"));
    // It has one processor, and hands each system call from one process to
    // another: on one core of the host that takes a fifth of the time.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let core = process::id() as usize % cores;
    let mut machine = Command::new("taskset");
    machine
        .args(["-c", &core.to_string()])
        .arg(root.join("usr/bin/linux.uml"))
        .args([MEMORY, "rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
        .arg(format!("init={}", init.display()))
        .args(["con=null", "con0=null,fd:1", "panic=-1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let lines = vm::talk(machine, FIRST_WORD, WHOLE)?;
    lines.context("the machine says nothing")
}

/// A directory below which the machine's modules are where modprobe looks.
fn modules(directory: &Path, root: &Path) -> Result<PathBuf> {
    let (base, all) = (directory.join("modules"), root.join("usr/lib/uml/modules"));
    ensure!(all.is_dir(), "{PACKAGE} has no {}", all.display());
    let link = base.join("lib/modules");
    if !link.exists() {
        fs::create_dir_all(base.join("lib"))?;
        symlink(&all, &link).with_context(|| link.display().to_string())?;
    }
    Ok(base)
}

fn init(directory: &Path, modules: &Path, line: &str) -> Result<PathBuf> {
    let text = INIT
        .replace("MODULES", &modules.display().to_string())
        .replace("LINE", line);
    let file = directory.join("init.sh");
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    Ok(file)
}
