//! A process that does not outlive its value. Called by tests through
//! [`Netns::spawn`](crate::Netns::spawn).

use std::process::{self, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait_until;

/// A running process; killed and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    what: String,
}

impl Child {
    /// Starts a command.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let what = format!("{command:?}");
        let process = command
            .spawn()
            .with_context(|| format!("starting {what}"))?;
        Ok(Self { process, what })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The process itself, for its pipes.
    pub fn process(&mut self) -> &mut process::Child {
        &mut self.process
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        let pid = pid.context("a process id that is none")?;
        kill_process(pid, signal).with_context(|| format!("signalling {}", self.what))
    }

    /// Waits for its end, `patience` at most.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.what);
        wait_until(patience, &what, || self.process.try_wait().transpose())?.with_context(|| what)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it has ended and been reaped: what we want.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
