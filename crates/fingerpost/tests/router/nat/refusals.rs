//! What it refuses, and by what word.

use lab::Netns;
use tempfile::TempDir;

use crate::common::program;
use crate::nat::{Natted, Sums, natted};
use crate::place::{Router, has_program};

/// Runs it where it is to refuse: its exit status, and what it says.
fn refused(netns: &Netns, arguments: &[&str]) -> (i32, String) {
    let directory = TempDir::new().unwrap();
    let mut command = netns.command(program());
    command
        .args(["router", "--on", "lan", "--on", "wan", "--control"])
        .arg(directory.path().join("sock"))
        .args(arguments);
    let output = command.output().unwrap();
    let code = output.status.code().unwrap();
    (code, String::from_utf8(output.stderr).unwrap())
}

/// The same for its usual line.
fn refused_here(place: &Natted) -> String {
    let rules = place.path("rules");
    let arguments = ["--nat", &rules, "--outside", "wan"];
    let (code, said) = refused(&place.router, &arguments);
    assert_eq!(code, 1, "{said}");
    assert!(!place.router.ip(&["link"]).unwrap().contains("fpnat"));
    said
}

#[test]
fn what_makes_no_sense_is_refused_by_its_word() {
    let Some(place) = natted("xnref", Sums::Finished) else {
        return;
    };
    let rules = place.path("rules");
    for (arguments, wanted, word) in [
        (&["--nat", &rules][..], 2, "--outside"),
        (&["--outside", "wan"], 2, "--nat"),
        (&["--without", "open"], 2, "--nat"),
        (
            &["--nat", &rules, "--outside", "eth7"],
            1,
            "--outside: eth7",
        ),
        (
            &["--nat", &rules, "--outside", "wan,lan"],
            1,
            "all links are outside",
        ),
        (&["--nat", "/nowhere", "--outside", "wan"], 1, "/nowhere"),
    ] {
        let (code, said) = refused(&place.router, arguments);
        assert_eq!(code, wanted, "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
    for (text, word) in [
        ("alias_address 192.0.2.1\nreverse yes\n", "reverse"),
        ("alias_address 192.0.2.1\npcp 10.0.0.1 ports 64\n", "pcp"),
        ("alias_address 192.0.2.1\ntimeout udp 5\n", "udp"),
        (
            "alias_address 192.0.2.1\ntimeout tcp_established 5\n",
            "tcp_established",
        ),
        ("same_ports\n", "alias_address"),
        ("alias_address 192.0.2.1\nnonsense\n", "nonsense"),
    ] {
        place.rules(text);
        let said = refused_here(&place);
        assert!(said.contains(word), "{text}: {said}");
    }
    assert!(!has_program(&place.router, "lan"));
}

#[test]
fn a_second_router_is_refused_and_the_first_goes_on() {
    let Some(place) = natted("xntwo", Sums::Finished) else {
        return;
    };
    let first = place.start(&[]);
    let rules = place.path("rules");
    let usual = ["--nat", &rules, "--outside", "wan"];
    for arguments in [&usual[..], &[]] {
        let (code, said) = refused(&place.router, arguments);
        assert_eq!(code, 1, "{said}");
    }
    place
        .inside
        .run("ping", &["-c1", "-W5", crate::nat::FAR])
        .unwrap();
    assert_eq!(first.status()["translation"]["works"], true);
}

/// Another program at XDP stays where it is.
#[test]
fn a_strangers_program_is_not_replaced() {
    let Some(place) = natted("xnstr", Sums::Finished) else {
        return;
    };
    let stranger = Router::start(&place.router, &[]);
    let id = || {
        let shown = place.router.ip(&["link", "show", "lan"]).unwrap();
        let (_, behind) = shown.split_once("prog/xdp id ").unwrap();
        behind.split_whitespace().next().unwrap().to_owned()
    };
    let before = id();
    let said = refused_here(&place);
    assert!(said.contains("lan"), "{said}");
    assert!(!place.release().status.success());
    assert_eq!(id(), before);
    stranger.status();
}
