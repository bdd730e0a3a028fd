//! Who is connected: a bounded number of places, and whose place is given
//! to another when all are taken.
//!
//! A source may take every place that is free. When none is, a client that
//! has left, stalls or asks nothing gives its place up; and where there is
//! none, the source with the most places gives one to a source that has
//! fewer. So nobody keeps others out, however many places it takes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::budget::Lease;
use crate::source::Source;

/// A client that takes nothing, or asks nothing, for so long gives its
/// place to another when all are taken.
const STALLED: Duration = Duration::from_secs(5);
/// One that has closed its side and takes nothing for so long is gone:
/// what is made for it is made for nobody.
const GONE: Duration = Duration::from_secs(2);

/// A connection.
#[derive(Debug)]
pub struct Client {
    source: Source,
    /// Since when a write waits for it; 0: none does.
    waits_since: AtomicU64,
    /// Since when nothing is asked; 0: something is.
    idle_since: AtomicU64,
    /// Writes that it took.
    taken: AtomicU64,
    /// It has closed its side.
    leaves: AtomicBool,
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
    taken: Mutex<Taken>,
}

/// The places that are taken, and how many by each source.
#[derive(Debug, Default)]
struct Taken {
    clients: Vec<Arc<Client>>,
    of: HashMap<Source, usize>,
}

/// A taken place; free when dropped.
#[derive(Debug)]
pub struct Admission {
    clients: Arc<Clients>,
    client: Arc<Client>,
    /// What the connection takes of memory.
    _lease: Lease,
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

    /// Takes a place, that of another if need be; `None`: all are taken by
    /// clients that are being answered, and the source has its share. O(1),
    /// O(clients) when all are taken.
    pub fn take(self: &Arc<Self>, source: Source, lease: Lease) -> Option<Admission> {
        let mut taken = self.taken();
        let now = self.millis();
        if taken.clients.len() >= self.most {
            let at = taken.to_go(source, now)?;
            taken.remove(at).go.notify_one();
        }
        let client = Arc::new(Client::new(source, now));
        *taken.of.entry(source).or_default() += 1;
        taken.clients.push(Arc::clone(&client));
        Some(Admission {
            clients: Arc::clone(self),
            client,
            _lease: lease,
        })
    }

    /// How many are taken.
    pub fn count(&self) -> usize {
        self.taken().clients.len()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the start, plus one.
    fn millis(&self) -> u64 {
        1 + self.started.elapsed().as_millis() as u64
    }
}

impl Taken {
    /// Whose place another of a source gets, if any.
    fn to_go(&self, source: Source, now: u64) -> Option<usize> {
        let clients = self.clients.iter();
        let idle = clients.clone().position(|client| client.gives_way(now));
        idle.or_else(|| {
            let of_source = self.of.get(&source).copied().unwrap_or(0);
            let (largest, most) = self.of.iter().max_by_key(|(_, places)| **places)?;
            // One that would have to be given back at once is not taken.
            let is_fair = *most > of_source + 1;
            is_fair.then(|| clients.clone().position(|one| one.source == *largest))?
        })
    }

    fn remove(&mut self, at: usize) -> Arc<Client> {
        let client = self.clients.swap_remove(at);
        if let Some(places) = self.of.get_mut(&client.source) {
            *places -= 1;
            if *places == 0 {
                self.of.remove(&client.source);
            }
        }
        client
    }
}

impl Client {
    fn new(source: Source, now: u64) -> Self {
        Self {
            source,
            waits_since: AtomicU64::new(0),
            idle_since: AtomicU64::new(now),
            taken: AtomicU64::new(0),
            leaves: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            go: Notify::new(),
        }
    }

    /// Whose it is.
    pub fn source(&self) -> Source {
        self.source
    }

    fn gives_way(&self, now: u64) -> bool {
        let stalls = [&self.waits_since, &self.idle_since]
            .map(|since| since.load(Ordering::Relaxed))
            .into_iter()
            .any(|since| {
                since != 0 && u128::from(now.saturating_sub(since)) >= STALLED.as_millis()
            });
        stalls || self.leaves.load(Ordering::Relaxed)
    }

    /// It has closed its side: it may still take what it asked for. Waits
    /// until it takes nothing any more.
    pub async fn leaves(&self) {
        self.leaves.store(true, Ordering::Relaxed);
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            sleep(GONE).await;
            if self.taken.load(Ordering::Relaxed) == taken {
                return;
            }
        }
    }

    /// It took something.
    pub fn takes(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Something came from it.
    pub fn hears(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Whether it asks nothing, has taken all, and has begun nothing.
    pub fn rests(&self) -> bool {
        let is_idle = self.idle_since.load(Ordering::Relaxed) != 0;
        let takes_all = self.waits_since.load(Ordering::Relaxed) == 0;
        is_idle && takes_all && !self.heard()
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
        let mut clients = taken.clients.iter();
        if let Some(at) = clients.position(|other| Arc::ptr_eq(other, &self.client)) {
            taken.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    const ONE: Source = Source::User(1);
    const OTHER: Source = Source::User(2);

    fn take(clients: &Arc<Clients>, source: Source) -> Option<Admission> {
        let lease = Budget::new(1).lease(source, 0).unwrap();
        clients.take(source, lease)
    }

    /// A client that is being answered.
    fn busy(clients: &Arc<Clients>, source: Source) -> Option<Admission> {
        let admission = take(clients, source)?;
        admission.answers(true);
        Some(admission)
    }

    #[test]
    fn the_place_of_one_who_stalls_is_given_away_and_no_other() {
        let started = Instant::now().checked_sub(STALLED * 2).unwrap();
        let clients = Arc::new(Clients {
            most: 2,
            started,
            taken: Mutex::default(),
        });
        let _busy = busy(&clients, ONE).unwrap();
        let slow = busy(&clients, ONE).unwrap();
        slow.waits(true);
        assert!(take(&clients, ONE).is_none(), "it waits since now only");
        slow.client.waits_since.store(1, Ordering::Relaxed);
        let third = take(&clients, ONE).unwrap();
        assert_eq!(clients.count(), 2);
        assert!(
            take(&clients, ONE).is_none(),
            "the third was only just idle"
        );
        drop(third);
        drop(slow);
        assert_eq!(clients.count(), 1);
    }

    #[test]
    fn who_has_closed_its_side_makes_room_at_once() {
        let clients = Clients::new(1);
        let gone = busy(&clients, ONE).unwrap();
        assert!(take(&clients, ONE).is_none());
        gone.client.leaves.store(true, Ordering::Relaxed);
        assert!(take(&clients, ONE).is_some());
    }

    #[test]
    fn a_source_with_the_most_places_gives_to_one_with_fewer() {
        let clients = Clients::new(8);
        let mut of_one: Vec<_> = (0..8).map(|_| busy(&clients, ONE).unwrap()).collect();
        assert!(busy(&clients, ONE).is_none());
        let of_other: Vec<_> = (0..4).map(|_| busy(&clients, OTHER).unwrap()).collect();
        assert!(busy(&clients, OTHER).is_none(), "they share evenly now");
        assert!(busy(&clients, ONE).is_none());
        assert!(busy(&clients, Source::User(3)).is_some());
        assert_eq!(clients.count(), 8 - 1);
        // Whose place went to another gives nothing back.
        of_one.clear();
        drop(of_other);
        assert_eq!(clients.count(), 0);
        assert!(clients.taken().of.is_empty());
    }
}
