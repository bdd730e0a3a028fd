//! What of the mirror's work goes into a recording or a history, beside the
//! events: which listings, and counters of links now and then. For the
//! mirror's worker.
//!
//! A recording holds all that the machine is fed with. A history holds what
//! changes its tables: a listing that finds nothing is left out, one that
//! finds something is made again for it. Where a scan found something, a gap
//! stands before that: what is missing is said until it is there.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use table::{LinkCounters, Sampled, Tables};

use crate::mirror::now_micros;
use crate::recording::format::{MAX_COUNTED, counters_payload, kind};
use crate::recording::{Purpose, Tap, Which};

/// How many kinds of samples there are.
const KINDS: usize = Sampled::ALL.len();

/// Where what a mirror is fed with goes, and what of it.
#[derive(Debug)]
pub(super) struct Kept {
    tap: Option<Tap>,
    /// The parts and the gaps that the last look saw.
    seen: (u32, u64),
    /// A whole listing is wanted: a part begins, or something is missing.
    wants_all: bool,
    /// Listings of rows that are to be made again for the history, in the
    /// order of [`Sampled::ALL`].
    wants: [bool; KINDS],
    /// The listing under way.
    listing: Option<Listing>,
    /// Counters are kept next at this time.
    counters_at: Option<Instant>,
    /// What links had counted when that was last kept, and in which parts.
    counted: HashMap<u32, LinkCounters>,
    counted_in: Option<(u32, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Listing {
    purpose: Purpose,
    which: Which,
    /// The history leaves it out.
    is_left_out: bool,
}

/// Why a whole listing is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantsAll {
    /// A part begins.
    Now,
    /// Something is missing; not at once, for the mirror's work comes first.
    Soon,
}

impl Kept {
    pub(super) fn new(tap: Option<Tap>, now: Instant) -> Self {
        let counters_at = tap.as_ref().and_then(Tap::counters).map(|_| now);
        Self {
            tap,
            seen: (0, 0),
            wants_all: false,
            wants: [false; KINDS],
            listing: None,
            counters_at,
            counted: HashMap::new(),
            counted_in: None,
        }
    }

    /// Whether anything is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.tap.is_some()
    }

    /// Keeps what the machine is fed with next, outside of a listing.
    pub(super) fn put(&self, kind: u16, at_micros: u64, payload: &[u8]) {
        if let Some(tap) = &self.tap {
            tap.put(kind, at_micros, &[payload]);
        }
    }

    /// Keeps what only a recording holds.
    pub(super) fn put_where_all_is_kept(&self, kind: u16, at_micros: u64, payload: &[u8]) {
        if let Some(tap) = &self.tap {
            tap.put_where_all_is_kept(kind, at_micros, &[payload]);
        }
    }

    /// Keeps a piece of the listing under way.
    pub(super) fn put_of_listing(&self, kind: u16, at_micros: u64, payload: &[u8]) {
        match self.listing {
            Some(listing) if listing.is_left_out => {
                self.put_where_all_is_kept(kind, at_micros, payload);
            }
            _ => self.put(kind, at_micros, payload),
        }
    }

    /// Whether a whole listing is wanted since the last look.
    pub(super) fn look(&mut self) -> Option<WantsAll> {
        let wanted = self.tap.as_ref()?.wants_listing();
        if wanted == self.seen {
            return None;
        }
        let is_part = wanted.0 != self.seen.0;
        self.seen = wanted;
        self.wants_all = true;
        Some(match is_part {
            true => WantsAll::Now,
            false => WantsAll::Soon,
        })
    }

    /// Whether a listing of rows is to be made again.
    pub(super) fn wants(&self, what: Sampled) -> bool {
        self.wants[what as usize]
    }

    /// A listing begins. `is_unsure`: the machine awaits something of it.
    pub(super) fn begin(&mut self, purpose: Purpose, which: Which, is_unsure: bool) {
        let is_wanted = match purpose {
            Purpose::Load | Purpose::Resync => true,
            Purpose::Scan => self.wants_all,
            Purpose::Sample => is_unsure || of(which).is_some_and(|what| self.wants(what)),
        };
        self.listing = Some(Listing {
            purpose,
            which,
            is_left_out: !is_wanted,
        });
        let at = now_micros();
        self.put_of_listing(kind::BEGIN, at, &[purpose as u8, which as u8]);
    }

    /// The listing ended, of no use.
    pub(super) fn void(&mut self) {
        self.listing = None;
    }

    /// The listing ended, and made so many changes. Gives whether a whole one
    /// is wanted now.
    pub(super) fn listed(&mut self, changes: usize) -> Option<WantsAll> {
        let listing = self.listing.take()?;
        let what = of(listing.which);
        if !listing.is_left_out {
            if listing.which == Which::All {
                self.wants_all = false;
                self.wants = [false; KINDS];
            } else if let Some(what) = what {
                self.wants[what as usize] = false;
            }
            return None;
        }
        let tap = self.tap.as_ref().filter(|tap| tap.keeps_changes())?;
        if changes == 0 {
            return None;
        }
        if listing.purpose == Purpose::Sample
            && let Some(what) = what
        {
            self.wants[what as usize] = true;
            return None;
        }
        tap.put_where_changes_are_kept(kind::GAP, now_micros(), &[&[0; 16]]);
        self.wants_all = true;
        Some(WantsAll::Now)
    }

    /// When counters are to be kept.
    pub(super) fn counters_at(&self) -> Option<Instant> {
        self.counters_at
    }

    /// Keeps what links have counted since the last time, and sets the next.
    pub(super) fn counters(&mut self, tables: &Tables, now: Instant) {
        let Some(tap) = &self.tap else { return };
        let interval = tap.counters().unwrap_or(Duration::MAX);
        self.counters_at = now.checked_add(interval);
        let parts = tap.wants_listing();
        let of_all = self.counted_in != Some(parts);
        if of_all {
            self.counted.clear();
            self.counted_in = Some(parts);
        }
        let mut changed = Vec::new();
        for link in tables.links.iter() {
            if let Some(counters) = tables.counters_of(link.index)
                && self.counted.insert(link.index, *counters) != Some(*counters)
            {
                changed.push((link.index, *counters));
            }
        }
        if self.counted.len() > 2 * tables.links.len() {
            self.counted
                .retain(|link, _| tables.links.get(*link).is_some());
        }
        let at = now_micros();
        if changed.is_empty() {
            // None has counted, and at this time.
            let payload = counters_payload(of_all, &[]);
            tap.put_where_changes_are_kept(kind::COUNTERS, at, &[&payload]);
        }
        for (number, some) in changed.chunks(MAX_COUNTED).enumerate() {
            let payload = counters_payload(of_all && number == 0, some);
            tap.put_where_changes_are_kept(kind::COUNTERS, at, &[&payload]);
        }
    }
}

/// The sample that a listing of rows is.
fn of(which: Which) -> Option<Sampled> {
    match which {
        Which::All => None,
        Which::Links => Some(Sampled::Links),
        Which::Addresses => Some(Sampled::Addresses),
        Which::Neighbours => Some(Sampled::Neighbours),
        Which::Fdb => Some(Sampled::Fdb),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Input, Keeps, TestQueue};

    fn kept(keeps: Keeps) -> (Kept, TestQueue) {
        let queue = TestQueue::new();
        let tap = queue.tap(keeps);
        (Kept::new(Some(tap), Instant::now()), queue)
    }

    const CHANGES: Keeps = Keeps::Changes { counters: None };

    fn list(kept: &mut Kept, purpose: Purpose, which: Which, changes: usize) -> Option<WantsAll> {
        kept.begin(purpose, which, false);
        kept.put_of_listing(kind::ANSWER, 1, b"row");
        kept.listed(changes)
    }

    #[test]
    fn a_recording_holds_every_listing_and_a_history_those_that_change_something() {
        let (mut recorded, whole) = kept(Keeps::Everything);
        let (mut history, short) = kept(CHANGES);
        for one in [&mut recorded, &mut history] {
            assert_eq!(list(one, Purpose::Load, Which::All, 9), None);
            assert_eq!(list(one, Purpose::Scan, Which::All, 0), None);
            assert_eq!(list(one, Purpose::Sample, Which::Links, 0), None);
        }
        assert_eq!(whole.kinds(), [1, 2, 4, 2, 4, 2, 4]);
        assert_eq!(short.kinds(), [1, 2, 4]);
    }

    #[test]
    fn what_a_listing_found_is_listed_again_for_a_history() {
        let (mut history, queue) = kept(CHANGES);
        assert_eq!(list(&mut history, Purpose::Sample, Which::Fdb, 1), None);
        assert!(history.wants(Sampled::Fdb) && queue.kinds() == [1]);
        assert_eq!(list(&mut history, Purpose::Sample, Which::Fdb, 0), None);
        assert!(!history.wants(Sampled::Fdb));
        assert_eq!(queue.kinds(), [2, 4]);
        let found = list(&mut history, Purpose::Scan, Which::All, 1);
        assert_eq!(found, Some(WantsAll::Now));
        assert_eq!(queue.kinds(), [kind::GAP]);
        assert_eq!(list(&mut history, Purpose::Scan, Which::All, 0), None);
        assert_eq!(queue.kinds(), [2, 4]);
        assert_eq!(list(&mut history, Purpose::Scan, Which::All, 0), None);
        assert_eq!(queue.kinds(), [0; 0]);
    }

    #[test]
    fn counters_are_kept_of_links_that_counted() {
        let (mut history, queue) = kept(Keeps::Changes {
            counters: Some(Duration::from_secs(7)),
        });
        let now = Instant::now();
        let mut writer = table::Writer::default();
        let count = |writer: &mut table::Writer, link, rx_packets| {
            let counters = LinkCounters {
                rx_packets,
                ..LinkCounters::default()
            };
            writer.count_alone([(link, counters.into())]);
        };
        for link in 1..=3 {
            let row = table::Link {
                index: link,
                ..table::Link::default()
            };
            writer.apply(table::Change::PutLink(row)).unwrap();
            count(&mut writer, link, 1);
        }
        history.counters(writer.tables(), now);
        count(&mut writer, 2, 5);
        history.counters(writer.tables(), now);
        history.counters(writer.tables(), now);
        assert_eq!(history.counters_at(), Some(now + Duration::from_secs(7)));
        let said = queue.with_inputs(|input| match input {
            Input::Counters { of_all, links } => Some((
                of_all,
                links
                    .into_iter()
                    .map(|(link, counters)| (link, counters.rx_packets))
                    .collect::<Vec<_>>(),
            )),
            _ => None,
        });
        assert_eq!(
            said,
            [
                (true, vec![(1, 1), (2, 1), (3, 1)]),
                (false, vec![(2, 5)]),
                (false, vec![]),
            ]
        );
    }
}
