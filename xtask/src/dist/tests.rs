//! The packages in a root of their own: installed, started by the
//! service's rules, asked, removed, purged, and nothing left behind.

use std::process::Command;

use super::files::run;
use super::*;

/// What happens in there.
const SCRIPT: &str = include_str!("installed.sh");
/// How it ends where the system does not let us make such a root.
const CANNOT: i32 = 77;

/// A directory with what is packed, as a build of it alone would leave it:
/// one of the tests leaves libraries beside the test programs, of which this
/// is one, and programs above.
fn gathered(place: &Path) -> PathBuf {
    let built = place.join("built");
    fs::create_dir(&built).unwrap();
    let programs = host::target().unwrap();
    for (directory, name) in [
        (&programs, "fingerpost"),
        (&programs.join("deps"), "libalias.so"),
        (&programs.join("deps"), "libalias.a"),
    ] {
        std::os::unix::fs::symlink(directory.join(name), built.join(name)).unwrap();
    }
    built
}

#[test]
fn installed_started_asked_removed_and_purged() {
    host::install_missing(NEEDED).unwrap();
    let root = host::workspace().unwrap();
    // The other tests' build, which is there: for two packages alone Cargo
    // would build half of what they need again, with fewer features.
    let status = host::cargo()
        .current_dir(&root)
        .args(["test", "--workspace", "--no-run", "--quiet"])
        .status();
    assert!(status.unwrap().success());
    let place = tempfile::tempdir().unwrap();
    let built = gathered(place.path());
    let made = pack(&root, &built, &place.path().join("packages"), "none").unwrap();
    assert_eq!(made.len(), 3);
    for package in &made {
        let said = run(Command::new("dpkg-deb").arg("--info").arg(package)).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("Version: 0"), "{said}");
    }
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child"])
        .args(["--propagation", "private", "sh", "-eu", "-c", SCRIPT, "sh"])
        .arg(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(CANNOT) {
        let why = anyhow::anyhow!("no root of our own: {complaint}");
        assert!(::lab::skip::unless::<()>(Err(why)).is_none());
        return;
    }
    assert!(output.status.success(), "{said}\n{complaint}");
    assert!(said.contains("nothing is left behind"), "{said}");
}
