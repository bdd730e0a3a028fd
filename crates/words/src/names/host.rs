//! iproute2's names of numbers, from its files where the host has them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{NameFile, Names};

/// Where iproute2 keeps them; what comes later says otherwise.
const DIRECTORIES: [&str; 2] = ["/usr/share/iproute2", "/etc/iproute2"];

/// A longer file is none of iproute2's.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The names that hold on this host. Files that are not there, or not to
/// be read, say nothing.
pub fn load() -> Names {
    let mut names = Names::default();
    for directory in DIRECTORIES {
        for file in NameFile::ALL {
            let path = Path::new(directory).join(file.file_name());
            parse(&mut names, file, &path);
            for path in beside(&path) {
                parse(&mut names, file, &path);
            }
        }
    }
    names
}

fn parse(names: &mut Names, file: NameFile, path: &Path) {
    let mut text = String::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    if read.is_ok() {
        names.parse_file(file, &text);
    }
}

/// `rt_protos.d/*.conf`, in the order of names.
fn beside(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.with_extension("d"))
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "conf")
        })
        .collect();
    paths.sort_unstable();
    paths
}
