//! arp, ifconfig, route and netstat beside the installed net-tools, on real kernel
//! objects.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "in a test a panic is the failure, also outside of the test's own function"
)]

#[path = "../common/mod.rs"]
mod common;

mod arp;
mod ifconfig;
mod netstat;
mod tables;
#[path = "../ip/twins.rs"]
mod twins;

use std::process::{Output, Stdio};

use lab::{Netns, skip};
use tempfile::TempDir;

/// A namespace, and our program under the names of the tools.
struct World {
    netns: Netns,
    names: TempDir,
}

impl World {
    /// `None` (and counted as skipped) where namespaces cannot be made or
    /// net-tools are not installed.
    fn new(tag: &str, tool: &str) -> Option<Self> {
        let netns = skip::unless(Netns::new(tag))?;
        if netns.command(tool).arg("--version").output().is_err() {
            skip::skip(&format!("net-tools' {tool} is not installed"));
            return None;
        }
        let names = tempfile::tempdir().unwrap();
        for name in ["arp", "ifconfig", "route", "netstat", "fingerpost"] {
            std::os::unix::fs::symlink(common::program(), names.path().join(name)).unwrap();
        }
        Some(Self { netns, names })
    }

    fn run(&self, program: &str, line: &str) -> Output {
        self.netns
            .command(program)
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The installed tool.
    fn theirs(&self, tool: &str, line: &str) -> String {
        text(&self.run(tool, line).stdout)
    }

    /// Both say the same while nothing changes. The kernel drops a failed
    /// neighbour when it likes, and net-tools, which reads /proc in pieces,
    /// then misses another one as well: what was read around such a moment
    /// is read again, a few times.
    fn says_the_same(&self, tool: &str, line: &str) {
        for _ in 0..5 {
            let before = self.theirs(tool, line);
            let ours = self.ours(tool, line);
            if self.theirs(tool, line) == before {
                assert_eq!(ours, before, "{tool} {line}");
                return;
            }
        }
        panic!("{tool} {line}: never twice the same from net-tools");
    }

    /// Our program, called by the tool's name.
    fn ours(&self, tool: &str, line: &str) -> String {
        let output = self.run(&self.path(tool), line);
        assert!(
            output.stderr.is_empty(),
            "{tool} {line}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Our program's command.
    fn fingerpost(&self, line: &str) -> Output {
        self.run(&self.path("fingerpost"), line)
    }

    fn path(&self, tool: &str) -> String {
        self.names.path().join(tool).display().to_string()
    }

    /// A file with this text, in a directory that goes with the test.
    fn file(&self, name: &str, contents: &str) -> String {
        let path = self.names.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path.display().to_string()
    }

    /// A pair `v0` and `v1`, both up.
    fn veth(&self) {
        self.netns
            .ip_batch(
                "link add v0 type veth peer name v1\n\
                 link set v1 up\n\
                 link set v0 up\n",
            )
            .unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let Some(world) = World::new("epipe", "arp") else {
        return;
    };
    world.veth();
    world.netns.ip_batch(&arp::permanent(20_000)).unwrap();
    for line in [
        "arp -a",
        "arp -n --style linux",
        "arp --json",
        "ifconfig -a",
    ] {
        let program = world.path("fingerpost");
        let script = format!("({program} {line}; echo ended with $? >&2) | true");
        let output = world
            .netns
            .command("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(text(&output.stderr), "ended with 0\n", "{line}");
    }
}
