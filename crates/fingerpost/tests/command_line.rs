//! Help, completions, man pages, names.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use common::{Daemon, furnished, program, said};
use lab::Netns;

fn run(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

#[test]
fn help_is_short_and_names_every_command() {
    let help = said(run(&["--help"]));
    assert!(help.lines().count() <= 55, "{help}");
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
fn every_command_names_a_word_that_it_does_not_know() {
    let directory = tempfile::tempdir().unwrap();
    said(run(&["man", directory.path().to_str().unwrap()]));
    let pages = fs::read_dir(directory.path()).unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut looked_at = 0;
    for name in names.filter_map(|name| Some(name.strip_suffix(".1")?.to_owned())) {
        let name = name.replace("agentx-help", "agentx_help");
        let words: Vec<String> = name
            .split('-')
            .skip(1)
            .map(|word| word.replace('_', "-"))
            .collect();
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--dance");
        // Those of other tools have their statuses.
        let status = match words.first().map(String::as_str) {
            Some("ip" | "bridge") => 255,
            Some("netstat") => 3,
            _ => 2,
        };
        let output = run(&arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {complaint}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let first = complaint.lines().next().unwrap_or_default();
        // iproute2 names its options with one dash.
        let named = if status == 255 { "-dance" } else { "--dance" };
        assert_eq!(
            first.matches(named).count(),
            1,
            "{arguments:?}: {complaint}"
        );
        // And what to try next.
        let further = complaint.to_lowercase();
        assert!(
            further.contains("help") || further.contains("usage"),
            "{complaint}"
        );
        looked_at += 1;
    }
    assert!(looked_at > 60, "{looked_at}");
}

#[test]
fn odd_names_are_offered_as_a_shell_has_to_read_them() {
    let Some(netns) = furnished("completeodd") else {
        return;
    };
    for name in ["odd$(id);x", "odd\u{1b}[2J"] {
        netns.ip(&["link", "add", name, "type", "ifb"]).unwrap();
    }
    let told = completed(&netns, "bash", &["neigh", "--dev", "od"]);
    assert_eq!(told, ["odd\\$\\(id\\)\\;x"]);
    let told = completed(&netns, "bash", &["neigh", "--dev", "odd\\$"]);
    assert_eq!(told, ["odd\\$\\(id\\)\\;x"]);
    for shell in ["zsh", "fish"] {
        let told = completed(&netns, shell, &["neigh", "--dev", "od"]);
        assert_eq!(told, ["odd$(id);x"], "{shell}");
    }
}

/// What a shell is told at the end of a line, by the protocol that its script
/// speaks.
fn completed(netns: &Netns, shell: &str, line: &[&str]) -> Vec<String> {
    let mut command = netns.command(program());
    command.env("FINGERPOST_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", line.len().to_string());
    command.env("_CLAP_IFS", "\n");
    command.args(["--", "fingerpost"]).args(line);
    let told = said(command.output().unwrap());
    // zsh and fish show help beside some.
    let values = told
        .lines()
        .map(|line| line.split(['\t', ':']).next().unwrap());
    values.map(str::to_owned).collect()
}

#[test]
fn completions_know_what_the_tables_have() {
    let Some(netns) = furnished("complete") else {
        return;
    };
    let daemon = Daemon::up(&netns, &[]);
    for (line, wanted, unwanted) in [
        (&["nei"][..], "neigh", "link"),
        (&["neigh", "--dev", ""], "br0", "10.9.0.7"),
        (&["neigh", "show", "dev", "ve"], "veth1", "br0"),
        (&["neigh", "show", ""], "nud", "br0"),
        (&["neigh", "--sta"], "--state", "--dev"),
        (&["route", "--table", ""], "100", "br0"),
        (&["route", "show", "table", "ma"], "main", "100"),
        (&["route", "--exact", "10.1."], "10.1.2.0/24", "10.2.0.0/16"),
        (&["route", "--source", ""], "kernel", "br0"),
        (&["route", "--fields", "dst,gate"], "dst,gateway", "gateway"),
        (&["addr", "--to", "10.9"], "10.9.0.1", "10.8.0.1"),
        (&["ifconfig", "b"], "br0", "veth0"),
        (&["ip", "ro"], "route", "rule"),
        (&["ip", "-n", ""], netns.name(), "br0"),
        (&["ip", "-d", "link", ""], "set", "br0"),
        (&["ip", "link", "set", "v"], "veth1", "br0"),
        (&["ip", "r", "show", "table", ""], "100", "br0"),
        (&["neigh", "--netns", netns.name()], netns.name(), "br0"),
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let told = completed(&netns, shell, line);
            assert!(told.iter().any(|one| one == wanted), "{line:?}: {told:?}");
            assert!(told.iter().all(|one| one != unwanted), "{line:?}: {told:?}");
        }
    }
    // The script itself, in a shell.
    let script = "source <(\"$1\" completions bash); COMP_WORDS=(fingerpost neigh --dev '');
        COMP_CWORD=3; PATH=$(dirname \"$1\"):$PATH;
        _clap_complete_fingerpost fingerpost '' --dev; echo \"${COMPREPLY[@]}\"";
    let mut bash = netns.command("bash");
    bash.args(["-c", script, "bash", program()]);
    let told = said(bash.output().unwrap());
    assert!(told.contains("br0 ") && told.contains("veth1"), "{told}");
    // Without a daemon the kernel is asked.
    daemon.end();
    let told = completed(&netns, "bash", &["neigh", "--dev", "b"]);
    assert_eq!(told, ["br0"]);
}

#[test]
fn every_shell_has_its_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = said(run(&["completions", shell]));
        assert!(text.contains("FINGERPOST_COMPLETE"), "{shell}");
    }
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
    let text = fs::read_to_string(directory.path().join("fingerpost.toml.5")).unwrap();
    assert!(text.contains("scan_interval_secs"), "{text}");
    let text = fs::read_to_string(directory.path().join("fingerpost-state.5")).unwrap();
    assert!(text.contains("peer_addresses"), "{text}");
}

#[test]
fn it_is_arp_and_ifconfig_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (name, option) in [
        ("arp", "-a"),
        ("ifconfig", "-a"),
        ("route", "-n"),
        ("netstat", "-rn"),
    ] {
        let path = directory.path().join(name);
        symlink(program(), &path).unwrap();
        said(Command::new(&path).arg(option).output().unwrap());
    }
}

#[test]
fn parquet_is_written_where_the_build_has_it_and_else_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("links.parquet");
    let path = file.to_str().unwrap();
    let statement = "select ifname, ifindex, null as none from links";
    let output = run(&["sql", statement, "--parquet", path]);
    if cfg!(feature = "parquet") {
        said(output);
        let octets = fs::read(&file).unwrap();
        assert!(octets.starts_with(b"PAR1") && octets.ends_with(b"PAR1"));
        // What is wrong leaves nothing behind.
        let wrong = run(&[
            "sql",
            "select 1 as a, 2 as a",
            "--parquet",
            &format!("{path}2"),
        ]);
        assert!(!wrong.status.success());
        let none = run(&["sql", "select ifname from links limit 0", "--parquet", path]);
        said(none);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    } else {
        let why = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{why}");
        assert!(
            why.contains("--parquet") && why.contains("--features parquet"),
            "{why}"
        );
        assert!(!file.exists());
    }
}

#[test]
fn a_picture_is_drawn_on_a_terminal() {
    let bars = said(run(&[
        "sql",
        "select ifname, 1 as n from links where ifname = 'lo'",
        "--plot",
        "-",
    ]));
    assert!(bars.starts_with("n\nlo") && bars.contains('█'), "{bars}");
    let lines = "with recursive n(i) as (select 1 union all select i + 1 from n limit 9) select i, i * i as square from n";
    let lines = said(run(&["sql", lines, "--plot", "-"]));
    assert!(
        lines.contains("* square") && lines.contains("81 │"),
        "{lines}"
    );
    let nothing = run(&["sql", "select ifname from links", "--plot", "-"]);
    assert!(!nothing.status.success());
}
