//! What each command that lasts has given up while it runs. Which commands
//! there are is known from the man pages, which are made of the command
//! line's one definition: one that is new is in neither list below, and
//! fails.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Daemon, OBJECTS, PATIENCE, furnished, program};
use lab::{Child, Netns, wait_until};
use tempfile::TempDir;

const NET_ADMIN: u64 = 1 << 12;
const IPC_LOCK: u64 = 1 << 14;
const DAC_OVERRIDE: u64 = 1 << 1;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Where they run: a namespace with a daemon and many routes, a recording of
/// it, and one without a daemon.
struct Place {
    netns: Netns,
    bare: Netns,
    recording: String,
    _directory: TempDir,
}

/// The program by net-tools' names, with words whose answer or file lasts.
fn by_net_tools_names(place: &Place, directory: &Path) -> Vec<(String, Command, u64)> {
    let fifo = directory.join("ethers");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    // Somebody holds it open and writes nothing.
    let held = fs::OpenOptions::new().read(true).write(true).open(&fifo);
    std::mem::forget(held.unwrap());
    let file = fifo.to_str().unwrap();
    let asks = DAC_OVERRIDE;
    let mut all = Vec::new();
    for (words, kept) in [
        ("route -n", asks),
        ("route -n -6", asks),
        ("netstat -rn", asks),
        ("arp -n", asks),
        ("arp -an", asks),
        (&format!("arp -f {file}"), NET_ADMIN),
    ] {
        let (name, words) = words.split_once(' ').unwrap();
        let link = directory.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(program(), &link).unwrap();
        }
        let mut command = place.netns.command(link.to_str().unwrap());
        command.args(words.split(' '));
        all.push((format!("{name} {words}"), command, kept));
    }
    all
}

/// A command that lasts: its words, and the capabilities that it may keep.
struct Lasting {
    /// Its man page.
    page: &'static str,
    arguments: Vec<String>,
    kept: u64,
    /// Without a daemon to ask.
    bare: bool,
}

fn lasting(place: &Place) -> Vec<Lasting> {
    let of = |page, arguments: &str, kept, bare| Lasting {
        page,
        arguments: arguments.split(' ').map(str::to_owned).collect(),
        kept,
        bare,
    };
    let mut all = vec![
        of("fingerpost-up", "up", NET_ADMIN, true),
        of(
            "fingerpost-replay",
            &format!("replay {} --socket {0}.sock", place.recording),
            0,
            true,
        ),
        of(
            "fingerpost-forward",
            "forward --tun=fa=veth0 --tun=fb=veth1 --accept=rule",
            NET_ADMIN,
            true,
        ),
        of(
            "fingerpost-nat-run",
            "nat run --alias 192.0.2.1 --tun fpin fpout",
            0,
            true,
        ),
        of(
            "fingerpost-router",
            &format!(
                "router --on=veth1 --on=xa --accept=rule --control {}.router",
                place.recording
            ),
            NET_ADMIN | PERFMON | BPF,
            true,
        ),
        of(
            "fingerpost-router",
            &format!(
                "router --on=veth1 --on=xa --accept=rule --control {0}.router --nat {0}.rules \
                 --outside xa --without open --nat-control {0}.nat",
                place.recording
            ),
            NET_ADMIN | PERFMON | BPF,
            true,
        ),
        of("fingerpost-receive", "receive 127.0.0.1:0", 0, true),
        of(
            "fingerpost-send",
            "send 127.0.0.1 9 --rate 10 --duration 3600",
            IPC_LOCK,
            true,
        ),
        of("fingerpost-top", "top --json", DAC_OVERRIDE, false),
        of(
            "fingerpost-ifaceseq",
            "ifaceseq -n 100000 --one-by-one",
            NET_ADMIN | SYS_ADMIN | DAC_OVERRIDE,
            true,
        ),
        of(
            "fingerpost-failover",
            "failover -n 100 --rounds 1000",
            NET_ADMIN | SYS_ADMIN | DAC_OVERRIDE,
            true,
        ),
    ];
    for object in OBJECTS {
        let page: &'static str = format!("fingerpost-{object}").leak();
        all.push(of(page, &format!("{object} --watch"), 0, false));
        let kept = NET_ADMIN | DAC_OVERRIDE;
        all.push(of(page, &format!("{object} --watch"), kept, true));
    }
    // Longer than a pipe takes.
    all.push(of("fingerpost-route", "route", DAC_OVERRIDE, false));
    // The next statement may find no daemon, and mirror for itself.
    all.push(Lasting {
        page: "fingerpost-sql",
        arguments: vec!["sql".to_owned(), "select * from routes".to_owned()],
        kept: NET_ADMIN | DAC_OVERRIDE,
        bare: false,
    });
    let listing = "ip route show table all";
    all.push(of("fingerpost-ip", listing, DAC_OVERRIDE, false));
    all.push(of(
        "fingerpost-route",
        "route --direct",
        DAC_OVERRIDE,
        false,
    ));
    all
}

/// Those that are done when they have answered, changed or written: each
/// word after the program's, and what stands below it. `bridge` answers as
/// `ip` does. `ip netns exec` is the program that it calls; the lines of
/// `-batch` may want any right that `ip` has; so may what a file says, also
/// while `apply --watch` keeps it so or a keeper waits to take it back.
const BRIEF: [&str; 24] = [
    "apply",
    "arp",
    "bridge",
    "check",
    "completions",
    "diff",
    "export",
    "ifconfig",
    "import",
    "man",
    "netstat",
    "snmp",
    "status",
    "nat",
    "nat-bench",
    "nat-clear",
    "nat-reload",
    "nat-show",
    "nat-who",
    "route-get",
    "router-counters",
    "router-reasons",
    "router-release",
    "router-status",
];

/// The commands that change rows and links stand below their object.
fn is_brief(page: &str) -> bool {
    let of_object = |object: &&str| {
        page.strip_prefix(*object)
            .is_some_and(|rest| rest.starts_with('-'))
    };
    let snmp = page.starts_with("snmp-");
    BRIEF.contains(&page) || snmp || OBJECTS.iter().any(of_object)
}

/// The names of all man pages.
fn pages() -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut man = Command::new(program());
    man.arg("man").arg(directory.path());
    assert!(man.status().unwrap().success());
    let files = fs::read_dir(directory.path()).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Those of files are no command's.
    let names = names.filter(|name| !name.ends_with(".5"));
    let pages = names.map(|name| name.strip_suffix(".1").unwrap().to_owned());
    pages.collect()
}

fn field<'t>(status: &'t str, name: &str) -> &'t str {
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or("")
        .trim()
}

/// What a thread has that it should not; `None`: nothing.
fn excess(task: &Path, kept: u64) -> Option<String> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let held = u64::from_str_radix(field(&status, "CapPrm:"), 16).unwrap();
    let is_confined = field(&status, "Seccomp:") == "2" && field(&status, "NoNewPrivs:") == "1";
    (held & !kept != 0 || !is_confined).then_some(status)
}

/// Waits until no thread of a process has more; it must last that long.
fn confined(process: &mut Child, kept: u64) -> Result<(), String> {
    let mut last = String::new();
    let tasks = format!("/proc/{}/task", process.id());
    let waited = wait_until(PATIENCE, "no more rights than it may keep", || {
        let found = fs::read_dir(&tasks).ok()?;
        let mut found = found.flatten().map(|task| excess(&task.path(), kept));
        last = found.find_map(|excess| excess).unwrap_or_default();
        last.is_empty().then_some(())
    });
    let lasts = matches!(process.process().try_wait(), Ok(None));
    match waited {
        Ok(()) if lasts => Ok(()),
        Ok(()) => Err("it did not last".to_owned()),
        Err(error) => Err(format!("{error}\n{last}")),
    }
}

fn place() -> Option<(Place, Daemon)> {
    let netns = furnished("rights")?;
    let bare = furnished("bare")?;
    // Where packets are forwarded at XDP.
    bare.ip(&["link", "add", "xa", "type", "veth", "peer", "name", "xb"])
        .unwrap();
    bare.sysctl("net/ipv4/ip_forward", "1").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("kept").to_str().unwrap().to_owned();
    fs::write(format!("{recording}.rules"), "alias_address 192.0.2.1\n").unwrap();
    let routes: String = (0..4_000)
        .map(|n| {
            format!(
                "route add 10.{}.{}.0/24 dev br0 table 7\n",
                100 + n / 256,
                n % 256
            )
        })
        .collect();
    netns.ip_batch(&routes).unwrap();
    // What net-tools' names list: the main table, neighbours of IPv4.
    let listed: String = (0..2_000)
        .map(|n| {
            let (high, low) = (n / 256, n % 256);
            format!(
                "route add 172.20.{high}.{low}/32 dev br0\nroute add 2001:db8:77::{n}/128 dev \
                 br0\nneigh add 172.21.{high}.{low} lladdr 02:00:00:00:00:01 dev br0\n"
            )
        })
        .collect();
    netns.ip_batch(&listed).unwrap();
    let daemon = Daemon::up(&netns, &["--record", &recording]);
    let place = Place {
        netns,
        bare,
        recording,
        _directory: directory,
    };
    Some((place, daemon))
}

#[test]
fn every_command_that_lasts_has_given_up_its_rights() {
    let Some((place, _daemon)) = place() else {
        return;
    };
    let all = lasting(&place);
    let mut failed = Vec::new();
    for page in pages() {
        let name = page
            .trim_start_matches("fingerpost")
            .trim_start_matches('-');
        let is_lasting = all.iter().any(|one| one.page == page);
        if is_lasting == is_brief(name) && !name.is_empty() {
            failed.push(format!("{page} is in neither list, or in both"));
        }
    }
    for one in &all {
        let netns = if one.bare { &place.bare } else { &place.netns };
        let mut command = netns.command(program());
        command.args(&one.arguments);
        if one.page == "fingerpost-route" && !one.arguments.contains(&"--watch".to_owned()) {
            command.args(["--table", "all"]);
        }
        // Nobody reads it: an answer waits.
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let state = tempfile::tempdir().unwrap();
        command.env(common::STATE, state.path());
        let mut process = Child::spawn(command).unwrap();
        if let Err(why) = confined(&mut process, one.kept) {
            failed.push(format!("fingerpost {}: {why}", one.arguments.join(" ")));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    for (line, mut command, kept) in by_net_tools_names(&place, directory.path()) {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Child::spawn(command).unwrap();
        if let Err(why) = confined(&mut process, kept) {
            failed.push(format!("{line}: {why}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
