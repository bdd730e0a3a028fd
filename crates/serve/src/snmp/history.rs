//! What a namespace's tables did: a thread that watches their events, keeps
//! the `mib` crate's memory of when what changed, and puts linkUp and
//! linkDown into the queue. Started by [`super::contexts`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mib::{History, LinkNotification};
use table::{Events, Generation, Reader};

use super::notify::{Notification, Sender};
use crate::clock::now_millis;

/// The thread looks so often whether it is to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Follows the events of a namespace. Ends when dropped.
#[derive(Debug)]
pub struct Follower {
    history: Arc<Mutex<History>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins with the tables as they are. Without a thread (the system
    /// gives none) nothing is followed, and that is complained of.
    pub fn start(reader: Reader, context: &str, up_since_millis: u64, told: Sender) -> Self {
        let tables = reader.snapshot();
        let history = Arc::new(Mutex::new(History::since_before(&tables)));
        let stop = Arc::new(AtomicBool::new(false));
        let following = Following {
            reader,
            seen: tables.generation,
            context: context.into(),
            up_since_millis,
            told,
            history: Arc::clone(&history),
        };
        let thread = std::thread::Builder::new()
            .name("snmp-history".to_owned())
            .spawn({
                let stop = Arc::clone(&stop);
                move || match privileges::drop_all() {
                    Ok(()) => following.run(&stop),
                    Err(error) => tracing::error!("no SNMP history, rights remain: {error}"),
                }
            });
        if let Err(error) = &thread {
            tracing::error!("cannot start a thread for SNMP's history: {error}");
        }
        Self {
            history,
            stop,
            thread: thread.ok(),
        }
    }

    /// When what changed, as of now. O(1).
    pub fn history(&self) -> History {
        let history = self.history.lock();
        history.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It is not waited for: it ends by itself, and holds a reader only.
        self.stop.store(true, Ordering::Release);
        drop(self.thread.take());
    }
}

struct Following {
    reader: Reader,
    seen: Generation,
    context: Arc<str>,
    up_since_millis: u64,
    told: Sender,
    history: Arc<Mutex<History>>,
}

impl Following {
    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            match self.reader.events_after(self.seen, PATIENCE) {
                Events::Batches(batches) => {
                    for (generation, events) in batches {
                        self.change(|history, now, notify| history.events(&events, now, notify));
                        self.seen = generation;
                    }
                }
                Events::FellBehind => {
                    let tables = self.reader.snapshot();
                    self.change(|history, now, notify| history.catch_up(&tables, now, notify));
                    self.seen = tables.generation;
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut History, u64, &mut dyn FnMut(LinkNotification))) {
        let now = now_millis();
        let up_time_ticks = (now.saturating_sub(self.up_since_millis) / 10) as u32;
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut history, now, &mut |link| {
            self.told.send(Notification {
                context: Arc::clone(&self.context),
                link,
                up_time_ticks,
            });
        });
    }
}
