//! A soak: random changes of a namespace under a running daemon, whose
//! tables and answers must then be the kernel's. Called by `cargo xtask
//! soak` and, in short, by the program's tests.
//!
//! What a run does is a list of lines of a shell, so that a failure can be
//! shrunk ([`shrink`]) and given to anybody ([`script`]).

mod apply;
mod churn;
mod compare;
mod script;
mod shrink;
mod tally;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use crate::{Child, Netns};
use apply::Stage;
pub use churn::{lines, questions};
pub use script::{lines_of_script, script};
pub use shrink::shrink;
pub use tally::Tally;

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
    /// Whether the daemon scans for drift: then a run waits for a scan,
    /// which must find none. Otherwise no scan can mend anything.
    pub scans: bool,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What differs at the end: nothing, when all is well.
    pub differences: Vec<String>,
    /// How often both sides were listed until they were the same.
    pub looks: usize,
    /// Listings after a loss of events.
    pub resyncs: u64,
    /// What was changed.
    pub tally: Tally,
}

impl Soak {
    /// Does what the lines say under a daemon, then compares.
    pub fn run(&self, seed: u64, lines: &[String]) -> Result<Outcome> {
        let (here, other) = (Netns::new("soak")?, Netns::new("other")?);
        for at in ["all", "default"] {
            // Duplicate address detection goes on for seconds.
            here.sysctl(&format!("net/ipv6/conf/{at}/accept_dad"), "0")?;
        }
        // What it changes of routes is told of those to come alone.
        let compatible = !seed.is_multiple_of(3);
        here.sysctl(
            "net/ipv4/nexthop_compat_mode",
            &u8::from(compatible).to_string(),
        )?;
        // Links forward to begin with, those to come as well.
        here.sysctl("net/ipv4/conf/all/forwarding", "1")?;
        if seed % 4 == 1 {
            // Older kernels do not have it.
            let _ = here.sysctl("net/ipv6/route/skip_notify_on_dev_down", "1");
        }
        let (here, other) = (&here, &other);
        let mut stage = Stage {
            here,
            other,
            daemon: None,
        };
        stage.apply(churn::BEGINNING)?;
        if churn::comes_in(seed) {
            stage.apply(churn::OWN_RULES)?;
        }
        let (daemon, state) = self.daemon(here)?;
        stage.daemon = Some(&daemon);
        let applied = stage.apply(lines);
        daemon.signal(Signal::CONT)?;
        let tally = applied?;
        let questions = churn::questions(seed, self.questions);
        let outcome = compare::compare(here, self, &questions, &state.log())?;
        Ok(Outcome { tally, ..outcome })
    }

    fn daemon(&self, netns: &Netns) -> Result<(Child, State)> {
        let state = State::new(netns, self)?;
        let mut command = netns.command(&self.program);
        command.args(["up", "--config", &state.config()]);
        command.env("STATE_DIRECTORY", &state.0);
        let log = File::create(state.log())?;
        command.stdout(Stdio::piped()).stderr(log);
        let mut daemon = Child::spawn(command)?;
        let stdout = daemon.process().stdout.take();
        let stdout = stdout.context("the daemon's output")?;
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
}

/// A directory for what the daemon keeps; goes with its value.
#[derive(Debug)]
struct State(PathBuf);

impl State {
    fn new(netns: &Netns, soak: &Soak) -> Result<Self> {
        let path = std::env::temp_dir().join(netns.name());
        std::fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        let state = Self(path);
        let mut text = format!(
            "[mirror]\nreceive_buffer_bytes = {}\nscan_interval_secs = 604800\n\
             [snmp]\nlisten = []\n[http]\nlisten = []\n",
            soak.buffer
        );
        if !soak.scans {
            // With a recording only the periodic scans are made.
            let file = state.0.join("recording");
            text += &format!("[record]\nfile = \"{}\"\n", file.display());
        }
        std::fs::write(state.config(), text)?;
        Ok(state)
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
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

/// Runs lines; on a failure gives the shortest list that fails, and what
/// differs then. It is shrunk by `most` further runs at most.
pub fn soak(
    soak: &Soak,
    seed: u64,
    all: &[String],
    most: usize,
) -> Result<Result<Outcome, Failure>> {
    let outcome = soak.run(seed, all)?;
    if outcome.differences.is_empty() {
        return Ok(Ok(outcome));
    }
    let mut differences = outcome.differences;
    let mut trouble = None;
    let lines = shrink(all, most, &mut |lines| match soak.run(seed, lines) {
        Ok(outcome) if outcome.differences.is_empty() => false,
        Ok(outcome) => {
            differences = outcome.differences;
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
    Ok(Err(Failure { lines, differences }))
}

/// What failed.
#[derive(Debug)]
pub struct Failure {
    /// What leads to it.
    pub lines: Vec<String>,
    /// What differs then.
    pub differences: Vec<String>,
}
