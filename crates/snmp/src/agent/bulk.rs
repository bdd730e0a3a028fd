//! GetBulk (RFC 3416 §4.2.3): each repeater is one seek and a run, the
//! answers of several are put between each other, and all is cut where the
//! message is full.
//!
//! A single repeater, the walk of one column, writes its run straight into
//! the answer. Several run one after the other into scratch memory, each for
//! an equal share of the room, and are then laid out row by row; what room
//! that leaves is filled in a further round.

use std::ops::ControlFlow;

use super::respond::{Failure, Names, Request, Work};
use super::run::{End, Scope};
use crate::ber::{Reader, Writer};
use crate::mib::Value;
use crate::oid::Name;
use crate::pdu::ErrorStatus;

/// Bytes that few bindings are shorter than.
const SHORT_BINDING_BYTES: usize = 20;

/// One repeated name.
#[derive(Clone, Copy, Default)]
pub(super) struct Repeater {
    /// Where its last binding begins in the answer, if it has one there.
    last: Option<usize>,
    /// There is nothing more behind that.
    ended: bool,
    /// Its bindings of this round: the first one's place among the ends, and
    /// how many.
    first: usize,
    many: usize,
}

/// What comes of a round of runs.
struct Round {
    /// Rows that are complete, or cut where the answer is full.
    rows: usize,
    /// All repeaters are at their end: no further round is due.
    ended: bool,
    /// A run gave up: what there is is the answer.
    gave_up: bool,
}

impl Work {
    /// Writes the bindings of a bulk request's answer; the return counts
    /// them. Fails only if not even the first fits.
    pub(super) fn bulk(
        &mut self,
        request: &Request<'_>,
        out: &mut Writer<'_>,
    ) -> Result<usize, Failure> {
        let total = self.names.len();
        let non_repeaters = natural(request.pdu.error_status).min(total);
        let repetitions = natural(request.pdu.error_index);
        let mut written = 0;
        for at in 0..non_repeaters {
            match self.next_at(request, at, out) {
                Ok(()) => written += 1,
                Err(Failure::TooBig) if written > 0 => return Ok(written),
                Err(failure) => return Err(failure),
            }
        }
        written += match total - non_repeaters {
            0 => 0,
            _ if repetitions == 0 => 0,
            1 => self.one(request, repetitions, written == 0, out)?,
            _ => self.several(request, non_repeaters, repetitions, written == 0, out)?,
        };
        Ok(written)
    }

    /// The last name is the one repeater: its run goes into the answer.
    fn one(
        &mut self,
        request: &Request<'_>,
        repetitions: usize,
        must: bool,
        out: &mut Writer<'_>,
    ) -> Result<usize, Failure> {
        let at = self.names.len() - 1;
        let room = out.room() / SHORT_BINDING_BYTES;
        request.mib.expect(repetitions.min(room));
        let mut many = 0;
        let mut last = None;
        let mut full = false;
        let end = request.scope().run(self.names.get(at), |name, value| {
            let begin = out.len();
            if out.binding(name, &value).is_err() {
                full = true;
                return ControlFlow::Break(());
            }
            last = Some(begin);
            many += 1;
            if many < repetitions {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        match end {
            End::Stopped => {}
            End::OfView => {
                let name = last_name(&self.names, at, last, out);
                full = out.binding(&name, &Value::EndOfMibView).is_err();
                many += usize::from(!full);
            }
            End::GaveUp if many == 0 && must => {
                return Err(Failure::At(ErrorStatus::GenErr, at));
            }
            End::GaveUp => {}
        }
        if full && many == 0 && must {
            return Err(Failure::TooBig);
        }
        Ok(many)
    }

    /// All names from `first` on are repeaters.
    fn several(
        &mut self,
        request: &Request<'_>,
        first: usize,
        repetitions: usize,
        must: bool,
        out: &mut Writer<'_>,
    ) -> Result<usize, Failure> {
        self.make_scratch();
        self.repeaters.clear();
        self.repeaters
            .resize(self.names.len() - first, Repeater::default());
        let mut left = repetitions;
        let mut written = 0;
        while left > 0 {
            let rows = left.min(request.patience.rows_of(self.repeaters.len()));
            let round = self.run_all(&request.scope(), first, rows, out);
            let cells = self.lay_out(first, round.rows, out);
            written += cells;
            left = left.saturating_sub(round.rows);
            if written == 0 && must {
                return Err(match round.gave_up {
                    true => Failure::At(ErrorStatus::GenErr, first),
                    false => Failure::TooBig,
                });
            }
            let cut = cells < round.rows * self.repeaters.len();
            if round.ended || round.gave_up || cut {
                break;
            }
        }
        Ok(written)
    }

    /// One run for each repeater, for at most `left` rows, into scratch.
    fn run_all(&mut self, scope: &Scope<'_>, first: usize, left: usize, out: &Writer<'_>) -> Round {
        let share = out.room() / self.repeaters.len();
        scope.mib.expect(left.min(share / SHORT_BINDING_BYTES));
        let mut scratch = Writer::scratch(&mut self.scratch);
        self.ends.clear();
        let mut first_row = 0;
        let mut rows = left;
        let mut longest = 0;
        let mut gave_up = false;
        for at in 0..self.repeaters.len() {
            let repeater = &mut self.repeaters[at];
            repeater.first = self.ends.len();
            repeater.many = 0;
            // What the first row has no room for is not begun.
            if repeater.ended || first_row > out.room() {
                continue;
            }
            let after = last_name(&self.names, first + at, repeater.last, out);
            let begin = scratch.len();
            let end = scope.run(&after, |name, value| {
                let end = scratch.len();
                if scratch.binding(name, &value).is_err() {
                    return ControlFlow::Break(());
                }
                if repeater.many > 0 && scratch.len() - begin > share {
                    // The first may be longer than its share, no other.
                    scratch.truncate(end);
                    return ControlFlow::Break(());
                }
                self.ends.push(scratch.len());
                repeater.many += 1;
                if repeater.many < rows {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            if repeater.many > 0 {
                first_row += self.ends[repeater.first] - begin;
            }
            repeater.ended = end == End::OfView;
            longest = longest.max(repeater.many);
            gave_up |= end == End::GaveUp;
            if !repeater.ended {
                // A first row is begun also where it cannot be completed.
                rows = rows.min(repeater.many.max(1));
            }
        }
        let ended = self.repeaters.iter().all(|repeater| repeater.ended);
        if ended {
            // One row says so; more of the kind say nothing.
            rows = left.min(longest + 1);
        } else {
            // The next round begins behind these rows, before the end of
            // what has more of them.
            for repeater in &mut self.repeaters {
                repeater.ended &= repeater.many <= rows;
            }
        }
        Round {
            rows,
            ended,
            gave_up,
        }
    }

    /// Copies a round's bindings into the answer, row by row; the return
    /// counts them. Stops where the answer is full or a run did not begin.
    fn lay_out(&mut self, first: usize, rows: usize, out: &mut Writer<'_>) -> usize {
        let mut cells = 0;
        for row in 0..rows {
            for at in 0..self.repeaters.len() {
                let repeater = self.repeaters[at];
                let begin = out.len();
                let written = if row < repeater.many {
                    let end = repeater.first + row;
                    let begin = end.checked_sub(1).map_or(0, |before| self.ends[before]);
                    out.bytes(&self.scratch[begin..self.ends[end]])
                } else if repeater.ended {
                    let name = last_name(&self.names, first + at, repeater.last, out);
                    out.binding(&name, &Value::EndOfMibView)
                } else {
                    return cells;
                };
                if written.is_err() {
                    return cells;
                }
                self.repeaters[at].last = Some(begin);
                cells += 1;
            }
        }
        cells
    }

    fn next_at(
        &self,
        request: &Request<'_>,
        at: usize,
        out: &mut Writer<'_>,
    ) -> Result<(), Failure> {
        self.next(request, at..at + 1, out).map(|_| ())
    }
}

/// A negative number is taken for zero (RFC 3416 §4.2.3).
fn natural(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The name that a repeater has come to: that of the binding at `last` in
/// the answer, or the one asked for.
fn last_name(names: &Names, at: usize, last: Option<usize>, out: &Writer<'_>) -> Name {
    let mut name = Name::new();
    let read = last.is_some_and(|begin| {
        let written = out.written().get(begin..).unwrap_or_default();
        let binding = Reader::new(written).sequence();
        binding.is_ok_and(|mut binding| binding.name(&mut name).is_ok())
    });
    if !read {
        name.clear();
        name.extend(names.get(at).iter().copied().take(name.capacity()));
    }
    name
}
