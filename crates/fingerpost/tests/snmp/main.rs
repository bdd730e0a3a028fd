//! SNMP of the real daemon, asked by real peers: net-snmp's tools, its
//! snmpd as a rival and as an AgentX master, and snmp_exporter.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test a panic is the failure, also outside of the test's own function"
)]

#[path = "../common/mod.rs"]
mod common;

mod asked;
mod churn;
mod clients;
mod clock;
mod flood;
mod fresh;
mod groups;
mod held;
mod informed;
mod notified;
mod peers;
mod rates;
mod remote;
mod size;
mod subagent;
mod subagents;
mod translation;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{Daemon, STATE, program};
use lab::{Child, Netns, skip};
use tempfile::TempDir;

/// inetCidrRouteTable, its destination's type and so on not accessible.
pub const INET_ROUTES: &str = ".1.3.6.1.2.1.4.24.7";
/// ipCidrRouteTable.
pub const CIDR_ROUTES: &str = ".1.3.6.1.2.1.4.24.4";

/// Names and values, in the order of a walk.
pub type Walked = Vec<(String, String)>;

/// What these walks give while nothing changes, which the first one tells by
/// giving the same once more behind the last: the kernel goes on with
/// addresses and routes for a moment after a link came up, a long one on a
/// machine that is busy.
pub fn at_rest<const N: usize>(walks: [&dyn Fn() -> Walked; N]) -> [Walked; N] {
    lab::wait_until(common::PATIENCE, "walks without a change between", || {
        let walked = walks.map(|walk| walk());
        (walks[0]() == walked[0]).then_some(walked)
    })
    .unwrap()
}

/// A namespace and a directory for the daemon's state and configuration.
pub struct World {
    /// The namespace.
    pub netns: Netns,
    directory: TempDir,
}

impl World {
    /// `None`, and counted as skipped, where namespaces cannot be made or a
    /// program is missing.
    pub fn new(tag: &str, programs: &[&str]) -> Option<Self> {
        Self::with(skip::unless(Netns::new(tag))?, programs)
    }

    /// The same of a namespace that is there.
    pub fn with(netns: Netns, programs: &[&str]) -> Option<Self> {
        for program in programs {
            let found = Command::new("which").arg(program).output();
            if !found.is_ok_and(|found| found.status.success()) {
                skip::skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        // net-snmp's tools would tell of making it.
        fs::create_dir(directory.path().join("net-snmp")).unwrap();
        Some(Self { netns, directory })
    }

    /// A place in the world's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file of the world.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A command of ours, with the world's state.
    pub fn fingerpost(&self, arguments: &[&str]) -> Command {
        let mut command = self.netns.command(program());
        command
            .args(arguments)
            .env(STATE, self.directory.path().join("state"));
        command
    }

    /// The daemon with this `[snmp]` section.
    pub fn up(&self, section: &str) -> Daemon {
        let config = self.write("fingerpost.toml", section);
        Daemon::spawn(self.fingerpost(&["up", "--config", &config]))
    }

    /// Adds a user of version 3, both passphrases `pass phrase`.
    pub fn user(&self, name: &str, auth: &str, privacy: &str) {
        let file = self.write("passphrase", "pass phrase\n");
        let words = [
            "snmp",
            "user",
            "add",
            name,
            "-a",
            auth,
            "-x",
            privacy,
            "--passphrase-file",
            &file,
        ];
        let said = common::said(self.fingerpost(&words).output().unwrap());
        assert!(
            said.contains(name) && !said.contains("pass phrase"),
            "{said}"
        );
    }

    /// What one of net-snmp's tools writes, its complaints behind it.
    pub fn tool(&self, tool: &str, words: &str) -> String {
        let output = self.command(tool, words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The lines of a walk that ends well, names and values.
    pub fn walk(&self, tool: &str, words: &str) -> Walked {
        let text = common::said(self.command(tool, words).output().unwrap());
        text.lines()
            .map(|line| {
                let pair = line.split_once(" = ");
                let (name, value) = pair.unwrap_or_else(|| panic!("{tool} {words}: {line}"));
                (name.to_owned(), value.to_owned())
            })
            .collect()
    }

    /// One of net-snmp's tools, with numbers for names and without the
    /// host's configuration.
    pub fn command(&self, tool: &str, words: &str) -> Command {
        let mut command = self.netns.command(tool);
        command
            .env("MIBS", "")
            .env("SNMPCONFPATH", self.directory.path())
            .env("SNMP_PERSISTENT_DIR", self.path("net-snmp"))
            .args(["-On", "-Oe"])
            .args(words.split_whitespace());
        command
    }

    /// A running snmpd at 127.0.0.1:1163, master of AgentX at `master`.
    pub fn snmpd(&self, options: &[&str]) -> Child {
        let master = self.path("master");
        let config = self.write(
            "snmpd.conf",
            &format!(
                "rocommunity public\nmaster agentx\nagentXSocket {}\n\
                 agentAddress udp:127.0.0.1:1163\n",
                master.display()
            ),
        );
        let mut command = self.netns.command("snmpd");
        command
            .env("SNMP_PERSISTENT_DIR", self.path("net-snmp"))
            .env("MIBS", "")
            .args(["-f", "-Ln", "-C", "-c", &config])
            .args(["-p", self.path("snmpd.pid").to_str().unwrap()])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Child::spawn(command).unwrap();
        lab::wait_until(common::PATIENCE, "snmpd to answer", || {
            let text = self.tool(
                "snmpget",
                "-v2c -c public -t 1 -r 0 127.0.0.1:1163 .1.3.6.1.2.1.1.3.0",
            );
            text.contains("Timeticks").then_some(())
        })
        .unwrap();
        child
    }
}
