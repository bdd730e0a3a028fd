//! Batches: the same work in stages, so that the cache lines of all packets
//! are on their way before the first is needed.
//!
//! A miss leaves by a function that looks up again, so that several packets
//! of one new flow in a batch are right.

use memory::prefetch_bytes;

use super::translate::Hint;
use crate::index::First;
use crate::key::Key;
use crate::parse::{self, Parsed, Upper};
use crate::{Nat, Packet, Verdict};

/// Packets staged together: more do not fit into the first cache, fewer
/// leave it waiting.
const STAGED: usize = 32;
/// Bytes of an IPv4 and a TCP header, less a field.
const HEADERS_LEN: usize = 36;
/// Flows that the sweep looks at for each stage.
const SWEEP_A_STAGE: usize = 8;

/// What is known of a staged packet.
#[derive(Clone, Copy)]
struct Staged {
    parsed: Parsed,
    hash: u64,
    /// The flow it may belong to.
    name: u32,
    /// The alias port to try first.
    port: u16,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Not whole TCP or UDP.
    Long,
    /// No flow was seen at the first look, or behind a link.
    Miss,
    /// A flow may be its own.
    Hit,
}

impl Staged {
    const NOTHING: Self = Self {
        parsed: Parsed {
            key: Key {
                addresses: 0,
                ports: 0,
            },
            at: 0,
            total_len: 0,
            upper: Upper::Plain,
        },
        hash: 0,
        name: 0,
        port: 0,
        what: What::Long,
    };
}

impl Staged {
    fn hint(&self) -> Hint {
        Hint {
            hash: self.hash,
            port: self.port,
        }
    }
}

impl Nat {
    /// Translates packets in order, a stage after the other.
    pub(super) fn batch<const OUT: bool>(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        for packets in packets.chunks_mut(STAGED) {
            self.begin(now_millis);
            if let [packet] = packets {
                packet.verdict = self.one::<OUT>(packet.bytes);
                self.sweep_a_call();
            } else {
                self.stage::<OUT>(packets);
                self.sweep(SWEEP_A_STAGE);
            }
        }
    }

    fn stage<const OUT: bool>(&mut self, packets: &mut [Packet<'_>]) {
        let mut staged = [Staged::NOTHING; STAGED];
        for packet in packets.iter() {
            prefetch_bytes(packet.bytes);
            // A TCP header may end in the next line.
            prefetch_bytes(packet.bytes.get(HEADERS_LEN..).unwrap_or_default());
        }
        for (packet, staged) in packets.iter().zip(&mut staged) {
            if let Some(parsed) = parse::short(packet.bytes) {
                staged.parsed = parsed;
                staged.hash = self.table.hasher.hash(parsed.key);
                staged.what = What::Miss;
                self.table.index::<OUT>().prefetch(staged.hash);
            }
        }
        for staged in staged.iter_mut().take(packets.len()) {
            if staged.what == What::Miss {
                match self.table.first::<OUT>(staged.hash) {
                    First::Name(name) => {
                        self.table.prefetch(name);
                        staged.name = name;
                        staged.what = What::Hit;
                    }
                    First::Nothing if OUT => staged.port = self.foresee(staged.parsed.key),
                    _ => {}
                }
            }
        }
        for (packet, staged) in packets.iter_mut().zip(&staged) {
            packet.verdict = self.finish::<OUT>(packet.bytes, staged);
        }
    }

    #[inline(always)]
    fn finish<const OUT: bool>(&mut self, bytes: &mut [u8], staged: &Staged) -> Verdict {
        let parsed = &staged.parsed;
        if staged.what == What::Long {
            return self.long::<OUT>(bytes);
        }
        if staged.what == What::Hit {
            let flow = self.table.get(staged.name);
            let own = flow.is_some_and(|flow| flow.key::<OUT>() == parsed.key);
            if own && self.established::<OUT>(staged.name, bytes, parsed) {
                return Verdict::Translated;
            }
        }
        if staged.what == What::Hit {
            return self.again::<OUT>(bytes, staged);
        }
        self.miss::<OUT>(bytes, parsed, staged.hint())
    }

    /// A packet whose first look found another's flow, or one with something
    /// special about it.
    #[inline(never)]
    fn again<const OUT: bool>(&mut self, bytes: &mut [u8], staged: &Staged) -> Verdict {
        let parsed = &staged.parsed;
        if let Some(name) = self.table.find::<OUT>(staged.hash, parsed.key)
            && self.established::<OUT>(name, bytes, parsed)
        {
            return Verdict::Translated;
        }
        self.miss::<OUT>(bytes, parsed, staged.hint())
    }
}
