//! Batches: the same work in stages, so that the cache lines of all packets
//! are on their way before the first is needed.
//!
//! A miss leaves by a function that looks up again, so that several packets
//! of one new flow in a batch are right.
//!
//! TCP's state is followed behind the others' rewriting, for runs of packets:
//! a branch on the protocol of each would be guessed wrong half the time.
//! Before anything that could end or read a flow, the run is caught up with.

use memory::prefetch_bytes;
use packet::protocol;

use super::SWEEP_A_STAGE;
use super::translate::{Hint, follow_short};
use crate::index::First;
use crate::key::Key;
use crate::parse;
use crate::{Nat, Packet, Verdict};

/// Packets staged together: more do not fit into the first cache, fewer
/// leave it waiting.
const STAGED: usize = 32;
/// Bytes of an IPv4 and a TCP header, less a field.
const HEADERS_LEN: usize = 36;

/// What is known of a staged packet: half a cache line. The rest is read
/// from the packet again, which is near by then.
#[derive(Clone, Copy)]
struct Staged {
    key: Key,
    hash: u64,
    /// The flow it may belong to.
    name: u32,
    /// The alias port to try first.
    port: u16,
    what: What,
}

const _: () = assert!(size_of::<Staged>() == 32);

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Not whole TCP or UDP.
    Long,
    /// It had no flow at the first look, for sure.
    Miss,
    /// A flow may be its own.
    Hit,
}

impl Staged {
    const NOTHING: Self = Self {
        key: Key {
            addresses: 0,
            ports: 0,
        },
        hash: 0,
        name: 0,
        port: 0,
        what: What::Long,
    };

    fn hint(&self) -> Hint {
        Hint::new(self.hash, self.port)
    }
}

/// Places in a stage, in the order they were noted.
struct Noted {
    places: [u8; STAGED],
    len: usize,
}

impl Noted {
    const NONE: Self = Self {
        places: [0; STAGED],
        len: 0,
    };

    /// Notes a place if `is` says so, without a branch.
    #[inline(always)]
    fn note(&mut self, place: usize, is: bool) {
        if let Some(next) = self.places.get_mut(self.len) {
            *next = place as u8;
            self.len += usize::from(is);
        }
    }

    /// What was noted, which is forgotten.
    #[inline(always)]
    fn take(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (places, len) = (self.places, self.len);
        self.len = 0;
        places.into_iter().take(len).map(usize::from)
    }
}

impl Nat {
    /// Translates packets in order, a stage after the other.
    pub(super) fn batch<const OUT: bool>(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        self.catch_up_calls();
        for packets in packets.chunks_mut(STAGED) {
            self.begin(now_millis);
            if let [packet] = packets {
                packet.verdict = self.one::<OUT>(packet.bytes);
                self.catch_up_calls();
                self.sweep_a_call();
            } else {
                self.stage::<OUT>(packets);
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
                staged.key = parsed.key;
                staged.hash = self.table.hasher.hash(parsed.key);
                staged.what = What::Miss;
                self.table.index::<OUT>().prefetch(staged.hash);
            }
        }
        self.look::<OUT>(&mut staged, packets.len());
        let mut pending_segments = Noted::NONE;
        let mut made = 0;
        let flows_made = self.statistics.flows_made;
        for (place, staged_here) in staged.iter().enumerate().take(packets.len()) {
            let Some(packet) = packets.get_mut(place) else {
                return;
            };
            let Staged {
                key,
                hash,
                name,
                port,
                what,
            } = *staged_here;
            if what == What::Hit && self.short_way::<OUT, false>(packet.bytes, key, name) {
                packet.verdict = Verdict::Translated;
                pending_segments.note(place, key.protocol() == protocol::TCP);
            } else if OUT && what == What::Miss && self.quick_miss(packet.bytes, key, hash, port) {
                packet.verdict = Verdict::Translated;
                made += 1;
            } else if !OUT
                && what == What::Miss
                && self.is_unasked(key)
                && (self.statistics.flows_made == flows_made
                    || self.table.first::<false>(hash) == First::Nothing)
            {
                // Nor has it one now.
                packet.verdict = Verdict::NoMapping;
            } else {
                self.catch_up::<OUT>(packets, &staged, &mut pending_segments);
                if let Some(packet) = packets.get_mut(place) {
                    packet.verdict = self.long_way::<OUT>(packet.bytes, staged_here);
                }
            }
        }
        self.catch_up::<OUT>(packets, &staged, &mut pending_segments);
        if self.tracked.is_some() {
            self.tend_blocks(1);
        }
        self.sweep(SWEEP_A_STAGE + made * self.swept_a_flow());
    }

    /// A packet without a flow at the first look, for which nothing special
    /// is set up: whether that was all.
    #[inline(always)]
    fn quick_miss(&mut self, bytes: &mut [u8], key: Key, hash: u64, port: u16) -> bool {
        if !self.is_plain() || self.table.find::<true>(hash, key).is_some() {
            return false;
        }
        let parsed = parse::again(bytes, key);
        self.quick_out(bytes, &parsed, hash, port)
    }

    /// Looks into the buckets and asks for the flows; where a bucket has a
    /// line behind it, for that and then for its flow.
    #[inline(always)]
    fn look<const OUT: bool>(&mut self, staged: &mut [Staged; STAGED], len: usize) {
        let mut linked = Noted::NONE;
        for (place, staged) in staged.iter_mut().enumerate().take(len) {
            if staged.what == What::Long {
                continue;
            }
            match self.table.first::<OUT>(staged.hash) {
                First::Name(name) => {
                    self.table.prefetch(name);
                    staged.name = name;
                    staged.what = What::Hit;
                }
                First::Link => {
                    self.table.index::<OUT>().prefetch_behind(staged.hash);
                    linked.note(place, true);
                }
                First::Nothing if OUT => staged.port = self.foresee(staged.key),
                First::Nothing => {}
            }
        }
        for place in linked.take() {
            let Some(staged) = staged.get_mut(place) else {
                return;
            };
            // There may be a third line: what is not found here is looked
            // for again.
            staged.what = What::Hit;
            if let Some(name) = self.table.index::<OUT>().behind(staged.hash) {
                self.table.prefetch(name);
                staged.name = name;
            } else if OUT {
                staged.port = self.foresee(staged.key);
            }
        }
    }

    /// Follows TCP for what went the short way.
    #[inline(always)]
    fn catch_up<const OUT: bool>(
        &mut self,
        packets: &[Packet<'_>],
        staged: &[Staged; STAGED],
        pending_segments: &mut Noted,
    ) {
        for place in pending_segments.take() {
            let (Some(packet), Some(staged)) = (packets.get(place), staged.get(place)) else {
                return;
            };
            let Some(flow) = self.table.get_mut(staged.name) else {
                return;
            };
            let class = flow.class;
            follow_short::<OUT>(flow, packet.bytes);
            if flow.class != class {
                self.turned(staged.name, class);
            }
        }
    }

    #[inline(always)]
    fn long_way<const OUT: bool>(&mut self, bytes: &mut [u8], staged: &Staged) -> Verdict {
        match staged.what {
            What::Long => self.long::<OUT>(bytes),
            What::Miss => {
                let parsed = parse::again(bytes, staged.key);
                self.miss::<OUT>(bytes, &parsed, staged.hint())
            }
            What::Hit => self.again::<OUT>(bytes, staged),
        }
    }

    /// A packet whose first look found another's flow, or one with something
    /// special about it.
    #[inline(never)]
    fn again<const OUT: bool>(&mut self, bytes: &mut [u8], staged: &Staged) -> Verdict {
        let parsed = parse::again(bytes, staged.key);
        let found = self.table.find::<OUT>(staged.hash, staged.key);
        if let Some(name) = found
            && self.short_way::<OUT, false>(bytes, staged.key, name)
        {
            if staged.key.protocol() == protocol::TCP {
                self.follow_now::<OUT>(name, bytes);
            }
            return Verdict::Translated;
        }
        if OUT && found.is_none() && self.is_plain() {
            // A tag that was another's, or a line behind the bucket.
            let port = match staged.port {
                0 => self.foresee(staged.key),
                foreseen => foreseen,
            };
            if self.quick_out(bytes, &parsed, staged.hash, port) {
                self.sweep(self.swept_a_flow());
                return Verdict::Translated;
            }
        }
        self.miss::<OUT>(bytes, &parsed, staged.hint())
    }
}
