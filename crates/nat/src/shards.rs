//! Several engines behind the same alias addresses, one a worker, and which
//! of them a packet is for.
//!
//! Each engine has a part: of the inside hosts those that a hash assigns to it,
//! of the alias ports (and query identifiers) those with its bits. So a host's
//! flows, its shared mappings and its one alias address are one engine's, and
//! what comes in tells by its port whose it is:
//!
//! | packet | goes out | comes in |
//! |---|---|---|
//! | TCP, UDP, ICMP query | by the inside host | by a redirect's inside host, else the alias port |
//! | the same of an alias address itself, where unsolicited packets pass | by its own port | by the alias port |
//! | ICMP error | the same of the packet inside | the same of the packet inside |
//! | PPTP's GRE | by the inside host | by the call's identifier |
//! | other protocols | by the remote | by the remote |
//! | fragment | by the inside host | as the first one says |
//!
//! With blocks of ports an alias port is the part's whose block it is in, all
//! hosts of a subscriber are assigned together, and one whose ports can be
//! reckoned is the part's that they say.
//!
//! Hosts that redirects bind together are assigned together (`classes`), and
//! ports that a redirect names are given to no flow. Nothing here changes
//! while packets are distributed: two who ask say the same.

mod classes;
mod slots;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use packet::icmp::Kind as IcmpKind;
use packet::{Gre, Icmp, Ipv4, gre, icmp, protocol};

use crate::blocks::{Layout, Reckoning};
use crate::flow::Ends;
use crate::helper::Kind;
use crate::key::folded;
use crate::rules::{Rules, Tuple};
use crate::{BlocksError, Config, Direction};

use classes::Classes;
pub(crate) use slots::PortSlice;
use slots::Slots;

/// The version, the length of the header, ports of TCP or UDP: what is read
/// of a usual packet.
const USUAL_LEN: usize = 24;
/// "More fragments" and the offset (RFC 791 §3.1).
const FRAGMENT: u16 = 0x3fff;
/// A factor of 64 bits, half of them set (of the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whose a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Anybody's: it belongs to no flow.
    Any,
    /// This part's.
    Shard(u16),
    /// A fragment's: its first one tells ([`Shards::owner_of_first`]), and
    /// this part is where all of them meet.
    Meets(u16),
    /// PPTP's GRE: the first part's if that knows its call
    /// ([`crate::Nat::knows_call`]), else the second's.
    Call(u16, u16),
    /// The part's that knows the call that an error is about: each has to be
    /// asked.
    Each,
}

/// Why an engine cannot be one of several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardsError {
    /// More parts than there can be, or none.
    #[error(
        "{asked} workers cannot share alias ports: 1 to {} can",
        slots::MOST_SHARDS
    )]
    Parts {
        /// What was asked for.
        asked: u16,
    },
    /// A part would have no ports.
    #[error(
        "the alias ports {first}-{last} less those of redirects are too few for {parts} workers: give a longer port_range, or fewer workers"
    )]
    Ports {
        /// First port of the range.
        first: u16,
        /// Last port.
        last: u16,
        /// Parts asked for.
        parts: u16,
    },
    /// A part would have no block.
    #[error(
        "an alias address has {blocks} blocks of ports: too few for {parts} workers; give a smaller size, or fewer workers"
    )]
    FewBlocks {
        /// Blocks of an address.
        blocks: u32,
        /// Parts asked for.
        parts: u16,
    },
    /// The blocks cannot be.
    #[error(transparent)]
    Blocks(#[from] BlocksError),
    /// Redirects bind hosts together whose ports are reckoned apart.
    #[error(
        "redirects to several hosts by one alias endpoint take one worker where blocks are deterministic"
    )]
    Reckoned,
    /// New connections from outside go to a target.
    #[error(
        "target_address {target} takes one worker: what no flow and no redirect claims would have to be found out from all of them. Use redirect_address with an address of its own, or one worker"
    )]
    Target {
        /// The target.
        target: Ipv4Addr,
    },
    /// An address is redirected whole, and flows of others have it as well.
    #[error(
        "redirect_address of {alias} takes one worker, because it is an alias_address as well: give that host an address of its own, or use one worker"
    )]
    Shared {
        /// The address.
        alias: Ipv4Addr,
    },
}

/// Which engine of several a packet is for. Made of one of them before it
/// has flows; what it says holds as long as none of them gets other
/// addresses, rules or modes.
#[derive(Debug)]
pub struct Shards {
    parts: u16,
    slots: Slots,
    /// Where alias ports go by blocks.
    layout: Option<Layout>,
    reckoning: Option<Reckoning>,
    /// The bits of an inside address that tell a subscriber.
    mask: u32,
    seeds: [u64; 2],
    /// The alias addresses, sorted.
    pool: Vec<u32>,
    /// Redirects, if there are any.
    rules: Option<Rules>,
    /// A bit for each alias port that a redirect names.
    named: Vec<u64>,
    /// Hosts that are not assigned by their own address.
    bound: HashMap<u32, u16>,
    /// Alias addresses that are one part's with all their ports.
    whole: HashMap<u32, u16>,
    is_reversed: bool,
    /// What comes in unasked passes as it is: its answer is made by an alias
    /// address itself, and belongs to the part that the question came to.
    is_open: bool,
    has_calls: bool,
}

impl Shards {
    /// Of engines with this configuration, but for their `max_flows`, and
    /// with these rules. O(redirects).
    pub(crate) fn new(config: &Config, rules: &Rules, parts: u16) -> Result<Self, ShardsError> {
        if parts == 0 || parts > slots::MOST_SHARDS {
            return Err(ShardsError::Parts { asked: parts });
        }
        let mut own: Vec<u32> = config.addresses.iter().map(|own| own.to_bits()).collect();
        own.sort_unstable();
        if !config.mode.deny_incoming
            && let Some(target) = config.target
        {
            return Err(ShardsError::Target { target });
        }
        config.subscribers.check()?;
        let bits = u32::from(config.subscribers.bits);
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let classes = Classes::of(rules, &own, mask);
        let mut shards = Self {
            parts,
            slots: Slots::new(parts),
            reckoning: Reckoning::new(config)?,
            layout: layout(config)?,
            mask,
            seeds: [config.seed, config.seed.rotate_left(32) ^ FACTOR],
            named: named(rules),
            rules: (!rules.is_empty()).then(|| rules.clone()),
            pool: own,
            bound: HashMap::new(),
            whole: HashMap::new(),
            is_reversed: config.mode.reverse,
            is_open: !config.mode.deny_incoming,
            has_calls: config.helpers.has(Kind::Pptp),
        };
        shards.check_addresses(config, rules)?;
        shards.check_blocks()?;
        shards.check_ports(config)?;
        if shards.reckoning.is_some() && !classes.hosts.is_empty() {
            return Err(ShardsError::Reckoned);
        }
        for (host, class) in classes.hosts {
            let part = shards.part_of(class, 0);
            shards.bound.insert(host, part);
        }
        for (alias, host) in classes.whole {
            if !shards.is_own(alias) {
                let part = shards.of_inside(host);
                shards.whole.insert(alias, part);
            }
        }
        Ok(shards)
    }

    /// An address that is redirected whole must not be one that flows of
    /// others may get, if anybody comes in by it.
    fn check_addresses(&self, config: &Config, rules: &Rules) -> Result<(), ShardsError> {
        if config.mode.deny_incoming {
            return Ok(());
        }
        let mut place = 0;
        while let Some((_, redirect, next)) = rules.next_from(place) {
            place = next;
            let alias = redirect
                .alias
                .or(self.pool.first().copied().map(Ipv4Addr::from_bits));
            if redirect.protocol.is_none()
                && let Some(alias) = alias
                && self.is_own(alias.to_bits())
            {
                return Err(ShardsError::Shared { alias });
            }
        }
        Ok(())
    }

    fn check_ports(&self, config: &Config) -> Result<(), ShardsError> {
        let (first, last) = (*config.ports.start(), *config.ports.end());
        let mut has_port = vec![false; usize::from(self.parts)];
        for port in (first..=last).filter(|port| !self.is_named(*port)) {
            if let Some(has) = has_port.get_mut(usize::from(self.of_port(port))) {
                *has = true;
            }
        }
        if has_port.contains(&false) {
            let parts = self.parts;
            return Err(ShardsError::Ports { first, last, parts });
        }
        Ok(())
    }

    /// Each part must have a block that it may give.
    fn check_blocks(&self) -> Result<(), ShardsError> {
        let Some(layout) = self.layout.as_ref() else {
            return Ok(());
        };
        let parts = u32::from(self.parts);
        let all = 0..layout.blocks();
        let given = |block: &u32| layout.may_be_given(*block) || *block < layout.fixed();
        let mut has_block = vec![false; usize::from(self.parts)];
        for block in all.filter(given) {
            if let Some(has) = has_block.get_mut((block % parts) as usize) {
                *has = true;
            }
        }
        if has_block.contains(&false) {
            let (blocks, parts) = (layout.blocks(), self.parts);
            return Err(ShardsError::FewBlocks { blocks, parts });
        }
        Ok(())
    }

    /// The part of an alias port of the pool.
    #[inline(always)]
    pub(crate) fn of_port(&self, port: u16) -> u16 {
        match &self.layout {
            None => self.slots.of(port),
            Some(layout) => self.of_block(layout, port),
        }
    }

    #[inline(never)]
    fn of_block(&self, layout: &Layout, port: u16) -> u16 {
        match layout.at(port) {
            Some(at) => (at.block % u32::from(self.parts)) as u16,
            None => self.slots.of(port),
        }
    }

    /// How many parts there are.
    pub fn parts(&self) -> u16 {
        self.parts
    }

    /// Whose a packet is, from its IP header on. A few ns for TCP and UDP
    /// without options, where no redirect names the port.
    #[inline(always)]
    pub fn owner(&self, direction: Direction, packet: &[u8]) -> Owner {
        match (direction, self.is_reversed) {
            (Direction::Out, false) | (Direction::In, true) => self.owner_of::<true>(packet),
            (Direction::In, false) | (Direction::Out, true) => self.owner_of::<false>(packet),
        }
    }

    /// Whose a fragment is that begins its datagram, and all others of it.
    pub fn owner_of_first(&self, direction: Direction, packet: &[u8]) -> Owner {
        match (direction == Direction::Out) != self.is_reversed {
            true => self.rare::<true>(packet, true),
            false => self.rare::<false>(packet, true),
        }
    }

    #[inline(always)]
    pub(crate) fn owner_of<const OUT: bool>(&self, packet: &[u8]) -> Owner {
        if let Some(header) = packet.first_chunk::<USUAL_LEN>() {
            let [first, _, _, _, _, _, f0, f1, _, of, _, _, rest @ ..] = header;
            let [s0, s1, s2, s3, d0, d1, d2, d3, p0, p1, q0, q1] = rest;
            let is_whole = u16::from_be_bytes([*f0, *f1]) & FRAGMENT == 0;
            let is_known = (*of == protocol::TCP) | (*of == protocol::UDP);
            if is_whole & is_known & (*first == 0x45) {
                let source = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
                let remote_port = u16::from_be_bytes([*p0, *p1]);
                if OUT {
                    return Owner::Shard(self.of_source(source, remote_port));
                }
                let alias = u32::from_be_bytes([*d0, *d1, *d2, *d3]);
                let port = u16::from_be_bytes([*q0, *q1]);
                return Owner::Shard(self.of_alias(*of, (alias, port), (source, remote_port)));
            }
        }
        self.rare::<OUT>(packet, false)
    }

    /// The same for any packet; `is_first`: it speaks for its datagram.
    #[inline(never)]
    pub(crate) fn rare<const OUT: bool>(&self, packet: &[u8], is_first: bool) -> Owner {
        let Ok(ip) = Ipv4::new(packet) else {
            return Owner::Any;
        };
        let (source, destination) = (ip.source().to_bits(), ip.destination().to_bits());
        let remote = if OUT { destination } else { source };
        let is_ported = is_ported(ip.protocol());
        let is_gre = self.has_calls && ip.protocol() == protocol::GRE;
        if !is_ported && !is_gre {
            return Owner::Shard(self.part_of(remote, 1));
        }
        if ip.is_fragment() && !is_first {
            return match (OUT, is_ported) {
                (true, true) if !self.goes_by_port(source) => Owner::Shard(self.of_inside(source)),
                (true, _) => Owner::Meets(self.of_inside(source)),
                (false, _) => {
                    let both = source ^ destination.rotate_left(16);
                    let identification = u32::from(ip.identification());
                    Owner::Meets(self.part_of(both ^ identification << 8, 1))
                }
            };
        }
        let payload = ip.payload();
        if is_gre {
            let Some(call) = Gre::new(payload).ok().and_then(|gre| gre.call_id()) else {
                return Owner::Shard(self.part_of(remote, 1));
            };
            let knows = if OUT {
                self.of_inside(source)
            } else {
                self.slots.of(call)
            };
            return match ip.is_fragment() {
                true => Owner::Shard(knows),
                false => Owner::Call(knows, self.part_of(remote, 1)),
            };
        }
        if ip.protocol() == protocol::ICMP {
            let Ok(message) = Icmp::new(payload) else {
                return Owner::Any;
            };
            return match icmp::kind(message.icmp_type()) {
                IcmpKind::Query if OUT => {
                    Owner::Shard(self.of_source(source, message.identifier()))
                }
                IcmpKind::Query => {
                    let alias = (destination, message.identifier());
                    Owner::Shard(self.of_alias(protocol::ICMP, alias, (source, 0)))
                }
                IcmpKind::Error => self.of_error::<OUT>(message.payload()),
                _ => Owner::Any,
            };
        }
        if OUT {
            let port = word(payload, 0);
            return port.map_or(Owner::Any, |port| {
                Owner::Shard(self.of_source(source, port))
            });
        }
        match (word(payload, 0), word(payload, 2)) {
            (Some(remote_port), Some(port)) => {
                let (alias, remote) = ((destination, port), (source, remote_port));
                Owner::Shard(self.of_alias(ip.protocol(), alias, remote))
            }
            _ => Owner::Any,
        }
    }

    /// Whose an ICMP error is, by the packet in it, which went the other way.
    fn of_error<const OUT: bool>(&self, quoted: &[u8]) -> Owner {
        let Ok(ip) = Ipv4::parse_truncated(quoted) else {
            return Owner::Any;
        };
        let (source, destination) = (ip.source().to_bits(), ip.destination().to_bits());
        let remote = if OUT { source } else { destination };
        let payload = ip.payload();
        let by_remote = Owner::Shard(self.part_of(remote, 1));
        if self.has_calls && ip.protocol() == protocol::GRE {
            let is_call = ip.fragment_offset_bytes() == 0 && gre::call_id_of_cut(payload).is_some();
            return match (is_call, OUT) {
                (false, _) => by_remote,
                (true, true) => Owner::Call(self.of_inside(destination), self.part_of(remote, 1)),
                (true, false) => Owner::Each,
            };
        }
        if !is_ported(ip.protocol()) {
            return by_remote;
        }
        if OUT {
            let at = if ip.protocol() == protocol::ICMP {
                4
            } else {
                2
            };
            return match word(payload, at) {
                Some(port) if ip.fragment_offset_bytes() == 0 => {
                    Owner::Shard(self.of_source(destination, port))
                }
                _ => Owner::Shard(self.of_inside(destination)),
            };
        }
        let (alias_at, remote_port) = match ip.protocol() {
            protocol::ICMP => (4, Some(0)),
            _ => (0, word(payload, 2)),
        };
        match (word(payload, alias_at), remote_port) {
            (Some(port), Some(remote_port)) if ip.fragment_offset_bytes() == 0 => {
                let (alias, remote) = ((source, port), (destination, remote_port));
                Owner::Shard(self.of_alias(ip.protocol(), alias, remote))
            }
            _ => Owner::Any,
        }
    }

    /// The part of an inside host.
    #[inline(always)]
    fn of_inside(&self, host: u32) -> u16 {
        if !self.bound.is_empty()
            && let Some(part) = self.bound.get(&(host & self.mask))
        {
            return *part;
        }
        if let Some(reckoning) = &self.reckoning
            && let Some((slot, _)) = reckoning.place(host)
        {
            return (slot % u32::from(self.parts)) as u16;
        }
        self.part_of(host & self.mask, 0)
    }

    /// The part of who sends outward: an inside host, or an alias address
    /// that may answer what came in to it.
    #[inline(always)]
    fn of_source(&self, source: u32, port: u16) -> u16 {
        match self.goes_by_port(source) {
            true => self.of_port(port),
            false => self.of_inside(source),
        }
    }

    /// Whether what an address sends is assigned by its port. An alias address
    /// that redirects lead to is a host like others.
    #[inline(always)]
    fn goes_by_port(&self, source: u32) -> bool {
        self.is_open && self.is_own(source) && !self.bound.contains_key(&(source & self.mask))
    }

    /// The part of an alias endpoint, for a remote one.
    #[inline(always)]
    fn of_alias(&self, of: u8, alias: (u32, u16), remote: (u32, u16)) -> u16 {
        let (address, port) = alias;
        if self.is_named(port)
            && let Some(host) = self.redirected(of, alias, remote)
        {
            return self.of_inside(host);
        }
        if self.is_own(address) {
            return self.of_port(port);
        }
        match self.whole.get(&address) {
            Some(part) => *part,
            // A host that goes by its own address (`unregistered_only`).
            None => self.of_inside(address),
        }
    }

    /// The inside host that a redirect leads to.
    #[inline(never)]
    fn redirected(&self, of: u8, alias: (u32, u16), remote: (u32, u16)) -> Option<u32> {
        let tuple = Tuple {
            protocol: of,
            own: Ipv4Addr::from_bits(alias.0),
            own_port: alias.1,
            remote: Ipv4Addr::from_bits(remote.0),
            remote_port: remote.1,
        };
        let rules = self.rules.as_ref()?;
        let found = rules.inbound(&tuple, self.is_own(alias.0), 0)?;
        Some(found.address.map_or(alias.0, Ipv4Addr::to_bits))
    }

    /// The part that an address is assigned to: an inside host's (0), or what else has to be (1).
    /// By the upper half of the product, which spreads addresses in a row.
    #[inline(always)]
    fn part_of(&self, address: u32, what: usize) -> u16 {
        let [hosts, others] = self.seeds;
        let seed = if what == 0 { hosts } else { others };
        let hash = folded(u64::from(address) ^ seed, FACTOR);
        (((hash >> 32) * u64::from(self.parts)) >> 32) as u16
    }

    /// Whether a redirect names an alias port, of any protocol.
    #[inline(always)]
    pub(crate) fn is_named(&self, port: u16) -> bool {
        let word = self.named.get(usize::from(port >> 6));
        word.is_some_and(|word| word >> (port & 63) & 1 != 0)
    }

    /// Whether an address (host order) is an alias address.
    #[inline(always)]
    fn is_own(&self, address: u32) -> bool {
        match self.pool.as_slice() {
            [only] => *only == address,
            own => own.binary_search(&address).is_ok(),
        }
    }
}

/// Which ports a block has, where there are blocks.
fn layout(config: &Config) -> Result<Option<Layout>, BlocksError> {
    let Some(blocks) = &config.blocks else {
        return Ok(None);
    };
    let reckoning = Reckoning::new(config)?;
    match reckoning {
        Some(reckoning) => Ok(Some(reckoning.layout().clone())),
        None => Layout::new(&config.ports, blocks, 0).map(Some),
    }
}

/// Whether flows of a protocol have ports, or identifiers.
fn is_ported(of: u8) -> bool {
    matches!(
        of,
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::ICMP
    )
}

fn word(payload: &[u8], at: usize) -> Option<u16> {
    let field = payload.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field))
}

/// A bit for each alias port that a redirect names; none where there is no
/// redirect of ports.
fn named(rules: &Rules) -> Vec<u64> {
    let mut bits = Vec::new();
    let mut place = 0;
    while let Some((_, redirect, next)) = rules.next_from(place) {
        place = next;
        if redirect.protocol.is_none() {
            continue;
        }
        bits.resize(1 << 10, 0_u64);
        let last = redirect.alias_port + redirect.ports.saturating_sub(1);
        for port in redirect.alias_port..=last {
            if let Some(word) = bits.get_mut(usize::from(port >> 6)) {
                *word |= 1 << (port & 63);
            }
        }
    }
    bits
}

/// The shard that an engine is.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    pub shards: Arc<Shards>,
    pub number: u16,
    pub ports: PortSlice,
    /// Whether redirects name any alias port.
    pub has_named: bool,
}

impl Shard {
    pub fn new(shards: Arc<Shards>, number: u16) -> Self {
        let number = number.min(shards.parts - 1);
        Self {
            ports: PortSlice::new(number, shards.parts),
            has_named: !shards.named.is_empty(),
            number,
            shards,
        }
    }

    /// Whether a flow is this part's, whichever way its packets go.
    pub fn has(&self, ends: &Ends) -> bool {
        let end = |address: u32, port: u16| (u32::from_be(address), u16::from_be(port));
        let inside = end(ends.inside, ends.inside_port);
        let alias = end(ends.alias, ends.alias_port);
        let remote = end(ends.remote, ends.remote_port);
        let out = self.shards.of_source(inside.0, inside.1);
        let incoming = self.shards.of_alias(ends.protocol, alias, remote);
        (out, incoming) == (self.number, self.number)
    }

    /// Whether a flow may get an alias port (host order); `own`: of an
    /// address that the parts share.
    #[inline]
    pub fn may_take(&self, own: bool, port: u16) -> bool {
        let is_ours = !own || self.shards.of_port(port) == self.number;
        is_ours && !self.shards.is_named(port)
    }
}

#[cfg(test)]
mod tests;
