//! Users without rights.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use common::{Daemon, as_nobody, for_everybody, furnished, said, says, sorted};
use lab::skip::skip;

/// Whether this process may become another user.
fn can_become_nobody() -> bool {
    let tried = as_nobody("true").stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        skip("becoming another user needs root (in a user namespace: more than one user)");
    }
    can
}

#[test]
fn reading_needs_no_rights() {
    if !can_become_nobody() {
        return;
    }
    let Some(netns) = furnished("nobody") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = for_everybody(directory.path());
    let inside = |arguments: &[&str]| {
        let mut command = netns.command("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .arg(&program)
            .args(arguments);
        command
    };
    let asked = said(inside(&["route"]).output().unwrap());
    assert_eq!(sorted(&asked), sorted(&says(&netns, &["route"])));

    let nowhere = inside(&["up"])
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert_eq!(nowhere.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("XDG_RUNTIME_DIR"), "{complaint}");

    let runtime = directory.path().join("run");
    fs::create_dir(&runtime).unwrap();
    chown(&runtime, Some(65534), Some(65534)).unwrap();
    let mut up = inside(&["up"]);
    up.env("XDG_RUNTIME_DIR", &runtime);
    let daemon = Daemon::spawn(up);
    assert!(
        daemon.screen.contains(runtime.to_str().unwrap()),
        "{}",
        daemon.screen
    );
    let status = said(
        inside(&["status"])
            .env("XDG_RUNTIME_DIR", &runtime)
            .output()
            .unwrap(),
    );
    assert!(status.contains("live"), "{status}");
    daemon.end();
    assert_eq!(fs::read_dir(runtime.join("fingerpost")).unwrap().count(), 0);

    // And everybody may ask root's daemon.
    let _of_root = Daemon::up(&netns, &[]);
    let status = said(inside(&["status"]).output().unwrap());
    assert!(status.contains("live"), "{status}");
}

#[test]
fn it_runs_in_a_user_namespace_of_nobody() {
    if !can_become_nobody() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = for_everybody(directory.path());
    let runtime = directory.path().join("run");
    fs::create_dir(&runtime).unwrap();
    chown(&runtime, Some(65534), Some(65534)).unwrap();
    let unshared = |program: &str| -> Command {
        let mut command = as_nobody("unshare");
        command.args(["--user", "--map-root-user", "--net", "--", program]);
        command
    };
    let possible = unshared("true").stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        skip("this host lets nobody make user namespaces");
        return;
    }
    let script = directory.path().join("script");
    let text = format!(
        "set -e\nip link set lo up\nexport XDG_RUNTIME_DIR={dir}\n{program} up > {dir}/screen &\n\
         pid=$!\nfor i in $(seq 600); do grep -q Ctrl-C {dir}/screen && break; sleep 0.1; done\n\
         {program} status\n{program} addr\nkill $pid\nwait $pid\n",
        dir = runtime.display(),
        program = program.display()
    );
    fs::write(&script, text).unwrap();
    let output = unshared("sh").arg(&script).output().unwrap();
    let answer = said(output);
    assert!(answer.contains("live"), "{answer}");
    assert!(answer.contains("127.0.0.1/8"), "{answer}");
}

#[test]
fn another_namespace_is_for_root_and_a_group() {
    if !can_become_nobody() {
        return;
    }
    let (Some(ours), Some(theirs)) = (furnished("ours"), furnished("theirs")) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = for_everybody(directory.path());
    let sockets = directory.path().join("run");
    let text = format!(
        "netns = ['{}', '{}']\n[control]\ndirectory = {sockets:?}\ngroup = '4711'\n",
        ours.name(),
        theirs.name()
    );
    let config = directory.path().join("fingerpost.toml");
    fs::write(&config, text).unwrap();
    let _daemon = Daemon::up(&ours, &["--config", config.to_str().unwrap()]);
    let ask = |of: &lab::Netns, groups: &str| {
        let mut command = ours.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", groups, "--"]);
        command.arg(&program).args(["route", "--socket"]);
        command.arg(sockets.join(format!("{}.sock", common::inode(of))));
        command.output().unwrap()
    };
    assert!(said(ask(&ours, "--clear-groups")).contains("10.1.0.0/16"));
    let refused = ask(&theirs, "--clear-groups");
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(complaint.contains("`group` in `[control]`"), "{complaint}");
    assert!(said(ask(&theirs, "--groups=4711")).contains("10.1.0.0/16"));
    let of_root = ["route", "--socket"].map(str::to_owned);
    let mut of_root = of_root.to_vec();
    of_root.push(
        sockets
            .join(format!("{}.sock", common::inode(&theirs)))
            .display()
            .to_string(),
    );
    let of_root: Vec<&str> = of_root.iter().map(String::as_str).collect();
    assert!(says(&ours, &of_root).contains("10.1.0.0/16"));
}
