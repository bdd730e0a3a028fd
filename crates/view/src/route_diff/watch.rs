//! `route diff --watch`: differences as they come and go. For `serve`,
//! which hears of changes of both sources and hands them on.

use std::collections::HashSet;

use table::{Event, Row};

use super::compare::{Prefixes, prefix_at};
use super::shown::{self, Happened};
use super::{Place, RouteDiffQuestion, Side};
use crate::answer_error::AnswerError;
use crate::context::View;
use crate::selection::{BadQuestion, Selection};
use words::Names;

/// Prefixes that may differ at once while they are watched: their lines, told
/// at once, are some 4 MiB.
const MAX_DIFFERING: usize = 1 << 13;

/// Which prefixes differ, kept while they change.
#[derive(Debug)]
pub struct RouteDiffWatch {
    question: RouteDiffQuestion,
    differing: HashSet<Place>,
}

impl RouteDiffWatch {
    /// Nothing is known to differ yet.
    pub fn new(question: RouteDiffQuestion) -> Self {
        Self {
            question,
            differing: HashSet::new(),
        }
    }

    /// Compares everything: at the beginning, and where changes were missed.
    /// Writes a line of JSON for each prefix that differs, and for each that
    /// does not any more; gives their number. O(routes of both).
    pub fn all(
        &mut self,
        sides: [Side<'_>; 2],
        names: &Names,
        now_millis: u64,
        out: &mut Vec<u8>,
    ) -> Result<u64, AnswerError> {
        let selection = self.question.selection(&sides[0], names)?;
        let views = self.views(sides, names, now_millis);
        let before = std::mem::take(&mut self.differing);
        let mut told = 0;
        for prefix in Prefixes::new(sides, &selection, None) {
            if let Some(differ) = prefix.differ(&selection, self.question.strict) {
                self.keep(differ.place)?;
                line(out, |out| {
                    shown::json(&differ, Some(Happened::Differs), &views, out);
                });
                told += 1;
            }
        }
        for place in before.difference(&self.differing) {
            line(out, |out| shown::agrees(*place, &views[0], out));
            told += 1;
        }
        Ok(told)
    }

    /// The same of the prefixes that some events of either source are
    /// about. O(log routes) for each.
    pub fn changed(
        &mut self,
        events: &[Event],
        sides: [Side<'_>; 2],
        names: &Names,
        now_millis: u64,
        out: &mut Vec<u8>,
    ) -> Result<u64, AnswerError> {
        let selection = self.question.selection(&sides[0], names)?;
        let views = self.views(sides, names, now_millis);
        let mut told = 0;
        let mut places: Vec<Place> = events.iter().filter_map(about).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            told += u64::from(self.one(place, (sides, &selection, &views), out)?);
        }
        Ok(told)
    }

    /// Looks at one prefix; whether there was something to tell.
    fn one(
        &mut self,
        place: Place,
        (sides, selection, views): ([Side<'_>; 2], &Selection, &[View<'_>; 2]),
        out: &mut Vec<u8>,
    ) -> Result<bool, AnswerError> {
        match prefix_at(sides, place).differ(selection, self.question.strict) {
            Some(differ) => {
                self.keep(place)?;
                line(out, |out| {
                    shown::json(&differ, Some(Happened::Differs), views, out);
                });
                Ok(true)
            }
            None if self.differing.remove(&place) => {
                line(out, |out| shown::agrees(place, &views[0], out));
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn keep(&mut self, place: Place) -> Result<(), BadQuestion> {
        self.differing.insert(place);
        if self.differing.len() > MAX_DIFFERING {
            return Err(BadQuestion::TooManyDiffer(MAX_DIFFERING));
        }
        Ok(())
    }

    fn views<'a>(&self, sides: [Side<'a>; 2], names: &'a Names, now_millis: u64) -> [View<'a>; 2] {
        sides.map(|side| side.view(&self.question.output, names, now_millis))
    }
}

fn about(event: &Event) -> Option<Place> {
    match &event.row {
        Row::Route(route) => Some(Place::new(route.table, route.prefix)),
        _ => None,
    }
}

fn line(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    write(out);
    out.push(b'\n');
}
