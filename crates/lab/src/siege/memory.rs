//! What the daemon takes of memory while it is attacked: looked at all the
//! time, so that the last figures are there when the kernel ends it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::besieged::{self, Besieged, Cgroup};
use crate::Netns;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Looks at what the system says for one question to the daemon itself.
const LOOKS_A_QUESTION: usize = 10;
/// What is not answered by then is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Octets by what they are.
pub type Octets = BTreeMap<String, u64>;

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// When it was last looked.
    pub last: Octets,
    /// The most of each.
    pub peak: Octets,
}

impl Seen {
    fn note(&mut self, octets: Octets) {
        for (what, octets) in octets {
            let peak = self.peak.entry(what.clone()).or_default();
            *peak = (*peak).max(octets);
            self.last.insert(what, octets);
        }
    }
}

/// Looks all the time, until it is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look.
    pub fn start(netns: &Netns, besieged: &Besieged) -> Self {
        let (stop, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Seen>>::default());
        let (process, cgroup) = (besieged.process(), besieged.cgroup().cloned());
        let netns = Netns::open(netns.name());
        let (until, to) = (Arc::clone(&stop), Arc::clone(&seen));
        let look = move || {
            let mut looks = 0_usize;
            while !until.load(Ordering::Relaxed) {
                let mut octets = of_system(process, cgroup.as_ref());
                if looks.is_multiple_of(LOOKS_A_QUESTION) {
                    octets.append(&mut of_daemon());
                }
                looks += 1;
                to.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .note(octets);
                thread::sleep(LOOK);
            }
        };
        let thread = thread::spawn(move || {
            let _ = netns.and_then(|netns| netns.inside(look));
        });
        Self {
            stop,
            seen,
            thread: Some(thread),
        }
    }

    /// What was seen until now.
    pub fn seen(&self) -> Seen {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the system says.
fn of_system(process: u32, cgroup: Option<&Cgroup>) -> Octets {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut octets = Octets::new();
    for (key, what) in [("RssAnon:", "anonymous"), ("RssFile:", "of files")] {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        octets.extend(kib.map(|kib| (what.to_owned(), kib << 10)));
    }
    let charged = cgroup.into_iter().flat_map(Cgroup::charged);
    octets.extend(charged.map(|(what, octets)| (what.to_owned(), octets)));
    octets
}

/// What the daemon says: its metrics of octets.
fn of_daemon() -> Octets {
    let metrics = besieged::http("/metrics", PATIENCE).unwrap_or_default();
    let lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    let told = lines.filter_map(|(name, value)| {
        let name = name.strip_prefix("fingerpost_")?;
        let is_octets = name.contains("bytes") && !name.contains("_max");
        let octets = value.parse::<f64>().ok().filter(|_| is_octets)?;
        Some((name.to_owned(), octets as u64))
    });
    told.collect()
}
