//! What the operator has laid down: redirects of ports, addresses and
//! protocols, pools of servers behind one address, one-shot redirects and
//! proxy rules. The engine asks here when a packet has no flow; C callers
//! and `--rules FILE` fill it.
//!
//! A redirect is found by hashing, one probe for each shape that is in use
//! (which remote parts are given, how wide the port range is), so that a
//! hundred thousand cost what one costs. Precedence is libalias's: a given
//! alias address before the current one; then remote address and port, the
//! address alone, the port alone, neither; among equals the latest. A port
//! range is to the rest of the rules what a redirect of each of its ports
//! would be.

pub mod aliases;
mod awaited;
mod held;
mod index;
mod leased;
mod pcp;
mod proxy;
mod settings;
mod subscribers;
mod text;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use awaited::Awaited;
use held::HeldPorts;
use index::{Index, Question, Shape};

use crate::pcp::options::Filter;
use crate::ports::Released;

pub use proxy::{Encoding, Network, Proxy, ProxyError, ProxyWord, parse as parse_proxy};
pub use text::{BlocksWord, Limit, Script, Statement, Switch, TextError, TextErrorKind, parse};

/// Rules that one instance holds at most unless told otherwise: redirects
/// and expectations together.
pub const USUAL_LIMIT: usize = 1 << 20;
/// Servers of one pool at most.
pub const MAX_SERVERS: usize = 1 << 12;
/// Proxy rules at most; each packet of a new flow is held against those of
/// its port and those of any port.
pub const MAX_PROXIES: usize = 1_024;
/// How many one-shot redirects [`Rules::expire`] looks at in one call.
const EXPIRED_A_CALL: usize = 8;

/// Which redirect, for as long as it is there: a stale handle is refused,
/// never taken for the rule that has its place now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl Handle {
    /// No rule's.
    pub(crate) const NOBODYS: Self = Self(0);

    fn new(place: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(place))
    }

    fn place(self) -> u32 {
        self.0 as u32
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// As a number, never 0; for interfaces that know no types.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// What [`Self::to_bits`] gave. Any number may be said: one that is no
    /// rule's handle is refused where it is used.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// A redirect: what arrives at an alias address (and port) goes inside, and
/// what leaves from there leaves as that alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirect {
    /// The IP protocol; `None`: an address redirect, of all protocols.
    pub protocol: Option<u8>,
    /// The inside host; `None`: the host that has the current alias address.
    pub inside: Option<Ipv4Addr>,
    /// First inside port; 0 where there are no ports.
    pub inside_port: u16,
    /// The alias address; `None`: whatever it is at the time.
    pub alias: Option<Ipv4Addr>,
    /// First alias port; 0 where there are no ports.
    pub alias_port: u16,
    /// How many ports from the first on; 0: a redirect without ports.
    pub ports: u16,
    /// From (and to) this remote address only; `None`: any.
    pub remote: Option<Ipv4Addr>,
    /// From (and to) this remote port only; `None`: any.
    pub remote_port: Option<u16>,
}

impl Redirect {
    /// Of one port of the current alias address, from anywhere.
    pub fn port(protocol: u8, inside: Ipv4Addr, inside_port: u16, alias_port: u16) -> Self {
        Self {
            protocol: Some(protocol),
            inside: Some(inside),
            inside_port,
            alias: None,
            alias_port,
            ports: 1,
            remote: None,
            remote_port: None,
        }
    }

    /// Of a whole address, all protocols: static one-to-one translation.
    pub fn address(inside: Ipv4Addr, alias: Ipv4Addr) -> Self {
        Self {
            protocol: None,
            inside_port: 0,
            alias: Some(alias),
            alias_port: 0,
            ports: 0,
            ..Self::port(0, inside, 0, 0)
        }
    }

    /// Of a protocol without ports (GRE, ESP, …).
    pub fn protocol(protocol: u8, inside: Ipv4Addr) -> Self {
        Self {
            ports: 0,
            ..Self::port(protocol, inside, 0, 0)
        }
    }

    /// The same at a given alias address.
    #[must_use]
    pub fn at(self, alias: Ipv4Addr) -> Self {
        Self {
            alias: Some(alias),
            ..self
        }
    }

    /// The same for `ports` ports in a row.
    #[must_use]
    pub fn ports(self, ports: u16) -> Self {
        Self { ports, ..self }
    }

    /// The same from a remote only.
    #[must_use]
    pub fn from(self, remote: Option<Ipv4Addr>, remote_port: Option<u16>) -> Self {
        Self {
            remote,
            remote_port,
            ..self
        }
    }

    /// Whether every part of the remote is given, so that it can be used by
    /// one flow only.
    pub fn is_exact(&self) -> bool {
        let port = self.ports == 1 && self.remote_port.is_some();
        self.remote.is_some() && (port || self.ports == 0) && self.protocol.is_some()
    }

    fn check(&self) -> Result<(), RuleError> {
        if self.ports == 0 {
            let ports = self.inside_port != 0 || self.alias_port != 0 || self.remote_port.is_some();
            let remote = self.protocol.is_none() && self.remote.is_some();
            return match (ports, remote) {
                (true, _) => Err(RuleError::StrayPort),
                (_, true) => Err(RuleError::StrayRemote),
                _ => Ok(()),
            };
        }
        if self.protocol.is_none() {
            return Err(RuleError::StrayPort);
        }
        let last = self.ports - 1;
        if self.inside_port.checked_add(last).is_none()
            || self.alias_port.checked_add(last).is_none()
        {
            return Err(RuleError::PortsPastEnd);
        }
        Ok(())
    }

    fn inbound_shape(&self) -> Shape {
        Shape::new(
            self.protocol,
            self.alias,
            self.alias_port,
            self.remote,
            self.remote_port,
        )
    }

    fn outbound_shape(&self) -> Shape {
        Shape::new(
            self.protocol,
            self.inside,
            self.inside_port,
            self.remote,
            self.remote_port,
        )
    }
}

/// Why a rule was not taken, or not changed. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The limit of rules is reached.
    #[error("the table of rules is full ({limit}); delete some, or raise the limit")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// A range of ports reaches past 65535.
    #[error("the range of ports reaches past 65535")]
    PortsPastEnd,
    /// A port where there can be none.
    #[error("a redirect of an address or of a protocol has no ports")]
    StrayPort,
    /// A remote where there can be none.
    #[error("a redirect of an address is for every remote")]
    StrayRemote,
    /// The handle is of a rule that is gone, or of none.
    #[error("there is no such rule (any more)")]
    Stale,
    /// Only a redirect with a given remote address and port can be one-shot.
    #[error("a redirect without a given remote address and port cannot be one-shot")]
    NotExact,
    /// The pool has as many servers as it can have.
    #[error("the pool is full ({MAX_SERVERS} servers)")]
    PoolFull,
}

/// A server of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port; 0 in a pool without ports.
    pub port: u16,
}

/// Where a packet without a flow goes by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// By which rule.
    pub handle: Handle,
    /// The address; `None`: the current alias address. Inside for a packet
    /// that comes in, the alias for one that goes out.
    pub address: Option<Ipv4Addr>,
    /// The port; 0 where there are none.
    pub port: u16,
    /// The rule is gone with its first use.
    pub one_shot: bool,
}

/// What a packet is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The IP protocol.
    pub protocol: u8,
    /// Our side: the alias for a packet that comes in, the inside host for
    /// one that goes out.
    pub own: Ipv4Addr,
    /// The port there; 0 where there are none.
    pub own_port: u16,
    /// The other side.
    pub remote: Ipv4Addr,
    /// The port there; 0 where there are none.
    pub remote_port: u16,
}

#[derive(Debug, Clone)]
struct Rule {
    redirect: Redirect,
    /// Empty: the redirect's own inside.
    servers: Vec<Server>,
    /// Whose turn it is, counted from the latest.
    turn: u32,
    /// A one-shot redirect's end; milliseconds of the caller's clock.
    until_millis: Option<u64>,
    /// Goes when the alias address changes.
    dynamic: bool,
    /// Who may send in; none: everybody.
    filters: Vec<Filter>,
    /// The subscriber of whose ports it is one as long as it waits.
    awaited_by: Option<u32>,
    sequence: u64,
}

#[derive(Debug, Clone)]
struct Slot {
    generation: u32,
    rule: Option<Rule>,
}

/// All rules of an instance.
#[derive(Debug, Clone)]
pub struct Rules {
    slots: Vec<Slot>,
    free: Vec<u32>,
    inbound: Index,
    /// For which alias ports `inbound` may have an answer.
    held: HeldPorts,
    outbound: Index,
    /// Dynamic ones in the order they were made so.
    dynamic: VecDeque<Handle>,
    awaited: Awaited,
    proxies: proxy::Proxies,
    live: usize,
    limit: usize,
    next_sequence: u64,
    released: Released,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(USUAL_LIMIT)
    }
}

impl Rules {
    /// No rules yet, `limit` at most. Allocates nothing.
    pub fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            inbound: Index::default(),
            held: HeldPorts::default(),
            outbound: Index::default(),
            dynamic: VecDeque::new(),
            awaited: Awaited::default(),
            proxies: proxy::Proxies::default(),
            live: 0,
            limit: limit.min(u32::MAX as usize),
            next_sequence: 0,
            released: Released::default(),
        }
    }

    /// Redirects in force, proxy rules apart.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no redirect, proxy rules apart.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Bytes held, by capacity.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.free.capacity() * size_of::<u32>()
            + self.inbound.memory_bytes()
            + self.held.memory_bytes()
            + self.outbound.memory_bytes()
    }

    /// Adds a redirect. O(1) for one port; a range is split into at most 30
    /// aligned blocks, each O(1).
    pub fn insert(&mut self, redirect: Redirect) -> Result<Handle, RuleError> {
        self.insert_rule(redirect, None)
    }

    /// Adds a redirect that its first use takes away, and that ends at
    /// `until_millis` unused: what a helper expects. The remote may be given
    /// in part only. O(1).
    pub fn expect(&mut self, redirect: Redirect, until_millis: u64) -> Result<Handle, RuleError> {
        let handle = self.insert_rule(redirect, Some(until_millis))?;
        self.dynamic.push_back(handle);
        Ok(handle)
    }

    fn insert_rule(
        &mut self,
        redirect: Redirect,
        until_millis: Option<u64>,
    ) -> Result<Handle, RuleError> {
        redirect.check()?;
        if self.live >= self.limit {
            return Err(RuleError::Full { limit: self.limit });
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let rule = Rule {
            redirect,
            servers: Vec::new(),
            turn: 0,
            until_millis,
            dynamic: until_millis.is_some(),
            filters: Vec::new(),
            awaited_by: None,
            sequence,
        };
        let handle = self.settle(rule);
        self.live += 1;
        let place = handle.place();
        let ports = redirect.ports;
        self.inbound
            .insert(redirect.inbound_shape(), ports, sequence, place);
        self.held.add(redirect.alias_port, ports);
        self.outbound
            .insert(redirect.outbound_shape(), ports, sequence, place);
        Ok(handle)
    }

    fn settle(&mut self, rule: Rule) -> Handle {
        if let Some(place) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(place as usize)
        {
            slot.rule = Some(rule);
            return Handle::new(place, slot.generation);
        }
        let place = self.slots.len() as u32;
        self.slots.push(Slot {
            generation: 1,
            rule: Some(rule),
        });
        Handle::new(place, 1)
    }

    fn rule(&self, handle: Handle) -> Option<&Rule> {
        let slot = self.slots.get(handle.place() as usize)?;
        (slot.generation == handle.generation())
            .then_some(slot.rule.as_ref())
            .flatten()
    }

    fn rule_mut(&mut self, handle: Handle) -> Result<&mut Rule, RuleError> {
        let slot = self.slots.get_mut(handle.place() as usize);
        slot.filter(|slot| slot.generation == handle.generation())
            .and_then(|slot| slot.rule.as_mut())
            .ok_or(RuleError::Stale)
    }

    /// The redirect of a handle. O(1).
    pub fn get(&self, handle: Handle) -> Option<&Redirect> {
        self.rule(handle).map(|rule| &rule.redirect)
    }

    /// The servers of a redirect's pool; none: it has no pool. O(1).
    pub fn servers(&self, handle: Handle) -> &[Server] {
        self.rule(handle).map_or(&[], |rule| &rule.servers)
    }

    /// Alias ports that one-shot redirects gave back.
    pub(crate) fn released(&self) -> &Released {
        &self.released
    }

    /// Takes a redirect away and says what it was. Flows that it made stay.
    /// A stale handle is refused. O(1), beside rules of the very same shape.
    pub fn remove(&mut self, handle: Handle) -> Result<Redirect, RuleError> {
        self.rule_mut(handle)?;
        let slot = self.slots.get_mut(handle.place() as usize);
        let slot = slot.ok_or(RuleError::Stale)?;
        let rule = slot.rule.take().ok_or(RuleError::Stale)?;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.free.push(handle.place());
        self.live -= 1;
        self.awaits_no_more(rule.awaited_by, &rule.redirect);
        let Redirect { ports, .. } = rule.redirect;
        if rule.until_millis.is_some() {
            self.released.note(rule.redirect.alias_port, ports);
        }
        self.inbound
            .remove(rule.redirect.inbound_shape(), ports, rule.sequence);
        self.held.remove(rule.redirect.alias_port, ports);
        if rule.servers.is_empty() {
            self.outbound
                .remove(rule.redirect.outbound_shape(), ports, rule.sequence);
        }
        if self.dynamic.len() > 2 * self.live + EXPIRED_A_CALL {
            let mut dynamic = std::mem::take(&mut self.dynamic);
            dynamic.retain(|handle| self.rule(*handle).is_some());
            self.dynamic = dynamic;
        }
        Ok(rule.redirect)
    }

    /// Adds a server to a redirect, which from then on sends each new flow
    /// to the next of its servers (RFC 2391), the latest of them first as in
    /// libalias, and no longer to its own inside. O(1).
    pub fn add_server(&mut self, handle: Handle, server: Server) -> Result<(), RuleError> {
        let rule = self.rule_mut(handle)?;
        if rule.servers.len() >= MAX_SERVERS {
            return Err(RuleError::PoolFull);
        }
        rule.servers.push(server);
        if rule.servers.len() == 1 {
            let (redirect, sequence) = (rule.redirect, rule.sequence);
            self.outbound
                .remove(redirect.outbound_shape(), redirect.ports, sequence);
        }
        Ok(())
    }

    /// Makes a redirect one-shot: used once, or ended at `until_millis`, or
    /// by [`Self::drop_dynamic`]. One with an open remote is refused.
    pub fn make_dynamic(&mut self, handle: Handle, until_millis: u64) -> Result<(), RuleError> {
        let rule = self.rule_mut(handle)?;
        if !rule.redirect.is_exact() {
            return Err(RuleError::NotExact);
        }
        rule.until_millis = Some(until_millis);
        if !rule.dynamic {
            rule.dynamic = true;
            self.dynamic.push_back(handle);
        }
        Ok(())
    }

    /// Takes all one-shot redirects away: the alias address has changed.
    /// O(one-shot redirects).
    pub fn drop_dynamic(&mut self) {
        for handle in std::mem::take(&mut self.dynamic) {
            // One that was used is gone already.
            let _ = self.remove(handle);
        }
    }

    /// Ends one-shot redirects whose time has come; looks at a few of the
    /// oldest. For `maintain` and once a batch.
    pub fn expire(&mut self, now_millis: u64) {
        for _ in 0..EXPIRED_A_CALL.min(self.dynamic.len()) {
            let Some(handle) = self.dynamic.pop_front() else {
                return;
            };
            let Some(until) = self.rule(handle).and_then(|rule| rule.until_millis) else {
                continue;
            };
            if until > now_millis {
                self.dynamic.push_back(handle);
            } else {
                // It is there: it was just looked at.
                let _ = self.remove(handle);
            }
        }
    }

    /// One-shot redirects, and when each ends: in the order they were made.
    pub(crate) fn expected(&self) -> impl Iterator<Item = (&Redirect, u64)> {
        self.dynamic.iter().filter_map(|handle| {
            let rule = self.rule(*handle)?;
            Some((&rule.redirect, rule.until_millis?))
        })
    }

    /// Whether there may be a redirect for a packet that comes in to an alias
    /// port. O(1), and mostly a bit.
    #[inline(always)]
    pub(crate) fn may_hold(&self, port: u16) -> bool {
        self.held.has(port)
    }

    /// The redirect for a packet that comes in and has no flow; `current`:
    /// its destination is the current alias address. A pool answers with
    /// the server whose turn it is; [`Self::take`] passes the turn. One
    /// probe for each shape in use.
    pub fn inbound(&self, tuple: &Tuple, current: bool, now_millis: u64) -> Option<Found> {
        let question = Question::new(tuple, current);
        let alive = |place| self.is_alive(place, now_millis) && self.admits(place, tuple);
        let place = self.inbound.find(&question, alive)?;
        self.answer_inbound(place, tuple.own_port)
    }

    fn answer_inbound(&self, place: u32, port: u16) -> Option<Found> {
        let (handle, rule) = self.at(place)?;
        let Redirect {
            inside,
            inside_port,
            alias_port,
            ..
        } = rule.redirect;
        let turn = rule.servers.len().checked_sub(1 + rule.turn as usize);
        let server = turn.and_then(|turn| rule.servers.get(turn));
        let (address, port) = match server {
            Some(server) => (Some(server.address), server.port),
            None => (
                inside,
                inside_port.wrapping_add(port.wrapping_sub(alias_port)),
            ),
        };
        Some(Found {
            handle,
            address,
            port: if rule.redirect.ports == 0 { 0 } else { port },
            one_shot: rule.dynamic,
        })
    }

    fn at(&self, place: u32) -> Option<(Handle, &Rule)> {
        let slot = self.slots.get(place as usize)?;
        let rule = slot.rule.as_ref()?;
        Some((Handle::new(place, slot.generation), rule))
    }

    fn is_alive(&self, place: u32, now_millis: u64) -> bool {
        let until = self.at(place).and_then(|(_, rule)| rule.until_millis);
        until.is_none_or(|until| until > now_millis)
    }

    /// The redirect for a packet that goes out and has no flow: as which
    /// alias its source leaves; `current`: its source is the current alias
    /// address. One probe for each shape in use.
    pub fn outbound(&self, tuple: &Tuple, current: bool, now_millis: u64) -> Option<Found> {
        let question = Question::new(tuple, current);
        let alive = |place| self.is_alive(place, now_millis);
        let place = self.outbound.find(&question, alive)?;
        let (handle, rule) = self.at(place)?;
        let redirect = rule.redirect;
        let offset = tuple.own_port.wrapping_sub(redirect.inside_port);
        Some(Found {
            handle,
            address: redirect.alias,
            port: if redirect.ports == 0 {
                0
            } else {
                redirect.alias_port.wrapping_add(offset)
            },
            one_shot: rule.dynamic,
        })
    }

    /// The address redirect for a packet that comes in to `alias` and has
    /// neither flow nor other redirect. O(1).
    pub fn original_address(&self, alias: Ipv4Addr, current: bool) -> Option<Found> {
        let question = Question::address(alias, current);
        let place = self.inbound.find(&question, |_| true)?;
        self.answer_inbound(place, 0)
    }

    /// The address redirect for a packet that goes out from `inside`: its
    /// alias address. O(1).
    pub fn alias_address(&self, inside: Ipv4Addr, current: bool) -> Option<Found> {
        let question = Question::address(inside, current);
        let place = self.outbound.find(&question, |_| true)?;
        let (handle, rule) = self.at(place)?;
        Some(Found {
            handle,
            address: rule.redirect.alias,
            port: 0,
            one_shot: false,
        })
    }

    /// The answer was used for a new flow: the next server's turn comes, a
    /// one-shot redirect goes. Stale handles change nothing.
    pub fn take(&mut self, handle: Handle) {
        let Ok(rule) = self.rule_mut(handle) else {
            return;
        };
        if rule.dynamic {
            // It is there: it was just looked at.
            let _ = self.remove(handle);
        } else if !rule.servers.is_empty() {
            let next = rule.turn as usize + 1;
            rule.turn = if next < rule.servers.len() {
                next as u32
            } else {
                0
            };
        }
    }

    /// Whether any redirect could speak for this alias port from any remote:
    /// a helper that looks for a free port passes such ones by. O(1).
    pub fn holds_port(&self, protocol: u8, alias: Ipv4Addr, current: bool, port: u16) -> bool {
        self.inbound.holds_port(protocol, alias, current, port)
    }

    /// Redirects in no order, from a place on: handle and redirect, and
    /// where to go on. For listing; O(places passed).
    pub fn next_from(&self, place: usize) -> Option<(Handle, &Redirect, usize)> {
        let rest = self.slots.get(place..)?.iter().enumerate();
        let mut live = rest.filter_map(|(offset, slot)| Some((offset, slot, slot.rule.as_ref()?)));
        let (offset, slot, rule) = live.next()?;
        let at = place + offset;
        let handle = Handle::new(at as u32, slot.generation);
        Some((handle, &rule.redirect, at + 1))
    }

    /// Adds a proxy rule; those with lower numbers are asked first, among
    /// equal numbers the latest. O(proxy rules).
    pub fn add_proxy(&mut self, proxy: Proxy) -> Result<(), RuleError> {
        self.proxies.add(proxy)
    }

    /// Takes all proxy rules of this number away; false: there was none.
    pub fn remove_proxies(&mut self, number: u32) -> bool {
        self.proxies.remove(number)
    }

    /// The proxy rule for a new flow, if any: the first that fits. O(proxy
    /// rules of this port and of any port).
    pub fn proxy(&self, tuple: &Tuple) -> Option<&Proxy> {
        self.proxies.find(tuple)
    }

    /// Whether there are proxy rules.
    pub fn has_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }
}

#[cfg(test)]
mod tests;
