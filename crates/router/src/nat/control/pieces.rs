//! What the translating thread is asked, one bounded piece at a time.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, anyhow};
use nat::{BlockView, Cursor, FlowView, LeaseView, MappingView, Nat, PoolView, SubscriberView};

use super::request::{Filter, Table};

/// Places looked at for a piece: some 20 µs.
const PLACES: usize = 2_048;
/// Questions that wait at most.
const WAITING: usize = 64;
/// How long an answer is waited for: a turn of the translating thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question, and where its answer goes.
pub struct Job {
    pub what: Wanted,
    reply: SyncSender<Piece>,
}

/// What is wanted.
pub enum Wanted {
    Rows(Table, Cursor),
    Clear(Filter, Cursor),
    Who(Ipv4Addr, u16),
    Reload,
}

/// A piece of an answer.
#[derive(Debug, Default)]
pub struct Piece {
    pub rows: Rows,
    pub next: Option<Cursor>,
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
    Reloaded(Result<(), String>),
}

/// The translating thread's end.
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
    pub fn ask(&mut self, what: Wanted) -> anyhow::Result<Piece> {
        let (reply, answer) = sync_channel(1);
        let job = Job { what, reply };
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

    /// Answers one question, if there is one. Bounded, and never waits.
    pub fn answer(&mut self, nat: &mut Nat, reload: &dyn Fn(&mut Nat) -> Result<(), String>) {
        let job = self.jobs.try_recv().or_else(|_| {
            // What woke has been seen to; who asked meanwhile as well.
            while self.woken.read(&mut [0; 64]).is_ok_and(|read| read == 64) {}
            self.jobs.try_recv()
        });
        let Ok(job) = job else {
            return;
        };
        let piece = match job.what {
            Wanted::Rows(table, from) => rows(nat, table, from),
            Wanted::Clear(filter, from) => {
                let (next, ended) = nat.end_flows(from, PLACES, &mut |flow| filter.fits_flow(flow));
                Piece {
                    rows: Rows::Ended(ended),
                    next,
                }
            }
            Wanted::Who(alias, port) => Piece {
                rows: Rows::Blocks(nat.block_of(alias.into(), port).into_iter().collect()),
                next: None,
            },
            Wanted::Reload => Piece {
                rows: Rows::Reloaded(reload(nat)),
                next: None,
            },
        };
        // Who has gone needs no answer.
        let _ = job.reply.try_send(piece);
    }
}

fn rows(nat: &Nat, table: Table, from: Cursor) -> Piece {
    match table {
        Table::Flows => collect(Rows::Flows, |sink| nat.flows(from, PLACES, sink)),
        Table::Mappings => collect(Rows::Mappings, |sink| nat.mappings(from, PLACES, sink)),
        Table::Subscribers => collect(Rows::Subscribers, |sink| {
            nat.subscribers(from, PLACES, sink)
        }),
        Table::Blocks => collect(Rows::Blocks, |sink| nat.blocks(from, PLACES, sink)),
        Table::Pools => collect(Rows::Pools, |sink| nat.pools(from, PLACES, sink)),
        Table::Leases => collect(Rows::Leases, |sink| nat.leases(from, PLACES, sink)),
        Table::Helpers => {
            let helped = nat.config().helpers;
            let all = nat::helper::REGISTRY.iter();
            let all = all.map(|entry| (entry.name, helped.has(entry.kind)));
            Piece {
                rows: Rows::Helpers(all.collect()),
                next: None,
            }
        }
    }
}

fn collect<T: Copy>(
    rows: fn(Vec<T>) -> Rows,
    list: impl FnOnce(&mut dyn FnMut(&T)) -> Option<Cursor>,
) -> Piece {
    let mut found = Vec::new();
    let next = list(&mut |view| found.push(*view));
    Piece {
        rows: rows(found),
        next,
    }
}
