//! A router in a namespace, hosts on both sides of it, and the program on it.

use std::path::Path;
use std::process::{Command, Output};

use lab::routers::Forwarding;
use lab::{Netns, skip, wait_until};
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
    pub forwarding: Forwarding,
    directory: TempDir,
}

impl Router {
    /// Starts it and waits until it answers.
    pub fn start(netns: &Netns, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::spawn(command(netns, &directory, arguments), directory)
    }

    /// The same by the section `[router]` of a configuration, which names its
    /// socket as [`Router::control`] does.
    pub fn configured(netns: &Netns, section: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("sock");
        let config = directory.path().join("config");
        let text = format!("[router]\ncontrol = '{}'\n{section}", socket.display());
        std::fs::write(&config, text).unwrap();
        let mut command = netns.command(program());
        command.args(["router", "--config"]).arg(config);
        Self::spawn(command, directory)
    }

    fn spawn(command: Command, directory: TempDir) -> Self {
        let forwarding = Forwarding::spawn(command, Path::new(program()), directory.path());
        Self {
            forwarding: forwarding.unwrap(),
            directory,
        }
    }

    /// What it has said.
    pub fn log(&self) -> String {
        self.forwarding.log()
    }

    /// Its control socket.
    pub fn control(&self) -> String {
        self.forwarding.control().to_str().unwrap().to_owned()
    }

    /// Its configuration, where it has one.
    pub fn config(&self) -> String {
        let config = self.directory.path().join("config");
        config.to_str().unwrap().to_owned()
    }

    /// The answer to a question, where there is one.
    pub fn ask(&self, question: &str) -> Option<Value> {
        self.forwarding.ask(question)
    }

    /// How it stands.
    pub fn status(&self) -> Value {
        self.ask("status").unwrap()
    }

    /// Packets of a port that became of something.
    pub fn packets(&self, port: &str, reason: &str) -> u64 {
        self.forwarding.packets(Some(port), reason).unwrap()
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

/// The same between other links, named between blanks.
pub fn refused_on(netns: &Netns, links: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = netns.command(program());
    command.arg("router");
    for link in links.split(' ') {
        command.args(["--on", link]);
    }
    command.arg("--control").arg(directory.path().join("sock"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
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
