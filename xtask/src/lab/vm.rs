//! `cargo xtask lab vm`: Debian's own kernel in a virtual machine, which
//! has the kinds of links that a host may lack: every kind made, listed and
//! deleted end to end, and VLANs timed.
//!
//! The kernel is a Debian package that is taken apart, not installed; the
//! machine's whole disk is an archive in memory (busybox, `ip`,
//! `fingerpost`, modules). KVM where it works, emulation otherwise. What
//! came of the last run is in `docs/vm.md`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::host::{self, Needed, say};

const NEEDED: &[Needed] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox"),
    ("cpio", "cpio"),
    ("dpkg-deb", "dpkg"),
    ("ldd", "libc-bin"),
    ("ip", "iproute2"),
];

/// Depends on the kernel that Debian has now.
const KERNEL: &str = "linux-image-cloud-amd64";
/// What the machine runs first.
const INIT: &str = include_str!("vm.sh");
/// Modules that no kind of link needs; the drivers of hardware are most of
/// a kernel.
const WITHOUT: &[&str] = &["ethernet", "wireless", "usb", "wwan", "can"];
/// Where the modules are that some kind needs.
const MODULES: &[&str] = &["net", "lib", "crypto", "arch", "drivers/net"];

/// A machine that has said nothing for so long does not work; with KVM it
/// speaks within seconds, emulated within minutes.
const FIRST_WORD: [(&str, Duration); 2] = [
    ("kvm", Duration::from_secs(60)),
    ("tcg", Duration::from_secs(600)),
];
/// How long a machine may take to end by itself.
const TO_END: Duration = Duration::from_secs(10);
/// Emulation is slow, and so is a host that does other things.
const WHOLE: Duration = Duration::from_secs(40 * 60);

/// Starts the machine and judges what it says.
pub fn run() -> Result<ExitCode> {
    host::install_missing(NEEDED)?;
    let fingerpost = build()?;
    let (accelerator, lines) = start(&fingerpost)?;
    judge(accelerator, &lines)
}

/// Starts a machine that has the program; gives what it runs on and the
/// lines that it says.
fn start(program: &Path) -> Result<(&'static str, Vec<String>)> {
    let directory = host::target()?.join("vm");
    fs::create_dir_all(&directory)?;
    let kernel = kernel(&directory)?;
    let archive = archive(&directory, &kernel, program)?;
    let mut accelerators = vec!["tcg"];
    if fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok()
    {
        accelerators.insert(0, "kvm");
    }
    for accelerator in accelerators {
        say(format_args!(
            "starting {} with {accelerator}",
            kernel.version
        ));
        match machine(&kernel, &archive, accelerator)? {
            Some(lines) => return Ok((accelerator, lines)),
            None => say(format_args!("it does not start with {accelerator}")),
        }
    }
    bail!("the virtual machine does not start")
}

/// The program, built for the machine.
fn build() -> Result<PathBuf> {
    let status = host::cargo()
        .current_dir(host::workspace()?)
        .args(["build", "--quiet", "--package=fingerpost"])
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the build failed");
    }
    Ok(host::target()?.join("debug/fingerpost"))
}

/// A kernel that was taken apart.
struct Kernel {
    version: String,
    image: PathBuf,
    modules: PathBuf,
}

/// Debian's kernel: fetched by apt, taken apart below the target directory.
fn kernel(directory: &Path) -> Result<Kernel> {
    let depends = output(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let package = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|package| package.starts_with("linux-image-"))
        .context("apt knows no kernel package; `apt-get update` may help")?;
    let version = package.trim_start_matches("linux-image-").to_owned();
    if !directory.join(package).exists() {
        say(format_args!("fetching {package}"));
    }
    let root = ::lab::package::unpacked(directory, package)?;
    Ok(Kernel {
        image: root.join("boot").join(format!("vmlinuz-{version}")),
        modules: root.join("lib/modules").join(&version),
        version,
    })
}

/// The machine's disk: an archive of what it needs.
fn archive(directory: &Path, kernel: &Kernel, program: &Path) -> Result<PathBuf> {
    let root = directory.join("root");
    let _ = fs::remove_dir_all(&root);
    for made in ["bin", "sbin", "applets", "proc", "sys", "dev", "run", "tmp"] {
        fs::create_dir_all(root.join(made))?;
    }
    let find = |program| host::find(program).with_context(|| format!("{program} is not there"));
    for program in [&find("busybox")?, &find("ip")?, program] {
        copy_program(&root, program)?;
    }
    for name in ["bin/sh", "sbin/modprobe"] {
        std::os::unix::fs::symlink("/bin/busybox", root.join(name))?;
    }
    fs::write(root.join("init"), INIT)?;
    output(Command::new("chmod").arg("755").arg(root.join("init")))?;
    let modules = root.join("lib/modules").join(&kernel.version);
    copy_modules(&kernel.modules, &modules)?;
    let busybox = find("busybox")?;
    output(
        Command::new(busybox)
            .arg("depmod")
            .arg("-b")
            .arg(&root)
            .arg(&kernel.version),
    )?;
    let archive = directory.join("disk.cpio");
    let pack = "find . | cpio --quiet -o -H newc";
    let file = fs::File::create(&archive)?;
    let status = Command::new("sh")
        .args(["-c", pack])
        .current_dir(&root)
        .stdout(file)
        .status()
        .context("starting cpio")?;
    if !status.success() {
        bail!("cpio failed");
    }
    Ok(archive)
}

/// A program and the libraries it is linked with, which keep their places.
fn copy_program(root: &Path, program: &Path) -> Result<()> {
    let name = program.file_name().context("a program without a name")?;
    let copied = root.join("bin").join(name);
    fs::copy(program, copied).with_context(|| program.display().to_string())?;
    // A static program has none, and ldd says so by failing.
    let Ok(listed) = output(Command::new("ldd").arg(program)) else {
        return Ok(());
    };
    for library in listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let place = root.join(library.trim_start_matches('/'));
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(library, &place).with_context(|| library.to_owned())?;
    }
    Ok(())
}

fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for list in [
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ] {
        fs::copy(from.join(list), to.join(list)).with_context(|| list.to_owned())?;
    }
    for part in MODULES {
        let part = Path::new("kernel").join(part);
        copy_tree(&from.join(&part), &to.join(&part))?;
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        let unneeded = WITHOUT.iter().any(|unneeded| name == *unneeded);
        if entry.file_type()?.is_dir() {
            if !unneeded {
                copy_tree(&entry.path(), &to.join(&name))?;
            }
        } else {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}

/// What the machine said; `None`: it does not start this way.
fn machine(kernel: &Kernel, archive: &Path, accelerator: &str) -> Result<Option<Vec<String>>> {
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args([
            "-M",
            "pc",
            "-m",
            "1024",
            "-nographic",
            "-no-reboot",
            "-nic",
            "none",
        ])
        .args(["-accel", accelerator])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(archive)
        .args(["-append", "console=ttyS0 panic=-1 quiet no_timer_check"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let first = FIRST_WORD.iter().find(|(name, _)| *name == accelerator);
    let first = first.map_or(WHOLE, |(_, patience)| *patience);
    talk(command, first, WHOLE)
}

/// Runs a machine, and says the lines that it says with an `@` before, until
/// the line `end`; `None`: it said nothing within `first`.
pub fn talk(mut machine: Command, first: Duration, whole: Duration) -> Result<Option<Vec<String>>> {
    let mut child = machine
        .spawn()
        .with_context(|| format!("starting {machine:?}"))?;
    let heard = listen(&mut child)?;
    let lines = hear(&heard, first, whole);
    // It may have ended by itself, and should.
    let ends = Instant::now() + TO_END;
    while child.try_wait()?.is_none() && Instant::now() < ends {
        thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    child.wait().context("waiting for the machine")?;
    Ok(lines)
}

/// Its lines, from a thread that ends when they do.
fn listen(child: &mut Child) -> Result<Receiver<String>> {
    let output = child.stdout.take().context("no output")?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // The console writes what it likes before the first line.
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}

fn hear(heard: &Receiver<String>, first: Duration, whole: Duration) -> Option<Vec<String>> {
    let began = Instant::now();
    let mut lines = Vec::new();
    loop {
        let patience = if lines.is_empty() { first } else { whole };
        let left = patience.saturating_sub(began.elapsed());
        match heard.recv_timeout(left) {
            Ok(line) => {
                let Some(told) = line.strip_prefix('@') else {
                    continue;
                };
                say(told);
                if told == "end" {
                    return Some(lines);
                }
                lines.push(told.to_owned());
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                if lines.is_empty() {
                    return None;
                }
                lines.push("FAILED the machine: it ended, or was too slow, before the end".into());
                return Some(lines);
            }
        }
    }
}

/// Counts, and writes the result down.
fn judge(accelerator: &str, lines: &[String]) -> Result<ExitCode> {
    let of = |what: &str| {
        let found = lines.iter().filter_map(|line| line.strip_prefix(what));
        found.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let (passed, failed, times) = (of("ok "), of("FAILED "), of("time "));
    let date = output(Command::new("date").arg("+%F"))?;
    let mut text = format!(
        "# Links of every kind, end to end\n\n`cargo xtask lab vm`, {}: kernel {}, {}, {accelerator}. \
         {} of {} kinds made, listed and deleted by `fingerpost`, with `ip -d link` as the judge.\n",
        date.trim(),
        of("kernel ").join(" "),
        of("ip ").join(" "),
        passed.len(),
        passed.len() + failed.len(),
    );
    for (title, list) in [("Failed", &failed), ("Passed", &passed), ("Times", &times)] {
        if !list.is_empty() {
            text += &format!("\n## {title}\n");
            for line in list {
                text += &format!("- {line}\n");
            }
        }
    }
    if accelerator == "tcg" {
        text += "\nThe processor was emulated: the times compare only with each other.\n";
    }
    let file = host::workspace()?.join("docs/vm.md");
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    say(format_args!(
        "{} passed, {} failed; written: {}",
        passed.len(),
        failed.len(),
        file.display()
    ));
    Ok(if failed.is_empty() && !passed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
