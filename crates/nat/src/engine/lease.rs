//! Which alias ports a lease gets, and how it begins and ends.
//!
//! A lease is a redirect with an end: what comes in to its ports goes to who
//! has it, and what leaves from there leaves by them. Its ports are in use
//! in their block and count for their subscriber as long as it lives, however
//! many flows go by it. When it ends its flows stay, as those of any
//! redirect that is deleted.

use super::Nat;
use super::counts::NO_BLOCK;
use super::create::Wish;
use super::outgoing::is_private;
use super::port::Contest;
use super::translate::Hint;
use super::{address, word};
use crate::blocks::Class;
use crate::flow::Ends;
use crate::pcp;
use crate::pcp::leases::{Key, Lease, Leases};
use crate::pcp::options::Filter;
use crate::rules::{Handle, Redirect, Rules, Tuple};
use crate::{Dependence, Pooling, Verdict};
use packet::protocol;
use std::net::Ipv4Addr;

/// Runs of ports tried for each size.
const RUNS_TRIED: u32 = 32;

/// What is asked for; ports in host order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub key: Key,
    /// How many in a row, above 0.
    pub ports: u16,
    /// What is suggested; 0: any.
    pub alias: Option<Ipv4Addr>,
    pub alias_port: u16,
    /// Exactly that, or nothing.
    pub exactly: bool,
    /// Whether an even port is to be behind an even one.
    pub parity: bool,
}

/// Where there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub alias: u32,
    pub alias_port: u16,
    pub ports: u16,
    pub mark: u32,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// It is nobody who may ask.
    Right,
    /// The subscriber has what it may have.
    Quota,
    /// No port is free.
    Ports,
    /// What was suggested is not to be had.
    Suggested,
}

/// Whether a port is one that PCP itself is spoken at, and nobody's to ask for
/// (RFC 6887 §11.3).
fn is_ours(of: u8, port: u16) -> bool {
    of == protocol::UDP && (pcp::PORT - 1..=pcp::PORT).contains(&port)
}

impl From<Verdict> for Lack {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::OverQuota => Self::Quota,
            Verdict::Denied | Verdict::Passed => Self::Right,
            _ => Self::Ports,
        }
    }
}

impl Nat {
    /// The subscriber of an inside host that may have leases; `None`: nobody
    /// counts.
    pub(super) fn leaser(&mut self, inside: Ipv4Addr) -> Result<Option<u32>, Lack> {
        let mode = self.config.mode;
        let private_only = mode.unregistered_only || mode.carrier_grade;
        let is_left_alone = private_only && !is_private(word(inside), mode.carrier_grade);
        if mode.proxy_only || is_left_alone {
            return Err(Lack::Right);
        }
        let subscriber = self.new_subscriber(word(inside))?;
        let all_count = self.config.blocks.is_some() || !self.inside.is_empty();
        match (subscriber, all_count) {
            (None, true) => Err(Lack::Right),
            (subscriber, _) => Ok(subscriber),
        }
    }

    /// The alias address (memory order) of a host.
    pub(super) fn alias_of_leaser(
        &mut self,
        inside: Ipv4Addr,
        subscriber: Option<u32>,
    ) -> Result<u32, Lack> {
        match (self.config.blocks.is_some(), subscriber) {
            (true, Some(name)) => Ok(self.address_for(name)?),
            _ => self.own_for(word(inside)).ok_or(Lack::Ports),
        }
    }

    /// The redirect of the operator's that an inside end has: its alias end.
    pub(super) fn laid_down(&self, key: &Key) -> Option<(Ipv4Addr, u16)> {
        if self.rules.is_empty() {
            return None;
        }
        let tuple = Tuple {
            protocol: key.protocol,
            own: key.inside,
            own_port: key.port,
            remote: Ipv4Addr::UNSPECIFIED,
            remote_port: 0,
        };
        let (current, now) = (self.is_own(word(key.inside)), self.clock.said_millis());
        let own = self.own_for(word(key.inside)).map(address);
        let found = self.rules.outbound(&tuple, current, now);
        let found = found.filter(|found| !found.one_shot && !self.rules.is_lease(found.handle));
        let found = found.or_else(|| self.rules.alias_address(key.inside, current))?;
        let port = if found.port == 0 {
            key.port
        } else {
            found.port
        };
        Some((found.address.or(own)?, port))
    }

    /// Alias ports for a lease. O(1), beside the ports of a block.
    pub(super) fn place_for(&mut self, wanted: &Wanted) -> Result<Place, Lack> {
        let inside = word(wanted.key.inside);
        let subscriber = self.leaser(wanted.key.inside)?;
        self.admit_port(subscriber, wanted.key.protocol)?;
        let ports = self.ports_left(subscriber, wanted)?;
        let wanted = &Wanted { ports, ..*wanted };
        if let Some((alias, port)) = self.alias_to_keep(&wanted.key)? {
            // What a PEER suggests is for one that has no mapping yet.
            let fits = wanted.key.remote.is_some() || wanted.fits(alias, port);
            let place = Place {
                alias,
                alias_port: port,
                ports: 1,
                mark: self.mark_at(alias, port, subscriber),
            };
            return if fits {
                Ok(place)
            } else {
                Err(Lack::Suggested)
            };
        }
        let mut alias = self.alias_of_leaser(wanted.key.inside, subscriber)?;
        let free_choice = self.config.pooling == Pooling::Arbitrary && self.config.blocks.is_none();
        if let Some(suggested) = wanted.alias.map(word)
            && suggested != alias
        {
            if free_choice && self.is_own(suggested) {
                alias = suggested;
            } else if wanted.exactly {
                return Err(Lack::Suggested);
            }
        }
        let (remote, remote_port) = wanted.key.remote.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
        let ends = Ends {
            inside,
            inside_port: wanted.key.port.to_be(),
            remote: word(remote),
            remote_port: remote_port.to_be(),
            alias,
            alias_port: 0,
            protocol: wanted.key.protocol,
        };
        let shared = wanted.key.remote.is_none().then_some(0);
        let group = self.group(alias, ends.remote, ends.remote_port, ends.protocol);
        let contest = Contest::without_taking(&ends, shared, group);
        self.choose_run(&contest, wanted, subscriber)
    }

    /// How many of the wanted ports its subscriber may have.
    fn ports_left(&self, subscriber: Option<u32>, wanted: &Wanted) -> Result<u16, Lack> {
        let entry = subscriber.and_then(|name| self.entry(name));
        let class = Class::of(wanted.key.protocol);
        let quotas = &self.config.subscribers.quotas;
        let left = entry.map_or(u32::MAX, |entry| {
            entry.ports_left(class, quotas, self.rules.awaited(entry.address))
        });
        let ports = wanted.ports.min(u16::try_from(left).unwrap_or(u16::MAX));
        match wanted.exactly && ports < wanted.ports {
            true => Err(Lack::Quota),
            false => Ok(ports),
        }
    }

    fn choose_run(
        &mut self,
        contest: &Contest,
        wanted: &Wanted,
        subscriber: Option<u32>,
    ) -> Result<Place, Lack> {
        let (alias, suggested) = (contest.ends().alias, wanted.alias_port);
        if suggested != 0 && wanted.keeps_parity(suggested) {
            let mark = self.run_is_free(contest, suggested, wanted.ports, subscriber);
            if let Some(mark) = mark {
                return Ok(Place {
                    alias,
                    alias_port: suggested,
                    ports: wanted.ports,
                    mark,
                });
            }
        }
        if suggested != 0 && wanted.exactly {
            return Err(Lack::Suggested);
        }
        let mut ports = wanted.ports;
        while ports > 1 || wanted.parity {
            if let Some((first, mark)) = self.any_run(contest, wanted, ports, subscriber) {
                return Ok(Place {
                    alias,
                    alias_port: first,
                    ports,
                    mark,
                });
            }
            if ports == 1 {
                break;
            }
            if wanted.exactly {
                return Err(Lack::Suggested);
            }
            ports /= 2;
        }
        let hint = Hint {
            subscriber,
            gives: true,
            ..Hint::new(0, 0)
        };
        let shared = wanted.key.remote.is_none().then_some(0);
        let mut chosen = self.choose_port(contest.ends(), shared, Wish::Any, hint)?;
        for _ in 0..RUNS_TRIED {
            if !is_ours(contest.ends().protocol, u16::from_be(chosen.port)) {
                break;
            }
            chosen = self.choose_port(contest.ends(), shared, Wish::Any, hint)?;
        }
        if is_ours(contest.ends().protocol, u16::from_be(chosen.port)) {
            return Err(Lack::Ports);
        }
        Ok(Place {
            alias,
            alias_port: u16::from_be(chosen.port),
            ports: 1,
            mark: chosen.mark,
        })
    }

    /// The alias end that an inside one has already, for its lease. One that
    /// the operator has redirected since to somebody else is no lease's: a
    /// mapping for all gets another one, and one for a remote none, whose
    /// flow stays where it is.
    fn alias_to_keep(&mut self, key: &Key) -> Result<Option<(u32, u16)>, Lack> {
        let Some((alias, port)) = self.alias_in_use(key) else {
            return Ok(None);
        };
        let (own, current) = (address(alias), self.is_own(alias));
        let leased = (key.protocol, own, port);
        let is_leased = self.leases.as_ref().is_some_and(|of| of.has_port(leased));
        let is_held = self.rules.holds_port(key.protocol, own, current, port);
        match is_held && !is_leased {
            false if is_ours(key.protocol, port) => Ok(None),
            false => Ok(Some((alias, port))),
            true if key.remote.is_some() => Err(Lack::Suggested),
            true => Ok(None),
        }
    }

    /// The alias end that an inside one has already, without a redirect: by
    /// its flow with the remote, or by a mapping for all remotes.
    fn alias_in_use(&mut self, key: &Key) -> Option<(u32, u16)> {
        let (inside, port) = (word(key.inside), key.port.to_be());
        if let Some((remote, remote_port)) = key.remote {
            let ports = [port, remote_port.to_be()];
            let out = crate::key::Key::new(inside, word(remote), ports, key.protocol);
            let hash = self.table.hasher.hash(out);
            let name = self.table.find::<true>(hash, out);
            let flow = name.and_then(|name| self.table.get(name).copied());
            if let Some(flow) = flow.filter(|flow| self.alive(flow) && self.is_own(flow.alias())) {
                return Some((flow.alias(), u16::from_be(flow.alias_port())));
            }
        }
        // Who has a lease of the port for all has it for one as well; where
        // the mapping is one for all remotes, so is that of any lease.
        let is_one = self.mapped_for(key) == Some(0);
        let own = self.leases.as_ref().and_then(|of| of.at(key, is_one));
        if let Some(lease) = own {
            return Some((word(lease.alias), lease.alias_port));
        }
        let name = self.mappings.by_inside(inside, port, 0, key.protocol)?;
        let mapping = self.mappings.get(name)?;
        let is_alive = mapping.epoch == self.epoch && self.clock.now() <= mapping.dies;
        let is_ours = is_alive && !mapping.is_detached() && self.is_own(mapping.alias);
        is_ours.then_some((mapping.alias, u16::from_be(mapping.alias_port)))
    }

    /// What of a remote the mappings of a lease's end depend on, as
    /// [`Nat::remote_part`].
    fn mapped_for(&self, key: &Key) -> Option<u32> {
        let (remote, _) = key.remote.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
        match self.behaviour(key.protocol)?.mapping {
            Dependence::Endpoint => Some(0),
            Dependence::Address => Some(word(remote)),
            Dependence::AddressAndPort => None,
        }
    }

    /// Lays down what a lease does. One for a remote speaks for all those
    /// that would share its mapping, and lets that remote in alone.
    fn lay_down(&mut self, key: &Key, lease: &Lease) -> Option<Handle> {
        let redirect = Redirect {
            alias: Some(lease.alias),
            ports: lease.ports,
            ..Redirect::port(key.protocol, key.inside, key.port, lease.alias_port)
        };
        let until = lease.until_millis;
        let Some((remote, port)) = key.remote else {
            return self.rules.lease(redirect, until).ok();
        };
        let of_remote = match self.mapped_for(key) {
            Some(0) => redirect,
            Some(_) => redirect.from(Some(remote), None),
            None => redirect.from(Some(remote), Some(port)),
        };
        let handle = self.rules.lease(of_remote, until).ok()?;
        let only = [Filter::of(remote, port)];
        self.rules.set_filters(handle, &only).ok()?;
        Some(handle)
    }

    /// How a port counts that its subscriber has already.
    pub(super) fn mark_at(&self, alias: u32, port: u16, subscriber: Option<u32>) -> u32 {
        let Some(name) = subscriber else {
            return 0;
        };
        let pool = self.tracked.as_ref().and_then(|of| of.pool.as_ref());
        let block = self.block_at(alias, port.to_be());
        let owner = block.and_then(|block| pool?.get(block));
        match (block, owner.is_some_and(|block| block.owner == name + 1)) {
            (Some(block), true) => block + 1,
            _ => NO_BLOCK,
        }
    }

    /// Whether ports in a row are free, and of one block of its subscriber
    /// where there are blocks: how they count.
    fn run_is_free(
        &mut self,
        contest: &Contest,
        first: u16,
        ports: u16,
        subscriber: Option<u32>,
    ) -> Option<u32> {
        let last = first.checked_add(ports.checked_sub(1)?)?;
        if (first..=last).any(|port| is_ours(contest.ends().protocol, port)) {
            return None;
        }
        let alias = contest.ends().alias;
        let has_blocks = self.config.blocks.is_some();
        let mark = match (has_blocks, subscriber) {
            (true, name) => match self.mark_at(alias, first, name) {
                0 | NO_BLOCK => return None,
                mark => mark,
            },
            (false, Some(_)) => NO_BLOCK,
            (false, None) => 0,
        };
        for port in first..=last {
            let is_ours = if has_blocks {
                self.block_at(alias, port.to_be()) == mark.checked_sub(1)
            } else {
                self.ports.has(port)
            };
            if !is_ours || self.is_rested(contest, port.to_be()).is_none() {
                return None;
            }
        }
        Some(mark)
    }

    /// Any run of free ports: the first of them, and how they count.
    fn any_run(
        &mut self,
        contest: &Contest,
        wanted: &Wanted,
        ports: u16,
        subscriber: Option<u32>,
    ) -> Option<(u16, u32)> {
        for step in 0..RUNS_TRIED {
            let first = self.any_port(contest.ends().alias, subscriber, step)?;
            let is_odd = u16::from(wanted.parity) & (first ^ wanted.key.port) & 1;
            let first = first.checked_add(is_odd)?;
            if let Some(mark) = self.run_is_free(contest, first, ports, subscriber) {
                return Some((first, mark));
            }
        }
        None
    }

    /// Any port that a subscriber may have; at first of the blocks it has.
    fn any_port(&mut self, alias: u32, subscriber: Option<u32>, step: u32) -> Option<u16> {
        if self.config.blocks.is_none() {
            let place = self.random.below(self.ports.count());
            return Some(self.ports.port(place));
        }
        let block = self.any_block(subscriber?, alias, step >= RUNS_TRIED / 2)?;
        let pool = self.tracked.as_ref()?.pool.as_ref()?;
        let place = self.random.below(pool.size_of(block));
        Some(pool.port(block, place))
    }

    /// Begins a lease; `None`: there are too many rules.
    pub(super) fn open_lease(
        &mut self,
        key: &Key,
        place: &Place,
        nonce: [u8; 12],
        until_millis: u64,
    ) -> Option<Lease> {
        let lease = self.enter_lease(key, place, nonce, until_millis)?;
        for step in 0..lease.ports {
            self.count_port(&ends_of(key, &lease, step), lease.mark, false);
        }
        Some(lease)
    }

    /// The same with one that was saved: its ports are no new ones.
    pub(super) fn restore_lease(
        &mut self,
        key: &Key,
        place: &Place,
        nonce: [u8; 12],
        until_millis: u64,
    ) -> Option<Lease> {
        let lease = self.enter_lease(key, place, nonce, until_millis)?;
        for step in 0..lease.ports {
            self.recount_port(&ends_of(key, &lease, step), lease.mark, false);
        }
        Some(lease)
    }

    fn enter_lease(
        &mut self,
        key: &Key,
        place: &Place,
        nonce: [u8; 12],
        until_millis: u64,
    ) -> Option<Lease> {
        let mut lease = Lease {
            nonce,
            ports: place.ports,
            alias: address(place.alias),
            alias_port: place.alias_port,
            until_millis,
            handle: Handle::NOBODYS,
            mark: place.mark,
        };
        lease.handle = self.lay_down(key, &lease)?;
        if let Some(leases) = &mut self.leases {
            leases.put(*key, lease);
        }
        Some(lease)
    }

    /// Ends a lease. Whether there was one.
    pub(super) fn close_lease(&mut self, key: &Key) -> bool {
        let lease = self.leases.as_mut().and_then(|of| of.remove(key));
        let Some(lease) = lease else {
            return false;
        };
        let is_open = self.rules.filters(lease.handle).is_empty() && key.remote.is_none();
        // With the rules read anew it may be gone.
        let _ = self.rules.remove(lease.handle);
        for step in 0..lease.ports {
            let ends = ends_of(key, &lease, step);
            self.give_port(&ends, lease.mark, false);
            // Who still sends to it is not to reach somebody else (RFC 6888
            // REQ-8); TCP is followed.
            if is_open && key.protocol == protocol::UDP {
                let port = lease.alias_port.wrapping_add(step);
                self.held_ports.hold(ends.alias, port, self.clock.now());
            }
        }
        true
    }

    /// Ends leases whose time has come, so many at most.
    pub(super) fn end_leases(&mut self, most: usize) {
        let now = self.clock.said_millis();
        for _ in 0..most {
            let over = self.leases.as_ref().and_then(|of| of.next_over(now));
            let Some(key) = over else {
                return;
            };
            self.close_lease(&key);
        }
    }

    /// Lays leases down again behind rules that took the place of `former`;
    /// those that the new rules leave no room for end. O(leases).
    pub(super) fn renew_leases(&mut self, former: &Rules) {
        let Some(leases) = &self.leases else {
            return;
        };
        let all: Vec<(Key, Lease)> = leases.all().map(|(key, of)| (*key, *of)).collect();
        let has_room: Vec<bool> = all
            .iter()
            .map(|(key, lease)| self.has_room_for(key, lease))
            .collect();
        for ((key, lease), has_room) in all.into_iter().zip(has_room) {
            let laid = has_room.then(|| self.lay_down(&key, &lease)).flatten();
            let handle = laid.unwrap_or(Handle::NOBODYS);
            // It is there, if it was just laid down.
            let _ = self.rules.set_filters(handle, former.filters(lease.handle));
            if let Some(leases) = &mut self.leases {
                leases.put(key, Lease { handle, ..lease });
            }
            if handle == Handle::NOBODYS {
                self.close_lease(&key);
            }
        }
    }

    /// Whether no redirect speaks for a lease's ports.
    fn has_room_for(&self, key: &Key, lease: &Lease) -> bool {
        let ports = (lease.alias_port, lease.ports);
        self.has_room_at(key.protocol, lease.alias, ports)
    }

    /// The same for an alias address, a first port and how many.
    pub(super) fn has_room_at(
        &self,
        protocol: u8,
        alias: Ipv4Addr,
        (first, ports): (u16, u16),
    ) -> bool {
        let current = self.is_own(word(alias));
        (0..ports).all(|step| {
            let port = first.wrapping_add(step);
            !self.rules.holds_port(protocol, alias, current, port)
        })
    }

    /// Ends all leases.
    pub(super) fn close_all_leases(&mut self) {
        let first = |of: &Leases| of.all().next().map(|(key, _)| *key);
        while let Some(key) = self.leases.as_deref().and_then(first) {
            self.close_lease(&key);
        }
    }

    /// Ends the leases of addresses that are not ours any more. Whether
    /// there were any.
    pub(super) fn drop_foreign_leases(&mut self) -> bool {
        let Some(leases) = &self.leases else {
            return false;
        };
        let foreign = leases.all();
        let foreign = foreign.filter(|(_, lease)| !self.is_own(word(lease.alias)));
        let foreign: Vec<Key> = foreign.map(|(key, _)| *key).collect();
        for key in &foreign {
            self.close_lease(key);
        }
        !foreign.is_empty()
    }
}

impl Wanted {
    /// Whether an alias end is one that is suggested, or would do.
    fn fits(&self, alias: u32, port: u16) -> bool {
        let address = self.alias.is_none_or(|wanted| word(wanted) == alias);
        !self.exactly || address && (self.alias_port == 0 || self.alias_port == port)
    }

    fn keeps_parity(&self, port: u16) -> bool {
        !self.parity || (port ^ self.key.port) & 1 == 0
    }
}

/// The ends of one of a lease's ports.
fn ends_of(key: &Key, lease: &Lease, step: u16) -> Ends {
    let (remote, remote_port) = key.remote.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
    Ends {
        inside: word(key.inside),
        inside_port: key.port.wrapping_add(step).to_be(),
        remote: word(remote),
        remote_port: remote_port.to_be(),
        alias: word(lease.alias),
        alias_port: lease.alias_port.wrapping_add(step).to_be(),
        protocol: key.protocol,
    }
}
