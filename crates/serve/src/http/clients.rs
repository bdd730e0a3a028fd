//! Who is connected: a bounded number of places, and whose place is given
//! to another when all are taken.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A client that takes nothing, or asks nothing, for so long gives its
/// place to another when all are taken.
const STALLED: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug, Default)]
pub struct Client {
    /// Since when a write waits for it; 0: none does.
    waits_since: AtomicU64,
    /// Since when nothing is asked; 0: something is.
    idle_since: AtomicU64,
    /// It has begun a request that is not whole.
    heard: AtomicBool,
    /// It was told to end the connection.
    refused: AtomicBool,
    /// Tells it to go.
    go: Notify,
}

/// All places.
#[derive(Debug)]
pub struct Clients {
    most: usize,
    started: Instant,
    taken: Mutex<Vec<Arc<Client>>>,
}

/// A taken place; free when dropped.
#[derive(Debug)]
pub struct Admission {
    clients: Arc<Clients>,
    client: Arc<Client>,
}

impl Clients {
    /// As many places.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            started: Instant::now(),
            taken: Mutex::default(),
        })
    }

    /// Takes a place, that of one who stalls if need be; `None`: all are
    /// taken by clients that are being answered. O(1), O(clients) when all
    /// are taken.
    pub fn take(self: &Arc<Self>) -> Option<Admission> {
        let mut taken = self.taken();
        if taken.len() >= self.most {
            let now = self.millis();
            let at = taken.iter().position(|client| client.stalls(now))?;
            taken.swap_remove(at).go.notify_one();
        }
        let client = Arc::new(Client::default());
        client.idle_since.store(self.millis(), Ordering::Relaxed);
        taken.push(Arc::clone(&client));
        Some(Admission {
            clients: Arc::clone(self),
            client,
        })
    }

    /// How many are taken.
    pub fn count(&self) -> usize {
        self.taken().len()
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the start, plus one.
    fn millis(&self) -> u64 {
        1 + self.started.elapsed().as_millis() as u64
    }
}

impl Client {
    fn stalls(&self, now: u64) -> bool {
        [&self.waits_since, &self.idle_since]
            .map(|since| since.load(Ordering::Relaxed))
            .into_iter()
            .any(|since| since != 0 && u128::from(now.saturating_sub(since)) >= STALLED.as_millis())
    }

    /// Something came from it.
    pub fn hears(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Whether something came that was no whole request.
    pub fn heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// It was told to end the connection.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to end the connection, and may still be sending.
    pub fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Admission {
    /// Whose it is.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// A write waits for the client from now on, or no more.
    pub fn waits(&self, waits: bool) {
        let since = if waits { self.clients.millis() } else { 0 };
        self.client.waits_since.store(since, Ordering::Relaxed);
    }

    /// A request is being answered, or the answer was handed over.
    pub fn answers(&self, answers: bool) {
        let since = if answers { 0 } else { self.clients.millis() };
        self.client.idle_since.store(since, Ordering::Relaxed);
        self.client.heard.store(false, Ordering::Relaxed);
    }

    /// Waits until the place is wanted for another.
    pub async fn is_wanted(&self) {
        self.client.go.notified().await;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut taken = self.clients.taken();
        if let Some(at) = taken
            .iter()
            .position(|other| Arc::ptr_eq(other, &self.client))
        {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_one_who_stalls_is_given_away_and_no_other() {
        let clients = Clients::new(2);
        let busy = clients.take().unwrap();
        busy.answers(true);
        let slow = clients.take().unwrap();
        slow.answers(true);
        assert!(clients.take().is_none());
        slow.client.waits_since.store(1, Ordering::Relaxed);
        assert!(clients.take().is_none());
        let stalled = Clients {
            most: 2,
            started: Instant::now() - STALLED - Duration::from_secs(1),
            taken: Mutex::new(clients.taken().clone()),
        };
        let stalled = Arc::new(stalled);
        let third = stalled.take().unwrap();
        assert_eq!(stalled.count(), 2);
        assert!(stalled.take().is_none(), "the third was only just idle");
        drop(third);
        assert_eq!(stalled.count(), 1);
    }
}
