//! Owners of rows: whoever made the writer, which is the kernel's mirror,
//! and the feeders that joined it.
//!
//! Each has tables of its own. A snapshot holds all of them, so that what
//! one owner does copies no other's rows, and a full table of one refuses
//! no row of another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::{Reader, Shared};
use crate::event::Generation;
use crate::ordered::Ordered;
use crate::status::Status;
use crate::writer::Tables;

/// The name of the first owner, whose tables a snapshot itself is.
pub const KERNEL: &str = "kernel";

/// Feeders of one writer at most.
/// A collector of routes has some hundred peers, each of them one.
pub const MAX_FEEDERS: usize = 1_024;

/// Bytes of a name at most: of a feed, of a peer of a router that it
/// monitors, and of that router. SNMP has names in indexes, which have 128
/// numbers at most, all together.
const MAX_NAME: usize = 112;
/// Before the part of a name that may be left away.
const AT: char = '@';

/// An owner beside the first, as a snapshot has it.
#[derive(Debug, Clone)]
pub struct Owner {
    id: u64,
    name: Arc<str>,
    tables: Arc<Tables>,
    /// What it publishes itself.
    shared: Arc<Shared>,
    status: Arc<Mutex<Status>>,
}

impl Owner {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells it from all others that joined this writer, of its name too.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its rows.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// How it fares. Takes a short lock.
    pub fn status(&self) -> Status {
        locked(&self.status).clone()
    }

    /// A reader of its rows, with the names of the first owner's links.
    pub(super) fn reader(&self, first: &Arc<Shared>) -> Reader {
        Reader {
            shared: Arc::clone(&self.shared),
            first: Some(Arc::clone(first)),
        }
    }
}

/// The owners beside the first, by name. A clone shares them, and who
/// publishes copies those of one leaf: with hundreds of owners, as with one,
/// that is some microseconds at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners(Ordered<Arc<str>, Arc<Owner>>);

impl Owners {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Owner> {
        // The tree's keys are owned; a name is short.
        self.0.get(&Arc::from(name)).map(|owner| &**owner)
    }

    /// The owner of a name; or, where there is none, the only one whose name
    /// goes on behind it with `@` and something: `bmp:192.0.2.1` is
    /// `bmp:192.0.2.1@edge`, unless another router has that peer too.
    pub(crate) fn find(&self, name: &str) -> Option<&Owner> {
        self.get(name).or_else(|| {
            let begin: Arc<str> = format!("{name}{AT}").into();
            let mut from = self.0.from(&begin);
            let mut next = || from.next().filter(|(of, _)| of.starts_with(&*begin));
            let (_, first) = next()?;
            next().is_none().then_some(&**first)
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Owner> {
        self.0.iter().map(|(_, owner)| &**owner)
    }
}

/// Why nobody joined.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JoinError {
    /// A name that cannot be asked for.
    #[error(
        "`{0}` is no name of a feeder: take letters, digits, `-`, `_`, `.`, `:` and `@`, {MAX_NAME} at most, and not `{KERNEL}`"
    )]
    BadName(String),
    /// Somebody of this name is there.
    #[error("a feeder `{0}` is there already: take another name")]
    Taken(String),
    /// There are as many as there may be.
    #[error("there are {MAX_FEEDERS} feeders, and may be no more")]
    TooMany,
}

/// Who has joined, held by whoever publishes.
#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) owners: Owners,
    made: u64,
    /// The newest generation of those that left: who comes begins behind
    /// it, so that nobody takes two owners of one name for the same.
    newest: Generation,
}

impl Registry {
    /// Whether somebody of this name may join.
    pub(super) fn admit(&self, name: &str) -> Result<(), JoinError> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || name == KERNEL || !name.bytes().all(is_good)
        {
            return Err(JoinError::BadName(name.to_owned()));
        }
        if self.owners.get(name).is_some() {
            return Err(JoinError::Taken(name.to_owned()));
        }
        if self.owners.len() >= MAX_FEEDERS {
            return Err(JoinError::TooMany);
        }
        Ok(())
    }

    /// Behind which generation a new owner begins.
    pub(super) fn newest(&self) -> Generation {
        self.newest
    }

    /// Enters one that was admitted.
    pub(super) fn enter(
        &mut self,
        name: &Arc<str>,
        shared: &Arc<Shared>,
        status: &Arc<Mutex<Status>>,
    ) {
        self.made += 1;
        let owner = Owner {
            id: self.made,
            name: Arc::clone(name),
            tables: shared.published.load(),
            shared: Arc::clone(shared),
            status: Arc::clone(status),
        };
        self.owners.0.insert(Arc::clone(name), Arc::new(owner));
    }

    /// Takes over what an owner has published; whether that is news.
    /// O(log owners).
    pub(super) fn update(&mut self, name: &Arc<str>) -> bool {
        let Some(owner) = self.owners.0.get(name) else {
            return false;
        };
        let tables = owner.shared.published.load();
        if Arc::ptr_eq(&owner.tables, &tables) {
            return false;
        }
        let owner = Owner {
            tables,
            ..Owner::clone(owner)
        };
        self.owners.0.insert(Arc::clone(name), Arc::new(owner));
        true
    }

    /// Takes one out with its rows; `last` is its last generation. The work
    /// does not grow with the rows.
    pub(super) fn remove(&mut self, name: &Arc<str>, last: Generation) {
        self.owners.0.remove(name);
        self.newest = self.newest.max(last);
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
