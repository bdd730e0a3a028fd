//! The nodes that check IPv4 (RFC 1812 §5.2) and IPv6 (RFC 8200) packets
//! that came in, and what they become by one more hop.

use packet::checksum::Sum;
use packet::ipv4::HEADER_LEN as V4_LEN;
use packet::ipv6::HEADER_LEN as V6_LEN;

use super::Reason;
use crate::Buffer;

/// What the checks found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked<A> {
    /// To be looked up by this destination.
    To(A),
    /// The kernel's: to a group, to all, or with a router alert.
    Host,
    /// Not to go on.
    Dropped(Reason),
}

/// Checks an IPv4 packet and takes what the link padded it with off its
/// end. The destination is in host order.
#[inline(always)]
pub fn check_v4(frame: &mut Buffer, is_from_host: bool) -> Checked<u32> {
    let bytes = frame.packet();
    let Some(header) = bytes.first_chunk::<V4_LEN>() else {
        return Checked::Dropped(Reason::Ipv4Length);
    };
    let first = header[0];
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if first != 0x45 {
        return check_v4_options(frame, is_from_host);
    }
    if total_len < V4_LEN || total_len > bytes.len() {
        return Checked::Dropped(Reason::Ipv4Length);
    }
    if !is_sum_right(header) {
        return Checked::Dropped(Reason::Ipv4Checksum);
    }
    let verdict = addresses_v4(header, is_from_host);
    frame.set_len(total_len);
    verdict
}

/// Whether the checksum of a header without options is right: its words of
/// 16 bits, of whatever order of bytes, come to a multiple of 65,535 (RFC
/// 1071 §2). That of the whole is that of wider words, for 65,536 leaves 1;
/// and it takes one multiplication, where folding takes a chain of sums.
#[inline(always)]
fn is_sum_right(header: &[u8; V4_LEN]) -> bool {
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    // It is not 0: the version is in it.
    sum.is_multiple_of(0xffff)
}

/// Sources and destinations that routers do not forward (RFC 1812 §5.3.7,
/// §4.2.3.1), and destinations of many hosts.
#[inline(always)]
fn addresses_v4(header: &[u8], is_from_host: bool) -> Checked<u32> {
    let word = |at: usize| {
        let word = header.get(at..at + 4).and_then(|word| word.try_into().ok());
        debug_assert!(word.is_some());
        u32::from_be_bytes(word.unwrap_or_default())
    };
    let (source, destination) = (word(12), word(16));
    if is_of_a_host(source) && is_of_a_host(destination) {
        return Checked::To(destination);
    }
    odd_addresses_v4(source, destination, is_from_host)
}

/// Whether an IPv4 address may be a host's beyond this one: of no reserved
/// block, no group.
#[inline(always)]
pub fn is_of_a_host(address: u32) -> bool {
    let first = address >> 24;
    (first.wrapping_sub(1) < 223) & (first != 127)
}

#[cold]
fn odd_addresses_v4(source: u32, destination: u32, is_from_host: bool) -> Checked<u32> {
    let is_group = (224..240).contains(&(destination >> 24));
    let is_to_all = destination == u32::MAX;
    let first = source >> 24;
    // Hosts that have no address yet ask all, or a group, for one (RFC 2131
    // §4.1, RFC 3376 §4.2.13).
    let is_asking = source == 0 && (is_group || is_to_all);
    if (first == 0 && !is_asking) || first == 127 || first >= 224 {
        return Checked::Dropped(Reason::Ipv4MartianSource);
    }
    if is_group || is_to_all {
        // What the host itself sends to many is for it to send.
        return match is_from_host {
            true => Checked::Dropped(Reason::Ipv4MartianDestination),
            false => Checked::Host,
        };
    }
    let first = destination >> 24;
    if first == 0 || first == 127 || first >= 224 {
        return Checked::Dropped(Reason::Ipv4MartianDestination);
    }
    Checked::To(destination)
}

/// A packet with options, or with a first byte of nonsense.
#[cold]
fn check_v4_options(frame: &mut Buffer, is_from_host: bool) -> Checked<u32> {
    let bytes = frame.packet();
    let first = bytes.first().copied().unwrap_or_default();
    if first >> 4 != 4 {
        return Checked::Dropped(Reason::Ipv4Version);
    }
    let header_len = usize::from(first & 0xf) * 4;
    let total_len = match bytes {
        [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    let header = bytes.get(..header_len).unwrap_or_default();
    if header.len() < V4_LEN || total_len < header_len || total_len > bytes.len() {
        return Checked::Dropped(Reason::Ipv4Length);
    }
    if Sum::of(header).folded() != 0xffff {
        return Checked::Dropped(Reason::Ipv4Checksum);
    }
    let verdict = match options_v4(&header[V4_LEN..]) {
        Ok(is_alert) => match addresses_v4(header, is_from_host) {
            Checked::To(_) if is_alert && !is_from_host => Checked::Host,
            verdict => verdict,
        },
        Err(reason) => Checked::Dropped(reason),
    };
    frame.set_len(total_len);
    verdict
}

/// Whether a router alert (RFC 2113) is among the options. Source routes
/// are refused, as Linux does by default (RFC 7126 §4.3, §4.4); record
/// route and time stamps go through as they are.
fn options_v4(mut options: &[u8]) -> Result<bool, Reason> {
    const SOURCE_ROUTES: [u8; 2] = [131, 137];
    const ROUTER_ALERT: u8 = 148;
    let mut is_alert = false;
    while let Some(&kind) = options.first() {
        let len = match (kind, options.get(1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(&len)) if len >= 2 => usize::from(len),
            _ => return Err(Reason::Ipv4Options),
        };
        if SOURCE_ROUTES.contains(&kind) {
            return Err(Reason::Ipv4SourceRoute);
        }
        is_alert |= kind == ROUTER_ALERT;
        options = options.get(len..).ok_or(Reason::Ipv4Options)?;
    }
    Ok(is_alert)
}

/// Checks an IPv6 packet and takes what the link padded it with off its
/// end.
#[inline(always)]
pub fn check_v6(frame: &mut Buffer, is_from_host: bool) -> Checked<u128> {
    let bytes = frame.packet();
    let Some(header) = bytes.first_chunk::<V6_LEN>() else {
        return Checked::Dropped(Reason::Ipv6Length);
    };
    if header[0] >> 4 != 6 {
        return Checked::Dropped(Reason::Ipv6Version);
    }
    let total_len = V6_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if total_len > bytes.len() {
        return Checked::Dropped(Reason::Ipv6Length);
    }
    let address = |at: usize| {
        let bytes = header
            .get(at..at + 16)
            .and_then(|part| part.try_into().ok());
        debug_assert!(bytes.is_some());
        u128::from_be_bytes(bytes.unwrap_or_default())
    };
    let (source, destination) = (address(8), address(24));
    frame.set_len(total_len);
    let is_group = |address: u128| address >> 120 == 0xff;
    if is_group(source) || source == 1 || (source == 0 && !is_group(destination)) {
        return Checked::Dropped(Reason::Ipv6MartianSource);
    }
    if is_group(destination) {
        return match is_from_host {
            true => Checked::Dropped(Reason::Ipv6MartianDestination),
            false => Checked::Host,
        };
    }
    if destination <= 1 {
        return Checked::Dropped(Reason::Ipv6MartianDestination);
    }
    if is_link_local(destination) && !is_from_host {
        // Ours, or nobody's here: the kernel knows.
        return Checked::Host;
    }
    Checked::To(destination)
}

/// `fe80::/10`.
fn is_link_local(address: u128) -> bool {
    address >> 118 == 0x3fa
}

/// Whether an IPv6 packet's source must not leave its link (RFC 4291
/// §2.5.6).
#[inline(always)]
pub fn is_from_link_local(packet: &[u8]) -> bool {
    matches!(packet.get(8..10), Some([0xfe, second]) if second & 0xc0 == 0x80)
}

/// Hops that a packet has left.
#[inline(always)]
pub fn hops(packet: &[u8], is_v6: bool) -> u8 {
    let at = if is_v6 { 7 } else { 8 };
    debug_assert!(at < packet.len(), "a header was checked");
    packet.get(at).copied().unwrap_or_default()
}

/// Takes one hop off a packet that has some; IPv4's checksum follows (RFC
/// 1624): it grows by as much as its word of the sum gets less.
#[inline(always)]
pub fn take_hop(packet: &mut [u8], is_v6: bool) {
    if is_v6 {
        if let Some(hops) = packet.get_mut(7) {
            *hops = hops.saturating_sub(1);
        }
        return;
    }
    let Some([ttl, _, high, low]) = packet.get_mut(8..12) else {
        return;
    };
    if *ttl == 0 {
        return;
    }
    *ttl -= 1;
    let sum = u32::from(u16::from_be_bytes([*high, *low])) + 0x100;
    let sum = sum + u32::from(sum >= 0xffff);
    [*high, *low] = (sum as u16).to_be_bytes();
}

#[cfg(test)]
mod tests;
