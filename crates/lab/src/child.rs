//! A process that does not outlive its value. Called by tests through
//! [`Netns::spawn`](crate::Netns::spawn).

use std::process::{self, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

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
        kill_process(self.pid()?, signal).with_context(|| format!("signalling {}", self.what))
    }

    /// Waits for its end, `patience` at most.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let pid = self.pid()?;
        let what = || format!("waiting for the end of {}", self.what);
        let deadline = Instant::now() + patience;
        let ends = pidfd_open(pid, PidfdFlags::empty()).with_context(what)?;
        while self.process.try_wait().with_context(what)?.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "{}: not within {patience:?}", what());
            let left = Timespec::try_from(left)?;
            match poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).with_context(what),
            }
        }
        self.process.wait().with_context(what)
    }

    fn pid(&self) -> Result<Pid> {
        let pid = i32::try_from(self.process.id());
        let pid = pid.ok().and_then(Pid::from_raw);
        pid.context("a process id that is none")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it has ended and been reaped: what we want.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
