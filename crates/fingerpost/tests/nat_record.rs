//! What `fingerpost nat run` writes for the record, read by collectors that
//! others wrote (nfcapd, rsyslog over TLS), its journal asked by `nat who`,
//! and its control socket.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{PATIENCE, assert_confined, program, put_clients_behind};
use lab::{Child, Netns, skip, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const RULES: &str = "alias_address 192.0.2.1\nport_range 1024-65535\n\
                     subscribers 10.0.0.0/24\n\
                     port_blocks size 256 most 2 hold_down 1\nlimit sessions 20\n\
                     timeout udp_unreplied 2\n";

/// A client behind a translation; what goes out of it gets nowhere.
struct Trial {
    client: Netns,
    middle: Netns,
    directory: TempDir,
}

impl Trial {
    fn new() -> Option<Self> {
        skip::unless(skip::tun())?;
        let client = skip::unless(Netns::new("natrecclient"))?;
        let middle = Netns::new("natrec").unwrap();
        middle.ip(&["link", "set", "lo", "up"]).unwrap();
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("rules"), RULES).unwrap();
        Some(Self {
            client,
            middle,
            directory,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn translation(&self, options: &[&str]) -> Child {
        let mut command = self.middle.command(program());
        command
            .args(["nat", "run", "--json", "--tun", "fpin", "fpout", "--rules"])
            .arg(self.path("rules"))
            .arg("--control")
            .arg(self.path("control"))
            .args(options)
            .stdout(Stdio::piped());
        let nat = Child::spawn(command).unwrap();
        put_clients_behind(&self.middle, &self.client, 5);
        nat
    }

    /// A host sends to so many ports.
    fn send(&self, host: u8, ports: u16) {
        let sent = self.client.inside(|| {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, host), 4_000)).unwrap();
            for port in 0..ports {
                socket.send_to(b"data", (REMOTE, 9_000 + port)).unwrap();
            }
        });
        sent.unwrap();
    }

    fn nat(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.arg("nat").args(arguments);
        if !arguments.contains(&"--journal") {
            command.arg("--control").arg(self.path("control"));
        }
        command.output().unwrap()
    }

    /// The answer's lines, of a question that is answered.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.nat(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let rows = lines.lines().map(serde_json::from_str);
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn count(&self, table: &str, filter: &[&str]) -> u64 {
        let arguments = [&["show", table, "--json", "--count"], filter].concat();
        self.rows(&arguments)[0]["count"].as_u64().unwrap()
    }

    fn end(&self, mut nat: Child) -> Value {
        nat.signal(Signal::INT).unwrap();
        assert!(nat.wait(PATIENCE).unwrap().success());
        serde_json::from_reader(nat.process().stdout.take().unwrap()).unwrap()
    }
}

#[test]
fn what_it_has_is_shown_ended_and_limited_anew_while_it_runs() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let mut nat = trial.translation(&[]);
    // Who answers has given up what it needs no more; before that the thread
    // may not have run yet.
    trial.count("flows", &[]);
    assert_confined(nat.process().id(), 0);
    trial.send(2, 5);
    trial.send(3, 30);
    // Twenty at a time, as the rules say.
    wait_until(PATIENCE, "the flows", || {
        (trial.count("flows", &[]) >= 20).then_some(())
    })
    .unwrap();
    let top = trial.rows(&["show", "flows", "--top", "1", "--json"]);
    assert_eq!(top[0]["inside"], "10.0.0.3", "{top:?}");
    assert!(
        (1..=20).contains(&top[0]["rows"].as_u64().unwrap()),
        "{top:?}"
    );
    let blocks = trial.rows(&["show", "blocks", "--json", "--inside", "10.0.0.3"]);
    assert_eq!(blocks.len(), 1, "{blocks:?}");
    let first = blocks[0]["first_port"].as_u64().unwrap();
    let asked = format!("192.0.2.1:{}", first + 7);
    let who = trial.rows(&["who", &asked, "--json"]);
    assert_eq!(who[0]["subscriber"], "10.0.0.3");
    let limited = ["show", "flows", "--json", "--limit", "2"];
    assert_eq!(trial.rows(&limited).len(), 2);
    let pools = trial.rows(&["show", "pools", "--json"]);
    assert_eq!(pools[0]["alias"], "192.0.2.1");
    assert!(!trial.rows(&["show", "helpers", "--json"]).is_empty());
    let subscribers = trial.rows(&["show", "subscribers", "--json", "--alias", "192.0.2.1"]);
    assert!(subscribers.len() >= 2);
    for (arguments, says) in [
        (
            &["show", "pools", "--remote", "10.0.0.1"][..],
            "--remote is of no use",
        ),
        (&["clear"], "say which flows"),
        (
            &["who", "192.0.2.1:2000", "--rules", "nowhere"],
            "cannot be used with",
        ),
        (
            &["show", "flows", "--protocol", "sctq"],
            "tcp, udp, icmp, gre or a number",
        ),
    ] {
        let output = trial.nat(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && complaint.contains(says),
            "{complaint}"
        );
    }
    // A wrong line leaves all as it was; another limit comes without an end.
    fs::write(trial.path("rules"), format!("{RULES}limit sesions 5\n")).unwrap();
    let output = trial.nat(&["reload"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("sesions"));
    let more = format!("{RULES}limit sessions 3\ntimeout udp_unreplied 3600\n");
    fs::write(trial.path("rules"), more).unwrap();
    assert!(trial.nat(&["reload"]).status.success());
    assert!(trial.nat(&["clear", "--all"]).status.success());
    assert_eq!(trial.count("flows", &[]), 0);
    trial.send(4, 30);
    wait_until(PATIENCE, "the flows", || {
        (trial.count("flows", &["--inside", "10.0.0.4"]) == 3).then_some(())
    })
    .unwrap();
    assert!(
        trial
            .nat(&["clear", "--inside", "10.0.0.4"])
            .status
            .success()
    );
    assert_eq!(trial.count("flows", &["--inside", "10.0.0.4"]), 0);
    let counted = trial.end(nat);
    assert!(counted["out"]["over_quota"].as_u64() > Some(0), "{counted}");
    let output = trial.nat(&["show", "flows"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nat run --control"));
}

/// Rules that change limits, redirects and addresses are read again and again
/// while a host sends: each of its packets passes.
#[test]
fn rules_read_again_under_load_lose_no_packet() {
    const PACKETS: u64 = 600;
    let Some(trial) = Trial::new() else {
        return;
    };
    let nat = trial.translation(&[]);
    trial.count("flows", &[]);
    let reloads = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let sent = trial.client.inside(|| {
                let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, 2), 4_000)).unwrap();
                for _ in 0..PACKETS {
                    socket.send_to(b"data", (REMOTE, 9_000)).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            sent.unwrap();
        });
        let mut reloads = 0;
        while !sending.is_finished() {
            let other = ["limit sessions 7\n", "redirect_port udp 10.0.0.3:9 9\n"];
            let more = format!("{RULES}{}", other[reloads % 2]);
            fs::write(trial.path("rules"), more).unwrap();
            let output = trial.nat(&["reload"]);
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{complaint}");
            reloads += 1;
        }
        sending.join().unwrap();
        reloads
    });
    assert!(reloads > 2, "{reloads} reloads");
    let flows = trial.rows(&["show", "flows", "--json", "--inside", "10.0.0.2"]);
    assert_eq!(flows.len(), 1, "the same flow: {flows:?}");
    let counted = trial.end(nat);
    assert_eq!(counted["out"]["translated"], PACKETS, "{counted}");
}

#[test]
fn a_journal_says_who_it_was() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let journal = trial.path("journal");
    let journal = journal.to_str().unwrap();
    let nat = trial.translation(&["--log-journal", journal]);
    trial.send(2, 3);
    let inside = || {
        let rows = trial.nat(&["who", "10.0.0.2", "--json", "--journal", journal]);
        let line = String::from_utf8(rows.stdout).unwrap();
        serde_json::from_str::<Value>(line.lines().next()?).ok()
    };
    let block = wait_until(PATIENCE, "the block in the journal", inside).unwrap();
    let asked = format!("192.0.2.1:{}", block["last_port"]);
    let who = trial.rows(&["who", &asked, "--json", "--journal", journal]);
    assert_eq!(who[0]["subscriber"], "10.0.0.2");
    assert_eq!(who[0]["by"], "block-taken");
    let when = who[0]["at"].as_str().unwrap().to_owned();
    // Nobody had it before.
    let before = [
        "who",
        &asked,
        "--journal",
        journal,
        "--at",
        "2001-01-01T00:00:00Z",
    ];
    let output = trial.nat(&before);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the journal begins"));
    // Two seconds without an answer, and one of rest: it is given back.
    wait_until(PATIENCE, "the end in the journal", || {
        inside().is_none().then_some(())
    })
    .unwrap();
    let then = trial.rows(&["who", &asked, "--json", "--journal", journal, "--at", &when]);
    assert_eq!(then[0]["subscriber"], "10.0.0.2");
    // A second one who writes there is refused, and the first one goes on.
    let mut second = trial.middle.command(program());
    second.args(["nat", "run", "--tun", "fpin2", "fpout2", "--alias"]);
    second.args(["192.0.2.2", "--log-journal", journal]);
    let refused = second.output().unwrap();
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(complaint.contains("another translation"), "{complaint}");
    assert!(!refused.status.success());
    let counted = trial.end(nat);
    let written = counted["records"][0]["written"].as_u64().unwrap();
    assert!(written >= 4, "{counted}");
    assert_eq!(counted["records"][0]["lost"], 0, "{counted}");
}

/// Runs a program to its end.
fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {complaint}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn nfcapd_reads_blocks_and_sessions_by_ipfix() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let flows = trial.path("flows");
    fs::create_dir(&flows).unwrap();
    let mut command = trial.middle.command("nfcapd");
    command
        .args(["-b", "127.0.0.1", "-p", "4739", "-w"])
        .arg(&flows)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut nfcapd = Child::spawn(command).unwrap();
    wait_until(PATIENCE, "nfcapd", || {
        let shown = trial.middle.run("ss", &["-Hlun"]).unwrap();
        shown.contains(":4739").then_some(())
    })
    .unwrap();
    let nat = trial.translation(&["--log-ipfix", "127.0.0.1:4739", "--log-sessions"]);
    trial.send(2, 3);
    // The subscriber stays until another one comes: it was there.
    wait_until(PATIENCE, "the blocks' end", || {
        let are_over = trial.count("blocks", &[]) == 0 && trial.count("flows", &[]) == 0;
        (are_over && trial.count("subscribers", &[]) > 0).then_some(())
    })
    .unwrap();
    let counted = trial.end(nat);
    assert_eq!(counted["records"][0]["lost"], 0, "{counted}");
    nfcapd.signal(Signal::TERM).unwrap();
    nfcapd.wait(PATIENCE).unwrap();
    let shown = run(
        trial.directory.path(),
        "nfdump",
        &["-R", "flows", "-q", "-o", "raw"],
    );
    for wanted in ["10.0.0.2", "192.0.2.1", "198.51.100.9"] {
        assert!(shown.contains(wanted), "{wanted} in {shown}");
    }
}

/// Somebody who signs, and a certificate for 127.0.0.1 that was signed.
fn certificate(directory: &Path) {
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    let ca = [
        "req", "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
    ];
    run(
        directory,
        "openssl",
        &[&ca[..], &key, &["-subj", "/CN=a test's authority"]].concat(),
    );
    let own = [
        "req",
        "-keyout",
        "key.pem",
        "-out",
        "own.csr",
        "-subj",
        "/CN=localhost",
    ];
    run(directory, "openssl", &[&own[..], &key].concat());
    fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let signed = [
        "x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
    ];
    let to = [
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        "cert.pem",
    ];
    run(directory, "openssl", &[&signed[..], &to].concat());
}

#[test]
fn rsyslog_reads_messages_over_tls_tcp_and_udp() {
    let Some(trial) = Trial::new() else {
        return;
    };
    let directory = trial.directory.path();
    certificate(directory);
    let here = directory.display();
    let configuration = format!(
        "global(workDirectory=\"{here}\" DefaultNetstreamDriverCAFile=\"{here}/ca.pem\"\n\
         DefaultNetstreamDriverCertFile=\"{here}/cert.pem\"\n\
         DefaultNetstreamDriverKeyFile=\"{here}/key.pem\")\n\
         module(load=\"imtcp\")\nmodule(load=\"imudp\")\n\
         template(name=\"all\" type=\"string\" string=\"%inputname% %app-name% %msgid% %structured-data%\\n\")\n\
         input(type=\"imtcp\" port=\"6514\" name=\"tls\" StreamDriver.Name=\"gtls\" StreamDriver.Mode=\"1\" StreamDriver.AuthMode=\"anon\")\n\
         input(type=\"imtcp\" port=\"6515\" name=\"tcp\")\n\
         input(type=\"imudp\" port=\"6516\" name=\"udp\")\n\
         action(type=\"omfile\" file=\"{here}/messages\" template=\"all\")\n"
    );
    fs::write(trial.path("rsyslog.conf"), configuration).unwrap();
    let mut command = trial.middle.command("rsyslogd");
    command
        .args(["-n", "-i"])
        .arg(trial.path("pid"))
        .arg("-f")
        .arg(trial.path("rsyslog.conf"))
        .stdout(Stdio::null());
    let _rsyslog = Child::spawn(command).unwrap();
    wait_until(PATIENCE, "rsyslogd", || {
        let tcp = trial.middle.run("ss", &["-Hltun"]).unwrap();
        let all = [":6514", ":6515", ":6516"]
            .iter()
            .all(|port| tcp.contains(port));
        all.then_some(())
    })
    .unwrap();
    let ca = trial.path("ca.pem");
    let nat = trial.translation(&[
        "--log-syslog",
        "tls://127.0.0.1:6514",
        "--log-syslog",
        "tcp://127.0.0.1:6515",
        "--log-syslog",
        "udp://127.0.0.1:6516",
        "--log-syslog",
        "tcp://127.0.0.1:6999",
        "--log-ca",
        ca.to_str().unwrap(),
    ]);
    trial.send(2, 30);
    let messages = || fs::read_to_string(trial.path("messages")).unwrap_or_default();
    for input in ["tls", "tcp", "udp"] {
        for what in [
            "started",
            "block-taken",
            "quota-sessions",
            "block-given-back",
        ] {
            let head = format!("{input} fingerpost-nat {what}");
            let found = || messages().contains(&head).then_some(());
            wait_until(PATIENCE, &head, found).unwrap_or_else(|_| panic!("{head}: {}", messages()));
        }
    }
    assert!(messages().contains("inside=\"10.0.0.2/32\" alias=\"192.0.2.1\" first=\""));
    // Where nobody listens, records are lost in the end, and nothing waits.
    let counted = trial.end(nat);
    let dead = &counted["records"][3];
    assert_eq!(dead["written"], 0, "{counted}");
    assert!(
        dead["failures"].as_u64() > Some(0) && dead["lost"].as_u64() > Some(0),
        "{counted}"
    );
}
