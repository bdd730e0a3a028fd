//! Hosts, networks and prefixes as net-tools reads them.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::host;

/// Where networks have their names.
const NETWORKS: &str = "/etc/networks";
/// For the names of a command line, each.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What a word of a command line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meant {
    /// The address.
    pub address: Ipv4Addr,
    /// It is `default`, or a name of networks(5).
    pub is_network: bool,
}

/// Reads an address, or looks up a name: of a network, then of a host, or
/// the other way round. The error says what the C library would.
pub fn meant(word: &str, hosts_first: bool) -> Result<Meant, String> {
    let host = |address| Meant {
        address,
        is_network: false,
    };
    let network = |address| Meant {
        address,
        is_network: true,
    };
    if word == "default" {
        return Ok(network(Ipv4Addr::UNSPECIFIED));
    }
    if let Some(address) = address(word) {
        return Ok(host(address));
    }
    let of_network = || {
        let networks = std::fs::read_to_string(NETWORKS).unwrap_or_default();
        let named = networks_of(&networks);
        let mut named = named.into_iter().filter(|(_, name)| name == word);
        named.next().map(|(address, _)| network(address))
    };
    if !hosts_first && let Some(found) = of_network() {
        return Ok(found);
    }
    // A colon is in no name; to ask for one takes long.
    let found = match word.contains([':', '/', '#']) || word.is_empty() {
        true => None,
        false => host::address(word, PATIENCE).ok(),
    };
    match found.map(host).or_else(of_network) {
        Some(found) => Ok(found),
        None => Err(format!("{word}: Unknown host")),
    }
}

/// An address of one to four numbers, each decimal, octal (`0…`) or
/// hexadecimal (`0x…`); the last fills what is left (`inet_aton`).
pub fn address(word: &str) -> Option<Ipv4Addr> {
    let mut parts = word.split('.').collect::<Vec<_>>();
    let last = number(parts.pop()?)?;
    let places = 4_u32.checked_sub(u32::try_from(parts.len()).ok()?)?;
    if places == 0 || u64::from(last) >= 1 << (8 * places) {
        return None;
    }
    let mut bits = last;
    for (place, part) in parts.into_iter().enumerate() {
        let octet = u8::try_from(number(part)?).ok()?;
        bits |= u32::from(octet) << (24 - 8 * place);
    }
    Some(bits.into())
}

fn number(text: &str) -> Option<u32> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, base).ok()
}

/// The number at the beginning of a word; 0 where there is none (`atoi`).
pub fn leading_number(word: &str) -> i64 {
    let word = word.trim_start();
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    };
    let end = digits.find(|one: char| !one.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    match (digits, digits.parse::<i64>()) {
        ("", _) => 0,
        (_, Ok(number)) => sign * number,
        (_, Err(_)) => sign * i64::MAX,
    }
}

/// The length of the prefix that a netmask means; `None`: its ones have
/// gaps.
pub fn prefix_len(mask: Ipv4Addr) -> Option<u8> {
    ipnet::ipv4_mask_to_prefix(mask).ok()
}

/// Networks by their addresses (networks(5)).
pub fn networks_of(text: &str) -> HashMap<Ipv4Addr, String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let named = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, address) = (words.next()?, words.next()?);
        Some((address.parse().ok()?, name.to_owned()))
    });
    named.collect()
}

/// The networks of this host's networks(5).
pub fn networks() -> HashMap<Ipv4Addr, String> {
    networks_of(&std::fs::read_to_string(NETWORKS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_to_four_numbers() {
        for (word, expected) in [
            ("10.0.5.80", Some([10, 0, 5, 80])),
            ("10.6", Some([10, 0, 0, 6])),
            ("10.6.300", Some([10, 6, 1, 44])),
            ("0x0a1d0000", Some([10, 29, 0, 0])),
            ("010.1", Some([8, 0, 0, 1])),
            ("0", Some([0, 0, 0, 0])),
            ("10.256.0.1", None),
            ("10.0.0.256", None),
            ("1.2.3.4.5", None),
            ("10.", None),
            ("", None),
            ("+1.2.3.4", None),
            ("08.1.1.1", None),
        ] {
            assert_eq!(address(word), expected.map(Ipv4Addr::from), "{word}");
        }
    }

    #[test]
    fn default_is_a_network_and_an_address_a_host() {
        let any = Meant {
            address: Ipv4Addr::UNSPECIFIED,
            is_network: true,
        };
        assert_eq!(meant("default", true), Ok(any));
        let host = meant("10.1", false).unwrap();
        assert_eq!(
            (host.address, host.is_network),
            ([10, 0, 0, 1].into(), false)
        );
        assert_eq!(meant("a:b", false), Err("a:b: Unknown host".to_owned()));
    }

    #[test]
    fn numbers_end_where_digits_do() {
        for (word, number) in [("12x", 12), ("x", 0), (" -3", -3), ("", 0)] {
            assert_eq!(leading_number(word), number, "{word}");
        }
        assert_eq!(leading_number("99999999999999999999"), i64::MAX);
    }

    #[test]
    fn networks_have_names() {
        let names = networks_of("default 0.0.0.0 # all\nloopback\t127.0.0.0\nhalf\n");
        assert_eq!(names[&Ipv4Addr::new(127, 0, 0, 0)], "loopback");
        assert_eq!(names.len(), 2);
    }
}
