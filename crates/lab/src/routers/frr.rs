//! FRR in a namespace: some of its daemons, with the configuration of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Child, Netns, wait_until};

/// Where Debian has its daemons.
const DAEMONS: &str = "/usr/lib/frr";
/// For a daemon to be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// FRR, as long as this value lives.
#[derive(Debug)]
pub struct Frr {
    directory: PathBuf,
    _daemons: Vec<Child>,
}

impl Frr {
    /// Starts zebra and others (`bgpd`, …), each with its configuration, in a
    /// directory that is there and is FRR's from then on.
    pub fn start(netns: &Netns, directory: &Path, daemons: &[(&str, String)]) -> Result<Self> {
        fs::write(directory.join("zebra.conf"), "")?;
        for (name, text) in daemons {
            fs::write(directory.join(format!("{name}.conf")), text)?;
        }
        let owned = Command::new("chown")
            .args(["-R", "frr:frr"])
            .arg(directory)
            .status()?;
        ensure!(owned.success(), "chown frr:frr: {owned}");
        let mut started = vec![daemon(netns, directory, "zebra")?];
        let api = directory.join("zebra.api");
        wait_until(PATIENCE, "zebra", || api.exists().then_some(()))?;
        for (name, _) in daemons {
            started.push(daemon(netns, directory, name)?);
        }
        Ok(Self {
            directory: directory.to_owned(),
            _daemons: started,
        })
    }

    /// What vtysh says of a command; an error where it refuses it.
    pub fn says(&self, command: &str) -> Result<String> {
        let output = Command::new("vtysh")
            .arg("--vty_socket")
            .arg(&self.directory)
            .args(["-c", command])
            .output()
            .context("vtysh")?;
        ensure!(
            output.status.success(),
            "vtysh: {command}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The same of one that answers in JSON; `Null` where it does not.
    pub fn json(&self, command: &str) -> Result<Value> {
        let text = self.says(command)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Neighbours by OSPF whose adjacency is whole.
    pub fn ospf_full(&self) -> Result<usize> {
        let shown = self.says("show ip ospf neighbor")?;
        Ok(shown.matches("Full/").count())
    }

    /// The same by OSPFv3.
    pub fn ospf6_full(&self) -> Result<usize> {
        let shown = self.says("show ipv6 ospf6 neighbor")?;
        Ok(shown.matches("Full/").count())
    }

    /// Sessions by BGP that stand, of a family: how often each was
    /// established, and how often it went down.
    pub fn bgp_established(&self, family: &str) -> Result<Vec<[u64; 2]>> {
        let said = self.json(&format!("show bgp {family} unicast summary json"))?;
        let peers = said["peers"].as_object();
        let peers = peers.into_iter().flat_map(|peers| peers.values());
        let up = peers.filter(|peer| peer["state"] == "Established");
        let count = |peer: &Value, name: &str| peer[name].as_u64().unwrap_or_default();
        Ok(up
            .map(|peer| {
                ["connectionsEstablished", "connectionsDropped"].map(|name| count(peer, name))
            })
            .collect())
    }
}

fn daemon(netns: &Netns, directory: &Path, name: &str) -> Result<Child> {
    let file = |suffix: &str| directory.join(format!("{name}.{suffix}"));
    let mut command = netns.command(&format!("{DAEMONS}/{name}"));
    command
        .arg("-i")
        .arg(file("pid"))
        .arg("-f")
        .arg(file("conf"))
        .arg("-z")
        .arg(directory.join("zebra.api"))
        .arg("--vty_socket")
        .arg(directory)
        .args(["-A", "127.0.0.1"])
        .stdout(Stdio::null())
        .stderr(fs::File::create(file("log"))?);
    Child::spawn(command)
}
