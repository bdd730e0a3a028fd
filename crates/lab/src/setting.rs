//! A setting of the whole host raised for a while, and put back.
//!
//! Some sysctls (`gc_thresh3`, the limit of neighbours that are not
//! permanent) exist once for all namespaces. Tests of several processes
//! raise them at once: a register under a lock keeps the value found first
//! and who needs what; the last to leave puts it back. A holder that died
//! is seen by its process id and start time, and no longer counts.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

/// Where registers lie; only root can raise a setting, and writes here.
const REGISTERS: &str = "/run/fingerpost-lab";
const SYSCTLS: &str = "/proc/sys";

/// A host setting held at a value or above until dropped.
#[derive(Debug)]
pub struct HostSetting {
    key: Key,
    holder: Holder,
}

/// Which setting, and the register that guards it.
#[derive(Debug, Clone)]
struct Key {
    setting: PathBuf,
    register: PathBuf,
}

/// A line of the register: who holds, and at what value.
#[derive(Debug, Clone, PartialEq)]
struct Holder {
    pid: u32,
    /// `starttime` of `/proc/PID/stat`: tells a process from a later one
    /// of the same id.
    start: String,
    number: u32,
    value: u64,
}

/// The register: the value found first, then the holders.
#[derive(Debug, Default, PartialEq)]
struct Register {
    found: Option<u64>,
    holders: Vec<Holder>,
}

impl HostSetting {
    /// Raises `key` (as in `net/ipv4/neigh/default/gc_thresh3`) to at
    /// least `value`. Fails without the right to, and in a user namespace,
    /// where the host's settings are out of reach.
    pub fn raise(key: &str, value: u64) -> Result<Self> {
        let register = Path::new(REGISTERS).join(key.replace('/', "."));
        fs::create_dir_all(REGISTERS).with_context(|| format!("making {REGISTERS}"))?;
        Self::raise_in(
            Key {
                setting: Path::new(SYSCTLS).join(key),
                register,
            },
            value,
        )
    }

    fn raise_in(key: Key, value: u64) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let holder = Holder {
            pid,
            start: start_of(pid).context("reading our own start time")?,
            number: MADE.fetch_add(1, Ordering::Relaxed),
            value,
        };
        key.update(|register| register.holders.push(holder.clone()))?;
        Ok(Self { key, holder })
    }
}

impl Drop for HostSetting {
    fn drop(&mut self) {
        let holder = &self.holder;
        // A failure leaves the register as it is; the next to come, or
        // `put_back_leftovers`, repairs it.
        let _ = self
            .key
            .update(|register| register.holders.retain(|other| other != holder));
    }
}

/// Puts back the settings whose holders are all gone: what a crashed or
/// killed test left raised.
pub fn put_back_leftovers() -> Result<()> {
    let Ok(entries) = fs::read_dir(REGISTERS) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let register = entry.path();
        let name = entry.file_name().to_string_lossy().replace('.', "/");
        let setting = Path::new(SYSCTLS).join(name);
        // Out of reach in a user's own namespaces: root's to put back.
        if setting.exists() {
            Key { setting, register }.update(|_| ())?;
        }
    }
    Ok(())
}

impl Key {
    /// Changes the register under its lock, forgets the dead, and sets
    /// what the living need, or what was found first.
    fn update(&self, change: impl FnOnce(&mut Register)) -> Result<()> {
        let mut file = self.locked()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut register = Register::parse(&text);
        register.holders.retain(Holder::is_alive);
        if register.holders.is_empty()
            && let Some(found) = register.found.take()
        {
            self.set(found)?;
        }
        change(&mut register);
        let now = self.get()?;
        let needed = register.holders.iter().map(|holder| holder.value).max();
        let found = register.found.unwrap_or(now);
        register.found = needed.map(|_| found);
        // Written down before it is raised: a crash between is put back.
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(register.to_text().as_bytes())?;
        let wanted = needed.map_or(found, |needed| needed.max(found));
        if wanted != now {
            self.set(wanted)
        } else {
            Ok(())
        }
    }

    fn locked(&self) -> Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.register)
            .with_context(|| format!("opening {} (needs root)", self.register.display()))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn get(&self) -> Result<u64> {
        let text = fs::read_to_string(&self.setting)
            .with_context(|| format!("reading {}", self.setting.display()))?;
        text.trim()
            .parse()
            .with_context(|| format!("{} holds {text:?}", self.setting.display()))
    }

    fn set(&self, value: u64) -> Result<()> {
        fs::write(&self.setting, value.to_string())
            .with_context(|| format!("setting {} to {value}", self.setting.display()))
    }
}

impl Holder {
    fn is_alive(&self) -> bool {
        start_of(self.pid).as_deref() == Some(&self.start)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Self {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.to_owned(),
            number: words.next()?.parse().ok()?,
            value: words.next()?.parse().ok()?,
        })
    }
}

impl Register {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        Self {
            found: lines.next().and_then(|line| line.parse().ok()),
            holders: lines.filter_map(Holder::parse).collect(),
        }
    }

    fn to_text(&self) -> String {
        let Some(found) = self.found else {
            return String::new();
        };
        let holders = self.holders.iter().map(|holder| {
            let Holder {
                pid,
                start,
                number,
                value,
            } = holder;
            format!("{pid} {start} {number} {value}\n")
        });
        format!("{found}\n{}", holders.collect::<String>())
    }
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything but
/// ends with the last parenthesis.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(directory: &tempfile::TempDir) -> Key {
        let setting = directory.path().join("setting");
        fs::write(&setting, "1024\n").unwrap();
        Key {
            setting,
            register: directory.path().join("register"),
        }
    }

    #[test]
    fn the_last_to_leave_puts_it_back() {
        let directory = tempfile::tempdir().unwrap();
        let key = key(&directory);
        let low = HostSetting::raise_in(key.clone(), 5_000).unwrap();
        let high = HostSetting::raise_in(key.clone(), 9_000).unwrap();
        assert_eq!(key.get().unwrap(), 9_000);
        drop(high);
        assert_eq!(key.get().unwrap(), 5_000);
        drop(low);
        assert_eq!(key.get().unwrap(), 1_024);
        // One who needs less than there is changes nothing.
        let modest = HostSetting::raise_in(key.clone(), 10).unwrap();
        assert_eq!(key.get().unwrap(), 1_024);
        drop(modest);
        assert_eq!(key.get().unwrap(), 1_024);
    }

    #[test]
    fn what_a_dead_holder_raised_is_put_back_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let key = key(&directory);
        // Our own process id with another start time: a process long gone.
        let dead = format!("128\n{} 1 0 70000\n", std::process::id());
        fs::write(&key.register, dead).unwrap();
        fs::write(&key.setting, "70000").unwrap();
        key.update(|_| ()).unwrap();
        assert_eq!(key.get().unwrap(), 128);
        assert_eq!(fs::read_to_string(&key.register).unwrap(), "");
    }

    #[test]
    fn a_register_reads_as_it_was_written() {
        let register = Register {
            found: Some(128),
            holders: vec![Holder {
                pid: 7,
                start: "99".into(),
                number: 1,
                value: 4_096,
            }],
        };
        assert_eq!(Register::parse(&register.to_text()), register);
        assert_eq!(Register::parse(""), Register::default());
    }
}
