//! What a layout does for its writer: keep all routes in a plain exact form
//! and make the records of the places whose answers changed anew.

use std::fmt::Debug;

use crate::route::{Change, Route};
use crate::store::Store;

/// The routes of a table in a plain exact form, and where their records lie.
pub trait Compiled: Debug + Sized {
    /// `u32` or `u128`.
    type Address;
    /// Slots at the head of the memory.
    const SLOTS: usize;
    /// Units of the arena that stay zero.
    const RESERVED_UNITS: u32;
    /// Bytes that are looked up in, above which lookups ask for lines ahead.
    const LARGE: usize;

    /// No routes.
    fn new() -> Self;

    /// Asks for the memory that noting a change will read first. A hint.
    fn ask_first(&self, _change: &Change<Self::Address>) {}

    /// Asks for what is found where [`Compiled::ask_first`] asked. A hint.
    fn ask_second(&self, _change: &Change<Self::Address>) {}

    /// Notes a change that is sound. Only if `may_grow`, of a route that is
    /// not there yet.
    fn note(&mut self, store: &mut Store, change: &Change<Self::Address>, may_grow: bool) -> Noted;

    /// Notes that these routes are there and no others. They come in order,
    /// one for each prefix.
    fn replace(&mut self, store: &mut Store, sorted: &[Route<Self::Address>]);

    /// Makes anew what was noted and publishes it; how much of it waits for
    /// space.
    fn flush(&mut self, store: &mut Store) -> usize;
}

/// What noting a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// Nothing is different.
    Same,
    /// A route leads elsewhere.
    Changed,
    /// A route more.
    Added,
    /// A route less.
    Removed,
    /// It would be a route more, and there may be none.
    Refused,
}

impl Noted {
    /// Whether answers may be different.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Changed | Self::Added | Self::Removed)
    }

    /// The number of routes after it.
    pub fn count(self, before: usize) -> usize {
        match self {
            Self::Added => before + 1,
            Self::Removed => before - 1,
            _ => before,
        }
    }
}

/// A route in a list that is kept in order of its keys.
pub trait Listed: Copy {
    /// What tells routes of the list apart.
    type Key: Ord;

    /// Where it stands.
    fn key(&self) -> Self::Key;

    /// Where it leads.
    fn next_hop(&mut self) -> &mut u16;
}

/// Puts a route into a list, has it lead elsewhere, or takes it out where
/// `next_hop` is `None`. O(log n) and what comes after it is moved.
pub fn note_listed<T: Listed>(
    list: &mut Vec<T>,
    mut route: T,
    next_hop: Option<u16>,
    may_grow: bool,
) -> Noted {
    let found = list.binary_search_by_key(&route.key(), |listed| listed.key());
    match (found, next_hop) {
        (Ok(at), Some(next_hop)) => {
            let old = std::mem::replace(list[at].next_hop(), next_hop);
            match old == next_hop {
                true => Noted::Same,
                false => Noted::Changed,
            }
        }
        (Ok(at), None) => {
            list.remove(at);
            Noted::Removed
        }
        (Err(_), None) => Noted::Same,
        (Err(_), Some(_)) if !may_grow => Noted::Refused,
        (Err(at), Some(next_hop)) => {
            *route.next_hop() = next_hop;
            list.insert(at, route);
            Noted::Added
        }
    }
}
