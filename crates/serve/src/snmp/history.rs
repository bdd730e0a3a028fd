//! What the namespaces' tables did: one thread watches the events of all,
//! keeps the `mib` crate's memory of when what changed, and puts linkUp and
//! linkDown into the queue. Started by [`super::contexts`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::time::Duration;

use mib::{History, LinkNotification};
use table::{Bell, Events, Generation, Reader};

use super::clock::Clock;
use super::notify::Sender;

/// The thread looks so often whether it is to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Follows the events of namespaces. Its thread begins with the first, and
/// ends when this is dropped.
#[derive(Debug)]
pub struct Followers {
    shared: Arc<Shared>,
    started: Once,
}

/// What the thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    followed: Mutex<Vec<Weak<Followed>>>,
    bell: Arc<Bell>,
    stop: AtomicBool,
}

/// A namespace that is followed until this is dropped.
#[derive(Debug)]
pub struct Follower(Arc<Followed>);

#[derive(Debug)]
struct Followed {
    reader: Reader,
    /// The generation that was followed to.
    seen: AtomicU64,
    context: Arc<str>,
    clock: Clock,
    told: Sender,
    history: Mutex<History>,
}

impl Default for Followers {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            started: Once::new(),
        }
    }
}

impl Followers {
    /// Begins with the tables as they are. Without a thread (the system
    /// gives none) nothing is followed, and that is complained of.
    pub fn follow(&self, reader: Reader, context: &str, clock: Clock, told: Sender) -> Follower {
        self.started.call_once(|| self.start());
        let tables = reader.snapshot();
        reader.ring(&self.shared.bell);
        let followed = Arc::new(Followed {
            reader,
            seen: AtomicU64::new(tables.generation.0),
            context: context.into(),
            clock,
            told,
            history: Mutex::new(History::since_before(&tables)),
        });
        locked(&self.shared.followed).push(Arc::downgrade(&followed));
        // For what came between the snapshot and the bell.
        self.shared.bell.ring();
        Follower(followed)
    }

    fn start(&self) {
        let thread = std::thread::Builder::new()
            .name("snmp-history".to_owned())
            .spawn({
                let shared = Arc::clone(&self.shared);
                move || match privileges::drop_all() {
                    Ok(()) => shared.run(),
                    Err(error) => tracing::error!("no SNMP history, rights remain: {error}"),
                }
            });
        if let Err(error) = thread {
            tracing::error!("cannot start a thread for SNMP's history: {error}");
        }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        // It is not waited for: it ends by itself, and holds readers only.
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.ring();
    }
}

impl Follower {
    /// When what changed, as of now. O(1).
    pub fn history(&self) -> History {
        locked(&self.0.history).clone()
    }
}

impl Shared {
    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            if self.bell.wait(PATIENCE) {
                self.all().iter().for_each(|one| one.catch_up());
            }
        }
    }

    /// Those that are followed still.
    fn all(&self) -> Vec<Arc<Followed>> {
        let mut followed = locked(&self.followed);
        followed.retain(|one| one.strong_count() > 0);
        followed.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Followed {
    /// Takes in what happened. A short lock where nothing did.
    fn catch_up(&self) {
        let seen = Generation(self.seen.load(Ordering::Relaxed));
        match self.reader.events_after(seen, Duration::ZERO) {
            Events::Batches(batches) => {
                for batch in batches {
                    let events = &batch.events;
                    self.change(|history, now, notify| history.events(events, now, notify));
                    self.seen.store(batch.generation.0, Ordering::Relaxed);
                }
            }
            Events::FellBehind => {
                let tables = self.reader.snapshot();
                self.change(|history, now, notify| history.catch_up(&tables, now, notify));
                self.seen.store(tables.generation.0, Ordering::Relaxed);
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut History, u64, &mut dyn FnMut(LinkNotification))) {
        let now = self.clock.up_millis();
        change(&mut locked(&self.history), now, &mut |link| {
            self.told.link(&self.context, link);
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
