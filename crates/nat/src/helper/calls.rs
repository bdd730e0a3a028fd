//! PPTP's calls: which identifier stands outside for which inside, learnt
//! from the control connection, used for enhanced GRE (RFC 2637 §4.1),
//! whose packets carry the *receiver's* identifier and no ports.

use std::io;
use std::net::Ipv4Addr;

use hashbrown::HashMap;
use packet::{Gre, Ipv4, protocol};

use super::bounded::Bounded;
use super::segment::{Segment, patch};
use super::{ControlKey, Refusal, pptp};
use crate::saved::{Chunks, Fields, Record, tag};
use crate::shards::PortSlice;

/// A call unused for so long may make room, and is used no more.
const IDLE_MILLIS: u64 = 600_000;
/// A call that was cleared lives on so long, for what is under way.
const ENDING_MILLIS: u64 = 10_000;
/// Identifiers tried for one that is free.
const TRIES: u16 = 512;

/// A call by its inside end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Inside {
    inside: Ipv4Addr,
    remote: Ipv4Addr,
    /// The inside host's own identifier.
    own: u16,
}

/// An identifier at an address, as one remote sees it.
type CallEnd = (Ipv4Addr, Ipv4Addr, u16);

#[derive(Debug, Clone, Copy)]
struct Call {
    alias: Ipv4Addr,
    alias_id: u16,
    /// The remote's identifier, once known.
    peer: Option<u16>,
    until_millis: u64,
    ending: bool,
}

/// All calls.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Bounded<Inside, Call>,
    /// Alias address, remote and alias identifier.
    by_alias: HashMap<CallEnd, Inside>,
    /// Inside address, remote and the remote's identifier.
    by_peer: HashMap<CallEnd, Inside>,
    /// Alias address, remote and the remote's identifier: how a packet looks
    /// that has left, and that an error brings back.
    by_left: HashMap<CallEnd, Inside>,
    /// Identifiers that it may give; `None`: all.
    slice: Option<PortSlice>,
}

impl Call {
    fn used(&mut self, now_millis: u64) {
        if !self.ending {
            self.until_millis = now_millis + IDLE_MILLIS;
        }
    }
}

impl Calls {
    /// None yet, so many at most.
    pub fn new(limit: usize) -> Self {
        Self {
            calls: Bounded::new(limit),
            ..Self::default()
        }
    }

    /// Gives only identifiers of a part from now on.
    pub(crate) fn set_port_slice(&mut self, slice: PortSlice) {
        self.slice = Some(slice);
    }

    /// Calls that are known.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A segment of the control connection on its way out: the inside's
    /// identifiers become alias identifiers. O(bytes).
    pub(super) fn announce(
        &mut self,
        key: &ControlKey,
        alias: Ipv4Addr,
        bytes: &mut [u8],
        segment: &Segment,
        now_millis: u64,
    ) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(message) = pptp::read(segment.payload(bytes), at) {
            at += message.len;
            let read = |place| pptp::number(segment.payload(bytes), place);
            let (own, peer) = (message.own.and_then(read), message.peer.and_then(read));
            let (Some(place), Some(own)) = (message.own, own) else {
                continue;
            };
            let inside = Inside {
                inside: key.inside,
                remote: key.remote,
                own,
            };
            let alias_id = match self.calls.get(&inside) {
                Some(call) => call.alias_id,
                None if message.ends => continue,
                None => self
                    .open(inside, alias, now_millis)
                    .ok_or(Refusal::NoPort)?,
            };
            if let Some(peer) = peer {
                self.meet(inside, peer);
            }
            self.note(&inside, message.ends, now_millis);
            patch(bytes, segment, |payload| {
                pptp::put(payload, place, alias_id)
            });
        }
        Ok(())
    }

    /// A segment of the control connection on its way in: alias identifiers
    /// become the inside's again. O(bytes).
    pub(super) fn answer(
        &mut self,
        key: &ControlKey,
        alias: Ipv4Addr,
        bytes: &mut [u8],
        segment: &Segment,
        now_millis: u64,
    ) {
        let mut at = 0;
        while let Some(message) = pptp::read(segment.payload(bytes), at) {
            at += message.len;
            let read = |place| pptp::number(segment.payload(bytes), place);
            let (own, peer) = (message.own.and_then(read), message.peer.and_then(read));
            let (Some(place), Some(peer)) = (message.peer, peer) else {
                continue;
            };
            let Some(inside) = self.by_alias.get(&(alias, key.remote, peer)).copied() else {
                continue;
            };
            // What the remote calls its own is what we send to.
            if let Some(own) = own {
                self.meet(inside, own);
            }
            self.note(&inside, message.ends, now_millis);
            patch(bytes, segment, |payload| {
                pptp::put(payload, place, inside.own)
            });
        }
    }

    /// Room for all, as the calls themselves have it: they never grow.
    fn reserve(&mut self) {
        if self.by_alias.capacity() == 0 {
            for map in [&mut self.by_alias, &mut self.by_peer, &mut self.by_left] {
                map.reserve(self.calls.limit());
            }
        }
    }

    fn open(&mut self, inside: Inside, alias: Ipv4Addr, now_millis: u64) -> Option<u16> {
        if self.calls.is_full() {
            let gone = self.calls.evict(|call| call.until_millis <= now_millis)?;
            self.forget(&gone.0, &gone.1);
        }
        self.reserve();
        let free = |id: &u16| *id != 0 && !self.by_alias.contains_key(&(alias, inside.remote, *id));
        let candidates = (0..TRIES).map(|step| inside.own.wrapping_add(step.wrapping_mul(0x9e37)));
        let slice = self.slice;
        let candidates = candidates.map(|id| slice.map_or(id, |slice| slice.like(id)));
        let alias_id = candidates.into_iter().find(free)?;
        let call = Call {
            alias,
            alias_id,
            peer: None,
            until_millis: now_millis + IDLE_MILLIS,
            ending: false,
        };
        self.by_alias
            .insert((alias, inside.remote, alias_id), inside);
        self.calls.insert(inside, call, |_| false);
        Some(alias_id)
    }

    /// Writes all calls; times as what is left of them.
    pub fn save(&self, now_millis: u64, out: &mut Chunks<'_>) -> io::Result<()> {
        let mut record = Record::default();
        for (inside, call) in self.calls.all() {
            record = record.again().with(inside.inside.octets());
            record = record.with(inside.remote.octets()).u16(inside.own);
            record = record.with(call.alias.octets()).u16(call.alias_id);
            record = record.u8(u8::from(call.peer.is_some()));
            record = record.u16(call.peer.unwrap_or(0));
            record = record.u8(u8::from(call.ending));
            record = record.u64(call.until_millis.saturating_sub(now_millis));
            out.record(tag::CALL, record.bytes())?;
        }
        Ok(())
    }

    /// What [`Calls::save`] wrote, so long ago.
    pub fn restore(&mut self, fields: &mut Fields<'_>, (now_millis, gone): (u64, u64)) {
        let inside = Inside {
            inside: Ipv4Addr::from(fields.bytes::<4>()),
            remote: Ipv4Addr::from(fields.bytes::<4>()),
            own: fields.u16(),
        };
        let (alias, alias_id) = (Ipv4Addr::from(fields.bytes::<4>()), fields.u16());
        let (is_met, peer, ending) = (fields.u8() != 0, fields.u16(), fields.u8() != 0);
        let left = fields.u64().saturating_sub(gone);
        let place = (alias, inside.remote, alias_id);
        let is_known = self.by_alias.contains_key(&place) || self.calls.get(&inside).is_some();
        if is_known || self.calls.is_full() {
            return;
        }
        let call = Call {
            alias,
            alias_id,
            peer: None,
            until_millis: now_millis.saturating_add(left.min(IDLE_MILLIS)),
            ending,
        };
        self.reserve();
        self.by_alias.insert(place, inside);
        self.calls.insert(inside, call, |_| false);
        if is_met {
            self.meet(inside, peer);
        }
    }

    fn forget(&mut self, inside: &Inside, call: &Call) {
        self.by_alias
            .remove(&(call.alias, inside.remote, call.alias_id));
        if let Some(peer) = call.peer {
            self.part(inside, call.alias, peer);
        }
    }

    /// Forgets the remote's identifier of a call, unless it is another's by
    /// now.
    fn part(&mut self, inside: &Inside, alias: Ipv4Addr, peer: u16) {
        for (map, near) in [
            (&mut self.by_peer, inside.inside),
            (&mut self.by_left, alias),
        ] {
            let place = (near, inside.remote, peer);
            if map.get(&place) == Some(inside) {
                map.remove(&place);
            }
        }
    }

    /// Learns the remote's identifier of a call.
    fn meet(&mut self, inside: Inside, peer: u16) {
        let Some(call) = self.calls.get_mut(&inside) else {
            return;
        };
        let alias = call.alias;
        let former = call.peer.replace(peer).filter(|former| *former != peer);
        if let Some(former) = former {
            self.part(&inside, alias, former);
        }
        self.by_peer
            .insert((inside.inside, inside.remote, peer), inside);
        self.by_left.insert((alias, inside.remote, peer), inside);
    }

    fn note(&mut self, inside: &Inside, ends: bool, now_millis: u64) {
        if let Some(call) = self.calls.get_mut(inside) {
            if ends && !call.ending {
                call.ending = true;
                call.until_millis = now_millis + ENDING_MILLIS;
            }
            call.used(now_millis);
        }
    }

    fn use_call(&mut self, inside: &Inside, now_millis: u64) -> Option<Call> {
        let call = self.calls.get_mut(inside)?;
        if call.until_millis <= now_millis {
            let (inside, call) = (*inside, *call);
            self.calls.remove(&inside);
            self.forget(&inside, &call);
            return None;
        }
        call.used(now_millis);
        Some(*call)
    }

    /// An enhanced GRE packet on its way out: whether it belongs to a call,
    /// and leaves as its alias. O(1).
    pub fn translate_out(&mut self, bytes: &mut [u8], now_millis: u64) -> bool {
        let Some((source, destination, id)) = call_of(bytes) else {
            return false;
        };
        let Some(inside) = self.by_peer.get(&(source, destination, id)).copied() else {
            return false;
        };
        let Some(call) = self.use_call(&inside, now_millis) else {
            return false;
        };
        if let Ok(mut ip) = Ipv4::new(bytes) {
            ip.set_source(call.alias);
        }
        true
    }

    /// An enhanced GRE packet on its way in: whether it belongs to a call,
    /// and goes to its inside with its identifier. O(1).
    pub fn translate_in(&mut self, bytes: &mut [u8], now_millis: u64) -> bool {
        let Some((source, destination, id)) = call_of(bytes) else {
            return false;
        };
        let Some(inside) = self.by_alias.get(&(destination, source, id)).copied() else {
            return false;
        };
        if self.use_call(&inside, now_millis).is_none() {
            return false;
        }
        if let Ok(mut ip) = Ipv4::new(bytes) {
            ip.set_destination(inside.inside);
            if let Ok(mut gre) = Gre::new(ip.payload_mut()) {
                gre.set_call_id(inside.own);
            }
        }
        true
    }
}

impl Calls {
    /// Whether a call is known of an enhanced GRE packet that goes out
    /// (`out`) or comes in. O(1); is no use of the call.
    pub fn knows(&self, bytes: &[u8], out: bool, now_millis: u64) -> bool {
        let inside = call_of(bytes).and_then(|(source, destination, id)| match out {
            true => self.by_peer.get(&(source, destination, id)),
            false => self.by_alias.get(&(destination, source, id)),
        });
        inside.is_some_and(|inside| self.living(inside, now_millis).is_some())
    }

    /// The inside host of a GRE packet as it left, from an alias address to
    /// a remote with the remote's identifier: for errors about it. O(1); is
    /// no use of the call.
    pub fn sender(&self, left: CallEnd, now_millis: u64) -> Option<Ipv4Addr> {
        let inside = self.by_left.get(&left)?;
        self.living(inside, now_millis)?;
        Some(inside.inside)
    }

    /// Alias address and identifier of a GRE packet as an inside host got
    /// it, from a remote with the host's own identifier: how it had come.
    /// O(1); is no use of the call.
    pub fn as_it_came(
        &self,
        (inside, remote, own): CallEnd,
        now_millis: u64,
    ) -> Option<(Ipv4Addr, u16)> {
        let inside = Inside {
            inside,
            remote,
            own,
        };
        let call = self.living(&inside, now_millis)?;
        Some((call.alias, call.alias_id))
    }

    fn living(&self, inside: &Inside, now_millis: u64) -> Option<&Call> {
        let call = self.calls.get(inside)?;
        (call.until_millis > now_millis).then_some(call)
    }
}

/// Source, destination and call of an enhanced GRE packet that is no later
/// fragment.
fn call_of(bytes: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, u16)> {
    let ip = Ipv4::new(bytes).ok()?;
    if ip.protocol() != protocol::GRE || ip.fragment_offset_bytes() != 0 {
        return None;
    }
    let id = Gre::new(ip.payload()).ok()?.call_id()?;
    Some((ip.source(), ip.destination(), id))
}
