//! The life of a daemon: start, reload, competition, end.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use common::{
    Daemon, PATIENCE, STATE, assert_confined, capabilities, fingerpost, furnished, inode, program,
    says, socket,
};
use lab::{Child, wait_until};
use rustix::process::Signal;
use serde_json::Value;

fn status(netns: &lab::Netns) -> Value {
    serde_json::from_str(&says(netns, &["status", "--json"])).unwrap()
}

#[test]
fn it_says_what_it_mirrors_and_leaves_nothing_behind() {
    let Some(netns) = furnished("life") else {
        return;
    };
    let daemon = Daemon::up(&netns, &[]);
    let socket = socket(&netns);
    for text in [
        "links",
        "neighbours",
        "routes",
        "Memory",
        "Try next",
        &socket.to_string_lossy(),
    ] {
        assert!(daemon.screen.contains(text), "{text}:\n{}", daemon.screen);
    }
    let metadata = fs::metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o666);
    let directory = fs::metadata("/run/fingerpost").unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o755);
    let status = status(&netns);
    assert_eq!(status["mirror"]["phase"], "live");
    assert_eq!(status["mirror"]["drift"], 0);
    assert_eq!(status["tables"][0]["table"], "links");
    assert_eq!(status["tables"][0]["rows"], 4);
    daemon.end();
    assert!(!socket.exists());
    assert!(!socket.with_extension("lock").exists());
}

#[test]
fn sigint_ends_it_as_well() {
    let Some(netns) = furnished("int") else {
        return;
    };
    let mut daemon = Daemon::up(&netns, &[]);
    daemon.process.signal(Signal::INT).unwrap();
    assert!(daemon.process.wait(PATIENCE).unwrap().success());
    assert!(!socket(&netns).exists());
}

#[test]
fn the_service_manager_is_told() {
    let Some(netns) = furnished("notify") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = netns.command(program());
    command.arg("up").env("NOTIFY_SOCKET", &path);
    let daemon = Daemon::spawn(command);
    let mut octets = [0; 256];
    let len = manager.recv(&mut octets).unwrap();
    assert_eq!(String::from_utf8_lossy(&octets[..len]).trim(), "READY=1");
    daemon.end();
    let len = manager.recv(&mut octets).unwrap();
    assert_eq!(String::from_utf8_lossy(&octets[..len]).trim(), "STOPPING=1");
}

#[test]
fn a_second_daemon_is_refused_and_told_by_whom() {
    let Some(netns) = furnished("two") else {
        return;
    };
    let first = Daemon::up(&netns, &[]);
    let second = fingerpost(&netns, &["up"]);
    assert_eq!(second.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&second.stderr);
    let pid = format!("(pid {})", first.process.id());
    assert!(complaint.contains(&pid), "{complaint}");
    assert_eq!(status(&netns)["pid"], first.process.id());
}

#[test]
fn after_a_kill_the_kernel_answers_and_the_next_daemon_takes_over() {
    let Some(netns) = furnished("kill") else {
        return;
    };
    let mut daemon = Daemon::up(&netns, &[]);
    daemon.process.signal(Signal::KILL).unwrap();
    daemon.process.wait(PATIENCE).unwrap();
    assert!(socket(&netns).exists());
    assert!(says(&netns, &["neigh"]).contains("10.9.0.7"));
    let refused = fingerpost(&netns, &["status"]);
    assert_eq!(refused.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("fingerpost up"), "{complaint}");
    let next = Daemon::up(&netns, &[]);
    assert!(next.log().contains("left behind"), "{}", next.log());
    assert_eq!(status(&netns)["pid"], next.process.id());
    next.end();
    assert!(!socket(&netns).exists());
}

#[test]
fn a_namespace_deleted_under_it_is_dropped_with_a_word() {
    let Some(host) = furnished("host") else {
        return;
    };
    let Some(guest) = furnished("guest") else {
        return;
    };
    let Some(stays) = furnished("stays") else {
        return;
    };
    let arguments = ["--netns", guest.name(), "--netns", stays.name()];
    let daemon = Daemon::up(&host, &arguments);
    assert!(says(&guest, &["status"]).contains(guest.name()));
    let (name, socket) = (guest.name().to_owned(), socket(&guest));
    drop(guest);
    daemon.logs(&format!("namespace {name} was deleted"));
    wait_until(PATIENCE, "the socket to go", || {
        (!socket.exists()).then_some(())
    })
    .unwrap();
    assert_eq!(status(&stays)["netns"], stays.name());
    let again = lab::Netns::named(&name).unwrap();
    daemon.logs(&format!("namespace {name} is mirrored"));
    assert_eq!(status(&again)["netns"], name);
}

#[test]
fn all_namespaces_are_mirrored_as_they_come_and_go() {
    let Some(host) = furnished("all") else { return };
    // Sockets of its own: other tests' daemons mirror other namespaces.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    let sockets = directory.path().join("sockets");
    let text = format!("all_netns = true\n[control]\ndirectory = {sockets:?}\n");
    fs::write(&file, text).unwrap();
    let daemon = Daemon::up(&host, &["--config", file.to_str().unwrap()]);
    let pid = |netns: &lab::Netns| {
        let socket = sockets.join(format!("{}.sock", inode(netns)));
        let socket = socket.to_str().unwrap();
        let text = says(netns, &["status", "--json", "--socket", socket]);
        serde_json::from_str::<Value>(&text).unwrap()["pid"].clone()
    };
    assert_eq!(pid(&host), daemon.process.id());
    let Some(comes) = furnished("comes") else {
        return;
    };
    daemon.logs(&format!("namespace {} is mirrored", comes.name()));
    assert_eq!(pid(&comes), daemon.process.id());
    let name = comes.name().to_owned();
    drop(comes);
    daemon.logs(&format!("namespace {name} was deleted"));
    daemon.end();
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0);
}

#[test]
fn a_configuration_is_read_again_and_a_wrong_one_changes_nothing() {
    let Some(netns) = furnished("hup") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "log = \"info\"\n").unwrap();
    let daemon = Daemon::up(&netns, &["--config", path]);
    fs::write(&file, "log = \"info\"\n\n[limits]\nroots = 1\n").unwrap();
    daemon.process.signal(Signal::HUP).unwrap();
    daemon.logs("the configuration of before stands");
    daemon.logs(&format!("{path}:4: `limits.roots`: unknown field"));
    assert_eq!(status(&netns)["mirror"]["phase"], "live");
    // Right in itself, with a token that is not there.
    fs::write(&file, "[http]\ntoken_file = '/nonexistent'\n").unwrap();
    daemon.process.signal(Signal::HUP).unwrap();
    daemon.logs("[http] goes on as before: put it right");
    assert!(!daemon.log().contains("was read again"), "{}", daemon.log());
    fs::write(&file, "log = \"debug\"\n").unwrap();
    daemon.process.signal(Signal::HUP).unwrap();
    daemon.logs("the configuration was read again");
    says(&netns, &["link"]);
    daemon.logs("answered");
    daemon.end();
}

#[test]
fn a_limit_that_is_raised_lets_in_what_had_no_place() {
    let Some(netns) = furnished("limit") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    let limit = |rows: u32| fs::write(&file, format!("[limits]\nneighbours = {rows}\n")).unwrap();
    limit(1);
    let daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    let permanent = ["neigh", "--state", "permanent", "--count"];
    for last in 1..=3 {
        let address = format!("10.9.0.{last}");
        let mac = format!("02:00:00:00:01:{last:02}");
        netns
            .ip(&["neigh", "replace", &address, "lladdr", &mac, "dev", "br0"])
            .unwrap();
    }
    wait_until(PATIENCE, "a table that is full", || {
        status(&netns)["mirror"]["full"].as_str().map(str::to_owned)
    })
    .unwrap();
    let all = says(&netns, &[&permanent[..], &["--direct"]].concat());
    limit(1000);
    daemon.process.signal(Signal::HUP).unwrap();
    wait_until(PATIENCE, "all neighbours", || {
        (says(&netns, &permanent) == all).then_some(())
    })
    .unwrap();
    assert!(status(&netns)["mirror"]["full"].is_null());
    daemon.end();
}

#[test]
fn a_table_at_its_limit_is_told_wherever_rows_are_asked_for() {
    let Some(netns) = furnished("lacks") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    fs::write(&file, "[limits]\nroutes = 5\n").unwrap();
    let daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    let socket = socket(&netns);
    let count = ["route", "--count", "table", "all"];
    let run = |arguments: &[&str]| {
        let output = fingerpost(&netns, arguments);
        let out = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), out, error)
    };
    // The kernel answers instead, and that is said.
    let all = says(&netns, &[&count[..], &["--direct"]].concat());
    let (code, rows, error) = run(&count);
    assert_eq!((code, rows), (0, all.trim().to_owned()));
    let how = "the daemon's tables are degraded: routes miss rows";
    assert_eq!(error, format!("fingerpost: the kernel answers: {how}\n"));
    // Who asks the daemon alone is told by status 3.
    let at = ["--socket", socket.to_str().unwrap()];
    let (code, rows, error) = run(&[&count[..], &at].concat());
    assert_eq!((code, &*rows), (3, "5"));
    assert!(
        error.contains("may lack rows") && error.contains(how),
        "{error}"
    );
    let get = ["route", "get", "10.2.0.9"];
    assert_eq!(run(&get).0, 0);
    assert_ne!(run(&[&get[..], &at].concat()).0, 0);
    // A table that has all its rows is told by a daemon that lacks others.
    let status = status(&netns);
    assert_eq!(
        status["mirror"]["incomplete"],
        serde_json::json!(["routes"])
    );
    assert!(status["mirror"]["refused"].as_u64().unwrap() > 0);
    let top = says(&netns, &["top", "--once", "--json"]);
    let top: Value = serde_json::from_str(&top).unwrap();
    let tables = top["tables"].as_array().unwrap();
    let lacking = tables.iter().filter(|table| table["complete"] == false);
    let lacking: Vec<_> = lacking.map(|table| &table["table"]).collect();
    assert_eq!(lacking, ["routes"]);
    daemon.end();
}

/// Descriptors that the daemon of many namespaces may have, and how many it
/// mirrors with them.
const FEW: (usize, usize) = (160, 21);

#[test]
fn namespaces_that_have_no_place_are_named_and_the_others_are_mirrored() {
    const FOUND: usize = 60;
    let Some(host) = furnished("many") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let sockets = directory.path().join("sockets");
    let file = directory.path().join("fingerpost.toml");
    fs::write(&file, format!("[control]\ndirectory = {sockets:?}\n")).unwrap();
    // Names of its own, which go with the daemon.
    let (limit, most) = FEW;
    let names: String = (0..FOUND).map(|at| format!("netns add n{at}\n")).collect();
    fs::write(directory.path().join("names"), names).unwrap();
    let script = format!(
        "mkdir -p /run/netns && mount -t tmpfs names /run/netns && ip -batch {names} && \
         exec prlimit --nofile={limit}:{limit} {program} up --all-netns --config {config}",
        names = directory.path().join("names").display(),
        program = program(),
        config = file.display()
    );
    let mut command = host.command("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let daemon = Daemon::spawn(command);
    let listening = || {
        let entries = fs::read_dir(&sockets).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_socket = |path: &std::path::PathBuf| path.extension().is_some_and(|of| of == "sock");
        paths.filter(is_socket).collect::<Vec<_>>()
    };
    assert_eq!(listening().len(), most);
    for socket in listening() {
        let count = ["link", "--count", "--socket", socket.to_str().unwrap()];
        assert!(says(&host, &count).trim().parse::<usize>().unwrap() > 0);
    }
    let refused =
        format!("is not mirrored: {limit} descriptors are allowed, which is enough for {most}");
    // With the daemon's own namespace.
    let named =
        (0..FOUND).filter(|at| daemon.log().contains(&format!("namespace n{at} {refused}")));
    assert_eq!(named.count(), FOUND + 1 - most);
    // What a namespace takes: two descriptors and a thread; a third is kept
    // for its counters, and comes when they are asked for.
    let entries = |of: &str| {
        let path = format!("/proc/{}/{of}", daemon.process.id());
        fs::read_dir(path).unwrap().count()
    };
    let (descriptors, threads) = (entries("fd"), entries("task"));
    assert!(descriptors <= 2 * most + 24, "{descriptors} descriptors");
    assert!(threads <= most + 12, "{threads} threads");
    // One that goes makes room.
    let id = daemon.process.id().to_string();
    let enter = ["-t", &id, "-m", "ip", "netns", "delete", "n0"];
    assert!(
        Command::new("nsenter")
            .args(enter)
            .status()
            .unwrap()
            .success()
    );
    daemon.logs("namespace n0 was deleted");
    wait_until(PATIENCE, "another in its place", || {
        let came = (1..FOUND).any(|at| {
            daemon
                .log()
                .contains(&format!("namespace n{at} is mirrored"))
        });
        came.then_some(())
    })
    .unwrap();
    daemon.end();
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0);
}

#[test]
fn a_wrong_configuration_is_named_by_check_and_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    let path = file.to_str().unwrap();
    for (text, code, says) in [
        ("netns = []\n", 0, ": all right"),
        ("\nnetns = 7\n", 1, ":2: `netns`: invalid type"),
        (
            "[mirror]\nscan_interval_secs = 0\n",
            1,
            ":2: `mirror.scan_interval_secs`: 0 is not",
        ),
        ("[[[\n", 1, ":1: "),
    ] {
        fs::write(&file, text).unwrap();
        let checked = Command::new(program())
            .args(["check", path])
            .output()
            .unwrap();
        let said = [checked.stdout, checked.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(checked.status.code(), Some(code), "{said}");
        assert!(said.contains(&format!("{path}{says}")), "{said}");
        if code != 0 {
            let up = Command::new(program())
                .args(["up", "--config", path])
                .output()
                .unwrap();
            assert_eq!(up.status.code(), Some(1));
            assert!(String::from_utf8_lossy(&up.stderr).contains(says));
        }
    }
}

#[test]
fn privileges_are_given_up() {
    let Some(netns) = furnished("caps") else {
        return;
    };
    let daemon = Daemon::up(&netns, &[]);
    let of = |pid: u32| capabilities(Path::new(&format!("/proc/{pid}/status")));
    // CAP_NET_ADMIN is 12, CAP_SYS_ADMIN 21.
    assert_eq!(of(daemon.process.id()) & !(1 << 12), 0);
    assert_confined(daemon.process.id(), 1 << 12);
    daemon.end();
    let other = Daemon::up(&netns, &["--netns", netns.name()]);
    assert_eq!(of(other.process.id()) & !(1 << 12 | 1 << 21), 0);
    let mut client = std::os::unix::net::UnixStream::connect(socket(&netns)).unwrap();
    client.write_all(b"{").unwrap();
    // The thread that talks with a client has nothing.
    let tasks = format!("/proc/{}/task", other.process.id());
    let of_client = wait_until(PATIENCE, "the client's thread", || {
        fs::read_dir(&tasks).unwrap().flatten().find_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let held = capabilities(&task.path().join("status"));
            (name.trim() == "client" && held == 0).then_some(held)
        })
    });
    assert_eq!(of_client.unwrap(), 0);
}

#[test]
fn a_client_that_says_nothing_does_not_stop_the_end() {
    let Some(netns) = furnished("quiet") else {
        return;
    };
    let daemon = Daemon::up(&netns, &[]);
    let _quiet = std::os::unix::net::UnixStream::connect(socket(&netns)).unwrap();
    let mut watch = netns.command(program());
    watch.args(["link", "--watch"]);
    let mut watch = Child::spawn(watch).unwrap();
    wait_until(PATIENCE, "both clients", || {
        // Both and the one that asks.
        (status(&netns)["answered"]["clients"] == 3).then_some(())
    })
    .unwrap();
    daemon.end();
    watch.wait(PATIENCE).unwrap();
}

#[test]
fn a_feed_of_the_command_line_that_is_another_in_the_configuration_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fingerpost.toml");
    for (option, feed, kind) in [("--bmp", "bmp", "fpm"), ("--fpm", "frr", "bmp")] {
        let text = format!("[feed.{feed}]\nkind = '{kind}'\nlisten = '127.0.0.1:0'\n");
        fs::write(&file, text).unwrap();
        let up = Command::new(program())
            .args(["up", "--config", file.to_str().unwrap()])
            .args([option, "127.0.0.1:0"])
            .env(STATE, directory.path())
            .env("XDG_RUNTIME_DIR", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        assert_eq!(up.status.code(), Some(1), "{said}");
        let told = format!("{option} is for the feed {feed}, which is of another kind");
        assert!(said.contains(&told), "{said}");
    }
}
