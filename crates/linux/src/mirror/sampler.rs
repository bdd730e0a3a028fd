//! A thread that takes samples which may keep it waiting, so that the
//! mirror's own thread goes on with events and counters: a file system that
//! is slow, the kernel's lock of links (RTNL). One sample after the other.
//! Started by the mirror's worker, which publishes what comes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use table::Sampled;

use super::Shared;
use super::host_samples::{self, Taken};
use super::speeds::{self, Known};
use crate::error::Error;
use crate::host::Observer;
use crate::namespace::Namespace;

/// What is to be sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// What stands beside the tables.
    Host(Sampled),
    /// How fast links are.
    Speeds,
}

/// What came of it.
pub(super) enum Outcome {
    Host(Taken),
    Speeds(Known),
}

/// A sample, or why there is none.
pub(super) struct Done {
    pub(super) job: Job,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) outcome: Result<Outcome, Error>,
}

/// The thread, from outside. It ends by itself once this is dropped and the
/// sample that it is at is taken: nobody waits for that.
pub(super) struct Sampler {
    jobs: Sender<(Job, Namespace)>,
    done: Receiver<Done>,
    under_way: Vec<Job>,
}

impl Sampler {
    /// Starts it. `shared` is woken with each sample.
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, Error> {
        let (jobs, to_do) = channel::<(Job, Namespace)>();
        let (tell, done) = channel();
        let work = move || {
            let mut observer = Observer::default();
            while let Ok((job, namespace)) = to_do.recv() {
                if tell
                    .send(take(job, &namespace, &mut observer, &shared))
                    .is_err()
                {
                    return;
                }
                shared.wake();
            }
        };
        let thread = std::thread::Builder::new().name("samples".into());
        thread
            .spawn(work)
            .map_err(Error::system("start the thread for samples"))?;
        Ok(Self {
            jobs,
            done,
            under_way: Vec::new(),
        })
    }

    /// Has a sample taken, unless that is under way already.
    pub(super) fn ask(&mut self, job: Job, namespace: Namespace) {
        if !self.is_at(job) && self.jobs.send((job, namespace)).is_ok() {
            self.under_way.push(job);
        }
    }

    /// Whether a sample is under way.
    pub(super) fn is_at(&self, job: Job) -> bool {
        self.under_way.contains(&job)
    }

    /// The next sample that is there.
    pub(super) fn done(&mut self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        self.under_way.retain(|job| *job != done.job);
        Some(done)
    }
}

fn take(job: Job, namespace: &Namespace, observer: &mut Observer, shared: &Shared) -> Done {
    let begun = Instant::now();
    let mut go_on = || match shared.stop.load(Ordering::Acquire) {
        true => Err(Error::Stopped),
        false => Ok(()),
    };
    let outcome = match job {
        Job::Host(what) => {
            host_samples::take(what, namespace, observer, &mut go_on).map(Outcome::Host)
        }
        Job::Speeds => speeds::read(namespace, &mut go_on).map(Outcome::Speeds),
    };
    Done {
        job,
        begun,
        ended: Instant::now(),
        outcome,
    }
}
