//! What forwards at XDP beside the daemon (`fingerpost router`, a process of
//! its own), asked at its control socket on behalf of whoever asks here: by a
//! thread of its own, one question at a time, and only while somebody wants
//! to know. What it says of filters by their names is not handed on: the
//! kernel tells these to whoever may change them, and `router status` does.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use dataplane::xdp::standing::Report;
use serde::{Deserialize, Serialize};

/// How old an answer may be when it is handed on.
const FRESH: Duration = Duration::from_millis(500);
/// How long somebody waits for a fresh one; beyond that it is trouble.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long one that did not answer is not asked again.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);
/// Between two looks of a thread that others are served on.
const LOOK: Duration = Duration::from_millis(2);

/// How long the router itself may take for each step of an answer.
pub const ANSWER_PATIENCE: Duration = Duration::from_millis(500);

/// How forwarding at XDP stands, as a status tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ForwardingStatus {
    /// Why the router that is there does not answer.
    pub trouble: Option<String>,
    /// What it says, half a second old at most.
    pub report: Option<Report>,
}

impl ForwardingStatus {
    /// Writes it for people.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(report) = &self.report else {
            return Ok(());
        };
        let [forwarded, up] = report.total();
        writeln!(
            out,
            "router at XDP: {}; {} packets forwarded, {} up",
            self.ports(),
            forwarded.packets,
            up.packets
        )
    }

    /// Its ports, and what is left to the kernel, in words.
    pub fn ports(&self) -> String {
        let Some(report) = &self.report else {
            return "no answer".to_owned();
        };
        let ports = &report.status.ports;
        let forward = ports
            .iter()
            .filter(|port| port.receives.ipv4 || port.receives.ipv6);
        let mut words = format!("{} of {} ports forward", forward.count(), ports.len());
        let obstacles = report.status.obstacles.iter();
        let names = obstacles
            .filter(|one| !one.accepted)
            .map(|one| one.name.as_str());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            words.push_str(", left to the kernel for ");
            words.push_str(&names.join(", "));
        }
        words
    }

    /// What its user should know.
    pub fn warning(&self) -> Option<String> {
        let trouble = self.trouble.as_ref();
        trouble.map(|why| format!("the router at XDP does not answer: {why}"))
    }
}

/// Asks the router; `None` where there is none.
type Ask = dyn Fn() -> Result<Option<Report>, String> + Send + Sync;

/// Tells how forwarding at XDP stands. Cheap to clone. The default one knows
/// of no router.
#[derive(Clone, Default)]
pub struct Gauge(Option<Arc<Asking>>);

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gauge")
    }
}

struct Asking {
    ask: Box<Ask>,
    known: Mutex<Known>,
    changed: Condvar,
}

/// What is known, and whether somebody wants to know more.
#[derive(Default)]
struct Known {
    status: Option<ForwardingStatus>,
    /// When it was asked for.
    at: Option<Instant>,
    is_wanted: bool,
    has_thread: bool,
}

impl Known {
    fn is_fresh(&self) -> bool {
        let trouble = self.status.as_ref().is_some_and(|one| one.report.is_none());
        let age = if trouble { AFTER_TROUBLE } else { FRESH };
        self.at.is_some_and(|at| at.elapsed() < age)
    }
}

impl Gauge {
    /// One that asks by a function, which has to end within some
    /// [`ANSWER_PATIENCE`]. It is called on a thread that starts when somebody
    /// asks first, with that one's rights, and lasts as long as the process.
    pub fn new(ask: impl Fn() -> Result<Option<Report>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Asking {
            ask: Box::new(ask),
            known: Mutex::default(),
            changed: Condvar::new(),
        })))
    }

    /// How it stands; `None` where nothing forwards at XDP. Waits a bounded
    /// time where nobody has asked just now.
    pub fn status(&self) -> Option<ForwardingStatus> {
        let asking = self.0.as_ref()?;
        let known = asking.want();
        let waited = asking
            .changed
            .wait_timeout_while(known, PATIENCE, |known| !known.is_fresh());
        let (known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        told(&known)
    }

    /// The same for a thread that others are served on.
    pub async fn told(&self) -> Option<ForwardingStatus> {
        let asking = self.0.as_ref()?;
        drop(asking.want());
        let asked = Instant::now();
        loop {
            {
                let known = asking.lock();
                if known.is_fresh() || asked.elapsed() >= PATIENCE {
                    return told(&known);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn told(known: &Known) -> Option<ForwardingStatus> {
    if known.is_fresh() {
        return known.status.clone();
    }
    let trouble = Some("it takes too long".to_owned());
    Some(ForwardingStatus {
        trouble,
        report: None,
    })
}

impl Asking {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it asked, unless it was just now.
    fn want(self: &Arc<Self>) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        if known.is_fresh() {
            return known;
        }
        known.is_wanted = true;
        if !known.has_thread {
            let asking = Arc::clone(self);
            let thread = thread::Builder::new().name("router-asking".to_owned());
            known.has_thread = thread.spawn(move || asking.run()).is_ok();
        }
        self.changed.notify_all();
        known
    }

    fn run(&self) {
        // Those who ask here have none either.
        if let Err(error) = privileges::drop_all() {
            let why = format!("giving up rights: {error}");
            tracing::error!("asking the router at XDP: {why}");
            let mut known = self.lock();
            known.at = Some(Instant::now());
            known.status = Some(ForwardingStatus {
                trouble: Some(why),
                report: None,
            });
            // The next one that asks has another try.
            known.has_thread = false;
            self.changed.notify_all();
            return;
        }
        loop {
            let known = self.lock();
            let wanted = self.changed.wait_while(known, |known| !known.is_wanted);
            let mut known = wanted.unwrap_or_else(PoisonError::into_inner);
            known.is_wanted = false;
            drop(known);
            let asked = Instant::now();
            let answer = (self.ask)();
            let mut known = self.lock();
            // Who waits for a slow one has to have it all the same.
            known.at = Some(match answer {
                Ok(_) if asked.elapsed() < FRESH => asked,
                _ => Instant::now(),
            });
            known.status = match answer {
                Ok(report) => report.map(|report| ForwardingStatus {
                    trouble: None,
                    report: Some(report.without_details()),
                }),
                Err(trouble) => Some(ForwardingStatus {
                    trouble: Some(trouble),
                    report: None,
                }),
            };
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::xdp::standing::{Families, ObstacleStanding, PortStanding, Standing};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn report() -> Report {
        let both = Families {
            ipv4: true,
            ipv6: true,
        };
        Report {
            status: Standing {
                ports: vec![
                    PortStanding {
                        name: "eth1".into(),
                        receives: both,
                        why: vec!["nft: the chain secret".into()],
                        ..PortStanding::default()
                    },
                    PortStanding::default(),
                ],
                obstacles: vec![ObstacleStanding {
                    name: "nft".into(),
                    what: "the chain secret".into(),
                    accepted: false,
                }],
                ..Standing::default()
            },
            ..Report::default()
        }
    }

    #[test]
    fn it_is_asked_once_for_many_and_says_no_more_than_it_may() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let gauge = Gauge::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Some(report()))
        });
        let status = gauge.status().unwrap();
        assert_eq!(
            status.ports(),
            "1 of 2 ports forward, left to the kernel for nft"
        );
        assert!(!serde_json::to_string(&status).unwrap().contains("secret"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(gauge.told()), Some(status));
        // Under load the second question may be later than an answer is fresh.
        assert!(asked.load(Ordering::Relaxed) <= 2);
    }

    #[test]
    fn one_that_hangs_or_fails_or_is_not_there_is_told_of() {
        let gauge = Gauge::new(|| {
            thread::sleep(PATIENCE * 20);
            Ok(None)
        });
        let warning = gauge.status().unwrap().warning().unwrap();
        assert!(warning.ends_with("it takes too long"), "{warning}");
        let gauge = Gauge::new(|| Err("no".to_owned()));
        assert_eq!(gauge.status().unwrap().trouble.as_deref(), Some("no"));
        assert_eq!(Gauge::new(|| Ok(None)).status(), None);
        assert_eq!(Gauge::default().status(), None);
    }
}
