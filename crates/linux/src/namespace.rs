//! Network namespaces: found by name, path or process id, and entered by
//! threads of their own.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use rustix::fs::{StatFs, fstatfs, statfs};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;

/// `NSFS_MAGIC`, `linux/magic.h`.
const NSFS_MAGIC: u64 = 0x6e73_6673;
/// Where `ip netns` keeps names.
const NAMES: &str = "/run/netns";

/// A network namespace. Cheap to clone; keeps the namespace alive.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<File>,
    inode: u64,
    path: PathBuf,
    name: Option<Box<str>>,
    is_current: bool,
}

impl Namespace {
    /// The namespace of the calling thread.
    pub fn current() -> Result<Self, Error> {
        let path = PathBuf::from("/proc/thread-self/ns/net");
        Ok(Self {
            is_current: true,
            ..Self::from_path(path, None)?
        })
    }

    /// The one that is named ([`Self::open`]), or that of the calling thread.
    pub fn named_or_current(spec: Option<&str>) -> Result<Self, Error> {
        match spec {
            Some(spec) => Self::open(spec),
            None => Self::current(),
        }
    }

    /// A namespace by its name under `/run/netns`, by path, or by the id of
    /// a process in it. A name that is a number is a process id, unless
    /// there is a namespace of that name.
    pub fn open(spec: &str) -> Result<Self, Error> {
        if spec.contains('/') {
            return Self::from_path(PathBuf::from(spec), None);
        }
        let named = Path::new(NAMES).join(spec);
        if !named.exists() && spec.parse::<u32>().is_ok() {
            return Self::from_path(PathBuf::from(format!("/proc/{spec}/ns/net")), None);
        }
        Self::from_path(named, Some(spec.into()))
    }

    /// A new namespace without a name, with nothing in it but a loopback
    /// that is down. It goes when its last value does. Needs
    /// `CAP_SYS_ADMIN`.
    pub fn fresh() -> Result<Self, Error> {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
                    .map_err(|errno| Error::system("make a network namespace")(errno.into()))?;
                let mut made = Self::from_path(PathBuf::from("/proc/thread-self/ns/net"), None)?;
                // What the thread leaves behind: its path ends with it.
                made.path = format!("/proc/self/fd/{}", made.file.as_raw_fd()).into();
                Ok(made)
            });
            made.join().unwrap_or_else(|_| {
                Err(Error::System {
                    what: "make a network namespace",
                    source: io::Error::other("the thread ended without an answer"),
                })
            })
        })
    }

    /// The names under `/run/netns`, sorted. A name that is about to come
    /// or to go is a plain file for a moment, and left out.
    pub fn names() -> Vec<String> {
        let entries = fs::read_dir(NAMES).into_iter().flatten().flatten();
        let is_namespace = |path: &Path| statfs(path).is_ok_and(|system| is_nsfs(&system));
        let mut names: Vec<String> = entries
            .filter(|entry| is_namespace(&entry.path()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// The other namespaces that can be found: those with a name, and those
    /// that a process is in; `most` of them at most.
    pub fn others(&self, most: usize) -> Vec<Self> {
        let named = Self::names().into_iter().map(|name| {
            let path = Path::new(NAMES).join(&name);
            (path, Some(name.into_boxed_str()))
        });
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_processes = processes
            .filter(|entry| {
                let name = entry.file_name();
                name.to_str()
                    .is_some_and(|name| name.parse::<u32>().is_ok())
            })
            .map(|entry| (entry.path().join("ns/net"), None));
        let mut seen = HashSet::from([self.inode]);
        named
            .chain(of_processes)
            .filter_map(|(path, name)| {
                // What may not be looked at (another user's) is passed over.
                let inode = fs::metadata(&path).ok()?.ino();
                seen.insert(inode)
                    .then(|| Self::from_path(path, name).ok())
                    .flatten()
            })
            .take(most)
            .collect()
    }

    /// How it was named: a name, or a path.
    pub fn spec(&self) -> String {
        match &self.name {
            Some(name) => name.to_string(),
            None => self.path.display().to_string(),
        }
    }

    /// How people know it: the name it was opened by or has under
    /// `/run/netns`, else the path it was opened by, or its number.
    pub fn known_as(&self) -> String {
        if !self.is_current {
            return self.spec();
        }
        let has_number = |name: &String| {
            let metadata = fs::metadata(Path::new(NAMES).join(name));
            metadata.is_ok_and(|metadata| metadata.ino() == self.inode)
        };
        let named = Self::names().into_iter().find(has_number);
        named.unwrap_or_else(|| format!("net:[{}]", self.inode))
    }

    fn from_path(path: PathBuf, name: Option<Box<str>>) -> Result<Self, Error> {
        let opened = File::open(&path).and_then(|file| {
            if !is_nsfs(&fstatfs(&file)?) {
                let what = "it is a file, but no namespace (just deleted?)";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            Ok((file.metadata()?.ino(), file))
        });
        let (inode, file) = opened.map_err(|source| Error::Namespace {
            name: name
                .as_deref()
                .map_or_else(|| path.display().to_string(), Into::into),
            source,
        })?;
        Ok(Self {
            file: Arc::new(file),
            inode,
            path,
            name,
            is_current: false,
        })
    }

    /// The number that the system knows it by (`ls -i`, `lsns`).
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Where it was opened: a file that can be mounted elsewhere.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name under `/run/netns`, where it was opened by name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether the name, path or process that led here still does. The
    /// namespace of this process is always there.
    pub fn still_there(&self) -> bool {
        self.is_current || leads_to(&self.path, self.inode)
    }

    /// Runs `task` inside the namespace, on a thread of its own unless it
    /// is the current one.
    pub fn run<T: Send>(&self, task: impl FnOnce() -> T + Send) -> Result<T, Error> {
        if self.is_current {
            return Ok(task());
        }
        std::thread::scope(|scope| {
            let inside = spawn(scope, || {
                self.enter()?;
                Ok(task())
            })?;
            inside.join().unwrap_or_else(|_| {
                Err(Error::System {
                    what: "run inside a network namespace",
                    source: io::Error::other("the task ended without an answer"),
                })
            })
        })
    }

    /// Runs `task` inside each of some namespaces in turn, all on one
    /// thread. `None` for a namespace that may not be entered.
    pub(crate) fn run_in_each<T: Send>(
        namespaces: &[Self],
        task: impl Fn() -> T + Sync,
    ) -> Result<Vec<Option<T>>, Error> {
        if namespaces.is_empty() {
            return Ok(Vec::new());
        }
        std::thread::scope(|scope| {
            let inside = spawn(scope, || {
                let each = namespaces.iter();
                each.map(|namespace| namespace.enter().ok().map(|()| task()))
                    .collect()
            })?;
            inside.join().map_err(|_| Error::System {
                what: "run inside network namespaces",
                source: io::Error::other("the task ended without an answer"),
            })
        })
    }

    /// Moves the calling thread into the namespace.
    fn enter(&self) -> Result<(), Error> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |errno| Error::Namespace {
                name: self.path.display().to_string(),
                source: errno.into(),
            },
        )
    }
}

/// Where a namespace is, for who lives in it by other means (a socket
/// inside keeps it alive). Of one that has a name no descriptor is held: it
/// is opened again when it is entered.
#[derive(Debug, Clone)]
pub(crate) struct Whereabouts {
    held: Option<Namespace>,
    path: PathBuf,
    name: Option<Box<str>>,
    inode: u64,
}

impl Whereabouts {
    /// Lets go of a namespace that has a name.
    pub(crate) fn of(namespace: Namespace) -> Self {
        let (path, name, inode) = (
            namespace.path.clone(),
            namespace.name.clone(),
            namespace.inode,
        );
        Self {
            held: name.is_none().then_some(namespace),
            path,
            name,
            inode,
        }
    }

    /// The namespace; an error if its name is another's by now.
    pub(crate) fn open(&self) -> Result<Namespace, Error> {
        if let Some(held) = &self.held {
            return Ok(held.clone());
        }
        let found = Namespace::from_path(self.path.clone(), self.name.clone())?;
        if found.inode == self.inode {
            return Ok(found);
        }
        Err(Error::Namespace {
            name: found.spec(),
            source: io::Error::new(io::ErrorKind::NotFound, "it was deleted and made again"),
        })
    }

    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// As [`Namespace::still_there`].
    pub(crate) fn still_there(&self) -> bool {
        match &self.held {
            Some(held) => held.still_there(),
            None => leads_to(&self.path, self.inode),
        }
    }
}

fn leads_to(path: &Path, inode: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.ino() == inode)
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A thread that a namespace is entered by. The system may have none left.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    task: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    std::thread::Builder::new()
        .name("inside".into())
        .spawn_scoped(scope, task)
        .map_err(Error::system("start a thread inside a namespace"))
}

/// Whether a file stands for a namespace. (Of which kind, entering tells.)
fn is_nsfs(system: &StatFs) -> bool {
    system.f_type as u64 == NSFS_MAGIC
}

/// A setting of a namespace, such as `net/ipv4/neigh/default/gc_thresh3`;
/// `None` where this kernel has none.
pub fn setting(namespace: &Namespace, name: &str) -> Result<Option<u64>, Error> {
    namespace.run(|| {
        let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
        text.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_named_in_the_error() {
        let error = Namespace::open("fp-there-is-no-such").unwrap_err();
        assert!(
            error.to_string().contains("`fp-there-is-no-such`"),
            "{error}"
        );
        assert!(error.to_string().contains("ip netns"), "{error}");
    }

    #[test]
    fn a_fresh_namespace_is_empty_and_stays() {
        let Some(fresh) = lab::skip::unless(Namespace::fresh().map_err(anyhow::Error::from)) else {
            return;
        };
        assert!(fresh.still_there());
        assert_ne!(fresh.inode(), Namespace::current().unwrap().inode());
        let devices = fresh.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
        let devices = devices.unwrap().unwrap();
        assert_eq!(devices.matches(':').count(), 1, "{devices}");
    }

    #[test]
    fn a_file_is_no_namespace() {
        let file = std::env::temp_dir().join(format!("fp-no-namespace-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let error = Namespace::open(file.to_str().unwrap()).unwrap_err();
        fs::remove_file(&file).unwrap();
        assert!(error.to_string().contains("no namespace"), "{error}");
    }

    #[test]
    fn the_current_namespace_is_that_of_this_process() {
        let by_id = Namespace::open(&std::process::id().to_string()).unwrap();
        let current = Namespace::current().unwrap();
        assert_eq!(by_id.inode(), current.inode());
        assert!(by_id.still_there() && current.still_there());
        assert_eq!(current.run(|| 7).unwrap(), 7);
    }
}
