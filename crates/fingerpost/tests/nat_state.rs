//! What a translation leaves behind for the next one: TCP sessions of real
//! kernels over a stop and a start, a file that is damaged, blocks after a
//! kill at any moment. By `nat run` and by `forward --nat`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{PATIENCE, program};
use lab::{Child, Netns, Random, Sshd, skip, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const TABLES: &str = "\
link lan address 02:00:00:00:00:01
link wan address 02:00:00:00:00:02
addr 10.0.0.1/24 dev lan
addr 198.51.100.1/24 dev wan
";

/// Who translates.
#[derive(Debug, Clone, Copy)]
enum By {
    Run,
    /// So many workers.
    Forward(u16),
}

/// A client and a server with a translation between them, that comes and
/// goes.
struct Trial {
    by: By,
    client: Netns,
    middle: Netns,
    server: Netns,
    directory: TempDir,
}

impl Trial {
    fn new(by: By, rules: &str) -> Option<Self> {
        skip::unless(skip::tun())?;
        let client = skip::unless(Netns::new("natstc"))?;
        let [middle, server] = ["natstm", "natsts"].map(|tag| Netns::new(tag).unwrap());
        for netns in [&middle, &client, &server] {
            netns.ip(&["link", "set", "lo", "up"]).unwrap();
        }
        let directory = TempDir::new().unwrap();
        let trial = Self {
            by,
            client,
            middle,
            server,
            directory,
        };
        fs::write(trial.path("rules"), rules).unwrap();
        fs::write(trial.path("tables"), TABLES).unwrap();
        Some(trial)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A translation to a device, that fails or is to be given its ends.
    fn spawn(&self, outside: &str, options: &[&str]) -> Child {
        let mut command = self.middle.command(program());
        command.current_dir(self.directory.path());
        match self.by {
            By::Run => {
                command.args(["nat", "run", "--json", "--tun", "fpin", outside]);
                command.args(["--rules=rules", "--control=control"]);
            }
            By::Forward(workers) => {
                command.args(["forward", "--json", "--tun=fpin=lan"]);
                command.arg(format!("--tun={outside}=wan"));
                command.args(["--tables=tables", "--nat=rules", "--outside=wan"]);
                command.args(["--nat-control=control", &format!("--workers={workers}")]);
            }
        }
        command
            .args(options)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(self.path("complaints")).unwrap());
        Child::spawn(command).unwrap()
    }

    fn translation(&self, options: &[&str]) -> Child {
        let nat = self.spawn("fpout", options);
        for (device, to) in [("fpin", &self.client), ("fpout", &self.server)] {
            let shown = || self.middle.ip(&["link", "show", device]).ok();
            wait_until(PATIENCE, device, shown).unwrap_or_else(|error| {
                panic!("{error:#}: {}", self.complaints());
            });
            let moved = ["link", "set", device, "netns", to.name()];
            self.middle.ip(&moved).unwrap();
        }
        let hosts: String = (2..10)
            .map(|host| format!("addr add 10.0.0.{host}/24 dev fpin\n"))
            .collect();
        let rest = "link set fpin up\nroute add default dev fpin\n";
        self.client.ip_batch(&format!("{hosts}{rest}")).unwrap();
        self.server
            .ip_batch(
                "addr add 198.51.100.9/24 dev fpout\nlink set fpout up\n\
                 route add default dev fpout\n",
            )
            .unwrap();
        nat
    }

    fn complaints(&self) -> String {
        fs::read_to_string(self.path("complaints")).unwrap()
    }

    fn nat(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.arg("nat").args(arguments);
        command.current_dir(self.directory.path()).output().unwrap()
    }

    /// The answer's lines; none where there is no answer.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let lines = String::from_utf8(self.nat(arguments).stdout).unwrap();
        let rows = lines.lines().map(serde_json::from_str);
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn flows(&self) -> u64 {
        let shown = ["show", "flows", "--json", "--count", "--control=control"];
        let count = || self.rows(&shown).first()?["count"].as_u64();
        wait_until(PATIENCE, "an answer", count).unwrap()
    }

    fn blocks(&self) -> BTreeMap<u64, String> {
        let shown = ["show", "blocks", "--json", "--control=control"];
        let rows = self.rows(&shown);
        let blocks = rows.iter().map(|row| {
            let who = row["subscriber"].as_str().unwrap().to_owned();
            (row["first_port"].as_u64().unwrap(), who)
        });
        blocks.collect()
    }

    fn end(&self, mut nat: Child) -> Value {
        nat.signal(Signal::TERM).unwrap();
        let ended = nat.wait(PATIENCE).unwrap();
        assert!(ended.success(), "{}", self.complaints());
        serde_json::from_reader(nat.process().stdout.take().unwrap()).unwrap()
    }

    /// A TCP session from a host inside, and its end at the server.
    fn session(&self, host: u8) -> (TcpStream, TcpStream) {
        let listening = || TcpListener::bind((SERVER, 0)).unwrap();
        let listener = self.server.inside(listening).unwrap();
        let to = listener.local_addr().unwrap();
        let from = SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 0));
        let near = self.client.inside(|| connected(from, to)).unwrap();
        let (far, _) = listener.accept().unwrap();
        for end in [&near, &far] {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        (near, far)
    }

    /// A host sends to so many ports.
    fn send(&self, host: u8, ports: u16) {
        let sent = self.client.inside(|| {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, host), 4_000)).unwrap();
            for port in 0..ports {
                socket.send_to(b"data", (SERVER, 9_000 + port)).unwrap();
            }
        });
        sent.unwrap();
    }
}

/// A connection from an address of one's own.
fn connected(from: SocketAddr, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &from).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// Something goes over a session both ways.
fn talk((near, far): &mut (TcpStream, TcpStream), word: &[u8; 4]) {
    let mut read = [0; 4];
    near.write_all(word).unwrap();
    far.read_exact(&mut read).unwrap();
    assert_eq!(&read, word);
    far.write_all(word).unwrap();
    near.read_exact(&mut read).unwrap();
    assert_eq!(&read, word);
}

#[test]
fn sessions_outlive_a_stop_and_a_start() {
    let rules = "alias_address 192.0.2.1 192.0.2.2\nport_range 1024-65535\n\
                 subscribers 10.0.0.0/24\nport_blocks size 64 most 4\nstate_file state\n";
    for by in [By::Run, By::Forward(1), By::Forward(2)] {
        let Some(trial) = Trial::new(by, rules) else {
            return;
        };
        let nat = trial.translation(&["--log-journal=journal"]);
        let mut sessions: Vec<_> = (2..6).map(|host| trial.session(host)).collect();
        for session in &mut sessions {
            talk(session, b"once");
        }
        let blocks = trial.blocks();
        assert_eq!((trial.flows(), blocks.len()), (4, 4), "{by:?}");
        trial.end(nat);
        let kept = fs::metadata(trial.path("state")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        let nat = trial.translation(&["--log-journal=journal"]);
        assert_eq!(trial.blocks(), blocks, "{by:?}: {}", trial.complaints());
        for session in &mut sessions {
            talk(session, b"more");
        }
        // Taken up once.
        assert!(!trial.path("state").exists());
        assert_eq!(trial.flows(), 4);
        assert!(trial.complaints().contains("4 flows and 4 blocks go on"));
        // The journal knows of no end in between.
        let (first, who) = blocks.first_key_value().unwrap();
        let found = [1, 2].map(|alias| {
            let asked = format!("192.0.2.{alias}:{first}");
            trial.rows(&["who", &asked, "--json", "--journal=journal"])
        });
        let found: Vec<&Value> = found.iter().flatten().collect();
        assert!(
            found.iter().any(|row| row["subscriber"] == **who),
            "{found:?}"
        );
        trial.end(nat);
    }
}

/// A real ssh session: what is said to it comes back.
struct Ssh {
    _server: Sshd,
    client: Child,
}

impl Ssh {
    fn new(trial: &Trial) -> Self {
        let at = format!("{SERVER}:2222");
        let server = Sshd::start(&trial.server, trial.directory.path(), Some(&at)).unwrap();
        let options = [
            "-p",
            "2222",
            "-b",
            "10.0.0.4",
            "-o",
            "ConnectionAttempts=60",
        ];
        let mut client = server.session(&trial.client, &SERVER.to_string(), &options);
        client
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(trial.path("ssh.log")).unwrap());
        Self {
            _server: server,
            client: Child::spawn(client).unwrap(),
        }
    }

    fn says(&mut self, word: &[u8; 4]) {
        let ssh = self.client.process();
        ssh.stdin.as_mut().unwrap().write_all(word).unwrap();
        let mut read = [0; 4];
        ssh.stdout.as_mut().unwrap().read_exact(&mut read).unwrap();
        assert_eq!(&read, word);
    }
}

#[test]
fn ssh_and_a_transfer_by_iperf3_outlive_a_stop_and_a_start() {
    let rules = "alias_address 192.0.2.1\nport_range 1024-65535\n\
                 subscribers 10.0.0.0/24\nport_blocks size 64\nstate_file state\n";
    let Some(trial) = Trial::new(By::Run, rules) else {
        return;
    };
    let nat = trial.translation(&[]);
    let mut ssh = Ssh::new(&trial);
    ssh.says(b"once");
    let mut server = trial.server.command("iperf3");
    server.args(["-s", "-1", "-B", &SERVER.to_string()]);
    let _server = Child::spawn({
        server.stdout(Stdio::null());
        server
    })
    .unwrap();
    // A bounded stream, so that a machine under load keeps up with it.
    let mut iperf = trial.client.command("iperf3");
    iperf
        .args(["-c", &SERVER.to_string(), "-B", "10.0.0.3", "-J"])
        .args(["-b", "10M", "-t", "12"])
        .stdout(Stdio::piped());
    let listening = || {
        let shown = trial.server.run("ss", &["-Htln", "sport = :5201"]).ok()?;
        (!shown.trim().is_empty()).then_some(())
    };
    wait_until(PATIENCE, "iperf3 to listen", listening).unwrap();
    let iperf = iperf.spawn().unwrap();
    // Its two connections, and ssh's.
    wait_until(PATIENCE, "the connections", || {
        (trial.flows() >= 3).then_some(())
    })
    .unwrap();
    thread::sleep(Duration::from_secs(3));
    trial.end(nat);
    let _nat = trial.translation(&[]);
    ssh.says(b"more");
    let output = iperf.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{}", said["error"]);
    let intervals = said["intervals"].as_array().unwrap();
    let last = &intervals[intervals.len() - 1]["sum"]["bytes"];
    assert!(last.as_u64() > Some(0), "{said}");
    let sent = said["end"]["sum_sent"]["bytes"].as_u64().unwrap();
    let received = said["end"]["sum_received"]["bytes"].as_u64().unwrap();
    assert!(received > 0 && received <= sent, "{said}");
}

#[test]
fn a_start_that_fails_leaves_what_was_kept() {
    let rules = "alias_address 192.0.2.1\nport_range 1024-65535\n\
                 subscribers 10.0.0.0/24\nport_blocks size 64 most 4\nstate_file state\n";
    for by in [By::Run, By::Forward(2)] {
        let Some(trial) = Trial::new(by, rules) else {
            return;
        };
        let nat = trial.translation(&["--log-journal=journal"]);
        let mut session = trial.session(2);
        talk(&mut session, b"once");
        let blocks = trial.blocks();
        trial.end(nat);
        let kept = fs::read(trial.path("state")).unwrap();
        for _ in 0..2 {
            // No TUN device.
            let mut nat = trial.spawn("lo", &["--log-journal=journal"]);
            assert!(!nat.wait(PATIENCE).unwrap().success(), "{by:?}");
            assert_eq!(fs::read(trial.path("state")).unwrap(), kept);
        }
        let nat = trial.translation(&["--log-journal=journal"]);
        assert_eq!(trial.blocks(), blocks, "{by:?}: {}", trial.complaints());
        talk(&mut session, b"more");
        assert!(!trial.path("state").exists());
        trial.end(nat);
    }
}

#[test]
fn a_device_that_fails_leaves_what_there_was() {
    let rules = "alias_address 192.0.2.1\nport_range 1024-65535\nstate_file state\n";
    let Some(trial) = Trial::new(By::Run, rules) else {
        return;
    };
    let mut nat = trial.translation(&["--log-journal=journal"]);
    let mut session = trial.session(2);
    talk(&mut session, b"once");
    trial.server.ip(&["link", "delete", "fpout"]).unwrap();
    assert!(!nat.wait(PATIENCE).unwrap().success());
    assert!(trial.path("state").exists(), "{}", trial.complaints());
    let nat = trial.translation(&["--log-journal=journal"]);
    talk(&mut session, b"more");
    let complaints = trial.complaints();
    assert!(
        complaints.contains("1 flows and 0 blocks go on"),
        "{complaints}"
    );
    trial.end(nat);
}

#[test]
fn a_state_that_cannot_be_taken_up_is_set_aside_and_said() {
    let rules = "alias_address 192.0.2.1\nport_range 1024-65535\n";
    let Some(trial) = Trial::new(By::Run, rules) else {
        return;
    };
    let nat = trial.translation(&["--state=kept"]);
    trial.send(2, 5);
    wait_until(PATIENCE, "flows", || (trial.flows() == 5).then_some(())).unwrap();
    trial.end(nat);
    let whole = fs::read(trial.path("kept")).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let mut later = whole.clone();
    later[6] = 9;
    for (bytes, says) in [
        (&damaged[..], "damaged"),
        (&later, "version 9"),
        (&whole[..whole.len() - 20], "damaged"),
        (b"", "no saved state"),
    ] {
        fs::write(trial.path("kept"), bytes).unwrap();
        let nat = trial.translation(&["--state=kept"]);
        assert_eq!(trial.flows(), 0);
        let complaints = trial.complaints();
        assert!(
            complaints.contains(says) && complaints.contains("kept.aside"),
            "{complaints}"
        );
        assert_eq!(fs::read(trial.path("kept.aside")).unwrap(), bytes);
        trial.end(nat);
    }
    // Where nothing can be written, that is said and the status tells it.
    let mut nat = trial.translation(&["--state=nowhere/kept"]);
    trial.flows();
    nat.signal(Signal::TERM).unwrap();
    assert!(!nat.wait(PATIENCE).unwrap().success());
    assert!(
        trial
            .complaints()
            .contains("saving the state to nowhere/kept")
    );
}

#[test]
fn after_a_kill_nobody_gets_a_block_that_is_anothers() {
    // Four blocks for eight hosts, which none gives back soon.
    let rules = "alias_address 192.0.2.1\nport_range 20032-20287\n\
                 subscribers 10.0.0.0/24\nport_blocks size 64 most 1 hold_down 86400\n";
    for by in [By::Run, By::Forward(2)] {
        let Some(trial) = Trial::new(by, rules) else {
            return;
        };
        let options = match by {
            By::Run => ["--log-journal=journal", "--state=state"],
            By::Forward(_) => ["--log-journal=journal", "--nat-state=state"],
        };
        let mut random = Random::new(7);
        let mut before: BTreeMap<u64, String> = BTreeMap::new();
        for round in 0..5 {
            let mut nat = trial.translation(&options);
            trial.flows();
            // What the journal told of is its subscribers' still.
            let blocks = trial.blocks();
            for (first, who) in &before {
                assert_eq!(blocks.get(first), Some(who), "{by:?}, round {round}");
            }
            for _ in 0..random.below(6) {
                trial.send(2 + random.below(8) as u8, 3);
            }
            thread::sleep(Duration::from_millis(random.below(30) as u64));
            nat.signal(Signal::KILL).unwrap();
            nat.wait(PATIENCE).unwrap();
            before.clear();
            for host in 2..10 {
                let asked = format!("10.0.0.{host}");
                for row in trial.rows(&["who", &asked, "--json", "--journal=journal"]) {
                    before.insert(row["first_port"].as_u64().unwrap(), asked.clone());
                }
            }
        }
        // All of them, by somebody who waits for the record.
        let nat = trial.translation(&options);
        let full = || {
            (2..10).for_each(|host| trial.send(host, 2));
            (trial.blocks().len() == 4).then(|| trial.blocks())
        };
        let blocks = wait_until(PATIENCE, "all blocks", full).unwrap();
        for (first, who) in &before {
            assert_eq!(blocks.get(first), Some(who));
        }
        trial.end(nat);
        // A journal that went on without the state knows better.
        let nat = trial.translation(&["--log-journal=journal"]);
        assert_eq!(trial.flows(), 0);
        trial.end(nat);
        let nat = trial.translation(&options);
        assert_eq!(trial.flows(), 0);
        assert!(trial.complaints().contains("has gone on since"));
        trial.end(nat);
    }
}

#[test]
fn a_forwarders_workers_write_records_and_answer_questions() {
    let rules = "alias_address 192.0.2.1\nport_range 1024-65535\n\
                 subscribers 10.0.0.0/24\nport_blocks size 256 most 1\n\
                 limit sessions 20\n";
    let Some(trial) = Trial::new(By::Forward(2), rules) else {
        return;
    };
    let nat = trial.translation(&["--log-journal=journal"]);
    trial.flows();
    for host in 2..8 {
        trial.send(host, 30);
    }
    let hosts = || (trial.blocks().len() == 6).then_some(());
    wait_until(PATIENCE, "six hosts", hosts).unwrap();
    let top = ["show", "flows", "--top=9", "--json", "--control=control"];
    let all = || {
        let top = trial.rows(&top);
        let are_all = top.len() == 6 && top.iter().all(|row| row["rows"] == 20);
        are_all.then_some(())
    };
    wait_until(PATIENCE, "twenty flows each", all).unwrap();
    let (first, who) = trial.blocks().pop_first().unwrap();
    let asked = format!("192.0.2.1:{}", first + 3);
    let now = trial.rows(&["who", &asked, "--json", "--control=control"]);
    assert_eq!(now[0]["subscriber"], *who);
    let written = || {
        trial
            .rows(&["who", &asked, "--json", "--journal=journal"])
            .pop()
    };
    let written = wait_until(PATIENCE, "the record", written).unwrap();
    assert_eq!(written["subscriber"], *who);
    // Limits change for all workers, what says which of them a packet is of
    // does not.
    let other = rules.replace("sessions 20", "sessions 5");
    fs::write(trial.path("rules"), &other).unwrap();
    let reload = || trial.nat(&["reload", "--control=control"]);
    assert!(reload().status.success());
    fs::write(trial.path("rules"), other.replace("192.0.2.1", "192.0.2.2")).unwrap();
    let refused = String::from_utf8(reload().stderr).unwrap();
    assert!(refused.contains("take a restart"), "{refused}");
    fs::write(trial.path("rules"), other.replace("size 256", "size 9 9")).unwrap();
    let refused = String::from_utf8(reload().stderr).unwrap();
    assert!(refused.contains("rules:4"), "{refused}");
    let cleared = trial.nat(&["clear", "--inside=10.0.0.0/24", "--control=control"]);
    assert!(cleared.status.success());
    assert_eq!(trial.flows(), 0);
    trial.send(2, 30);
    let five = || (trial.flows() == 5).then_some(());
    wait_until(PATIENCE, "five flows", five).unwrap();
    let counted = trial.end(nat);
    let reasons = &counted["nodes"]["nat"]["reasons"];
    assert!(reasons["over-quota"].as_u64() > Some(0), "{counted}");
    assert_eq!(reasons["ports-exhausted"], 0, "{counted}");
    let records = &counted["translation"]["records"][0];
    assert_eq!(records["lost"], 0, "{counted}");
    assert!(records["written"].as_u64() >= Some(8), "{counted}");
}
