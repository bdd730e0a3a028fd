//! A namespace that is answered for: its name and its [`Source`]. The one
//! place where answers ask for fresh samples.

use std::sync::Arc;
use std::time::{Duration, Instant};

use table::{KERNEL, OfOwner, Phase, Sampled, Samples, Source, Tables};
use view::Object;

/// How old a sample may be when it is shown.
const FRESH: Duration = Duration::from_millis(1_500);
/// How long an answer waits for a fresh sample.
const PATIENCE: Duration = Duration::from_secs(2);

/// A namespace that is answered for. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// What it was asked for by; `None`: the daemon's own.
    pub name: Option<String>,
    /// Its inode, or the one it had when it was recorded.
    pub inode: u64,
    /// It is not the daemon's own: the kernel tells its tables to whoever
    /// may enter it, and so do we.
    pub is_others: bool,
    /// Where its tables come from.
    pub source: Arc<dyn Source>,
    /// Whose rows they are, if not the kernel's: tells a feeder from one
    /// that joined under its name before.
    pub feeder: Option<u64>,
}

impl Namespace {
    /// The same with the rows of one owner: the kernel's (`None`), or those
    /// of a feeder. Else, who there is, in words.
    pub fn of(&self, owner: Option<&str>) -> Result<Self, String> {
        let Some(name) = owner else {
            return Ok(self.clone());
        };
        if name == KERNEL {
            return Ok(self.clone());
        }
        let source = OfOwner::new(&self.source, name).ok_or_else(|| self.no_source(name))?;
        Ok(Self {
            feeder: Some(source.owner().id()),
            source: Arc::new(source),
            ..self.clone()
        })
    }

    fn no_source(&self, name: &str) -> String {
        let tables = self.tables();
        let owners = tables.owners().iter().map(|owner| owner.name());
        let known: Vec<&str> = [KERNEL].into_iter().chain(owners).collect();
        let name: String = name.chars().take(64).collect();
        format!(
            "no source `{name}` feeds rows here; there are: {}",
            known.join(", ")
        )
    }

    /// What it has at this moment.
    pub fn tables(&self) -> Arc<Tables> {
        self.source.reader().snapshot()
    }

    /// Why its rows are gone, where they are a feeder's that left.
    pub fn left(&self) -> Option<String> {
        let ended = |phase| match phase {
            Phase::Ended(why) => Some(why),
            _ => None,
        };
        self.feeder.and_then(|_| ended(self.source.status().phase))
    }

    /// Why an answer may lack rows, or have some that are gone; `None`: it
    /// is whole. That a recording is at its end is no such reason.
    pub fn incomplete(&self) -> Option<String> {
        self.source.incomplete()
    }

    /// Has what is not announced of a table sampled soon, where anything
    /// is. Returns at once.
    pub fn want(&self, object: Object) {
        if let Some((samples, what)) = self.sampled(object) {
            samples.want(what, Instant::now());
        }
    }

    /// The same; with `statistics`, waits a bounded time until counters and
    /// ages are fresh.
    pub fn refresh(&self, object: Object, statistics: bool) {
        self.want(object);
        if let Some((samples, what, since)) = self.awaited(object, statistics) {
            samples.wait(what, since, PATIENCE);
        }
    }

    /// The same for a thread that others are served on.
    pub async fn refreshed(&self, object: Object, statistics: bool) {
        self.want(object);
        if let Some((samples, what, since)) = self.awaited(object, statistics) {
            // Beyond the bound the sample of before is shown, with its age.
            let _ = tokio::time::timeout(PATIENCE, samples.fresh(what, since)).await;
        }
    }

    fn sampled(&self, object: Object) -> Option<(&Samples, Sampled)> {
        let what = match object {
            Object::Link => Sampled::Links,
            Object::Addr => Sampled::Addresses,
            Object::Neigh => Sampled::Neighbours,
            Object::Fdb => Sampled::Fdb,
            Object::Route | Object::Nexthop | Object::Rule => return None,
        };
        Some((self.source.samples()?, what))
    }

    /// The sample that is worth waiting for, and how new it is to be.
    fn awaited(&self, object: Object, statistics: bool) -> Option<(&Samples, Sampled, Instant)> {
        let counts = matches!(object, Object::Link | Object::Neigh);
        let (samples, what) = self.sampled(object).filter(|_| statistics && counts)?;
        Some((samples, what, Instant::now().checked_sub(FRESH)?))
    }
}
