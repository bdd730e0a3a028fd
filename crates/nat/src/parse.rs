//! From the bytes of a packet to what it is looked up by.
//!
//! For the engine. [`short`] is the way of nearly every packet: TCP or UDP,
//! whole, no options. Everything else goes through [`long`].

use packet::checksum::Delta;
use packet::icmp::Kind as IcmpKind;
use packet::tcp::{ACK, SYN};
use packet::{Gre, Icmp, Ipv4, protocol};

use crate::flow::Flow;
use crate::key::Key;

/// What stands where in a packet that belongs to a flow.
#[derive(Debug, Clone, Copy)]
pub struct Parsed {
    pub key: Key,
    /// Where the upper layer begins.
    pub at: u8,
    pub upper: Upper,
    /// Bytes of the packet by its header.
    pub total_len: u16,
}

/// How the upper layer is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper {
    Udp,
    Tcp,
    /// An ICMP query: its identifier counts as the port.
    Query,
    /// PPTP's GRE: the receiver's call counts as the port.
    Call,
    /// By addresses alone.
    Plain,
}

/// What a packet is.
#[derive(Debug, Clone, Copy)]
pub enum Parse {
    Malformed,
    /// It belongs to a flow; `first`: it is the first fragment of several.
    Flow {
        parsed: Parsed,
        first: bool,
    },
    /// A fragment without the upper layer's header.
    LaterFragment,
    /// An ICMP error; where the ICMP header begins.
    IcmpError {
        at: usize,
    },
    /// An ICMP message that is neither query nor error.
    OtherIcmp,
}

/// Where the upper layer begins in a packet that [`short`] takes: it has no
/// IPv4 options.
pub const SHORT_AT: u8 = 20;
/// Bytes of the headers of IPv4 and UDP.
const UDP_LEN: usize = 28;
/// Bytes of the headers of IPv4 and TCP.
pub const TCP_LEN: usize = 40;

/// A whole TCP or UDP packet without IPv4 options; `None`: anything else,
/// broken ones included.
#[inline(always)]
pub fn short(bytes: &[u8]) -> Option<Parsed> {
    let header = bytes.first_chunk::<UDP_LEN>()?;
    let [
        version,
        _,
        l0,
        l1,
        _,
        _,
        f0,
        f1,
        _,
        protocol,
        _,
        _,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
        p0,
        p1,
        q0,
        q1,
        ..,
    ] = *header;
    let total_len = usize::from(u16::from_be_bytes([l0, l1]));
    let is_tcp = protocol == protocol::TCP;
    let need = if is_tcp { TCP_LEN } else { UDP_LEN };
    let whole = u16::from_ne_bytes([f0, f1]) & WHOLE == 0;
    let known = is_tcp | (protocol == protocol::UDP);
    let sound = (version == 0x45) & (total_len >= need) & (total_len <= bytes.len());
    if !(whole & known & sound) {
        return None;
    }
    let ports = [u16::from_ne_bytes([p0, p1]), u16::from_ne_bytes([q0, q1])];
    let source = u32::from_ne_bytes([s0, s1, s2, s3]);
    let destination = u32::from_ne_bytes([d0, d1, d2, d3]);
    Some(Parsed {
        key: Key::new(source, destination, ports, protocol),
        at: SHORT_AT,
        total_len: total_len as u16,
        upper: if is_tcp { Upper::Tcp } else { Upper::Udp },
    })
}

/// "More fragments" and the offset, as they lie in memory (RFC 791 §3.1).
const WHOLE: u16 = 0x3fff_u16.to_be();

/// What [`short`] has found in a packet before, by its key: read again
/// where it was not kept.
#[inline(always)]
pub fn again(bytes: &[u8], key: Key) -> Parsed {
    let head = bytes.first_chunk::<4>().copied().unwrap_or_default();
    let [_, _, l0, l1] = head;
    let is_tcp = key.protocol() == protocol::TCP;
    Parsed {
        key,
        at: SHORT_AT,
        total_len: u16::from_be_bytes([l0, l1]),
        upper: if is_tcp { Upper::Tcp } else { Upper::Udp },
    }
}

/// The sequence number of a packet that opens a TCP connection.
pub fn syn(bytes: &[u8], parsed: &Parsed) -> Option<u32> {
    if parsed.upper != Upper::Tcp {
        return None;
    }
    let header = bytes.get(usize::from(parsed.at)..)?.first_chunk::<14>()?;
    let [_, _, _, _, s0, s1, s2, s3, _, _, _, _, _, flags] = *header;
    let opens = flags & (SYN | ACK) == SYN;
    opens.then(|| u32::from_be_bytes([s0, s1, s2, s3]))
}

/// [`rewrite`] for a packet that [`short`] has taken.
#[inline(always)]
pub fn rewrite_short<const OUT: bool>(bytes: &mut [u8], is_tcp: bool, flow: &Flow) {
    let (mut ip, mut upper) = (
        Delta::from_folded(flow.ip_delta),
        Delta::from_folded(flow.upper_delta),
    );
    let (address, port) = if OUT {
        (flow.alias(), flow.alias_port())
    } else {
        (ip, upper) = (ip.negated(), upper.negated());
        (flow.inside(), flow.inside_port())
    };
    let Some(header) = bytes.first_chunk_mut::<UDP_LEN>() else {
        return;
    };
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        c0,
        c1,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
        p0,
        p1,
        q0,
        q1,
        ..,
    ] = header;
    [*c0, *c1] = ip.apply(u16::from_ne_bytes([*c0, *c1])).to_ne_bytes();
    if OUT {
        [*s0, *s1, *s2, *s3] = address.to_ne_bytes();
        [*p0, *p1] = port.to_ne_bytes();
    } else {
        [*d0, *d1, *d2, *d3] = address.to_ne_bytes();
        [*q0, *q1] = port.to_ne_bytes();
    }
    // Both at once: half TCP and half UDP is what no branch can guess.
    let at = usize::from(SHORT_AT) + if is_tcp { 16 } else { 6 };
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
    {
        *place = upper_sum(upper, u16::from_ne_bytes(*place), !is_tcp).to_ne_bytes();
    }
}

/// The checksum of TCP or UDP after a change.
#[inline(always)]
fn upper_sum(delta: Delta, old: u16, udp: bool) -> u16 {
    let new = delta.apply(old);
    if (old == 0) | (new == 0) {
        return sum_of_zero(delta, old, udp);
    }
    new
}

/// The same where zero comes in, which has a meaning for UDP.
#[cold]
fn sum_of_zero(delta: Delta, old: u16, udp: bool) -> u16 {
    if udp {
        delta.apply_udp(old)
    } else {
        delta.apply(old)
    }
}

/// Any packet of a direction.
pub fn long<const OUT: bool>(bytes: &[u8]) -> Parse {
    let Ok(ip) = Ipv4::new(bytes) else {
        return Parse::Malformed;
    };
    if ip.fragment_offset_bytes() != 0 {
        return Parse::LaterFragment;
    }
    let at = ip.header_len();
    let Some((upper, ports)) = upper::<OUT>(ip.protocol(), ip.payload()) else {
        return match icmp_kind(&ip) {
            Some(IcmpKind::Error) => Parse::IcmpError { at },
            Some(IcmpKind::Other) => Parse::OtherIcmp,
            _ => Parse::Malformed,
        };
    };
    let parsed = Parsed {
        key: key(&ip, ports),
        at: at as u8,
        total_len: ip.total_len() as u16,
        upper,
    };
    Parse::Flow {
        parsed,
        first: ip.more_fragments(),
    }
}

fn icmp_kind(ip: &Ipv4<&[u8]>) -> Option<IcmpKind> {
    if ip.protocol() != protocol::ICMP {
        return None;
    }
    let message = Icmp::new(ip.payload()).ok()?;
    Some(packet::icmp::kind(message.icmp_type()))
}

/// The key of a packet as it stands there; ports in memory order.
pub fn key(ip: &Ipv4<&[u8]>, ports: [u16; 2]) -> Key {
    let source = u32::from_ne_bytes(ip.source().octets());
    let destination = u32::from_ne_bytes(ip.destination().octets());
    Key::new(source, destination, ports, ip.protocol())
}

/// How an upper layer of a protocol is rewritten, and its ports in memory
/// order. `None`: too short for its header, or an ICMP message that belongs
/// to no flow of its own.
fn upper<const OUT: bool>(protocol: u8, payload: &[u8]) -> Option<(Upper, [u16; 2])> {
    let word = |at: usize| {
        let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<2>());
        bytes.map(|bytes| u16::from_ne_bytes(*bytes))
    };
    let one_sided = |port: u16| if OUT { [port, 0] } else { [0, port] };
    match protocol {
        // The ports are within what UDP-Lite's checksum covers, always.
        protocol::UDP | protocol::UDP_LITE if payload.len() >= 8 => {
            Some((Upper::Udp, [word(0)?, word(2)?]))
        }
        protocol::TCP if payload.len() >= 20 => Some((Upper::Tcp, [word(0)?, word(2)?])),
        protocol::UDP | protocol::UDP_LITE | protocol::TCP => None,
        protocol::ICMP => {
            let message = Icmp::new(payload).ok()?;
            let query = packet::icmp::kind(message.icmp_type()) == IcmpKind::Query;
            query.then(|| (Upper::Query, one_sided(message.identifier().to_be())))
        }
        protocol::GRE => {
            let call = Gre::new(payload).ok().and_then(|gre| gre.call_id());
            Some(match call {
                // The call is always the receiver's.
                Some(call) => (Upper::Call, [0, call.to_be()]),
                None => (Upper::Plain, [0, 0]),
            })
        }
        _ => Some((Upper::Plain, [0, 0])),
    }
}

/// Rewrites a packet of a flow: one address, one port or identifier, and
/// the checksums by the flow's deltas. Everything was checked by the parse.
#[inline(always)]
pub fn rewrite<const OUT: bool>(bytes: &mut [u8], parsed: &Parsed, flow: &Flow) {
    let (mut ip, mut upper) = (
        Delta::from_folded(flow.ip_delta),
        Delta::from_folded(flow.upper_delta),
    );
    let (address, port) = if OUT {
        (flow.alias(), flow.alias_port())
    } else {
        (ip, upper) = (ip.negated(), upper.negated());
        (flow.inside(), flow.inside_port())
    };
    rewrite_address::<OUT>(bytes, address, ip);
    let Some(rest) = bytes.get_mut(usize::from(parsed.at)..) else {
        return;
    };
    let port_at = if OUT { 0 } else { 2 };
    match parsed.upper {
        Upper::Udp | Upper::Tcp => {
            let udp = parsed.upper == Upper::Udp;
            let at = if udp { 6 } else { 16 };
            if let Some(place) = rest
                .get_mut(at..)
                .and_then(|rest| rest.first_chunk_mut::<2>())
            {
                *place = upper_sum(upper, u16::from_ne_bytes(*place), udp).to_ne_bytes();
            }
            put(rest, port_at, port);
        }
        Upper::Query => {
            update(rest, 2, upper);
            put(rest, 4, port);
        }
        Upper::Call if !OUT => put(rest, 6, port),
        Upper::Call | Upper::Plain => {}
    }
}

/// Rewrites the source (out) or destination address and the header checksum.
#[inline(always)]
pub fn rewrite_address<const OUT: bool>(bytes: &mut [u8], address: u32, delta: Delta) {
    let Some(header) = bytes.first_chunk_mut::<20>() else {
        return;
    };
    let [.., c0, c1, s0, s1, s2, s3, d0, d1, d2, d3] = header;
    [*c0, *c1] = delta.apply(u16::from_ne_bytes([*c0, *c1])).to_ne_bytes();
    if OUT {
        [*s0, *s1, *s2, *s3] = address.to_ne_bytes();
    } else {
        [*d0, *d1, *d2, *d3] = address.to_ne_bytes();
    }
}

/// Writes a word; nothing if it does not fit.
#[inline(always)]
pub fn put(bytes: &mut [u8], at: usize, word: u16) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
    {
        *place = word.to_ne_bytes();
    }
}

/// Updates a checksum field.
#[inline(always)]
pub fn update(bytes: &mut [u8], at: usize, delta: Delta) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
    {
        *place = delta.apply(u16::from_ne_bytes(*place)).to_ne_bytes();
    }
}
