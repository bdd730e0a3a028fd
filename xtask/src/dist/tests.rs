//! The packages in a root of their own: installed, started by the
//! service's rules, asked, removed, purged, and nothing left behind.

use std::process::Command;

use super::files::run;
use super::*;

/// What happens in there.
const SCRIPT: &str = include_str!("installed.sh");
/// How it ends where the system does not let us make such a root.
const CANNOT: i32 = 77;

#[test]
fn installed_started_asked_removed_and_purged() {
    host::install_missing(NEEDED).unwrap();
    let root = host::workspace().unwrap();
    // As the other tests' build is: what is packed is the same either way.
    let status = host::cargo()
        .current_dir(&root)
        .args(["build", "--quiet", "--package=fingerpost"])
        .arg("--package=fingerpost-libalias")
        .status();
    assert!(status.unwrap().success());
    // Tests lie one directory deeper than programs.
    let built = host::target().unwrap();
    let place = tempfile::tempdir().unwrap();
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
