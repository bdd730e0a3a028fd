//! A soak: random changes of a namespace under a running daemon, whose
//! tables and answers must then be the kernel's. Called by `cargo xtask
//! soak` and, in short, by the program's tests.
//!
//! What a run does is a list of lines of a shell, so that a failure can be
//! shrunk ([`shrink`]) and given to anybody ([`script`]).

mod churn;
mod compare;
mod shrink;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use crate::{Child, Netns};
pub use churn::{lines, questions};
pub use shrink::shrink;

/// How long a shell may take over a run's lines.
const PATIENCE: Duration = Duration::from_secs(120);

/// How runs are made.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The program under test.
    pub program: String,
    /// Receive buffer of the mirror, bytes.
    pub buffer: usize,
    /// Questions about routes after each run.
    pub questions: usize,
    /// How late announcements of the kernel, and what the daemon makes of
    /// them, may be.
    pub settles: Duration,
}

impl Soak {
    /// Does what the lines say under a daemon, then compares. Gives what
    /// differs: nothing, when all is well.
    pub fn run(&self, seed: u64, lines: &[String]) -> Result<Vec<String>> {
        let (netns, other) = (Netns::new("soak")?, Netns::new("other")?);
        for at in ["all", "default"] {
            // Duplicate address detection goes on for seconds.
            netns.sysctl(&format!("net/ipv6/conf/{at}/accept_dad"), "0")?;
        }
        let text = lines_of(churn::BEGINNING.iter().copied());
        self.shell(&netns, &other, 0, &text)?;
        let (daemon, _state) = self.daemon(&netns)?;
        let text = lines_of(lines.iter().map(String::as_str));
        let ran = self.shell(&netns, &other, daemon.id(), &text);
        daemon.signal(Signal::CONT)?;
        ran?;
        let questions = churn::questions(seed, self.questions);
        compare::compare(&netns, &self.program, &questions, self.settles)
    }

    fn daemon(&self, netns: &Netns) -> Result<(Child, State)> {
        let state = State::new(netns, self.buffer)?;
        let mut command = netns.command(&self.program);
        command.args(["up", "--config", &state.config()]);
        command.env("STATE_DIRECTORY", &state.0);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut daemon = Child::spawn(command)?;
        let stdout = daemon
            .process()
            .stdout
            .take()
            .context("the daemon's output")?;
        let mut screen = String::new();
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if line.starts_with("Ctrl-C") {
                return Ok((daemon, state));
            }
            screen += &line;
        }
        anyhow::bail!("the daemon did not start: {screen}")
    }

    /// Runs lines in one shell. Those that are refused are part of the
    /// game.
    fn shell(&self, netns: &Netns, other: &Netns, daemon: u32, text: &str) -> Result<()> {
        let mut command = netns.command("sh");
        command
            .env("HERE", netns.name())
            .env("OTHER", other.name())
            .env("DAEMON", daemon.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut shell = Child::spawn(command)?;
        let stdin = shell.process().stdin.take();
        stdin
            .context("the shell's input")?
            .write_all(text.as_bytes())?;
        shell.wait(PATIENCE)?;
        Ok(())
    }
}

/// A directory for what the daemon keeps; goes with its value.
#[derive(Debug)]
struct State(std::path::PathBuf);

impl State {
    fn new(netns: &Netns, buffer: usize) -> Result<Self> {
        let path = std::env::temp_dir().join(netns.name());
        std::fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        let state = Self(path);
        let text = format!("[mirror]\nreceive_buffer_bytes = {buffer}\n");
        std::fs::write(state.config(), text)?;
        Ok(state)
    }

    fn config(&self) -> String {
        self.0.join("fingerpost.toml").display().to_string()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // What is left lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn lines_of<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// A shell script that does what a run did.
pub fn script(lines: &[String]) -> String {
    let head = "#!/bin/sh\n\
                # Makes a namespace, starts a daemon in it, changes it, and shows both sides.\n\
                HERE=soak-here OTHER=soak-other\n\
                ip netns add $HERE; ip netns add $OTHER\n\
                in_it() { nsenter --net=/run/netns/$HERE -- \"$@\"; }\n\
                export HERE OTHER\n\
                in_it sh <<'END'\n\
                echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad\n\
                echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad\n";
    let beginning = lines_of(churn::BEGINNING.iter().copied());
    let lines = lines_of(lines.iter().map(String::as_str));
    format!(
        "{head}{beginning}END\nin_it fingerpost up & sleep 1\n\
         DAEMON=$(ip netns pids $HERE | head -1); export DAEMON\n\
         in_it sh <<'END'\n{lines}END\nkill -CONT $DAEMON\n"
    )
}

/// Runs a seed; on a failure gives the shortest list that fails, and what
/// differs then.
pub fn soak(soak: &Soak, seed: u64, count: usize, most: usize) -> Result<Option<Failure>> {
    let all = lines(seed, count);
    let mut differences = soak.run(seed, &all)?;
    if differences.is_empty() {
        return Ok(None);
    }
    let mut trouble = None;
    let lines = shrink(&all, most, &mut |lines| match soak.run(seed, lines) {
        Ok(found) if found.is_empty() => false,
        Ok(found) => {
            differences = found;
            true
        }
        Err(error) => {
            trouble = Some(error);
            false
        }
    });
    ensure!(
        trouble.is_none(),
        "while shrinking seed {seed}: {trouble:?}"
    );
    Ok(Some(Failure { lines, differences }))
}

/// What failed.
#[derive(Debug)]
pub struct Failure {
    /// What leads to it.
    pub lines: Vec<String>,
    /// What differs then.
    pub differences: Vec<String>,
}
