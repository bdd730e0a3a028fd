//! Flows of outgoing packets: behind which alias address and port each is
//! to be.

use super::create::{Plan, Wish, is_ported};
use super::mapped::MappingChoice;
use super::port::Chosen;
use super::translate::Hint;
use super::{address, word};
use crate::flow::{Ends, flag};
use crate::key::Key;
use crate::parse::{Parsed, Upper};
use crate::rules::{Handle, Tuple};
use crate::{Nat, Pooling, PortChoice, Verdict};

/// Alias addresses tried for one packet, where hosts are not bound to one.
const ADDRESSES_TRIED: usize = 8;
/// Which alias an outgoing flow is to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alias {
    pub address: u32,
    pub port: Wish,
    /// Whether other addresses of the pool would do.
    pooled: bool,
}

impl Nat {
    /// Makes the flow of an outgoing packet.
    #[inline(never)]
    pub(super) fn new_out(&mut self, parsed: &Parsed, hint: Hint) -> Result<u32, Verdict> {
        self.sweep(self.swept_a_flow());
        if self.config.mode.proxy_only || self.is_exempt(parsed.key.destination()) {
            return Err(Verdict::Passed);
        }
        self.new_flow_out(parsed, hint)
    }

    /// Makes the flow of an outgoing packet, whatever the modes say.
    pub(super) fn new_flow_out(&mut self, parsed: &Parsed, hint: Hint) -> Result<u32, Verdict> {
        let key = parsed.key;
        let subscriber = self.new_subscriber(key.source())?;
        let hint = Hint { subscriber, ..hint };
        let addressless = self.statistics.addresses_exhausted;
        let made = self.new_flow_of(parsed, hint);
        let is_refused = matches!(made, Err(Verdict::PortsExhausted | Verdict::OverQuota));
        if is_refused && self.statistics.addresses_exhausted == addressless {
            self.count_for(u32::from_be(key.source()), |counts| counts.refused += 1);
        }
        made
    }

    /// The same, of a subscriber that is known.
    fn new_flow_of(&mut self, parsed: &Parsed, hint: Hint) -> Result<u32, Verdict> {
        let key = parsed.key;
        self.admit_session(hint.subscriber, key.protocol())?;
        let alias = self.alias_for(key, parsed.upper, hint.subscriber)?;
        let made = if alias.pooled && self.config.pooling == Pooling::Arbitrary {
            // All of them before a port is taken from anybody.
            let free = Hint {
                gives: false,
                ..hint
            };
            match self.out_through_any(parsed, alias, free) {
                Err(Verdict::PortsExhausted) => self.out_through_any(parsed, alias, hint),
                made => made,
            }
        } else {
            self.out_through(key, parsed.upper, alias, hint)
        };
        if made.is_err() && alias.address == key.source() && self.is_open() {
            return Err(Verdict::Passed);
        }
        made
    }

    /// Makes an outgoing flow behind one of several alias addresses.
    fn out_through_any(
        &mut self,
        parsed: &Parsed,
        mut alias: Alias,
        hint: Hint,
    ) -> Result<u32, Verdict> {
        let mut made = Err(Verdict::PortsExhausted);
        if self.config.blocks.is_some()
            && let Some(name) = hint.subscriber
        {
            for address in self.addresses_for(name, ADDRESSES_TRIED) {
                alias.address = address;
                made = self.out_through(parsed.key, parsed.upper, alias, hint);
                if made != Err(Verdict::PortsExhausted) {
                    break;
                }
            }
            return made;
        }
        for _ in 0..ADDRESSES_TRIED.min(self.pool.len()) {
            made = self.out_through(parsed.key, parsed.upper, alias, hint);
            if made != Err(Verdict::PortsExhausted) {
                break;
            }
            alias.address = self.next_own(alias.address);
        }
        made
    }

    /// Whether what comes in without a flow passes as it is.
    fn is_open(&self) -> bool {
        !self.config.mode.deny_incoming && self.config.target.is_none()
    }

    /// Which alias an outgoing packet's source gets.
    fn alias_for(
        &mut self,
        key: Key,
        upper: Upper,
        subscriber: Option<u32>,
    ) -> Result<Alias, Verdict> {
        if let Some(alias) = self.alias_by_rule(key, upper) {
            return Ok(alias);
        }
        let source = key.source();
        if self.config.mode.proxy_only || self.is_left_alone(source) {
            // It gets a flow all the same: answers come in by it where
            // unsolicited packets are refused, and it stays as it is when
            // the modes change.
            return Ok(Alias {
                address: source,
                port: Wish::Exactly(key.source_port()),
                pooled: false,
            });
        }
        let address = match (self.config.blocks.is_some(), subscriber) {
            (false, _) => self.own_for(source).ok_or(Verdict::Passed)?,
            (true, Some(name)) => self.address_for(name)?,
            (true, None) => return Err(Verdict::Denied),
        };
        let port = match self.config.port_choice {
            PortChoice::Random => Wish::Any,
            PortChoice::Same => Wish::Same,
        };
        Ok(Alias {
            address,
            port,
            pooled: true,
        })
    }

    /// Whether a host (memory order) keeps its address, by the modes.
    pub(super) fn is_left_alone(&self, host: u32) -> bool {
        let mode = self.config.mode;
        let private_only = mode.unregistered_only || mode.carrier_grade;
        private_only && !is_private(host, mode.carrier_grade)
    }

    fn alias_by_rule(&mut self, key: Key, upper: Upper) -> Option<Alias> {
        let (alias, handle) = self.alias_laid_down(key, upper)?;
        if let Some(handle) = handle {
            self.rules.take(handle);
        }
        Some(alias)
    }

    /// Which alias a redirect gives the source of a packet that goes out, and
    /// the redirect, if that is to know.
    pub(super) fn alias_laid_down(
        &self,
        key: Key,
        upper: Upper,
    ) -> Option<(Alias, Option<Handle>)> {
        if self.rules.is_empty() {
            return None;
        }
        let tuple = Tuple {
            protocol: key.protocol(),
            own: address(key.source()),
            own_port: u16::from_be(key.source_port()),
            remote: address(key.destination()),
            remote_port: u16::from_be(key.destination_port()),
        };
        let current = self.is_own(key.source());
        let own = self.own_for(key.source());
        let now = self.clock.said_millis();
        let pooled = false;
        if let Some(found) = self.rules.outbound(&tuple, current, now) {
            let address = found.address.map(word).or(own)?;
            let port = if found.port == 0 || !is_ported(upper) {
                Wish::Same
            } else {
                Wish::Exactly(found.port.to_be())
            };
            let alias = Alias {
                address,
                port,
                pooled,
            };
            return Some((alias, Some(found.handle)));
        }
        let found = self.rules.alias_address(tuple.own, current)?;
        let address = found.address.map(word).or(own)?;
        let alias = Alias {
            address,
            port: Wish::Same,
            pooled,
        };
        Some((alias, None))
    }

    /// The address that packets of a host leave with, of which no more is
    /// known; `None`: they pass as they are.
    pub(super) fn alias_of_host(&self, source: u32) -> Option<u32> {
        let own = self.own_for(source);
        let by_rule = self
            .rules
            .alias_address(address(source), self.is_own(source));
        if let Some(found) = by_rule {
            return found.address.map(word).or(own);
        }
        if self.config.mode.proxy_only || self.is_left_alone(source) {
            return None;
        }
        own
    }

    /// Makes an outgoing flow behind one alias address.
    fn out_through(
        &mut self,
        key: Key,
        upper: Upper,
        alias: Alias,
        hint: Hint,
    ) -> Result<u32, Verdict> {
        let mut ends = Ends {
            inside: key.source(),
            inside_port: key.source_port(),
            remote: key.destination(),
            remote_port: key.destination_port(),
            alias: alias.address,
            alias_port: key.source_port(),
            protocol: key.protocol(),
        };
        let mut shared = MappingChoice::default();
        let mut chosen = Chosen::default();
        if is_ported(upper) {
            let part = self.remote_part(&ends);
            let exactly = matches!(alias.port, Wish::Exactly(_));
            shared = match part {
                Some(remote) if !exactly => self.shared_for(&ends, remote, alias.pooled),
                _ => MappingChoice::default(),
            };
            if let Some(mapping) = shared.mapping.and_then(|name| self.mappings.get(name)) {
                (ends.alias, ends.alias_port) = (mapping.alias, mapping.alias_port);
            } else {
                chosen = self.choose_port(&ends, shared.make_for, alias.port, hint)?;
                ends.alias_port = chosen.port;
            }
        }
        let flags = flag::SEEN_OUT | self.hairpin_flag(&ends);
        let plan = Plan {
            flags,
            shared,
            chosen,
            ported: is_ported(upper),
            out: hint.hash,
            // Done before its port was chosen.
            sweep: 0,
            back: None,
        };
        self.make(&ends, &plan)
    }
}

/// Whether an address is private (RFC 1918), or carrier-grade (RFC 6598) if
/// those count.
pub(super) fn is_private(source: u32, carrier_grade: bool) -> bool {
    let source = address(source);
    let [first, second, ..] = source.octets();
    source.is_private() || carrier_grade && first == 100 && second & 0xc0 == 64
}
