//! What is special about some flows: helpers, proxies, fragments. All of it
//! lies beside the flow table and off the short way.

use std::net::Ipv4Addr;

use packet::checksum::Delta;
use packet::{Ipv4, Udp, protocol};

use super::create::Wish;
use super::port::Contest;
use super::translate::{Hint, touch};
use super::{address, word};
use crate::blocks::{Class, QuotaKind};
use crate::flow::{Ends, Flow, flag};
use crate::fragment::{Datagram, Later, Part, Translation};
use crate::helper::nbt::Exchange;
use crate::helper::{self, ControlKey, Give, Helpers, Kind, Refusal, Wanted};
use crate::key::Key;
use crate::parse::{self, Parsed, Upper};
use crate::part::{part, part_mut};
use crate::proxied::{self, End, Proxied};
use crate::rules::{Encoding, Redirect, Rules, Tuple};
use crate::{Direction, Hairpin, Nat, Verdict};

/// Ports tried for it.
const PORTS_TRIED: usize = 8;
/// Bytes that an IP option adds for a proxy.
const OPTION_LEN: usize = 8;
/// The longest IPv4 header.
const MAX_HEADER_LEN: usize = 60;

impl Nat {
    /// Marks a new flow that a helper looks after.
    pub(super) fn mark_helper(&mut self, flow: &mut Flow, ends: &Ends) {
        let (inside, remote) = (
            u16::from_be(ends.inside_port),
            u16::from_be(ends.remote_port),
        );
        let helpers = self.config.helpers;
        let Some(kind) = helpers.kind_of(ends.protocol, inside, remote) else {
            return;
        };
        let now = self.clock.said_millis();
        // Of a flow of UDP nothing is remembered.
        if ends.protocol == protocol::UDP || self.helpers.open(kind, helper_key(ends), now) {
            flow.flags |= flag::HELPER;
        }
    }

    /// What lies beside a flow goes with it.
    pub(super) fn end_beside(&mut self, flow: &Flow) {
        let ends = flow.ends();
        if flow.has(flag::HELPER) && ends.protocol == protocol::TCP {
            self.helpers.close(&helper_key(&ends));
        }
        if flow.has(flag::PROXY) {
            self.proxied.close(&tuple(&ends));
        }
    }

    /// Translates a packet of a flow with a helper or to a proxy.
    pub(super) fn helped<const OUT: bool>(
        &mut self,
        name: u32,
        bytes: &mut [u8],
        parsed: &Parsed,
    ) -> Verdict {
        let Some(flow) = self.table.get(name).copied() else {
            return Verdict::NoMapping;
        };
        // The flow's own numbers are the inside's: an outgoing packet is
        // noted before a helper changes it, an incoming one after.
        if OUT {
            self.note::<OUT>(name, bytes, parsed);
        }
        if flow.has(flag::HELPER)
            && let Err(verdict) = self.help::<OUT>(&flow, bytes)
        {
            return verdict;
        }
        if !OUT {
            self.note::<OUT>(name, bytes, parsed);
        }
        parse::rewrite::<OUT>(bytes, parsed, &flow);
        if !OUT && flow.has(flag::PROXY) {
            self.proxied_back(&flow, bytes, parsed);
        }
        Verdict::Translated
    }

    fn note<const OUT: bool>(&mut self, name: u32, bytes: &[u8], parsed: &Parsed) {
        let now = self.clock.now();
        let refreshes = self.refreshes::<OUT>();
        if let Some(flow) = self.table.get_mut(name) {
            let class = flow.class;
            let used = if refreshes { now } else { flow.last_used };
            touch::<OUT>(flow, used, bytes, parsed);
            self.refresh_shared(name, class);
            self.note_class(name, class);
            self.may_give(name);
        }
    }

    /// Lets a helper see a packet of its flow, not translated yet.
    fn help<const OUT: bool>(&mut self, flow: &Flow, bytes: &mut [u8]) -> Result<(), Verdict> {
        let ends = flow.ends();
        let key = helper_key(&ends);
        let alias = (address(ends.alias), u16::from_be(ends.alias_port));
        let now = self.clock.said_millis();
        if ends.protocol == protocol::UDP {
            return self.help_datagram::<OUT>(&ends, &key, alias, bytes);
        }
        if !OUT {
            self.helpers.incoming(&key, alias.0, bytes, now);
            return Ok(());
        }
        self.with_ends(&ends, |helpers, give| {
            helpers.outgoing(&key, alias, bytes, give, now)
        })
    }

    /// The same, of UDP.
    fn help_datagram<const OUT: bool>(
        &mut self,
        ends: &Ends,
        key: &ControlKey,
        alias: (Ipv4Addr, u16),
        bytes: &mut [u8],
    ) -> Result<(), Verdict> {
        let now = self.clock.said_millis();
        let helpers = self.config.helpers;
        match helpers.kind_of(ends.protocol, key.inside_port, key.remote_port) {
            Some(Kind::Tftp) if OUT && helper::tftp::is_request(bytes) => {
                self.expect_transfer(ends, now);
                Ok(())
            }
            Some(Kind::Nbt) => {
                let inside = (key.inside, key.inside_port);
                let (from, to) = if OUT {
                    (inside, alias)
                } else {
                    (alias, inside)
                };
                helper::nbt::exchange(bytes, OUT, &Exchange { from, to });
                Ok(())
            }
            Some(Kind::Sip) if OUT => self.with_ends(ends, |helpers, give| {
                let calling = helpers.calling_mut();
                calling.outgoing(key, alias, bytes, give, now)
            }),
            Some(Kind::Sip) => {
                let written = helper::calling::incoming(key, alias, bytes);
                written.map_err(refused)
            }
            _ => Ok(()),
        }
    }

    /// Lets helpers see a packet that goes out, with the engine's ends for
    /// what it announces.
    fn with_ends(
        &mut self,
        ends: &Ends,
        see: impl FnOnce(&mut Helpers, Give<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Verdict> {
        let now = self.clock.said_millis();
        let from = self.comes_from(ends);
        let mut helpers = std::mem::take(&mut self.helpers);
        let mut give = |wanted: Wanted| {
            // Nobody's address is 0: then it is anybody.
            let from = if wanted.from_anybody { 0 } else { from };
            self.expect(wanted, from, ends.alias, now)
        };
        let result = see(&mut helpers, &mut give);
        self.helpers = helpers;
        result.map_err(refused)
    }

    /// From which address the other end of a flow makes connections of its
    /// own: a host inside that was reached by an alias address makes them
    /// from its alias, which may be another one.
    fn comes_from(&self, ends: &Ends) -> u32 {
        if !self.is_own(ends.remote) {
            return ends.remote;
        }
        let ports = [ends.remote_port, ends.alias_port];
        let back = Key::new(ends.remote, ends.alias, ports, ends.protocol);
        // As its packets leave: its flow is the one of their answers.
        let host = self.left_by(back).map(|flow| flow.inside());
        let host = host.or_else(|| self.elsewhere(ends));
        host.and_then(|host| {
            let current = self.is_own(host);
            let by_rule = self.rules.alias_address(address(host), current);
            let by_rule = by_rule.and_then(|found| found.address);
            by_rule.map(word).or_else(|| self.own_for(host))
        })
        .unwrap_or(ends.remote)
    }

    /// An alias port for a connection that a helper has read of and that
    /// will come from an address, and the redirect that waits for it.
    fn expect(
        &mut self,
        wanted: Wanted,
        from: u32,
        alias: u32,
        now_millis: u64,
    ) -> Option<(Ipv4Addr, u16)> {
        let ends = Ends {
            inside: word(wanted.inside),
            inside_port: wanted.inside_port.to_be(),
            remote: from,
            remote_port: 0,
            alias,
            alias_port: 0,
            protocol: wanted.protocol,
        };
        let alias = address(alias);
        // As many go as come, also without a caller who maintains.
        self.rules.expire(now_millis);
        let until = now_millis.saturating_add(wanted.wait_millis);
        if let Some(first) = wanted.again
            && self.await_run(&ends, &wanted, first, until)
        {
            return Some((alias, first));
        }
        if !self.may_await(&ends, wanted.ports) {
            return None;
        }
        for tried in 0..PORTS_TRIED {
            let same = tried == 0 && self.ports.has(wanted.inside_port);
            let wish = if same { Wish::Same } else { Wish::Any };
            let chosen = self.choose_port(&ends, None, wish, Hint::new(0, 0));
            let chosen = u16::from_be(chosen.ok()?.port);
            let Some(first) = self.expected_run(&ends, &wanted, chosen) else {
                continue;
            };
            for step in 0..wanted.ports {
                self.await_at(&ends, &wanted, (first, step), until)?;
            }
            return Some((alias, first));
        }
        None
    }

    /// The redirect that waits at one of some alias ports in a row.
    fn await_at(
        &mut self,
        ends: &Ends,
        wanted: &Wanted,
        (first, step): (u16, u16),
        until_millis: u64,
    ) -> Option<()> {
        let (port, inside_port) = (first + step, wanted.inside_port.wrapping_add(step));
        let redirect = Redirect::port(wanted.protocol, wanted.inside, inside_port, port);
        let remote = (ends.remote != 0).then(|| address(ends.remote));
        let redirect = redirect.at(address(ends.alias)).from(remote, None);
        self.await_by(redirect, until_millis)
    }

    /// A redirect that waits for one packet is a port of its subscriber's.
    pub(super) fn await_by(&mut self, redirect: Redirect, until_millis: u64) -> Option<()> {
        let tracked = self.tracked.as_ref();
        let subscriber = tracked.zip(redirect.inside).and_then(|(tracked, inside)| {
            let inside = inside.to_bits();
            let is_inside = self.inside.is_empty() || self.inside.has(inside);
            is_inside.then(|| tracked.subscribers.address_of(inside))
        });
        let made = self.rules.expect_for(subscriber, redirect, until_millis);
        made.ok().map(|_| ())
    }

    /// What helpers awaited goes on beside new rules, where these do not
    /// speak for its ports.
    pub(super) fn renew_awaited(&mut self, former: &Rules) {
        let now = self.clock.said_millis();
        for (redirect, until) in former.expected() {
            // One of the rules that is used once has no end.
            let is_helpers = (now + 1..u64::MAX).contains(&until);
            let place = redirect.protocol.zip(redirect.alias);
            if let Some((protocol, alias)) = place.filter(|_| is_helpers)
                && self.has_room_at(protocol, alias, (redirect.alias_port, redirect.ports))
            {
                let _ = self.await_by(*redirect, until);
            }
        }
    }

    /// Whether the subscriber of an inside end may have so many ports more
    /// that helpers await (RFC 6888 REQ-4).
    fn may_await(&mut self, ends: &Ends, ports: u16) -> bool {
        let tracked = self.tracked.as_ref();
        let name = tracked.and_then(|of| of.subscribers.find(u32::from_be(ends.inside)));
        let Some(entry) = name.and_then(|name| self.entry(name)) else {
            return true;
        };
        let (quotas, awaited) = (
            &self.config.subscribers.quotas,
            self.rules.awaited(entry.address),
        );
        let left = entry.ports_left(Class::of(ends.protocol), quotas, awaited);
        if left < u32::from(ports) {
            self.over_quota(name, QuotaKind::Ports);
            return false;
        }
        true
    }

    /// What was announced before is waited for at the alias ports that it
    /// had, unless another one has them now. Flows that it has there stay.
    fn await_run(&mut self, ends: &Ends, wanted: &Wanted, first: u16, until_millis: u64) -> bool {
        if !self.ports.has(first) || first.checked_add(wanted.ports - 1).is_none() {
            return false;
        }
        let now = self.clock.said_millis();
        for step in 0..wanted.ports {
            let port = (first + step).to_be();
            if self.config.blocks.is_some() && !self.is_in_block(ends.inside, ends.alias, port) {
                return false;
            }
            let asked = Tuple {
                protocol: ends.protocol,
                own: address(ends.alias),
                own_port: first + step,
                remote: address(ends.remote),
                remote_port: 0,
            };
            let own = (wanted.inside, wanted.inside_port.wrapping_add(step));
            let awaited = self.rules.inbound(&asked, false, now);
            let is_awaited = match awaited {
                None => false,
                Some(found) if (found.address, found.port) == (Some(own.0), own.1) => true,
                Some(_) => return false,
            };
            if !is_awaited
                && (!self.may_await(ends, 1)
                    || self
                        .await_at(ends, wanted, (first, step), until_millis)
                        .is_none())
            {
                return false;
            }
        }
        true
    }

    /// As many ports as are wanted, a free one (host order) among them, that
    /// nobody else is awaited at. Two begin as their inside ports do, even or
    /// odd.
    fn expected_run(&mut self, ends: &Ends, wanted: &Wanted, chosen: u16) -> Option<u16> {
        let is_other = u16::from(wanted.ports > 1) & (chosen ^ wanted.inside_port) & 1;
        let first = chosen ^ is_other;
        let last = first.checked_add(wanted.ports - 1)?;
        let block = self.block_at(ends.alias, chosen.to_be());
        let group = self.group(ends.alias, ends.remote, 0, ends.protocol);
        let contest = Contest::without_taking(ends, None, group);
        let now = self.clock.said_millis();
        for port in first..=last {
            let asked = Tuple {
                protocol: ends.protocol,
                own: address(ends.alias),
                own_port: port,
                remote: address(ends.remote),
                remote_port: 0,
            };
            let is_awaited = self.rules.inbound(&asked, false, now).is_some();
            let is_ours = port == chosen
                || self.ports.has(port)
                    && self.block_at(ends.alias, port.to_be()) == block
                    && self.is_free(&contest, port.to_be()).is_some();
            if is_awaited || !is_ours || self.has_data(ends, port) {
                return None;
            }
        }
        Some(first)
    }

    /// A TFTP server will answer from any port of its own to the end that has
    /// asked: one redirect waits for the first packet, which makes the flow
    /// of the transfer. Without room for it the transfer does not begin.
    fn expect_transfer(&mut self, ends: &Ends, now_millis: u64) {
        let (from, alias) = (address(self.comes_from(ends)), address(ends.alias));
        let port = u16::from_be(ends.alias_port);
        self.rules.expire(now_millis);
        let asked = Tuple {
            protocol: protocol::UDP,
            own: alias,
            own_port: port,
            remote: from,
            remote_port: 0,
        };
        // A request that comes again waits for the same.
        if self.rules.inbound(&asked, false, now_millis).is_some() {
            return;
        }
        let inside = (address(ends.inside), u16::from_be(ends.inside_port));
        let redirect = Redirect::port(protocol::UDP, inside.0, inside.1, port);
        let redirect = redirect.at(alias).from(Some(from), None);
        let until = now_millis.saturating_add(helper::EXPECTED_MILLIS);
        if self.may_await(ends, 1) {
            let _ = self.await_by(redirect, until);
        }
    }

    /// Whether a server's data connection that was made before has an alias
    /// port (host order): it would have the next one's packets as well.
    fn has_data(&self, ends: &Ends, port: u16) -> bool {
        let ports = [helper::ftp::DATA_PORT.to_be(), port.to_be()];
        let key = Key::new(ends.remote, ends.alias, ports, ends.protocol);
        self.table
            .find::<false>(self.table.hasher.hash(key), key)
            .is_some()
    }

    /// A PPTP call's GRE packet. `None`: no helper knows the call.
    pub(super) fn call<const OUT: bool>(&mut self, bytes: &mut [u8]) -> Option<Verdict> {
        let now = self.clock.said_millis();
        if !OUT {
            let known = self.helpers.calls_mut().translate_in(bytes, now);
            return known.then_some(Verdict::Translated);
        }
        let (from, to) = Ipv4::new(&*bytes)
            .ok()
            .map(|ip| (ip.source(), ip.destination()))?;
        if !self.helpers.calls_mut().translate_out(bytes, now) {
            return None;
        }
        if self.config.hairpin != Hairpin::Engine || !self.is_own(word(to)) {
            return Some(Verdict::Translated);
        }
        if self.helpers.calls_mut().translate_in(bytes, now) {
            return Some(Verdict::Hairpinned);
        }
        if !self.is_ours::<false>(bytes) {
            // The other half is another engine's.
            return Some(Verdict::Translated);
        }
        if let Ok(mut ip) = Ipv4::new(bytes) {
            ip.set_source(from);
        }
        None
    }

    /// [`Nat::undo`] for a call's GRE packet, or any GRE by its addresses.
    pub(super) fn undo_call(&self, bytes: &mut [u8], parsed: &Parsed) -> Verdict {
        let key = parsed.key;
        let call = u16::from_be(key.destination_port());
        let left = (address(key.source()), address(key.destination()), call);
        let calls = self.helpers.calls();
        let inside = calls.sender(left, self.clock.said_millis());
        let inside = inside.or_else(|| {
            let flow = self.left_by(key.without_ports())?;
            Some(address(flow.inside()))
        });
        match (inside, Ipv4::new(bytes)) {
            (Some(inside), Ok(mut ip)) => {
                ip.set_source(inside);
                Verdict::Translated
            }
            _ => Verdict::NoMapping,
        }
    }

    /// Gives a packet to a proxy the destination that it was meant for.
    pub(super) fn meant_again(&self, flow: &Flow, bytes: &mut [u8], parsed: &Parsed) {
        if let Some(meant) = self.proxied.meant(&tuple(&flow.ends())) {
            set_remote::<true>(bytes, parsed, meant);
        }
    }

    /// A packet that goes out, has no flow, and may be for a proxy. `None`:
    /// it is not.
    pub(super) fn proxied_out(&mut self, bytes: &mut [u8], parsed: &Parsed) -> Option<Verdict> {
        if !matches!(parsed.upper, Upper::Tcp | Upper::Udp) {
            return None;
        }
        let asked = key_tuple(parsed.key);
        let known = self.proxied.outgoing(&asked);
        let proxied = match known {
            Some(proxied) => proxied,
            None => {
                let rule = self.rules.proxy(&asked)?;
                // The proxy's own connections are what they are.
                (rule.server != asked.own).then(|| proxied::Table::of(rule, &asked))?
            }
        };
        let room = bytes.len() >= usize::from(parsed.total_len) + OPTION_LEN
            && usize::from(parsed.at) + OPTION_LEN <= MAX_HEADER_LEN;
        if proxied.encoding == Encoding::IpHeader && !room {
            return Some(Verdict::HelperRefused);
        }
        set_remote::<true>(bytes, parsed, proxied.server);
        let verdict = self.through_proxy(bytes, parsed, asked, proxied, known.is_some());
        if !verdict.goes_on() {
            set_remote::<true>(bytes, parsed, proxied.meant);
        } else if proxied.encoding == Encoding::IpHeader {
            // There is room: that was seen above.
            let (meant, port) = proxied.meant;
            let _ = helper::stream::put_option(bytes, meant, port);
        }
        Some(verdict)
    }

    fn through_proxy(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
        asked: Tuple,
        proxied: Proxied,
        known: bool,
    ) -> Verdict {
        let to_server = proxied::to(asked, proxied.server);
        let (server, port) = proxied.server;
        let ports = [parsed.key.source_port(), port.to_be()];
        let key = Key::new(parsed.key.source(), word(server), ports, asked.protocol);
        let parsed = Parsed { key, ..*parsed };
        let hash = self.table.hasher.hash(key);
        if let Some(name) = self.find_alive::<true>(&parsed, hash) {
            // Another connection of this very port to the proxy?
            return match self.proxied.meant(&to_server) {
                Some(meant) if meant == proxied.meant => {
                    self.special::<true>(name, bytes, &parsed, false)
                }
                _ => Verdict::Denied,
            };
        }
        debug_assert!(!known || self.proxied.meant(&to_server).is_none());
        if self.proxied.is_full() {
            return Verdict::TableFull;
        }
        let name = match self.new_flow_out(&parsed, Hint::new(hash, 0)) {
            Ok(name) => name,
            Err(verdict) => return verdict,
        };
        let now = self.clock.said_millis();
        let mut flags = flag::PROXY;
        if let Some(flow) = self.table.get(name)
            && proxied.encoding == Encoding::TcpStream
            && self
                .helpers
                .open_proxied(helper_key(&flow.ends()), proxied.meant, now)
        {
            flags |= flag::HELPER;
        }
        if let Some(flow) = self.table.get_mut(name) {
            flow.flags |= flags;
        }
        self.proxied.open(asked, proxied);
        self.special::<true>(name, bytes, &parsed, true)
    }

    /// Gives an answer of a proxy the source that the inside expects.
    fn proxied_back(&mut self, flow: &Flow, bytes: &mut [u8], parsed: &Parsed) {
        if let Some(meant) = self.proxied.meant(&tuple(&flow.ends())) {
            set_remote::<false>(bytes, parsed, meant);
        }
    }

    /// The first fragment of a datagram: what becomes of it is kept for the
    /// others.
    pub(super) fn first_fragment<const OUT: bool>(
        &mut self,
        bytes: &mut [u8],
        parsed: &Parsed,
    ) -> Verdict {
        let Ok(ip) = Ipv4::new(&*bytes) else {
            return Verdict::Malformed;
        };
        let datagram = Datagram::of(direction::<OUT>(), &ip);
        let verdict = self.flow_packet::<OUT>(bytes, parsed);
        let now = self.clock.said_millis();
        let translation = Ipv4::new(&*bytes).ok().map(|ip| Translation {
            source: ip.source(),
            destination: ip.destination(),
            verdict,
        });
        let translation = translation.filter(|_| verdict.goes_on());
        self.fragments.first(datagram, translation, now);
        verdict
    }

    /// A later fragment: as its first one, or held until that comes.
    pub(super) fn later_fragment<const OUT: bool>(&mut self, bytes: &mut [u8]) -> Verdict {
        let Ok(ip) = Ipv4::new(&*bytes) else {
            return Verdict::Malformed;
        };
        if Part::of(&ip) != Part::Later {
            return Verdict::Malformed;
        }
        let datagram = Datagram::of(direction::<OUT>(), &ip);
        let packet = part(bytes, 0..ip.total_len());
        let now = self.clock.said_millis();
        match self.fragments.later(datagram, packet, now) {
            Later::Known(translation) => {
                if let Ok(mut ip) = Ipv4::new(bytes) {
                    translation.apply(&mut ip);
                }
                translation.verdict
            }
            Later::Refused => Verdict::NoMapping,
            Later::Held => Verdict::FragmentWaiting,
            Later::NoRoom if self.config.limits.fragments.held_bytes == 0 => match OUT {
                true => self.later_fragment_alone(bytes),
                false => Verdict::FragmentWaiting,
            },
            Later::NoRoom => {
                self.statistics.fragments_refused += u64::from(OUT);
                Verdict::TableFull
            }
        }
    }

    /// A later fragment that goes out before its first one, where none is
    /// held: it must not leave with a source of the inside, which is all of
    /// it that can be told.
    fn later_fragment_alone(&self, bytes: &mut [u8]) -> Verdict {
        let Ok(mut ip) = Ipv4::new(bytes) else {
            return Verdict::Malformed;
        };
        match self.alias_of_host(word(ip.source())) {
            Some(alias) => {
                ip.set_source(address(alias));
                Verdict::Translated
            }
            None => Verdict::Passed,
        }
    }

    /// The next fragment that was held and whose first one has come since,
    /// translated, in `buffer`: its length, which way it goes and its
    /// verdict. Ask after each call that may have brought a first one, until
    /// there is none. O(its length).
    pub fn next_fragment(
        &mut self,
        buffer: &mut [u8],
        now_millis: u64,
    ) -> Option<(usize, Direction, Verdict)> {
        let (datagram, len, verdict) = self.next_fragment_of(buffer, now_millis)?;
        Some((len, datagram.direction, verdict))
    }

    /// The same, with what is known of its datagram as it came.
    pub fn next_fragment_of(
        &mut self,
        buffer: &mut [u8],
        now_millis: u64,
    ) -> Option<(Datagram, usize, Verdict)> {
        if !self.fragments.has_ready() {
            return None;
        }
        self.begin(now_millis);
        let (datagram, len) = self.fragments.next_ready(buffer)?;
        let bytes = part_mut(buffer, 0..len);
        let verdict = match datagram.direction {
            Direction::Out => self.later_fragment::<true>(bytes),
            Direction::In => self.later_fragment::<false>(bytes),
        };
        Some((datagram, len, verdict))
    }
}

/// What becomes of a packet that a helper refused.
fn refused(refusal: Refusal) -> Verdict {
    match refusal {
        Refusal::NoPort => Verdict::PortsExhausted,
        _ => Verdict::HelperRefused,
    }
}

fn direction<const OUT: bool>() -> Direction {
    if OUT { Direction::Out } else { Direction::In }
}

pub(super) fn helper_key(ends: &Ends) -> ControlKey {
    ControlKey {
        inside: address(ends.inside),
        inside_port: u16::from_be(ends.inside_port),
        remote: address(ends.remote),
        remote_port: u16::from_be(ends.remote_port),
    }
}

pub(super) fn tuple(ends: &Ends) -> Tuple {
    Tuple {
        protocol: ends.protocol,
        own: address(ends.inside),
        own_port: u16::from_be(ends.inside_port),
        remote: address(ends.remote),
        remote_port: u16::from_be(ends.remote_port),
    }
}

/// Of a packet that goes out.
pub(super) fn key_tuple(key: Key) -> Tuple {
    Tuple {
        protocol: key.protocol(),
        own: address(key.source()),
        own_port: u16::from_be(key.source_port()),
        remote: address(key.destination()),
        remote_port: u16::from_be(key.destination_port()),
    }
}

/// Writes the end of a packet that is not ours (the destination of one that
/// goes out), and both checksums.
fn set_remote<const OUT: bool>(bytes: &mut [u8], parsed: &Parsed, (remote, port): End) {
    let port_at = if OUT { 2 } else { 0 };
    let Ok(mut ip) = Ipv4::new(&mut *bytes) else {
        return;
    };
    let addresses = if OUT {
        ip.set_destination(remote)
    } else {
        ip.set_source(remote)
    };
    let Some(rest) = bytes.get_mut(usize::from(parsed.at)..) else {
        return;
    };
    let field = rest.get(port_at..).and_then(|rest| rest.first_chunk::<2>());
    let old = field.map_or(0, |field| u16::from_ne_bytes(*field));
    let delta = addresses.and(Delta::of16(old, port.to_be()));
    parse::put(rest, port_at, port.to_be());
    match parsed.upper {
        Upper::Tcp => parse::update(rest, 16, delta),
        Upper::Udp => {
            if let Ok(mut udp) = Udp::new(rest) {
                udp.set_checksum(delta.apply_udp(udp.checksum()));
            }
        }
        _ => {}
    }
}
