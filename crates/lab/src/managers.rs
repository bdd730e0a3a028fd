//! Those who keep the network of a host as files say, inside a namespace
//! and with files of their own: ifupdown2 and systemd-networkd. For tests
//! and measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{Netns, package};

/// Where systemd has it.
pub const NETWORKD: &str = "/lib/systemd/systemd-networkd";

/// ifupdown2, not installed.
#[derive(Debug)]
pub struct Ifupdown2 {
    root: PathBuf,
    memory: PathBuf,
}

impl Ifupdown2 {
    /// Fetches it below a directory. What it brought up it remembers in
    /// another, which is made.
    pub fn fetched(directory: &Path, memory: &Path) -> Result<Self> {
        fs::create_dir_all(memory)?;
        Ok(Self {
            root: package::unpacked(directory, "ifupdown2")?,
            memory: memory.to_owned(),
        })
    }

    /// `ifup`, `ifreload` with a file of interfaces, in the network
    /// namespace of whoever starts it.
    pub fn arguments(&self, interfaces: &Path, program: &str, rest: &[&str]) -> Vec<String> {
        let mut arguments = script(include_str!("managers/ifupdown2.sh"));
        let paths = [&self.root, interfaces, &self.memory];
        arguments.extend(paths.map(|path| path.display().to_string()));
        arguments.push(program.to_owned());
        arguments.extend(rest.iter().map(ToString::to_string));
        arguments
    }

    /// The same, in a namespace.
    pub fn command(&self, netns: &Netns, interfaces: &Path, program: &str) -> Command {
        let mut command = netns.command(UNSHARE);
        command.args(self.arguments(interfaces, program, &["-a"]));
        command
    }
}

/// What has a mount namespace of its own; its arguments are those of
/// [`Ifupdown2::arguments`] and [`networkd`].
pub const UNSHARE: &str = "unshare";

/// systemd-networkd with the files of a directory, until so many links are
/// configured; the exit status says whether they were within the seconds.
pub fn networkd(files: &Path, links: usize, seconds: u64) -> Vec<String> {
    let mut arguments = script(include_str!("managers/networkd.sh"));
    arguments.push(files.display().to_string());
    arguments.extend([links.to_string(), seconds.to_string()]);
    arguments
}

fn script(text: &str) -> Vec<String> {
    [
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        text,
        "sh",
    ]
    .map(str::to_owned)
    .to_vec()
}
