//! ICMP errors: the packet inside tells the flow, and is rewritten with the
//! one around it (RFC 5508 §7), to what its sender sent or its receiver got:
//! where a proxy stood in for the remote, the remote; where a helper had
//! moved TCP's numbers, those from before; for PPTP's GRE, whose packets
//! belong to a call, the call's ends.

mod quote;

use packet::checksum::{Delta, Sum};
use packet::{Icmp, Ipv4, gre, icmp, protocol};

use self::quote::Quote;
use super::beside::{helper_key, key_tuple, tuple};
use super::translate::restore;
use super::{address, word};
use crate::flow::{Flow, flag};
use crate::helper::stream;
use crate::key::Key;
use crate::parse::rewrite_address;
use crate::part::part;
use crate::proxied::{self, Proxied};
use crate::rules::Encoding;
use crate::{Hairpin, Nat, Verdict};

/// Bytes that an error's translation may change: the headers of IPv4 and
/// ICMP, and those of the packet inside up to TCP's checksum.
const CHANGED_BYTES: usize = 60 + 8 + 60 + 18;

/// What an error's inner packet becomes. Memory order.
struct Before {
    /// What becomes of our end: an error that comes in has the inside's
    /// there, one that goes out the alias's.
    own: u32,
    /// Its port, identifier or call; `None`: it stays.
    own_port: Option<u16>,
    /// The other end, where that was another.
    remote: Option<(u32, u16)>,
    /// Which remote address stood there instead.
    stood_in: u32,
    /// TCP's numbers, where they may have been others.
    numbers: Option<crate::helper::ControlKey>,
    /// Whether a proxy's option was put in.
    option: bool,
}

impl Before {
    fn of<const OUT: bool>(flow: &Flow) -> Self {
        let (own, own_port) = if OUT {
            (flow.alias(), flow.alias_port())
        } else {
            (flow.inside(), flow.inside_port())
        };
        Self {
            own,
            own_port: Some(own_port),
            remote: None,
            stood_in: 0,
            numbers: flow.has(flag::HELPER).then(|| helper_key(&flow.ends())),
            option: false,
        }
    }

    fn of_call(own: u32, own_port: Option<u16>) -> Self {
        Self {
            own,
            own_port,
            remote: None,
            stood_in: 0,
            numbers: None,
            option: false,
        }
    }
}

impl Nat {
    /// Translates an ICMP error. Its flow is not refreshed (RFC 5508
    /// REQ-9 is about its being passed, not about its counting as use). One
    /// about a packet from another inside host turns back (REQ-7).
    pub(super) fn icmp_error<const OUT: bool>(&mut self, bytes: &mut [u8], at: usize) -> Verdict {
        if !OUT && self.config.mode.deny_incoming && is_redirect(bytes, at) {
            // Whoever it is, another way is not for strangers to name.
            return Verdict::Denied;
        }
        if !is_sound(bytes, at) {
            return Verdict::Malformed;
        }
        let turns = OUT
            && self.config.hairpin == Hairpin::Engine
            && self.is_own(outer_address::<false>(bytes));
        if !turns {
            return self.error_one_way::<OUT>(bytes, at);
        }
        let kept = self.keep(bytes, CHANGED_BYTES);
        let verdict = match self.error_one_way::<true>(bytes, at) {
            Verdict::Translated if !self.is_ours::<false>(bytes) => {
                // The other half is another engine's.
                self.kept = kept;
                return Verdict::Translated;
            }
            Verdict::Translated => match self.error_one_way::<false>(bytes, at) {
                Verdict::Translated => Verdict::Hairpinned,
                verdict => verdict,
            },
            verdict => verdict,
        };
        if verdict != Verdict::Hairpinned {
            restore(bytes, &kept);
        }
        self.kept = kept;
        verdict
    }

    fn error_one_way<const OUT: bool>(&self, bytes: &mut [u8], at: usize) -> Verdict {
        // What lies behind the packet is none of the message.
        let end = Ipv4::new(&*bytes).map_or(0, |ip| ip.total_len());
        let Some(mut quote) = bytes.get_mut(at..end).and_then(Quote::read::<OUT>) else {
            return Verdict::Malformed;
        };
        let Some(before) = self.before::<OUT>(&quote) else {
            return if self.is_exempt_error::<OUT>(quote.key) {
                Verdict::Passed
            } else if OUT && self.shard.is_some() && self.is_own(outer_address::<false>(bytes)) {
                // Nobody inside has sent what it is about: it is as it was.
                Verdict::NoMapping
            } else if OUT {
                self.unknown_error_out(bytes)
            } else if self.config.mode.deny_incoming {
                Verdict::NoMapping
            } else {
                Verdict::Passed
            };
        };
        quote.set_end::<OUT>(before.own, before.own_port);
        if let Some((remote, port)) = before.remote {
            quote.set_other_end::<OUT>(remote, port);
        }
        if let Some(key) = before.numbers {
            let helpers = &self.helpers;
            quote.set_numbers(|numbers| helpers.numbers_before(&key, !OUT, numbers));
        }
        quote.finish();
        set_outer::<OUT>(bytes, &before);
        if before.option {
            quote::take_option_out(bytes, at, stream::OPTION);
        }
        Verdict::Translated
    }

    /// What goes into the inner packet; `None`: no flow is known of it.
    fn before<const OUT: bool>(&self, quote: &Quote<'_>) -> Option<Before> {
        if let Some(call) = quote.call()
            && let Some(before) = self.before_of_call::<OUT>(quote.key, call)
        {
            return Some(before);
        }
        // The inner packet went the other way, so that its key is turned
        // round for a lookup in the error's own direction.
        let turned = quote.key.turned();
        let found = self.find_error::<OUT>(turned);
        let found = found.or_else(|| self.find_error::<OUT>(turned.without_ports()));
        match found {
            Some(flow) => Some(self.before_of_flow::<OUT>(flow)),
            None if OUT => self.before_of_meant(turned),
            None => None,
        }
    }

    fn before_of_flow<const OUT: bool>(&self, flow: &Flow) -> Before {
        let before = Before::of::<OUT>(flow);
        if OUT || !flow.has(flag::PROXY) {
            return before;
        }
        let Some(proxied) = self.proxied.by_flow(&tuple(&flow.ends())) else {
            return before;
        };
        let Proxied {
            meant: (remote, port),
            server: (server, _),
            encoding,
        } = proxied;
        Before {
            remote: Some((word(remote), port.to_be())),
            stood_in: word(server),
            option: encoding == Encoding::IpHeader,
            ..before
        }
    }

    /// Of an error that goes out: the inside had the packet from whom it
    /// means to speak with, but a proxy had sent it.
    fn before_of_meant(&self, turned: Key) -> Option<Before> {
        let meant = key_tuple(turned);
        let proxied = self.proxied.outgoing(&meant)?;
        let (server, port) = proxied.server;
        let to_server = proxied::to(meant, proxied.server);
        let ports = [to_server.own_port.to_be(), port.to_be()];
        let key = Key::new(turned.source(), word(server), ports, turned.protocol());
        let flow = self.find_error::<true>(key)?;
        Some(Before {
            remote: Some((word(server), port.to_be())),
            stood_in: turned.destination(),
            ..Before::of::<true>(flow)
        })
    }

    fn before_of_call<const OUT: bool>(&self, key: Key, call: u16) -> Option<Before> {
        let now = self.clock.said_millis();
        let calls = self.helpers.calls();
        let (from, to) = (address(key.source()), address(key.destination()));
        if OUT {
            let (alias, id) = calls.as_it_came((to, from, call), now)?;
            return Some(Before::of_call(word(alias), Some(id.to_be())));
        }
        let inside = calls.sender((from, to, call), now)?;
        Some(Before::of_call(word(inside), None))
    }

    /// Whether an error is about a packet from or to who is left alone: the
    /// packet went the other way.
    fn is_exempt_error<const OUT: bool>(&self, quoted: Key) -> bool {
        let (remote, own) = match OUT {
            true => (quoted.source(), quoted.destination()),
            false => (quoted.destination(), quoted.source()),
        };
        self.is_exempt(remote) && !self.is_own(own)
    }

    fn find_error<const OUT: bool>(&self, key: Key) -> Option<&Flow> {
        let name = self.table.find::<OUT>(self.table.hasher.hash(key), key)?;
        self.table.get(name).filter(|flow| self.alive(flow))
    }

    /// An error that goes out about a packet no flow is known of: what it
    /// quotes would tell who is inside (RFC 5508 REQ-5). One of an address
    /// that nobody translates passes.
    fn unknown_error_out(&self, bytes: &[u8]) -> Verdict {
        let source = outer_address::<true>(bytes);
        match self.alias_of_host(source) {
            Some(alias) if alias != source => Verdict::NoMapping,
            _ => Verdict::Passed,
        }
    }
}

/// The addresses around: our end's, and the other's where it is that which
/// was replaced in the inner packet (a router on the way keeps its own).
fn set_outer<const OUT: bool>(bytes: &mut [u8], before: &Before) {
    let old = outer_address::<OUT>(bytes);
    rewrite_address::<OUT>(bytes, before.own, Delta::of32(old, before.own));
    let Some((remote, _)) = before.remote else {
        return;
    };
    let delta = Delta::of32(before.stood_in, remote);
    if OUT && outer_address::<false>(bytes) == before.stood_in {
        rewrite_address::<false>(bytes, remote, delta);
    } else if !OUT && outer_address::<true>(bytes) == before.stood_in {
        rewrite_address::<true>(bytes, remote, delta);
    }
}

fn is_redirect(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&icmp::REDIRECT)
}

/// Whether an error's checksum is right, and that of the header it quotes
/// (RFC 5508 REQ-3). Of a datagram in fragments only the latter is known.
fn is_sound(bytes: &[u8], at: usize) -> bool {
    let Ok(ip) = Ipv4::new(bytes) else {
        return false;
    };
    let message = part(bytes, at..ip.total_len());
    let whole = !ip.is_fragment();
    let quoted = message.get(icmp::HEADER_LEN..).unwrap_or_default();
    let is_right = Icmp::new(message).is_ok_and(|icmp| icmp.checksum_is_right(Sum::default()));
    // What is too short to tell is refused by who reads it.
    let quoted_is = Ipv4::parse_truncated(quoted).is_ok_and(|quoted| quoted.checksum_is_right());
    (is_right || !whole) && quoted_is
}

/// The source (`OUT`) or the destination of a packet.
fn outer_address<const OUT: bool>(bytes: &[u8]) -> u32 {
    let at = if OUT { 12 } else { 16 };
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

impl Quote<'_> {
    /// The call, of PPTP's GRE.
    fn call(&self) -> Option<u16> {
        let is_gre = self.key.protocol() == protocol::GRE && !self.is_later_fragment;
        is_gre.then(|| gre::call_id_of_cut(self.upper()))?
    }
}
