//! A network namespace that lives as long as its value.
//!
//! Needs `CAP_SYS_ADMIN`: root has it, and so has an ordinary user inside
//! the user, network and mount namespaces that `cargo xtask test` makes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::child::Child;

/// Where `ip netns` keeps namespaces by name.
const NAMED: &str = "/run/netns";
/// How the names of passing namespaces begin.
const PREFIX: &str = "fplab";

/// A network namespace with a name; deleted when dropped, unless kept.
#[derive(Debug)]
pub struct Netns {
    name: String,
    owned: bool,
}

impl Netns {
    /// A new namespace with a name of its own: `fplab-TAG-PID-NUMBER`.
    /// Its loopback is up.
    pub fn new(tag: &str) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self::named(&format!("{PREFIX}-{tag}-{}-{number}", std::process::id()))
    }

    /// A new namespace with this name. Its loopback is up.
    pub fn named(name: &str) -> Result<Self> {
        run(Command::new("ip").args(["netns", "add", name])).with_context(|| {
            format!("making the network namespace {name} (needs root; as an ordinary user run `cargo xtask test`, which makes namespaces of its own)")
        })?;
        let netns = Self {
            name: name.to_owned(),
            owned: true,
        };
        netns.ip(&["link", "set", "lo", "up"])?;
        Ok(netns)
    }

    /// A namespace that is there already; dropping leaves it alone.
    pub fn open(name: &str) -> Result<Self> {
        let netns = Self {
            name: name.to_owned(),
            owned: false,
        };
        if !netns.path().exists() {
            bail!("there is no network namespace {name}");
        }
        Ok(netns)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        Path::new(NAMED).join(&self.name)
    }

    /// Leaves it behind when dropped.
    pub fn keep(mut self) {
        self.owned = false;
    }

    /// A command to be run inside; its process id is the program's own.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.path().display()))
            .arg("--")
            .arg(program);
        command
    }

    /// Starts a program inside that dies with the returned value.
    pub fn spawn(&self, program: &str, arguments: &[&str]) -> Result<Child> {
        let mut command = self.command(program);
        command.args(arguments);
        Child::spawn(command)
    }

    /// Runs a program inside to its end; gives what it wrote.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        run(self.command(program).args(arguments))
    }

    /// Runs `ip` inside.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        run(Command::new("ip").args(["-n", &self.name]).args(arguments))
    }

    /// Runs many `ip` commands inside, a line each, in one process.
    pub fn ip_batch(&self, lines: &str) -> Result<()> {
        let mut process = Command::new("ip")
            .args(["-n", &self.name, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting ip -batch")?;
        let fed = match process.stdin.take() {
            Some(mut stdin) => stdin.write_all(lines.as_bytes()),
            None => Ok(()),
        };
        let output = process
            .wait_with_output()
            .context("waiting for ip -batch")?;
        if !output.status.success() {
            bail!(
                "ip -batch: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        fed.context("feeding ip -batch")
    }

    /// Runs a closure on a thread of its own inside the namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let path = self.path();
        thread::scope(|scope| {
            let entered = scope.spawn(move || -> Result<T> {
                enter(&path)?;
                Ok(work())
            });
            entered
                .join()
                .unwrap_or_else(|_| Err(anyhow!("the work inside {} panicked", self.name)))
        })
    }

    /// Writes a file under `/proc/sys` as seen inside.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = Path::new("/proc/sys").join(key);
        self.inside(|| fs::write(&path, value).with_context(|| format!("writing {key}")))?
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if self.owned {
            // Nobody is left to hear of a failure; `sweep` comes by later.
            let _ = remove(&self.name);
        }
    }
}

fn enter(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&file),
        Some(LinkNameSpaceType::Network),
    )
    .with_context(|| format!("entering {}", path.display()))
}

/// Deletes the namespace of a name.
pub fn remove(name: &str) -> Result<()> {
    run(Command::new("ip").args(["netns", "del", name])).map(drop)
}

/// Deletes the passing namespaces whose process is gone: what a crashed
/// or killed test left behind. Gives their number.
pub fn sweep() -> usize {
    let Ok(entries) = fs::read_dir(NAMED) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| maker(name).is_some_and(|pid| !Path::new("/proc").join(pid).exists()))
        .filter(|name| remove(name).is_ok())
        .count()
}

/// The process that made a passing namespace, by its name.
fn maker(name: &str) -> Option<&str> {
    let (rest, _number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let (_tag, pid) = rest.rsplit_once('-')?;
    pid.parse::<u32>().ok().map(|_| pid)
}

/// Runs a command to its end; its output, or what it complained about.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, complaint.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of {command:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn runs_inside_and_is_gone_afterwards() {
        let Some(netns) = skip::unless(Netns::new("self")) else {
            return;
        };
        netns
            .ip_batch("link add one type veth peer name two\nlink set one up\n")
            .unwrap();
        let links = netns.run("ip", &["-br", "link"]).unwrap();
        assert!(links.contains("one@two") && links.contains("lo"), "{links}");
        let seen = netns
            .inside(|| fs::read_to_string("/proc/thread-self/net/dev"))
            .unwrap();
        assert!(seen.unwrap().contains("one:"));
        let complaint = netns
            .ip_batch("link add three type nonsense\n")
            .unwrap_err();
        assert!(complaint.to_string().contains("ip -batch"), "{complaint}");
        let path = netns.path();
        assert!(path.exists());
        drop(netns);
        assert!(!path.exists());
    }

    #[test]
    fn the_maker_is_read_from_the_name() {
        assert_eq!(maker("fplab-a-b-123-4"), Some("123"));
        assert_eq!(maker("fplab-aliases"), None);
        assert_eq!(maker("customer-1-2"), None);
    }
}
