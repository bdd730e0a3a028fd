//! A siege: what hostile clients and neighbours can do to a daemon, all at
//! once, while the host's own administrator goes on asking. Called by
//! `cargo xtask siege` and, in short, by the program's tests.
//!
//! - `attackers`: what they do, as users without rights.
//! - `probes`: what the administrator asks meanwhile, and how long it took.
//! - `kills`: ends by SIGKILL meanwhile, and what must be there after each.
//! - `memory`: what the daemon takes of memory meanwhile.
//! - `besieged`: the daemon, in a memory cgroup where one can be had.

mod attackers;
mod besieged;
mod kills;
mod memory;
mod probes;

use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::situation::routes::{self, Family};
use crate::{Netns, wait_until};
use attackers::Attackers;
pub use attackers::words;
use besieged::Besieged;
use kills::Kills;
use memory::{Octets, Watch};
use probes::{Probes, Sample};

/// For what must come, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// How it is done.
#[derive(Debug, Clone)]
pub struct Siege {
    /// The program under test.
    pub program: PathBuf,
    /// Routes that must stay.
    pub routes: usize,
    /// How long it lasts; zero: only kills.
    pub lasts: Duration,
    /// Memory that the daemon may take, octets.
    pub memory: u64,
    /// Of it for what clients do not take, octets.
    pub kept: u64,
    /// The attacks by their words ([`words`]); none: all.
    pub only: Vec<String>,
    /// How hard.
    pub force: Force,
    /// How long answers may take.
    pub bounds: Bounds,
    /// Ends by SIGKILL, at random moments, before all else.
    pub kills: u32,
    /// Begins the random moments.
    pub seed: u64,
}

/// How many attackers of each kind.
#[derive(Debug, Clone, Copy)]
pub struct Force {
    /// Requests that are closed at once, in a burst.
    pub burst: usize,
    /// Clients of HTTP that ask for much and take nothing.
    pub slow: usize,
    /// Clients of the control socket that watch, or ask and take nothing.
    pub quiet: usize,
    /// Connections a second, of each kind, that ask nothing.
    pub connects: usize,
    /// SNMP requests a second.
    pub snmp: usize,
    /// Forged netlink messages a second.
    pub forged: usize,
    /// Changes of routes a second.
    pub changes: usize,
}

/// How long answers may take; the first four at the 99th percentile.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// `status`, asked by root.
    pub status: Duration,
    /// `/healthz`, asked by root.
    pub health: Duration,
    /// One SNMP object, asked from another port.
    pub snmp: Duration,
    /// From SIGTERM to the end.
    pub end: Duration,
    /// Until all is back when the siege is over.
    pub back: Duration,
    /// From a start to the first answer.
    pub ready: Duration,
    /// Questions that may go unanswered, in a thousand.
    pub unanswered: usize,
}

/// A figure, and what it is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// What it came to.
    pub measured: String,
    /// What it may be.
    pub limit: String,
    /// Whether it is.
    pub holds: bool,
}

impl Figure {
    fn new(what: &str, measured: impl fmt::Display, limit: impl fmt::Display, holds: bool) -> Self {
        Self {
            what: what.to_owned(),
            measured: measured.to_string(),
            limit: limit.to_string(),
            holds,
        }
    }

    fn time(what: &str, took: Duration, limit: Duration) -> Self {
        Self::new(what, millis(took), millis(limit), took <= limit)
    }
}

fn millis(of: Duration) -> String {
    format!("{:.1} ms", of.as_secs_f64() * 1e3)
}

fn mib(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / f64::from(1 << 20))
}

/// Octets by what they are, in a line.
fn told(octets: &Octets) -> String {
    let each = octets
        .iter()
        .map(|(what, octets)| format!("{what} {}", mib(*octets)));
    let all = each.collect::<Vec<_>>().join(", ");
    format!("memory when last looked at: {all}")
}

/// Figures as a table.
pub fn table(figures: &[Figure]) -> String {
    let mut text = format!("{:<44} {:>16} {:>16}\n", "what", "measured", "limit");
    for one in figures {
        let mark = if one.holds { "" } else { "  <-- broken" };
        text += &format!(
            "{:<44} {:>16} {:>16}{mark}\n",
            one.what, one.measured, one.limit
        );
    }
    text
}

impl Siege {
    /// Does it, and gives the figures.
    pub fn run(&self) -> Result<Vec<Figure>> {
        raise_descriptors();
        let netns = Netns::new("siege")?;
        routes::build(&netns, Family::V4, self.routes)?;
        let mut figures = Vec::new();
        if self.kills > 0 {
            let mut besieged = Besieged::start(&netns, self, true)?;
            figures.append(&mut Kills::new(self, &netns, &mut besieged)?.run()?);
        }
        if self.lasts.is_zero() {
            return Ok(figures);
        }
        let mut besieged = Besieged::start(&netns, self, false)?;
        self.hold(&netns, &mut besieged, &mut figures)?;
        self.end(&netns, besieged, &mut figures)?;
        Ok(figures)
    }

    /// Whether an attack is wanted.
    fn has(&self, word: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == word)
    }

    /// Under attack for as long as it lasts, then at peace again.
    fn hold(
        &self,
        netns: &Netns,
        besieged: &mut Besieged,
        figures: &mut Vec<Figure>,
    ) -> Result<()> {
        let watch = Watch::start(netns, besieged);
        let attackers = Attackers::start(netns, besieged, self)?;
        let probes = Probes::start(netns, besieged);
        let held = self.last(besieged);
        let samples = probes.stop();
        let attacks = attackers.stop();
        let (over, spent) = (Instant::now(), besieged.spent()?);
        held.with_context(|| told(&watch.seen().last))?;
        let asked = [
            ("root's status", &samples.status, self.bounds.status),
            ("root's /healthz", &samples.health, self.bounds.health),
            (
                "another manager's SNMP GET",
                &samples.snmp,
                self.bounds.snmp,
            ),
        ];
        for (what, sample, limit) in asked {
            self.judge(what, sample, limit, figures);
        }
        wait_until(PATIENCE, "the daemon to be idle again", || {
            besieged.is_idle(netns).then_some(())
        })
        .with_context(|| besieged.state(netns))?;
        let back = over.elapsed();
        figures.push(Figure::time("all places are back", back, self.bounds.back));
        let work = besieged.spent()?.saturating_sub(spent);
        let what = "all places are back, processor time until then";
        figures.push(Figure::new(what, millis(work), "", true));
        self.nothing_lost(netns, besieged, figures)?;
        let (peak, how) = besieged.peak()?;
        let what = format!("memory at most ({how})");
        let fits = peak <= self.memory;
        figures.push(Figure::new(&what, mib(peak), mib(self.memory), fits));
        for (what, octets) in watch.seen().peak {
            let what = format!("at most: {what}");
            figures.push(Figure::new(&what, mib(octets), "", true));
        }
        for (what, count) in attacks {
            let what = format!("attacks: {what}");
            figures.push(Figure::new(&what, count, "some", count > 0));
        }
        Ok(())
    }

    /// Lets it last, and tells how the daemon ended if it did.
    fn last(&self, besieged: &mut Besieged) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < self.lasts {
            if let Some(how) = besieged.ended() {
                bail!("after {:.1} s: {how}", began.elapsed().as_secs_f64());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn judge(&self, what: &str, sample: &Sample, limit: Duration, figures: &mut Vec<Figure>) {
        let asked = sample.took.len() + sample.failed;
        let lost = sample.failed * 1_000 <= self.bounds.unanswered * asked;
        let holds = lost && !sample.took.is_empty();
        let limit_of_lost = format!("{} of 1000", self.bounds.unanswered);
        let unanswered = format!("{} of {asked}", sample.failed);
        figures.push(Figure::time(
            &format!("{what}, 99th percentile"),
            sample.percentile(99),
            limit,
        ));
        let what_of_lost = format!("{what}, unanswered");
        figures.push(Figure::new(&what_of_lost, unanswered, limit_of_lost, holds));
        if !sample.work.is_empty() {
            let work = probes::percentile(&sample.work, 99);
            let what = format!("{what}, processor time until then");
            figures.push(Figure::new(&what, millis(work), "", true));
        }
    }

    /// The tables are the kernel's, and nothing forged is in them.
    fn nothing_lost(
        &self,
        netns: &Netns,
        besieged: &Besieged,
        figures: &mut Vec<Figure>,
    ) -> Result<()> {
        let counted = wait_until(PATIENCE, "the routes of before", || {
            let counted = besieged.routes(netns)?;
            (counted == self.routes).then_some(counted)
        });
        let counted = counted.or_else(|_| besieged.routes(netns).context("no answer at all"))?;
        let holds = counted == self.routes;
        figures.push(Figure::new("routes", counted, self.routes, holds));
        Ok(())
    }

    /// Ends it as a service manager does, while it is attacked.
    fn end(&self, netns: &Netns, besieged: Besieged, figures: &mut Vec<Figure>) -> Result<()> {
        let attackers = Attackers::start(netns, &besieged, self)?;
        thread::sleep(Duration::from_secs(1));
        let took = besieged.end()?;
        attackers.stop();
        figures.push(Figure::time("SIGTERM under attack", took, self.bounds.end));
        Ok(())
    }
}

/// Attackers hold thousands of sockets.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Fewer attackers, then.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Whether threads may become another user here.
pub fn may_become_others() -> Result<()> {
    let tried = thread::spawn(|| attackers::become_user(attackers::USERS[0])).join();
    let became = tried.is_ok_and(|became| became.is_ok());
    ensure!(became, "becoming another user needs root, and other users");
    Ok(())
}
