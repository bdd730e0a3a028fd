//! FRR's daemons with their SNMP module, as subagents of an AgentX master:
//! for tests and measurements.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::{Child, Netns};

/// Where Debian has them.
const DAEMONS: &str = "/usr/lib/frr";

/// Whether they are installed with their SNMP module, which is no program.
pub fn has_snmp() -> bool {
    Path::new("/usr/share/doc/frr-snmp/copyright").exists()
}

/// Where FRR's daemons run: a namespace, and a directory that their user can
/// reach.
#[derive(Debug)]
pub struct Frr<'a> {
    /// The namespace.
    pub netns: &'a Netns,
    /// For their files; `frr` below it becomes theirs.
    pub directory: &'a Path,
    /// The master's socket.
    pub agentx: &'a Path,
}

impl Frr<'_> {
    /// Starts one of them. `nsenter` becomes it.
    pub fn start(&self, name: &str, config: &str) -> Result<Child> {
        let socket = format!("agentXSocket {}\n", self.agentx.display());
        fs::write(self.directory.join("frr.conf"), socket)?;
        let directory = self.directory.join("frr");
        let file = directory.join(format!("{name}.conf"));
        fs::create_dir_all(&directory)?;
        fs::write(&file, config)?;
        for path in [&directory, &file] {
            chown(path, Some(id("-u")?), Some(id("-g")?))
                .with_context(|| format!("giving {} to frr", path.display()))?;
        }
        let path = |name: &str| directory.join(name).display().to_string();
        let mut command = self.netns.command(&format!("{DAEMONS}/{name}"));
        command
            .env("SNMPCONFPATH", self.directory)
            .env("SNMP_PERSISTENT_DIR", &directory)
            .env("MIBS", "")
            .args(["-M", "snmp", "-z", &path("zserv.api")])
            .args(["--vty_socket", &path("")])
            .args(["-f", &path(&format!("{name}.conf"))])
            .args(["-i", &path(&format!("{name}.pid"))])
            .args(["-A", "127.0.0.1", "-P", "0"])
            .args(["--log", &format!("file:{}", path(&format!("{name}.log")))])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Child::spawn(command)
    }

    /// Where zebra is spoken to, once it is up.
    pub fn zebra_socket(&self) -> PathBuf {
        self.directory.join("frr/zserv.api")
    }
}

fn id(which: &str) -> Result<u32> {
    let output = Command::new("id").args([which, "frr"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.trim().parse().context("there is no user frr")
}
