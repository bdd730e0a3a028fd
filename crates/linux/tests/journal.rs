//! Journals of links: nobody else's word is taken for one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fingerpost_linux::Namespace;
use fingerpost_linux::links::journal::{End, Journal, Start, Work};

/// A directory of the test's own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fp-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn allow(&self, mode: u32) -> std::io::Result<()> {
        fs::set_permissions(&self.0, Permissions::from_mode(mode))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn begin(directory: &Path) -> Result<Journal, fingerpost_linux::Error> {
    let start = Start::new(Work::Set, &Namespace::current()?, 0, 1);
    Journal::begin(directory, start, &[])
}

fn newest(directory: &Path) -> Result<Option<Journal>, fingerpost_linux::Error> {
    let open = |end: Option<End>| end.is_none();
    Journal::newest(directory, Work::Set, &Namespace::current()?, &open)
}

#[test]
fn where_others_may_write_no_journal_is_kept_or_believed() {
    let directory = Directory::new("others");
    assert!(newest(&directory.0).unwrap().is_none());
    let id = begin(&directory.0).unwrap().id();
    assert_eq!(
        newest(&directory.0).unwrap().map(|found| found.id()),
        Some(id.clone())
    );
    for mode in [0o777, 0o720, 0o1777] {
        directory.allow(mode).unwrap();
        let here = Namespace::current().unwrap();
        let refusals = [
            begin(&directory.0).err(),
            newest(&directory.0).err(),
            Journal::named(&directory.0, &id, &here).err(),
            Journal::all(&directory.0).err(),
        ];
        for refusal in refusals {
            let refusal = refusal.map(|error| error.to_string()).unwrap_or_default();
            assert!(refusal.contains("others may write"), "{mode:o}: {refusal}");
        }
    }
    directory.allow(0o755).unwrap();
    assert_eq!(Journal::all(&directory.0).unwrap().len(), 1);
}

#[test]
fn a_symbolic_link_is_no_journal() {
    let directory = Directory::new("link");
    let there = Directory::new("elsewhere");
    let id = begin(&there.0).unwrap().id();
    let whole = there.0.join(&id).with_extension("journal");
    fs::create_dir(&directory.0).unwrap();
    directory.allow(0o700).unwrap();
    symlink(&whole, directory.0.join("9.journal")).unwrap();
    let here = Namespace::current().unwrap();
    assert!(Journal::named(&directory.0, "9", &here).is_err());
    assert!(newest(&directory.0).unwrap().is_none());
    // Nor is a path an id.
    let path = there.0.join(&id);
    let refusal = Journal::named(&directory.0, &path.to_string_lossy(), &here).err();
    assert!(refusal.is_some_and(|error| error.to_string().contains("an id is expected")));
}
