//! TCP sequence arithmetic for one direction of a connection whose payload
//! a helper changes in length. Called by the helpers' side table only.
//!
//! Two spaces: the *sender's*, in which its own numbers stand, and the
//! *receiver's*, in which they arrive. A change replaces the sender's bytes
//! `start..end` by some others; behind it every number is shifted by what
//! all changes so far have added. Acknowledgements and SACK edges go the
//! other way (RFC 9293 §3.4, RFC 2018 §3). All comparisons are modulo 2^32.
//!
//! Bound: [`MAX_CHANGES`] are remembered. To make room, the oldest goes once
//! the receiver has acknowledged it: what is retransmitted from before it is
//! shifted wrongly then, but still lands in what the receiver has already,
//! and is thrown away there. When the oldest is not acknowledged yet, a new
//! change is refused; the segment is dropped and comes again.

use arrayvec::ArrayVec;

use crate::saved::{Fields, Record};

/// Changes of one direction that are remembered.
pub const MAX_CHANGES: usize = 16;
/// A change that lies further back than this is forgotten, so that numbers
/// are never compared over half of their circle.
const HORIZON: u32 = 1 << 30;

/// What is written into a stream: an endpoint, `[DEST …]`.
pub type Text = ArrayVec<u8, 32>;

/// Bytes that were replaced, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// First of the sender's bytes that is replaced.
    pub start: u32,
    /// First one behind.
    pub end: u32,
    /// What stands there instead: kept, so that a retransmission becomes the
    /// same bytes again.
    pub text: Text,
    /// What all changes up to this one have added, this one included.
    shift: i32,
}

impl Change {
    /// It as a saved state keeps it.
    pub fn saved(&self, out: Record) -> Record {
        let mut text = [0; 32];
        for (place, byte) in text.iter_mut().zip(&self.text) {
            *place = *byte;
        }
        let out = out.u32(self.start).u32(self.end);
        let out = out.u32(self.shift.cast_unsigned());
        out.u8(self.text.len() as u8).with(text)
    }

    /// What [`Change::saved`] wrote.
    pub fn restored(fields: &mut Fields<'_>) -> Self {
        let (start, end, shift) = (fields.u32(), fields.u32(), fields.u32().cast_signed());
        let len = usize::from(fields.u8());
        let text = fields.bytes::<32>();
        Self {
            start,
            end,
            shift,
            text: text.into_iter().take(len).collect(),
        }
    }

    /// The shift in front of this change.
    fn shift_before(&self) -> i32 {
        let old_len = self.end.wrapping_sub(self.start) as i32;
        self.shift - (self.text.len() as i32 - old_len)
    }
}

/// Why a change is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too many changes that nobody has acknowledged yet.
    Unacknowledged,
    /// It overlaps one that was made with other bounds, or lies in front of
    /// the latest: the sender has changed what it had sent.
    Inconsistent,
}

/// The changes of one direction.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    /// In the order of their numbers.
    changes: ArrayVec<Change, MAX_CHANGES>,
    /// The shift of what lies in front of the oldest remembered change.
    base: i32,
    /// Up to here, in the sender's numbers, the receiver has it all.
    acknowledged: Option<u32>,
}

/// Whether `a` lies before `b` on the circle.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn shifted(number: u32, by: i32) -> u32 {
    number.wrapping_add_signed(by)
}

impl Sequence {
    /// Whether numbers are as they were.
    pub fn is_plain(&self) -> bool {
        self.changes.is_empty() && self.base == 0
    }

    /// A sequence number, from the sender's space to the receiver's: where
    /// the byte of this number comes to stand. Within a change: behind it,
    /// where the rest of a segment goes that begins in its midst.
    pub fn forward(&self, number: u32) -> u32 {
        for change in self.changes.iter().rev() {
            if !before(number, change.end) {
                return shifted(number, change.shift);
            }
            if before(change.start, number) {
                return shifted(change.end, change.shift);
            }
        }
        shifted(number, self.base)
    }

    /// The same for the first number of a segment: what was put in at this
    /// very place goes with it.
    pub fn forward_start(&self, number: u32) -> u32 {
        match self.made(number) {
            Some(change) => shifted(number, change.shift_before()),
            None => self.forward(number),
        }
    }

    /// An acknowledgement or SACK edge, from the receiver's space to the
    /// sender's. Within a change: its start, as nothing of it is complete.
    pub fn backward(&self, number: u32) -> u32 {
        for change in self.changes.iter().rev() {
            let end = shifted(change.end, change.shift);
            if !before(number, end) {
                return shifted(number, change.shift.wrapping_neg());
            }
            let start = shifted(change.start, change.shift_before());
            if before(start, number) {
                return change.start;
            }
        }
        shifted(number, self.base.wrapping_neg())
    }

    /// The receiver acknowledges up to `number`, in the sender's space.
    pub fn acknowledge(&mut self, number: u32) {
        if self.acknowledged.is_none_or(|known| before(known, number)) {
            self.acknowledged = Some(number);
        }
    }

    /// It as a saved state keeps it: what lies in front of all changes, and
    /// how far the receiver has it.
    pub fn saved(&self, out: Record) -> Record {
        let out = out.u32(self.base.cast_unsigned());
        let out = out.u8(u8::from(self.acknowledged.is_some()));
        out.u32(self.acknowledged.unwrap_or(0))
    }

    /// What [`Sequence::saved`] wrote.
    pub fn restored(fields: &mut Fields<'_>) -> Self {
        let base = fields.u32().cast_signed();
        let (is_known, acknowledged) = (fields.u8() != 0, fields.u32());
        Self {
            base,
            acknowledged: is_known.then_some(acknowledged),
            ..Self::default()
        }
    }

    /// Its changes in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    /// One more of its changes, behind the others; one too many is left out.
    pub fn restore_change(&mut self, change: Change) {
        let _ = self.changes.try_push(change);
    }

    fn is_acknowledged(&self, number: u32) -> bool {
        self.acknowledged
            .is_some_and(|known| !before(known, number))
    }

    /// The change that begins at `start`, if it was made before.
    pub fn made(&self, start: u32) -> Option<&Change> {
        self.changes.iter().find(|change| change.start == start)
    }

    /// The changes that a segment of these numbers has to do with.
    pub fn within(&self, start: u32, end: u32) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| {
            let put_in = change.start == change.end;
            let ends = before(start, change.end) || put_in && start == change.start;
            before(change.start, end) && ends
        })
    }

    /// Where the latest change ends: new ones lie behind it.
    fn latest_end(&self) -> Option<u32> {
        self.changes.last().map(|change| change.end)
    }

    /// Forgets changes that lie too far back to be compared with `number`.
    pub fn advance(&mut self, number: u32) {
        while let Some(first) = self.changes.first() {
            if number.wrapping_sub(first.end) < HORIZON || before(number, first.end) {
                return;
            }
            self.forget_oldest();
        }
        let far = |known: u32| number.wrapping_sub(known).wrapping_add(HORIZON) > 2 * HORIZON;
        if self.acknowledged.is_some_and(far) {
            self.acknowledged = None;
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.changes.pop_at(0) {
            self.base = oldest.shift;
        }
    }

    /// Whether one more change would be taken.
    pub fn has_room(&self) -> bool {
        let oldest = self.changes.first().filter(|_| self.changes.is_full());
        oldest.is_none_or(|change| self.is_acknowledged(change.end))
    }

    /// Remembers that the sender's `start..end` became `text`. One that is
    /// known already is no other.
    pub fn change(&mut self, start: u32, end: u32, text: Text) -> Result<(), Refused> {
        if let Some(known) = self.made(start) {
            let same = known.end == end && known.text == text;
            return if same {
                Ok(())
            } else {
                Err(Refused::Inconsistent)
            };
        }
        if self
            .latest_end()
            .is_some_and(|latest| before(start, latest))
            || before(end, start)
        {
            return Err(Refused::Inconsistent);
        }
        if !self.has_room() {
            return Err(Refused::Unacknowledged);
        }
        if self.changes.is_full() {
            self.forget_oldest();
        }
        let shift = self.changes.last().map_or(self.base, |change| change.shift);
        let added = (text.len() as i32).wrapping_sub_unsigned(end.wrapping_sub(start));
        self.changes.push(Change {
            start,
            end,
            text,
            shift: shift.wrapping_add(added),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(len: usize) -> Text {
        std::iter::repeat_n(b'x', len).collect()
    }

    #[test]
    fn numbers_shift_behind_a_change_and_back() {
        let mut sequence = Sequence::default();
        assert!(sequence.is_plain());
        let start = u32::MAX - 5;
        sequence
            .change(start, start.wrapping_add(10), text(13))
            .unwrap();
        assert_eq!(sequence.forward(start), start);
        assert_eq!(
            sequence.forward(start.wrapping_add(4)),
            start.wrapping_add(13)
        );
        assert_eq!(
            sequence.forward(start.wrapping_add(10)),
            start.wrapping_add(13)
        );
        assert_eq!(
            sequence.backward(start.wrapping_add(13)),
            start.wrapping_add(10)
        );
        assert_eq!(sequence.backward(start.wrapping_add(12)), start);
        assert_eq!(sequence.backward(start), start);
    }

    #[test]
    fn the_same_change_again_is_no_other() {
        let mut sequence = Sequence::default();
        sequence.change(100, 110, text(12)).unwrap();
        sequence.change(100, 110, text(12)).unwrap();
        assert_eq!(sequence.forward(110), 112);
        let other = sequence.change(100, 109, text(12));
        assert_eq!(other, Err(Refused::Inconsistent));
        assert_eq!(sequence.change(90, 95, text(1)), Err(Refused::Inconsistent));
        assert_eq!(
            sequence.change(121, 120, text(1)),
            Err(Refused::Inconsistent)
        );
    }

    #[test]
    fn what_is_put_in_goes_with_the_segment_behind_it() {
        let mut sequence = Sequence::default();
        sequence.change(100, 100, text(30)).unwrap();
        assert_eq!(
            (sequence.forward_start(100), sequence.forward(100)),
            (100, 130)
        );
        assert_eq!(
            [130, 120, 100].map(|number| sequence.backward(number)),
            [100; 3]
        );
        assert_eq!(sequence.within(100, 105).count(), 1);
        assert_eq!(sequence.within(101, 105).count(), 0);
        assert_eq!(sequence.within(90, 100).count(), 0);
    }

    #[test]
    fn room_is_made_by_what_is_acknowledged_only() {
        let mut sequence = Sequence::default();
        for number in 0..MAX_CHANGES as u32 {
            sequence
                .change(number * 100, number * 100 + 10, text(20))
                .unwrap();
        }
        let more = 100 * MAX_CHANGES as u32;
        let refused = sequence.change(more, more + 10, text(20));
        assert_eq!(refused, Err(Refused::Unacknowledged));
        sequence.acknowledge(10);
        sequence.change(more, more + 10, text(20)).unwrap();
        assert_eq!(
            sequence.forward(more + 10),
            more + 10 + 10 * (MAX_CHANGES as u32 + 1)
        );
        // From before the forgotten one: lands in what the receiver has.
        assert!(before(sequence.forward(0), sequence.forward(10)));
    }

    #[test]
    fn what_lies_far_back_is_forgotten() {
        let mut sequence = Sequence::default();
        sequence.change(0, 10, text(20)).unwrap();
        sequence.acknowledge(10);
        sequence.advance(HORIZON + 10);
        assert!(sequence.made(0).is_none());
        for number in [HORIZON + 10, 3 * HORIZON, 10] {
            assert_eq!(sequence.backward(sequence.forward(number)), number);
            assert_eq!(sequence.forward(number), number.wrapping_add(10));
        }
    }

    proptest! {
        /// Against the streams themselves: every byte that is not replaced
        /// arrives at its number, and goes back to it.
        #[test]
        fn as_the_streams_are(
            first in any::<u32>(),
            pieces in prop::collection::vec((1..5_u32, 0..30_u32, 0..32_usize), 1..MAX_CHANGES),
        ) {
            let mut sequence = Sequence::default();
            let (mut at, mut arrives) = (first, first);
            let mut kept = Vec::new();
            for (plain, old_len, new_len) in pieces {
                for _ in 0..plain {
                    kept.push((at, arrives));
                    (at, arrives) = (at.wrapping_add(1), arrives.wrapping_add(1));
                }
                let end = at.wrapping_add(old_len);
                sequence.change(at, end, text(new_len)).unwrap();
                (at, arrives) = (end, arrives.wrapping_add(new_len as u32));
            }
            kept.push((at, arrives));
            for (sent, received) in kept {
                prop_assert_eq!(sequence.forward(sent), received);
                // Where changes have left nothing, several numbers are one.
                let back = sequence.backward(received);
                prop_assert_eq!(sequence.forward(back), received);
            }
        }
    }
}
