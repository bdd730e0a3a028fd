//! What can go wrong with the kernel.

use std::io;
use std::path::PathBuf;

use netlink::Malformed;
use netlink::decode::{Decoded, decode};
use netlink::message::Message;
use thiserror::Error;

/// An error of the mirror, a dump or a change.
#[derive(Debug, Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel refused a request.
    #[error("the kernel refused to {what}: {source}{}", detail(.message))]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Its error number.
        source: io::Error,
        /// Its own words (extended acknowledgement).
        message: Option<String>,
    },
    /// The kernel sent what cannot be read.
    #[error("a message of the kernel cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The kernel fell silent in the middle of an answer.
    #[error("the kernel sent nothing for {seconds} s in the middle of {what}")]
    Silent {
        /// What was asked.
        what: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// A namespace that is not there or may not be entered.
    #[error("network namespace `{name}`: {source}{}", namespace_hint(.source))]
    Namespace {
        /// As it was named.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A file of /proc that cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A table changed faster than it could be listed.
    #[error("{what} keep changing while they are listed; try again when it is quieter")]
    Restless {
        /// Rows of which table.
        what: &'static str,
    },
    /// A group that was about to be deleted has a member that is not ours.
    #[error(
        "`{name}` (index {index}) joined the group {group} that was about to be deleted, and is none of the links to be deleted; nothing was deleted, the links are in their old groups"
    )]
    Foreign {
        /// Its name.
        name: Box<str>,
        /// Its index.
        index: u32,
        /// The group.
        group: u32,
    },
    /// The kernel would take along more than was agreed to.
    #[error(
        "`{with}` would take along `{name}`, which came meanwhile and was not agreed to; nothing was deleted, the links are in their old groups"
    )]
    Along {
        /// What would go along.
        name: Box<str>,
        /// With which link.
        with: Box<str>,
    },
    /// A journal that cannot be read, or is not for this.
    #[error("journal {}: {why}", path.display())]
    Journal {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// A table is full.
    #[error(transparent)]
    Full(#[from] table::TableFull),
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    pub(crate) fn errno(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System {
            what,
            source: errno.into(),
        }
    }
}

/// Why the kernel refused one request.
#[derive(Debug)]
pub struct Refusal {
    /// Its error number.
    pub source: io::Error,
    /// Its own words, if it had any (extended acknowledgement).
    pub message: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{message} ({})", self.source),
            None => write!(f, "{}", self.source),
        }
    }
}

/// What an `NLMSG_ERROR` or `NLMSG_DONE` refuses; `None`: it is a success.
pub(crate) fn refusal(message: &Message<'_>) -> Result<Option<Refusal>, Malformed> {
    let (errno, words) = match decode(message, 0)? {
        Decoded::Done { errno, message } | Decoded::Error { errno, message, .. } => {
            (errno, message)
        }
        _ => (0, None),
    };
    Ok((errno > 0).then(|| Refusal {
        source: io::Error::from_raw_os_error(errno),
        message: words,
    }))
}

fn detail(message: &Option<String>) -> String {
    message
        .as_ref()
        .map_or_else(String::new, |message| format!(" ({message})"))
}

fn namespace_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            " (a name under /run/netns, a path, or a process id is wanted; `ip netns` lists names)"
        }
        io::ErrorKind::PermissionDenied => " (entering another namespace needs root)",
        _ => "",
    }
}
