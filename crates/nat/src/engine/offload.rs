//! Offloaded flows: somebody else translates their further packets, as a
//! program in the kernel does, until they are recalled.
//!
//! For `dataplane`, which fills that program's table by what is handed out
//! here and empties it by what is recalled. The engine keeps the flow and
//! its ports: it is told when the flow was used, translates what reaches it
//! all the same, and gets back what ends the connection.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use packet::protocol;

use super::translate::segment;
use super::{address, word};
use crate::flow::{Ends, Flow, flag};
use crate::parse::{self, Parse, Upper};
use crate::tcp::{self, CHANGES};
use crate::{Direction, Nat, State};

/// The endpoints of an offloaded flow, ports in host order: a packet from
/// inside to remote goes out from alias, one from remote to alias comes in
/// to inside. Where inside and alias are the same, packets stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offloaded {
    /// Protocol number: TCP or UDP.
    pub protocol: u8,
    /// The host inside.
    pub inside: Ipv4Addr,
    /// Its port.
    pub inside_port: u16,
    /// The other end.
    pub remote: Ipv4Addr,
    /// The other end's port.
    pub remote_port: u16,
    /// The outside address that stands for the inside one.
    pub alias: Ipv4Addr,
    /// The outside port.
    pub alias_port: u16,
}

/// What is not offloaded any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recall {
    /// This flow.
    Flow(Offloaded),
    /// All that were handed out before.
    All,
}

/// How many flows are offloaded, and which are to be recalled: as many at
/// most as were offloaded at one time, for no flow is offloaded while recalls
/// wait.
#[derive(Debug, Default)]
pub(super) struct Offloads {
    flows: usize,
    recalls: VecDeque<Offloaded>,
    /// All are to be recalled.
    all: bool,
}

impl Offloads {
    /// All flows are forgotten. O(1).
    pub fn forget(&mut self) {
        self.all |= self.is_waiting() || self.flows > 0;
        self.recalls.clear();
        self.flows = 0;
    }

    pub fn memory_bytes(&self) -> usize {
        self.recalls.capacity() * size_of::<Offloaded>()
    }

    /// Whether recalls wait to be taken.
    fn is_waiting(&self) -> bool {
        self.all || !self.recalls.is_empty()
    }

    /// A flow is offloaded from now on. Its recall has room, so that its end
    /// allocates nothing.
    fn came(&mut self) {
        self.flows += 1;
        self.recalls.reserve(self.flows);
    }

    /// A flow is offloaded no more.
    fn went(&mut self) {
        self.flows = self.flows.saturating_sub(1);
    }

    fn next(&mut self) -> Option<Recall> {
        if std::mem::take(&mut self.all) {
            return Some(Recall::All);
        }
        self.recalls.pop_front().map(Recall::Flow)
    }
}

impl Nat {
    /// The flow of a packet that was just translated in a direction (`bytes`
    /// as they are now), if others may translate its further packets: it is
    /// offloaded from now on. `None` for everything else, and if it is
    /// offloaded already.
    ///
    /// That may be of TCP what is established, of UDP what was answered (DNS
    /// excepted), where no helper, proxy or hairpin has to do with it. The
    /// packet has to be whole, without IPv4 options, and neither SYN, FIN nor
    /// RST. A flow that is not changed (its inside is its alias) may be
    /// offloaded like others. Nothing is in reverse mode, where subscribers'
    /// packets are counted, or while recalls wait ([`Nat::next_recalled`]).
    ///
    /// Whoever translates it leaves to the engine: fragments, packets with
    /// IPv4 options, ICMP errors, and what [`Nat::take_back`] is for. O(1);
    /// allocates now and then, so that the flow's end need not.
    pub fn offload(&mut self, direction: Direction, bytes: &[u8]) -> Option<Offloaded> {
        if self.config.mode.reverse || self.is_counting() || self.offloads.is_waiting() {
            return None;
        }
        let parsed = parse::short(bytes)?;
        if parsed.upper == Upper::Tcp && segment(bytes, &parsed)?.flags & CHANGES != 0 {
            return None;
        }
        // The key of an answer to it, not translated yet.
        let key = parsed.key.turned();
        let name = match direction {
            Direction::Out => self.name_by(Direction::In, key),
            Direction::In => self.name_by(Direction::Out, key),
        }?;
        if self.table.get(name)?.has(flag::OFFLOADED) {
            return None;
        }
        self.catch_up_calls();
        if !self.table.get(name).is_some_and(|flow| self.may_go(flow)) {
            return None;
        }
        let flow = self.table.get_mut(name)?;
        flow.flags |= flag::OFFLOADED;
        self.offloads.came();
        Some(flow.ends().into())
    }

    /// Notes that the last packet of an offloaded flow that lets it live on
    /// (see [`crate::Config::inbound_refresh`]) came `idle_millis` ago. It has
    /// to be called well within the flow's timeout: the engine ends a flow
    /// that looks unused. One that does and is not swept yet lives on by it.
    /// False: there is no such offloaded flow, and whoever translates it has
    /// to stop. O(1); ends nothing.
    pub fn touch_offloaded(&mut self, flow: &Offloaded, idle_millis: u64, now_millis: u64) -> bool {
        self.begin(now_millis);
        self.catch_up_calls();
        let ends = flow.ends();
        let used = self.clock.ago(idle_millis);
        let name = self.name_by(Direction::Out, ends.out_key());
        let name = name.filter(|name| self.is_offloaded(*name));
        let Some((name, flow)) = name.and_then(|name| Some((name, self.table.get_mut(name)?)))
        else {
            return false;
        };
        if flow.ends() != ends {
            return false;
        }
        if used > flow.last_used {
            flow.last_used = used;
            if flow.has(flag::MAPPED) {
                let class = flow.class;
                self.refresh_shared(name, class);
            }
        }
        true
    }

    /// To be called before a packet of an offloaded flow is translated that
    /// ends or restarts its connection (SYN, FIN or RST; `bytes` as it came in
    /// its direction): the flow is no longer offloaded, without a recall, and
    /// whoever translated it has to stop. The segment is believed, since the
    /// engine has not seen the numbers of those before it. `None`, and nothing
    /// happens, for any other packet. O(1).
    pub fn take_back(&mut self, direction: Direction, bytes: &[u8]) -> Option<Offloaded> {
        // Either direction's: TCP's ports do not depend on it.
        let Parse::Flow { parsed, .. } = parse::long::<true>(bytes) else {
            return None;
        };
        if parsed.upper != Upper::Tcp {
            return None;
        }
        let seen = segment(bytes, &parsed).filter(|seen| seen.flags & CHANGES != 0)?;
        let name = self.name_by(direction, parsed.key)?;
        if !self.is_offloaded(name) {
            return None;
        }
        self.catch_up_calls();
        let flow = self.table.get_mut(name)?;
        flow.flags &= !flag::OFFLOADED;
        match direction {
            Direction::Out => tcp::begin_anew::<true>(flow, &seen),
            Direction::In => tcp::begin_anew::<false>(flow, &seen),
        }
        let ends = flow.ends().into();
        self.offloads.went();
        Some(ends)
    }

    /// The next flow that ended while it was offloaded, or [`Recall::All`]
    /// when all flows were forgotten at once: whoever translates it has to
    /// stop. To be drained after every call that may end flows (translation,
    /// maintenance, removal, a change of settings), before anything is sent
    /// that it translated, and before another flow is offloaded: a port may
    /// have been given out again. O(1).
    pub fn next_recalled(&mut self) -> Option<Recall> {
        self.offloads.next()
    }

    /// A flow ended that has the mark. One of another epoch was recalled with
    /// all others.
    #[cold]
    pub(super) fn recall(&mut self, flow: &Flow) {
        if flow.epoch() == self.epoch {
            self.offloads.went();
            self.offloads.recalls.push_back(flow.ends().into());
        }
    }

    /// No flow is offloaded any more. O(flows), where any is.
    pub(super) fn take_all_back(&mut self) {
        if self.offloads.flows > 0 {
            for name in 0..self.table.places() as u32 {
                if let Some(flow) = self.table.get_mut(name) {
                    flow.flags &= !flag::OFFLOADED;
                }
            }
            self.offloads.forget();
        }
    }

    /// Whether a flow may be offloaded.
    fn may_go(&self, flow: &Flow) -> bool {
        let [_, remote, _] = flow.addresses;
        let is_open = match flow.state() {
            // Where its numbers began anew it is settled again.
            State::TcpEstablished => flow.has(flag::ACKED_OUT | flag::ACKED_IN),
            State::Udp => flow.protocol == protocol::UDP,
            _ => false,
        };
        let is_ordinary = flow.is_ordinary(self.ordinary_flags) && self.alive(flow);
        is_open && is_ordinary && !self.is_own(remote)
    }

    /// Whether a place holds an offloaded flow that was not forgotten.
    fn is_offloaded(&self, name: u32) -> bool {
        let flow = self.table.get(name);
        flow.is_some_and(|flow| flow.has(flag::OFFLOADED) && flow.epoch() == self.epoch)
    }
}

impl From<Ends> for Offloaded {
    fn from(ends: Ends) -> Self {
        Self {
            protocol: ends.protocol,
            inside: address(ends.inside),
            inside_port: u16::from_be(ends.inside_port),
            remote: address(ends.remote),
            remote_port: u16::from_be(ends.remote_port),
            alias: address(ends.alias),
            alias_port: u16::from_be(ends.alias_port),
        }
    }
}

impl Offloaded {
    pub(super) fn ends(&self) -> Ends {
        Ends {
            inside: word(self.inside),
            inside_port: self.inside_port.to_be(),
            remote: word(self.remote),
            remote_port: self.remote_port.to_be(),
            alias: word(self.alias),
            alias_port: self.alias_port.to_be(),
            protocol: self.protocol,
        }
    }
}
