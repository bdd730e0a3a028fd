//! The one that changes next hops and neighbours.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memory::quiescent::{Domain, Grace};

use super::adjacency::{Adjacency, Key, Line};
use super::group::{BUCKETS, Member, buckets};
use super::{Limits, MAX_NEXT_HOPS, Table, WAYS};

/// What there is no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for another {what}: {limit} are in use")]
pub struct Full {
    /// What was refused.
    pub what: &'static str,
    /// The limit.
    pub limit: usize,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Where {
    NextHop(u16),
    Neighbour(u32),
}

/// Something that readers may still see until a round is over.
#[derive(Debug, Clone, Copy)]
enum Freed {
    NextHop(u16),
    Neighbour(u32),
    Group(u16),
}

/// Numbers given out from 1 and taken back.
#[derive(Debug)]
struct Numbers {
    next: usize,
    end: usize,
    free: Vec<u32>,
}

impl Numbers {
    fn new(first: usize, end: usize) -> Self {
        let free = Vec::new();
        Self {
            next: first,
            end,
            free,
        }
    }

    fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let next = self.next;
            (next < self.end).then(|| {
                self.next += 1;
                next as u32
            })
        })
    }
}

/// Changes a [`Table`]. Never waits for readers: what they may still be
/// looking at is changed a little later, by [`Writer::settle`].
///
/// Changes between two calls of `settle` make a round, and a round is over
/// when its grace is. A line is turned once a round, and again only when
/// its last round is over; until then its newest value waits here.
#[derive(Debug)]
pub struct Writer {
    table: Arc<Table>,
    /// The round that is being written, from 1, and the last that is over.
    round: u64,
    over: u64,
    graces: VecDeque<(u64, Grace)>,
    /// The round of each line's last turn.
    turned: HashMap<Where, u64, foldhash::fast::RandomState>,
    waiting: HashMap<Where, Adjacency, foldhash::fast::RandomState>,
    freed: VecDeque<(u64, Freed)>,
    next_hops: Numbers,
    neighbours: Numbers,
    groups: Numbers,
    has_changed: bool,
}

impl Writer {
    /// An empty table and its writer.
    pub fn new(domain: &Arc<Domain>, limits: Limits) -> Self {
        Self {
            table: Arc::new(Table::new(domain, limits)),
            round: 1,
            over: 0,
            graces: VecDeque::new(),
            turned: HashMap::default(),
            waiting: HashMap::default(),
            freed: VecDeque::new(),
            next_hops: Numbers::new(1, MAX_NEXT_HOPS),
            neighbours: Numbers::new(0, limits.neighbours),
            groups: Numbers::new(1, usize::from(limits.groups) + 1),
            has_changed: false,
        }
    }

    /// The table, for readers.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// A new next hop; `gateway` is the neighbour it goes through, where
    /// there is one. O(1).
    pub fn add_next_hop(&mut self, gateway: Key, adjacency: Adjacency) -> Result<u16, Full> {
        let number = self.next_hops.take().ok_or(Full {
            what: "next hop",
            limit: MAX_NEXT_HOPS - 1,
        })? as u16;
        if let Some(line) = self.line(Where::NextHop(number)) {
            line.set_key(gateway);
        }
        self.turn(Where::NextHop(number), adjacency);
        Ok(number)
    }

    /// Gives a next hop another adjacency. O(1).
    pub fn set_next_hop(&mut self, number: u16, adjacency: Adjacency) {
        self.turn(Where::NextHop(number), adjacency);
    }

    /// Takes a next hop away that no FIB names any more. Its number is
    /// given out again when no reader can have it.
    pub fn remove_next_hop(&mut self, number: u16) {
        self.freed.push_back((self.round, Freed::NextHop(number)));
        self.has_changed = true;
    }

    /// A new group; give it to a next hop by [`Adjacency::of_group`].
    /// O(buckets × members).
    pub fn add_group(&mut self, members: &[Member]) -> Result<u16, Full> {
        let number = self.groups.take().ok_or(Full {
            what: "group of next hops",
            limit: self.groups.end - 1,
        })? as u16;
        let dealt = buckets(members).unwrap_or([0; BUCKETS]);
        let first = usize::from(number) * BUCKETS;
        let row = self.table.groups.get(first..first + BUCKETS);
        for (bucket, next_hop) in row.unwrap_or_default().iter().zip(dealt) {
            bucket.store(next_hop, Ordering::Relaxed);
        }
        Ok(number)
    }

    /// Takes a group away whose next hop is taken away as well.
    pub fn remove_group(&mut self, number: u16) {
        self.freed.push_back((self.round, Freed::Group(number)));
        self.has_changed = true;
    }

    /// Puts a resolved neighbour, or changes it. O(1).
    pub fn put_neighbour(&mut self, key: Key, adjacency: Adjacency) -> Result<(), Full> {
        let place = self.table.place(key);
        if let Some((number, _)) = self.table.find(key, place) {
            self.turn(Where::Neighbour(number), adjacency);
            return Ok(());
        }
        let full = Full {
            what: "neighbour",
            limit: self.neighbours.end,
        };
        let table = Arc::clone(&self.table);
        let room = |bucket: u32| {
            let bucket = table.index.get(bucket as usize)?;
            let free = |entry: &&std::sync::atomic::AtomicU64| entry.load(Ordering::Relaxed) == 0;
            let count = bucket.0.iter().filter(free).count();
            Some((count, bucket.0.iter().find(free)?))
        };
        let [first, second] = place.buckets.map(room);
        // The first one, where readers look first, as long as half of it is
        // free; then the emptier of the two.
        let at = match (first, second) {
            (Some((one, at)), _) if one > WAYS / 2 => at,
            (Some((one, _)), Some((two, at))) if two > one => at,
            (Some((_, at)), _) | (None, Some((_, at))) => at,
            (None, None) => return Err(full),
        };
        let number = self.neighbours.take().ok_or(full)?;
        if let Some(line) = self.line(Where::Neighbour(number)) {
            line.set_key(key);
        }
        self.turn(Where::Neighbour(number), adjacency);
        // Release: whoever finds the entry finds key and adjacency.
        at.store(
            u64::from(number + 1) << 32 | u64::from(place.tag),
            Ordering::Release,
        );
        Ok(())
    }

    /// Takes a neighbour away: gone, or not resolved any more. O(1).
    pub fn remove_neighbour(&mut self, key: Key) {
        let place = self.table.place(key);
        let Some((number, _)) = self.table.find(key, place) else {
            return;
        };
        let wanted = u64::from(number + 1) << 32 | u64::from(place.tag);
        let buckets = place.buckets.into_iter();
        let buckets = buckets.filter_map(|bucket| self.table.index.get(bucket as usize));
        for entry in buckets.flat_map(|bucket| &bucket.0) {
            if entry.load(Ordering::Relaxed) == wanted {
                entry.store(0, Ordering::Relaxed);
            }
        }
        self.waiting.remove(&Where::Neighbour(number));
        self.freed.push_back((self.round, Freed::Neighbour(number)));
        self.has_changed = true;
    }

    /// Ends the round, if something changed, and does what had to wait for
    /// earlier ones. To be called behind each batch of changes, and every
    /// few milliseconds while it gives false: then something still waits.
    /// Never blocks; O(what became free).
    pub fn settle(&mut self) -> bool {
        self.end_round();
        let domain = Arc::clone(&self.table.domain);
        while let Some(&(round, grace)) = self.graces.front() {
            if !domain.is_over(grace) {
                break;
            }
            self.over = round;
            self.graces.pop_front();
        }
        self.reuse_freed();
        self.turn_waiting();
        self.end_round();
        if self.graces.is_empty() {
            self.turned.clear();
        }
        self.waiting.is_empty() && self.freed.is_empty()
    }

    fn end_round(&mut self) {
        if self.has_changed {
            self.has_changed = false;
            self.table.changes.fetch_add(1, Ordering::AcqRel);
            self.graces
                .push_back((self.round, self.table.domain.begin()));
            self.round += 1;
        }
    }

    fn reuse_freed(&mut self) {
        while let Some(&(round, freed)) = self.freed.front() {
            if round > self.over {
                break;
            }
            self.freed.pop_front();
            match freed {
                Freed::NextHop(number) => {
                    self.waiting.remove(&Where::NextHop(number));
                    self.next_hops.free.push(u32::from(number));
                }
                Freed::Neighbour(number) => self.neighbours.free.push(number),
                Freed::Group(number) => self.groups.free.push(u32::from(number)),
            }
        }
    }

    fn turn_waiting(&mut self) {
        let ready = |(place, _): &(&Where, &Adjacency)| {
            let turned = self.turned.get(place);
            turned.is_none_or(|round| *round <= self.over)
        };
        let ready: Vec<(Where, Adjacency)> = self
            .waiting
            .iter()
            .filter(ready)
            .map(|(place, adjacency)| (*place, *adjacency))
            .collect();
        for (place, adjacency) in ready {
            self.waiting.remove(&place);
            self.turn(place, adjacency);
        }
    }

    fn line(&self, place: Where) -> Option<&Line> {
        match place {
            Where::NextHop(number) => self.table.next_hops.get(usize::from(number)),
            Where::Neighbour(number) => self.table.neighbours.get(number as usize),
        }
    }

    /// Turns a line, now or when its last round is over.
    fn turn(&mut self, place: Where, adjacency: Adjacency) {
        self.has_changed = true;
        match self.turned.entry(place) {
            Entry::Occupied(turned) if *turned.get() > self.over => {
                self.waiting.insert(place, adjacency);
                return;
            }
            entry => {
                entry.insert_entry(self.round);
            }
        }
        self.waiting.remove(&place);
        if let Some(line) = self.line(place) {
            line.turn(adjacency);
        }
    }
}
