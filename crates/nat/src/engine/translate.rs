//! One packet: the short way for what nearly all are, the long one for the
//! rest.

use packet::protocol;

use super::pending_segments::Now;
use crate::flow::{Flow, flag};
use crate::index::First;
use crate::key::Key;
use crate::parse::{self, Parse, Parsed, Upper};
use crate::tcp::{self, Seen};
use crate::{Hairpin, Nat, State, Verdict, Why};

/// Bytes that a translation may change: the longest header of IPv4 and of
/// TCP.
const CHANGED_BYTES: usize = 120;

/// DNS's port, memory order.
const DNS: u16 = 53_u16.to_be();

/// What is known of a packet before its flow is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint {
    /// The hash of its key.
    pub hash: u64,
    /// The alias port to try first, memory order, whose line was asked for;
    /// 0: none.
    pub port: u16,
    /// The sequence number, of what opens a TCP connection.
    pub syn: Option<u32>,
    /// Whether another flow may have to give its port up.
    pub gives: bool,
    /// Whose flow it is to be, where that counts.
    pub subscriber: Option<u32>,
}

impl Hint {
    /// The hash, and the port to try first.
    #[inline(always)]
    pub fn new(hash: u64, port: u16) -> Self {
        Self {
            hash,
            port,
            syn: None,
            gives: true,
            subscriber: None,
        }
    }
}

impl Nat {
    /// A packet, not staged: for calls with one.
    #[inline]
    pub(super) fn one<const OUT: bool>(&mut self, bytes: &mut [u8]) -> Verdict {
        if OUT && self.one_made {
            return self.one_of_run(bytes);
        }
        let Some(parsed) = parse::short(bytes) else {
            return self.long::<OUT>(bytes);
        };
        let hash = self.table.hasher.hash(parsed.key);
        match self.table.first::<OUT>(hash) {
            First::Name(name) if self.short_way::<OUT, true>(bytes, parsed.key, name) => {
                Verdict::Translated
            }
            First::Nothing if !OUT && self.is_unasked(parsed.key) => Verdict::NoMapping,
            _ => self.one_again::<OUT>(bytes),
        }
    }

    /// The same where the packet before made a flow: this one may as well,
    /// and the line of its alias endpoint comes with the first bucket's.
    #[inline(never)]
    fn one_of_run(&mut self, bytes: &mut [u8]) -> Verdict {
        let Some(parsed) = parse::short(bytes) else {
            return self.long::<true>(bytes);
        };
        let key = parsed.key;
        let hash = self.table.hasher.hash(key);
        self.table.index::<true>().prefetch(hash);
        let port = self.foresee(key);
        let known = match self.table.first::<true>(hash) {
            First::Name(name) if self.short_way::<true, true>(bytes, key, name) => {
                self.one_made = false;
                return Verdict::Translated;
            }
            First::Name(_) | First::Link => true,
            First::Nothing => false,
        };
        self.one_unknown::<true>(bytes, key, Hint::new(hash, port), known)
    }

    /// A packet whose first look found no flow of its own.
    #[inline(never)]
    fn one_again<const OUT: bool>(&mut self, bytes: &mut [u8]) -> Verdict {
        // Read again: what is kept for this would be kept for each packet.
        let Some(parsed) = parse::short(bytes) else {
            return Verdict::Malformed;
        };
        let hash = self.table.hasher.hash(parsed.key);
        let hint = Hint::new(hash, 0);
        self.one_unknown::<OUT>(bytes, parsed.key, hint, true)
    }

    /// The same; `known`: it may have one all the same.
    #[inline(always)]
    fn one_unknown<const OUT: bool>(
        &mut self,
        bytes: &mut [u8],
        key: Key,
        hint: Hint,
        known: bool,
    ) -> Verdict {
        self.catch_up_calls();
        let found = if known {
            self.table.find::<OUT>(hint.hash, key)
        } else {
            None
        };
        if let Some(name) = found
            && self.short_way::<OUT, true>(bytes, key, name)
        {
            return Verdict::Translated;
        }
        if !OUT && found.is_none() && self.is_unasked(key) {
            return Verdict::NoMapping;
        }
        let parsed = parse::again(bytes, key);
        if OUT {
            self.one_made = true;
            if found.is_none() && self.is_plain() {
                let port = match hint.port {
                    0 => self.foresee(key),
                    foreseen => foreseen,
                };
                if self.quick_out(bytes, &parsed, hint.hash, port) {
                    self.sweep(self.swept_a_flow());
                    return Verdict::Translated;
                }
            }
        }
        let hash = hint.hash;
        self.miss::<OUT>(bytes, &parsed, Hint::new(hash, 0))
    }

    /// Translates a packet that [`parse::short`] took by a flow that may be
    /// its own, if it is and lives and has nothing special about it. TCP is
    /// noted to be followed soon (`NOTE`), or the caller sees to it.
    #[inline(always)]
    pub(super) fn short_way<const OUT: bool, const NOTE: bool>(
        &mut self,
        bytes: &mut [u8],
        key: Key,
        name: u32,
    ) -> bool {
        let now = self.clock.now();
        let flags = self.plain_flags::<OUT>();
        let Some(flow) = self.table.get_mut(name) else {
            return false;
        };
        let idle = now.wrapping_sub(flow.last_used);
        let plain = (flow.key::<OUT>() == key)
            & flow.is_plain::<OUT>(flags)
            & (idle <= self.ticks.of(flow.class));
        if !plain {
            return self.rare_way::<OUT, NOTE>(bytes, key, name);
        }
        flow.last_used = now;
        parse::rewrite_short::<OUT>(bytes, key.protocol() == protocol::TCP, flow);
        if NOTE {
            self.note_segment::<OUT>(name, bytes, key);
        }
        true
    }

    /// The same for any flow; for one that has a shared mapping, and the
    /// first packet of a direction.
    #[inline(never)]
    fn rare_way<const OUT: bool, const NOTE: bool>(
        &mut self,
        bytes: &mut [u8],
        key: Key,
        name: u32,
    ) -> bool {
        let now = self.clock.now();
        let refreshes = self.refreshes::<OUT>();
        let Some(flow) = self.table.get_mut(name) else {
            return false;
        };
        let idle = now.wrapping_sub(flow.last_used);
        let fit = (flow.key::<OUT>() == key)
            & flow.is_ordinary(self.ordinary_flags)
            & (idle <= self.ticks.of(flow.class));
        let shared = flow.flags & flag::MAPPED != 0;
        let is_tcp = key.protocol() == protocol::TCP;
        // How long a mapping lives is known when TCP was followed.
        let late = shared & is_tcp & (idle != 0);
        if !fit | late {
            return false;
        }
        let class = flow.class;
        let used = if refreshes { now } else { flow.last_used };
        mark::<OUT>(flow, used);
        parse::rewrite_short::<OUT>(bytes, is_tcp, flow);
        // Once in a tick the mapping must know; within it, it does already.
        let turned = flow.class != class;
        if shared && ((idle != 0) | turned) {
            self.refresh_shared(name, class);
        }
        if turned {
            self.note_class(name, class);
        }
        if NOTE {
            self.note_segment::<OUT>(name, bytes, key);
        }
        true
    }

    /// Notes a translated packet's TCP to be followed.
    #[inline(always)]
    fn note_segment<const OUT: bool>(&mut self, name: u32, bytes: &[u8], key: Key) {
        match self
            .pending_segments
            .note::<OUT>(name, bytes, key.protocol())
        {
            Now::Nothing => {}
            Now::CatchUp => self.catch_up_calls(),
            Now::Follow => self.follow_now::<OUT>(name, bytes),
        }
    }

    /// A packet that is not whole TCP or UDP, or not sound.
    #[cold]
    #[inline(never)]
    pub(super) fn long<const OUT: bool>(&mut self, bytes: &mut [u8]) -> Verdict {
        self.catch_up_calls();
        match parse::long::<OUT>(bytes) {
            Parse::Malformed => Verdict::Malformed,
            Parse::OtherIcmp => Verdict::Unsupported,
            Parse::LaterFragment => self.later_fragment::<OUT>(bytes),
            Parse::IcmpError { at } => self.icmp_error::<OUT>(bytes, at),
            Parse::Flow {
                parsed,
                first: true,
            } => self.first_fragment::<OUT>(bytes, &parsed),
            Parse::Flow { parsed, .. } => self.flow_packet::<OUT>(bytes, &parsed),
        }
    }

    /// A packet of no flow that lives and has nothing special about it.
    #[inline(always)]
    pub(super) fn miss<const OUT: bool>(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
        hint: Hint,
    ) -> Verdict {
        if !OUT
            && self.is_unasked(parsed.key)
            && self.table.first::<false>(hint.hash) == First::Nothing
        {
            return Verdict::NoMapping;
        }
        self.hinted::<OUT>(bytes, parsed, hint)
    }

    /// Whether a packet of TCP or UDP that comes in and has no flow gets
    /// nowhere: unasked ones are refused, and neither a redirect nor a shared
    /// mapping can be for it.
    #[inline(always)]
    pub(super) fn is_unasked(&self, key: Key) -> bool {
        let config = &self.config;
        (config.mode.deny_incoming & !config.passes_foreign)
            && self.mappings.len() == 0
            && self.exempt.is_empty()
            && !self.rules.may_hold(u16::from_be(key.destination_port()))
    }

    /// What a flow's flags are held against on the short way of a direction.
    #[inline(always)]
    fn plain_flags<const OUT: bool>(&self) -> u32 {
        if OUT {
            self.ordinary_flags
        } else {
            self.plain_flags_in
        }
    }

    /// Whether a packet of a direction lets its flow live on.
    #[inline(always)]
    pub(super) fn refreshes<const OUT: bool>(&self) -> bool {
        OUT || self.config.inbound_refresh
    }

    /// A packet of a flow that may have to be made, or has something
    /// special about it.
    pub(super) fn flow_packet<const OUT: bool>(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
    ) -> Verdict {
        let hash = self.table.hasher.hash(parsed.key);
        self.hinted::<OUT>(bytes, parsed, Hint::new(hash, 0))
    }

    #[inline(never)]
    fn hinted<const OUT: bool>(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
        hint: Hint,
    ) -> Verdict {
        if let Some(name) = self.find_alive::<OUT>(parsed, hint.hash) {
            return self.special::<OUT>(name, bytes, parsed, false);
        }
        if parsed.upper == Upper::Call {
            if let Some(verdict) = self.call::<OUT>(bytes) {
                return verdict;
            }
            // No PPTP call that a helper knows: GRE by its addresses.
            let plain = Parsed {
                key: parsed.key.without_ports(),
                upper: Upper::Plain,
                ..*parsed
            };
            return self.flow_packet::<OUT>(bytes, &plain);
        }
        if OUT && self.asks_us(parsed.key) {
            return self.answer(bytes);
        }
        if OUT
            && self.rules.has_proxies()
            && let Some(verdict) = self.proxied_out(bytes, parsed)
        {
            return verdict;
        }
        let made = if OUT {
            let syn = parse::syn(bytes, parsed);
            self.new_out(parsed, Hint { syn, ..hint })
        } else {
            self.new_in(parsed)
        };
        match made {
            Ok(name) => self.special::<OUT>(name, bytes, parsed, true),
            Err(verdict) => verdict,
        }
    }

    /// The flow of a packet; one that has expired is ended on the spot.
    #[inline]
    pub(super) fn find_alive<const OUT: bool>(
        &mut self,
        parsed: &Parsed,
        hash: u64,
    ) -> Option<u32> {
        self.living::<OUT>(parsed.key, hash)
    }

    /// The flow of a key of this hash; one that has expired is ended.
    #[inline]
    pub(super) fn living<const OUT: bool>(&mut self, key: Key, hash: u64) -> Option<u32> {
        let name = self.table.find::<OUT>(hash, key)?;
        let flow = self.table.get(name)?;
        if self.alive(flow) {
            return Some(name);
        }
        self.end(name, Why::Expired);
        None
    }

    /// Translates a packet of an active flow, whatever is special about it.
    pub(super) fn special<const OUT: bool>(
        &mut self,
        name: u32,
        bytes: &mut [u8],
        parsed: &Parsed,
        new: bool,
    ) -> Verdict {
        let Some(flow) = self.table.get(name) else {
            return Verdict::NoMapping;
        };
        if OUT && flow.has(flag::HAIRPIN) && self.config.hairpin == Hairpin::Engine {
            return self.turn_back(name, bytes, parsed, new);
        }
        self.one_way::<OUT>(name, bytes, parsed)
    }

    /// Translates a packet of an active flow in one direction.
    fn one_way<const OUT: bool>(
        &mut self,
        name: u32,
        bytes: &mut [u8],
        parsed: &Parsed,
    ) -> Verdict {
        let now = self.clock.now();
        let refreshes = self.refreshes::<OUT>();
        let Some(flow) = self.table.get_mut(name) else {
            return Verdict::NoMapping;
        };
        if flow.flags & (flag::HELPER | flag::PROXY) != 0 {
            return self.helped::<OUT>(name, bytes, parsed);
        }
        let class = flow.class;
        let before = flow.last_used;
        let used = if refreshes { now } else { before };
        touch::<OUT>(flow, used, bytes, parsed);
        if OUT && tcp::is_refused(flow) {
            // Who refuses a connection wants none (RFC 7857 §7.1).
            flow.last_used = before;
        }
        let turned = flow.class != class;
        if flow.has(flag::MAPPED) {
            self.refresh_shared(name, class);
        }
        if turned {
            self.note_class(name, class);
            self.may_give(name);
        }
        if let Some(flow) = self.table.get(name) {
            parse::rewrite::<OUT>(bytes, parsed, flow);
        }
        Verdict::Translated
    }

    /// Translates a packet to one of our own alias endpoints out and in
    /// again; one that gets nowhere is as it was.
    fn turn_back(&mut self, name: u32, bytes: &mut [u8], parsed: &Parsed, new: bool) -> Verdict {
        let helped = self.table.get(name);
        let helped = helped.is_some_and(|flow| flow.has(flag::HELPER));
        let kept = self.keep(bytes, if helped { bytes.len() } else { CHANGED_BYTES });
        let out = self.one_way::<true>(name, bytes, parsed);
        if out == Verdict::Translated && !self.is_ours::<false>(bytes) {
            // The other half is another engine's.
            self.kept = kept;
            return out;
        }
        let verdict = match (out, parse::long::<false>(bytes)) {
            (Verdict::Translated, Parse::Flow { parsed, .. }) => {
                match self.flow_packet::<false>(bytes, &parsed) {
                    Verdict::Translated => Verdict::Hairpinned,
                    verdict => verdict,
                }
            }
            (Verdict::Translated, _) => Verdict::Unsupported,
            (refused, _) => refused,
        };
        if verdict != Verdict::Hairpinned {
            restore(bytes, &kept);
            if new {
                self.end(name, Why::Removed);
            }
        }
        self.kept = kept;
        verdict
    }

    /// The first `len` bytes of a packet, in room that is used again and
    /// again: to be put back into `kept`.
    pub(super) fn keep(&mut self, bytes: &[u8], len: usize) -> Vec<u8> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.extend_from_slice(bytes.get(..len).unwrap_or(bytes));
        kept
    }

    /// Gives a packet that was translated outward its source back, and its
    /// destination, where a proxy stands in for that.
    pub(super) fn undo(&self, bytes: &mut [u8]) -> Verdict {
        let parsed = match parse::long::<true>(bytes) {
            Parse::Flow { parsed, .. } => parsed,
            Parse::Malformed => return Verdict::Malformed,
            Parse::LaterFragment => return Verdict::FragmentWaiting,
            Parse::IcmpError { .. } | Parse::OtherIcmp => return Verdict::Unsupported,
        };
        if parsed.upper == Upper::Call {
            return self.undo_call(bytes, &parsed);
        }
        let Some(flow) = self.left_by(parsed.key) else {
            return Verdict::NoMapping;
        };
        // The same rewriting with inside and alias in each other's place.
        parse::rewrite::<true>(bytes, &parsed, &flow.turned());
        if flow.has(flag::PROXY) {
            self.meant_again(&flow, bytes, &parsed);
        }
        Verdict::Translated
    }

    /// The active flow of a packet that was translated outward.
    pub(super) fn left_by(&self, key: Key) -> Option<Flow> {
        let key = key.turned();
        let name = self.table.find::<false>(self.table.hasher.hash(key), key)?;
        let flow = self.table.get(name)?;
        self.alive(flow).then_some(*flow)
    }
}

/// Notes that a packet came.
#[inline]
pub(super) fn touch<const OUT: bool>(flow: &mut Flow, now: u32, bytes: &[u8], parsed: &Parsed) {
    mark::<OUT>(flow, now);
    if parsed.upper == Upper::Tcp {
        follow::<OUT>(flow, bytes, parsed);
    }
}

/// Notes that a packet came, but for what is in it.
#[inline(always)]
pub(super) fn mark<const OUT: bool>(flow: &mut Flow, now: u32) {
    flow.last_used = now;
    if !flow.has(if OUT { flag::SEEN_OUT } else { flag::SEEN_IN }) {
        see::<OUT>(flow);
    }
}

/// Notes the first packet of a direction.
#[cold]
#[inline(never)]
fn see<const OUT: bool>(flow: &mut Flow) {
    flow.flags |= if OUT { flag::SEEN_OUT } else { flag::SEEN_IN };
    let answered = flow.has(flag::SEEN_OUT | flag::SEEN_IN);
    if answered && flow.class == State::UdpUnreplied as u8 {
        let [inside, remote, _] = flow.ports;
        let is_dns = (inside == DNS) | (remote == DNS);
        flow.class = if is_dns { State::Dns } else { State::Udp } as u8;
    }
}

/// Takes a TCP packet that [`parse::short`] took into account.
#[inline(always)]
pub(super) fn follow_short<const OUT: bool>(flow: &mut Flow, bytes: &[u8]) {
    tcp::track_short::<OUT>(flow, bytes);
}

/// Takes a TCP packet into account.
#[inline]
fn follow<const OUT: bool>(flow: &mut Flow, bytes: &[u8], parsed: &Parsed) {
    if let Some(seen) = segment(bytes, parsed) {
        tcp::track::<OUT>(flow, &seen);
    }
}

/// The segment in a TCP packet.
#[inline]
pub(super) fn segment(bytes: &[u8], parsed: &Parsed) -> Option<Seen> {
    let segment = bytes.get(usize::from(parsed.at)..usize::from(parsed.total_len))?;
    Seen::read(segment, segment.len())
}

/// Puts the first bytes of a packet back.
pub(super) fn restore(bytes: &mut [u8], kept: &[u8]) {
    if let Some(changed) = bytes.get_mut(..kept.len()) {
        changed.copy_from_slice(kept);
    }
}
