//! A plan carried out, a thread for each core.

use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context, Result};
use privileges::CapabilitySet;

use super::own::{Drops, Profile, Tables};
use super::plan::{Plan, Way};
use super::way::Sender;
use super::worker::{Tally, Worker};

/// What came of a plan.
#[derive(Default)]
pub struct Outcome {
    /// What each core did.
    pub tallies: Vec<Tally>,
    /// What the stages of our own stack took on each, where that was wanted.
    pub profiles: Vec<Profile>,
    /// Packets that our own stack could not send.
    pub drops: Drops,
    /// Prefixes, next hops and neighbours of our own stack.
    pub sizes: (usize, usize, usize),
    /// Why a core could not go on.
    pub error: Option<anyhow::Error>,
}

/// Carries out a plan, a thread for each core.
pub fn send_all(plan: &Plan, end: &AtomicBool) -> Result<Outcome> {
    let mut tables = match plan.way {
        Way::Own => Some(Tables::load(plan)?),
        _ => None,
    };
    let senders = (0..plan.cores)
        .map(|core| Sender::open(plan, core, tables.as_ref()))
        .collect::<Result<Vec<Sender>>>()?;
    // All sockets are open. Pages that the kernel sends from where they lie
    // are locked meanwhile, and with CAP_IPC_LOCK count against nobody.
    privileges::give_up_but(CapabilitySet::IPC_LOCK).context("giving up privileges")?;
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        let started: Vec<_> = senders
            .into_iter()
            .enumerate()
            .map(|(core, sender)| {
                let worker = Worker::new(plan, core, sender);
                scope.spawn(move || worker.run(end))
            })
            .collect();
        // The tables follow the kernel's while there is somebody to see it.
        while let Some(tables) = &mut tables
            && started.iter().any(|thread| !thread.is_finished())
        {
            tables.follow();
        }
        for thread in started {
            let Ok(done) = thread.join() else { continue };
            outcome.tallies.push(done.tally);
            outcome.profiles.extend(done.profile);
            outcome.drops.add(&done.drops);
            outcome.error = outcome.error.take().or(done.error);
        }
    });
    outcome.sizes = tables.map_or((0, 0, 0), |tables| tables.sizes());
    Ok(outcome)
}
