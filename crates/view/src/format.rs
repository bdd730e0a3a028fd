//! Numbers and addresses as bytes, appended to a buffer without the
//! machinery of `std::fmt`: the innermost loop of every listing.
//!
//! Oracle: `std::fmt::Display`, in this module's property tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use table::LinkLayerAddress;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The decimal digits of every octet, and how many they are.
const OCTETS: [[u8; 4]; 256] = {
    let mut table = [[0; 4]; 256];
    let mut n = 0;
    while n < 256 {
        let (hundreds, tens, ones) = (n / 100, n / 10 % 10, n % 10);
        let digits = [b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8];
        table[n] = match (hundreds, tens) {
            (0, 0) => [digits[2], 0, 0, 1],
            (0, _) => [digits[1], digits[2], 0, 2],
            _ => [digits[0], digits[1], digits[2], 3],
        };
        n += 1;
    }
    table
};

/// A number in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A signed number in decimal.
pub(crate) fn push_i64(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_u64(out, number.unsigned_abs());
}

/// A number in lower-case hexadecimal, without leading zeros or `0x`.
pub(crate) fn push_hex(out: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(HEX[(number >> (4 * digit) & 15) as usize]);
    }
}

/// An IPv4 address in dotted decimal.
pub(crate) fn push_ipv4(out: &mut Vec<u8>, address: Ipv4Addr) {
    let mut text = [0; 20];
    let len = put_ipv4(&mut text, address);
    out.extend_from_slice(&text[..len]);
}

/// Writes the text at the start of a buffer, and says how long it is.
fn put_ipv4(text: &mut [u8; 20], address: Ipv4Addr) -> usize {
    let mut at = 0;
    for octet in address.octets() {
        let [a, b, c, len] = OCTETS[usize::from(octet)];
        text[at] = a;
        text[at + 1] = b;
        text[at + 2] = c;
        at += usize::from(len);
        text[at] = b'.';
        at += 1;
    }
    at - 1
}

/// An IPv6 address as RFC 5952 has it, and as `inet_ntop(3)` writes those
/// that carry an IPv4 address.
pub(crate) fn push_ipv6(out: &mut Vec<u8>, address: Ipv6Addr) {
    let groups = address.segments();
    let (start, len) = longest_zero_run(&groups);
    // `::1.2.3.4` and `::ffff:1.2.3.4`, as inet_ntop(3) does.
    if start == 0 && (len == 6 || (len == 5 && groups[5] == 0xffff)) {
        let [.., a, b, c, d] = address.octets();
        out.extend_from_slice(if len == 6 { b"::" } else { b"::ffff:" });
        return push_ipv4(out, Ipv4Addr::new(a, b, c, d));
    }
    let mut text = [0; 44];
    let mut at = 0;
    let mut group = 0;
    while group < 8 {
        if group == start && len > 1 {
            text[at] = b':';
            at += 1;
            if group == 0 {
                text[at] = b':';
                at += 1;
            }
            group += len;
            continue;
        }
        at = put_group(&mut text, at, groups[group]);
        group += 1;
        if group < 8 {
            text[at] = b':';
            at += 1;
        }
    }
    out.extend_from_slice(&text[..at]);
}

fn put_group(text: &mut [u8; 44], mut at: usize, group: u16) -> usize {
    let digits = (16 - group.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        text[at] = HEX[usize::from(group >> (4 * digit) & 15)];
        at += 1;
    }
    at
}

/// Where the longest run of zero groups starts and how long it is; of
/// equal ones the first (RFC 5952, 4.2.3). A single zero is no run.
fn longest_zero_run(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut best_len) = (8, 0);
    let (mut start, mut len) = (0, 0);
    for (at, group) in groups.iter().enumerate() {
        if *group != 0 {
            len = 0;
            continue;
        }
        if len == 0 {
            start = at;
        }
        len += 1;
        if len > best_len {
            (best, best_len) = (start, len);
        }
    }
    if best_len < 2 {
        (8, 0)
    } else {
        (best, best_len)
    }
}

/// An address of either family.
pub fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => push_ipv4(out, v4),
        IpAddr::V6(v6) => push_ipv6(out, v6),
    }
}

/// A prefix with its length.
pub fn push_prefix(out: &mut Vec<u8>, prefix: IpNet) {
    push_address(out, prefix.addr());
    out.push(b'/');
    push_u64(out, prefix.prefix_len().into());
}

/// A prefix as `ip route` writes destinations: `default` for all
/// addresses, and no length for a single one.
pub(crate) fn push_destination(out: &mut Vec<u8>, prefix: IpNet) {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        push_address(out, prefix.addr());
    } else if prefix.prefix_len() == 0 && prefix.addr().is_unspecified() {
        out.extend_from_slice(b"default");
    } else {
        push_prefix(out, prefix);
    }
}

/// Octets in lower-case hexadecimal with colons.
pub(crate) fn push_octets(out: &mut Vec<u8>, octets: &[u8]) {
    let mut text = [b':'; 96];
    let mut at = 0;
    for octet in octets.iter().take(32) {
        text[at] = HEX[usize::from(octet >> 4)];
        text[at + 1] = HEX[usize::from(octet & 15)];
        at += 3;
    }
    out.extend_from_slice(&text[..at.saturating_sub(1)]);
}

/// A link-layer address in hexadecimal.
pub(crate) fn push_lladdr(out: &mut Vec<u8>, address: &LinkLayerAddress) {
    push_octets(out, address.octets());
}

/// A duration in its two largest units: `12s`, `3m5s`, `2h`, `1d4h`.
pub(crate) fn push_duration(out: &mut Vec<u8>, seconds: u64) {
    const UNITS: [(u64, u8); 4] = [(86_400, b'd'), (3_600, b'h'), (60, b'm'), (1, b's')];
    let largest = UNITS.iter().position(|(unit, _)| seconds >= *unit);
    let at = largest.unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    for (place, (unit, letter)) in UNITS.iter().enumerate().skip(at).take(2) {
        if place == at || rest >= *unit {
            push_u64(out, rest / unit);
            out.push(*letter);
        }
        rest %= unit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Mostly zeros and small groups: the interesting addresses.
    fn sparse_ipv6() -> impl Strategy<Value = Ipv6Addr> {
        let group =
            prop_oneof![4 => Just(0u16), 1 => Just(0xffff), 2 => any::<u16>(), 1 => 0..20u16];
        prop::array::uniform8(group).prop_map(Ipv6Addr::from)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn numbers_and_ipv4_as_display_does(n in any::<u64>(), i in any::<i64>(), v4 in any::<u32>()) {
            prop_assert_eq!(text(|out| push_u64(out, n)), n.to_string());
            prop_assert_eq!(text(|out| push_u64(out, n >> (n % 64))), (n >> (n % 64)).to_string());
            prop_assert_eq!(text(|out| push_i64(out, i)), i.to_string());
            prop_assert_eq!(text(|out| push_hex(out, n)), format!("{n:x}"));
            let v4 = Ipv4Addr::from(v4);
            prop_assert_eq!(text(|out| push_ipv4(out, v4)), v4.to_string());
        }

        #[test]
        fn ipv6_as_display_does_but_for_ipv4_compatible(v6 in sparse_ipv6(), any in any::<u128>()) {
            for v6 in [v6, Ipv6Addr::from(any)] {
                let segments = v6.segments();
                let compatible = segments[..6] == [0; 6] && segments[6] != 0;
                let expected = if compatible {
                    let [.., a, b, c, d] = v6.octets();
                    format!("::{a}.{b}.{c}.{d}")
                } else {
                    v6.to_string()
                };
                prop_assert_eq!(text(|out| push_ipv6(out, v6)), expected);
            }
        }

        #[test]
        fn link_layer_addresses_as_display_does(octets in prop::collection::vec(any::<u8>(), 0..33)) {
            let address = LinkLayerAddress::new(&octets).unwrap();
            prop_assert_eq!(text(|out| push_lladdr(out, &address)), address.to_string());
        }
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (185, "3m5s"),
            (7_200, "2h"),
            (7_205, "2h"),
            (100_800, "1d4h"),
            (86_400 * 400 + 59, "400d"),
        ] {
            assert_eq!(text(|out| push_duration(out, seconds)), expected);
        }
    }

    #[test]
    fn destinations_as_ip_route_writes_them() {
        for (prefix, expected) in [
            ("0.0.0.0/0", "default"),
            ("::/0", "default"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1/32", "10.0.0.1"),
            ("0.0.0.0/32", "0.0.0.0"),
            ("::/1", "::/1"),
            ("::ffff:1.2.3.0/120", "::ffff:1.2.3.0/120"),
        ] {
            let prefix = prefix.parse().unwrap();
            assert_eq!(text(|out| push_destination(out, prefix)), expected);
        }
    }
}
