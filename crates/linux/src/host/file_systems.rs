//! How full local file systems are.

use std::collections::BTreeSet;

use rustix::fs::{stat, statvfs};
use table::FileSystem;

use super::text;

/// Kinds that lie on this machine and answer at once. Not those of the
/// kernel's own (`proc`), nor any over a network or a program (`nfs`,
/// `fuse`).
const LOCAL: [&str; 19] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jffs2",
    "jfs", "ntfs3", "overlay", "squashfs", "tmpfs", "ubifs", "vfat", "xfs", "zfs",
];

/// File systems told of at most.
const MOST: usize = 128;

/// Each local file system once, where it was mounted first.
pub(super) fn local() -> Vec<FileSystem> {
    let mounts = text("/proc/self/mounts");
    let mut seen = BTreeSet::new();
    let all = numbered(&mounts).filter(|(_, _, kind)| LOCAL.contains(kind));
    let all = all.map(|(number, path, kind)| (number, unescaped(path), kind));
    all.filter(|(_, path, _)| {
        let device = stat(path.as_str()).map(|told| told.st_dev);
        device.is_ok_and(|device| seen.insert(device))
    })
    .filter_map(|(number, path, kind)| measured(number, path, kind))
    .take(MOST)
    .collect()
}

/// Number, place and kind of what is mounted. What is mounted over another
/// has its number.
fn numbered(mounts: &str) -> impl Iterator<Item = (u32, &str, &str)> {
    let mut places = BTreeSet::new();
    mounts.lines().filter_map(move |line| {
        let mut words = line.split(' ');
        let (path, kind) = (words.nth(1)?, words.next()?);
        let is_new = places.insert(path);
        is_new.then_some((places.len() as u32, path, kind))
    })
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

fn measured(number: u32, path: String, kind: &str) -> Option<FileSystem> {
    let told = statvfs(path.as_str())
        .ok()
        .filter(|told| told.f_blocks > 0)?;
    Some(FileSystem {
        number,
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
    fn places_are_numbered_and_told_once() {
        let mounts = "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\n\
            tmpfs /a tmpfs rw 0 0\ntmpfs /a tmpfs rw 0 0\nnonsense\nx /b xfs rw 0 0\n";
        let told: Vec<_> = numbered(mounts).collect();
        let expected = [
            (1, "/", "ext4"),
            (2, "/proc", "proc"),
            (3, "/a", "tmpfs"),
            (4, "/b", "xfs"),
        ];
        assert_eq!(told, expected);
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
