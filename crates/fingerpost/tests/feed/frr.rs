//! A real FRR in a namespace: zebra, staticd, bgpd, each started by hand
//! with its own places, by the user that Debian made for them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use lab::{Child, Netns, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::PATIENCE;

/// Where Debian has the daemons.
const DAEMONS: &str = "/usr/lib/frr";

/// What is configured before the daemons start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Configuration<'a> {
    pub zebra: &'a str,
    pub staticd: &'a str,
    pub bgpd: Option<&'a str>,
}

/// A running FRR. Ended with its value.
pub struct Frr<'a> {
    netns: &'a Netns,
    directory: TempDir,
    pub zebra: Option<Child>,
    others: Vec<Child>,
    has_bgpd: bool,
    has_bmp: bool,
}

impl<'a> Frr<'a> {
    pub fn start(netns: &'a Netns, configuration: Configuration<'_>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut frr = Self {
            netns,
            directory,
            zebra: None,
            others: Vec::new(),
            has_bgpd: configuration.bgpd.is_some(),
            has_bmp: configuration.bgpd.is_some_and(|of| of.contains("bmp ")),
        };
        frr.write("zebra", configuration.zebra);
        frr.write("staticd", configuration.staticd);
        if let Some(bgpd) = configuration.bgpd {
            frr.write("bgpd", bgpd);
        }
        let (uid, gid) = (id("-u"), id("-g"));
        for entry in [
            frr.path("").as_str(),
            "zebra.conf",
            "staticd.conf",
            "bgpd.conf",
        ] {
            let path = frr.directory.path().join(entry);
            if path.exists() {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        frr.start_zebra();
        frr.start_others();
        frr
    }

    fn write(&self, daemon: &str, configuration: &str) {
        fs::write(self.path(&format!("{daemon}.conf")), configuration).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Starts zebra; it connects to the feed by itself.
    pub fn start_zebra(&mut self) {
        let more = ["-M", "dplane_fpm_nl"];
        self.zebra = Some(self.daemon("zebra", &more));
        let socket = self.path("zserv.api");
        let is_up = || Path::new(&socket).exists().then_some(());
        wait_until(PATIENCE, "zebra's socket", is_up).unwrap();
    }

    /// Starts the daemons that give zebra routes.
    pub fn start_others(&mut self) {
        self.others.push(self.daemon("staticd", &[]));
        if self.has_bgpd {
            self.start_bgpd();
        }
    }

    /// Starts bgpd; it connects to a BMP station by itself where it is
    /// configured to.
    pub fn start_bgpd(&mut self) {
        let usual = ["-p", "179", "-l", "0.0.0.0"];
        let bmp: &[&str] = if self.has_bmp { &["-M", "bmp"] } else { &[] };
        let bgpd = self.daemon("bgpd", &[&usual, bmp].concat());
        self.others.push(bgpd);
    }

    /// Kills bgpd, which was started last.
    pub fn kill_bgpd(&mut self) {
        drop(self.others.pop());
        let _ = fs::remove_file(self.path("bgpd.vty"));
    }

    /// Kills zebra.
    pub fn kill_zebra(&mut self) {
        drop(self.zebra.take());
        let _ = fs::remove_file(self.path("zserv.api"));
        let _ = fs::remove_file(self.path("zebra.vty"));
    }

    fn daemon(&self, name: &str, more: &[&str]) -> Child {
        let mut command = self.netns.command(&format!("{DAEMONS}/{name}"));
        command
            .args([
                "-z",
                &self.path("zserv.api"),
                "--vty_socket",
                &self.path(""),
            ])
            .args(["-i", &self.path(&format!("{name}.pid"))])
            .args(["-f", &self.path(&format!("{name}.conf"))])
            .args(["-A", "127.0.0.1", "-P", "0"])
            .args([
                "--log",
                &format!("file:{}", self.path(&format!("{name}.log"))),
            ])
            .args(more);
        Child::spawn(command).unwrap()
    }

    /// What vtysh says.
    pub fn vtysh(&self, commands: &[&str]) -> String {
        let mut command = self.netns.command("vtysh");
        command.args(["--vty_socket", &self.path("")]);
        for one in commands {
            command.args(["-c", one]);
        }
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// The routes of routing daemons that zebra has installed: table,
    /// prefix, next hops. `None` while it does not answer.
    pub fn routes(&self) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for table in ["", "table 77 ", "table 1000 "] {
            let text = self.vtysh(&[
                &format!("show ip route {table}json"),
                &format!("show ipv6 route {table}json"),
            ]);
            for part in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
                let part = part.ok()?;
                let rows = part.as_object()?.values().filter_map(Value::as_array);
                all.extend(rows.flatten().filter_map(installed));
            }
        }
        all.sort();
        Some(all)
    }
}

fn id(which: &str) -> u32 {
    let output = Command::new("id").args([which, "frr"]).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

/// A route of zebra's as all sides are compared by.
fn installed(row: &Value) -> Option<String> {
    let is_made = matches!(row["protocol"].as_str(), Some("static" | "bgp"));
    if row["installed"] != true || !is_made {
        return None;
    }
    let hops = row["nexthops"].as_array()?.iter();
    let hops = hops.filter(|hop| hop["fib"] == true);
    let mut kind = "";
    let mut shown: Vec<String> = hops
        .filter_map(|hop| {
            if hop["blackhole"] == true || hop["unreachable"] == true || hop["reject"] == true {
                kind = "no way ";
                return None;
            }
            let gateway = hop["ip"].as_str().unwrap_or("-");
            Some(format!("{gateway}@{}", hop["interfaceName"].as_str()?))
        })
        .collect();
    shown.sort();
    let (table, prefix) = (&row["table"], row["prefix"].as_str()?);
    Some(format!("{table} {kind}{prefix} {}", shown.join(",")))
}
