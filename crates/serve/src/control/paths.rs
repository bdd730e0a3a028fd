//! Where control sockets are. The daemon puts them there, clients look
//! there; both by the inode of the namespace, its one name that all
//! processes agree on.

use std::env;
use std::path::{Path, PathBuf};

/// The system's directory of sockets.
pub const SYSTEM_DIRECTORY: &str = "/run/fingerpost";

/// The directories a socket may be in, the first best.
pub fn directories() -> Vec<PathBuf> {
    let own = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .map(|path| path.join("fingerpost"));
    [PathBuf::from(SYSTEM_DIRECTORY)]
        .into_iter()
        .chain(own)
        .collect()
}

/// The socket of a namespace in a directory.
pub fn socket(directory: &Path, inode: u64) -> PathBuf {
    directory.join(format!("{inode}.sock"))
}
