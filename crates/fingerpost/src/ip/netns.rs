//! `ip netns`: names of namespaces, made, deleted, entered. Called by the
//! table of commands.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::mount::{mount, mount_bind, mount_bind_recursive, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::grammar::begins;
use super::session::Session;
use super::stop::{Stop, reason};

/// Where names are kept.
const NAMES: &str = "/run/netns";
/// Files that stand for those of `/etc` inside a namespace.
const ETC: &str = "/etc/netns";

/// What `ip netns` does, in `ip`'s order.
const COMMANDS: &[&str] = &[
    "list-id", "help", "list", "show", "lst", "add", "set", "delete", "identify", "pids", "exec",
    "monitor", "attach",
];

/// Does what a line says.
pub fn line(session: &mut Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let Some((command, rest)) = words.split_first() else {
        return list(session, out);
    };
    if let Some(name) = rest.first().filter(|_| !session.options.all) {
        checked(name)?;
    }
    let meant = COMMANDS.iter().find(|name| match **name {
        // Only the whole word: its beginnings mean `list`.
        "list-id" => command == "list-id",
        name => begins(command, name),
    });
    match meant.copied() {
        Some("list" | "show" | "lst") => list(session, out),
        Some("add") => add(rest),
        Some("delete") => delete(session, rest),
        Some("identify") => identify(rest, out),
        Some("pids") => pids(rest, out),
        Some("exec") => exec(session, rest, out),
        Some("help") => Err(Stop::wrong(super::usage::of_object(
            "ip netns",
            "list | add NAME | delete NAME | exec NAME COMMAND… | identify [PID] | pids NAME",
        ))),
        Some(other) => Err(Stop::NotBuilt(format!("ip netns {other}"))),
        None => Err(Stop::no_command(command, "ip netns")),
    }
}

/// Names, in the order of their directory, with the numbers that this
/// namespace has for them.
fn list(session: &mut Session, out: &mut impl Write) -> Result<(), Stop> {
    let mut names = Vec::new();
    for entry in fs::read_dir(NAMES).into_iter().flatten().flatten() {
        names.extend(entry.file_name().into_string());
    }
    let ids = session.netns_ids(&names)?;
    if session.options.json {
        let rows: Vec<_> = names
            .iter()
            .zip(ids)
            .map(|(name, id)| match id {
                Some(id) => serde_json::json!({ "name": name, "id": id }),
                None => serde_json::json!({ "name": name }),
            })
            .collect();
        // Without any, ip writes nothing but the line's end.
        let text = serde_json::Value::Array(rows).to_string();
        writeln!(out, "{text}")?;
        return Ok(());
    }
    for (name, id) in names.iter().zip(ids) {
        match id {
            Some(id) => writeln!(out, "{name} (id: {id})")?,
            None => writeln!(out, "{name}")?,
        }
    }
    Ok(())
}

/// A name that can be one of a file.
fn checked(name: &str) -> Result<(), Stop> {
    let is_wrong = name.is_empty() || name.len() > 255 || name.contains('/');
    match is_wrong || matches!(name, "." | "..") {
        true => Err(Stop::wrong(format!("Invalid netns name \"{name}\""))),
        false => Ok(()),
    }
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

fn add(words: &[String]) -> Result<(), Stop> {
    let name = words
        .first()
        .ok_or_else(|| Stop::failed("No netns name specified"))?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(NAMES)
        .map_err(|error| Stop::failed(format!("mkdir {NAMES} failed: {}", reason(&error))))?;
    share_names()?;
    let path = path_of(name);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o000)
        .open(&path)
        .map_err(|error| {
            Stop::failed(format!(
                "Cannot create namespace file \"{}\": {}",
                path.display(),
                reason(&error)
            ))
        })?;
    let made = linux::Namespace::fresh().map_err(anyhow::Error::from);
    let mounted = made.and_then(|namespace| {
        let from = namespace.path();
        Ok(mount_bind(from, &path)?)
    });
    if let Err(error) = mounted {
        let _ = fs::remove_file(&path);
        return Err(Stop::failed(format!(
            "Failed to create a new network namespace \"{name}\": {error:#}"
        )));
    }
    Ok(())
}

/// Makes the directory of names a mount that other mount namespaces share,
/// so that a name deleted in one goes everywhere.
fn share_names() -> Result<(), Stop> {
    let shared = || {
        mount_change(
            NAMES,
            MountPropagationFlags::SHARED | MountPropagationFlags::REC,
        )
    };
    let made = shared().or_else(|_| {
        mount_bind_recursive(NAMES, NAMES)?;
        shared()
    });
    made.map_err(|errno| {
        Stop::failed(format!(
            "mount --make-shared {NAMES} failed: {}",
            reason(&errno.into())
        ))
    })
}

fn delete(session: &Session, words: &[String]) -> Result<(), Stop> {
    if session.options.all {
        return Err(Stop::NotBuilt("-all netns delete".to_owned()));
    }
    let name = words
        .first()
        .ok_or_else(|| Stop::failed("No netns name specified"))?;
    let path = path_of(name);
    let _ = unmount(&path, UnmountFlags::DETACH);
    fs::remove_file(&path).map_err(|error| {
        Stop::failed(format!(
            "Cannot remove namespace file \"{}\": {}",
            path.display(),
            reason(&error)
        ))
    })
}

/// Device and inode of a namespace's file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let data = fs::metadata(path)?;
    Ok((data.dev(), data.ino()))
}

fn identify(words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    if words.len() > 1 {
        return Err(Stop::failed("extra arguments specified"));
    }
    let pid = words.first().map_or("self", String::as_str);
    if !words.is_empty() && pid.parse::<u32>().is_err() {
        return Err(Stop::failed(format!(
            "Specified string '{pid}' is not a pid"
        )));
    }
    let wanted = identity(&PathBuf::from(format!("/proc/{pid}/ns/net"))).map_err(|error| {
        Stop::failed(format!("Cannot open network namespace: {}", reason(&error)))
    })?;
    for entry in fs::read_dir(NAMES).into_iter().flatten().flatten() {
        if identity(&entry.path()).is_ok_and(|found| found == wanted) {
            writeln!(out, "{}", entry.file_name().to_string_lossy())?;
        }
    }
    Ok(())
}

fn pids(words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    let [name] = words else {
        return Err(Stop::failed(match words.is_empty() {
            true => "No netns name specified",
            false => "extra arguments specified",
        }));
    };
    let wanted = identity(&path_of(name)).map_err(|error| {
        Stop::failed(format!("Cannot open network namespace: {}", reason(&error)))
    })?;
    let mut found: Vec<u32> = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            identity(&PathBuf::from(format!("/proc/{pid}/ns/net"))).is_ok_and(|own| own == wanted)
        })
        .collect();
    found.sort_unstable();
    for pid in found {
        writeln!(out, "{pid}")?;
    }
    Ok(())
}

/// Runs a command inside a namespace: with a `/sys` of it, and with its
/// files of `/etc/netns/NAME` in the place of those of `/etc`.
fn exec(session: &Session, words: &[String], out: &mut impl Write) -> Result<(), Stop> {
    if session.options.all {
        return Err(Stop::NotBuilt("-all netns exec".to_owned()));
    }
    let Some((name, command)) = words.split_first() else {
        return Err(Stop::failed("No netns name specified"));
    };
    let Some((program, arguments)) = command.split_first() else {
        return Err(Stop::failed("No command specified"));
    };
    if session.is_batch {
        return Err(Stop::NotBuilt("netns exec in a batch".to_owned()));
    }
    out.flush()?;
    enter(name)?;
    let error = Command::new(program).args(arguments).exec();
    Err(Stop::failed(format!(
        "exec of \"{program}\" failed: {}",
        reason(&error)
    )))
}

fn enter(name: &str) -> Result<(), Stop> {
    let file = File::open(path_of(name)).map_err(|error| {
        Stop::wrong(format!(
            "Cannot open network namespace \"{name}\": {}",
            reason(&error)
        ))
    })?;
    let moved = move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&file),
        Some(LinkNameSpaceType::Network),
    );
    moved.map_err(|errno| {
        Stop::wrong(format!(
            "setting the network namespace \"{name}\" failed: {}",
            reason(&errno.into())
        ))
    })?;
    // The program has one thread here: what follows is its own.
    own_mounts().map_err(|error| {
        Stop::wrong(format!(
            "mounting {name}'s own /sys failed: {}",
            reason(&error)
        ))
    })?;
    let own = Path::new(ETC).join(name);
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let target = Path::new("/etc").join(entry.file_name());
        if let Err(errno) = mount_bind(entry.path(), &target) {
            super::session::complain(&format!(
                "Bind {} -> {} failed: {}",
                entry.path().display(),
                target.display(),
                reason(&errno.into())
            ));
        }
    }
    Ok(())
}

/// Mounts of this process alone, with a `/sys` of its network namespace.
fn own_mounts() -> io::Result<()> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    let _ = unmount("/sys", UnmountFlags::DETACH);
    mount("none", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(())
}
