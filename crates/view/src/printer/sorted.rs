//! Rows in the order of a column, in bounded memory. For `printer` alone.
//!
//! The first rows of that order are gathered, as many as there is room for.
//! Once they are written, all rows come again, and the next are gathered.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::selected_fields::{SelectedFields, SortKey, Take};

/// What a gathered row counts as beside its bytes: its place in the heap,
/// which is there three times while it grows, and the allocator's own.
const ROW_BYTES: usize = 3 * size_of::<Gathered>() + 64;

/// Rows that wait to be written in order.
#[derive(Debug)]
pub(super) struct Sorted {
    by: SelectedFields,
    downwards: bool,
    /// The last one on top.
    gathered: BinaryHeap<Gathered>,
    /// Octets that the gathered ones count as, and may.
    octets: usize,
    room: usize,
    /// How many rows came in this round.
    came: u64,
    /// The last row of the rounds before.
    written: Option<Place>,
    /// The first row that this round has no room for.
    left_out: Option<Place>,
    is_first_round: bool,
}

/// Where a row belongs. Equal rows stay in the order that they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    key: SortKey,
    downwards: bool,
    came: u64,
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = match self.downwards {
            false => self.key.cmp(&other.key),
            true => other.key.cmp(&self.key),
        };
        keys.then(self.came.cmp(&other.came))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A row as it is to be written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gathered {
    place: Place,
    row: Box<[u8]>,
}

impl Gathered {
    fn octets(&self) -> usize {
        let key = match &self.place.key {
            SortKey::Text(text) => text.len(),
            _ => 0,
        };
        self.row.len() + key + ROW_BYTES
    }
}

impl Sorted {
    /// By a column, which is there; in as much memory as there is `room` for,
    /// but one row at least.
    pub(super) fn new(column: &str, downwards: bool, room: usize) -> Self {
        Self {
            by: SelectedFields::new([column], Take::Key),
            downwards,
            gathered: BinaryHeap::new(),
            octets: 0,
            room,
            came: 0,
            written: None,
            left_out: None,
            is_first_round: true,
        }
    }

    /// Whether no row came before.
    pub(super) fn is_first_round(&self) -> bool {
        self.is_first_round
    }

    /// What the gathered rows count as.
    #[cfg(test)]
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// What a row's key is taken from: each is told to it.
    pub(super) fn fields(&mut self) -> &mut SelectedFields {
        &mut self.by
    }

    /// Where the row belongs that was told, unless it was written already or
    /// has to wait for another round.
    pub(super) fn place(&mut self) -> Option<Place> {
        let place = Place {
            key: self.by.take_key(),
            downwards: self.downwards,
            came: self.came,
        };
        self.came += 1;
        let is_new = self.written.as_ref().is_none_or(|last| *last < place);
        let fits = self.left_out.as_ref().is_none_or(|first| place < *first);
        (is_new && fits).then_some(place)
    }

    /// Takes a row in. Without room for it the last ones are left out.
    pub(super) fn gather(&mut self, place: Place, row: &[u8]) {
        let row = Gathered {
            place,
            row: row.into(),
        };
        self.octets += row.octets();
        self.gathered.push(row);
        while self.octets > self.room && self.gathered.len() > 1 {
            if let Some(last) = self.gathered.pop() {
                self.octets -= last.octets();
                self.left_out = Some(last.place);
            }
        }
    }

    /// How many rounds all rows take, about, at the end of the first: as many
    /// rows are written after each.
    pub(super) fn rounds(&self) -> u64 {
        let in_each = self.gathered.len().max(1) as u64;
        match self.left_out {
            Some(_) if self.is_first_round => self.came.div_ceil(in_each),
            _ => 1,
        }
    }

    /// Ends the round: its rows, in order, and whether others are left.
    pub(super) fn end_round(&mut self) -> (impl Iterator<Item = Box<[u8]>> + use<>, bool) {
        let rows = std::mem::take(&mut self.gathered).into_sorted_vec();
        if let Some(last) = rows.last() {
            self.written = Some(last.place.clone());
        }
        (self.octets, self.came, self.is_first_round) = (0, 0, false);
        let is_more_left = self.left_out.take().is_some();
        (rows.into_iter().map(|one| one.row), is_more_left)
    }
}
