//! A namespace that is answered for: its name and its [`Source`]. The one
//! place where answers ask for fresh samples.

use std::sync::Arc;
use std::time::{Duration, Instant};

use table::{KERNEL, OfOwner, Phase, Sampled, Samples, Source, Tables};
use view::{Object, Question};

/// How old a sample may be when it is shown.
const FRESH: Duration = Duration::from_millis(1_500);
/// How long an answer waits for fresh counters and ages.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one waits for rows that were not announced. Where a sample
/// takes longer than this, no answer waits: the table is large, and its
/// next answer has them.
const BRIEF: Duration = Duration::from_millis(50);

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
        if source
            .owner()
            .status()
            .feed
            .is_some_and(|feed| feed.routers.is_some())
        {
            return Err(self.is_station(source.owner().name()));
        }
        Ok(Self {
            feeder: Some(source.owner().id()),
            source: Arc::new(source),
            ..self.clone()
        })
    }

    /// Of a BMP station the rows are all its routers'.
    fn is_station(&self, name: &str) -> String {
        let tables = self.tables();
        let behind = |owner: &str| {
            owner
                .strip_prefix(name)
                .is_some_and(|of| of.starts_with(':'))
        };
        let all: Vec<&str> = tables
            .owners()
            .map(|owner| owner.name())
            .filter(|owner| behind(owner))
            .collect();
        let sources = match all[..] {
            [] => "there is none yet".to_owned(),
            _ => all.join(", "),
        };
        format!("`{name}` has a source for each table of each peer of its routers: {sources}")
    }

    fn no_source(&self, name: &str) -> String {
        let tables = self.tables();
        let owners = tables.owners().map(|owner| owner.name());
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

    /// The same; waits a bounded time for what was not announced, and with
    /// `statistics` longer, until counters and ages are fresh.
    pub fn refresh(&self, object: Object, statistics: bool) {
        self.want(object);
        if let Some((samples, what, patience)) = self.awaited(object, statistics) {
            samples.wait(what, since(), patience);
        }
    }

    /// The same for a thread that others are served on.
    pub async fn refreshed(&self, object: Object, statistics: bool) {
        self.want(object);
        if let Some((samples, what, patience)) = self.awaited(object, statistics) {
            // Beyond the bound the sample of before is shown, with its age.
            let _ = tokio::time::timeout(patience, samples.fresh(what, since())).await;
        }
    }

    /// Waits until timers that an answer shows are as new as that; whether
    /// they are. Where the kernel keeps its lock of links they may not be.
    pub fn refresh_timers(&self, question: &Question, age: Duration) -> bool {
        self.want_timers(question, age)
            .is_none_or(|(samples, since)| samples.wait(Sampled::BridgeTimers, since, PATIENCE))
    }

    /// The same for a thread that others are served on.
    pub async fn refreshed_timers(&self, question: &Question) {
        if let Some((samples, since)) = self.want_timers(question, Duration::ZERO) {
            let fresh = samples.fresh(Sampled::BridgeTimers, since);
            // Beyond the bound they are left out, for their age.
            let _ = tokio::time::timeout(PATIENCE, fresh).await;
        }
    }

    /// Has timers read, where an answer shows some and they are older than
    /// that; since when they are new enough.
    fn want_timers(&self, question: &Question, age: Duration) -> Option<(&Samples, Instant)> {
        if !view::shows_timers(question) || !self.has_bridges() {
            return None;
        }
        let samples = self.source.samples()?;
        let now = Instant::now();
        let since = now.checked_sub(age).unwrap_or(now);
        if samples.is_fresh(Sampled::BridgeTimers, since) {
            return None;
        }
        samples.want(Sampled::BridgeTimers, Instant::now());
        Some((samples, since))
    }

    /// Whether there is a bridge: a port is of one. O(links).
    fn has_bridges(&self) -> bool {
        let tables = self.source.reader().snapshot();
        let mut links = tables.links.iter();
        links.any(|link| link.kind.as_deref() == Some("bridge"))
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

    /// The sample that is worth waiting for, and for how long.
    fn awaited(&self, object: Object, statistics: bool) -> Option<(&Samples, Sampled, Duration)> {
        let (samples, what) = self.sampled(object)?;
        if statistics && matches!(object, Object::Link | Object::Neigh) {
            return Some((samples, what, PATIENCE));
        }
        let cost = samples.cost(what).unwrap_or_default();
        (cost < BRIEF).then_some((samples, what, BRIEF))
    }
}

/// How new a sample is to be.
fn since() -> Instant {
    let now = Instant::now();
    now.checked_sub(FRESH).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use table::{Reader, Status, Writer};

    use super::*;

    #[derive(Debug)]
    struct Sampling {
        reader: Reader,
        samples: Samples,
    }

    impl Source for Sampling {
        fn reader(&self) -> Reader {
            self.reader.clone()
        }

        fn status(&self) -> Status {
            Status::default()
        }

        fn samples(&self) -> Option<&Samples> {
            Some(&self.samples)
        }

        fn now_millis(&self) -> u64 {
            0
        }
    }

    #[test]
    fn an_answer_waits_for_what_was_not_announced_unless_that_takes_long() {
        let (wake, woken) = channel();
        let samples = Samples::new(move || {
            let _ = wake.send(());
        });
        let source = Sampling {
            reader: Writer::default().reader(),
            samples: samples.clone(),
        };
        let namespace = Namespace {
            name: None,
            inode: 0,
            is_others: false,
            source: Arc::new(source),
            feeder: None,
        };
        let begun = Instant::now();
        let taken = samples.clone();
        let taking = thread::spawn(move || {
            woken.recv().unwrap();
            taken.took(Sampled::Fdb, begun, begun);
        });
        while !samples.is_fresh(Sampled::Fdb, begun) {
            // A loaded machine may let the bound pass before it is taken.
            namespace.refresh(Object::Fdb, false);
        }
        taking.join().unwrap();
        let (before, after) = (begun - 2 * FRESH, begun + BRIEF);
        samples.took(Sampled::Fdb, before, after);
        assert!(namespace.awaited(Object::Fdb, false).is_none());
        assert!(namespace.awaited(Object::Route, true).is_none());
        let counters = namespace.awaited(Object::Link, true);
        assert_eq!(counters.map(|(.., patience)| patience), Some(PATIENCE));
    }
}
