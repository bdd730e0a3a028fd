//! The socket that a running router or translation is asked at: one a path,
//! for its user alone, or a group beside. For `live::control` and
//! `nat::control`; who may ask what is `peers`' to say.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::process::Gid;

/// What is said where the socket cannot be had.
#[derive(Debug, Clone, Copy)]
pub struct Refusals {
    /// What is there is no socket.
    pub other: &'static str,
    /// Somebody answers there.
    pub answered: &'static str,
}

/// Opens it. One that somebody answers at stays his; one that was left
/// behind is replaced.
pub fn bind(path: &Path, refusals: Refusals) -> Result<UnixListener> {
    if let Ok(left) = fs::symlink_metadata(path) {
        if !left.file_type().is_socket() {
            bail!(refusals.other);
        }
        match UnixStream::connect(path) {
            Ok(_) => bail!(refusals.answered),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Lets a group of this host connect as well: the kernel checks it at the
/// socket's file.
pub fn open_to(path: &Path, group: Gid) -> Result<()> {
    let number = group.as_raw();
    chown(path, None, Some(number)).with_context(|| format!("giving it to group {number}"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(())
}
