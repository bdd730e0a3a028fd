//! The translation of `forward --nat`, beside its workers: the records of all
//! of them, their state at the end, and questions, which each worker answers
//! in turn between two batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use dataplane::worker::{Ask, Errand, Running};
use nat::Nat;
use nat::rules::Statement;
use tracing::{info, warn};

use super::control::pieces::Job;
use super::control::server::{Askers, Control};
use super::log::{Log, Options, Told};
use super::mib::Snmp;
use super::settings::{Later, Settings};
use super::state::{Beginning, State};
use super::{end, tun};

/// How often workers are asked for what they have to tell.
const TELLS: Duration = Duration::from_millis(20);
/// How long a worker may take to take a change.
const PATIENCE: Duration = Duration::from_secs(5);

/// What else is wanted of the translation of `forward` or `router`.
#[derive(Debug, Clone, Default, Args)]
pub struct Beside {
    /// A socket for `nat show`, `nat clear`, `nat reload` and `nat who`, and
    /// for `up`, which looks at /run/fingerpost-nat.sock unless told otherwise
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, requires = "nat")]
    pub(super) nat_control: Option<PathBuf>,
    /// A group that may ask there beside root, and change nothing: that of
    /// the daemon, say
    #[arg(long, value_name = "GROUP", requires = "nat_control")]
    pub(super) nat_control_group: Option<String>,
    /// File that keeps flows, mappings and blocks from the end of one
    /// translation to the start of the next [default: state_file of the rules]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "nat")]
    pub(super) nat_state: Option<PathBuf>,
    #[command(flatten)]
    pub(super) snmp: Snmp,
    #[command(flatten)]
    pub(super) log: Options,
}

impl Beside {
    /// Those who may ask it, from now on.
    pub(super) fn askers(&self) -> anyhow::Result<Askers> {
        let control = Control {
            control: self.nat_control.clone(),
            control_group: self.nat_control_group.clone(),
        };
        Askers::open(&control, &self.snmp)
    }
}

/// See the module.
pub struct Translation {
    settings: Settings,
    /// What may not change while there are several workers.
    shared: Vec<Statement>,
    parts: u16,
    /// What is to be done before the first packet.
    beginning: Option<Beginning>,
    state: State,
    log: Arc<Log>,
    askers: Askers,
    told: Instant,
}

impl Translation {
    /// By a file of rules, for so many workers: it and their engines. What was
    /// left for them stays until [`Translation::confirm`].
    pub fn begin(rules: &Path, beside: &Beside, parts: u16) -> anyhow::Result<(Self, Vec<Nat>)> {
        let settings = Settings::of_rules(rules).with_events(beside.log.events());
        let journal = beside.log.journal();
        let state = State::new(beside.nat_state.as_deref(), &settings, journal)?;
        let shared = settings.shared()?;
        let askers = beside.askers()?;
        let log = beside.log.open()?;
        let (engines, beginning) = state.begin(&settings, parts, tun::now_millis())?;
        if let Some(nat) = engines.first() {
            beside.snmp.check(nat.config())?;
        }
        let translation = Self {
            settings,
            shared,
            parts,
            beginning: Some(beginning),
            state,
            log: Arc::new(log),
            askers,
            told: Instant::now(),
        };
        Ok((translation, engines))
    }

    /// All ports are open and all workers are there, and they begin to
    /// translate once this is done.
    pub fn confirm(&mut self) -> anyhow::Result<()> {
        if let Some(beginning) = self.beginning.take() {
            beginning.confirm(&self.log)?;
        }
        Ok(())
    }

    /// To be called again and again: takes records, hands questions on. With a
    /// question it waits for those that follow, for `turn` in all: a walk is
    /// one of many pieces. Whether there was one.
    pub fn tend(&mut self, workers: &[Running], turn: Duration) -> bool {
        if !self.log.is_empty() && self.told.elapsed() >= TELLS {
            self.told = Instant::now();
            for worker in workers {
                let log = Arc::clone(&self.log);
                let take = move |nat: &mut Nat| {
                    log.take(nat, tun::now_millis());
                };
                // One that takes no question at the moment is asked again.
                worker.ask(Ask::Nat(Errand::new(take)));
            }
        }
        let until = Instant::now() + turn;
        let mut wait = Duration::ZERO;
        while let Some(job) = self.next_job(wait) {
            match job.is_reload() {
                true => {
                    let done = self.reload(workers);
                    job.reloaded(done);
                }
                false => self.hand(job, workers),
            }
            wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return true;
            }
        }
        !wait.is_zero()
    }

    fn next_job(&mut self, wait: Duration) -> Option<Job> {
        self.askers.jobs.as_mut()?.next_within(wait)
    }

    /// A question for one of the workers. Who asked hears nothing where that
    /// takes none, and says that it is busy. One that there is not has nothing.
    fn hand(&self, job: Job, workers: &[Running]) {
        let engines = usize::from(self.parts);
        match workers.get(job.engine()) {
            Some(worker) => {
                let answer = move |nat: &mut Nat| job.answer(nat, engines);
                worker.ask(Ask::Nat(Errand::new(answer)));
            }
            None => job.of_nobody(),
        }
    }

    /// Reads the rules again, for all workers; with a wrong one all stays as
    /// it was.
    pub fn reload(&self, workers: &[Running]) -> Result<Later, String> {
        let given = self.give_again(workers);
        match &given {
            Ok(_) => info!("the rules were read again"),
            Err(error) => warn!("the rules stay as they were: {error:#}"),
        }
        given.map_err(|error| format!("{error:#}"))
    }

    fn give_again(&self, workers: &[Running]) -> anyhow::Result<Later> {
        let again = self.settings.read_again(self.parts)?;
        if self.parts > 1 && self.settings.shared()? != self.shared {
            bail!(
                "with several workers, which of them a packet is of does not change: alias_address, port_range, redirects, modes, subscribers and the size of blocks take a restart"
            );
        }
        let until = Instant::now() + PATIENCE;
        let mut later = Later::new();
        for worker in workers {
            let again = again.clone();
            let (told, done) = std::sync::mpsc::channel();
            let give = move |nat: &mut Nat| drop(told.send(again.give(nat)));
            let mut errand = Some(Errand::new(give));
            while let Some(one) = errand.take() {
                errand = worker.hand(Ask::Nat(one)).and_then(|ask| match ask {
                    Ask::Nat(errand) => Some(errand),
                    _ => None,
                });
                if errand.is_some() {
                    if Instant::now() >= until {
                        bail!("a worker is busy: some may have the rules, ask again");
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let given = done.recv_timeout(left);
            // All say the same.
            later = given.context("a worker does not answer")??;
        }
        Ok(later)
    }

    /// Keeps what the engines have, once no worker works any more. What
    /// became of the records, and why the state is not kept.
    pub fn end(self, mut engines: Vec<Nat>) -> (Vec<Told>, Option<anyhow::Error>) {
        let now = tun::now_millis();
        self.log.take_all(&mut engines, now);
        let is_whole = engines.len() == usize::from(self.parts);
        let kept = match is_whole {
            true => self.state.end(&mut engines, now),
            false => Ok(false),
        };
        let (is_kept, error) = match kept {
            Ok(is_kept) => (is_kept, None),
            Err(error) => (false, Some(error)),
        };
        // What a worker did not get to is gone with it.
        let told = Arc::try_unwrap(self.log).map_or(Vec::new(), |log| end(log, is_kept));
        (told, error)
    }
}
