//! Lines that are not built here, and the program that `[ip]` of the
//! configuration names for them. The file stands at its usual place, in
//! mounts of the test's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use lab::{Netns, skip};
use tempfile::TempDir;

use super::common::program;

/// Hides `/etc` behind a directory that holds only the
/// file, then runs the rest. `ip` and `bridge` are links to our program.
const BEHIND: &str = "\
    mount -t tmpfs none /etc && mkdir /etc/fingerpost && \
    cp \"$0/fingerpost.toml\" /etc/fingerpost/ && PATH=\"$0:$PATH\" && exec \"$@\"";

/// A directory with our program by `ip`'s names, and a script that prints
/// what it is given; `None`, and counted as skipped, without namespaces.
fn place() -> Option<TempDir> {
    skip::unless(Netns::new("fallback"))?;
    let place = tempfile::tempdir().unwrap();
    for name in ["ip", "bridge"] {
        symlink(program(), place.path().join(name)).unwrap();
    }
    let script = place.path().join("other");
    fs::write(&script, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    Some(place)
}

fn run(place: &Path, settings: &str, words: &[&str]) -> Output {
    fs::write(place.join("fingerpost.toml"), format!("[ip]\n{settings}\n")).unwrap();
    Command::new("unshare")
        .args(["--net", "--mount", "--", "sh", "-c", BEHIND])
        .arg(place)
        .args(["timeout", "20"])
        .args(words)
        .output()
        .unwrap()
}

#[test]
fn what_is_not_built_goes_to_the_fallback_word_for_word() {
    let Some(place) = place() else {
        return;
    };
    let other = place.path().join("other").display().to_string();
    for (settings, words, printed) in [
        (
            format!("fallback = \"{other}\""),
            &["ip", "-4", "tunnel", "add", "a b", ""][..],
            "<-4><tunnel><add><a b><>",
        ),
        (
            format!("bridge_fallback = \"{other}\""),
            &["bridge", "-d", "vlan", "show"],
            "<-d><vlan><show>",
        ),
    ] {
        let output = run(place.path(), &settings, words);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            (&*text, output.status.code()),
            (printed, Some(7)),
            "{output:?}"
        );
        // What is built is not handed on.
        let output = run(place.path(), &settings, &["ip", "-br", "link"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.starts_with("lo ") && output.status.success(),
            "{output:?}"
        );
    }
}

#[test]
fn without_one_of_its_own_each_name_refuses_and_says_the_setting() {
    let Some(place) = place() else {
        return;
    };
    let other = place.path().join("other").display().to_string();
    for (settings, words, setting) in [
        (
            format!("bridge_fallback = \"{other}\""),
            &["ip", "tunnel"][..],
            "`fallback`",
        ),
        (
            format!("fallback = \"{other}\""),
            &["bridge", "vni"],
            "`bridge_fallback`",
        ),
    ] {
        let output = run(place.path(), &settings, words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("nothing was done") && error.contains(setting),
            "{error}"
        );
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(255), 0),
            "{output:?}"
        );
    }
}

#[test]
fn a_fallback_that_leads_back_to_us_is_an_error() {
    let Some(place) = place() else {
        return;
    };
    let itself = place.path().join("ip").display().to_string();
    let output = run(
        place.path(),
        &format!("fallback = \"{itself}\""),
        &["ip", "tunnel"],
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("this program itself"), "{error}");
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(1), 0),
        "{output:?}"
    );
    let missing = place.path().join("missing").display().to_string();
    let output = run(
        place.path(),
        &format!("fallback = \"{missing}\""),
        &["ip", "tunnel"],
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains(&missing) && !output.status.success(),
        "{error}"
    );
}
