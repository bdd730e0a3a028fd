//! The packet inside an ICMP error, of which often only the first bytes are
//! there (RFC 792: eight of the upper layer). Each change keeps the inner
//! checksums as right as they were, and tells the checksum around of it.

use packet::checksum::{Delta, Sum};
use packet::{Ipv4, icmp, ipv4, protocol, tcp};

use crate::key::Key;
use crate::parse::{self, rewrite_address, update};
use crate::part::{part, part_mut};

/// Where the inner packet begins in an ICMP error.
const INNER_AT: usize = icmp::HEADER_LEN;
/// Where ICMP's checksum is.
const CHECKSUM_AT: usize = 2;
/// Where an error says how long its inner packet is, if it has something
/// behind that (RFC 4884 §4.1 to §4.3).
const LENGTH_AT: usize = 5;
/// Where the numbers of a TCP segment are, from its header on.
const NUMBERS_AT: [usize; 2] = [4, 8];

/// An inner packet that is being rewritten.
pub struct Quote<'a> {
    /// What tells its flow, as it stands there.
    pub key: Key,
    /// Whether its upper layer's header is in another fragment.
    pub is_later_fragment: bool,
    /// The ICMP message.
    message: &'a mut [u8],
    /// Where the inner packet's upper layer begins.
    upper_at: usize,
    /// Where our end's port or identifier is, from the upper layer on.
    port_at: Option<usize>,
    checksum_at: Option<usize>,
    /// What the changes did to a sum over addresses.
    addresses: Delta,
    /// And to one over the upper layer.
    upper: Delta,
}

impl<'a> Quote<'a> {
    /// Reads the inner packet of an error that goes out (`OUT`) or comes in;
    /// `None`: it is too short to tell.
    pub fn read<const OUT: bool>(message: &'a mut [u8]) -> Option<Self> {
        let ip = Ipv4::parse_truncated(message.get(INNER_AT..)?).ok()?;
        let payload = ip.payload();
        let word = |at: usize| word_at(payload, at);
        // The end that is ours: the inner source of an error that comes in
        // (we sent that packet), the inner destination of one that goes out.
        let own_at = if OUT { 2 } else { 0 };
        let is_later_fragment = ip.fragment_offset_bytes() != 0;
        let (ports, port_at, checksum_at) = match ip.protocol() {
            _ if is_later_fragment => ([0, 0], None, None),
            protocol::UDP | protocol::UDP_LITE => ([word(0)?, word(2)?], Some(own_at), Some(6)),
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
            // PPTP's call is the receiver's.
            protocol::GRE if OUT => ([0, 0], Some(6), None),
            _ => ([0, 0], None, None),
        };
        let checksum_at = checksum_at.filter(|at| word(*at).is_some());
        let (key, upper_at) = (parse::key(&ip, ports), INNER_AT + ip.header_len());
        Some(Self {
            key,
            is_later_fragment,
            message,
            upper_at,
            port_at,
            checksum_at,
            addresses: Delta::NONE,
            upper: Delta::NONE,
        })
    }

    /// The upper layer, as far as it is there.
    pub fn upper(&self) -> &[u8] {
        part(self.message, self.upper_at..self.message.len())
    }

    /// Sets the end that is ours, memory order.
    pub fn set_end<const OUT: bool>(&mut self, own: u32, port: Option<u16>) {
        // The inner packet shows the other direction: its source is the
        // address that an error going out has as destination.
        if OUT {
            self.set_address::<false>(own);
        } else {
            self.set_address::<true>(own);
        }
        if let (Some(at), Some(port)) = (self.port_at, port) {
            self.put(at, port);
        }
    }

    /// Sets the end that is not ours, of UDP or TCP.
    pub fn set_other_end<const OUT: bool>(&mut self, remote: u32, port: u16) {
        if OUT {
            self.set_address::<true>(remote);
        } else {
            self.set_address::<false>(remote);
        }
        if self.port_at.is_some() {
            self.put(if OUT { 0 } else { 2 }, port);
        }
    }

    /// Gives a TCP segment other sequence and acknowledgement numbers, as
    /// far as they are there.
    pub fn set_numbers(&mut self, change: impl Fn((u32, u32)) -> (u32, u32)) {
        let number = |at: usize| {
            let upper = self.upper().get(at..)?;
            Some(u32::from_be_bytes(*upper.first_chunk::<4>()?))
        };
        let [first, second] = NUMBERS_AT;
        let (sequence, acknowledgement) = (number(first), number(second));
        let flags = self.upper().get(13).copied();
        let (new, new_ack) = change((
            sequence.unwrap_or_default(),
            acknowledgement.unwrap_or_default(),
        ));
        if sequence.is_some() {
            self.put_number(first, new);
        }
        // Without its flag it has no meaning, and is as it was sent; where
        // the flags are cut off, all but the first segment had it.
        let has_meaning = flags.is_none_or(|flags| flags & tcp::ACK != 0);
        if acknowledgement.is_some() && has_meaning {
            self.put_number(second, new_ack);
        }
    }

    /// The address of the inner packet's source or destination. Its header
    /// keeps its sum, so that the ICMP checksum does not see it.
    fn set_address<const SOURCE: bool>(&mut self, new: u32) {
        let old = if SOURCE {
            self.key.source()
        } else {
            self.key.destination()
        };
        let delta = Delta::of32(old, new);
        if let Some(ip) = self.message.get_mut(INNER_AT..) {
            rewrite_address::<SOURCE>(ip, new, delta);
        }
        self.addresses = self.addresses.and(delta);
    }

    fn put_number(&mut self, at: usize, number: u32) {
        let [a, b, c, d] = number.to_be_bytes();
        self.put(at, u16::from_ne_bytes([a, b]));
        self.put(at + 2, u16::from_ne_bytes([c, d]));
    }

    /// Writes a word of the upper layer, memory order.
    fn put(&mut self, at: usize, new: u16) {
        let Some(upper) = self.message.get_mut(self.upper_at..) else {
            return;
        };
        if let Some(old) = word_at(upper, at) {
            parse::put(upper, at, new);
            self.upper = self.upper.and(Delta::of16(old, new));
        }
    }

    /// Puts the checksums right: the inner one, and that around it all.
    pub fn finish(self) {
        let Self {
            key,
            message,
            upper_at,
            checksum_at,
            addresses,
            upper: changed,
            ..
        } = self;
        let mut around = changed;
        let end = message.len();
        let upper = part_mut(message, upper_at..end);
        if let Some(at) = checksum_at
            && let Some(old) = word_at(upper, at)
        {
            let new = match key.protocol() {
                protocol::UDP | protocol::UDP_LITE => addresses.and(changed).apply_udp(old),
                protocol::TCP => addresses.and(changed).apply(old),
                _ => changed.apply(old),
            };
            parse::put(upper, at, new);
            around = around.and(Delta::of16(old, new));
        }
        update(message, CHECKSUM_AT, around);
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes))
}

/// Takes an IPv4 option that begins with `option` (its kind, its length) out
/// of the header of an error's inner packet, where it is the first. An error
/// that says how long its inner packet is keeps it: what stands behind has
/// its place. `at`: where the ICMP message begins.
pub fn take_option_out(bytes: &mut [u8], at: usize, option: [u8; 2]) {
    let len = usize::from(option[1]);
    let total_len = Ipv4::new(&*bytes).map_or(0, |ip| ip.total_len());
    let Some(message) = bytes.get_mut(at..total_len) else {
        return;
    };
    let inner = part(message, INNER_AT..message.len());
    let Ok(ip) = Ipv4::parse_truncated(inner) else {
        return;
    };
    let has_it = ip.options().starts_with(&option) && ip.options().len() >= len;
    let says_length = message.get(LENGTH_AT).is_none_or(|words| *words != 0);
    let shorter = ip.total_len().checked_sub(len);
    let Some(inner_len) = shorter.filter(|_| has_it && !says_length) else {
        return;
    };
    let header_len = ip.header_len() - len;
    let before = Sum::of(message).folded();
    let option_at = INNER_AT + ipv4::HEADER_LEN;
    message.copy_within(option_at + len.., option_at);
    let kept = message.len() - len;
    let Some(message) = message.get_mut(..kept) else {
        return;
    };
    if let Some([first, _, high, low, ..]) = message.get_mut(INNER_AT..) {
        *first = 0x40 | (header_len / 4) as u8;
        [*high, *low] = (inner_len as u16).to_be_bytes();
    }
    if let Ok(mut ip) = Ipv4::parse_truncated(part_mut(message, INNER_AT..kept)) {
        ip.fill_checksum();
    }
    let after = Sum::of(message).folded();
    update(message, CHECKSUM_AT, Delta::of16(before, after));
    if let Ok(mut ip) = Ipv4::new(bytes) {
        let set = ip.set_total_len((total_len - len) as u16);
        debug_assert!(set, "shorter than it was");
    }
}
