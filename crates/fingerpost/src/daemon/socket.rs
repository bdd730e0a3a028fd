//! The place of a namespace's control socket, taken by one daemon at a
//! time.
//!
//! Until a daemon listens, a lock file beside the socket tells that the
//! place is taken: the kernel lets go of the lock when the daemon ends,
//! however it ends. From then on the socket tells it, and the lock is given
//! back: a namespace shall take few descriptors. A socket that nobody
//! listens at, whose lock is free, was left behind and is replaced.
//!
//! The socket of the daemon's own namespace may be written by everybody
//! (mode 0666 in a directory of mode 0755): it takes questions only, and
//! their answers are what the kernel tells every user of the namespace
//! anyway. That of another namespace is for root and a configured group,
//! for the kernel lets others in no more than that.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{
    DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use rustix::process::Gid;

use serve::control::{client, paths};

/// The directory for sockets: the wanted one, or the first that can be
/// written. Made if need be.
pub fn directory(wanted: Option<&Path>) -> Result<PathBuf> {
    first_of(wanted, usable)
}

/// Whether there is a place for sockets, or could be.
pub fn check_directory(wanted: Option<&Path>) -> Result<PathBuf> {
    first_of(wanted, |directory| match directory.parent() {
        Some(parent) if !directory.exists() => writable(parent),
        _ => writable(directory),
    })
}

/// The wanted directory or the first of the usual ones that is good for it.
fn first_of(wanted: Option<&Path>, usable: impl Fn(&Path) -> io::Result<()>) -> Result<PathBuf> {
    if let Some(wanted) = wanted {
        usable(wanted).with_context(|| format!("control.directory: {}", wanted.display()))?;
        return Ok(wanted.to_owned());
    }
    let mut tried = Vec::new();
    for directory in paths::directories() {
        match usable(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => tried.push(format!("{}: {error}", directory.display())),
        }
    }
    bail!(
        "there is no place for the control socket ({}); run as root, set XDG_RUNTIME_DIR, \
         or name a directory as control.directory in the configuration",
        tried.join("; ")
    );
}

/// Makes a directory if need be, and sees whether files can be made in it.
fn usable(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o755).create(directory) {
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o755))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    writable(directory)
}

/// Whether files can be made in a directory that is there.
fn writable(directory: &Path) -> io::Result<()> {
    fs::metadata(directory)?;
    if !directory.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let probe = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(directory, probe)?)
}

/// Who may ask at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every user.
    Everybody,
    /// The daemon's own user, and a group if there is one.
    Group(Option<Gid>),
}

impl Access {
    /// Lets those in who may ask, and nobody else.
    fn apply(self, socket: &Path) -> io::Result<()> {
        let mode = match self {
            Self::Everybody => 0o666,
            Self::Group(None) => 0o600,
            Self::Group(Some(group)) => {
                // Nobody but the owner may write it yet.
                chown(socket, None, Some(group.as_raw()))?;
                0o660
            }
        };
        fs::set_permissions(socket, Permissions::from_mode(mode))
    }
}

/// The right to a namespace's socket; given back when dropped.
#[derive(Debug)]
pub struct Claim {
    /// Held until it listens.
    lock: Option<File>,
    lock_path: PathBuf,
    socket: PathBuf,
    access: Access,
    /// The socket's file, once it listens.
    listens: Option<FileId>,
}

impl Claim {
    /// Takes the place of a namespace, unless a living daemon has it.
    pub fn take(directory: &Path, inode: u64, access: Access) -> Result<Self> {
        let whose = format!("mirrors this namespace (inode {inode})");
        Self::at(paths::socket(directory, inode), access, &whose)
    }

    /// Takes a place for a socket, unless a living daemon has it. `whose`
    /// is what that one does, for the refusal.
    pub fn at(socket: PathBuf, access: Access, whose: &str) -> Result<Self> {
        let lock_path = socket.with_extension("lock");
        let taken = |by: &str| {
            anyhow!(
                "{by} already {whose} and listens at {}; ask it (`fingerpost status`), or end it \
                 first",
                socket.display()
            )
        };
        let mut lock = match locked(&lock_path)? {
            Ok(lock) => lock,
            Err(mut theirs) => return Err(taken(&owner(&mut theirs))),
        };
        // One that listens has given the lock back, and signed it.
        if let Some(listens) = listener_at(&socket) {
            let signed = signature(&mut lock);
            if signed.is_some() && (listens.is_none() || listens == signed) {
                return Err(taken(&fingerpost(signed)));
            }
        }
        sign(&mut lock).with_context(|| format!("cannot write {}", lock_path.display()))?;
        Ok(Self {
            lock: Some(lock),
            lock_path,
            socket,
            access,
            listens: None,
        })
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Makes the socket, in the place of one left behind.
    pub fn listen(&mut self) -> Result<UnixListener> {
        let path = &self.socket;
        self.clear()?;
        let listener = UnixListener::bind(path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        self.listens = Some(file_at(path)?);
        self.access
            .apply(&self.socket)
            .with_context(|| format!("who may ask at {}", self.socket.display()))?;
        listener.set_nonblocking(true)?;
        self.lock = None;
        Ok(listener)
    }

    fn clear(&self) -> Result<()> {
        let path = &self.socket;
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        if !metadata.file_type().is_socket() {
            bail!("{} is in the way and no socket; remove it", path.display());
        }
        if client::connect(path).is_ok_and(|connected| connected.is_some()) {
            bail!(
                "somebody listens at {} already, and is no fingerpost; end it, or set \
                 control.directory in the configuration",
                path.display()
            );
        }
        tracing::info!("replacing {}, left behind by a daemon", path.display());
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Whoever has the lock by now has the place.
        let lock = self.lock.take();
        let Some(_lock) = lock.or_else(|| locked(&self.lock_path).ok()?.ok()) else {
            return;
        };
        let is_ours = self.listens.is_some() && file_at(&self.socket).ok() == self.listens;
        if self.listens.is_some() && !is_ours {
            return;
        }
        let socket = is_ours.then_some(&self.socket);
        for path in socket.into_iter().chain([&self.lock_path]) {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("cannot remove {}: {error}", path.display());
            }
        }
    }
}

/// Tells a file from all others that had or have its path: device, inode
/// and birth, for a number is given again to the next file.
type FileId = (u64, u64, Option<SystemTime>);

fn file_at(path: &Path) -> io::Result<FileId> {
    let metadata = fs::symlink_metadata(path)?;
    let born = metadata.created().ok();
    Ok((metadata.dev(), metadata.ino(), born))
}

/// The lock file, locked; or the file where somebody else has the lock.
fn locked(lock_path: &Path) -> Result<Result<File, File>> {
    loop {
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(lock_path)
            .with_context(|| format!("cannot open {}", lock_path.display()))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Err(lock)),
            Err(errno) => {
                return Err(io::Error::from(errno))
                    .with_context(|| format!("cannot lock {}", lock_path.display()));
            }
        }
        // The one who held it may have removed it just before.
        let same = fs::metadata(lock_path)
            .is_ok_and(|there| lock.metadata().is_ok_and(|own| own.ino() == there.ino()));
        if same {
            return Ok(Ok(lock));
        }
    }
}

/// Whether anybody listens at a socket, and the process if it can be told.
/// Waits for nobody: one that is stopped listens too.
fn listener_at(socket: &Path) -> Option<Option<u32>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    match connect(&ours, &SocketAddrUnix::new(socket).ok()?) {
        Ok(()) => {}
        // It has clients enough that wait.
        Err(Errno::AGAIN) => return Some(None),
        Err(_) => return None,
    }
    let peer = sockopt::socket_peercred(&ours).ok();
    Some(peer.and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok()))
}

fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}

/// Who signed a lock.
fn signature(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Who holds a lock, in words.
fn owner(lock: &mut File) -> String {
    fingerpost(signature(lock))
}

fn fingerpost(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("another fingerpost (pid {pid})"),
        None => "another fingerpost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_at_a_time_and_the_next_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = Claim::take(directory.path(), 7, Access::Everybody).unwrap();
        let _listener = first.listen().unwrap();
        let refusal = Claim::take(directory.path(), 7, Access::Everybody)
            .unwrap_err()
            .to_string();
        let pid = format!("(pid {})", std::process::id());
        assert!(refusal.contains(&pid), "{refusal}");
        drop(first);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        Claim::take(directory.path(), 7, Access::Everybody)
            .unwrap()
            .listen()
            .unwrap();
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_a_living_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = paths::socket(directory.path(), 7);
        let living = UnixListener::bind(&path).unwrap();
        let mut claim = Claim::take(directory.path(), 7, Access::Everybody).unwrap();
        assert!(claim.listen().is_err());
        drop(living);
        assert!(path.exists());
        claim.listen().unwrap();
    }

    #[test]
    fn who_ends_late_leaves_his_successor_s_socket() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = Claim::take(directory.path(), 7, Access::Everybody).unwrap();
        drop(first.listen().unwrap());
        // Nobody listens: the next takes the place before the first is gone.
        let mut next = Claim::take(directory.path(), 7, Access::Everybody).unwrap();
        let _listener = next.listen().unwrap();
        drop(first);
        assert!(next.socket().exists());
        assert!(Claim::take(directory.path(), 7, Access::Everybody).is_err());
        drop(next);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_socket_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = paths::socket(directory.path(), 7);
        fs::write(&path, "precious").unwrap();
        let mut claim = Claim::take(directory.path(), 7, Access::Everybody).unwrap();
        assert!(claim.listen().is_err());
        drop(claim);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn the_socket_of_another_namespace_is_not_for_everybody() {
        let directory = tempfile::tempdir().unwrap();
        let own = Gid::from_raw(rustix::process::getgid().as_raw());
        for (inode, access, mode) in [
            (7, Access::Everybody, 0o666),
            (8, Access::Group(None), 0o600),
            (9, Access::Group(Some(own)), 0o660),
        ] {
            let mut claim = Claim::take(directory.path(), inode, access).unwrap();
            let _listener = claim.listen().unwrap();
            let metadata = fs::metadata(claim.socket()).unwrap();
            assert_eq!(metadata.mode() & 0o777, mode, "{access:?}");
        }
    }
}
