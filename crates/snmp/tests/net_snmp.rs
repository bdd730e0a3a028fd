//! net-snmp's tools as askers: each version, each kind of authentication
//! and privacy that they know, against an agent over a few objects on
//! loopback.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]
#![allow(dead_code, reason = "the fixture has more than one user")]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome};
use fingerpost_snmp::config::{Config, User};
use fingerpost_snmp::counters::Counters;
use fingerpost_snmp::mib::DefaultContext;
use fingerpost_snmp::usm::{AuthKey, AuthProtocol, PrivacyKey, PrivacyProtocol, SecurityLevel};
use fingerpost_snmp::view::View;

#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

const AUTH: [&str; 6] = ["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"];
const PRIVACY: [&str; 6] = ["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"];
const SYS_DESCR: &str = ".1.3.6.1.2.1.1.1.0";

/// An agent on a port of loopback, answering until it is dropped.
struct Listening {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counters>>,
}

impl Listening {
    fn start(config: Config) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let pause = Some(Duration::from_millis(20));
        socket.set_read_timeout(pause).expect("a timeout");
        let port = socket.local_addr().expect("an address").port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || answer_all(&socket, config, &stopped));
        Self {
            port,
            stop,
            thread: Some(thread),
        }
    }

    /// What a tool prints, its errors behind it.
    fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(tool);
        command.env("MIBS", "").env("SNMPCONFPATH", "/nonexistent");
        // Options in front of the agent, names behind it.
        let split = arguments
            .iter()
            .position(|argument| argument.starts_with('.'));
        let (options, names) = arguments.split_at(split.unwrap_or(arguments.len()));
        command.args(["-On", "-t", "2", "-r", "1"]).args(options);
        command.arg(format!("127.0.0.1:{}", self.port)).args(names);
        let output = command.output().expect("net-snmp's tools (package snmp)");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn stop(mut self) -> Counters {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a thread");
        thread.join().expect("an agent that did not panic")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn answer_all(socket: &UdpSocket, config: Config, stop: &AtomicBool) -> Counters {
    let mut agent = Agent::new(config).expect("a sound configuration");
    let objects = fixture::objects();
    let start = Instant::now();
    let mut datagram = vec![0; 65_535];
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, from)) = socket.recv_from(&mut datagram) else {
            continue;
        };
        let now_millis = start.elapsed().as_millis() as u64;
        let contexts = DefaultContext(&objects);
        let outcome = agent.answer(&datagram[..len], from.ip(), now_millis, &contexts, &mut out);
        if let Outcome::Answered(len) = outcome {
            socket.send_to(&out[..len], from).expect("sent");
        }
    }
    *agent.counters()
}

fn user(name: &str, auth: AuthProtocol, privacy: Option<PrivacyProtocol>) -> User {
    let engine = fixture::ENGINE_ID;
    let auth_key = AuthKey::from_passphrase(auth, b"correct horse", engine);
    let privacy = privacy.map(|protocol| {
        PrivacyKey::from_passphrase(protocol, auth, b"battery staple", engine).expect("a key")
    });
    User {
        name: name.into(),
        auth: Some(auth_key.expect("a key")),
        privacy,
        minimum_level: SecurityLevel::AuthNoPriv,
        view: View::all(),
        contexts: None,
    }
}

#[test]
fn each_kind_of_key() {
    let mut config = fixture::config();
    for auth in AUTH {
        for privacy in PRIVACY {
            let name = format!("{auth}+{privacy}");
            let auth = auth.parse().expect("a protocol");
            let privacy = privacy.parse().expect("a protocol");
            config.users.push(user(&name, auth, Some(privacy)));
        }
    }
    let listening = Listening::start(config);
    for auth in AUTH {
        for privacy in PRIVACY {
            let name = format!("{auth}+{privacy}");
            let options = ["-v3", "-u", &name, "-l", "authPriv", "-a", auth];
            let keys = ["-A", "correct horse", "-x", privacy, "-X", "battery staple"];
            let text = listening.run("snmpget", &[&options[..], &keys, &[SYS_DESCR]].concat());
            assert!(
                text.contains("a router with a full table"),
                "{name}: {text}"
            );
        }
        let name = format!("{auth}+DES");
        let options = ["-v3", "-u", &name, "-l", "authNoPriv", "-a", auth];
        let keys = ["-A", "correct horse", SYS_DESCR];
        let text = listening.run("snmpget", &[&options[..], &keys].concat());
        assert!(
            text.contains("a router with a full table"),
            "{name}: {text}"
        );
    }
    let counters = listening.stop();
    assert_eq!(counters.usm.wrong_digests, 0);
    assert_eq!(counters.usm.decryption_errors, 0);
    assert_eq!(counters.usm.unknown_engine_ids, 42);
}

#[test]
fn what_v3_refuses() {
    let mut config = fixture::config();
    config.users.push(user(
        "ann",
        AuthProtocol::Sha256,
        Some(PrivacyProtocol::Aes128),
    ));
    config.users.push(user("bob", AuthProtocol::Sha256, None));
    let listening = Listening::start(config);
    let ask = |user: &str, level: &str, auth: &str, privacy: &str, more: &[&str]| {
        let options = ["-v3", "-u", user, "-l", level, "-a", "SHA-256", "-A", auth];
        let privacy = ["-x", "AES", "-X", privacy];
        listening.run(
            "snmpget",
            &[&options[..], &privacy, more, &[SYS_DESCR]].concat(),
        )
    };
    let (auth, privacy) = ("correct horse", "battery staple");
    for (text, wanted) in [
        (
            ask("eve", "authPriv", auth, privacy, &[]),
            "Unknown user name",
        ),
        (
            ask("ann", "authPriv", "wrong horse", privacy, &[]),
            "Authentication failure",
        ),
        (
            ask("ann", "authPriv", auth, "wrong staple", &[]),
            "Decryption error",
        ),
        (
            ask("bob", "authPriv", auth, privacy, &[]),
            "Unsupported security level",
        ),
        (
            ask("ann", "noAuthNoPriv", auth, privacy, &[]),
            "authorizationError",
        ),
        (
            ask("ann", "authPriv", auth, privacy, &["-n", "vrf"]),
            "bad context",
        ),
        (
            ask("ann", "authPriv", auth, privacy, &[]),
            "a router with a full table",
        ),
    ] {
        let found = text.to_lowercase().contains(&wanted.to_lowercase());
        assert!(found, "{wanted}: {text}");
    }
    let counters = listening.stop();
    assert!(counters.usm.unknown_user_names >= 1);
    assert!(counters.usm.wrong_digests >= 1);
    assert!(counters.usm.decryption_errors >= 1);
    assert!(counters.usm.unsupported_sec_levels >= 1);
    assert!(counters.unknown_contexts >= 1);
}

/// Lines of a tool's output that are bindings.
fn bindings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(" = ")).collect()
}

#[test]
fn walks_of_each_version_see_the_same() {
    let listening = Listening::start(fixture::config());
    let objects = fixture::objects();
    let v2c = listening.run("snmpwalk", &["-v2c", "-c", "public", ".1.3"]);
    let all = bindings(&v2c);
    // The tool says at its end that there is no more.
    assert!(v2c.contains("No more variables"), "{v2c}");
    assert_eq!(
        all.iter().filter(|line| !line.contains("No more")).count(),
        objects.0.len()
    );
    for repetitions in ["-Cr1", "-Cr7", "-Cr1000"] {
        let options = ["-v2c", "-c", "public", repetitions, ".1.3"];
        assert_eq!(
            listening.run("snmpbulkwalk", &options),
            v2c,
            "{repetitions}"
        );
    }
    let v3 = ["-v3", "-u", "clear", "-l", "noAuthNoPriv", "-Cr25", ".1.3"];
    assert_eq!(listening.run("snmpbulkwalk", &v3), v2c);
    let v1 = listening.run("snmpwalk", &["-v1", "-c", "public", ".1.3"]);
    let without: Vec<&str> = all
        .iter()
        .copied()
        .filter(|line| !line.contains("Counter64") && !line.contains("No more"))
        .collect();
    assert_eq!(bindings(&v1), without);
}

#[test]
fn nothing_is_written() {
    let listening = Listening::start(fixture::config());
    for (version, wanted) in [("-v1", "noSuchName"), ("-v2c", "notWritable")] {
        let options = [version, "-c", "public", ".1.3.6.1.2.1.1.1.0", "s", "mine"];
        let text = listening.run("snmpset", &options);
        assert!(text.contains(wanted), "{text}");
    }
    assert_eq!(listening.stop().snmp.in_bad_community_uses, 2);
}
