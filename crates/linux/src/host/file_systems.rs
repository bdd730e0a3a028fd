//! How full local file systems are.

use std::collections::BTreeSet;

use rustix::fs::{stat, statvfs};
use table::FileSystem;

use super::text;

/// Kinds that lie on this machine and answer at once. Not those of the
/// kernel's own (`proc`), nor any over a network or a program (`nfs`,
/// `fuse`).
const LOCAL: [&str; 18] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jffs2",
    "jfs", "ntfs3", "overlay", "squashfs", "tmpfs", "ubifs", "vfat", "xfs",
];
/// `zfs` is local too, and each of its data sets is one.
const ZFS: &str = "zfs";

/// File systems told of at most.
const MOST: usize = 128;

/// Each local file system once, where it was mounted first.
pub(super) fn local() -> Vec<FileSystem> {
    let mounts = text("/proc/self/mounts");
    let mut seen = BTreeSet::new();
    let all = mounts.lines().filter_map(mounted);
    all.filter(|(path, _)| {
        let device = stat(path.as_str()).map(|told| told.st_dev);
        device.is_ok_and(|device| seen.insert(device))
    })
    .filter_map(|(path, kind)| measured(path, kind))
    .take(MOST)
    .collect()
}

/// Where and what, of a line of `/proc/self/mounts`.
fn mounted(line: &str) -> Option<(String, &str)> {
    let mut words = line.split(' ');
    let (path, kind) = (words.nth(1)?, words.next()?);
    let is_local = LOCAL.contains(&kind) || kind == ZFS;
    is_local.then(|| (unescaped(path), kind))
}

/// Spaces and their like are told as `\040`.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let octal = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match octal {
            Some(code) => {
                whole.push(code.into());
                whole.push_str(&part[3..]);
            }
            None => {
                whole.push('\\');
                whole.push_str(part);
            }
        }
    }
    whole
}

fn measured(path: String, kind: &str) -> Option<FileSystem> {
    let told = statvfs(path.as_str())
        .ok()
        .filter(|told| told.f_blocks > 0)?;
    Some(FileSystem {
        mounted_at: path.into(),
        kind: kind.into(),
        unit_bytes: told.f_frsize,
        units: told.f_blocks,
        used_units: told.f_blocks.saturating_sub(told.f_bfree),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_kinds_are_looked_at() {
        let at = |line: &'static str| mounted(line);
        assert_eq!(
            at("/dev/vda / ext4 rw,relatime 0 0"),
            Some(("/".to_owned(), "ext4"))
        );
        for other in [
            "proc /proc proc rw 0 0",
            "host:/x /x nfs4 rw 0 0",
            "",
            "a b",
        ] {
            assert_eq!(at(other), None, "{other}");
        }
        assert_eq!(unescaped(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescaped(r"/a\9"), r"/a\9");
    }

    #[test]
    fn the_root_is_measured() {
        let all = local();
        assert!(all.iter().all(|one| one.used_units <= one.units));
        assert!(all.len() <= MOST);
    }
}
