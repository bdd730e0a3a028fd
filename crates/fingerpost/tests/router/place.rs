//! A router in a namespace, hosts on both sides of it, and the program on it.

use std::process::{Command, Output, Stdio};

use lab::{Child, Netns, skip, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{PATIENCE, program};

/// Two hosts and what is between them.
pub struct Place {
    pub router: Netns,
    pub left: Netns,
    pub right: Netns,
}

/// A host's lines: its end of the cable, its addresses, the router.
fn host(side: u8) -> String {
    format!(
        "addr add 10.{side}.0.2/24 dev eth0\n\
         addr add 2001:db8:{side}::2/64 dev eth0 nodad\n\
         link set eth0 up\n\
         route add default via 10.{side}.0.1\n\
         route add default via 2001:db8:{side}::1\n"
    )
}

/// The place with its forwarding on; `None`, and counted as skipped, where
/// there can be none.
pub fn place(tag: &str) -> Option<Place> {
    skip::unless(bpf())?;
    let router = skip::unless(Netns::new(tag))?;
    let left = skip::unless(Netns::new(&format!("{tag}l")))?;
    let right = skip::unless(Netns::new(&format!("{tag}r")))?;
    for (name, side, other) in [("lan", 1, &left), ("wan", 2, &right)] {
        let lines = format!(
            "link add {name} type veth peer name eth0 netns {}\n\
             addr add 10.{side}.0.1/24 dev {name}\n\
             addr add 2001:db8:{side}::1/64 dev {name} nodad\n\
             link set {name} up\n",
            other.name()
        );
        router.ip_batch(&lines).unwrap();
        other.ip_batch(&host(side)).unwrap();
        other.run("ethtool", &["-K", "eth0", "gro", "on"]).unwrap();
    }
    forward(&router);
    Some(Place {
        router,
        left,
        right,
    })
}

/// Whether this process may load programs: root of the host, and no other.
pub fn bpf() -> anyhow::Result<()> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    let is_host = map.split_whitespace().eq(["0", "0", "4294967295"]);
    anyhow::ensure!(is_host, "programs for XDP want root of the host");
    Ok(())
}

/// Switches forwarding on, and the limits of ICMP errors off.
pub fn forward(router: &Netns) {
    for (key, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv6/conf/all/forwarding", "1"),
        ("net/ipv4/icmp_ratelimit", "0"),
        ("net/ipv6/icmp/ratelimit", "0"),
    ] {
        router.sysctl(key, value).unwrap();
    }
}

/// The program, forwarding.
pub struct Router {
    pub process: Child,
    directory: TempDir,
}

impl Router {
    /// Starts it and waits until it answers.
    pub fn start(netns: &Netns, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command(netns, &directory, arguments);
        command.stderr(std::fs::File::create(directory.path().join("log")).unwrap());
        let mut router = Self {
            process: Child::spawn(command).unwrap(),
            directory,
        };
        let waited = wait_until(PATIENCE, "the router's answer", || {
            let ended = router.process.process().try_wait().unwrap();
            assert!(ended.is_none(), "it has ended: {}", router.log());
            router.ask("status")
        });
        waited.unwrap();
        router
    }

    /// What it has said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// Its control socket.
    pub fn control(&self) -> String {
        self.directory
            .path()
            .join("sock")
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// The answer to a question, where there is one.
    pub fn ask(&self, question: &str) -> Option<Value> {
        let output = Command::new(program())
            .args(["router", question, "--json", "--control", &self.control()])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// How it stands.
    pub fn status(&self) -> Value {
        self.ask("status").unwrap()
    }

    /// Packets of a port that became of something.
    pub fn packets(&self, port: &str, reason: &str) -> u64 {
        let rows = self.ask("reasons").unwrap();
        let rows = rows.as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["name"] == port && row["reason"] == reason);
        row.map_or(0, |row| row["packets"].as_u64().unwrap())
    }

    /// Waits until it has looked at the kernel's settings anew.
    pub fn looks_again(&self) {
        let looks = |status: Value| status["looks"].as_u64().unwrap();
        // One may be under way.
        let wanted = looks(self.status()) + 2;
        wait_until(PATIENCE, "another look", || {
            (looks(self.status()) >= wanted).then_some(())
        })
        .unwrap();
    }

    /// Waits until an obstacle is told of, or no more.
    pub fn until_told(&self, name: &str, is_there: bool) {
        wait_until(PATIENCE, name, || {
            let status = self.status();
            let obstacles = status["obstacles"].as_array().unwrap();
            let found = obstacles.iter().any(|one| one["name"] == name);
            (found == is_there).then_some(())
        })
        .unwrap();
    }

    /// Whether a port forwards, both families.
    pub fn receives(&self, port: &str) -> [bool; 2] {
        let status = self.status();
        let ports = status["ports"].as_array().unwrap();
        let port = ports.iter().find(|one| one["name"] == port).unwrap();
        ["ipv4", "ipv6"].map(|family| port["receives"][family].as_bool().unwrap())
    }
}

fn command(netns: &Netns, directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = netns.command(program());
    command
        .args(["router", "--on", "lan", "--on", "wan", "--control"])
        .arg(directory.path().join("sock"))
        .args(arguments);
    command
}

/// Runs it where it is to refuse: what it says.
pub fn refused(netns: &Netns, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = command(netns, &directory, arguments);
    let output: Output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Whether there is a program at XDP on a link.
pub fn has_program(netns: &Netns, link: &str) -> bool {
    let shown = netns.ip(&["link", "show", "dev", link]).unwrap();
    shown.contains("xdp")
}
