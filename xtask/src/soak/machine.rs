//! Seeds in a machine of its own, which has the kinds of links that a host
//! may lack: VRFs, bonds, VLANs, Geneve and others.
//!
//! The machine is user-mode Linux: Debian's kernel as a process, up in
//! seconds where QEMU without KVM takes longer than anybody waits. The
//! package is taken apart, not installed. Its files are the host's, which it
//! cannot write.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::host::{self, Needed, say};
use crate::lab::vm;

const NEEDED: &[Needed] = &[("dpkg-deb", "dpkg"), ("modprobe", "kmod")];
const PACKAGE: &str = "user-mode-linux";
/// What the machine runs first.
const INIT: &str = include_str!("machine.sh");
const MEMORY: &str = "mem=512M";
/// Without a word for so long it does not work: it is up within a minute on
/// a busy host.
const FIRST_WORD: Duration = Duration::from_secs(180);
/// The end of the longest run.
const WHOLE: Duration = Duration::from_secs(12 * 3_600);
/// The line that says how many seeds passed.
const SUMMARY: &str = "soak: ";

/// Runs this command with these words in a machine; fails when it fails
/// there.
pub(super) fn run(program: &Path, words: &[String]) -> Result<ExitCode> {
    host::install_missing(NEEDED)?;
    let directory = host::target()?.join("uml");
    fs::create_dir_all(&directory)?;
    let root = vm::unpacked(&directory, PACKAGE)?;
    let modules = modules(&directory, &root)?;
    let init = init(&directory, program, &modules, words)?;
    say(format_args!("starting {PACKAGE}"));
    let mut machine = Command::new(root.join("usr/bin/linux.uml"));
    machine
        .args([MEMORY, "rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
        .arg(format!("init={}", init.display()))
        .args(["con=null", "con0=null,fd:1", "panic=-1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let lines = vm::talk(machine, FIRST_WORD, WHOLE)?;
    let lines = lines.context("the machine says nothing")?;
    let summary = lines.iter().find(|line| line.starts_with(SUMMARY));
    let passed = summary.is_some_and(|line| line.contains(" passed, 0 failed"));
    Ok(ExitCode::from(u8::from(!passed)))
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

fn init(directory: &Path, program: &Path, modules: &Path, words: &[String]) -> Result<PathBuf> {
    let this = env::current_exe().context("finding our own program")?;
    let program = fs::canonicalize(program).with_context(|| program.display().to_string())?;
    let text = INIT
        .replace("XTASK", &this.display().to_string())
        .replace("PROGRAM", &program.display().to_string())
        .replace("MODULES", &modules.display().to_string())
        .replace("WORDS", &words.join(" "));
    let file = directory.join("init.sh");
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    Ok(file)
}
