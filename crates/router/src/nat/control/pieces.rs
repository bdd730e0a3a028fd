//! What translating threads are asked, one bounded piece at a time. Where
//! several translate, a walk goes from one to the next.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use nat::{
    BlockView, Config, Cursor, FlowView, LeaseView, MappingView, Nat, PoolView, Statistics,
    SubscriberView,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use translation::request::{Filter, Table};

use crate::nat::settings::Later;

/// Places looked at for a piece at most: some 20 µs.
pub const PLACES: usize = 2_048;
/// Questions that wait at most.
const WAITING: usize = 64;
/// How long an answer is waited for: a turn of the translating thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question, and where its answer goes.
pub struct Job {
    what: Wanted,
    from: Place,
    reply: SyncSender<Piece>,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Of a table, those of so many places.
    Rows(Table, usize),
    Clear(Filter),
    Who(Ipv4Addr, u16),
    /// The subscriber of an inside address.
    SubscriberAt(Ipv4Addr),
    Reload,
    Statistics,
}

/// Where a walk goes on: in which engine, and where there. What is of places,
/// as rows of subscribers, has the number of its engine as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    engine: usize,
    cursor: Cursor,
}

impl Place {
    /// A place of an engine.
    pub fn new(engine: usize, place: u32) -> Self {
        Self {
            engine,
            cursor: Cursor::at(place),
        }
    }

    /// Where it is in its engine.
    pub fn place(self) -> u32 {
        self.cursor.place()
    }

    /// Its engine.
    pub fn engine(self) -> usize {
        self.engine
    }

    /// As text, behind what tells this life of the translation from others.
    pub fn written(self, life: u64) -> String {
        format!("{life:x}.{}.{}", self.engine, self.cursor.place())
    }

    /// Reads it; `None`: it is none, or of another life.
    pub fn read(text: &str, life: u64) -> Option<Self> {
        let mut parts = text.split('.');
        let of = u64::from_str_radix(parts.next()?, 16).ok()?;
        let (engine, place) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let is_whole = parts.next().is_none() && of == life;
        is_whole.then_some(Self {
            engine,
            cursor: Cursor::at(place),
        })
    }
}

/// A piece of an answer.
#[derive(Debug, Default)]
pub struct Piece {
    pub rows: Rows,
    pub next: Option<Place>,
}

/// Rows of a table.
#[derive(Debug, Default)]
pub enum Rows {
    #[default]
    None,
    Flows(Vec<FlowView>),
    Mappings(Vec<MappingView>),
    Subscribers(Vec<SubscriberView>),
    Blocks(Vec<BlockView>),
    Pools(Vec<PoolView>),
    Leases(Vec<LeaseView>),
    /// Name, and whether it is on.
    Helpers(Vec<(&'static str, bool)>),
    /// How many flows were ended.
    Ended(usize),
    /// What became of a reload.
    Reloaded(Result<Later, String>),
    /// What an engine counted, and its settings.
    Statistics(Box<(Statistics, Config)>),
}

/// The translating threads' end.
pub struct Jobs {
    jobs: Receiver<Job>,
    woken: UnixStream,
}

/// The clients' end.
#[derive(Debug)]
pub struct Asking {
    jobs: SyncSender<Job>,
    wake: UnixStream,
}

/// Both ends.
pub fn pair() -> anyhow::Result<(Asking, Jobs)> {
    let (asking, jobs) = sync_channel(WAITING);
    let (wake, woken) = UnixStream::pair().context("making a pipe for questions")?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let asking = Asking { jobs: asking, wake };
    Ok((asking, Jobs { jobs, woken }))
}

impl Asking {
    /// Another one who asks.
    pub fn again(&self) -> anyhow::Result<Self> {
        Ok(Self {
            jobs: self.jobs.clone(),
            wake: self.wake.try_clone()?,
        })
    }

    /// Asks, and waits for a while.
    pub fn ask(&mut self, what: Wanted, from: Place) -> anyhow::Result<Piece> {
        let (reply, answer) = sync_channel(1);
        let job = Job { what, from, reply };
        let ended = || anyhow!("the translation is busy or has ended");
        self.jobs.try_send(job).map_err(|_| ended())?;
        // A full pipe wakes as well.
        let _ = self.wake.write(&[1]);
        answer.recv_timeout(PATIENCE).map_err(|_| ended())
    }
}

impl Jobs {
    /// Becomes readable when somebody asks.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The next question, if there is one. Never waits.
    pub fn next_job(&mut self) -> Option<Job> {
        let job = self.jobs.try_recv().or_else(|_| {
            // What woke has been seen to; who asked meanwhile as well.
            while self.woken.read(&mut [0; 64]).is_ok_and(|read| read == 64) {}
            self.jobs.try_recv()
        });
        job.ok()
    }

    /// The same, and waits so long for one.
    pub fn next_within(&mut self, wait: Duration) -> Option<Job> {
        let until = Instant::now() + wait;
        loop {
            if let Some(job) = self.next_job() {
                return Some(job);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let mut waited = [PollFd::new(&self.woken, PollFlags::IN)];
            let left = Timespec::try_from(left).ok()?;
            // An interruption is a short wait.
            let _ = poll(&mut waited, Some(&left));
        }
    }
}

impl Job {
    /// Which engine is asked.
    pub fn engine(&self) -> usize {
        self.from.engine
    }

    /// Whether the rules are to be read again.
    pub fn is_reload(&self) -> bool {
        matches!(self.what, Wanted::Reload)
    }

    /// Says what became of a reload.
    pub fn reloaded(self, done: Result<Later, String>) {
        self.reply(Piece {
            rows: Rows::Reloaded(done),
            next: None,
        });
    }

    /// Says that there is nothing: behind the last engine.
    pub fn of_nobody(self) {
        self.reply(Piece::default());
    }

    /// Answers it, from the engine that is asked, one of so many. Bounded,
    /// and never waits.
    pub fn answer(self, nat: &mut Nat, engines: usize) {
        let Place { engine, cursor } = self.from;
        if engine >= engines {
            return self.of_nobody();
        }
        let (rows, next) = match &self.what {
            Wanted::Rows(table, places) => rows(nat, *table, cursor, *places),
            Wanted::Statistics => {
                let said = (nat.statistics(), nat.config().clone());
                (Rows::Statistics(Box::new(said)), None)
            }
            Wanted::Clear(filter) => {
                let mut fits = |flow: &FlowView| filter.fits_flow(flow);
                let (next, ended) = nat.end_flows(cursor, PLACES, &mut fits);
                (Rows::Ended(ended), next)
            }
            Wanted::Who(alias, port) => {
                let found = nat.block_of((*alias).into(), *port);
                (Rows::Blocks(found.into_iter().collect()), None)
            }
            Wanted::SubscriberAt(inside) => {
                let found = nat.subscriber_at(*inside);
                (Rows::Subscribers(found.into_iter().collect()), None)
            }
            Wanted::Reload => (Rows::None, None),
        };
        // What helpers there are, one says for all.
        let is_of_all = matches!(self.what, Wanted::Rows(Table::Helpers, _) | Wanted::Reload);
        let after = Place {
            engine: engine + 1,
            cursor: Cursor::default(),
        };
        let after = (!is_of_all && after.engine < engines).then_some(after);
        let next = next.map(|cursor| Place { engine, cursor }).or(after);
        self.reply(Piece { rows, next });
    }

    fn reply(self, piece: Piece) {
        // Who has gone needs no answer.
        let _ = self.reply.try_send(piece);
    }
}

fn rows(nat: &Nat, table: Table, from: Cursor, places: usize) -> (Rows, Option<Cursor>) {
    match table {
        Table::Flows => collect(Rows::Flows, |sink| nat.flows(from, places, sink)),
        Table::Mappings => collect(Rows::Mappings, |sink| nat.mappings(from, places, sink)),
        Table::Subscribers => collect(Rows::Subscribers, |sink| {
            nat.subscribers(from, places, sink)
        }),
        Table::Blocks => collect(Rows::Blocks, |sink| nat.blocks(from, places, sink)),
        Table::Pools => collect(Rows::Pools, |sink| nat.pools(from, places, sink)),
        Table::Leases => collect(Rows::Leases, |sink| nat.leases(from, places, sink)),
        Table::Helpers => {
            let helped = nat.config().helpers;
            let all = &nat::helper::REGISTRY;
            let first = from.place() as usize;
            let some = all.iter().skip(first).take(places);
            let some = some.map(|entry| (entry.name, helped.has(entry.kind)));
            let behind = first.saturating_add(places);
            let next = (behind < all.len()).then(|| Cursor::at(behind as u32));
            (Rows::Helpers(some.collect()), next)
        }
    }
}

fn collect<T: Copy>(
    rows: fn(Vec<T>) -> Rows,
    list: impl FnOnce(&mut dyn FnMut(&T)) -> Option<Cursor>,
) -> (Rows, Option<Cursor>) {
    let mut found = Vec::new();
    let next = list(&mut |view| found.push(*view));
    (rows(found), next)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_waits_is_woken_by_a_question() {
        let (asking, mut jobs) = pair().unwrap();
        assert!(jobs.next_within(Duration::from_millis(5)).is_none());
        let asks = thread::spawn(move || {
            let mut asking = asking;
            let mut answered = 0;
            for _ in 0..100 {
                answered += usize::from(asking.ask(Wanted::Reload, Place::default()).is_ok());
            }
            answered
        });
        for _ in 0..100 {
            // It would be longer than the other one waits.
            let job = jobs.next_within(PATIENCE * 10).unwrap();
            job.reloaded(Ok(Later::new()));
        }
        assert_eq!(asks.join().unwrap(), 100);
        assert!(jobs.next_within(Duration::ZERO).is_none());
    }

    #[test]
    fn an_engine_that_is_not_there_has_nothing() {
        let (mut asking, mut jobs) = pair().unwrap();
        let mut nat = Nat::new(Config::new(&[Ipv4Addr::new(192, 0, 2, 1)])).unwrap();
        let answers = thread::spawn(move || {
            for _ in 0..4 {
                jobs.next_within(PATIENCE).unwrap().answer(&mut nat, 1);
            }
        });
        let mut ask = |engine, table| {
            let wanted = Wanted::Rows(table, PLACES);
            asking.ask(wanted, Place::new(engine, 0)).unwrap()
        };
        let there = ask(0, Table::Subscribers);
        assert!(matches!(there.rows, Rows::Subscribers(_)) && there.next.is_none());
        for (engine, table) in [
            (1, Table::Subscribers),
            (255, Table::Subscribers),
            (1, Table::Helpers),
        ] {
            let piece = ask(engine, table);
            assert!(matches!(piece.rows, Rows::None) && piece.next.is_none());
        }
        answers.join().unwrap();
    }
}
