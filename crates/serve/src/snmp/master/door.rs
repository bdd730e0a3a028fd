//! The Unix socket at which subagents connect, and who may: whom the rights
//! of its file let in, each user only so often. Called by [`super`].

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use privileges::groups;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with, sockopt,
};

use super::super::config::AgentxMaster;

/// Connections at most; the last are for root.
const MAX_CONNECTIONS: usize = 64;
const MAX_OF_OTHERS: usize = 48;
/// Connections of one user at most, but root.
const MAX_OF_USER: usize = 16;
/// Those that wait to be accepted.
const BACKLOG: i32 = 16;

/// A socket that listens. Its file goes with it.
#[derive(Debug)]
pub struct Door {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and inode of its file.
    file: (u64, u64),
}

/// Who connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The process, 0 where the kernel does not tell.
    pub pid: u32,
    /// Its user; `u32::MAX`: nobody's.
    pub uid: u32,
}

impl Door {
    /// Listens where it is said, for whom it is said. A socket that nobody
    /// listens at any more is replaced.
    pub fn open(config: &AgentxMaster) -> Result<Self> {
        let path = &config.path;
        let named = || format!("no AgentX master at {}", path.display());
        clear(path).with_context(named)?;
        let address = SocketAddrUnix::new(path).with_context(named)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&fd, &address).with_context(named)?;
        let file = fs::symlink_metadata(path).with_context(named)?;
        let door = Self {
            fd,
            path: path.clone(),
            file: (file.dev(), file.ino()),
        };
        // Nobody can connect before it listens.
        admit(path, config.group.as_deref()).with_context(named)?;
        listen(&door.fd, BACKLOG).with_context(named)?;
        Ok(door)
    }

    /// Whether [`Door::open`] would fail, as far as that can be seen without
    /// making a file. That a master listens there already is no failure: it
    /// may be the daemon that runs.
    pub fn check(config: &AgentxMaster) -> Result<()> {
        let path = &config.path;
        let named = || format!("no AgentX master at {}", path.display());
        SocketAddrUnix::new(path).with_context(named)?;
        match fs::symlink_metadata(path) {
            Ok(file) if !file.file_type().is_socket() => {
                return Err(no_socket()).with_context(named);
            }
            Ok(_) => {}
            Err(_) => {
                let directory = path.parent().unwrap_or(path);
                fs::metadata(directory).with_context(named)?;
            }
        }
        if let Some(group) = &config.group {
            groups::number(group).with_context(named)?;
        }
        Ok(())
    }

    /// Takes one who waits, if there is one.
    pub fn accept(&self) -> io::Result<Option<(OwnedFd, Peer)>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = match accept_with(&self.fd, flags) {
            Ok(fd) => fd,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let peer = sockopt::socket_peercred(&fd).map_or(
            Peer {
                pid: 0,
                uid: u32::MAX,
            },
            |peer| Peer {
                pid: peer.pid.as_raw_nonzero().get().unsigned_abs(),
                uid: peer.uid.as_raw(),
            },
        );
        Ok(Some((fd, peer)))
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let file = fs::symlink_metadata(&self.path);
        let is_ours = file.is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!("{} stays: {error}", self.path.display());
        }
    }
}

/// Takes away a socket that was left behind.
fn clear(path: &Path) -> Result<()> {
    let file = match fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !file.file_type().is_socket() {
        return Err(no_socket());
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&ours, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(fs::remove_file(path)?),
        _ => bail!("a master listens there already (snmpd?): end it, or name another path"),
    }
}

fn no_socket() -> anyhow::Error {
    anyhow!("there is something that is no socket: name another path, or remove it")
}

/// Lets in the owner, and a group if there is one.
fn admit(path: &Path, group: Option<&str>) -> Result<()> {
    let mode = match group {
        None => 0o600,
        Some(group) => {
            let gid = groups::number(group)?;
            chown(path, None, Some(gid)).with_context(|| {
                format!(
                    "its file cannot be given to group {group}: run as root, or have the daemon's \
                     user in that group"
                )
            })?;
            0o660
        }
    };
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

/// Why a user gets no further connection, if so.
pub fn refusal(of: Peer, there: &BTreeMap<u32, usize>) -> Option<String> {
    let total: usize = there.values().sum();
    let own = there.get(&of.uid).copied().unwrap_or(0);
    if total >= MAX_CONNECTIONS {
        return Some(format!("{MAX_CONNECTIONS} subagents are the most"));
    }
    if of.uid == 0 {
        return None;
    }
    if total >= MAX_OF_OTHERS {
        return Some(format!(
            "{MAX_OF_OTHERS} subagents are there, the last places are for root"
        ));
    }
    (own >= MAX_OF_USER).then(|| format!("{MAX_OF_USER} subagents of one user are the most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(path: PathBuf, group: Option<&str>) -> AgentxMaster {
        AgentxMaster {
            path,
            group: group.map(str::to_owned),
            ..AgentxMaster::default()
        }
    }

    #[test]
    fn what_cannot_be_opened_is_seen_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master");
        let both = |path: PathBuf, group: Option<&str>| {
            let config = config(path, group);
            let seen = Door::check(&config).map_err(|error| format!("{error:#}"));
            let opened = Door::open(&config).map(drop);
            assert_eq!(seen, opened.map_err(|error| format!("{error:#}")));
            seen.is_ok()
        };
        assert!(both(path.clone(), None));
        assert!(!path.exists());
        assert!(!both(path.clone(), Some("no-such-group")));
        assert!(!both(path.join("x".repeat(200)), None));
        fs::write(&path, "").unwrap();
        assert!(!both(path, None));
        // While one listens there it is right.
        let path = directory.path().join("there");
        let _door = Door::open(&config(path.clone(), None)).unwrap();
        assert!(Door::check(&config(path, None)).is_ok());
    }

    #[test]
    fn its_file_is_for_its_owner_and_a_group_and_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agentx");
        let mode = || fs::symlink_metadata(&path).unwrap().mode() & 0o777;
        let door = Door::open(&config(path.clone(), None)).unwrap();
        assert_eq!(mode(), 0o600);
        let second = Door::open(&config(path.clone(), None)).unwrap_err();
        assert!(format!("{second:#}").contains("already"), "{second:#}");
        drop(door);
        assert!(!path.exists());
        let own = rustix::process::getgid().as_raw().to_string();
        let door = Door::open(&config(path.clone(), Some(&own))).unwrap();
        assert_eq!(mode(), 0o660);
        assert!(door.accept().unwrap().is_none());
    }

    #[test]
    fn what_was_left_behind_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agentx");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let door = Door::open(&config(path.clone(), None)).unwrap();
        // Another's file at its place is not its to remove.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(door);
        let error = Door::open(&config(path.clone(), None)).unwrap_err();
        assert!(format!("{error:#}").contains("no socket"), "{error:#}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        let nowhere = directory.path().join("none/agentx");
        let error = Door::open(&config(nowhere, None)).unwrap_err();
        assert!(format!("{error:#}").contains("none/agentx"), "{error:#}");
        let other = directory.path().join("other");
        let error = Door::open(&config(other, Some("no-such-group"))).unwrap_err();
        assert!(format!("{error:#}").contains("no-such-group"), "{error:#}");
    }

    #[test]
    fn users_share_the_places_and_root_gets_in() {
        let peer = |uid| Peer { pid: 1, uid };
        let there = |of: &[(u32, usize)]| of.iter().copied().collect();
        assert_eq!(refusal(peer(7), &there(&[(7, MAX_OF_USER - 1)])), None);
        assert!(refusal(peer(7), &there(&[(7, MAX_OF_USER)])).is_some());
        assert_eq!(refusal(peer(8), &there(&[(7, MAX_OF_USER)])), None);
        let full = there(&[(7, 16), (8, 16), (9, 16)]);
        assert!(refusal(peer(10), &full).is_some());
        assert_eq!(refusal(peer(0), &full), None);
        let all = there(&[(7, 16), (8, 16), (9, 16), (0, 16)]);
        assert!(refusal(peer(0), &all).is_some());
    }
}
