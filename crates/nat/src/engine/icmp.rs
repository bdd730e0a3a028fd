//! ICMP errors: the packet inside tells the flow, and is rewritten with the
//! one around it (RFC 5508 §7).

use packet::checksum::Delta;
use packet::{Ipv4, icmp, protocol};

use crate::key::Key;
use crate::parse::{rewrite_address, update};
use crate::{Nat, Verdict};

/// Where the inner packet begins in an ICMP error.
const INNER_AT: usize = icmp::HEADER_LEN;

/// What of the inner packet tells its flow.
struct Inner {
    /// The key as it stands there.
    key: Key,
    /// Where its upper layer begins, from the ICMP header on.
    upper_at: usize,
    /// Where its port and its checksum are, from the upper layer on.
    port_at: Option<usize>,
    checksum_at: Option<usize>,
}

impl Nat {
    /// Translates an ICMP error. Its flow is not refreshed (RFC 5508
    /// REQ-9 is about its being passed, not about its counting as use).
    pub(super) fn icmp_error<const OUT: bool>(&mut self, bytes: &mut [u8], at: usize) -> Verdict {
        let Some(inner) = bytes.get(at..).and_then(inner::<OUT>) else {
            return Verdict::Malformed;
        };
        let Some((own, own_port)) = self.other_end::<OUT>(&inner) else {
            return if OUT {
                self.unknown_error_out(bytes)
            } else if self.config.mode.deny_incoming {
                Verdict::NoMapping
            } else {
                Verdict::Passed
            };
        };
        let old = outer_address::<OUT>(bytes);
        rewrite_address::<OUT>(bytes, own, Delta::of32(old, own));
        if let Some(message) = bytes.get_mut(at..) {
            rewrite_inner::<OUT>(message, &inner, own, own_port);
        }
        Verdict::Translated
    }

    /// The address and port that go into the inner packet: of an error that
    /// comes in the inside's, of one that goes out the alias's.
    fn other_end<const OUT: bool>(&self, inner: &Inner) -> Option<(u32, u16)> {
        // The inner packet went the other way, so that its key is turned
        // round for a lookup in the error's own direction.
        let turned = inner.key.turned();
        let found = self.find_error::<OUT>(turned);
        let found = found.or_else(|| self.find_error::<OUT>(turned.without_ports()));
        let flow = self.table.get(found?).filter(|flow| self.alive(flow))?;
        Some(if OUT {
            (flow.alias(), flow.alias_port())
        } else {
            (flow.inside(), flow.inside_port())
        })
    }

    fn find_error<const OUT: bool>(&self, key: Key) -> Option<u32> {
        self.table.find::<OUT>(self.table.hasher.hash(key), key)
    }

    /// An error that goes out about a packet no flow is known of: its
    /// source is hidden all the same.
    fn unknown_error_out(&mut self, bytes: &mut [u8]) -> Verdict {
        let source = outer_address::<true>(bytes);
        match self.own_for(source) {
            Some(alias) => {
                rewrite_address::<true>(bytes, alias, Delta::of32(source, alias));
                Verdict::Translated
            }
            None => Verdict::Passed,
        }
    }
}

fn outer_address<const OUT: bool>(bytes: &[u8]) -> u32 {
    let at = if OUT { 12 } else { 16 };
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Reads the inner packet of an error; `None`: it is too short to tell.
fn inner<const OUT: bool>(message: &[u8]) -> Option<Inner> {
    let bytes = message.get(INNER_AT..)?;
    let ip = Ipv4::cut(bytes).ok()?;
    let upper_at = INNER_AT + ip.header_len();
    let payload = ip.payload();
    let word = |at: usize| {
        let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<2>());
        bytes.map(|bytes| u16::from_ne_bytes(*bytes))
    };
    // The end that is ours: the inner source of an error that comes in (we
    // sent that packet), the inner destination of one that goes out.
    let own_at = if OUT { 2 } else { 0 };
    let (ports, port_at, checksum_at) = match ip.protocol() {
        _ if ip.fragment_offset_bytes() != 0 => ([0, 0], None, None),
        protocol::UDP => ([word(0)?, word(2)?], Some(own_at), Some(6)),
        protocol::TCP => ([word(0)?, word(2)?], Some(own_at), Some(16)),
        protocol::ICMP => {
            let identifier = word(4)?;
            let ports = if OUT {
                [0, identifier]
            } else {
                [identifier, 0]
            };
            (ports, Some(4), Some(2))
        }
        _ => ([0, 0], None, None),
    };
    let checksum_at = checksum_at.filter(|at| word(*at).is_some());
    Some(Inner {
        key: crate::parse::key(&ip, ports),
        upper_at,
        port_at,
        checksum_at,
    })
}

/// Rewrites the inner packet: its address and header checksum, its port and
/// checksum as far as they are there; and the ICMP checksum around it all.
fn rewrite_inner<const OUT: bool>(message: &mut [u8], inner: &Inner, own: u32, own_port: u16) {
    let is_icmp = inner.key.protocol() == protocol::ICMP;
    let (old, old_port) = if OUT {
        (inner.key.destination(), inner.key.destination_port())
    } else {
        (inner.key.source(), inner.key.source_port())
    };
    let address = Delta::of32(old, own);
    if let Some(ip) = message.get_mut(INNER_AT..) {
        // The inner packet shows the other direction: its source is the
        // address that an error going out has as destination. The header
        // keeps its sum, so that the ICMP checksum does not see it.
        if OUT {
            rewrite_address::<false>(ip, own, address);
        } else {
            rewrite_address::<true>(ip, own, address);
        }
    }
    let mut around = Delta::NONE;
    let Some(upper) = message.get_mut(inner.upper_at..) else {
        return;
    };
    if let Some(port_at) = inner.port_at {
        crate::parse::put(upper, port_at, own_port);
        let port = Delta::of16(old_port, own_port);
        around = around.and(port);
        if let Some(at) = inner.checksum_at {
            let delta = if is_icmp { port } else { address.and(port) };
            around = around.and(rewrite_sum(upper, at, delta, inner.key.protocol()));
        }
    }
    update(message, 2, around);
}

/// Updates the inner checksum and says what that does to a sum around it.
fn rewrite_sum(upper: &mut [u8], at: usize, delta: Delta, protocol: u8) -> Delta {
    let Some(place) = upper
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
    else {
        return Delta::NONE;
    };
    let old = u16::from_ne_bytes(*place);
    let new = if protocol == protocol::UDP {
        delta.apply_udp(old)
    } else {
        delta.apply(old)
    };
    *place = new.to_ne_bytes();
    Delta::of16(old, new)
}
