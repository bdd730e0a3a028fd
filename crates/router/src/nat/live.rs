//! The engine of `fingerpost router`, with all that `nat run` has beside it:
//! records, a control socket, its state. Called by `crate::live`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use dataplane::Tap;
use dataplane::xdp::{Flow, Forwarding, Used};
use nat::Nat;
use tracing::{debug, info};

use super::control::server::Askers;
use super::ends::Ends;
use super::log::Log;
use super::offloading::{Offloading, offloaded};
use super::report::Report;
use super::settings::Settings;
use super::state::{Beginning, State};
use super::tun::{self, Asked, Moving, OnSignal, Signals};
use super::workers::Beside;

pub use super::offloading::LEAST_TIMEOUT_SECS;
pub use super::tun::now_millis;

/// What is wanted beside the translation.
#[derive(Debug, Clone, Default, Args)]
pub struct EngineOptions {
    #[command(flatten)]
    beside: Beside,
    /// Lower what TCP announces as its largest segment to N bytes, both ways
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(536..), requires = "nat")]
    clamp_mss: Option<u16>,
}

impl EngineOptions {
    /// With these where nothing was said.
    pub fn or(&self, control: Option<&Path>, group: Option<&str>, state: Option<&Path>) -> Self {
        let mut options = self.clone();
        let beside = &mut options.beside;
        if beside.nat_control.is_none() {
            beside.nat_control = control.map(Path::to_owned);
            beside.nat_control_group = group.map(str::to_owned);
        }
        if beside.nat_state.is_none() {
            beside.nat_state = state.map(Path::to_owned);
        }
        options
    }
}

/// An engine before its first packet.
pub struct Engine {
    engines: Vec<Nat>,
    settings: Settings,
    state: State,
    beginning: Beginning,
    askers: Askers,
    log: Log,
    clamp_mss: Option<u16>,
}

impl Engine {
    /// By a file of rules. What was left for it stays until it runs.
    pub fn begin(rules: &Path, options: &EngineOptions) -> Result<Self> {
        let beside = &options.beside;
        let settings = Settings::of_rules(rules).with_events(beside.log.events());
        let journal = beside.log.journal();
        let state = State::new(beside.nat_state.as_deref(), &settings, journal)?;
        let askers = beside.askers()?;
        let log = beside.log.open()?;
        let (engines, beginning) = state.begin(&settings, 1, now_millis())?;
        let engine = Self {
            engines,
            settings,
            state,
            beginning,
            askers,
            log,
            clamp_mss: options.clamp_mss,
        };
        beside.snmp.check(engine.nat().config())?;
        Ok(engine)
    }

    /// It.
    pub fn nat(&self) -> &Nat {
        // One was asked for.
        &self.engines[0]
    }

    /// Takes up the flows that a program on a link translates for an engine that
    /// is gone: how many it has by that, and how many it could not have.
    pub fn adopt(&mut self, left: &[Used]) -> (usize, usize) {
        let Some(nat) = self.engines.first_mut() else {
            return (0, left.len());
        };
        let counts_inbound = nat.config().inbound_refresh;
        let mut idle: HashMap<Flow, Duration> = HashMap::new();
        for used in left.iter().filter(|used| counts_inbound || !used.comes_in) {
            let least = idle.entry(used.flow).or_insert(used.idle);
            *least = used.idle.min(*least);
        }
        let now = now_millis();
        let (mut taken, mut lost) = (0, 0);
        for (flow, idle) in idle {
            let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            match nat.adopt(&offloaded(&flow), idle, now) {
                Ok(()) => taken += 1,
                Err(why) => {
                    debug!("a flow that was left is not taken up: {why}");
                    lost += 1;
                }
            }
        }
        (taken, lost)
    }

    /// Translates until `end` becomes readable, and keeps what there is then.
    pub fn run(
        self,
        [mut inside, mut outside]: [Tap; 2],
        end: UnixStream,
        (forwarding, count, beat): (Arc<Forwarding>, Arc<AtomicU64>, Arc<AtomicU64>),
    ) -> Result<()> {
        let Self {
            mut engines,
            settings,
            state,
            beginning,
            mut askers,
            log,
            clamp_mss,
        } = self;
        let nat = engines
            .first_mut()
            .ok_or_else(|| anyhow!("there is no engine"))?;
        let mut ends = Ends::default();
        ends.tell(Ends::of(nat)?, &forwarding)?;
        let ends = RefCell::new(ends);
        let offloading = Offloading::new(Arc::clone(&forwarding), count, beat);
        let mut moving = Moving::new(clamp_mss, Some(offloading))?;
        beginning.confirm(&log)?;
        let on_signal = OnSignal {
            reload: &|nat| {
                let later = super::reload(&settings, nat)?;
                let told = Ends::of(nat).and_then(|now| ends.borrow_mut().tell(now, &forwarding));
                told.map_err(|error| format!("{error:#}"))?;
                Ok(later)
            },
            print: &|nat, _| info!("{:?}", nat.statistics()),
        };
        let mut asked = Asked {
            jobs: askers.jobs.as_mut(),
            log: &log,
            beginning: None,
            clamp_mss,
        };
        let mut report = Report::default();
        let run = tun::shuttle(
            nat,
            &mut inside,
            &mut outside,
            &mut moving,
            (&mut Signals::ending(end)?, &on_signal),
            (&mut asked, &mut report),
        );
        moving.end()?;
        let now = now_millis();
        log.take_all(&mut engines, now);
        let is_kept = report.keep(state.end(&mut engines, now));
        super::end(log, is_kept);
        run?;
        report.state_error.map_or(Ok(()), Err)
    }
}
