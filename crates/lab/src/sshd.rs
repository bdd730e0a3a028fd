//! A real sshd in a namespace, and who logs in there by a key: for tests of
//! what sessions outlive.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{Child, Netns};

/// One that runs; it ends with its value.
#[derive(Debug)]
pub struct Sshd {
    directory: PathBuf,
    _server: Child,
}

impl Sshd {
    /// Starts one with its keys and its log in a directory. `listen` is an
    /// address with a port; without it there is port 22 of all.
    pub fn start(netns: &Netns, directory: &Path, listen: Option<&str>) -> Result<Self> {
        let path = |name: &str| directory.join(name);
        for key in ["host_key", "key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let made = keygen.arg(path(key)).status();
            ensure!(made.context("starting ssh-keygen")?.success(), "no key");
        }
        let listen = listen.map(|at| format!("ListenAddress {at}\n"));
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\n{}",
            path("host_key").display(),
            path("key.pub").display(),
            listen.unwrap_or_default()
        );
        fs::write(path("sshd_config"), config)?;
        // It wants its directory of privilege separation.
        fs::create_dir_all("/run/sshd")?;
        let mut server = netns.command("/usr/sbin/sshd");
        server.args(["-D", "-e", "-f"]).arg(path("sshd_config"));
        server.stderr(File::create(path("sshd.log"))?);
        Ok(Self {
            directory: directory.to_owned(),
            _server: Child::spawn(server)?,
        })
    }

    /// A session of root's at an address, from a namespace; with more of
    /// ssh's options. What it is to do is still to be said.
    pub fn session(&self, from: &Netns, to: &str, options: &[&str]) -> Command {
        let mut client = from.command("ssh");
        client.arg("-i").arg(self.directory.join("key"));
        client
            .args(["-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"])
            .args(["-o", "UserKnownHostsFile=/dev/null"])
            .args(options)
            .arg(format!("root@{to}"));
        client
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("sshd.log")).unwrap_or_default()
    }
}
