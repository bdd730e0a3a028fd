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

use super::control::pieces::{Job, Jobs};
use super::control::server::{Askers, Control};
use super::log::{Log, Options, Told};
use super::mib::Snmp;
use super::settings::Settings;
use super::state::{Beginning, State};
use super::{end, tun};

/// How often workers are asked for what they have to tell.
const TELLS: Duration = Duration::from_millis(20);
/// How long a worker may take to take a change.
const PATIENCE: Duration = Duration::from_secs(5);

/// What else is wanted of the translation.
#[derive(Debug, Clone, Default, Args)]
pub struct Beside {
    /// A socket for `nat show`, `nat clear`, `nat reload` and `nat who`, and
    /// for `up`, which looks at /run/fingerpost-nat.sock unless told otherwise
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, requires_all = ["nat", "tun"])]
    nat_control: Option<PathBuf>,
    /// A group that may ask there beside root, and change nothing: that of
    /// the daemon, say
    #[arg(long, value_name = "GROUP", requires = "nat_control")]
    nat_control_group: Option<String>,
    /// File that keeps flows, mappings and blocks from the end of one
    /// translation to the start of the next [default: state_file of the rules]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["nat", "tun"])]
    nat_state: Option<PathBuf>,
    #[command(flatten)]
    snmp: Snmp,
    #[command(flatten)]
    log: Options,
}

impl Beside {
    /// Whether anything is written down.
    pub fn is_any(&self) -> bool {
        self.log.events() != (0, 0)
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
        let control = Control {
            control: beside.nat_control.clone(),
            control_group: beside.nat_control_group.clone(),
        };
        let askers = Askers::open(&control, &beside.snmp)?;
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

    /// All ports are open, and workers begin to translate.
    pub fn confirm(&mut self) -> anyhow::Result<()> {
        if let Some(beginning) = self.beginning.take() {
            beginning.confirm(&self.log)?;
        }
        Ok(())
    }

    /// To be called again and again: takes records, hands questions on.
    pub fn tend(&mut self, workers: &[Running]) {
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
        let Some(job) = self.askers.jobs.as_mut().and_then(Jobs::next_job) else {
            return;
        };
        match job.is_reload() {
            true => {
                let done = self.reload(workers);
                job.reloaded(done);
            }
            false => self.hand(job, workers),
        }
    }

    /// A question for one of the workers. Who asked hears nothing where that
    /// takes none, and says that it is busy.
    fn hand(&self, job: Job, workers: &[Running]) {
        let engines = usize::from(self.parts);
        if let Some(worker) = workers.get(job.engine()) {
            let answer = move |nat: &mut Nat| job.answer(nat, engines);
            worker.ask(Ask::Nat(Errand::new(answer)));
        }
    }

    /// Reads the rules again, for all workers; with a wrong one all stays as
    /// it was.
    pub fn reload(&self, workers: &[Running]) -> Result<(), String> {
        let given = self.give_again(workers);
        match &given {
            Ok(()) => info!("the rules were read again"),
            Err(error) => warn!("the rules stay as they were: {error:#}"),
        }
        given.map_err(|error| format!("{error:#}"))
    }

    fn give_again(&self, workers: &[Running]) -> anyhow::Result<()> {
        let again = self.settings.read_again(self.parts)?;
        if self.parts > 1 && self.settings.shared()? != self.shared {
            bail!(
                "with several workers, which of them a packet is of does not change: alias_address, port_range, redirects, modes, subscribers and the size of blocks take a restart"
            );
        }
        let until = Instant::now() + PATIENCE;
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
            done.recv_timeout(left)
                .context("a worker does not answer")??;
        }
        Ok(())
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
