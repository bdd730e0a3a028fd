//! What is counted for each subscriber where that is asked for, and only
//! there: batches go by here then, others do not.

use super::Nat;
use crate::blocks::SubscriberCounts;
use crate::{Packet, Verdict};

/// Packets of a batch that are looked at together, and whose subscribers are
/// asked for before the first is needed.
const TOGETHER: usize = 32;

impl Nat {
    /// Whether each subscriber's packets are counted.
    #[inline(always)]
    pub(super) fn is_counting(&self) -> bool {
        let tracked = self.tracked.as_ref();
        tracked.is_some_and(|of| of.subscribers.counted.is_some())
    }

    /// Translates a batch, and counts it for its subscribers.
    #[inline(never)]
    pub(super) fn counted_batch<const OUT: bool>(
        &mut self,
        packets: &mut [Packet<'_>],
        now_millis: u64,
    ) {
        for packets in packets.chunks_mut(TOGETHER) {
            let mut insides = [0; TOGETHER];
            if OUT {
                self.note_insides::<OUT>(&mut insides, packets);
            }
            self.batch::<OUT>(packets, now_millis);
            if !OUT {
                self.note_insides::<OUT>(&mut insides, packets);
            }
            for (packet, inside) in packets.iter().zip(insides) {
                if matches!(packet.verdict, Verdict::Translated | Verdict::Hairpinned) {
                    self.count_for(inside, |counts| counts.translated += 1);
                }
            }
        }
    }

    /// The inside ends of packets (host order): of those that go out before,
    /// of others after their translation.
    fn note_insides<const OUT: bool>(&self, insides: &mut [u32], packets: &[Packet<'_>]) {
        let at = if OUT { 12 } else { 16 };
        for (packet, inside) in packets.iter().zip(insides) {
            let field = packet.bytes.get(at..).and_then(|rest| rest.first_chunk());
            *inside = field.map_or(0, |bytes| u32::from_be_bytes(*bytes));
            if let Some(tracked) = &self.tracked {
                tracked.subscribers.prefetch(*inside);
            }
        }
    }

    /// Counts something for the subscriber of an inside address (host order),
    /// if it is one and that is asked for.
    #[inline]
    pub(super) fn count_for(&mut self, inside: u32, count: impl FnOnce(&mut SubscriberCounts)) {
        let Some(tracked) = &mut self.tracked else {
            return;
        };
        if tracked.subscribers.counted.is_some()
            && let Some(name) = tracked.subscribers.find(inside)
            && let Some(counts) = tracked.subscribers.counts_mut(name)
        {
            count(counts);
        }
    }
}
