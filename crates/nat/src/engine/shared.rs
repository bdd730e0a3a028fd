//! An engine as one of several: what it asks of the [`Shards`], and what
//! is asked of it by who distributes the packets.

use std::net::Ipv4Addr;

use packet::checksum::Delta;
use packet::{Icmp, Ipv4, gre, icmp, protocol};

use super::{Nat, address, word};
use crate::flow::{Ends, Flow};
use crate::parse::{self, Parse, rewrite_address};
use crate::rules::Tuple;
use crate::shards::Owner;
use crate::{Direction, Shards, ShardsError, State};

impl Nat {
    /// How packets are distributed over so many engines that are all like this one,
    /// but for their `max_flows`: the same addresses, ports, rules, modes and
    /// seed. O(redirects).
    pub fn shards(&self, parts: u16) -> Result<Shards, ShardsError> {
        Shards::new(self.config(), self.rules(), parts)
    }

    /// Whether a packet of a direction is this engine's to translate. Its
    /// datagram's, where it begins one.
    pub(super) fn is_ours<const OUT: bool>(&self, bytes: &[u8]) -> bool {
        let Some(part) = &self.shard else {
            return true;
        };
        match part.shards.rare::<OUT>(bytes, true) {
            Owner::Any => true,
            Owner::Shard(number) | Owner::Meets(number) => number == part.number,
            Owner::Call(number, other) => match self.knows::<OUT>(bytes) {
                true => number == part.number,
                false => number == part.number && other == part.number,
            },
            Owner::Each => self.knows::<OUT>(bytes),
        }
    }

    /// Whether it knows the PPTP call of an enhanced GRE packet, or of the
    /// packet in an ICMP error ([`Owner::Call`], [`Owner::Each`]). O(1).
    pub fn knows_call(&self, direction: Direction, bytes: &[u8]) -> bool {
        match (direction == Direction::Out) != self.config.mode.reverse {
            true => self.knows::<true>(bytes),
            false => self.knows::<false>(bytes),
        }
    }

    fn knows<const OUT: bool>(&self, bytes: &[u8]) -> bool {
        let now = self.clock.said_millis();
        let calls = self.helpers.calls();
        let Ok(ip) = Ipv4::new(bytes) else {
            return false;
        };
        if ip.protocol() != protocol::ICMP {
            return calls.knows(bytes, OUT, now);
        }
        let quoted = ip.payload().get(icmp::HEADER_LEN..).unwrap_or_default();
        let Ok(quoted) = Ipv4::parse_truncated(quoted) else {
            return false;
        };
        let Some(call) = gre::call_id_of_cut(quoted.payload()) else {
            return false;
        };
        let (source, destination) = (quoted.source(), quoted.destination());
        match OUT {
            true => calls.as_it_came((destination, source, call), now).is_some(),
            false => calls.sender((source, destination, call), now).is_some(),
        }
    }

    /// The host behind the alias endpoint that is a flow's other end, where
    /// another engine has it, as far as redirects say.
    pub(super) fn elsewhere(&self, ends: &Ends) -> Option<u32> {
        self.shard.as_ref()?;
        let tuple = Tuple {
            protocol: ends.protocol,
            own: address(ends.remote),
            own_port: u16::from_be(ends.remote_port),
            remote: address(ends.alias),
            remote_port: u16::from_be(ends.alias_port),
        };
        let now = self.clock.said_millis();
        self.rules.inbound(&tuple, true, now)?.address.map(word)
    }
}

/// The end of a packet that goes out as it came: what [`put_back`] takes.
/// Address, and port or identifier (0: it has none). O(1).
pub fn source_of(bytes: &[u8]) -> (Ipv4Addr, u16) {
    let Ok(ip) = Ipv4::new(bytes) else {
        return (Ipv4Addr::UNSPECIFIED, 0);
    };
    let at = match ip.protocol() {
        _ if ip.fragment_offset_bytes() != 0 => None,
        protocol::TCP | protocol::UDP | protocol::UDP_LITE => Some(0),
        protocol::ICMP => Icmp::new(ip.payload()).ok().map(|_| 4),
        _ => None,
    };
    let field = at.and_then(|at| ip.payload().get(at..)?.first_chunk::<2>());
    (
        ip.source(),
        field.map_or(0, |field| u16::from_be_bytes(*field)),
    )
}

/// Gives a packet that was translated outward the source that it had, with
/// all checksums: for who learns later that it gets nowhere. False, with
/// nothing done, for an ICMP error and what is no IPv4 packet. What a helper
/// wrote into it stays. O(1).
pub fn put_back(bytes: &mut [u8], (source, port): (Ipv4Addr, u16)) -> bool {
    let to = word(source);
    match parse::long::<true>(bytes) {
        Parse::Flow { parsed, .. } => {
            let key = parsed.key;
            let ends = Ends {
                inside: key.source(),
                inside_port: key.source_port(),
                remote: key.destination(),
                remote_port: key.destination_port(),
                alias: to,
                alias_port: port.to_be(),
                protocol: key.protocol(),
            };
            // The same rewriting, with the former end as the alias.
            let flow = Flow::new(&ends, State::first(key.protocol()), 0, 0);
            parse::rewrite::<true>(bytes, &parsed, &flow);
            true
        }
        Parse::LaterFragment => {
            let from = bytes.get(12..).and_then(|rest| rest.first_chunk::<4>());
            let from = from.map_or(0, |from| u32::from_ne_bytes(*from));
            rewrite_address::<true>(bytes, to, Delta::of32(from, to));
            true
        }
        Parse::Malformed | Parse::IcmpError { .. } | Parse::OtherIcmp => false,
    }
}
