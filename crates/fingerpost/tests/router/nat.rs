//! `fingerpost router --nat`: translation at XDP and by the engine beside it,
//! with real sockets on both sides.
//!
//! ```text
//! inside 10.0.0.2 --- 10.0.0.1 router 192.0.2.1 --- 192.0.2.2 outside
//! ```
//!
//! 198.51.100.2 is outside's too, farther away.

#[path = "nat/ends.rs"]
mod ends;
#[path = "nat/flows.rs"]
mod flows;
#[path = "nat/host.rs"]
mod host;
#[path = "nat/lengths.rs"]
mod lengths;
#[path = "nat/refusals.rs"]
mod refusals;
#[path = "nat/reload.rs"]
mod reload;
#[path = "nat/sockets.rs"]
mod sockets;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use lab::{Child, Netns, skip, wait_until};
use tempfile::TempDir;

use crate::common::{PATIENCE, program};
use crate::place::{Router, bpf, forward};

const ALIAS: &str = "192.0.2.1";
const FAR: &str = "198.51.100.2";
const RULES: &str = "alias_address 192.0.2.1\n";

/// Who finishes the hosts' checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// They themselves.
    Finished,
    /// Their device, which is none.
    Unfinished,
}

/// A router between inside and outside.
struct Natted {
    router: Netns,
    inside: Netns,
    outside: Netns,
    directory: TempDir,
}

/// It, with rules that name the alias address and nothing else; `None`, and
/// counted as skipped, where there can be none.
fn natted(tag: &str, sums: Sums) -> Option<Natted> {
    skip::unless(bpf())?;
    skip::unless(skip::tun())?;
    let router = skip::unless(Netns::new(tag))?;
    let inside = skip::unless(Netns::new(&format!("{tag}i")))?;
    let outside = skip::unless(Netns::new(&format!("{tag}o")))?;
    for (name, address, host) in [
        ("lan", "10.0.0.1/24", &inside),
        ("wan", "192.0.2.1/24", &outside),
    ] {
        let lines = format!(
            "link add {name} type veth peer name eth0 netns {}\n\
             addr add {address} dev {name}\nlink set {name} up\n",
            host.name()
        );
        router.ip_batch(&lines).unwrap();
        router.run("ethtool", &["-K", name, "gro", "on"]).unwrap();
    }
    let lines = "addr add 10.0.0.2/24 dev eth0\nlink set eth0 up\nroute add default via 10.0.0.1\n";
    inside.ip_batch(lines).unwrap();
    // It could reach the inside if it were let in.
    let lines = "addr add 192.0.2.2/24 dev eth0\nlink set eth0 up\n\
                 addr add 198.51.100.2/32 dev lo\nroute add 10.0.0.0/24 via 192.0.2.1\n";
    outside.ip_batch(lines).unwrap();
    for host in [&inside, &outside] {
        host.run("ethtool", &["-K", "eth0", "gro", "on"]).unwrap();
        if sums == Sums::Finished {
            host.run("ethtool", &["-K", "eth0", "tx", "off"]).unwrap();
        }
    }
    forward(&router);
    router
        .ip(&["route", "add", "198.51.100.0/24", "via", "192.0.2.2"])
        .unwrap();
    let natted = Natted {
        router,
        inside,
        outside,
        directory: tempfile::tempdir().unwrap(),
    };
    natted.rules(RULES);
    Some(natted)
}

impl Natted {
    fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn rules(&self, text: &str) {
        fs::write(self.path("rules"), text).unwrap();
    }

    /// What the program is told beside its ports.
    fn arguments(&self) -> Vec<String> {
        let (rules, control) = (self.path("rules"), self.path("nat.sock"));
        [
            "--nat",
            &rules,
            "--outside",
            "wan",
            "--nat-control",
            &control,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Starts it, and waits until it translates.
    fn start(&self, more: &[&str]) -> Router {
        let arguments = self.arguments();
        let arguments = arguments.iter().map(String::as_str);
        let arguments: Vec<&str> = arguments.chain(more.iter().copied()).collect();
        let router = Router::start(&self.router, &arguments);
        wait_until(PATIENCE, "a translation at work", || {
            (router.status()["translation"]["works"] == true).then_some(())
        })
        .unwrap();
        router
    }

    /// Has it read its rules again.
    fn reload(&self) -> Output {
        let mut command = self.router.command(program());
        command.args(["nat", "reload", "--control", &self.path("nat.sock")]);
        command.output().unwrap()
    }

    /// Gives the links back to the kernel.
    fn release(&self) -> Output {
        let mut command = self.router.command(program());
        command.args(["router", "release", "--on", "lan", "--on", "wan"]);
        command.output().unwrap()
    }
}

/// Waits until the program translates so many flows.
fn until_flows(router: &Router, wanted: u64) {
    let flows = || router.status()["translation"]["flows"].as_u64();
    let waited = wait_until(PATIENCE, "flows at XDP", || {
        (flows() == Some(wanted)).then_some(())
    });
    assert!(
        waited.is_ok(),
        "{:?}, not {wanted}\n{}",
        flows(),
        router.log()
    );
}

/// Packets that are seen at a host's device.
struct Seen {
    tcpdump: Child,
    lines: std::path::PathBuf,
}

impl Seen {
    /// From now on those that a filter lets through.
    fn at(netns: &Netns, directory: &Path, filter: &str) -> Self {
        let lines = directory.join(format!("seen-{}", netns.name()));
        let said = lines.with_extension("log");
        let mut command = netns.command("tcpdump");
        command
            .args(["--immediate-mode", "-l", "-n", "-Q", "in", "-i", "eth0"])
            .arg(filter)
            .stdout(File::create(&lines).unwrap())
            .stderr(File::create(&said).unwrap())
            .stdin(Stdio::null());
        let tcpdump = Child::spawn(command).unwrap();
        wait_until(PATIENCE, "a capture", || {
            let said = fs::read_to_string(&said).unwrap();
            said.contains("listening on").then_some(())
        })
        .unwrap();
        Self { tcpdump, lines }
    }

    /// A line each.
    fn so_far(&self) -> String {
        let lines = fs::read_to_string(&self.lines).unwrap();
        // It writes an empty one at its end.
        lines.trim().to_owned()
    }

    /// Waits for one.
    fn until_one(&self) {
        wait_until(PATIENCE, "a packet", || {
            (!self.so_far().is_empty()).then_some(())
        })
        .unwrap();
    }

    /// All of them: it ends.
    fn end(mut self) -> String {
        // What has just come it reads before it hears of its end.
        thread::sleep(Duration::from_millis(300));
        self.tcpdump.signal(rustix::process::Signal::INT).unwrap();
        self.tcpdump.wait(PATIENCE).unwrap();
        self.so_far()
    }
}
