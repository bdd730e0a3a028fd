//! New flows where nothing special is set up, which is what nearly all are:
//! one alias port to be found free, one flow to be entered.
//!
//! What it leaves undone (no free port at the first try, a helper, a full
//! table) it leaves untouched to the ways of `create`, which can do all.

use super::Nat;
use super::translate::follow_short;
use crate::flow::{Ends, Flow, flag};
use crate::parse::{self, Parsed, Upper};
use crate::table::Hashes;
use crate::{Dependence, State, pcp};

impl Nat {
    /// Whether a new flow of TCP or UDP needs nothing but a port of its own.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        let mode = &self.config.mode;
        let own = Dependence::AddressAndPort;
        let private = mode.unregistered_only | mode.carrier_grade;
        let named = self.shard.as_ref().is_some_and(|part| part.has_named);
        let counts = self.tracked.is_some() | !self.exempt.is_empty();
        !(private | named | counts | mode.proxy_only | self.events.wanted())
            & (self.config.tcp.mapping == own)
            & (self.config.udp.mapping == own)
            & self.rules.is_empty()
            & !self.rules.has_proxies()
            & (self.mappings.len() == 0)
    }

    /// Makes the flow of an outgoing packet that [`parse::short`] took, with
    /// the alias port `port` (memory order), and translates the packet.
    /// Whether it did; else nothing was changed. The caller has seen that
    /// the packet has no flow, expired ones included, and sweeps for the flow.
    #[inline(never)]
    pub(super) fn quick_out(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
        out: u64,
        port: u16,
    ) -> bool {
        let key = parsed.key;
        let Some(alias) = self.own_for(key.source()) else {
            return false;
        };
        let ends = Ends {
            inside: key.source(),
            inside_port: key.source_port(),
            remote: key.destination(),
            remote_port: key.destination_port(),
            alias,
            alias_port: port,
            protocol: key.protocol(),
        };
        let ports = (
            u16::from_be(ends.inside_port),
            u16::from_be(ends.remote_port),
        );
        let helpers = self.config.helpers;
        let helped = helpers.kind_of(ends.protocol, ports.0, ports.1).is_some();
        let asks = ports.1 == pcp::PORT;
        if (port == 0) | helped | asks | self.table.is_full() || self.is_own(ends.remote) {
            return false;
        }
        self.work.port();
        let in_key = ends.in_key();
        let incoming = self.table.hasher.hash(in_key);
        if self.table.find::<false>(incoming, in_key).is_some() {
            return false;
        }
        let group = self.group(alias, ends.remote, ends.remote_port, ends.protocol);
        if !self.ports.took_of_many(group) {
            return false;
        }
        let is_tcp = parsed.upper == Upper::Tcp;
        let class = State::first(ends.protocol);
        let mut flow = Flow::new(&ends, class, self.clock.now(), self.epoch);
        flow.flags |= flag::SEEN_OUT;
        // Written where it is to stay, field by field: a copy would wait for
        // the fields to leave the processor.
        let hashes = Hashes { out, incoming };
        let Some(name) = self.table.insert(flow, hashes, &mut self.work) else {
            self.ports.gave(group, u16::from_be(port));
            return false;
        };
        if is_tcp && let Some(flow) = self.table.get_mut(name) {
            follow_short::<true>(flow, bytes);
        }
        parse::rewrite_short::<true>(bytes, is_tcp, &flow);
        self.statistics.flows_made += 1;
        self.statistics.mapping_came(ends.protocol);
        true
    }
}
