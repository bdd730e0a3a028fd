//! Flows of incoming packets: to whom each goes, if to anybody.

use super::create::{Plan, is_ported};
use super::mapped::MappingChoice;
use super::outgoing::is_private;
use super::port::Chosen;
use super::{address, word};
use crate::flow::{Ends, flag};
use crate::key::Key;
use crate::mapping::Kind;
use crate::parse::{Parsed, Upper};
use crate::rules::{Found, Tuple};
use crate::{Dependence, Nat, State, Verdict, Why};

impl Nat {
    /// Makes the flow of an incoming packet: by a redirect, a mapping that
    /// lets it in, an address redirect, or the target.
    #[inline(never)]
    pub(super) fn new_in(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        let key = parsed.key;
        if self.is_exempt(key.source()) && !self.is_own(key.destination()) {
            return Err(Verdict::Passed);
        }
        if !self.rules.is_empty()
            && let Some(found) = self.redirect(key)
        {
            let is_awaited = self.rules.is_awaited(found.handle);
            self.rules.take(found.handle);
            return self.in_by_rule(key, parsed.upper, &found, is_awaited);
        }
        if self.mappings.len() > 0
            && let Some(made) = self.in_by_mapping(key)
        {
            return made;
        }
        if self.config.mode.deny_incoming {
            return self.in_to_foreign(parsed);
        }
        if !self.rules.is_empty() {
            let alias = address(key.destination());
            let current = self.is_own(key.destination());
            if let Some(found) = self.rules.original_address(alias, current) {
                // The next server's turn comes, where there are several.
                self.rules.take(found.handle);
                return self.in_by_rule(key, parsed.upper, &found, false);
            }
        }
        let Some(target) = self.config.target else {
            return self.in_as_it_is(parsed);
        };
        self.in_to(
            key,
            parsed.upper,
            word(target),
            key.destination_port(),
            MappingChoice::default(),
        )
    }

    /// Where unsolicited packets are refused: to an address that is no alias
    /// it passes all the same where the caller routes such
    /// ([`crate::Config::passes_foreign`]).
    fn in_to_foreign(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        if self.is_foreign(parsed.key.destination()) {
            self.in_as_it_is(parsed)
        } else {
            Err(Verdict::NoMapping)
        }
    }

    /// Whether what comes in to an address (memory order) passes as it is
    /// where unsolicited packets are refused.
    pub(super) fn is_foreign(&self, to: u32) -> bool {
        let host = address(to);
        self.config.passes_foreign
            && !self.is_own(to)
            && !is_private(to, true)
            && self.rules.original_address(host, false).is_none()
    }

    /// To whom it was sent: this machine, or a host with an address of its
    /// own. It goes as it is, and a flow sees to it that its answer leaves
    /// by the address and port that were asked. Where there can be none, it
    /// goes all the same.
    fn in_as_it_is(&mut self, parsed: &Parsed) -> Result<u32, Verdict> {
        let key = parsed.key;
        let translates = !self.pool.is_empty() || !self.rules.is_empty();
        if !translates || self.config.mode.proxy_only || self.speaks(key) {
            return Err(Verdict::Passed);
        }
        let (inside, port) = (key.destination(), key.destination_port());
        let made = self.in_to(key, parsed.upper, inside, port, MappingChoice::default());
        made.map_err(|_| Verdict::Passed)
    }

    /// Whether the receiver of an unasked packet has a conversation with its
    /// sender by the same two ends, through another alias: that one stays.
    fn speaks(&self, key: Key) -> bool {
        let out = key.turned();
        let name = self.table.find::<true>(self.table.hasher.hash(out), out);
        let flow = name.and_then(|name| self.table.get(name));
        flow.is_some_and(|flow| {
            let spoken = flow.has(flag::SEEN_OUT | flag::SEEN_IN);
            self.alive(flow) && spoken && !flow.state().is_over()
        })
    }

    /// The redirect of a port or protocol for a packet that comes in.
    pub(super) fn redirect(&self, key: Key) -> Option<Found> {
        let tuple = Tuple {
            protocol: key.protocol(),
            own: address(key.destination()),
            own_port: u16::from_be(key.destination_port()),
            remote: address(key.source()),
            remote_port: u16::from_be(key.source_port()),
        };
        let current = self.is_own(key.destination());
        self.rules
            .inbound(&tuple, current, self.clock.said_millis())
    }

    /// `is_awaited`: a helper has opened the port, and it counts.
    fn in_by_rule(
        &mut self,
        key: Key,
        upper: Upper,
        found: &Found,
        is_awaited: bool,
    ) -> Result<u32, Verdict> {
        let inside = found.address.map_or(key.destination(), word);
        let port = match found.port {
            0 => key.destination_port(),
            port => port.to_be(),
        };
        let mark = match is_awaited {
            true => self.mark_of_awaited(inside, key.destination(), key.destination_port()),
            false => 0,
        };
        self.in_with(key, upper, (inside, port), MappingChoice::default(), mark)
    }

    /// By a shared mapping; `None`: there is none for the endpoint.
    fn in_by_mapping(&mut self, key: Key) -> Option<Result<u32, Verdict>> {
        let behaviour = self.behaviour(key.protocol())?;
        let (alias, port, remote) = (key.destination(), key.destination_port(), key.source());
        let protocol = key.protocol();
        let own = |remote| (alias, port, remote, protocol);
        let any = self.shared_at(own(0), Kind::Mapping);
        let name = any.or_else(|| self.shared_at(own(remote), Kind::Mapping))?;
        let mapping = *self.mappings.get(name)?;
        let allowed = match behaviour.filtering {
            Dependence::Endpoint => true,
            Dependence::Address => {
                let inside = (mapping.inside, mapping.inside_port);
                mapping.remote == remote || self.permit_at(own(remote), inside).is_some()
            }
            Dependence::AddressAndPort => false,
        };
        if !allowed {
            return Some(Err(Verdict::Denied));
        }
        let shared = MappingChoice {
            mapping: Some(name),
            make_for: None,
        };
        Some(self.in_to(key, Upper::Udp, mapping.inside, mapping.inside_port, shared))
    }

    /// Makes an incoming flow to an inside endpoint.
    fn in_to(
        &mut self,
        key: Key,
        upper: Upper,
        inside: u32,
        inside_port: u16,
        shared: MappingChoice,
    ) -> Result<u32, Verdict> {
        self.in_with(key, upper, (inside, inside_port), shared, 0)
    }

    /// The same; `mark`: how its alias port counts, as [`Chosen`] has it.
    fn in_with(
        &mut self,
        key: Key,
        upper: Upper,
        (inside, inside_port): (u32, u16),
        shared: MappingChoice,
        mark: u32,
    ) -> Result<u32, Verdict> {
        // An ICMP query's identifier stands on the alias side only.
        let (inside_port, alias_port) = match upper {
            Upper::Plain | Upper::Call => (0, 0),
            _ => (inside_port, key.destination_port()),
        };
        let ends = Ends {
            inside,
            inside_port,
            remote: key.source(),
            remote_port: key.source_port(),
            alias: key.destination(),
            alias_port,
            protocol: key.protocol(),
        };
        let plan = Plan {
            flags: flag::SEEN_IN | flag::STRANGER | self.hairpin_flag(&ends),
            shared,
            chosen: Chosen {
                mark,
                ..Chosen::default()
            },
            ported: is_ported(upper),
            out: self.give_way(&ends)?,
            sweep: self.swept_a_flow(),
            back: None,
        };
        self.make(&ends, &plan)
    }

    /// Whether the inside may take an incoming flow: one that goes out by
    /// the same inside endpoints is ended if it is no connection. Returns
    /// the hash of the key outward.
    fn give_way(&mut self, ends: &Ends) -> Result<u64, Verdict> {
        let key = ends.out_key();
        let hash = self.table.hasher.hash(key);
        let Some(name) = self.table.find::<true>(hash, key) else {
            return Ok(hash);
        };
        let Some(flow) = self.table.get(name) else {
            return Ok(hash);
        };
        if self.alive(flow) && flow.state() == State::TcpEstablished {
            return Err(Verdict::Denied);
        }
        self.end(name, Why::Removed);
        Ok(hash)
    }
}
