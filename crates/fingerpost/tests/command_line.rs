//! Help, completions, man pages, names.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use common::{program, said};

fn run(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

#[test]
fn help_is_short_and_names_every_command() {
    let help = said(run(&["--help"]));
    assert!(help.lines().count() <= 50, "{help}");
    for command in ["up", "status", "neigh", "route", "arp", "ifconfig", "check"] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command}: {help}"
        );
    }
    let of_neigh = said(run(&["neigh", "help"]));
    assert!(of_neigh.contains("--state <STATE>"), "{of_neigh}");
    assert!(of_neigh.contains("nud"), "{of_neigh}");
    assert!(said(run(&["--version"])).starts_with("fingerpost "));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for arguments in [
        &[][..],
        &["dance"],
        &["neigh", "--dance"],
        &["route", "get"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn completions_know_flags_and_ip_s_words() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = said(run(&["completions", shell]));
        assert!(text.contains("nexthop"), "{shell}");
        assert!(text.contains("all-netns"), "{shell}");
    }
    assert!(said(run(&["completions", "bash"])).contains("nud"));
}

#[test]
fn man_pages_are_made_for_every_command() {
    let directory = tempfile::tempdir().unwrap();
    said(run(&["man", directory.path().to_str().unwrap()]));
    for page in [
        "fingerpost",
        "fingerpost-up",
        "fingerpost-neigh",
        "fingerpost-route-get",
    ] {
        let text = fs::read_to_string(directory.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn it_is_arp_and_ifconfig_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["arp", "ifconfig"] {
        let path = directory.path().join(name);
        symlink(program(), &path).unwrap();
        said(Command::new(&path).arg("-a").output().unwrap());
    }
}
