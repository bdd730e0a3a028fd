//! The program, forwarding at XDP in a namespace, and questions to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Child, Netns, wait_until};

/// For it to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `fingerpost router`; the kernel forwards again when it is
/// dropped.
#[derive(Debug)]
pub struct Forwarding {
    /// Its process.
    pub process: Child,
    program: PathBuf,
    directory: PathBuf,
}

impl Forwarding {
    /// Starts it between some links, with further arguments, and waits until
    /// it answers. `directory` is for its socket and what it says.
    pub fn start(
        netns: &Netns,
        program: &Path,
        directory: &Path,
        links: &[&str],
        arguments: &[&str],
    ) -> Result<Self> {
        let mut command = netns.command(&program.display().to_string());
        command.arg("router");
        for link in links {
            command.args(["--on", link]);
        }
        command
            .arg("--control")
            .arg(directory.join("sock"))
            .args(arguments);
        Self::spawn(command, program, directory)
    }

    /// The same by a command that was made elsewhere, whose control socket is
    /// `sock` in `directory`.
    pub fn spawn(mut command: Command, program: &Path, directory: &Path) -> Result<Self> {
        command.stderr(File::create(directory.join("log"))?);
        let mut forwarding = Self {
            process: Child::spawn(command)?,
            program: program.to_owned(),
            directory: directory.to_owned(),
        };
        wait_until(PATIENCE, "the router's answer", || {
            let ended = forwarding.process.process().try_wait();
            if !matches!(ended, Ok(None)) {
                return Some(Err(forwarding.log()));
            }
            forwarding.ask("status").map(Ok)
        })?
        .map_err(|log| anyhow::anyhow!("the router has ended: {log}"))?;
        Ok(forwarding)
    }

    /// What it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Its control socket.
    pub fn control(&self) -> PathBuf {
        self.directory.join("sock")
    }

    /// The answer to a question, where there is one.
    pub fn ask(&self, question: &str) -> Option<Value> {
        let output = Command::new(&self.program)
            .args(["router", question, "--json", "--control"])
            .arg(self.control())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Packets that came in by a port and became of something; of all ports
    /// where none is named.
    pub fn packets(&self, port: Option<&str>, reason: &str) -> Result<u64> {
        let rows = self.ask("reasons").context("the router does not answer")?;
        let rows = rows.as_array().context("reasons are rows")?;
        let wanted = rows
            .iter()
            .filter(|row| port.is_none_or(|port| row["name"] == port) && row["reason"] == reason);
        Ok(wanted.filter_map(|row| row["packets"].as_u64()).sum())
    }

    /// Waits until all its ports forward and send, both families.
    pub fn until_all_forward(&self) -> Result<()> {
        let all = wait_until(PATIENCE, "all ports of the router", || {
            let status = self.ask("status")?;
            let ports = status["ports"].as_array()?;
            let is_free = |port: &Value| {
                ["receives", "sends"]
                    .iter()
                    .all(|way| port[way]["ipv4"] == true && port[way]["ipv6"] == true)
            };
            ports.iter().all(is_free).then_some(())
        });
        let status = || self.ask("status").unwrap_or_default();
        all.with_context(|| format!("{} {}", status(), self.log()))?;
        ensure!(self.ask("status").is_some(), "the router has gone");
        Ok(())
    }
}
