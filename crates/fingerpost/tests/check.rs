//! `check` refuses all that `up` would, in the same words, and takes what
//! `up` takes; whatever is wrong is said once, with its place.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use common::{Daemon, at_rest, fingerpost, furnished, program, said};
use lab::Netns;

/// What both refuse: the configuration, with `DIR` for a directory of the
/// test, and what is said of it.
const REFUSED: &[(&str, &str)] = &[
    // The file itself.
    ("netns = [", ":1: "),
    ("nets = []", "unknown field `nets`"),
    ("netns = ['']", "`netns`"),
    ("log = 'a=b=c'", "`log`"),
    ("[control]\ndirectory = 'run'", "`control.directory`"),
    ("[answers]\nkept_bytes = 7", "`answers.kept_bytes`"),
    (
        "[mirror]\nscan_interval_secs = 0",
        "`mirror.scan_interval_secs`",
    ),
    ("[record]\nlimit_bytes = 7", "`record.limit_bytes`"),
    ("[history]\nlimit_bytes = 7", "`history.limit_bytes`"),
    ("[history]\nkeep_secs = 7", "`history.keep_secs`"),
    (
        "[history]\ncounters_secs = 86401",
        "`history.counters_secs`",
    ),
    ("[history]\ndirectory = 'kept'", "`history.directory`"),
    ("[router]\non = ['eth1']", "name two at least"),
    ("[router]\non = ['eth1', 'eth1']", "eth1 is named twice"),
    ("[router]\naccept = ['forwarding']", "cannot be passed by"),
    (
        "[router]\naccept = ['nonsense']",
        "unknown variant `nonsense`",
    ),
    ("[router]\ncontrol = 'sock'", "control: an absolute path"),
    ("[limits]\nroutes = 0", "`limits.routes`"),
    ("[feed.frr]\nlisten = '192.0.2.1:2620'", "beyond loopback"),
    ("[snmp]\namplification = 0", "amplification"),
    ("[[snmp.community]]\nview = 'none'", "no view `none`"),
    (
        "[[snmp.target]]\naddress = '127.0.0.1:162'\nversion = '3'",
        "version 3 wants a user",
    ),
    ("[http]\nlisten = ['0.0.0.0:80']", "beyond loopback"),
    ("[http]\nclients = 0", "`clients`"),
    // What it leads to.
    ("[history]\ndirectory = 'DIR/file'", "DIR/file: it is there"),
    ("[history]\ndirectory = 'DIR'", "which is no history"),
    ("netns = ['no-such-namespace']", "no-such-namespace"),
    ("netns = ['DIR/file']", "DIR/file"),
    ("[control]\ngroup = 'no-such-group'", "no-such-group"),
    (
        "[control]\ndirectory = 'DIR/file'",
        "control.directory: DIR/file",
    ),
    (
        "[control]\ndirectory = 'DIR/none/deeper'",
        "control.directory: DIR/none/deeper",
    ),
    ("[record]\nfile = 'DIR/file'", "DIR/file"),
    (
        "[record]\nfile = 'DIR/none/recording'",
        "DIR/none/recording",
    ),
    ("[record]\nfile = 'DIR'", "DIR"),
    (
        "[http]\ntoken_file = 'DIR/none'",
        "http.token_file: DIR/none",
    ),
    (
        "[http]\ntoken_file = 'DIR/open'",
        "others than its owner may read DIR/open",
    ),
    ("[http]\ntoken_file = 'DIR/file'", "at least 16"),
    (
        "[http]\ncertificate_file = 'DIR/none'\nkey_file = 'DIR/file'",
        "http.certificate_file: DIR/none",
    ),
    (
        "[http]\ncertificate_file = 'DIR/certificate'\nkey_file = 'DIR/none'",
        "http.key_file: DIR/none",
    ),
    (
        "[http]\ncertificate_file = 'DIR/certificate'\nkey_file = 'DIR/file'",
        "http.key_file: DIR/file",
    ),
    (
        "[feed.frr]\nlisten = '127.0.0.1:2620'\n[feed.b]\nlisten = '[::1]:2620'\n\
         [feed.c]\nlisten = '192.0.2.1:2620'\npeers = ['192.0.2.0/24']",
        "feed.c.listen: cannot listen at 192.0.2.1:2620",
    ),
];

/// What both take.
const TAKEN: &[&str] = &[
    "",
    "log = 'debug'\n[limits]\nroutes = 7",
    "[control]\ndirectory = 'DIR/made'",
    "[record]\nfile = 'DIR/recording'",
    "[history]\ndirectory = 'DIR/history'\nkeep_secs = 60\ncounters_secs = 0",
    "[feed.frr]\nlisten = '127.0.0.1:2620'",
    "[feed.bmp]\nkind = 'bmp'\nlisten = '127.0.0.1:0'\nrouters = 3",
    "[snmp]\nlisten = []\n[http]\nlisten = []",
    "[snmp]\nstate_directory = 'DIR/state'",
];

/// What is warned of, while `up` goes on.
const WARNED: &[(&str, &str)] = &[
    (
        "[snmp]\nlisten = ['192.0.2.1:1161']",
        "no SNMP at 192.0.2.1",
    ),
    (
        "[snmp]\nagentx_master = '/run/master'\nagentx_master_group = 'no-such-group'",
        "no AgentX master at /run/master",
    ),
    (
        "[snmp]\nagentx_master = '/no-such-directory/master'",
        "no AgentX master at /no-such-directory/master",
    ),
    (
        "[http]\nlisten = ['[::1]:9797', '127.0.0.1:9798']\n[[snmp.community]]\nname = 'secret'",
        "everybody may read",
    ),
];

/// A directory with files of each kind, and the place for a configuration.
fn prepared(directory: &Path) {
    fs::write(directory.join("file"), "short\n").unwrap();
    fs::write(directory.join("open"), "a-token-that-is-long-enough\n").unwrap();
    fs::write(directory.join("certificate"), "no certificate\n").unwrap();
    for (name, mode) in [("file", 0o600), ("open", 0o644)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.join(name), mode).unwrap();
    }
}

/// What a run says of a configuration.
fn run(netns: &Netns, directory: &Path, arguments: &[&str], text: &str) -> Output {
    let file = directory.join("f.toml");
    let shown = directory.display().to_string();
    fs::write(&file, text.replace("DIR", &shown)).unwrap();
    let mut command = netns.command(program());
    command.args(arguments).arg(&file);
    command.env(common::STATE, directory.join("kept"));
    command.output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing stands twice in a complaint, neither a cause nor a number.
fn is_said_once(complaint: &str) {
    let numbers = complaint.matches("(os error").count();
    assert!(numbers <= 1, "{complaint}");
    let parts: Vec<&str> = complaint.trim().split(": ").map(str::trim).collect();
    for (at, part) in parts.iter().enumerate() {
        let is_again = part.len() > 6 && parts[..at].contains(part);
        assert!(!is_again, "`{part}` twice: {complaint}");
    }
}

#[test]
fn what_up_refuses_is_refused_before() {
    let Some(netns) = at_rest("check") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    prepared(directory);
    for (text, says) in REFUSED {
        let says = says.replace("DIR", &directory.display().to_string());
        let checked = run(&netns, directory, &["check"], text);
        let why = complaint(&checked);
        assert_eq!(checked.status.code(), Some(1), "{text}: {why}");
        assert!(why.contains(&says), "{text}: {why}");
        is_said_once(&why);
        let up = run(&netns, directory, &["up", "--config"], text);
        let last = complaint(&up);
        let last = last.lines().last().unwrap_or_default();
        assert_eq!(up.status.code(), Some(1), "{text}: {last}");
        assert_eq!(last, why.trim_end(), "{text}");
    }
}

#[test]
fn what_up_takes_is_taken_and_nothing_is_made() {
    let Some(netns) = at_rest("checked") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    prepared(directory);
    let there = || fs::read_dir(directory).unwrap().count();
    run(&netns, directory, &["check"], "");
    let before = there();
    for text in TAKEN {
        let checked = said(run(&netns, directory, &["check"], text));
        assert!(checked.ends_with(": all right\n"), "{text}: {checked}");
        assert!(!checked.contains("warning"), "{text}: {checked}");
        assert_eq!(there(), before, "{text}");
    }
    for (text, says) in WARNED {
        let checked = said(run(&netns, directory, &["check"], text));
        assert!(checked.contains(says), "{text}: {checked}");
    }
    // They are taken indeed.
    let file = directory.join("f.toml");
    for text in TAKEN {
        fs::write(&file, text.replace("DIR", &directory.display().to_string())).unwrap();
        Daemon::up(&netns, &["--config", file.to_str().unwrap()]).end();
    }
    // While one runs its file is still right.
    let text = "[feed.frr]\nlisten = '127.0.0.1:2620'";
    fs::write(&file, text).unwrap();
    let _daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    let checked = said(run(&netns, directory, &["check"], text));
    assert!(checked.contains("the daemon that runs"), "{checked}");
}

/// Command lines that are refused, or fail, and the word that is at fault.
const WRONG: &[(&[&str], &str)] = &[
    (&["link", "show", "dev", "no-such"], "no-such"),
    (&["addr", "show", "dev", "no-such"], "no-such"),
    (&["neigh", "--to", "fish"], "fish"),
    (&["route", "--via", "fish"], "fish"),
    (&["route", "--table", "fish"], "fish"),
    (&["route", "--as-path", "("], "("),
    (&["route", "--source", "no-such"], "no-such"),
    (&["route", "get", "fish"], "fish"),
    (&["route", "--fields", "fish"], "fish"),
    (&["route", "--sort", "fish"], "fish"),
    (&["route", "show", "fish"], "fish"),
    (&["route", "diff", "kernel", "no-such"], "fingerpost up"),
    (&["rule", "--netns", "no-such"], "no-such"),
    (&["link", "--socket", "/no-such.sock"], "/no-such.sock"),
    (&["status", "--netns", "/etc/passwd"], "/etc/passwd"),
    (&["check", "/no-such.toml"], "/no-such.toml"),
    (&["check", "/etc"], "/etc"),
    (&["up", "--config", "/no-such.toml"], "/no-such.toml"),
    (&["up", "--log", "a=b=c"], "a=b=c"),
    (&["up", "--netns", "no-such"], "no-such"),
    (&["up", "--record", "/no-such/file"], "/no-such/file"),
    (&["up", "--record", "/etc/passwd"], "/etc/passwd"),
    (&["up", "--fpm", "192.0.2.1"], "192.0.2.1"),
    (&["replay", "/no-such", "--", "link"], "/no-such"),
    (&["replay", "/etc/passwd", "--", "link"], "/etc/passwd"),
    (&["replay", "/etc", "--", "link"], "/etc"),
    (&["link", "add", "name", "a/b", "type", "bridge"], "a/b"),
    (&["link", "add", "x", "type", "fish"], "fish"),
    (&["link", "delete", "no-such"], "no-such"),
    (&["link", "set", "no-such", "up"], "no-such"),
    (&["addr", "add", "fish", "dev", "lo"], "fish"),
    (&["addr", "add", "10.0.0.1/40", "dev", "lo"], "10.0.0.1/40"),
    (&["addr", "add", "10.0.0.1/24", "dev", "no-such"], "no-such"),
    (
        &["addr", "delete", "10.255.0.1/24", "dev", "lo"],
        "10.255.0.1",
    ),
    (&["route", "add", "10.0.0.0/8", "via", "fish"], "fish"),
    (&["route", "add", "--file", "/no-such.txt"], "/no-such.txt"),
    (&["route", "delete", "203.0.113.0/24"], "203.0.113.0/24"),
    (&["neigh", "add", "10.0.0.1", "lladdr", "fish"], "fish"),
    (&["nexthop", "add", "id", "fish"], "fish"),
    (&["rule", "add", "pref", "fish"], "fish"),
    (&["snmp", "user", "add", "x", "-a", "fish"], "fish"),
    (
        &[
            "forward",
            "--tables",
            "/no-such",
            "--in",
            "lo",
            "--pcap-in",
            "/none",
        ],
        "/no-such",
    ),
    (&["nat", "run", "--alias", "fish"], "fish"),
    (&["send", "fish"], "fish"),
    (&["receive", "fish"], "fish"),
    (&["top", "--interval", "fish"], "fish"),
    (&["completions", "fish-shell"], "fish-shell"),
    (&["man", "/proc/no-such"], "/proc/no-such"),
    (&["arp", "-i", "no-such"], "no-such"),
    (&["arp", "-f", "/no-such"], "/no-such"),
    (&["ifconfig", "no-such"], "no-such"),
    (&["dance"], "dance"),
];

#[test]
fn what_is_wrong_is_named_once() {
    let Some(netns) = furnished("complaints") else {
        return;
    };
    for (words, fault) in WRONG {
        let output = fingerpost(&netns, words);
        let why = complaint(&output);
        let code = output.status.code().unwrap();
        assert!(code == 1 || code == 2, "{words:?}: {code}, {why}");
        assert!(why.contains(fault), "{words:?}: {why}");
        is_said_once(&why);
        // Nobody is shown how the program is written.
        for inside in ["unwrap", "Err(", "Errno", "Some(", "panicked"] {
            assert!(!why.contains(inside), "{words:?}: {why}");
        }
    }
}
